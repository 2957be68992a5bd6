"""What runs in a worker. Plugins of Dask and local clusters enter by `host`."""
