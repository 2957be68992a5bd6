"""Reductions and exchanges over devices and workers. Users enter by `fs.collectives`."""
