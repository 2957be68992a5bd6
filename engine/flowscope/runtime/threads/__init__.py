"""Cores, BLAS, helper threads, signals. Engines enter by `thread_pool`, steps by `interrupt`."""
