"""Transformations: what they make of a schedule, and why an illegal one is refused."""

from __future__ import annotations

import random

import pytest
from random_schedules import RandomProgram, illegal, schedules

import flowscope as fs
from flowscope.errors import InvalidArgumentError, NotFoundError

cc = fs.coconet


def momentum():
    """Momentum on the mean of the ranks' gradients."""
    n = cc.Size("N")
    g = cc.Tensor("g", fs.float32, [n], cc.Local)
    p, m = cc.Tensor("p", fs.float32, [n]), cc.Tensor("m", fs.float32, [n])
    lr = cc.Scalar("lr")
    mean = cc.all_reduce(g, "mean")
    new_m = cc.update(m, m * 0.9 + mean)
    return cc.Pipeline("momentum", [g, p, m, lr], [cc.update(p, p - lr * new_m)])


def start():
    return cc.schedule(momentum())


COMPUTATIONS = ["multiply_1", "add_1", "new_m", "multiply_2", "subtract_1", "new_p"]


def sliced():
    return start().split("mean").reorder("ag_mean", *COMPUTATIONS)


def zero():
    return sliced().as_slice("m").dead("ag_new_m")


def test_the_text_of_a_schedule_reads_as_a_program():
    fused = zero().fuse(
        "rs_mean", "multiply_1", "add_1", "new_m", "multiply_2", "slice_p", "subtract_1", "new_p",
        "ag_new_p",
    )  # fmt: skip
    lines = [" ".join(line.split()) for line in fused.text().splitlines()]
    assert lines == [
        "momentum(g: float32[N] Local, p: float32[N] Replicated, m: float32[N] Sliced(0), "
        "lr: float32[] Replicated)",
        "fused_ag_new_p = fuse all_reduce:",
        "multiply_1 = m * 0.9 float32[N] Sliced(0)",
        'rs_mean = reduce_scatter(g, "mean", dim=0) float32[N] Sliced(0)',
        "add_1 = multiply_1 + rs_mean float32[N] Sliced(0)",
        "new_m = update(m, add_1) float32[N] Sliced(0)",
        "multiply_2 = lr * new_m float32[N] Sliced(0)",
        "slice_p = slice(p, dim=0) float32[N] Sliced(0)",
        "subtract_1 = slice_p - multiply_2 float32[N] Sliced(0)",
        "new_p = update(p, subtract_1) float32[N] Sliced(0)",
        "ag_new_p = all_gather(new_p, into=p) float32[N] Replicated",
        "return new_p=ag_new_p",
    ]


def test_a_schedule_is_a_value_and_can_be_undone_and_replayed():
    first = start()
    before = first.text()
    last = zero()
    assert first.text() == before
    assert last.undo().undo().text() == sliced().text()
    with pytest.raises(NotFoundError):
        first.undo()
    namespace = {"fs": fs, "pipeline": first.pipeline}
    exec(last.python(), namespace)
    assert namespace["schedule"].text() == last.text()
    assert [s.name for s in last.steps] == ["split", "reorder", "as_slice", "dead"]


def test_stages_are_named_by_themselves_too():
    g = cc.Tensor("g", fs.float32, [4], cc.Local)
    total = cc.all_reduce(g)
    root = cc.tanh(total)
    schedule = cc.schedule(cc.Pipeline("p", [g], [root])).split(total).reorder("ag_total", root)
    assert [s.name for s in schedule.graph.stages] == ["rs_total", "root", "ag_root"]
    with pytest.raises(InvalidArgumentError, match="expected a value of p"):
        schedule.fuse(cc.tanh(total), root)


def test_a_split_may_go_over_one_rank():
    text = start().split("mean", "root", 1).text()
    assert 'r_mean = reduce(g, "mean", root=1)' in text
    assert "b_mean = broadcast(r_mean, root=1)" in text


def test_what_several_all_gathers_give_is_gathered_once_each():
    names = [s.name for s in sliced().graph.stages]
    assert [x for x in names if x.startswith("ag_")] == ["ag_new_m", "ag_new_p"]
    partly = start().split("mean").reorder("ag_mean", "add_1")
    assert [s.name for s in partly.graph.stages][:5] == [
        "multiply_1", "rs_mean", "slice_multiply_1", "add_1", "ag_add_1",
    ]  # fmt: skip


def test_a_norm_of_slices_is_replicated_and_not_gathered():
    g = cc.Tensor("g", fs.float32, [8], cc.Local)
    total = cc.all_reduce(g)
    size = cc.norm(total)
    unit = total / size
    schedule = cc.schedule(cc.Pipeline("p", [g], [unit])).split(total)
    schedule = schedule.reorder("ag_total", size, unit)
    assert [s.name for s in schedule.graph.stages] == ["rs_total", "size", "unit", "ag_unit"]


def test_what_is_sent_is_sliced_and_gathered_by_those_who_get_it():
    here, there = cc.Group("here"), cc.Group("there")
    x = cc.Tensor("x", fs.float32, [8], cc.Local, here)
    total = cc.all_reduce(x)
    sent = cc.send(total, there)
    out = cc.tanh(sent)
    schedule = cc.schedule(cc.Pipeline("p", [x], [out])).split(total).reorder("ag_total", sent)
    assert [(s.name, str(s.type)) for s in schedule.graph.stages] == [
        ("rs_total", "float32[8] Sliced(0) on here"),
        ("sent", "float32[8] Sliced(0) on there"),
        ("ag_sent", "float32[8] Replicated on there"),
        ("out", "float32[8] Replicated on there"),
    ]


@pytest.mark.parametrize(
    ("apply", "why", "legal"),
    [
        (lambda: start().split("add_1"), "add_1 is no all_reduce", 'split("mean"'),
        (lambda: start().split("mean", "slices", 1), "expected a dimension of [N]", 'split("mean"'),
        (lambda: start().split("men"), "got 'men'; there are mean", 'split("mean"'),
        (lambda: start().split("mean", "half"), 'expected "slices" or "root"', 'split("mean"'),
        (lambda: start().reorder("mean", "add_1"), "mean is no all_gather", "No reorder is legal"),
        (
            lambda: start().split("mean").reorder("ag_mean", "subtract_1"),
            "none of subtract_1 uses ag_mean",
            'reorder("ag_mean", "add_1")',
        ),
        (lambda: sliced().as_slice("g"), "g is no Replicated tensor", 'as_slice("'),
        (lambda: start().as_slice("m"), "multiply_1, new_m takes all of", "No as_slice is legal"),
        (lambda: sliced().dead("ag_new_m"), "takes ag_new_m as new value", "No dead is legal"),
        (lambda: sliced().as_slice("p").dead("ag_new_p"), "ag_new_p is an output", "No dead"),
        (lambda: start().fuse("mean", "add_1"), "mean is a all_reduce, which is not", "fuse("),
        (lambda: start().fuse("multiply_1"), "expected two stages", "fuse("),
        (
            lambda: start().fuse("multiply_1", "new_m"),
            "it makes a circle: add_1 lies between",
            'fuse("multiply_1", "add_1"',
        ),
        (
            lambda: sliced().fuse("new_p", "ag_new_p"),
            "is fused with the reduce_scatter before it",
            "fuse(",
        ),
        (
            lambda: start().fuse("add_1", "new_m").fuse("new_m", "multiply_2"),
            "of which add_1 is missing",
            "fuse(",
        ),
        (lambda: start().overlap("mean", "new_p"), "new_p uses nothing that mean", "overlap("),
        (lambda: start().overlap("mean"), "expected a producer and a consumer", "overlap("),
        (lambda: start().overlap("multiply_1", "add_1"), "none of them communicates", "overlap("),
    ],
)  # fmt: skip
def test_an_illegal_transformation_says_why_and_which_one_is_legal(apply, why, legal):
    with pytest.raises(InvalidArgumentError) as caught:
        apply()
    text = str(caught.value)
    assert why in text
    assert legal in text


def test_two_groups_may_not_wait_for_each_other():
    """Each is whole in itself, but together they would stand in a circle."""
    x = cc.Tensor("x", fs.float32, [4])
    a, d = cc.tanh(x, "a"), cc.exp(x, "d")
    b, c = cc.maximum(a, x, "b"), cc.minimum(d, x, "c")
    schedule = cc.schedule(cc.Pipeline("p", [x], [b, c])).fuse("a", "c")
    with pytest.raises(InvalidArgumentError, match="it makes a circle"):
        schedule.fuse("d", "b")


def test_a_norm_in_a_chain_is_not_done_in_chunks():
    g = cc.Tensor("g", fs.float32, [8], cc.Local)
    total = cc.all_reduce(g)
    schedule = cc.schedule(cc.Pipeline("p", [g], [cc.norm(total, "size")]))
    with pytest.raises(InvalidArgumentError, match="size needs all of its operand"):
        schedule.overlap(total, "size")


def test_legal_ones_can_be_applied_and_are_those_that_are_listed():
    for step, after in sliced().legal().items():
        assert sliced().apply(step).text() == after.text()


@pytest.mark.parametrize("seed", range(12))
def test_random_illegal_transformations_are_refused(seed):
    chance = random.Random(seed)
    tried = 0
    for one in schedules(RandomProgram(seed), 3, 10):
        step = illegal(one, chance)
        if step is not None:
            with pytest.raises(InvalidArgumentError):
                getattr(one, step[0])(*step[1])
            tried += 1
    assert tried
