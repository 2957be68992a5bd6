"""Lookup tables: words to numbers and back. Users enter by `fs.lookup`."""
