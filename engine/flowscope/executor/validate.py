"""What holds for a machine between any two events; tests check it after each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from flowscope.errors import InternalError
from flowscope.executor.frames import Frame
from flowscope.executor.static import UnitKind

if TYPE_CHECKING:
    from flowscope.executor.machine import Machine


def frames_of(machine: Machine) -> Iterator[Frame]:
    """Yields the frames that are on their way, the outer ones first."""
    stack = [machine.root]
    while stack:
        frame = stack.pop()
        yield frame
        for it in frame.iterations:
            stack.extend((it.children or {}).values())


def check(machine: Machine) -> None:
    """Raises InternalError if something does not hold."""
    running = machine.story.running.values() if machine.story is not None else ()
    at_work = Counter(id(it) for _, it in (*machine.ready, *running))
    frames = list(frames_of(machine))
    alive = {id(it) for f in frames for it in f.iterations}
    _expect(set(at_work) <= alive, "something runs in an iteration that has ended")
    for frame in frames:
        _check_frame(frame)
        for it in frame.iterations:
            if machine.story is not None:
                _expect(
                    it.outstanding == at_work[id(it)],
                    f"{it} counts {it.outstanding} outstanding, there are {at_work[id(it)]}",
                )
            _check_tokens(frame, it.pending, str(it))
    if machine.is_finished:
        _expect(not alive and not machine.ready, "the step is finished, but something is left")


def _check_frame(frame: Frame) -> None:
    its = frame.iterations
    window = frame.static.window
    _expect(len(its) <= window, f"{frame} has {len(its)} iterations, its window is {window}")
    numbers = [it.number for it in its]
    expected = list(range(frame.started - len(its), frame.started))
    _expect(numbers == expected, f"{frame} has the iterations {numbers}, not {expected}")
    _expect(frame.missing >= 0, f"{frame} got more Enters than it has")
    if frame.parked:
        _expect(len(its) == window, f"{frame} parks tokens, though its window is not full")
    if its and frame.parent is not None:
        oldest = its[0]
        is_busy = oldest.outstanding or oldest.children or frame.missing
        _expect(bool(is_busy), f"{oldest} has nothing to do, but is there")
    for it in its:
        for child in (it.children or {}).values():
            _expect(bool(child.iterations), f"{child} has ended, but is there")
    for unit, _, _ in frame.constants:
        _expect(unit.child is frame.static, f"{unit} is no Enter of {frame}")


def _check_tokens(frame: Frame, pending: list[int], where: str) -> None:
    for unit in frame.static.units:
        left = pending[unit.at]
        least = -2 if unit.kind is UnitKind.MERGE else 0
        _expect(left >= least, f"{unit} of {where} got more tokens than it takes")


def _expect(holds: bool, message: str) -> None:
    if not holds:
        raise InternalError(message)


__all__ = ["check", "frames_of"]
