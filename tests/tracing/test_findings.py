"""Why steps are slow: programs that have exactly one problem, and the same without it."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import flowscope as fs
from flowscope.tracing.findings import Findings, Pace, why_slow

pytestmark = pytest.mark.usefixtures("graph")
STEPS = 12


def busy(seconds):
    """Keeps Python at work."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def profiled(run, steps=STEPS, session=None):
    with fs.profile(session) as found:
        for k in range(steps):
            run(k)
    return found


def kinds(found):
    return {one.kind for one in found}


def only(found, kind):
    """Returns the finding of a kind, which is the largest."""
    assert found and found[0].kind == kind, repr(found)
    return found[0]


@pytest.fixture
def sess():
    with fs.Session() as made:
        yield made


def chain(names, size=160):
    """Returns a feed and a chain of products of matrices, of which all take the same."""
    x = fs.placeholder(fs.float32, [size, size], name="x")
    y = x
    for name in names:
        y = fs.multiply(fs.matmul(y, x), 1e-3, name=name)
    return x, y, np.ones((size, size), np.float32)


def test_one_operation_that_takes_most_is_named(sess):
    x, small, array = chain(["small"], 60)
    big = fs.placeholder(fs.float32, [500, 500], name="big")
    product = fs.matmul(big, big, name="product")
    fetches = [fs.reduce_sum(small), fs.reduce_sum(product)]
    feeds = {x: array, big: np.ones((500, 500), np.float32)}
    found = only(profiled(lambda k: sess.run(fetches, feeds)).why_slow(), "operation")
    assert found.names == ("product",) and found.operations == (product.op.id,)
    assert found.share > 0.5 and '"product" (MatMul) takes' in found.text
    assert "test_findings.py" not in found.text and "fs.matmul" in found.text


def test_of_many_alike_none_is_named(sess):
    x, y, array = chain([f"y{k}" for k in range(10)])
    found = profiled(lambda k: sess.run(y.op, {x: array}), 20).why_slow()
    assert "operation" not in kinds(found), repr(found)


def test_feeds_that_are_converted_are_told_and_arrays_are_not(sess):
    x = fs.placeholder(fs.float32, [None], name="x")
    y = fs.reduce_sum(x)
    numbers = [1.0] * 100_000
    found = only(profiled(lambda k: sess.run(y, {x: numbers})).why_slow(), "copies")
    assert "converting what is fed" in found.text and found.share > 0.5
    array = np.ones(4_000_000, np.float32)  # its sum takes longer than a pause of this thread
    # so many steps that one in which another process had the core does not decide
    found = profiled(lambda k: sess.run(y, {x: array}), 100).why_slow()
    assert "copies" not in kinds(found), repr(found)


@pytest.mark.parametrize("is_far", [True, False])
def test_transfers_between_devices_are_told_with_their_bytes(is_far):
    config = fs.ConfigProto(fake_devices={"GPU": 2})
    shape = [1024, 1024]
    with fs.device("/gpu:0"):
        x = fs.placeholder(fs.float32, shape, name="x")
        value = fs.negative(x, name="value")
    with fs.device("/gpu:1" if is_far else "/gpu:0"):
        end = fs.strided_slice(value, [0, 0], [1, 1])
    with fs.Session(config=config) as sess:
        array = np.ones(shape, np.float32)
        # so many steps that one in which another process had the core does not decide
        found = profiled(lambda k: sess.run(end.op, {x: array}), 100).why_slow()
    told = [one for one in found if "transfers between devices" in one.text]
    if not is_far:
        assert not [one for one in told if "value/to" in one.text]
        return
    assert told and told[0].share > 0.15, repr(found)
    assert "MB" in told[0].text and {"value", "x"} & set(told[0].names)


def test_python_between_steps_is_told_and_none_is_not(sess):
    x, y, array = chain(["a", "b"], 60)

    def run(k):
        sess.run(y, {x: array})
        busy(0.01)

    found = only(profiled(run).why_slow(), "python")
    assert found.share > 0.6 and found.seconds > 0.009 and "between two steps" in found.text
    x, y, array = chain([f"z{k}" for k in range(8)], 300)
    assert "python" not in kinds(profiled(lambda k: sess.run(y, {x: array})).why_slow())


def test_plans_that_are_made_again_and_again_are_told(sess):
    x, _, array = chain(["a"], 60)
    found = profiled(lambda k: sess.run(fs.reduce_sum(fs.square(x)), {x: array})).why_slow()
    [plans] = [one for one in found if one.kind == "plans"]
    assert f"{STEPS} plans were made for {STEPS} steps" in plans.text
    assert "Build the graph once" in plans.advice and plans.names
    train, test = fs.reduce_sum(fs.square(x)), fs.reduce_mean(fs.exp(x))
    alternating = profiled(lambda k: sess.run((train, test)[k % 2], {x: array})).why_slow()
    assert "plans" not in kinds(alternating), repr(alternating)


@pytest.mark.parametrize("is_slow", [True, False])
def test_waiting_for_a_queue_is_told_with_the_operation_that_waits(sess, is_slow):
    queue = fs.FIFOQueue(100, [fs.float32], [[]], name="queue")
    value = fs.placeholder(fs.float32, [], name="value")
    put = queue.enqueue([value])
    got = fs.exp(queue.dequeue(name="take"), name="y")
    runs = 8
    if not is_slow:
        for _ in range(runs):
            sess.run(put, {value: 1.0})
    failures = []

    def fill():
        try:
            for _ in range(runs):
                busy(0.01)
                sess.run(put, {value: 1.0})
        except Exception as e:
            failures.append(e)

    thread = threading.Thread(target=fill)
    if is_slow:
        thread.start()
    found = profiled(lambda k: sess.run(got), runs, sess)
    if is_slow:
        thread.join()
    assert not failures
    recording = found.recording
    plan = next(n.plan for n in recording.nodes if n.name == "y")
    told = [one for one in why_slow(recording, None, plan) if one.kind == "waiting"]
    assert bool(told) == is_slow, repr(found.why_slow())
    if is_slow:
        assert told[0].names[0] == "take" and "waits for input" in told[0].text
        assert "queue is empty" in told[0].advice


@pytest.mark.parametrize("input_s", [0.036, 0.018])
def test_the_share_for_which_steps_wait_for_input_is_what_clocks_say(sess, input_s):
    """A runner that takes its time fills a queue; two functions read the clock around the wait."""
    work_s = 0.012
    pause, stamps = threading.Event(), []

    def made():
        pause.wait(input_s)
        return np.float32(1.0)

    def stamped(*_):
        stamps.append(time.perf_counter())
        return np.float32(0.0)

    queue = fs.FIFOQueue(1, [fs.float32], [[]], name="input")
    runner = fs.train.QueueRunner(queue, [queue.enqueue(fs.py_func(made, [], fs.float32))])
    with fs.control_dependencies([fs.py_func(stamped, [], fs.float32)]):
        taken = queue.dequeue(name="take")
    after = fs.py_func(stamped, [taken], fs.float32)
    with fs.control_dependencies([after]):
        work = fs.py_func(lambda: np.float32(pause.wait(work_s)), [], fs.float32, name="work")
    coord = fs.train.Coordinator()
    threads = runner.create_threads(sess, coord, start=True)
    sess.run(work)
    stamps.clear()
    ended = []

    def run(k):
        sess.run(work)
        ended.append(time.perf_counter())

    found = profiled(run, 20, sess).why_slow()
    coord.request_stop()
    coord.join(threads)
    waits = np.diff(np.reshape(stamps, [20, 2]), axis=1)[1:]  # a plan's first step is not told
    truth = waits.sum() / (ended[-1] - ended[0])
    (told,) = [one for one in found if one.kind == "waiting"]
    assert told.names[0] == "take" and 0.1 < truth < 0.9
    assert abs(told.share - truth) < 0.1, (told, truth)
    assert f"waits for input {told.share:.0%} of its time" in told.text


def _stamped_input(take):
    """A step that takes an element and works 12 ms on it; clock readings around the taking."""
    stamps, pause = [], threading.Event()

    def stamp(*_):
        stamps.append(time.perf_counter())
        return np.float32(0.0)

    with fs.control_dependencies([fs.py_func(stamp, [], fs.float32)]):
        taken = take()
    after = fs.py_func(stamp, [taken], fs.float32)
    with fs.control_dependencies([after]):
        return fs.py_func(lambda: np.float32(pause.wait(0.012)), [], fs.float32), stamps


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
@pytest.mark.parametrize("kind", ["made by the step", "prefetched", "feedable"])
def test_what_steps_wait_for_iterators_is_what_clocks_say(graph, mode, kind):
    """Whether the step makes the element itself, or waits for the thread that does."""
    pause = threading.Event()

    def slow(x):
        return fs.py_func(lambda v: v + int(pause.wait(0.03)), [x], fs.int64)

    made = fs.data.Dataset.range(1000).map(slow)
    iterator = (made.prefetch(1) if kind == "prefetched" else made).make_initializable_iterator()
    named = fs.placeholder(fs.string, [])
    if kind == "feedable":
        taker = fs.data.Iterator.from_string_handle(named, fs.int64, [])
        work, stamps = _stamped_input(lambda: taker.get_next("take"))
    else:
        work, stamps = _stamped_input(lambda: iterator.get_next("take"))
    ended = []
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        sess.run(iterator.initializer)
        feeds = {named: sess.run(iterator.string_handle())} if kind == "feedable" else {}
        sess.run(work, feeds)
        stamps.clear()

        def run(k):
            sess.run(work, feeds)
            ended.append(time.perf_counter())

        found = profiled(run, 20, sess).why_slow()
    waits = np.diff(np.reshape(stamps, [20, 2]), axis=1)[1:]
    truth = waits.sum() / (ended[-1] - ended[0])
    told = only(found, "waiting")
    assert told.names[0] == "take" and 0.1 < truth < 0.9
    assert abs(told.share - truth) < 0.1, (told, truth)
    assert f"waits for input {told.share:.0%} of its time" in told.text
    assert "prefetch" in told.advice
    assert "take" not in [n for one in found if one.kind == "operation" for n in one.names]


def test_reading_a_file_within_the_step_is_input(sess, tmp_path):
    (tmp_path / "words").write_bytes(b"word " * 4_000_000)
    names = fs.FIFOQueue(40, fs.string, [[]])
    value = fs.WholeFileReader(name="reader").read(names, name="read")[1]
    size = fs.strings.length(value)
    for _ in range(12):
        sess.run(names.enqueue(str(tmp_path / "words")))
    told = only(profiled(lambda k: sess.run(size), 10, sess).why_slow(), "waiting")
    assert told.names[0] == "read" and "waits for input" in told.text
    assert "runner" in told.advice


@pytest.mark.parametrize("is_even", [True, False])
def test_a_device_that_waits_for_another_says_for_what(is_even):
    config = fs.ConfigProto(device_count={"CPU": 2}, split_partitions="always")
    x = fs.placeholder(fs.float32, [400, 400], name="x")
    with fs.device("/cpu:0"):
        slow = fs.matmul(fs.matmul(x, x, name="first"), x, name="slow")
    with fs.device("/cpu:1"):
        y = fs.reduce_sum(slow, name="y")
        own = fs.matmul(fs.matmul(x, x, name="third"), x, name="fourth")
    with fs.Session(config=config) as sess:
        array = np.ones((400, 400), np.float32)
        fetches = [slow.op, own.op] if is_even else y
        found = profiled(lambda k: sess.run(fetches, {x: array})).why_slow()
    told = [one for one in found if one.kind == "waiting" and "slow" in one.names]
    assert bool(told) != is_even, repr(found)
    if told:
        assert "CPU:1 stands still" in told[0].text and "One device waits" in told[0].advice


def test_of_nothing_nothing_is_told(sess):
    with fs.profile() as found:
        pass
    assert found.why_slow() == () and "nothing is known" in repr(found.why_slow())
    assert repr(Findings.of((), 3, 1.0)) == "3 steps of 1 s: nothing stands out"


def test_a_held_step_does_not_count_as_one_that_waits(sess):
    x, y, array = chain(["a", "b"], 60)
    sess.debug.break_after("a")
    sess.debug.on_stop(lambda stop: busy(0.01))
    found = profiled(lambda k: sess.run(y, {x: array})).why_slow()
    assert "waiting" not in kinds(found), repr(found)


def test_where_few_steps_are_traced_the_pace_tells_of_python_and_plans(sess):
    x, y, array = chain(["a", "b"], 60)
    recording = profiled(lambda k: sess.run(y, {x: array})).recording
    slow = why_slow(recording, Pace(10.0, 0.001, 100, 2))
    assert only(slow, "python").share > 0.9 and 0.09 < slow.step_s < 0.11
    assert "plans" in kinds(why_slow(recording, Pace(10.0, 0.001, 100, 90)))
    assert "plans" not in kinds(slow)


def test_a_loop_of_one_long_step_is_looked_into(sess):
    big = fs.constant(np.ones((200, 200), np.float32), name="big")

    def body(i, v):
        return i + 1, fs.matmul(v, big, name="product") * 1e-3

    loop = fs.while_loop(lambda i, v: i < 20, body, [0, big])[1]
    found = profiled(lambda k: sess.run(loop), 4).why_slow()
    assert only(found, "operation").names[0] == "while/body/product"
    assert "in 20 runs" in found[0].text
