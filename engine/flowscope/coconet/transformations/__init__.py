"""Transformations of schedules, a file each. Schedules enter by `transformation`."""
