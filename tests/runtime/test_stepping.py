"""Stepping: by operation and by iteration, in slow motion and back, with the same results."""

import math
import threading

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import flowscope as fs
from flowscope.plan.codegen import function as code
from flowscope.runtime.waits.gate import Gate
from flowscope.runtime.waits.predicates import Predicate

#: Longest wait for another thread; only a broken program waits that long.
PATIENCE_S = 30


class Script(Gate):
    """Takes a step over and gives it back at its safepoints as a list of choices says."""

    __slots__ = ("choices", "count", "places")

    def __init__(self, choices):
        super().__init__()
        self.raised = True
        self.choices = choices
        self.count = 0
        self.places = []

    def hold(self, point, here=None):
        if here is not None:
            self.places.append(here.where())
        self.is_by_op = self.choices[self.count % len(self.choices)]
        self.count += 1
        return self.is_by_op


def nest(x, w):
    """A loop in a loop with a branch, random numbers, and what a gradient keeps."""

    def inner(j, y):
        y = fs.cond(y < 0.5, lambda: y + 0.3 * w, lambda: fs.sin(y) * w)
        return j + 1, y + fs.random_uniform([], seed=3, dtype=fs.float64) * 0.1

    def outer(i, y):
        _, y = fs.while_loop(lambda j, y: j < i, inner, [0, y])
        return i + 1, y * 0.9

    return fs.while_loop(lambda i, y: i < 5, outer, [0, x], maximum_iterations=4)


@pytest.fixture
def step(graph):
    """Runs the nest with its gradient under a gate; returns the values' bits."""
    x, w = fs.placeholder(fs.float64, []), fs.placeholder(fs.float64, [])
    i, y = nest(x, w)
    fetches = [i, y, *fs.gradients(y, [x, w])]

    def run(gate=None, mode="compiled"):
        with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
            fs.set_random_seed(4)
            if gate is not None:
                sess.gate = gate
            return [v.tobytes() for v in sess.run(fetches, {x: 0.2, w: 0.7})]

    return run


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=40), st.sampled_from([0.0, 1.0]))
def test_however_one_steps_the_results_are_the_same(choices, stretch_s):
    with fs.Graph().as_default(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(code, "STRETCH_S", stretch_s)
        x, w = fs.placeholder(fs.float64, []), fs.placeholder(fs.float64, [])
        i, y = nest(x, w)
        fetches = [i, y, *fs.gradients(y, [x, w])]
        fs.set_random_seed(4)
        bits = []
        for gate in (None, Script(choices)):
            with fs.Session() as sess:
                sess.gate = gate or sess.gate
                bits.append([v.tobytes() for v in sess.run(fetches, {x: 0.2, w: 0.7})])
        assert bits[0] == bits[1]


def test_op_by_op_from_the_start_is_what_op_mode_sees_of_the_simplified_program(step):
    plain = step()
    gate = Script([True])
    assert step(gate) == plain == step(mode="op")
    inner = [w for w in gate.places if len(w.loops) == 2 and w.node is None]
    outer = {(w.loops[0].iteration, w.loops[1].iteration) for w in inner}
    assert {(1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (3, 3)} <= outer
    assert {(w.mode, w.is_stepped) for w in gate.places} == {("compiled", True)}
    assert gate.places[0].node is not None and gate.places[0].loops == ()
    assert all(w.loops[0].limit == 4 for w in inner)


def test_code_tells_loops_iterations_and_what_is_kept(step):
    gate = Script([False])
    assert step(gate) == step()
    ends = [w.loops for w in gate.places if w.node is None]
    forward = [loops for loops in ends if loops[0].node.name == "while/Loop"]
    nested = [(a.iteration, b.iteration) for a, b in (x for x in forward if len(x) == 2)]
    assert nested == [(1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (3, 3)]
    assert [x[0].iteration for x in forward if len(x) == 1] == [1, 2, 3, 4]
    assert any(loop.kept and loop.kept[0] is not None for loops in forward for loop in loops)


def in_thread(work):
    box = {}

    def run():
        try:
            box["value"] = work()
        except BaseException as e:
            box["error"] = e

    thread = threading.Thread(target=run)
    thread.start()
    return thread, box


def place(sess):
    """Where the one step that is held stands."""
    with sess.gate._changed:
        seen, (me,) = sess.gate.report()
        return seen[me]


class Stepped:
    """A session with a long loop that runs in another thread, and is held."""

    def __init__(self, mode):
        self.n = fs.placeholder(fs.int64, [], name="n")
        start = [fs.constant(0, fs.int64), 1.0]
        self.loop = fs.while_loop(
            lambda i, t: i < self.n, lambda i, t: (i + 1, fs.sin(t) + 1.0), start, name="loop"
        )
        self.sess = fs.Session(config=fs.ConfigProto(mode=mode))
        self.sess.run(self.loop, {self.n: 1})
        self.count = 100_000 if mode == "compiled" else 2_000
        self.sess.pause()
        self.thread, self.box = in_thread(lambda: self.sess.run(self.loop, {self.n: self.count}))
        self.wait()

    def wait(self):
        assert self.sess.gate.wait_until_held(PATIENCE_S)

    def move(self, how):
        """Makes a move and waits until it is done."""
        gate = self.sess.gate
        getattr(self.sess, how)()
        with gate._changed:
            done = gate._changed.wait_for(lambda: gate.state == "paused", PATIENCE_S)
        assert done
        return place(self.sess)

    def end(self):
        self.sess.resume()
        self.thread.join(PATIENCE_S)
        value = self.box["value"]
        assert [v.tobytes() for v in value] == [
            v.tobytes() for v in self.sess.run(self.loop, {self.n: self.count})
        ]
        self.sess.close()


@pytest.fixture(params=["compiled", "op"])
def stepped(graph, request):
    made = Stepped(request.param)
    yield made
    made.sess.close()
    made.thread.join(PATIENCE_S)


def test_step_op_runs_one_operation_and_step_iteration_one_iteration(stepped):
    first = stepped.move("step_iteration")
    assert first.node is None and first.loops[0].iteration == 1
    names = [stepped.move("step_op").node.name for _ in range(5)]
    around = ["loop/body/add", "loop/body/Sin", "loop/body/add_1", "loop/cond/Less"]
    i = around.index(names[0])
    assert names == [around[(i + k) % 4] for k in range(5)]
    again = stepped.move("step_iteration")
    assert again.node is None and again.loops[0].iteration == 3
    assert stepped.move("step_iteration").loops[0].iteration == 4
    assert stepped.move("step_op").loops[0].iteration == 4
    stepped.end()


def test_tokens_are_stepped_by_operation_and_by_iteration(graph):
    made = Stepped("tokens")
    try:
        first = made.move("step_iteration")
        assert first.mode == "tokens" and first.loops[0].iteration == 1
        names = {made.move("step_op").node.name for _ in range(4)}
        assert names <= {"loop/cond/Less", "loop/body/add", "loop/body/Sin", "loop/body/add_1"}
        assert len(names) >= 3
        before = place(made.sess).loops[0].iteration
        assert made.move("step_iteration").loops[0].iteration == before + 1
        told = made.sess.gate.moves.count
        made.move("step_op")
        moves = made.sess.gate.moves.since(told)
        assert [m.node.name.partition("/")[0] for m in moves if not m.is_back] == ["loop"]
        made.end()
    finally:
        made.sess.close()
        made.thread.join(PATIENCE_S)


def test_moves_that_come_quickly_are_all_made(stepped):
    first = stepped.move("step_iteration").loops[0].iteration
    gate = stepped.sess.gate
    for _ in range(3):
        stepped.sess.step_iteration()
    with gate._changed:
        assert gate._changed.wait_for(lambda: gate.state == "paused", PATIENCE_S)
    assert place(stepped.sess).loops[0].iteration == first + 3
    stepped.end()


def test_what_ran_op_by_op_is_told_in_order(stepped):
    stepped.move("step_iteration")
    told = stepped.sess.gate.moves.count
    for _ in range(4):
        stepped.move("step_op")
    moves = stepped.sess.gate.moves.since(told)
    ran = [(m.node.name, m.loops[0][1]) for m in moves if not m.is_back]
    assert len(ran) in (3, 4), "op mode has a pause between two iterations"
    body = [f"loop/{name}" for name in ("cond/Less", "body/add", "body/Sin", "body/add_1")]
    assert ran == [(name, 1) for name in body[: len(ran)]]
    stepped.end()


def test_a_step_that_was_stepped_can_be_stopped(stepped):
    stepped.move("step_iteration")
    stepped.move("step_op")
    stepped.sess.stop()
    stepped.thread.join(PATIENCE_S)
    assert isinstance(stepped.box["error"], fs.errors.CancelledError)


def test_stepping_out_of_a_step_holds_it_at_its_end(graph):
    x = fs.placeholder(fs.float32, [])
    y = fs.exp(fs.negative(x))
    with fs.Session() as sess:
        want = sess.run(y, {x: 1.0})
        sess.step_op()
        thread, box = in_thread(lambda: sess.run(y, {x: 1.0}))
        gate, names = sess.gate, []
        for _ in range(2):
            assert gate.wait_until_held(PATIENCE_S)
            names.append(place(sess).node.name)
            sess.step_op()
            with gate._changed:
                assert gate._changed.wait_for(lambda: gate.state == "paused", PATIENCE_S)
        assert names == ["Neg", "Exp"]
        assert gate.report()[0] == {} and thread.is_alive()
        sess.resume()
        thread.join(PATIENCE_S)
        assert box["value"] == want


def test_slow_motion_waits_before_each_operation_and_ends_at_once(stepped):
    stepped.move("step_iteration")
    sess = stepped.sess
    sess.pace(1e6)
    sess.resume()
    gate = sess.gate

    def is_slow():
        seen, held = gate.report()
        return held and all(w.node is not None for w in seen.values())

    with gate._changed:
        assert gate._changed.wait_for(is_slow, PATIENCE_S)
    before = place(sess).node.name
    assert before in ("loop/cond/Less", "loop/body/add")
    assert gate.state == "open"
    sess.pause()
    stepped.wait()
    assert place(sess).node.name == before
    sess.pace(0)
    stepped.end()


@pytest.mark.parametrize("seconds", [-1.0, math.inf, math.nan])
def test_a_pace_is_a_number_of_seconds(sess, seconds):
    with pytest.raises(fs.errors.InvalidArgumentError, match="expected seconds"):
        sess.pace(seconds)


def test_a_look_costs_one_safepoint(stepped):
    gate = stepped.sess.gate
    gate.look()
    assert not gate.is_looking, "a step that is held has noted where it is"
    stepped.move("step_iteration")
    stepped.sess.resume()
    gate.look()
    with gate._changed:
        found = gate._changed.wait_for(lambda: not gate.is_looking, 0.0) or gate.raised
    assert found
    stepped.thread.join(PATIENCE_S)
    gate.look()
    assert not gate.raised and gate.report()[0] == {}


def test_an_error_in_a_step_that_was_taken_over_names_the_operation(graph):
    x = fs.placeholder(fs.int32, [])
    i = fs.while_loop(lambda i: i < 9, lambda i: i + 1 + 0 * fs.floordiv(6, 3 - i), [x])
    for choices in ([True], [True, False], [False, True]):
        with fs.Session() as sess:
            sess.gate = Script(choices)
            with pytest.raises(fs.errors.InvalidArgumentError) as e:
                sess.run(i, {x: 0})
        assert "while/body/floordiv" in str(e.value), choices


def test_an_update_group_is_one_move(graph, monkeypatch):
    monkeypatch.setattr(code, "STRETCH_S", 0.0)
    w = fs.Variable(np.ones((3, 3), np.float32))
    b = fs.Variable(np.ones((3,), np.float32))
    loss = fs.reduce_sum(fs.square(fs.matmul(w, w) + b))
    train = fs.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
    with fs.Session() as sess:
        sess.run(fs.global_variables_initializer())
        before = sess.run([w, b])
        states = []

        class Reading(Script):
            def hold(self, point, here=None):
                if here is not None:
                    now = [sess.variable_state(v.handle).read() for v in (w, b)]
                    moved = [not np.array_equal(x, y) for x, y in zip(now, before)]
                    states.append(tuple(moved))
                return super().hold(point, here)

        sess.gate = Reading([True])
        sess.run(train)
    assert set(states) <= {(False, False), (True, True)} and (False, False) in states


def test_a_step_is_held_where_a_predicate_is_met(sess):
    start = fs.constant(0, fs.int64)
    loop = fs.while_loop(lambda i: i < 10**9, lambda i: fs.add(i, 1, name="next"), [start])
    at_add = Predicate(
        lambda here: here.is_op and here.where().node.name.endswith("next"), is_by_op=True
    )
    sess.pause()
    thread = threading.Thread(target=lambda: _stopped(sess, loop))
    thread.start()
    assert sess.gate.wait_until_held(PATIENCE_S)
    found = []
    for _ in range(3):
        told = sess.gate.moves.count
        sess.gate.run_until(at_add)
        with sess.gate._changed:
            assert sess.gate._changed.wait_for(
                lambda told=told: sess.gate.moves.count > told and sess.gate.state == "paused",
                PATIENCE_S,
            )
        (step,) = sess.gate.inside
        assert step.state == "held"
        found.append((step.where.node.name, step.where.loops[-1].iteration))
    assert [n.rpartition("/")[2] for n, _ in found] == ["next"] * 3
    assert [i for _, i in found] == [0, 1, 2]
    sess.stop()
    thread.join(PATIENCE_S)


def _stopped(sess, fetch):
    with pytest.raises(fs.errors.CancelledError):
        sess.run(fetch)


class Noting(Gate):
    """Keeps, for each safepoint that is come to, whether the step's place was worked out."""

    __slots__ = ("noted",)

    def __init__(self):
        super().__init__()
        self.noted = []

    def _note(self, step, here):
        before = step.where
        super()._note(step, here)
        self.noted.append(step.where is not before)


def test_a_step_works_out_where_it_is_only_where_it_stands(graph):
    i = fs.while_loop(lambda i: i < 50, lambda i: i + 1, [fs.constant(0)])
    with fs.Session() as sess:
        gate = sess.gate = Noting()
        sess.pause()
        thread, box = in_thread(lambda: sess.run(i))
        assert gate.wait_until_held(PATIENCE_S)
        for how in ("step_iteration", "step_op", "step_out"):
            del gate.noted[:]
            getattr(sess, how)()
            with gate._changed:
                assert gate._changed.wait_for(lambda: gate.state == "paused", PATIENCE_S)
            assert sum(gate.noted) == 1, how
            assert gate.noted[-1], how
        assert len(gate.noted) > 40
        sess.resume()
        thread.join(PATIENCE_S)
        assert box["value"] == 50
