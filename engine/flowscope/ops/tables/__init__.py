"""Lookup tables: words to numbers and back, fixed or changing."""
