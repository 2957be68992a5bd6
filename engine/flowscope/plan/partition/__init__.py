"""Programs of several devices: one part for each. `plan` enters by `partitions`."""
