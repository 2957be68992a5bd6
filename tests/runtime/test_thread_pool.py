"""Large element-wise operations are done in parts, by several threads, with the same bits."""

import multiprocessing
import sys
import threading
from queue import SimpleQueue

import numpy as np
import pytest

import flowscope as fs
from flowscope.plan.codegen.parallel_for import LARGE
from flowscope.runtime.session import engine
from flowscope.runtime.threads.thread_pool import ThreadPool

RNG = np.random.default_rng(0)
ROWS = LARGE // 64 + 3


@pytest.fixture
def counted(monkeypatch):
    """The numbers of parts of the kernels that were shared."""
    found, helpers = [], ThreadPool(3)

    def share(count, run):
        found.append(count)
        ThreadPool.parallel_for(helpers, count, run)

    monkeypatch.setattr(helpers, "parallel_for", share)
    monkeypatch.setattr(engine.current(), "pool", helpers)
    return found


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def both_ways(fetch, feeds):
    """The results of compiled mode, after comparing them with op mode's."""
    with fs.Session() as a, fs.Session(config=fs.ConfigProto(mode="op")) as b:
        got = a.run(fetch, feeds)
        np.testing.assert_array_equal(got, b.run(fetch, feeds))
        return got


@pytest.mark.parametrize("dims", [[ROWS, 64], [None, 64], [None, None]])
def test_parts_give_the_same_bits(graph, counted, dims):
    x, row = fs.placeholder(fs.float32, dims), fs.placeholder(fs.float32, [64])
    column = fs.placeholder(fs.float32, [dims[0], 1])
    feeds = {x: normal(ROWS, 64), row: normal(64), column: normal(ROWS, 1)}
    y = fs.sigmoid(fs.tanh(x) * x + row) * column
    y = fs.squared_difference(y, x) - 0.5
    z = fs.gradients(fs.tanh(y), y, x)[0]
    got = both_ways(z, feeds)
    assert got.shape == (ROWS, 64)
    assert len(counted) >= 6
    assert min(counted) > 1


def test_small_and_turned_arrays_are_left_to_one_thread(graph, counted):
    x, y = (fs.placeholder(fs.float32, [None, 64]) for _ in range(2))
    total = x * y + 1.0
    both_ways(total, {x: normal(10, 64), y: normal(10, 64)})
    assert counted == []
    turned = normal(64, ROWS).T
    got = both_ways(x * y, {x: turned, y: normal(ROWS, 64)})
    assert counted == []
    assert both_ways(x * x, {x: turned}).flags.f_contiguous
    assert got.shape == turned.shape


def test_what_is_broadcast_to_more_rows_than_it_seems_is_right(graph, counted):
    """Both lengths are unknown, and one of them is 1."""
    x, y = (fs.placeholder(fs.float32, [None, None]) for _ in range(2))
    one, many = normal(1, LARGE), normal(2, LARGE)
    both_ways(x - y, {x: one, y: many})
    both_ways(x - y, {x: many, y: one})
    both_ways(x - y, {x: many, y: many})
    assert counted == [2, 2, 2], "a part per row"


def test_a_buffer_that_dies_takes_the_parts(graph, counted):
    x = fs.placeholder(fs.float32, [ROWS, 64])
    with fs.Session() as sess:
        y = fs.exp(x) * 2.0
        assert ", s0)" in sess.plan(y, [x]).text("code")
        value = normal(ROWS, 64)
        np.testing.assert_array_equal(sess.run(y, {x: value}), np.exp(value) * np.float32(2))
    assert len(counted) == 2


def test_all_parts_are_done_once_however_late_the_helpers_are():
    helpers = ThreadPool(4)
    for count in (1, 2, 3, 50, 1000):
        done = []
        helpers.parallel_for(count, done.append)
        assert sorted(done) == list(range(count))


def test_helpers_take_parts():
    helpers = ThreadPool(2)
    both = threading.Barrier(2, timeout=60)
    names = set()

    def run(i):
        both.wait()  # only two threads can get past this
        names.add(threading.current_thread().name)

    helpers.parallel_for(2, run)
    assert len(names) == 2


def test_who_comes_late_holds_nothing(monkeypatch):
    """A reference to a variable's buffer would make its next writer copy it."""
    late = SimpleQueue()
    helpers = ThreadPool(3)
    monkeypatch.setattr(helpers, "_start", lambda count: setattr(helpers, "_tasks", late))
    array = np.zeros(3)
    held = sys.getrefcount(array)
    helpers.parallel_for(3, array.fill)
    assert late.qsize() == 2
    assert sys.getrefcount(array) == held
    late.get().help()
    assert (array == 2).all()


@pytest.mark.parametrize("bad", [0, 1])
def test_an_error_is_raised_when_all_have_ended(bad):
    helpers = ThreadPool(2)
    both = threading.Barrier(2, timeout=60)

    def run(i):
        both.wait()
        if i == bad:
            raise ValueError(f"part {i}")

    with pytest.raises(ValueError, match=f"part {bad}"):
        helpers.parallel_for(2, run)
    done = []
    helpers.parallel_for(5, done.append)
    assert sorted(done) == [0, 1, 2, 3, 4]


def test_steps_of_several_threads_share_the_pool(graph):
    x = fs.placeholder(fs.float32, [None, 64])
    y = fs.tanh(x) + 1.0
    value = normal(ROWS, 64)
    want = np.tanh(value) + np.float32(1)
    wrong = []
    with fs.Session() as sess:

        def steps():
            wrong.extend(i for i in range(5) if (sess.run(y, {x: value}) != want).any())

        threads = [threading.Thread(target=steps) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not wrong


def _in_child(value, answers):
    with fs.Graph().as_default(), fs.Session() as sess:
        x = fs.placeholder(fs.float32, [None, 64])
        answers.put(float(sess.run(fs.tanh(x), {x: value})[0, 0]))


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own(graph, monkeypatch):
    monkeypatch.setattr(engine.current().pool, "size", 2)
    value = normal(ROWS, 64)
    x = fs.placeholder(fs.float32, [None, 64])
    with fs.Session() as sess:
        want = float(sess.run(fs.tanh(x), {x: value})[0, 0])
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=_in_child, args=(value, answers))
    child.start()
    assert answers.get(timeout=60) == want
    child.join()


def test_a_pool_may_be_limited_to_one_thread():
    pool = ThreadPool(3)
    pool.limit(1)
    mine = set()
    pool.parallel_for(9, lambda i: mine.add(threading.current_thread().name))
    assert mine == {threading.current_thread().name}


N = LARGE + 99
PAIRS = [
    ((N, 1), (1, 3)),
    ((1, 3), (N, 1)),
    ((3,), (N, 1)),
    ((N, 3), (N, 1)),
    ((1, N), (3, 1)),
]


@pytest.mark.parametrize("dims", PAIRS)
def test_arrays_that_are_broadcast_give_the_same_bits(graph, counted, dims):
    a, b = (fs.placeholder(fs.float32, [None] * len(d)) for d in dims)
    y = fs.tanh(a + b) * (a - b)
    both_ways(y, {a: normal(*dims[0]), b: normal(*dims[1])})


def test_large_arrays_that_do_not_fit_get_the_words_of_op_mode(graph, counted):
    a, b = fs.placeholder(fs.float32, [None, None]), fs.placeholder(fs.float32, [None, None])
    y = a * 2.0 + b
    words = []
    for mode in ("compiled", "op", "tokens"):
        with fs.Session(config=fs.ConfigProto(mode=mode)) as s:
            with pytest.raises(fs.errors.InvalidArgumentError) as info:
                s.run(y, {a: normal(ROWS, 64), b: normal(ROWS + 1, 64)})
            words.append(str(info.value))
    assert words[0] == words[1] == words[2]
