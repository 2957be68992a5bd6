"""Replay and time travel: a step computed again, and the values that tensors had."""

import numpy as np
import pytest
from random_programs import Program as RandomProgram, copied, facts, scribble

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")


@pytest.fixture(params=["compiled", "op", "tokens"])
def sess(request):
    with fs.Session(config=fs.ConfigProto(mode=request.param)) as made:
        yield made


def trained():
    """A loop with random numbers whose parameters are trained."""
    x = fs.placeholder(fs.float32, [None, 3], name="x")
    w = fs.Variable(np.full((3, 3), 0.1, "f"), name="w")

    def body(i, v):
        noise = fs.random_uniform([3], seed=3, name="noise")
        return i + 1, fs.add(fs.sin(fs.matmul(v, w), name="s"), noise, name="n")

    y = fs.while_loop(lambda i, v: i < 5, body, [0, x], name="loop")[1]
    loss = fs.reduce_sum(y, name="loss")
    return x, w, loss, fs.train.GradientDescentOptimizer(0.1).minimize(loss)


def rows(count=4):
    return np.random.default_rng(count).random((count, 3)).astype("f")


def test_a_step_of_the_past_is_computed_again_bit_equal(sess):
    x, w, loss, train = trained()
    sess.run(fs.global_variables_initializer())
    history = sess.debug.record()
    fed = rows()
    wanted = []
    for _ in range(4):
        before = sess.run(w)
        wanted.append((before, sess.run([loss, train], {x: fed})[0]))
        fed *= 1.5  # what was fed is the user's to change
    after = sess.run(w)
    steps = history.steps[1::2]
    for number, (before, value) in zip(steps, wanted, strict=False):
        with sess.debug.replay(number) as past:
            assert past.run() == {"loss:0": value}
            assert past.value(loss) == value and past.step == number
            np.testing.assert_array_equal(past.variables["w"], before)
    np.testing.assert_array_equal(sess.run(w), after)


def test_values_of_all_iterations_are_those_that_were_recorded(sess):
    x, _, loss, train = trained()
    sess.run(fs.global_variables_initializer())
    history = sess.debug.record(["loop/body/s", x, loss])
    for _ in range(3):
        value, _ = sess.run([loss, train], {x: rows()})
    kept = history.values("loop/body/s")
    assert [(k.step, k.iterations) for k in kept] == [
        (s, (i,)) for s in (1, 2, 3) for i in range(5)
    ]
    assert history.values(loss)[-1].value == value and history.values(loss)[-1].iterations == ()
    np.testing.assert_array_equal(history.values(x)[0].value, rows())
    assert kept[0].statistics.shape == (4, 3)
    for number in history.steps:
        with sess.debug.replay(number) as past:
            found = past.values("loop/body/s")
            own = {k.iterations: k.value for k in kept if k.step == number}
            assert found.keys() == own.keys()
            for path, array in own.items():
                np.testing.assert_array_equal(found[path], array)
                np.testing.assert_array_equal(past.value("loop/body/s", iteration=path), array)
    history.remove()
    sess.run(loss, {x: rows()})
    assert len(history.values(loss)) == 3 and sess.debug.history is None


def test_a_variable_of_a_loop_has_its_values_too(sess):
    x = fs.placeholder(fs.float64, [], name="x")
    taken = []

    def body(i, v):
        taken.append(v)
        return i + 1, v * 2

    y = fs.while_loop(lambda i, v: i < 3, body, [0, x], name="loop")[1]
    history = sess.debug.record(taken[0])
    sess.run(y, {x: 1.5})
    assert [k.value for k in history.values(taken[0])] == [1.5, 3.0, 6.0]
    with sess.debug.replay() as past:
        assert past.values(taken[0]) == {(0,): 1.5, (1,): 3.0, (2,): 6.0}
        assert past.value(taken[0]) == 6.0 and past.value(x) == 1.5
        with pytest.raises(fs.errors.FailedPreconditionError, match="no value in iteration 7"):
            past.value(taken[0], iteration=7)
        with pytest.raises(fs.errors.InvalidArgumentError, match="more than 8 bytes"):
            past.values(taken[0], max_bytes=8)


def test_stepping_back_is_a_replay_up_to_the_operation_before(sess):
    x, _, loss, train = trained()
    sess.run(fs.global_variables_initializer())
    sess.debug.record()
    sess.debug.break_before("loop/body/n", iteration=2)
    seen = []

    def at(stop):
        place = (stop.op.name, stop.iterations)
        s = stop.value("loop/body/s")
        back = [stop.step_back()]
        while len(back) < 8:
            back.append(back[-1].step_back())
        first = back[0]
        assert first.is_past and not first.is_there and not stop.is_past
        newest = sess.debug.stops[-1]
        assert newest.id == back[-1].id and newest.is_there and newest.iterations == (1,)
        newest.step_op()
        seen.append((place, s, [(b.op.name, b.iterations) for b in back]))

    sess.debug.on_stop(at)
    value = sess.run([loss, train], {x: rows()})[0]
    ((place, s, back),) = seen
    assert place[1] == (2,) and len(set(back)) == len(back)
    assert ("loop/body/s", (2,)) in back and ("loop/cond/Less", (2,)) in back
    assert ("loop/body/n", (1,)) in back
    with sess.debug.replay() as past:
        there = past.before("loop/body/n", iteration=2)
        np.testing.assert_array_equal(there.value("loop/body/s"), s)
        assert there.iterations == (2,) and "replay of step 1" in repr(there)
        there.step_op()
        assert past.run() == {"loss:0": value}
        with pytest.raises(fs.errors.NotFoundError, match="in iteration 9"):
            past.before("loop/body/n", iteration=9)
        first = past.before("loop/body/s", iteration=0)
        while "cond" not in first.op.name:
            first = first.step_back()
        with pytest.raises(fs.errors.NotFoundError, match="nothing runs before"):
            first.step_back().step_back().step_back()
    assert not sess.debug.stops


def test_a_replay_has_breakpoints_of_its_own_while_the_session_runs_on(sess):
    x, _, loss, train = trained()
    sess.run(fs.global_variables_initializer())
    sess.debug.record()
    value, _ = sess.run([loss, train], {x: rows()})
    past, seen = sess.debug.replay(), []

    def at(stop):
        seen.append((stop.iterations, stop.step, stop.is_past, sess.run(loss, {x: rows()})))

    past.debug.break_after("loop/body/s", when="max > -9", iteration=3)
    past.debug.on_stop(at)
    assert past.run() == {"loss:0": value}
    ((*place, other),) = seen
    assert place == [(3,), 1, True] and other != value and sess.steps == 3
    with pytest.raises(fs.errors.FailedPreconditionError, match="record in its session"):
        past.debug.record()


def test_a_step_that_failed_is_computed_again_and_fails_again(sess):
    x = fs.placeholder(fs.float32, [2], name="x")
    y = fs.log(x, name="y")
    checked = fs.check_numerics(y, "no number", name="checked")
    sess.debug.record()
    with pytest.raises(fs.errors.InvalidArgumentError, match="no number"):
        sess.run(checked, {x: [1, -1]})
    with sess.debug.replay() as past:
        assert np.isnan(past.before(checked).value(y)).any()
        with pytest.raises(fs.errors.InvalidArgumentError, match="no number"):
            past.run()


def test_what_does_not_follow_from_its_inputs_is_refused_with_the_reason(sess):
    queue = fs.FIFOQueue(3, [fs.float32], [()], name="queue")
    taken, given = queue.dequeue(), queue.enqueue(1.0)
    called = fs.py_func(lambda: np.float32(2), [], fs.float32, name="called")
    told = fs.timestamp(name="told")
    with pytest.raises(fs.errors.FailedPreconditionError, match="nothing is recorded"):
        sess.debug.replay()
    sess.debug.record()
    for number, (fetch, why) in enumerate(
        [
            (given, "a queue, a lock or a table"),
            (taken, "a queue, a lock or a table"),
            (called, "a Python function"),
            (told, "reads the clock"),
        ]
    ):
        sess.run(fetch)
        with pytest.raises(fs.errors.FailedPreconditionError, match=f"step {number} .*{why}"):
            sess.debug.replay(number)
    with pytest.raises(fs.errors.FailedPreconditionError, match="step 99 .*was not recorded"):
        sess.debug.replay(99)


def test_steps_beside_each_other_that_write_a_variable_are_refused(sess):
    v = fs.Variable(1.0, name="v")
    x = fs.placeholder(fs.float32, [], name="x")
    y, add, apart = fs.multiply(x, v, name="y"), v.assign_add(1.0), fs.multiply(x, 2.0)
    sess.run(v.initializer)
    history = sess.debug.record()
    sess.debug.break_before(y, when=lambda _: sess.run([add, apart], {x: 1.0}) is None)
    sess.run(y, {x: 2.0})
    with pytest.raises(fs.errors.FailedPreconditionError, match="another step has written"):
        sess.debug.replay(1)
    assert history.steps == (2,)  # what wrote it follows from its own inputs
    sess.debug.clear()
    sess.debug.break_before(y, when=lambda _: sess.run(apart, {x: 1.0}) is None)
    value = sess.run(y, {x: 2.0})
    with sess.debug.replay(3) as past:
        assert past.run() == {"y:0": value}


def test_what_is_kept_stays_within_its_bound(sess):
    x = fs.placeholder(fs.float32, [1000], name="x")
    v = fs.Variable(np.zeros(1000, "f"), name="v")
    y = v.assign_add(x, name="y")
    sess.run(v.initializer)
    history = sess.debug.record(y, max_bytes=50_000)
    for _ in range(20):
        sess.run(y, {x: np.ones(1000)})
        assert history.nbytes <= 50_000
    assert history.steps[-1] == 20 and 1 <= len(history.steps) < 10
    assert history.values(y)[-1].value[0] == 20
    with sess.debug.replay() as past:
        assert past.run()["y:0"][0] == 20
    tight = sess.debug.record(max_bytes=4000)
    sess.run(y, {x: np.ones(1000)})
    with pytest.raises(fs.errors.FailedPreconditionError, match="8000 bytes, more than may"):
        sess.debug.replay(21)
    assert tight.nbytes == 0
    for wrong in (0, -1, 2.5, True):
        with pytest.raises(fs.errors.InvalidArgumentError, match="bytes above 0"):
            sess.debug.record(max_bytes=wrong)


def test_a_recorded_step_is_traced_too_and_one_that_was_traced_is_recorded(sess):
    x, _, loss, train = trained()
    sess.run(fs.global_variables_initializer())
    history = sess.debug.record()
    with fs.profile() as p:
        value, _ = sess.run([loss, train], {x: rows()})
    assert history.steps == (1,) and p.recording.steps[-1].number == 1
    with sess.debug.replay() as past:
        assert past.run() == {"loss:0": value}


def test_a_graph_that_has_changed_does_not_change_the_past(sess):
    x, _, loss, _ = trained()
    sess.run(fs.global_variables_initializer())
    history = sess.debug.record()
    value = sess.run(loss, {x: rows()})
    for _ in range(3):
        more = fs.multiply(loss, 2.0)
        sess.run(more, {x: rows()})
    with sess.debug.replay(history.steps[0]) as past:
        assert past.run() == {"loss:0": value}


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
@pytest.mark.parametrize("seed", range(40))
@pytest.mark.filterwarnings("ignore::flowscope.errors.ControlFlowWarning")
def test_steps_of_random_programs_are_computed_again_bit_equal(seed, mode):
    program = RandomProgram(seed)
    tensors = [t for t in program.fetches if isinstance(t, fs.Tensor)]
    config = fs.ConfigProto(mode=mode)
    with program.graph.as_default(), fs.Session(graph=program.graph, config=config) as sess:
        sess.run(program.initializer)
        history = sess.debug.record()
        wanted = []
        for fed in program.fed:
            feeds = {t: copied(a) for (t, _), a in zip(program.feeds, fed, strict=True)}
            try:
                values = sess.run([tensors, program.fetches], feeds)[0]
                wanted.append({t.name: bits(v) for t, v in zip(tensors, values, strict=True)})
            except fs.errors.OpError as e:
                wanted.append(facts(e))
            scribble([*feeds.values()])
        assert len(history.steps) == len(wanted)
        for want, number in zip(wanted, history.steps, strict=True):
            assert replayed(sess, number) == want or (mode == "tokens" and isinstance(want, tuple))


def replayed(sess, number):
    with sess.debug.replay(number) as past:
        try:
            return {name: bits(v) for name, v in past.run().items()}
        except fs.errors.OpError as e:
            return facts(e)


def bits(value):
    if isinstance(value, list | tuple):
        return [bits(v) for v in value]
    return np.asarray(value).dtype, np.shape(value), np.asarray(value).tobytes()
