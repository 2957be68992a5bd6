"""Strings: bytes of any length, element by element. Users enter by `fs.strings`."""
