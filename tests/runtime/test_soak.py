"""Soak: after thousands of steps that fail, are stopped or run out of time nothing has piled up.

`FLOWSCOPE_SOAK=20 pytest tests/runtime/test_soak.py` runs twenty times as many.
"""

from __future__ import annotations

import contextlib
import gc
import linecache
import os
import random
import threading
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import flowscope as fs
from flowscope.graph.current_step import steps_of_threads
from flowscope.runtime.threads import interrupt

pytestmark = pytest.mark.slow

TIMES = float(os.environ.get("FLOWSCOPE_SOAK", "1"))
PATIENCE_S = 600.0 * max(TIMES, 1.0)
THREADS = 4


def handles():
    """Returns how many files are open, None where the system does not tell."""
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.exists() else None


def sources():
    return sum(name.startswith("<flowscope plan") for name in linecache.cache)


class Program:
    """Steps of all kinds on one session."""

    def __init__(self, session):
        self.session = session
        self.x = fs.placeholder(fs.float32, None)
        self.v = fs.Variable(np.zeros(4, np.float32), name="v")
        self.w = fs.Variable(np.zeros(4, np.float32), name="w")
        self.queue = fs.FIFOQueue(8, [fs.float32], shapes=[()])
        self.both = fs.group(self.v.assign_add(self.x), self.w.assign_add(self.x))
        self.bad = fs.gather(self.v, fs.constant([1, 7]) + fs.cast(self.x[0], fs.int32))
        self.take, self.put = self.queue.dequeue(), self.queue.enqueue(1.0)
        self.count = fs.while_loop(lambda i: i < 60, lambda i: i + 1, [fs.constant(0)])
        self.function = fs.py_func(lambda x: x, [self.x], fs.float32)
        session.run(fs.global_variables_initializer())

    def step(self, draw):
        """Runs a step; an error of the kinds that are asked for is no failure."""
        run, good = self.session.run, {self.x: np.ones(4, np.float32)}
        quick = fs.RunOptions(timeout_in_ms=draw.choice([1, 2]))
        kinds = {
            "good": lambda: run(self.both, good),
            "shape": lambda: run(self.both, {self.x: np.ones(3, np.float32)}),
            "index": lambda: run(self.bad, good),
            "late": lambda: run(self.take, options=quick),
            "late function": lambda: run(self.function, good, options=quick),
            "put": lambda: run(self.put, options=quick),
            "loop": lambda: run(self.count),
            "stop": self.session.stop,
        }
        weights = [8, 6, 6, 1, 1, 1, 4, 2]
        with contextlib.suppress(fs.errors.OpError):
            draw.choices(list(kinds.values()), weights)[0]()


def work(program, steps, seed, errors):
    draw = random.Random(seed)
    try:
        for _ in range(steps):
            program.step(draw)
    except BaseException as e:
        errors.append(e)


def rounds(program, steps):
    """Runs steps from several threads and waits for them."""
    errors = []
    threads = [
        threading.Thread(target=work, args=(program, steps // THREADS, seed, errors))
        for seed in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert not any(t.is_alive() for t in threads)
    assert not errors
    program.session.gate.clear_stop()


@pytest.mark.memory
@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_steps_that_do_not_end_well_leave_nothing_behind(graph, mode):
    with fs.Session(graph=graph, config=fs.ConfigProto(mode=mode)) as session:
        program = Program(session)
        rounds(program, 400)  # whatever is made once is there now
        gc.collect()
        before = threading.active_count(), handles(), sources()
        tracemalloc.start()
        rounds(program, 200)
        gc.collect()
        bytes_before, _ = tracemalloc.get_traced_memory()
        rounds(program, int((3200 if mode == "compiled" else 1000) * TIMES))
        gc.collect()
        bytes_after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert bytes_after - bytes_before < 300_000
        after = threading.active_count(), handles(), sources()
        # A few threads wait for functions of later steps.
        assert after[0] - before[0] <= 8
        assert after[1:] == before[1:]
        gate = session.gate
        assert not (gate.inside or gate.raised or gate._predicates)
        assert not interrupt._around
        (queue,) = session.queues.values()
        assert queue.waiting == (0, 0)
        assert not steps_of_threads
        states = session._container.variables().values()
        assert not any(s._lock.locked() or s._keeper for s in states)
        v, w = session.run([program.v, program.w])
        assert (v == w).all()


@pytest.mark.memory
def test_cells_that_run_again_leave_nothing_behind(graph):
    def cell(k):
        with graph.cell("model"):
            v = fs.Variable(np.zeros(3, np.float32), name="v")
            y = fs.reduce_sum(v * fs.constant(float(k), name="x"), name="y")
            loop = fs.while_loop(lambda i: i < 3 + k % 5, lambda i: i + 1, [fs.constant(0)])
        return v, [y, loop]

    def again(first, count):
        for k in range(first, first + count):
            v, fetches = cell(k)
            if not session.variable_state(v.handle).is_initialized:
                session.run(v.initializer)
            session.run(fetches)

    with fs.Session(graph=graph) as session:
        again(0, 40)
        gc.collect()
        before = sources(), len(graph.get_operations()), session.plan_cache.size
        tracemalloc.start()
        again(40, 20)
        gc.collect()
        bytes_before, _ = tracemalloc.get_traced_memory()
        again(60, int(100 * TIMES))
        gc.collect()
        bytes_after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        after = sources(), len(graph.get_operations()), session.plan_cache.size
        assert after == before
        assert bytes_after - bytes_before < 300_000
