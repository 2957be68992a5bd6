"""Loops over bytes run as Python until they are compiled."""

from __future__ import annotations

import threading

import pytest

from flowscope.ops.kernels import native_loops
from flowscope.ops.kernels.native_loops import LoopTiers


def twice(n: int) -> int:
    """Adds up."""
    total = 0
    i = 0
    while i < n:
        total += 2
        i += 1
    return total


@pytest.fixture
def jobs(monkeypatch):
    """What was to be done in the background, in place of a thread."""
    begun: list = []

    def begin(job):
        begun.append(job)
        return job

    monkeypatch.setattr(native_loops, "background", [begin])
    return begun


def is_compiled(made) -> bool:
    return made.given is not memoryview


def test_a_call_with_little_to_do_does_not_wait(jobs) -> None:
    pytest.importorskip("llvmlite")
    tiers = LoopTiers((twice,), {})
    for _ in range(3):
        made = tiers.get(10)
        assert not is_compiled(made) and made.functions[0](7) == 14
    (job,) = jobs  # it is begun once
    job()
    made = tiers.get(10)
    assert is_compiled(made) and made.functions[0](7) == 14


def test_a_call_with_much_to_do_waits(jobs) -> None:
    pytest.importorskip("llvmlite")
    tiers = LoopTiers((twice,), {})
    assert is_compiled(tiers.get(10**6)) and len(jobs) == 1


def test_where_a_wait_is_given_up_the_caller_compiles(monkeypatch) -> None:
    pytest.importorskip("llvmlite")
    monkeypatch.setattr(native_loops, "background", [lambda job: lambda: None])
    tiers = LoopTiers((twice,), {})
    assert not is_compiled(tiers.get(10))
    assert is_compiled(tiers.get(10**6))


def test_without_threads_many_small_calls_are_compiled(monkeypatch) -> None:
    pytest.importorskip("llvmlite")
    monkeypatch.setattr(native_loops, "background", [])
    tiers = LoopTiers((twice,), {})
    found = [is_compiled(tiers.get(native_loops._FEW // 10)) for _ in range(15)]
    assert not any(found[:10]) and all(found[10:])


def test_where_nothing_compiles_python_goes_on(jobs, monkeypatch) -> None:
    def none(_):
        raise ImportError

    monkeypatch.setattr(native_loops, "_compiled", none)
    tiers = LoopTiers((twice,), {"twice": lambda n: -1})
    assert tiers.get(10**6).functions[0](7) == -1
    assert len(jobs) == 1 and tiers.get(10**6) is tiers.get(1)


def test_the_process_compiles_on_a_thread_that_ends() -> None:
    pytest.importorskip("llvmlite")
    import flowscope.runtime.devices.cpu  # noqa: F401 - it has the thread

    tiers = LoopTiers((twice,), {})
    tiers.get(10)
    assert is_compiled(tiers.get(10**6))
    for thread in [t for t in threading.enumerate() if t.name == "flowscope-loops"]:
        thread.join(30)
        assert not thread.is_alive()
