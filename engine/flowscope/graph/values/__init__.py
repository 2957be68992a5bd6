"""What is known of values: dtypes, shapes. Ops enter by `dtypes`, `shapes` and `expected`."""
