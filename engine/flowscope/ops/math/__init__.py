"""Element-wise functions, comparisons, reductions, scans. Users enter by `fs.math`."""
