"""Counting flowscope's own threads: those of Dask, say, come and go beside a test."""

from __future__ import annotations

import threading


def own_threads() -> int:
    """Returns how many threads of this process run code of flowscope's."""
    targets = [getattr(thread, "_target", None) for thread in threading.enumerate()]
    return sum(getattr(t, "__module__", "").startswith("flowscope.") for t in targets if t)
