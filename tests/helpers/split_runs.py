"""Runs programs on two devices on two threads, in any order of deliveries."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from direct_runs import in_step
from several_devices import plan_on

import flowscope as fs
from flowscope.plan.partition.compiled_partitions import CompiledPartition
from flowscope.runtime.step.split import SplitFunction
from flowscope.runtime.waits.rendezvous import Channel, Mailbox, Rendezvous

RUN = (7, 11, 3)


def parts(
    sess: fs.Session, fetches: Any, feeds: Sequence[Any], mode: str = "compiled", seed: int = 0
) -> tuple[Any, tuple[CompiledPartition, ...]]:
    """Returns a plan whose nodes are on two devices by chance, and its partitions, compiled."""
    plan = plan_on(sess, fetches, feeds, seed, count=2)
    return plan, plan.parts


def run(
    sess: fs.Session,
    plan: Any,
    function: Callable[..., Any],
    feeds: Mapping[Any, Any],
) -> Any:
    """Runs a function of a plan as one step of a session."""
    states = tuple(sess.planner.state(h.op) for h in plan.handles)
    arrays = tuple([sess.planner.converter(t)(v) for t, v in feeds.items()])
    with in_step(sess, plan):
        return function(sess.gate, RUN, arrays, states)


def split(
    sess: fs.Session, made: Sequence[CompiledPartition], channel: Callable[[], Channel] = Rendezvous
) -> SplitFunction:
    """Returns the function of partitions on several threads."""
    return SplitFunction(made, channel=channel)


class Shuffled(Rendezvous):
    """Delivers what was sent late, in an order across keys that a seed chooses."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._random = random.Random(seed)
        self.held: dict[str, list[Any]] = {}
        self._guard = threading.RLock()

    def _made(self, key: str) -> Mailbox:
        return _ShuffledMailbox(key, self)

    def hold(self, box: _ShuffledMailbox, value: Any) -> None:
        """Takes a value that is to be delivered some time; delivers some others."""
        with self._guard:
            self.held.setdefault(box.key, []).append((box, value))
        for _ in range(self._random.randrange(3)):
            self.deliver()
        while box.is_awaited and self.deliver():
            pass

    def deliver(self) -> bool:
        """Delivers the oldest value of one key; returns whether there was one."""
        with self._guard:
            keys = sorted(k for k, values in self.held.items() if values)
            if keys:
                box, value = self.held[self._random.choice(keys)].pop(0)
                box.arrive(value)
            return bool(keys)


class _ShuffledMailbox(Mailbox):
    __slots__ = ("_channel",)

    def __init__(self, key: str, channel: Shuffled) -> None:
        super().__init__(key)
        self._channel = channel

    def send(self, value: Any) -> None:
        self._channel.hold(self, value)

    @property
    def is_awaited(self) -> bool:
        return bool(self._reader) and not self.values

    def is_ahead(self, most: int, nbytes: int = 0) -> bool:
        held = len(self._channel.held.get(self.key, ()))
        return super().is_ahead(max(0, most - held), nbytes)

    def arrive(self, value: Any) -> None:
        super().send(value)

    def _has_come(self) -> bool:
        while not super()._has_come() and self._channel.deliver():
            pass
        return super()._has_come()

    def _is_read(self) -> bool:
        while self._channel.deliver():
            pass
        return super()._is_read()


def session_call(
    sess: fs.Session,
    fetches: Any,
    feeds: Sequence[Any],
    mode: str = "compiled",
    seed: int = 0,
    channel: Callable[[], Channel] = Rendezvous,
) -> SplitFunction:
    """Has a session run some fetches on two threads from now on."""
    _, made = parts(sess, fetches, feeds, mode, seed)
    call: Any = sess._call(fetches, list(feeds), sess.config.mode)
    call.function = split(sess, made, channel)
    return call.function
