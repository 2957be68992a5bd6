"""Random tensors: counter-based generators. Users enter by `fs.random`."""
