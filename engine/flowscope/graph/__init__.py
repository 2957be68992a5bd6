"""The graph: operations, tensors, scopes, dtypes, shapes.

In: calls of the op functions. Out: a `Graph` of `Operation`s, each with its `Op`, its Specs and the
user's line. Called by everything above.
"""
