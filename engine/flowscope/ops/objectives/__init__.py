"""Losses and metrics. Users enter by `fs.losses` and `fs.metrics`."""
