"""State: variables, scopes, initializers, optimizers' updates, locks, queues, checkpoints."""
