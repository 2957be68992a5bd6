"""The channel of a partition that is traced: it notes how many bytes each value has that is sent.

Shapes tell that of some values before a step; here it is read off the values themselves. A mailbox
is wrapped for what sends into it; the transport behind it knows nothing of that.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from flowscope.runtime.waits.rendezvous import DEAD, Channel, Mailbox, Pending, Tag, TaggedMailbox

#: Of each key the sizes of so many values are kept: the newest.
MOST_SIZES = 1 << 16


class SizingChannel:
    """The channel of a step, to one partition that is traced.

    Args:
        channel: The step's channel.
        sizes: Where the bytes of what is sent are noted, by keys, in the order of the sends.
    """

    def __init__(self, channel: Channel, sizes: dict[str, deque[int]]) -> None:
        self._channel = channel
        self._sizes = sizes

    def mailbox(self, key: str) -> Mailbox:
        """Returns where the values of a key are sent and received in order."""
        found: Any = _SizedBox(self._channel.mailbox(key), self._sizes_of(key))
        return found  # type: ignore[no-any-return]

    def tagged(self, key: str) -> TaggedMailbox:
        """Returns where the values of a key are sent and received by iterations."""
        found: Any = _SizedTaggedBox(self._channel.tagged(key), self._sizes_of(key))
        return found  # type: ignore[no-any-return]

    def abort(self, error: BaseException) -> None:
        """Fails all that waits and all that comes later."""
        self._channel.abort(error)

    def pending(self) -> list[Pending]:
        """Returns those who wait, the longest wait first."""
        return self._channel.pending()

    def _sizes_of(self, key: str) -> deque[int]:
        found = self._sizes.get(key)
        return self._sizes.setdefault(key, deque(maxlen=MOST_SIZES)) if found is None else found


class _SizedBox:
    """A mailbox whose sends are noted; all else is the mailbox' own."""

    def __init__(self, box: Mailbox, sizes: deque[int]) -> None:
        self._box, self._sizes = box, sizes
        self.values, self.receive = box.values, box.receive
        self.is_ahead, self.throttle = box.is_ahead, box.throttle

    def send(self, value: Any) -> None:
        """Hands over a value; never waits."""
        self._sizes.append(nbytes_of(value))
        self._box.send(value)

    def send_with_next(self, value: Any) -> None:
        """Hands over a value that may travel with the next one."""
        self._sizes.append(nbytes_of(value))
        self._box.send_with_next(value)


class _SizedTaggedBox:
    """A mailbox of values by iterations whose sends are noted."""

    def __init__(self, box: TaggedMailbox, sizes: deque[int]) -> None:
        self._box, self._sizes = box, sizes
        self.receive, self.forget = box.receive, box.forget
        self.unread, self.when_below = box.unread, box.when_below

    def send(self, value: Any, tag: Tag) -> None:
        """Hands over the value of an iteration; never waits."""
        self._sizes.append(nbytes_of(value))
        self._box.send(value, tag)


def nbytes_of(value: Any) -> int:
    """Returns how many bytes a value has that is sent; of strings, those of their characters."""
    if value is DEAD:
        return 0
    if isinstance(value, bytes | str):
        return len(value)
    if getattr(getattr(value, "dtype", None), "hasobject", False):
        return sum(map(len, value.ravel().tolist()))
    return int(getattr(value, "nbytes", 0))


__all__ = ["MOST_SIZES", "SizingChannel", "nbytes_of"]
