"""Linear algebra: products, factorisations, solvers, norms. Users enter by `fs.linalg`."""
