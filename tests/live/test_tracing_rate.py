"""Views have a step traced when one is due, and leave the session alone until the next one is."""

import pytest

import flowscope as fs
from flowscope.live.answers.traces import _EARLY_S, _SHARE, Tracing


@pytest.fixture
def session(graph):
    x = fs.constant(2.0)
    fs.tanh(fs.exp(x), name="y")
    with fs.Session() as made:
        yield made


@pytest.fixture
def tracing(session):
    made = Tracing()
    made.steps_per_s = 4.0
    yield made
    made.end(session)


def test_a_tracer_leaves_after_the_step_that_it_has_asked_for(session, tracing):
    tracing.ask(session, 100.0)
    assert tracing in session.tracers
    session.run("y:0")
    assert tracing not in session.tracers
    version = tracing.version
    for _ in range(3):
        session.run("y:0")
    assert tracing.version == version > 0


def test_a_step_that_fails_is_the_one_that_was_asked_for(graph, tracing, session):
    fs.Assert(fs.constant(False), ["no"], name="fails")
    tracing.ask(session, 100.0)
    with pytest.raises(fs.errors.InvalidArgumentError):
        session.run("fails")
    assert tracing not in session.tracers


def test_steps_are_asked_for_no_faster_than_views_want_them(session, tracing):
    asked = []
    for tick in range(41):  # five seconds of looks, each followed by a step
        tracing.ask(session, 100.0 + tick / 8)
        asked.append(tracing in session.tracers)
        session.run("y:0")
    assert asked[0]
    assert sum(asked) == 21


def test_what_telling_takes_is_a_small_share_of_a_core(session, tracing):
    tracing.ask(session, 100.0)
    session.run("y:0")
    tracing.cost_s = 0.1
    tracing.ask(session, 101.0)
    session.run("y:0")
    due = 101.0 + 0.1 / _SHARE
    tracing.ask(session, due - 0.01)
    assert tracing not in session.tracers
    tracing.ask(session, due)
    assert tracing in session.tracers
    assert 1 / tracing.steps_per_s - _EARLY_S < 0.1 / _SHARE


def test_nobody_traces_after_the_end(session, tracing):
    tracing.ask(session, 100.0)
    tracing.end(session)
    assert tracing not in session.tracers
    tracing.ask(session, 200.0)
    assert tracing not in session.tracers
