"""Loops by hand as loops of the program: with the same bits as token by token."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import flowscope as fs
from flowscope import raw_ops
from flowscope.control.dynamic.primitives import Primitive
from flowscope.plan.verify import verify

pytestmark = pytest.mark.usefixtures("graph")
MODES = ("compiled", "op", "tokens")


def into(name: str, value: Any, is_constant: bool = True) -> Any:
    return raw_ops.Enter(data=fs.convert_to_tensor(value), frame_name=name, is_constant=is_constant)


def loop(name: str, n: Any, starts: Any, body: Any, extra: Any = None) -> list[Any]:
    """Counts to n; `body(i, values)` gives the next values; `extra` is run with the counter."""
    zero = into(name, fs.cast(n, fs.int32) * 0, False)
    i, _ = raw_ops.Merge(inputs=[zero, zero])
    merges = []
    for start in starts:
        entered = into(name, start, False)
        merges.append(raw_ops.Merge(inputs=[entered, entered])[0])
    test = fs.less(i, into(name, n))
    if extra is not None:
        test = extra(i, test)
    pred = raw_ops.LoopCond(input=test)
    _, counted = raw_ops.Switch(data=i, pred=pred)
    sides = [raw_ops.Switch(data=m, pred=pred) for m in merges]
    i.op._update_input(1, raw_ops.NextIteration(data=counted + fs.ones_like(counted)))
    for merge, following in zip(merges, body(counted, [s[1] for s in sides]), strict=True):
        merge.op._update_input(1, raw_ops.NextIteration(data=following))
    return [raw_ops.Exit(data=s[0]) for s in sides]


def by_hand(plan: Any) -> list[str]:
    return [n.name for n in plan.program.walk() if isinstance(n.op, Primitive)]


def outcomes(fetches: Any, feeds: Any, state: Any = ()) -> list[Any]:
    found = []
    for mode in MODES:
        with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
            sess.run(fs.global_variables_initializer())
            plan = sess.plan(fetches, list(feeds))
            verify(plan.program)
            assert bool(by_hand(plan)) is (mode != "compiled")
            values = [*sess.run(fetches, feeds), *sess.run(list(state))]
            found.append([(np.asarray(v).dtype, np.asarray(v).tobytes()) for v in values])
    return found


@pytest.mark.parametrize("count", [0, 1, 7])
def test_variables_and_what_comes_in(count: int) -> None:
    x, n = fs.placeholder(fs.float32, [2]), fs.placeholder(fs.int32, [])
    c = into("main", fs.exp(x))
    y, z = loop("main", n, [x, x * 2.0], lambda i, v: [v[1] * c, fs.tanh(v[0])])
    one, *others = outcomes([y, z, y + z], {x: np.array([0.5, 1.5], "f"), n: count})
    assert others == [one, one]


@pytest.mark.parametrize("count", [0, 1, 4])
def test_loops_in_loops(count: int) -> None:
    x, n = fs.placeholder(fs.float32, []), fs.placeholder(fs.int32, [])
    of_outer = into("outer", x)

    def body(i: Any, values: Any) -> Any:
        of_inner = into("inner", of_outer)
        return loop("inner", i, values, lambda j, v: [v[0] * of_inner + fs.cast(j, fs.float32)])

    (y,) = loop("outer", n, [x], body)
    one, *others = outcomes([y], {x: 0.75, n: count})
    assert others == [one, one]


def test_effects_run_as_often_as_token_by_token() -> None:
    in_body, in_test = fs.Variable(0, name="a"), fs.Variable(0, name="b")
    x, n = fs.placeholder(fs.float32, []), fs.placeholder(fs.int32, [])

    def body(i: Any, values: Any) -> Any:
        with fs.control_dependencies([in_body.assign_add(1 + i * 0).op]):
            return [fs.identity(values[0]) * 2.0]

    def test(i: Any, goes_on: Any) -> Any:
        with fs.control_dependencies([in_test.assign_add(1 + i * 0).op]):
            return fs.identity(goes_on)

    (y,) = loop("main", n, [x], body, test)
    one, *others = outcomes([y], {x: 1.0, n: 3}, [in_body, in_test])
    assert others == [one, one]
    assert one[1][1] == np.int32(3).tobytes() and one[2][1] == np.int32(4).tobytes()


def test_random_numbers_are_drawn_with_the_same_bits() -> None:
    x, n = fs.placeholder(fs.float32, [None]), fs.placeholder(fs.int32, [])
    fs.set_random_seed(5)
    (y,) = loop("main", n, [x], lambda i, v: [v[0] + fs.random_uniform(fs.shape(v[0]), seed=3)])
    one, *others = outcomes([y], {x: np.zeros(2, "f"), n: 3})
    assert others == [one, one]


def expression(rng: random.Random, values: Any, depth: int = 3) -> Any:
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(values)
    a, b = (expression(rng, values, depth - 1) for _ in range(2))
    return rng.choice((
        lambda: fs.tanh(a) + b, lambda: a * b, lambda: fs.maximum(a, fs.sin(b)),
        lambda: fs.where(a > b, a, b), lambda: a - b,
    ))()  # fmt: skip


def nest(rng: random.Random, name: str, n: Any, starts: Any, outside: Any, depth: int) -> Any:
    entered = [into(name, v) for v in outside]

    def body(i: Any, values: Any) -> Any:
        known = [*values, *entered, fs.cast(i, fs.float32)]
        nexts = [expression(rng, known) for _ in values]
        if depth and rng.random() < 0.6:
            inner = nest(rng, f"{name}_in", i, nexts, known, depth - 1)
            nexts = inner if rng.random() < 0.5 else [*inner[:-1], nexts[-1]]
        # What does not follow from a Switch would run for ever.
        return [fs.tanh(v + old * 0.0) for v, old in zip(nexts, values, strict=True)]

    return loop(name, n, starts, body)


SEEDS = [*range(6), *[pytest.param(i, marks=pytest.mark.slow) for i in range(6, 80)]]


@pytest.mark.parametrize("seed", SEEDS)
def test_random_nests_have_the_same_bits(seed: int) -> None:
    rng = random.Random(seed)
    x, n = fs.placeholder(fs.float32, []), fs.placeholder(fs.int32, [])
    given = [x, fs.exp(x)]
    first = nest(rng, "first", n, [x, x * 0.5], given, 2)
    second = nest(rng, "second", n, first, [*given, first[0]], 1)
    feeds = {x: np.float32(rng.uniform(-1, 1)), n: rng.randrange(4)}
    one, *others = outcomes([*first, *second], feeds)
    assert others == [one, one]


def other_forms() -> dict[str, Any]:
    x, n = fs.placeholder(fs.float32, [None]), fs.placeholder(fs.int32, [])
    entered = into("grows", x, False)
    v, _ = raw_ops.Merge(inputs=[entered, entered])
    test = raw_ops.LoopCond(input=fs.less(fs.reduce_sum(fs.ones_like(v)), 9.0))
    out, go = raw_ops.Switch(data=v, pred=test)
    doubled = fs.concat([go, fs.reshape(go, [-1]) * 2.0], 0)
    v.op._update_input(1, raw_ops.NextIteration(data=doubled))
    y = fs.reduce_sum(x)
    off, on = raw_ops.Switch(data=y, pred=fs.less(y, 100.0))
    (in_branch,) = loop("dead", n, [on], lambda i, v: [v[0] + 1.0])

    def with_branch(i: Any, values: Any) -> Any:
        f, t = raw_ops.Switch(data=values[0], pred=fs.less(values[0], into("b", 3.0)))
        return [raw_ops.Merge(inputs=[f * 2.0, t + 1.0]).output]

    (branch,) = loop("b", n, [y], with_branch)
    merged = raw_ops.Merge(inputs=[off, in_branch]).output
    return {"branch": branch, "dead": merged, "x": x, "n": n, "grows": raw_ops.Exit(data=out)}


@pytest.mark.parametrize("name", ["branch", "dead"])
def test_what_has_another_form_stays_and_runs(name: str) -> None:
    made = other_forms()
    feeds = {made["x"]: np.array([1.0, 2.0], "f"), made["n"]: 3}
    found = []
    for mode in MODES:
        with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
            assert by_hand(sess.plan(made[name], list(feeds)))
            found.append(sess.run(made[name], feeds))
    assert found[0] == found[1] == found[2]


def test_a_variable_that_changes_its_shape_is_right_in_every_mode() -> None:
    made = other_forms()
    found = []
    for mode in MODES:
        with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
            found.append(sess.run(made["grows"], {made["x"]: np.array([1.0, 2.0], "f")}))
    assert len(found[0]) == 16
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


def test_a_loop_by_hand_is_cut_like_any_other() -> None:
    x, n = fs.placeholder(fs.float32, []), fs.placeholder(fs.int32, [])

    def body(i: Any, values: Any) -> Any:
        with fs.device("/cpu:1"):
            return [fs.sin(values[0])]

    (y,) = loop("main", n, [x], body)
    config = fs.ConfigProto(device_count={"CPU": 2}, split_partitions="always")
    alone = fs.ConfigProto(allow_soft_placement=True)
    with fs.Session(config=alone) as one, fs.Session(config=config) as two:
        assert len(two.plan(y, [x, n]).partitions) == 2
        assert one.run(y, {x: 0.5, n: 5}) == two.run(y, {x: 0.5, n: 5})


def test_tensors_of_the_loop_are_found() -> None:
    x, n = fs.placeholder(fs.float32, []), fs.placeholder(fs.int32, [])
    made: list[Any] = []

    def body(i: Any, values: Any) -> Any:
        made.append(fs.sin(values[0]))
        return made

    (y,) = loop("main", n, [x], body)
    with fs.Session() as sess:
        plan = sess.plan(y, [x, n])
    (inside,), (result,) = plan.locate(made[0]), plan.locate(y)
    assert inside.kind == "value" and inside.value.node.op.type == "Sin"
    assert result.value.node.op.type == "Loop" and result.value.node.name == "main/Loop"
