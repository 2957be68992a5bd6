"""A host's clients: who is silent is given up, as one is whose connection has ended.

Clients tell "ping" four times a second (`health`). One that is stopped, or whose network has gone
without a word, would hold its steps here for ever, and take elements of queues that nobody reads.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

from flowscope.runtime.waits.rendezvous import Waiter
from flowscope.runtime.waits.waiting import ENDS_S, join, wait_for

#: After so long a silence a client is given up.
CLIENT_SILENCE_S = 10.0
#: So often in that time it is looked.
_LOOKS = 8


class ClientWatch:
    """Looks after the clients of one host, on a thread.

    Args:
        name: The thread's name.
        silence_s: After so long a silence a client is given up.
        silent_s: Returns the clients, and for how many seconds nothing has come from each.
        give_up: Is told the name of a client that was silent for too long.
    """

    def __init__(
        self,
        name: str,
        silence_s: float,
        silent_s: Callable[[], Iterable[tuple[str, float]]],
        give_up: Callable[[str], None],
    ) -> None:
        self._silence_s = silence_s
        self._silent_s = silent_s
        self._give_up = give_up
        self._is_closed = False
        self._waiter = Waiter()
        self._thread = threading.Thread(target=self._watch, name=name, daemon=True)

    def start(self) -> None:
        """Begins."""
        self._thread.start()

    def close(self) -> None:
        """Ends the thread."""
        self._is_closed = True
        self._waiter.wake()
        join(self._thread, ENDS_S)

    def _watch(self) -> None:
        pause_s = self._silence_s / _LOOKS
        last = time.monotonic()
        while not wait_for(
            lambda: self._is_closed, self._waiter, what="for the next look",
            until=time.monotonic() + pause_s, owned_by=None, look_s=pause_s,
        ):  # fmt: skip
            now = time.monotonic()
            was_held_up, last = now - last > self._silence_s / 2, now
            if was_held_up:  # this process was: what clients have said is read first
                continue
            for client, silent_s in self._silent_s():
                if silent_s > self._silence_s:
                    self._give_up(client)


__all__ = ["CLIENT_SILENCE_S", "ClientWatch"]
