"""Linear algebra: products, Einstein sums, factorisations, solvers, eigenvalues, norms."""
