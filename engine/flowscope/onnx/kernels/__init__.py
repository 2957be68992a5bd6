"""NumPy's functions for operators without counterpart. Converters enter by `operator`."""
