"""The machine by events: each rule of tags, dead tokens, frames and iterations, one by one."""

from __future__ import annotations

import random

import pytest
from machine_steps import Steps, executor_graph

import flowscope as fs
from flowscope import raw_ops
from flowscope.errors import InternalError
from flowscope.executor.event_log import LoggedEvent, Story
from flowscope.executor.observe import StepPosition
from flowscope.executor.replay import replay

pytestmark = pytest.mark.usefixtures("graph")


def slow(x, name):
    """An operation whose end the test chooses."""
    return fs.negative(x, name=name)


def counting(limit, window=10, body=lambda i: i + 1):
    return fs.while_loop(
        lambda i: i < limit, body, [0], parallel_iterations=window, name="loop", back_prop=False
    )


# -- dead tokens --------------------------------------------------------------------------------


def test_a_switch_hands_on_to_one_side_and_the_other_does_not_run():
    x, p = fs.placeholder(fs.float32, []), fs.placeholder(fs.bool, [])
    no, yes = raw_ops.Switch(data=x, pred=p)
    merged = raw_ops.Merge(inputs=[slow(no, "no"), slow(yes, "yes")])
    for taken, runs in ((True, "yes"), (False, "no")):
        steps = Steps([merged.output, merged.value_index], {x: 3.0, p: taken})
        assert list(steps.running) == [runs]
        assert steps.finish() == [-3.0, int(taken)]


def test_a_switch_of_a_dead_value_is_dead_on_both_sides():
    x, p = fs.placeholder(fs.float32, []), fs.placeholder(fs.bool, [])
    _, yes = raw_ops.Switch(data=x, pred=p)
    both = raw_ops.Switch(data=yes, pred=p)
    steps = Steps([slow(both[0], "a"), slow(both[1], "b")], {x: 1.0, p: False})
    assert not steps.running
    assert steps.machine.is_finished
    assert sorted(steps.machine.dead_fetches) == [0, 1]


def test_a_switch_on_a_dead_predicate_is_dead_on_both_sides():
    x, p = fs.placeholder(fs.float32, []), fs.placeholder(fs.bool, [])
    _, dead = raw_ops.Switch(data=p, pred=p)
    both = raw_ops.Switch(data=x, pred=dead)
    steps = Steps([slow(both[0], "a"), slow(both[1], "b")], {x: 1.0, p: False})
    assert steps.machine.dead_fetches == [0, 1]


def test_a_merge_fires_at_the_first_live_value_and_does_not_wait_for_others():
    x, y = fs.placeholder(fs.float32, []), fs.placeholder(fs.float32, [])
    out = raw_ops.Merge(inputs=[slow(x, "first"), slow(y, "second")]).output
    steps = Steps([slow(out, "after")], {x: 1.0, y: 2.0})
    steps.done("second")
    assert "after" in steps.running
    steps.done("first")
    assert steps.finish() == [2.0]


def test_a_merge_waits_for_its_control_inputs():
    x = fs.placeholder(fs.float32, [])
    late = slow(x, "late")
    with fs.control_dependencies([late]):
        out = raw_ops.Merge(inputs=[x, x]).output
    steps = Steps([slow(out, "after")], {x: 1.0})
    assert list(steps.running) == ["late"]
    steps.done("late")
    assert list(steps.running) == ["after"]


def test_a_merge_is_dead_once_all_its_inputs_are():
    x, p = fs.placeholder(fs.float32, []), fs.placeholder(fs.bool, [])
    _, yes = raw_ops.Switch(data=x, pred=p)
    out = raw_ops.Merge(inputs=[slow(yes, "a"), slow(yes, "b")]).output
    assert Steps([out], {x: 1.0, p: False}).machine.dead_fetches == [0]


def test_a_dead_control_input_kills_but_not_a_merge_and_not_a_control_trigger():
    x, p = fs.placeholder(fs.float32, []), fs.placeholder(fs.bool, [])
    _, yes = raw_ops.Switch(data=x, pred=p)
    dead = slow(yes, "dead")
    with fs.control_dependencies([dead]):
        killed = slow(x, "killed")
        merged = raw_ops.Merge(inputs=[x, x]).output
        trigger = raw_ops.ControlTrigger()
    with fs.control_dependencies([trigger]):
        alive = slow(x, "alive")
    steps = Steps([killed, slow(merged, "merged"), alive], {x: 1.0, p: False})
    assert sorted(steps.running) == ["alive", "merged"]
    steps.finish()
    assert steps.machine.dead_fetches == [0]


# -- loops and branches -------------------------------------------------------------------------


def test_a_loop_on_the_way_not_taken_is_dead_as_a_whole():
    p = fs.placeholder(fs.bool, [])
    out = fs.cond(p, lambda: counting(3), lambda: fs.constant(-1))
    steps = Steps([out], {p: False})
    assert steps.finish() == [-1]
    assert steps.frames == []
    assert not any(e.what == "run" and "loop" in e.unit for e in steps.machine.story.events)
    assert Steps([out], {p: True}).finish() == [3]


def test_an_inner_loop_without_iterations():
    def body(i, total):
        inner = fs.while_loop(lambda j: j < i, lambda j: j + 1, [0], name="inner")
        return i + 1, total + inner

    _, total = fs.while_loop(lambda i, t: i < 4, body, [0, 0], name="outer")
    for seed in range(5):
        assert Steps([total]).finish(seed) == [0 + 0 + 1 + 2 + 3]


def test_a_loop_without_iterations_gives_its_first_values():
    n = fs.placeholder(fs.int32, [])
    assert Steps([counting(n)], {n: -5}).finish() == [0]


def test_a_branch_in_a_loop():
    def body(i, x):
        return i + 1, fs.cond(fs.equal(i % 2, 0), lambda: x + 10, lambda: x * 2)

    _, x = fs.while_loop(lambda i, x: i < 4, body, [0, 1])
    for seed in range(5):
        assert Steps([x]).finish(seed) == [((1 + 10) * 2 + 10) * 2]


def test_an_operation_of_the_next_iteration_runs_before_this_one_ends():
    i, x = fs.while_loop(
        lambda i, x: i < 3, lambda i, x: (i + 1, slow(x, "slow")), [0, 1], name="loop"
    )
    steps = Steps([i, x])
    for n in range(4):
        steps.done(f"loop/cond/Less in loop/Loop/frame:{n}")
        if n < 3:
            steps.done(f"loop/body/add in loop/Loop/frame:{n}")
    assert list(steps.running) == ["loop/body/slow in loop/Loop/frame:0"]
    assert steps.machine.results[0] == 3, "one variable has left the loop already"
    assert steps.finish() == [3, -1]


@pytest.mark.parametrize("window", [1, 3, 8])
def test_so_many_iterations_are_on_their_way(window):
    def body(i, y):
        return i + 1, y + slow(i, "work") * 0

    i, y = fs.while_loop(lambda i, y: i < 20, body, [0, 0], parallel_iterations=window, name="loop")
    steps = Steps([i, y])
    works = set()
    while True:
        quick = [n for n in steps.running if "work" not in n]
        works |= {n for n in steps.running if "work" in n}
        if not quick:
            break
        steps.done(quick[0])
    (view,) = StepPosition(steps.machine).frames()
    assert len(view.iterations) == window
    assert len(works) == window
    assert view.holds == "window"
    assert [it.number for it in view.iterations] == list(range(window))
    steps.done(min(works, key=lambda n: int(n.rpartition(":")[2])))
    assert steps.finish() == [20, 0]


def test_a_frame_waits_for_all_its_enters_and_a_late_constant_comes_to_every_iteration():
    x = fs.placeholder(fs.int32, [])
    start = raw_ops.Enter(data=fs.constant(0), frame_name="f")
    late = raw_ops.Enter(data=slow(x, "late"), frame_name="f", is_constant=True)
    three = raw_ops.Enter(data=fs.constant(3), frame_name="f", is_constant=True)
    i, _ = raw_ops.Merge(inputs=[start, start])
    stop, go = raw_ops.Switch(data=i, pred=raw_ops.LoopCond(input=fs.less(i, three, name="less")))
    one = raw_ops.Enter(data=fs.constant(1), frame_name="f", is_constant=True)
    i.op._update_input(1, raw_ops.NextIteration(data=fs.add(go, one, name="next")))
    users = raw_ops.Exit(data=fs.add(stop, late, name="use"))
    steps = Steps([users], {x: 5})
    while len(steps.running) > 1:
        steps.done(next(n for n in steps.running if n != "late"))
    (view,) = StepPosition(steps.machine).frames()
    assert view.holds == "entering"
    assert len(view.iterations) == 4, "the first has not ended, for an Enter is missing"
    steps.done("late")
    assert list(steps.running) == ["use in f:3"]
    assert steps.finish() == [3 - 5]


def test_frames_have_the_same_names_in_any_order():
    def body(i, t):
        return i + 1, t + fs.while_loop(lambda j: j < 2, lambda j: j + 1, [0], name="inner")

    _, t = fs.while_loop(lambda i, t: i < 3, body, [0, 0], name="outer")
    seen = []
    for seed in (1, 2):
        steps = Steps([t])
        names = set(steps.frames)
        rng = random.Random(seed)
        while steps.running:
            steps.done(rng.choice(sorted(steps.running)))
            names |= set(steps.frames)
        seen.append(names)
    assert seen[0] == seen[1]
    assert len(seen[0]) == 4


# -- what the machine refuses -------------------------------------------------------------------


def test_what_is_not_running_cannot_be_done():
    x = fs.placeholder(fs.float32, [])
    steps = Steps([slow(x, "a")], {x: 1.0})
    unit, it, _ = steps.running["a"]
    steps.done("a")
    with pytest.raises(InternalError, match=r"a done, but it was not running; it was: .*run"):
        steps.machine.done(unit, it, (1.0,))


def test_a_story_is_bounded_and_can_be_replayed():
    i = counting(3)
    steps = Steps([i])
    steps.finish(3)
    machine = replay(steps.graph, steps.machine.story.events)
    assert machine.is_finished
    assert machine.results == [3]
    assert [str(e) for e in machine.story.of("loop/body/add")][:2] == [
        "loop/body/add run in loop/Loop/frame:0",
        "loop/body/add done in loop/Loop/frame:0",
    ]
    short = Story(2)
    for n in range(5):
        short.events.append(LoggedEvent("dead", str(n)))
    assert [e.unit for e in short.events] == ["3", "4"]


def test_a_story_of_another_graph_is_refused():
    steps = Steps([counting(3)])
    steps.finish()
    x = fs.placeholder(fs.float32, [])
    other = executor_graph([slow(x, "other")], [x])
    with pytest.raises(InternalError, match="expected"):
        replay(other, [e for e in steps.machine.story.events if e.what != "start"])
