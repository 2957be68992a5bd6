"""Fetching what was not taken (SPEC D3): the error names the Switch, its predicate and its line."""

import pytest

import flowscope as fs
from flowscope import raw_ops as raw
from flowscope.errors import InvalidArgumentError


@pytest.fixture
def p(graph):
    return fs.placeholder(fs.bool, [], name="p")


def refusal(sess, fetch, feeds):
    with pytest.raises(InvalidArgumentError, match="on a way that was not taken") as e:
        sess.run(fetch, feeds)
    return str(e.value)


def test_the_switch_and_its_predicate_are_named_with_the_users_line(sess, p):
    off, on = raw.Switch(data=fs.constant(1.0), pred=p, name="either")
    y = fs.add(fs.exp(on), 1.0, name="y")
    assert sess.run([y, fs.ones([])], {p: True})[0] > 3.7
    told = refusal(sess, y, {p: False})
    assert 'the fetched "y" has no value' in told
    assert 'for "p:0" was False' in told
    assert 'follows from "either:1", which has a value where "p:0" is True, made in' in told
    assert "test_dead_fetches.py, line 23" in told
    assert sess.run(off, {p: False}) == 1.0
    assert 'for "p:0" was True' in refusal(sess, off, {p: True})


def test_of_several_switches_the_nearest_comes_first(sess, p):
    q = fs.placeholder(fs.bool, [], name="q")
    _, outer = raw.Switch(data=fs.constant(1.0), pred=p, name="outer")
    inner, _ = raw.Switch(data=outer, pred=q, name="inner")
    assert sess.run(inner, {p: True, q: False}) == 1.0
    for feeds in ({p: False, q: False}, {p: True, q: True}):
        told = refusal(sess, inner, feeds)
        assert "several Switches" in told
        assert told.index('"inner:0", which has a value where "q:0" is False') < told.index(
            '"outer:1", which has a value where "p:0" is True'
        )


def test_a_loop_that_was_not_begun_names_the_switch_before_it(sess, p):
    _, on = raw.Switch(data=fs.constant(0), pred=p, name="whether")
    i, _ = raw.Merge(inputs=[raw.Enter(data=on, frame_name="loop")] * 2)
    last, inner = raw.Switch(data=i, pred=raw.LoopCond(input=i < 3), name="again")
    i.op._update_input(1, raw.NextIteration(data=inner + 1))
    count = raw.Exit(data=last)
    assert sess.run(count, {p: True}) == 3
    told = refusal(sess, count, {p: False})
    assert 'follows from "whether:1"' in told
    assert "again" not in told


def test_operations_that_wait_for_what_was_not_taken_are_told_too(sess, p):
    off, _ = raw.Switch(data=fs.constant(1.0), pred=p, name="either")
    with fs.control_dependencies([fs.identity(off, name="first")]):
        y = fs.constant(2.0, name="y") + 1.0
    assert sess.run(y, {p: False}) == 3.0
    assert 'for "p:0" was True' in refusal(sess, y, {p: True})
