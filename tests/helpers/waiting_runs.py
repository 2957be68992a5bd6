"""Runs programs that wait on devices and workers; what comes out is what one device gives."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from op_oracle import same_bits
from waiting_programs import STEPS, WaitingProgram

import flowscope as fs

MODES = ("compiled", "op", "tokens")
#: No step of such a program takes as long; in milliseconds.
DEADLINE_MS = 30_000
_TASKS = [f"/job:worker/task:{i}" for i in range(3)]
_CPUS = [f"/cpu:{i}" for i in range(3)]
#: By name: the places of a program, whether they are a cluster's, and how sessions are made.
SITES: dict[str, tuple[list[str], bool, dict[str, Any]]] = {
    "one device": (["/cpu:0"] * 3, False, {}),
    "two devices": ([*_CPUS[:2], "/cpu:0"], False, {"device_count": {"CPU": 2}}),
    "three devices": (_CPUS, False, {"device_count": {"CPU": 3}}),
    "two threads": (
        [*_CPUS[:2], "/cpu:0"],
        False,
        {"device_count": {"CPU": 2}, "split_partitions": "always"},
    ),
    "three threads": (_CPUS, False, {"device_count": {"CPU": 3}, "split_partitions": "always"}),
    "a worker and the client": ([_TASKS[0], "/job:client/task:0", _TASKS[0]], True, {}),
    "two workers": ([*_TASKS[:2], "/job:client/task:0"], True, {}),
    "three workers": (_TASKS, True, {}),
}
#: The reference.
ONE = ("one device", "op")
OTHERS = [pair for pair in itertools.product(SITES, MODES) if pair != ONE]


def outcome(seed: int, site: str, mode: Any, cluster: Any) -> list[Any]:
    """The results of a program's steps, its variables, and how full its queues are.

    An error ends it: what had been written by then depends on the order in which things run.
    """
    places, is_on_cluster, options = SITES[site]
    program = WaitingProgram(seed, places)
    config = fs.ConfigProto(mode=mode, operation_timeout_in_ms=DEADLINE_MS, **options)
    found: list[Any] = []
    with fs.Session(cluster if is_on_cluster else "", program.graph, config) as session:
        session.run([program.initializer])
        session.run(program.fill)
        try:
            for step in range(STEPS):
                found.append(_arrays(_step(session, program, step)))
                found.append(_arrays(session.run([program.variables, program.sizes])))
        except fs.errors.OpError as error:
            found.append(error)
    return found


def _step(session: Any, program: WaitingProgram, step: int) -> Any:
    fed = dict(zip(program.feeds, program.fed(step), strict=True))
    if program.partial is None or step % 2 == 0:
        return session.run(program.fetches, fed)
    first, second = program.feeds
    handle = session.partial_run_setup(program.fetches, program.feeds)
    values = session.partial_run(handle, program.partial[0], {first: fed[first]})
    return [values, session.partial_run(handle, program.partial[1], {second: fed[second]})]


def _arrays(values: Any) -> list[Any]:
    """Returns all arrays of nested lists, in their order."""
    if isinstance(values, list):
        return [array for value in values for array in _arrays(value)]
    return [] if values is None else [np.copy(values)]


def same(a: Any, b: Any) -> bool:
    """Whether two outcomes are equal to the last bit; of errors, whether their classes are."""
    if isinstance(a, Exception) or isinstance(b, Exception):
        return type(a) is type(b)
    return len(a) == len(b) and all(map(same_bits, a, b))


def check(seed: int, cluster: Any, pairs: list[tuple[str, str]]) -> int:
    """Asserts that a program does the same on other sites and in other modes as on one device.

    Args:
        seed: What the program follows from.
        cluster: A cluster of three workers.
        pairs: Pairs of a site and a mode.

    Returns:
        How many steps there were.
    """
    want = outcome(seed, *ONE, cluster)
    assert not isinstance(want[-1], fs.errors.DeadlineExceededError), f"seed {seed}: {want[-1]}"
    for site, mode in pairs:
        got = outcome(seed, site, mode, cluster)
        for number, (a, b) in enumerate(itertools.zip_longest(want, got)):
            what = f"step {number // 2}" if number % 2 == 0 else f"state after step {number // 2}"
            assert a is not None and b is not None and same(a, b), (
                f"seed {seed}, {what}: {' in mode '.join(ONE)} gave {shown(a)}, "
                f"{site} in mode {mode} gave {shown(b)}"
            )
    return len(want)


def chosen(seed: int, count: int) -> list[tuple[str, str]]:
    """Returns some sites and modes for a program; over all seeds each comes as often."""
    return [OTHERS[(seed * count + i * 7) % len(OTHERS)] for i in range(count)]


def shown(outcome: Any) -> str:
    if outcome is None or isinstance(outcome, Exception):
        return f"{type(outcome).__name__}: {outcome}"[:1500]
    return str([x.tolist() for x in outcome])[:700]
