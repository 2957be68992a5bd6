"""What every family stands on: building, tables of ops, casts, broadcasting, groups."""
