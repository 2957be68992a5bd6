"""What has gone between this process and its peers, counted: for views, tests and curves."""

from __future__ import annotations

from flowscope.graph.lazy import frozen


@frozen
class PeerCounters:
    """What has gone there and back since both have connected.

    Attributes:
        runs: Runs that this end has started.
        sent, received: Frames of steps: values, what is announced, and what is told of reading.
        sent_bytes, received_bytes: Over all connections.
        writes: How often the kernel was given something to send.
        unwritten_bytes: What waits in this process, for the peer reads nothing.
        offered: Large values that the peer has not asked for.
        asked: Large values on their way here.
        silent_s: Seconds since the last control message of the peer.
        is_direct: Whether sockets lead to the peer; else its bytes go by another process' part.
    """

    runs: int
    sent: int
    received: int
    sent_bytes: int
    received_bytes: int
    writes: int
    unwritten_bytes: int
    offered: int
    asked: int
    silent_s: float
    is_direct: bool


#: By the peers' names.
Counters = dict[str, PeerCounters]


__all__ = ["Counters", "PeerCounters"]
