"""State: variables, locks, queues, files. Users enter by `variables`, plans by `variable_ops`."""
