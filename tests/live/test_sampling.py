"""Steps are sampled for as long as views want that, and what is told of them is true of a step."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import flowscope as fs
from flowscope.live.answers.sampling import GONE_S, LASTS_S, SamplingSchedule
from flowscope.live.answers.traces import Tracing
from flowscope.live.protocol.tables import columns_of
from flowscope.runtime.trace.tracers import attach, detach
from flowscope.tracing import typical
from flowscope.tracing.recorder import Recorder
from flowscope.tracing.typical import STEPS, TypicalStep

pytestmark = pytest.mark.usefixtures("graph")


def looping() -> Any:
    x = fs.placeholder(fs.float32, [2], name="x")
    _, y = fs.while_loop(lambda i, v: i < 4, lambda i, v: (i + 1, fs.tanh(v)), [0, x])
    return x, fs.identity(y, name="looped")


def traced_after(session: Any, tracing: Tracing, now_s: float, run: Any, steps: int = 3) -> int:
    """Returns how many steps are traced when some are run behind a look."""
    before = tracing.version
    tracing.ask(session, now_s)
    for _ in range(steps):
        run()
    return tracing.version - before


@pytest.mark.parametrize("make", [looping, lambda: None], ids=["loop", "straight"])
def test_a_plan_with_one_slow_step_is_traced_again(make: Any) -> None:
    x, y = make() or (fs.placeholder(fs.float32, [2], name="x"), None)
    y = fs.exp(x, name="y") if y is None else y
    with fs.Session() as sess:
        tracing = Tracing()
        tracing.steps_per_s = 8.0

        def run() -> None:
            sess.run(y, {x: [1.0, 2.0]})

        assert traced_after(sess, tracing, 100.0, run) == 1
        sess.pause()
        thread = threading.Thread(target=run)
        thread.start()
        while not sess.gate.held_steps():
            threading.Event().wait(0.001)
        for look in range(100):  # it is held over many looks, which come at times of their own
            tracing.ask(sess, 101.0 + look)
        sess.resume()
        thread.join()
        counts = [traced_after(sess, tracing, 300.0 + look, run) for look in range(5)]
        tracing.end(sess)
    assert counts == [1] * 5


def test_programs_that_take_turns_are_all_traced() -> None:
    x, looped = looping()
    ys = [fs.exp(x, name="a"), fs.tanh(x, name="b"), looped]
    with fs.Session() as sess:
        tracing = Tracing()
        tracing.steps_per_s = 8.0
        for look in range(60):
            for y in ys[look % 3 :] + ys[: look % 3]:
                sess.run(y, {x: [1.0, 2.0]})
            tracing.ask(sess, 100.0 + look)
        tracing.end(sess)
        state = tracing.state()
    assert state is not None
    assert {p.name for p in state.programs} == {"a", "b", "looped"}
    assert min(p.steps for p in state.programs) >= 10
    told = columns_of(state.heat, state.heat.data)
    for program in state.programs:
        own = told["program"] == program.number
        _, first = np.unique(told["node"][own], return_index=True)
        assert told["share"][own][first].sum() == pytest.approx(1.0)


def plan_of(name: str) -> Any:
    with fs.Session() as sess:
        return sess.plan(fs.exp(fs.constant(1.0), name=name), [])


def test_one_slow_step_does_not_outweigh_the_others() -> None:
    newest = TypicalStep(plan_of("y"))
    count = np.ones(2, np.int64)
    newest.take(count, np.array([312_000_000, 1_000]), True, 1)
    assert newest.figures()[:2] == ("first", 1)
    for step in range(12):
        slow = 50_000_000 if step == 5 else 0
        newest.take(count, np.array([2_000 + slow, 1_000]), True, 2 + step)
    basis, steps, (counts, own_ns) = newest.figures()
    assert (basis, steps) == ("median", 12)
    assert own_ns.tolist() == [2_000, 1_000] and counts.tolist() == [1, 1]


def test_only_the_newest_steps_count() -> None:
    newest = TypicalStep(plan_of("y"))
    for step in range(3 * STEPS):
        newest.take(np.ones(1, np.int64), np.array([step]), True, step + 1)
    basis, steps, (_, own_ns) = newest.figures()
    assert (basis, steps) == ("median", STEPS)
    assert own_ns.tolist() == [np.median(np.arange(2 * STEPS, 3 * STEPS))]


def test_parts_count_where_whole_steps_are_old_or_missing() -> None:
    newest = TypicalStep(plan_of("y"))
    one, part = np.ones(1, np.int64), np.array([9])
    newest.take(one, part, False, 1)
    assert newest.figures()[:2] == ("parts", 1)
    newest.take(one, np.array([5]), True, 2)
    assert newest.figures()[:2] == ("first", 1)
    for ended in (3, 4):
        newest.take(one, part, False, ended)
    assert newest.figures()[:2] == ("first", 1)
    newest.take(one, part, False, 5)
    assert newest.figures()[:2] == ("parts", 3)


class RunningStep:
    """Stands for a step that runs."""

    def __init__(self, plan: Any) -> None:
        self.plan = plan


@pytest.mark.parametrize(
    ("taken_s", "lasts"),
    [(0.01, False), (LASTS_S / 2, False), (2 * LASTS_S, True), (GONE_S / 2, True)],
)
def test_a_plan_lasts_while_its_steps_do(taken_s: float, lasts: bool) -> None:
    schedule, plan, now_s = SamplingSchedule(), plan_of("y"), 100.0
    schedule.look([], [], now_s)
    for number in range(3):
        step: Any = RunningStep(plan)
        wanted = schedule.wants(plan, now_s, 0.0)
        assert wanted is (number == 0 or not lasts)
        looks = np.linspace(0.0, taken_s * 0.999, 5)
        seen = [schedule.look([step], [], now_s + look) for look in looks]
        assert seen[0] == [] and all(found == [step] for found in seen[1:])
        now_s += taken_s
        schedule.look([], [], now_s)
    wanted = [schedule.wants(plan, now_s + step / 1000, 0.0) for step in range(3)]
    assert wanted[1:] == [True, True]


def test_a_rare_program_is_not_starved() -> None:
    """A step that evaluates after each thousand that train; looks come between."""
    schedule, train, test = SamplingSchedule(), plan_of("train"), plan_of("test")
    traced = {id(train): 0, id(test): 0}
    for step in range(40_000):
        now_s = step / 1000  # the clock of looks and steps
        plan = test if step % 1000 == 530 else train
        if step % 125 == 0:  # a plan that was made is seen at the next look
            schedule.look([], [test] if step == 625 else [train], now_s)
        if schedule.is_any_due():
            traced[id(plan)] += schedule.wants(plan, now_s, 0.1)
    assert traced[id(test)] == 39
    assert traced[id(train)] >= 150


def test_what_has_gone_is_not_waited_for() -> None:
    schedule, once, often = SamplingSchedule(), plan_of("once"), plan_of("often")
    schedule.look([], [], 0.0)
    assert schedule.wants(once, 0.0, 0.1)
    schedule.look([], [once], 1.0)
    asked = 0
    for look in range(1, 1000):
        schedule.look([], [], 1.0 + look / 8)
        asked += schedule.is_any_due()
        schedule.wants(often, 1.0 + look / 8, 0.1)
    assert asked >= 990, "one of them is due at nearly each look"
    assert schedule.wants(often, 200.0, 0.1) is False and schedule.is_any_due() is False


def shares(nodes: Any, self_ns: Any, count: Any, plan: int) -> dict[str, float]:
    """Returns the share of each node of a plan that ran, by name."""
    chosen = [i for i, n in enumerate(nodes) if n.plan == plan and count[i]]
    whole = sum(self_ns[i] for i in chosen)
    return {nodes[i].name: self_ns[i] / whole for i in chosen}


def chain(name: str, size: int, products: int) -> Any:
    y = x = fs.get_variable(f"w_{name}", initializer=np.full((size, size), 0.01, np.float32))
    for _ in range(products):
        y = fs.tanh(fs.matmul(y, x))
    return fs.reduce_sum(y, name=name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "steps"),
    [("short", 3000), ("long", 60), ("alternating", 1500), ("paused", 1500), ("devices", 600)],
)
def test_shares_are_those_of_a_full_trace(
    shape: str, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(typical, "STEPS", steps)  # both look at the same stretch of time
    ys = {
        "long": lambda: [chain("y", 300, 4)],
        "alternating": lambda: [chain("train", 60, 3), chain("test", 90, 1)],
    }.get(shape, lambda: [chain("y", 60, 3)])()
    config = None
    if shape == "devices":
        with fs.device("/gpu:1"):
            ys = [fs.identity(fs.sin(chain("inner", 60, 3)), name="y")]
        config = fs.ConfigProto(fake_devices={"GPU": 2})
    with fs.Session(config=config) as sess:
        sess.run(fs.global_variables_initializer())
        whole, tracing = Recorder(1 << 16), Tracing()
        attach(sess, whole)
        tracing.steps_per_s = 1000.0
        for step in range(steps):
            # Looks have nothing to do with the steps, and now and then there are none.
            if step % 7 == 0 and not (shape == "paused" and 300 < step < 900):
                tracing.ask(sess, 100.0 + step)
            sess.run(ys[step % len(ys)])
        tracing.end(sess)
        detach(sess, whole)
    assert tracing.version > steps / 20
    nodes, sampled, programs = tracing.typical()
    all_nodes, traced, all_programs = whole.typical()
    assert {p.name for p in programs} == {p.name for p in all_programs}
    for program in programs:
        (same,) = [p for p in all_programs if p.name == program.name]
        told = shares(nodes, sampled.self_ns, sampled.count, program.plan)
        true = shares(all_nodes, traced.self_ns, traced.count, same.plan)
        assert told.keys() == true.keys()
        assert max(abs(told[name] - true[name]) for name in told) < 0.03, (told, true)
