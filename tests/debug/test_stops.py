"""Stops: what is alive, what is not and why, replacing values, going on."""

import os
import signal
import sys
import threading

import numpy as np
import pytest
from random_programs import Program as RandomProgram

import flowscope as fs
from flowscope.debug.statistics import BINS, SIDE, picture, statistics

pytestmark = pytest.mark.usefixtures("graph")
PATIENCE_S = 10
FEED = np.array([0.5, 1.0, 2.0], "f")


@pytest.fixture(params=["compiled", "op", "tokens"])
def sess(request):
    with fs.Session(config=fs.ConfigProto(mode=request.param)) as made:
        yield made


def at_stop(sess, fetch, feed, look):
    """Runs a step; returns its value and what `look` returns at each stop."""
    seen = []
    sess.debug.on_stop(lambda stop: seen.append(look(stop)))
    value = sess.run(fetch, feed)
    sess.debug.on_stop(None)
    sess.debug.clear()
    return value, seen


def chain():
    x = fs.placeholder(fs.float32, [3], name="x")
    a = fs.sin(x, name="a")
    b = fs.exp(a, name="b")
    c = fs.multiply(b, 3.0, name="c")
    return x, a, b, c, fs.reduce_sum(c, name="y")


def test_what_is_alive_can_be_seen_and_of_others_why_not(sess):
    x, a, b, c, y = chain()
    unused = fs.tan(x, name="unused")
    sess.debug.break_after(b)

    def look(stop):
        found = stop.look(b)
        with pytest.raises(fs.errors.FailedPreconditionError, match="has no value here: gone"):
            stop.value(a)
        return (stop.value(b), found, [stop.look(t) for t in (a, c, y, unused)], stop.values())

    value, [(array, found, others, values)] = at_stop(sess, y, {x: FEED}, look)
    np.testing.assert_array_equal(array, sess.run(b, {x: FEED}))
    assert (found.state, found.statistics.shape, found.statistics.dtype) == (
        "alive",
        (3,),
        "float32",
    )
    assert found.statistics.finite == 3 and found.statistics.max == array.max()
    assert [o.state for o in others] == ["gone", "not yet", "not yet", "absent"]
    assert others[0].why == 'gone since "b"' and "no fetch" in others[3].why
    assert values["b:0"] == found.statistics and "a:0" not in values
    assert value == sess.run(y, {x: FEED})


def test_values_in_loops_are_those_of_the_iteration(sess):
    x = fs.placeholder(fs.float64, [2], name="x")

    def body(i, v):
        return i + 1, fs.add(fs.sin(v, name="s"), x, name="next")

    y = fs.while_loop(lambda i, v: i < 4, body, [0, x], name="loop")[1]
    sess.debug.break_after("loop/body/s")
    feed = np.array([0.1, 2.0])
    _, seen = at_stop(sess, y, {x: feed}, lambda s: (s.value("loop/body/s"), s.look("x").state))
    v, want = feed, []
    for _ in range(4):
        want.append(np.sin(v))
        v = want[-1] + feed
    assert [s.tolist() for s, _ in seen] == [w.tolist() for w in want]
    assert {state for _, state in seen} == {"alive"}


def test_a_copy_is_the_viewers_own_and_a_part_can_be_taken(sess):
    x, _, b, _, y = chain()
    sess.debug.break_after(b)

    def look(stop):
        array = stop.value(b)
        array[:] = 7
        return stop.value(b, np.s_[1:]), stop.picture(b)

    value, [(part, drawn)] = at_stop(sess, y, {x: FEED}, look)
    assert part.shape == (2,) and (drawn.width, drawn.height) == (3, 1)
    sess.debug.clear()
    assert value == sess.run(y, {x: FEED})


def test_a_stop_is_over_when_the_step_goes_on(sess):
    x, _, b, _, y = chain()
    sess.debug.break_after(b)
    kept = at_stop(sess, y, {x: FEED}, lambda stop: stop)[1][0]
    assert not kept.is_there
    for ask in (kept.values, lambda: kept.value(b), lambda: kept.replace(b, FEED), kept.step_out):
        with pytest.raises(fs.errors.FailedPreconditionError, match="has gone on"):
            ask()
    assert sess.debug.stops == ()


def test_what_follows_a_replaced_value_is_what_a_feed_gives(sess):
    x, _, b, _, y = chain()
    other = np.array([9.0, -1.0, 0.25], "f")
    want = sess.run(y, {x: FEED, b: other})
    sess.debug.break_after(b)
    value, _ = at_stop(sess, y, {x: FEED}, lambda stop: stop.replace(b, other))
    assert value.tobytes() == want.tobytes()
    assert other.tolist() == [9.0, -1.0, 0.25]


def test_a_replaced_value_must_fit(sess):
    x, _, b, _, y = chain()
    plain = sess.run(y, {x: FEED})
    sess.debug.break_after(b)

    def look(stop):
        refused = fs.errors.InvalidArgumentError
        with pytest.raises(refused, match="expected an array of float32, got float64"):
            stop.replace(b, FEED.astype(float))
        with pytest.raises(refused, match=r"expected the shape \[3\], got \[2\]"):
            stop.replace(b, FEED[:2])
        with pytest.raises(fs.errors.FailedPreconditionError, match="no value here"):
            stop.replace("a", FEED)
        with pytest.raises(fs.errors.FailedPreconditionError, match="known before the step"):
            stop.replace("c/y", np.float32(1.0))

    assert at_stop(sess, y, {x: FEED}, look)[0] == plain


def test_a_value_that_others_share_is_not_replaced():
    x = fs.placeholder(fs.float32, [3], name="x")
    a, b = fs.sin(x, name="a"), fs.sin(x, name="b")
    same = fs.identity(a, name="same")
    y = a * 2.0 + b + same
    with fs.Session() as sess:
        plain = sess.run(y, {x: FEED})
        sess.debug.break_after(a)

        def look(stop):
            with pytest.raises(fs.errors.FailedPreconditionError, match='shares its value with "b'):
                stop.replace(a, FEED)
            with pytest.raises(fs.errors.FailedPreconditionError, match='the same as "a"'):
                stop.replace(b, FEED)
            return stop.look(b)

        value, [found] = at_stop(sess, y, {x: FEED}, look)
        np.testing.assert_array_equal(value, plain)
        assert found.state == "alive" and found.why == 'it is the same as "a"'


def test_what_hands_a_value_on_follows_it(sess):
    x = fs.placeholder(fs.float32, [3], name="x")
    a = fs.sin(x, name="a")
    y = fs.identity(a, name="same") * a
    want = sess.run(y, {x: FEED, a: FEED})
    sess.debug.break_after(a)
    value, _ = at_stop(sess, y, {x: FEED}, lambda stop: stop.replace(a, FEED))
    np.testing.assert_array_equal(value, want)


def test_a_variable_and_a_fed_array_are_not_what_is_replaced(sess):
    v = fs.Variable([1.0, 2.0], name="v")
    read = fs.identity(v, name="read")
    y = fs.multiply(read, 2.0, name="y")
    sess.run(fs.global_variables_initializer())
    sess.debug.break_before("y")
    array = np.array([5.0, 5.0], "f")
    found = next(t for t in (read, y.op.inputs[0]) if t is not None)

    def look(stop):
        try:
            stop.replace(found, array)
        except fs.errors.FailedPreconditionError as e:
            return str(e)
        return ""

    value, [refused] = at_stop(sess, y, {}, look)
    assert refused or value.tolist() == [10.0, 10.0]
    assert sess.run(v).tolist() == [1.0, 2.0]


def test_a_stop_leaves_no_reference():
    x = fs.placeholder(fs.float32, [1000], name="x")
    v = fs.Variable(np.zeros(1000, "f"), name="v")
    up = v.assign_add(fs.sin(x, name="a"))
    with fs.Session() as sess:
        sess.run(fs.global_variables_initializer())
        feed = np.ones(1000, "f")
        before = sys.getrefcount(feed)
        sess.debug.break_after("a")
        stops = at_stop(sess, up.op, {x: feed}, lambda s: (s.values(), s.value("a"), s)[2])[1]
        sess.debug.clear()
        state = sess.variable_state(v.handle)
        buffer = id(state.read())
        sess.run(up.op, {x: feed})
        assert id(state.read()) == buffer, "a stop holds a lease of the variable"
        assert len(stops) == 1 and sys.getrefcount(feed) == before


def test_statistics_of_any_array():
    found = statistics(np.array([1.0, np.nan, np.inf, -np.inf, 3.0], "f"))
    assert (found.finite, found.nan, found.inf, found.min, found.max) == (2, 1, 2, 1.0, 3.0)
    assert sum(found.histogram) == 2 and len(found.histogram) == BINS
    assert (found.histogram[0], found.histogram[-1], found.mean) == (1, 1, 2.0)
    huge = statistics(np.array([-1.7e308, 1.7e308]))
    assert sum(huge.histogram) == 2
    assert statistics(np.zeros((0, 3))).max is None
    assert statistics(np.array([True, False])).mean == 0.5
    assert statistics(b"abc").min is None and statistics(np.float32(2)).shape == ()
    assert statistics(np.full(4, np.nan)).nan == 4 and statistics(np.int8([3, 3])).min == 3.0
    drawn = picture(np.arange(200.0 * 300).reshape(2, 100, 300))
    assert (drawn.width, drawn.height, len(drawn.levels)) == (SIDE, SIDE, SIDE * SIDE)
    assert drawn.levels[0] == 0 and drawn.levels[-1] == 254
    assert picture(np.array([[np.nan]])).levels == b"\xff" and picture(b"a") is None


# -- moves --------------------------------------------------------------------------------------


def test_moves_from_a_stop(sess):
    def body(i, v):
        return i + 1, fs.add(fs.sin(v, name="s"), 1.0, name="next")

    x = fs.placeholder(fs.float64, [], name="x")
    y = fs.square(fs.while_loop(lambda i, v: i < 4, body, [0, x], name="loop")[1], name="y")
    plain = sess.run(y, {x: 0.5})
    sess.debug.break_before("loop/body/s", iteration=1)
    moves = ["step_op", "step_op", "step_iteration", "step_out", "resume"]
    seen = []

    def at(stop):
        seen.append((stop.op and stop.op.name, stop.iterations))
        getattr(stop, moves[len(seen) - 1])()

    sess.debug.on_stop(at)
    assert sess.run(y, {x: 0.5}) == plain
    assert seen[0] == ("loop/body/s", (1,))
    assert seen[1][1] in ((1,), (2,)) and seen[1][0] != "loop/body/s"
    assert seen[3][1] in ((2,), (3,))
    assert seen[4][1] == ()


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


def test_held_steps_of_two_threads_are_told_apart(sess):
    x, _, b, _, y = chain()
    plain = sess.run(y, {x: FEED})
    sess.debug.break_after(b)
    pairs = []
    for held in (1, 2):
        pairs.append(in_thread(lambda: sess.run(y, {x: FEED})))
        assert sess.gate.wait_until_held(PATIENCE_S, held)
    stops = sorted(sess.debug.stops, key=lambda s: s.step is None)
    assert [s.step for s in stops] == [1, None], "the other one is held before it starts"
    stops[0].step_op()
    with sess.gate._changed:
        sess.gate._changed.wait_for(lambda: sess.gate.state == "paused", PATIENCE_S)
    assert stops[1].is_there and not stops[0].is_there
    moved = next(s for s in sess.debug.stops if s.step == 1)
    assert moved.op is not stops[1].op or sess.config.mode == "tokens"
    sess.debug.clear()
    moved.resume()
    for thread, box in pairs:
        thread.join(PATIENCE_S)
        assert box["value"] == plain


def test_a_step_is_held_at_its_end(sess):
    x, a, _, _, y = chain()
    sess.debug.break_before(a)
    thread, box = in_thread(lambda: sess.run(y, {x: FEED}))
    stop = sess.debug.wait(PATIENCE_S)
    sess.debug.clear()
    stop.step_run()
    with sess.gate._changed:
        assert sess.gate._changed.wait_for(lambda: sess.gate.state == "paused", PATIENCE_S)
    (end,) = sess.debug.stops
    assert end.op is None and end.values() == {}
    end.resume()
    thread.join(PATIENCE_S)
    sess.debug.clear()
    assert box["value"] == sess.run(y, {x: FEED})


# -- what ends a stop ---------------------------------------------------------------------------


def held(sess, y, feed, **options):
    thread, box = in_thread(lambda: sess.run(y, feed, **options))
    stop = sess.debug.wait(PATIENCE_S)
    assert stop is not None
    return thread, box, stop


def test_a_stop_ends_with_a_deadline_a_close_or_a_stop(sess):
    x, a, _, _, y = chain()
    sess.debug.break_before(a)
    sess.plan(y, [x])
    limit = fs.RunOptions(timeout_in_ms=500)
    thread, box, stop = held(sess, y, {x: FEED}, options=limit)
    thread.join(PATIENCE_S)
    assert isinstance(box["error"], fs.errors.DeadlineExceededError)
    assert "paused" in str(box["error"]) and not stop.is_there
    sess.resume()
    thread, box, stop = held(sess, y, {x: FEED})
    stop.stop()
    thread.join(PATIENCE_S)
    assert isinstance(box["error"], fs.errors.CancelledError)
    sess.resume()
    thread, box, stop = held(sess, y, {x: FEED})
    sess.close()
    thread.join(PATIENCE_S)
    assert isinstance(box["error"], fs.errors.CancelledError) and "closed" in str(box["error"])


def test_an_error_in_the_function_that_is_told_ends_the_step(sess):
    x, a, _, _, y = chain()
    plain = sess.run(y, {x: FEED})
    sess.debug.break_before(a)

    def wrong(stop):
        raise KeyError("mine")

    sess.debug.on_stop(wrong)
    with pytest.raises((KeyError, fs.errors.OpError), match="mine"):
        sess.run(y, {x: FEED})
    sess.debug.clear()
    sess.debug.on_stop(None)
    assert sess.run(y, {x: FEED}) == plain


@pytest.mark.filterwarnings("ignore::flowscope.errors.ControlFlowWarning")
@pytest.mark.parametrize("seed", [pytest.param(i, marks=pytest.mark.slow) for i in range(40)])
def test_random_programs_are_held_anywhere_with_the_same_results(seed):
    program = RandomProgram(seed)
    feeds = {t: a for (t, _), a in zip(program.feeds, program.fed[0], strict=True)}
    found = []
    with program.graph.as_default():
        fs.set_random_seed(4)
        for mode in ("compiled", "compiled", "op", "tokens"):
            with fs.Session(graph=program.graph, config=fs.ConfigProto(mode=mode)) as sess:
                sess.run(program.initializer)
                if found:
                    names = [op.name for op in program.graph.get_operations()]
                    for name in names[seed % 5 :: 5]:
                        sess.debug.break_before(name)
                        sess.debug.break_after(name)
                    count = [0]

                    def at(stop, count=count):
                        count[0] += 1
                        stop.values()
                        if count[0] % 3 == 0:
                            stop.step_op()

                    sess.debug.on_stop(at)
                try:
                    fed = {t: np.copy(a)[()] for t, a in feeds.items()}
                    values = [bits(v) for v in sess.run(program.fetches, fed)]
                except fs.errors.OpError:
                    found.append("failed")
                    continue
                sess.debug.clear()
                sess.debug.on_stop(None)
                found.append([values, [bits(v) for v in sess.run(program.variables)]])
    assert all(f == found[0] for f in found)


def bits(v):
    return np.asarray(v).dtype, np.asarray(v).shape, np.asarray(v).tobytes()


def test_in_a_loop_its_results_are_still_to_come_and_another_branch_has_none(sess):
    x = fs.placeholder(fs.float64, [2], name="x")

    def body(i, v):
        taken = fs.cond(i < 5, lambda: fs.sin(v, name="yes"), lambda: fs.cos(v, name="no"))
        return i + 1, fs.add(taken, x, name="next")

    y = fs.while_loop(lambda i, v: i < 3, body, [0, x], name="loop")[1]
    z = fs.exp(y, name="z")
    (yes,), (no,) = [
        [op.outputs[0] for op in sess.graph.get_operations() if op.type == kind]
        for kind in ("Sin", "Cos")
    ]
    sess.debug.break_before("loop/body/next", iteration=1)
    sess.debug.break_after(yes, iteration=1)

    def look(stop):
        return [stop.look(t).state for t in (y, z, no, "loop/body/next")]

    _, seen = at_stop(sess, z, {x: np.array([0.1, 2.0])}, look)
    for states in seen:
        assert states[:2] == ["not yet", "not yet"] and states[2] in ("absent", "gone")


def test_constants_are_not_listed_among_what_is_alive_but_can_be_looked_at(sess):
    x = fs.placeholder(fs.float32, [3], name="x")
    c = fs.constant([1.0, 2.0, 3.0], name="c")
    y = fs.reduce_sum(fs.multiply(fs.add(x, c, name="b"), c), name="y")
    sess.debug.break_after("b")
    _, [(names, look)] = at_stop(sess, y, {x: FEED}, lambda s: ([*s.values()], s.look(c)))
    assert "c:0" not in names and "b:0" in names
    assert look.state == "alive" and look.statistics.max == 3


def test_an_interrupt_ends_a_step_that_is_held_at_a_breakpoint(sess):
    x, a, b, _, y = chain()
    sess.debug.break_after(b)

    def interrupt_when_held():
        if sess.debug.wait(PATIENCE_S):
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt_when_held)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        sess.run(y, {x: FEED})
    thread.join()
    assert not sess.debug.stops and sess.gate.state == "open"
    assert sess.run(a, {x: FEED}).shape == (3,)
