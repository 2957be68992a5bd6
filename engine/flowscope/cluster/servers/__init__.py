"""How clusters begin, with Dask and without. Users enter by `connecting`."""
