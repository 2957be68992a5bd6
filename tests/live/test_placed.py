"""What views are told of devices."""

from __future__ import annotations

import flowscope as fs
from flowscope.live.state import GraphWatcher


def test_an_operation_that_has_moved_is_told_though_no_other_is_placed(graph):
    x = fs.constant(1.0, name="x")
    watcher = GraphWatcher()
    watcher.change(graph, {x.op.id: "CPU:0"}, 1)
    assert watcher.change(graph, {x.op.id: "CPU:1"}, 1) is None
    change = watcher.change(graph, {x.op.id: "CPU:1"}, 2)
    assert change is not None
    assert change.placed == ((x.op.id, "CPU:1"),)


def test_a_plan_that_places_nothing_anew_is_no_news(graph):
    x = fs.constant(1.0, name="x")
    with fs.Session(graph=graph) as sess:
        sess.run(x)
        version = sess.planner.placement_version
        sess.run([x])
        assert sess.planner.placement_version == version
