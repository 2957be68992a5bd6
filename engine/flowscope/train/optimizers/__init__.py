"""Optimizers, their slots and schedules. Users enter by `fs.train`, new ones by `optimizer`."""
