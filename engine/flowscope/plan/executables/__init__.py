"""What compiles and runs regions. The runtime and partitions enter by `back_ends`."""
