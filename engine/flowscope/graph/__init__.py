"""Operations, tensors, scopes, dtypes, shapes. All floors enter by `operation` and `graph`.

In: calls of the op functions. Out: a `Graph` of `Operation`s, each with its `Op`, its Specs and the
user's line. Called by everything above.
"""
