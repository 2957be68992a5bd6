"""State that outlives steps: variables, queues, locks. Sessions enter by `containers`."""
