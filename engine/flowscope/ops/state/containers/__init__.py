"""Queues, barriers, accumulators, staging areas, locks. Users enter by `queues`."""
