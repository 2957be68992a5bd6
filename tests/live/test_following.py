"""Breakpoints that views have set follow a graph to its next session, or say that they wait."""

from dataclasses import replace

import pytest
from live_views import View

import flowscope as fs
from flowscope.live.watchers.bus import LiveChannel

pytestmark = pytest.mark.usefixtures("graph")
WISH = {
    "op": None, "scope": None, "op_type": None, "line": None, "cell": None, "file": None,
    "is_after": False, "when": "", "iteration": None, "step": None, "hits": 1,
}  # fmt: skip
WATCH = {
    "op": None, "scope": None, "op_type": None, "line": None, "cell": None, "file": None,
    "when": "max > 3", "exceptions": [], "raises": False,
}  # fmt: skip


@pytest.fixture
def view(graph):
    x = fs.placeholder(fs.float32, [2], name="x")
    fs.exp(x, name="y")
    made = View(LiveChannel(graph))
    yield made
    made.feed.leave(made.send)


def test_they_are_set_in_the_next_session_as_they_were(view):
    first = fs.Session()
    assert view.command("break", {**WISH, "op": "y"}).ok
    assert view.command("watch", WATCH).ok and view.command("stop_at_nan", 1).ok
    own = first.debug.break_after("x")
    view.command("disable", 1)
    assert [p.follows for p in view.debug.breakpoints] == [True, True, True, False]
    second = fs.Session()
    told = view.debug.breakpoints
    assert [(str(p.target), p.is_enabled) for p in second.debug.breakpoints] == [
        (str(first.debug.breakpoints[0].target), False),
        (str(first.debug.breakpoints[1].target), True),
        (str(first.debug.breakpoints[2].target), True),
    ]
    assert [p.follows for p in told] == [True] * 3 and told[2].stops_at_nan
    assert own not in second.debug.breakpoints and second.debug.history is not None
    held = []
    second.debug.on_stop(held.append)
    second.run("y:0", {"x:0": [0.0, 2.0]})
    assert [stop.breakpoint.number for stop in held] == [2]
    first.close()
    second.close()


def test_what_was_removed_does_not_follow(view):
    first = fs.Session()
    view.command("break", {**WISH, "op": "y"})
    view.command("break", {**WISH, "op": "x"})
    view.command("unbreak", 1)
    first.debug.breakpoints[0].remove()
    view.feed.tick(0.0)
    first.close()
    with fs.Session() as second:
        assert view.debug is None and second.debug.breakpoints == ()


def test_one_without_its_operation_waits_and_says_so(view):
    first = fs.Session()
    view.command("break", {**WISH, "op": "y"})
    point = view.feed._following._followed[0]
    point.value = replace(point.value, op="made_later")
    first.close()
    with fs.Session() as second:
        [told] = view.debug.waiting
        assert told.startswith("breakpoint of made_later waits: ") and "no operation" in told
        assert view.debug.breakpoints == ()
        fs.constant(1.0, name="made_later")
        assert [p.follows for p in view.debug.breakpoints] == [True]
        assert view.debug.waiting == () and len(second.debug.breakpoints) == 1
