"""Strings: bytes of any length, element by element; parsing and formatting. CPU only."""
