"""Queues, barriers, staging areas and locks. Users enter by `queues`, runners by `queue_ops`."""
