"""What every family stands on: building, casts, broadcasting. Ops enter by `build`, `declare`."""
