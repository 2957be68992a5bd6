"""Two engines in one process: nothing of one is seen in the other."""

import threading

import numpy as np
import pytest

import flowscope as fs
from flowscope.live.watchers.bus import LiveChannel, shared_feed
from flowscope.runtime.session import engine
from flowscope.runtime.session.engine import Engine

PATIENCE_S = 30.0


@pytest.fixture
def engines():
    return Engine(), Engine()


def session_of(which, graph, config=None):
    with which.as_default():
        return fs.Session(graph=graph, config=config)


def test_the_block_names_the_engine_of_the_sessions_made_in_it(engines, graph):
    before = engine.current()
    with engines[0].as_default():
        assert engine.current() is engines[0]
        with engines[1].as_default(), fs.Session(graph=graph) as inner:
            assert inner.engine is engines[1]
        assert engine.current() is engines[0]
    assert engine.current() is before


def test_another_thread_begins_with_the_engine_of_the_process(engines):
    seen = []
    with engines[0].as_default():
        thread = threading.Thread(target=lambda: seen.append(engine.current()))
        thread.start()
        thread.join()
    assert seen == [engine.current()]


def test_each_knows_its_open_sessions_and_counts_its_own(engines, graph):
    a, b = (session_of(e, graph) for e in engines)
    c = session_of(engines[1], graph)
    assert [s.number for s in (a, b, c)] == [0, 0, 1]
    assert set(engines[0].sessions) == {a}
    assert set(engines[1].sessions) == {b, c}
    assert not {a, b, c} & set(engine.current().sessions)
    for s in (a, b, c):
        s.close()
    assert not engines[0].sessions
    assert not engines[1].sessions


def test_steps_count_where_they_ran_also_after_the_session_is_closed(engines, graph):
    x = fs.constant(1.0)
    with session_of(engines[0], graph) as session:
        session.run(x)
        session.run(x)
        assert [e.steps_on(graph) for e in engines] == [2, 0]
    session.close()
    assert [e.steps_on(graph) for e in engines] == [2, 0]


def test_containers_of_one_name_are_others(engines, graph):
    with fs.container("shared"):
        v = fs.Variable(1.0)
    a, again, b = (session_of(engines[i], graph) for i in (0, 0, 1))
    a.run(v.initializer)
    a.run(v.assign_add(1.0))
    assert again.run(v) == 2.0
    with pytest.raises(fs.errors.FailedPreconditionError):
        b.run(v)
    b.run(v.initializer)
    with engines[1].as_default():
        fs.Session.reset("")
    assert again.run(v) == 2.0
    with pytest.raises(fs.errors.FailedPreconditionError):
        b.run(v)
    for s in (a, again, b):
        s.close()


def test_the_size_of_the_pool_is_each_ones(engines, graph):
    engines[0].pool.size = engines[1].pool.size = 3
    here = engine.current().pool.size
    with session_of(engines[0], graph, fs.ConfigProto(intra_op_parallelism_threads=1)):
        assert engines[0].pool.size == 1
    assert engines[1].pool.size == 3
    assert engine.current().pool.size == here


def test_functions_run_on_threads_of_their_own_engine(engines, graph):
    y = fs.py_func(lambda: np.float32(threading.get_ident() % 1000), [], fs.float32)
    limit = fs.ConfigProto(operation_timeout_in_ms=60_000)
    idle = len(engine.current().host_threads.idle)
    with session_of(engines[0], graph, limit) as a:
        a.run(y)
    assert not engines[1].host_threads.idle
    assert len(engine.current().host_threads.idle) == idle


def test_a_stop_ends_the_steps_of_its_session_alone(engines, graph):
    loop = fs.while_loop(lambda i: i >= 0, lambda i: i % 7, [fs.constant(1)])
    quick = fs.constant(3.0) * 2.0
    a, b = (session_of(e, graph) for e in engines)
    errors = []

    def endless():
        try:
            a.run(loop)
        except fs.errors.CancelledError as e:
            errors.append(e)

    thread = threading.Thread(target=endless)
    thread.start()
    while not a.running:
        pass
    for session in list(engines[1].sessions):
        session.stop()
    with pytest.raises(fs.errors.CancelledError):
        b.run(quick)
    assert b.run(quick) == 6.0
    assert a.running == 1
    a.stop()
    thread.join(PATIENCE_S)
    assert len(errors) == 1
    a.close()
    b.close()


def test_a_view_finds_the_session_of_its_engine(engines, graph):
    fs.constant(1.0)
    with engines[0].as_default():
        feed = LiveChannel(graph)
    with session_of(engines[1], graph):
        assert feed.session is None
        with session_of(engines[0], graph) as mine:
            assert feed.session is mine


def test_progress_is_seen_in_its_engine_alone(engines, graph):
    from flowscope.live.answers import progress

    x = fs.constant(1.0)
    other = session_of(engines[1], graph)
    with engines[0].as_default(), fs.Session(graph=graph) as mine:
        for _ in fs.progress(range(1)):
            mine.run(x)
            assert progress.current(0.0, mine) is not None
            assert progress.current(0.0, other) is None
    other.close()


def test_views_of_one_engine_share_a_feed_and_those_of_two_do_not(engines, graph):
    feeds = []
    for one in engines:
        with one.as_default():
            feeds += [shared_feed(graph), shared_feed(graph)]
    assert feeds[0] is feeds[1] and feeds[2] is feeds[3]
    assert feeds[0] is not feeds[2]
    session = session_of(engines[1], graph)
    assert shared_feed(graph, session) is shared_feed(graph, session)
    assert shared_feed(graph, session)._engine is engines[1]


def test_loops_and_growth_are_noted_by_the_engine(engines, graph):
    with engines[0].as_default():
        loop = fs.progress(range(2), "a")
        next(loop)
    assert len(engines[0].loops) == 1 and not engines[1].loops
    assert not engine.current().loops
    loop.close()
    assert not engines[0].loops and engines[0].ended_loop is not None
    a, b = (one.growth_of(graph) for one in engines)
    assert a is not b and a is engines[0].growth_of(graph)
