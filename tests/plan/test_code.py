"""Generated code: what stays of it, and what it is told to be in tracebacks."""

import gc
import linecache
import traceback

import pytest
from random_programs import Program as RandomProgram

import flowscope as fs


def sources():
    return [n for n in linecache.cache if n.startswith("<flowscope plan")]


def test_plans_come_and_go_without_changing_what_others_may_be_going_through(graph):
    """`linecache.checkcache`, which notebooks call, raises where an entry goes meanwhile."""
    before = sources()
    x = fs.placeholder(fs.float32, [])
    with fs.Session() as s:
        s.run(x + 1.0, {x: 1.0})
        assert sources() == before
    del s
    gc.collect()
    assert sources() == before


def test_a_traceback_shows_the_generated_line(graph):
    a, b = fs.placeholder(fs.float32, [None]), fs.placeholder(fs.float32, [None])
    with fs.Session() as s, pytest.raises(fs.errors.InvalidArgumentError) as info:
        s.run(fs.exp(a) * b, {a: [1.0, 2.0], b: [1.0, 2.0, 3.0]})
    assert " * f1" in "".join(traceback.format_exception(info.value.__cause__))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::flowscope.errors.ControlFlowWarning")
def test_the_same_program_gives_the_same_text():
    """Places are handed on in an order that does not depend on where objects lie in memory."""
    texts, kept = set(), []
    for i in range(12):
        kept.append([object() for _ in range(i * 37)])
        program = RandomProgram(18)
        with fs.Session(graph=program.graph) as sess:
            plan = sess.plan(program.fetches, [t for t, _ in program.feeds])
        texts.add(plan.text("code"))
    assert len(texts) == 1
