"""Which errors of Dask's say that a process has gone, or the connection with it.

Whoever connects waits for what goes, as for any other loss; what is refused is told at once.
"""

from __future__ import annotations

import asyncio

#: What Dask says where it uses a connection, or a loop, that its own end has closed.
_CLOSED = ("ConnectionPool is closed", "IOLoop is closed", "Event loop is closed")


def is_loss(error: BaseException) -> bool:
    """True if an error of Dask's says that a process, or the connection with it, has gone.

    `CommClosedError`, `RPCClosed` and timeouts are kinds of OSError.
    """
    if isinstance(error, OSError | asyncio.CancelledError):
        return True
    return isinstance(error, RuntimeError) and str(error) in _CLOSED


__all__ = ["is_loss"]
