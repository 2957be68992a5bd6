"""The op library: op functions under TensorFlow 1's names, and the ops that they add.

In come tensors and Python values, out come tensors of the same graph. Each family has its file; an
op is one frozen dataclass (see `flowscope.graph.op`), a family of element-wise ops one table.
"""
