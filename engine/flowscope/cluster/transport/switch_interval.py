"""How long a Python thread that computes may hold up one that has been woken.

Python's default is 5 ms: that long would a value wait that has come while another thread computes.
The interval belongs to the interpreter, and so does the count of those who want a shorter one.
"""

from __future__ import annotations

import sys
import threading

#: So long a woken thread waits for others. A switch takes some microseconds.
_SHORT_S = 0.00005


class ShortSwitches:
    """Has threads change soon, from the first `begin` in this process until the last `end`."""

    _lock = threading.Lock()
    _count = 0
    _before = 0.0

    @classmethod
    def begin(cls) -> None:
        """Sets a short interval; what the user has set is put back in the end."""
        with cls._lock:
            cls._count += 1
            if cls._count == 1:
                cls._before = sys.getswitchinterval()
                sys.setswitchinterval(min(_SHORT_S, cls._before))

    @classmethod
    def end(cls) -> None:
        """Ends what one `begin` has begun."""
        with cls._lock:
            cls._count -= 1
            if not cls._count:
                sys.setswitchinterval(cls._before)


__all__ = ["ShortSwitches"]
