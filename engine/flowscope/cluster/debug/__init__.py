"""A step of several processes, paused. Clients enter by `pausing`, workers by the partitions."""
