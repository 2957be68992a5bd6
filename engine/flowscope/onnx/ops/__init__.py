"""Converters, a module per family of operators. The table of operators enters by all of them."""
