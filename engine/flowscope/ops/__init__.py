"""The op library: op functions and the ops that they add. Users enter by `fs` and its namespaces.

In come tensors and Python values, out come tensors of the same graph. Each family has its file; an
op is one frozen dataclass (see `flowscope.graph.op`), a family of element-wise ops one table.
"""
