"""Sessions in tokens mode: effects, random numbers, errors, waiting, memory."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading

import numpy as np
import pytest
from late_steps import late
from stopping import StopAt

import flowscope as fs
from flowscope.runtime.waits.gate import Gate

pytestmark = pytest.mark.usefixtures("graph")


def tokens(**options):
    return fs.Session(config=fs.ConfigProto(mode="tokens", **options))


def test_effects_on_one_variable_keep_program_order_through_branches_and_loops():
    v = fs.Variable(1.0)
    p = fs.placeholder(fs.bool, [])
    v.assign(v * 10.0)

    def body(i):
        with fs.control_dependencies([v.assign_add(1.0)]):
            return i + 1

    before = v.assign(2.0)
    branch = fs.cond(p, lambda: v.assign(v * 3.0), lambda: v.assign_sub(1.0))
    loop = fs.while_loop(lambda i: i < 3, body, [0])
    after = v.assign(v * 2.0)
    for mode in ("compiled", "op", "tokens"):
        with fs.Session(config=fs.ConfigProto(mode=mode)) as s:
            s.run(v.initializer)
            for taken, expected in ((True, 18.0), (False, 8.0)):
                got = s.run([before, branch, loop, after], {p: taken})
                assert got[0] == 2.0
                assert got[3] == expected == s.run(v), mode


def test_a_body_of_effects_runs_in_each_iteration_and_in_no_further_one():
    v = fs.Variable(0)
    step = fs.placeholder(fs.int32, [])

    def body(i):
        v.assign_add(step)
        return i + 1

    loop = fs.while_loop(lambda i: i < 4, body, [0])
    with tokens() as s:
        s.run(v.initializer)
        assert s.run(loop, {step: 5}) == 4
        assert s.run(v) == 20


def test_a_condition_does_not_run_once_the_count_is_reached():
    v = fs.Variable(0)

    def cond(i):
        with fs.control_dependencies([v.assign_add(1)]):
            return fs.identity(i) >= 0

    loop = fs.while_loop(cond, lambda i: i + 1, [0], maximum_iterations=3)
    for mode in ("compiled", "tokens"):
        with fs.Session(config=fs.ConfigProto(mode=mode)) as s:
            s.run(v.initializer)
            assert s.run(loop) == 3
            assert s.run(v) == 3


def test_what_waits_for_a_loop_waits_for_its_effects():
    v = fs.Variable(0)

    def body(i):
        v.assign_add(1)
        return i + 1

    loop = fs.while_loop(lambda i: i < 4, body, [0])
    other = fs.Variable(0)
    with fs.control_dependencies([loop.op]):
        done = other.assign(7)
    with tokens() as s:
        s.run(fs.global_variables_initializer())
        assert s.run(done) == 7
        assert s.run(v) == 4


def test_random_numbers_are_the_same_in_all_modes():
    fs.set_random_seed(3)

    def body(i, x):
        noise = fs.while_loop(
            lambda j, y: j < 2, lambda j, y: (j + 1, y + fs.random_normal([])), [0, 0.0]
        )[1]
        return i + 1, x + noise + fs.cond(i > 0, lambda: fs.random_uniform([]), lambda: 0.0)

    _, x = fs.while_loop(lambda i, x: i < 3, body, [0, fs.random_normal([])])
    found = []
    for mode in ("compiled", "op", "tokens"):
        with fs.Session(config=fs.ConfigProto(mode=mode)) as s:
            found.append((s.run(x), s.run(x)))
    assert found[0] == found[1] == found[2]
    assert found[0][0] != found[0][1]


def test_an_error_in_an_iteration_names_the_operation_and_the_users_line():
    x = fs.constant([1.0, 2.0])
    _, y = fs.while_loop(
        lambda i, y: i < 5, lambda i, y: (i + 1, y + fs.gather(x, i)), [0, 0.0], name="loop"
    )
    with tokens() as s, pytest.raises(fs.errors.InvalidArgumentError) as e:
        s.run(y)
    assert e.value.op.name.startswith("loop/body")
    assert "test_tokens.py" in e.value.origin
    assert "fs.gather" in e.value.source
    assert e.value.iterations == (("loop", 2),)


def test_fetched_values_are_the_users_own():
    c = fs.constant([1.0, 2.0])
    x = fs.placeholder(fs.float32, [2])
    array = np.float32([3, 4])
    with tokens() as s:
        for fetched in s.run([c, x, fs.identity(x)], {x: array}):
            fetched[:] = 0
        np.testing.assert_array_equal(s.run(c), [1, 2])
    np.testing.assert_array_equal(array, [3, 4])


@pytest.mark.slow
def test_a_step_is_stopped_between_two_operations_and_no_update_is_cut():
    w, b = fs.Variable(1.0), fs.Variable(2.0)
    train = fs.train.MomentumOptimizer(0.001, 0.9)

    def body(i):
        with fs.control_dependencies([train.minimize(fs.square(w * b - 1.0))]):
            return i + 1

    loop = fs.while_loop(lambda i: i < 2, body, [0])
    once = train.minimize(fs.square(w * b - 1.0))
    state = [w, b, train.get_slot(w, "momentum"), train.get_slot(b, "momentum")]
    start = fs.global_variables_initializer()
    with tokens() as s:
        s.run(start)
        whole = [s.run(state)]
        for _ in range(2):
            s.run(once)
            whole.append(s.run(state))
    seen = set()
    for point in itertools.count():
        with tokens() as s:
            s.run(start)
            s.gate = StopAt(point)
            try:
                s.run(loop)
                break
            except fs.errors.CancelledError:
                s.gate = Gate()
                seen.add(whole.index(s.run(state)))
    assert seen == {0, 1, 2}


#: Prints the most bytes that steps of 100 and of 3 000 iterations take.
PEAKS = """
import gc, tracemalloc
import flowscope as fs

n = fs.placeholder(fs.int32, [])
x = fs.while_loop(lambda i, x: i < n, lambda i, x: (i + 1, x * 0.5 + 1.0), [0, fs.zeros([64])])
with fs.Session(config=fs.ConfigProto(mode="tokens")) as s:
    s.run(x, {n: 3})
    for iterations in (100, 3000):
        gc.collect()
        tracemalloc.start()
        s.run(x, {n: iterations})
        print(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
"""


@pytest.mark.slow
def test_a_long_loop_takes_constant_memory(source_env):
    """In a process of its own: where a Dask scheduler runs in this one, its memory counts too."""
    command = [sys.executable, "-c", PEAKS]
    ran = subprocess.run(command, env=source_env, capture_output=True, text=True, check=True)
    few, many = map(int, ran.stdout.split())
    assert many < few + 20_000


def test_lowered_programs_can_be_read():
    n = fs.placeholder(fs.int32, [], name="n")
    i = fs.while_loop(lambda i: i < n, lambda i: i + 1, [0], name="loop")
    with tokens() as s:
        plan = s.plan(i, [n])
        assert "loop/Loop/Merge = Merge(loop/Loop/Enter, loop/Loop/NextIteration)" in plan.text(
            "lower"
        )
        assert "Switch" not in plan.text(), "the program itself stays as it was"
        assert plan.text("code") == "tokens mode: no code"
    with fs.Session() as s:
        assert s.plan(i, [n]).text("lower").startswith("nothing is lowered")


class Watching(Gate):
    """Asks for one operation at a time, and notes where the step is."""

    __slots__ = ("places",)

    def __init__(self):
        super().__init__()
        self.raised = True
        self.places = []

    def hold(self, point, here=None):
        if here is not None:
            where = here.where()
            self.places.append((where.node.name, [loop.iteration for loop in where.loops]))
        return True


def test_a_step_can_be_held_before_each_operation_and_tells_where_it_is():
    i = fs.while_loop(lambda i: i < 2, lambda i: i + 1, [0], name="loop")
    with tokens() as s:
        s.gate = Watching()
        assert s.run(i) == 2
        expected = [
            ("loop/cond/Less", [0]),
            ("loop/body/add", [0]),
            ("loop/cond/Less", [1]),
            ("loop/body/add", [1]),
            ("loop/cond/Less", [2]),
        ]
        assert s.gate.places == expected
        moves = s.gate.moves.since(0)
        ran = [(m.node.name, [n for _, n in m.loops]) for m in moves if not m.is_back]
        assert ran == [*expected, ("loop/body/add", [2])]
        assert [m.is_dead for m in moves if not m.is_back] == [False] * 5 + [True]
        assert [(m.loops[0][1], m.variable) for m in moves if m.is_back] == [(1, 0), (2, 0)]


# -- waiting ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_other_work_goes_on_while_an_operation_waits(mode):
    q = fs.FIFOQueue(10, [fs.int32], shapes=[[]])
    asked = fs.Variable(0)

    def body(i, total):
        asked.assign_add(1)
        return i + 1, total + q.dequeue()

    loop = fs.while_loop(lambda i, t: i < 20, body, [0, 0], parallel_iterations=8)
    x = fs.placeholder(fs.int32, [])
    enqueue = q.enqueue(x)
    with fs.Session(config=fs.ConfigProto(mode=mode)) as s:
        s.run(fs.global_variables_initializer())
        results = []
        thread = threading.Thread(target=lambda: results.append(s.run(loop)))
        thread.start()
        while s.run(asked) < 8:
            pass
        for k in range(20):
            s.run(enqueue, {x: k})
        thread.join()
        assert results == [(20, sum(range(20)))]


def test_a_deadline_tells_what_the_step_waits_for():
    q = fs.FIFOQueue(1, [fs.int32], shapes=[[]], name="orders")
    taken = q.dequeue(name="take")
    with tokens() as s:
        told = str(late(s, taken))
    assert 'waited for "take" (Dequeue, for 0.' in told
    assert ' s, on FIFOQueue "orders" (0 of 1 elements, 1 dequeue waiting))' in told


def test_what_a_failed_step_waits_for_is_given_up():
    q = fs.FIFOQueue(1, [fs.int32], shapes=[[]])
    taken = q.dequeue()
    bad = fs.gather([1], fs.placeholder_with_default(7, []))
    x = fs.placeholder(fs.int32, [])
    with tokens() as s:
        with pytest.raises(fs.errors.InvalidArgumentError):
            s.run([taken, bad])
        s.run(q.enqueue(x), {x: 4})
        assert s.run(taken) == 4, "the dequeue of the failed step did not take it"


def test_an_error_in_a_region_names_the_operation_and_all_iterations():
    q = fs.FIFOQueue(9, [fs.int32], shapes=[[]])
    x = fs.constant([1.0, 2.0])

    def outer(i, y):
        _, y = fs.while_loop(
            lambda j, y: j < 9, lambda j, y: (j + 1, y + fs.gather(x, j)), [q.dequeue(), y]
        )
        return i + 1, y

    _, y = fs.while_loop(lambda i, y: i < 5, outer, [0, 0.0], name="outer")
    fill = q.enqueue_many([[9, 0]])
    with fs.Session() as s:
        s.run(fill)
        with pytest.raises(fs.errors.InvalidArgumentError, match="fs.gather") as e:
            s.run(y)
        assert [n for _, n in e.value.iterations] == [1, 2]
        assert e.value.iterations[0][0] == "outer"


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
@pytest.mark.parametrize("kind", ["cond", "while_loop"])
def test_who_waits_for_one_output_does_not_wait_for_the_others(mode, kind):
    """The other output needs what is put into the queue behind the first one."""
    with fs.Graph().as_default():
        q = fs.FIFOQueue(10, [fs.float32], shapes=[()])
        x = fs.placeholder_with_default(1.0, [])
        if kind == "cond":
            a, b = fs.cond(x > 0, lambda: (x + 1.0, q.dequeue()), lambda: (x, x))
        else:
            start = [fs.constant(0), x, x]
            _, a, b = fs.while_loop(
                lambda i, a, b: i < 1, lambda i, a, b: (i + 1, a + 1.0, q.dequeue()), start
            )
        with fs.control_dependencies([a]):
            put = q.enqueue(7.0)
        with fs.Session(config=fs.ConfigProto(mode=mode, operation_timeout_in_ms=60_000)) as s:
            assert s.run([a, b, put]) == [2.0, 7.0, None]
