"""Quantised numbers: 8, 16 and 32 bits for a range. Users enter by `fs.quantization`."""
