"""The same graph on many machines: Dask workers host devices, and a session runs steps on them."""
