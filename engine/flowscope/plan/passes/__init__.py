"""Passes, each from a program to a program; none imports another. `pipeline` enters by each."""
