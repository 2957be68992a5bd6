"""Queues that threads fill. Users enter by `fs.train`, monitored sessions by `queue_runner`."""
