"""A plan's program and its nodes, as data. Passes and code enter by `program` and `structured`."""
