"""Element-wise arithmetic and functions, comparisons, reductions, scans and counts."""
