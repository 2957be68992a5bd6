"""What a graph looks like to a view. The bus enters by `nodes`, tests and notebooks by `text`."""
