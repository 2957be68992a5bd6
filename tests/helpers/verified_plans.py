"""Has the verifier look at every program that planning makes, behind each pass, and at partitions.

It also looks at the program that the pass was given: that one is shared, and stays as it was.
"""

from __future__ import annotations

import dataclasses
import functools
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

#: What makes programs of the graph, before there is an order: the passes of a plan come behind.
UNORDERED = ("prune", "inline", "join")
#: Larger programs are left alone: tests that make them measure how long planning takes.
MOST_NODES = 2000


def fingerprint(program: Any) -> Any:
    """A value that changes with a program: every field of every node, feeds, fetches, notes."""
    nodes = [
        (
            id(node),
            *[getattr(node, name) for name in type(node).__mro__[-2].__slots__ if name != "blocks"],
            *[(v.node, v.index, v.spec) for v in node.outputs],
            *[fingerprint(block) for block in node.blocks],
        )
        for node in program.nodes
    ]
    return nodes, program.feeds, program.fetches, program.targets, program.notes


class _Verified:
    """A program that was verified, and its fingerprint, which lives no longer than the program."""

    def __init__(self, program: Any, found: Any, is_ordered: bool) -> None:
        self.fingerprint, self.is_ordered = found, is_ordered
        here = weakref.ref(self)
        self.program = weakref.ref(program, lambda _: (one := here()) and one.drop())

    def drop(self) -> None:
        self.fingerprint = None


class _Last(threading.local):
    """What this thread has verified last: the next pass mostly starts from that program."""

    verified: _Verified | None = None

    def of(self, program: Any) -> _Verified | None:
        last = self.verified
        return last if last is not None and last.program() is program else None


def verify_all_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts the verifier behind every pass; what a pass returns as it was is not verified again."""
    from flowscope.plan import pipeline
    from flowscope.plan.ir.program import Program
    from flowscope.plan.verify import verify

    last = _Last()

    def verified(run: Callable[..., Any], name: str, is_ordered: bool) -> Callable[..., Any]:
        @functools.wraps(run)
        def checked(*args: Any, **kwargs: Any) -> Any:
            given = args[0] if isinstance(args[0], Program) else None
            if given is not None and len(given.nodes) > MOST_NODES:
                return run(*args, **kwargs)
            known = None if given is None else last.of(given)
            before = known.fingerprint if known else given and fingerprint(given)
            program = run(*args, **kwargs)
            assert given is None or fingerprint(given) == before, f"{name} has changed its program"
            found = before
            if program is not given:
                found = fingerprint(program)
                assert found != before, f"{name} has copied a program and changed nothing"
            is_verified = program is given and known is not None and known.is_ordered >= is_ordered
            if len(program.nodes) <= MOST_NODES and not is_verified:
                verify(program, name, is_ordered)
                last.verified = _Verified(program, found, is_ordered)
            return program

        return checked

    for name in UNORDERED:
        monkeypatch.setattr(pipeline, name, verified(getattr(pipeline, name), name, False))
    rows = [
        dataclasses.replace(one, run=verified(one.run, one.name, True)) for one in pipeline.PASSES
    ]
    monkeypatch.setattr(pipeline, "PASSES", tuple(rows))
    _verify_all_waits(monkeypatch)


def _verify_all_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has the verifier look at partitions, and at what waits for what in all that is run."""
    from flowscope.cluster.client import step
    from flowscope.plan.executables import execution
    from flowscope.plan.partition import compiled_partitions
    from flowscope.plan.partition.partitions import Partition
    from flowscope.plan.verify import verify, verify_waits

    agreed, lower = compiled_partitions.reconcile_back_ends, execution.lower

    def verified(partitions: Any) -> Any:
        found = agreed(partitions)
        if sum(len(p.program.nodes) for p in found) <= MOST_NODES:
            for part in found:
                verify(part.program, f"the cut for {part.device}")
            verify_waits(found)
        return found

    def verified_alone(program: Any, *chosen: Any) -> Any:
        if len(program.nodes) <= MOST_NODES:
            verify_waits([Partition("", program, "regions" if chosen else "tokens", ())])
        return lower(program, *chosen)

    monkeypatch.setattr(compiled_partitions, "reconcile_back_ends", verified)
    monkeypatch.setattr(step, "reconcile_back_ends", verified)
    monkeypatch.setattr(execution, "lower", verified_alone)


__all__ = ["fingerprint", "verify_all_plans"]
