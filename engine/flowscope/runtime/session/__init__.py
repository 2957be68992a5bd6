"""Sessions, where graphs run. Users enter by `session`, other processes by `remote`."""
