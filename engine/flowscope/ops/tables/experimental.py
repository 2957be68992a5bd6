"""Tables under TensorFlow's experimental names: `fs.lookup.experimental`."""

from flowscope.ops.tables.tables import MutableDenseHashTable as DenseHashTable

__all__ = ["DenseHashTable"]
