"""State as TensorFlow's raw ops name it. `fs.raw_ops` enters by each module."""
