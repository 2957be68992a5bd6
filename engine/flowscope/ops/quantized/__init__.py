"""Quantised numbers: 8, 16 and 32 bits that stand for a range, and training that expects them."""
