"""Programs: which layouts follow, and what is refused at the user's line."""

from __future__ import annotations

import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import DTypeError, InvalidArgumentError

cc = fs.coconet
N, H = cc.Size("N"), cc.Size("H")


WORLD = cc.Group()


def tensor(name="x", layout=cc.Local, shape=(N, H), dtype=fs.float32, group=WORLD):
    return cc.Tensor(name, dtype, shape, layout, group)


A, R = tensor("a"), tensor("r", cc.Replicated)
S0, S1 = tensor("s0", cc.Sliced(0)), tensor("s1", cc.Sliced(1))
W = tensor("w", cc.Replicated, (H, H))
W0, W1 = tensor("w0", cc.Sliced(0), (H, H)), tensor("w1", cc.Sliced(1), (H, H))
B, ONE = tensor("b", cc.Replicated, (H,)), tensor("one", cc.Replicated, (1, H))
LR = cc.Scalar("lr")


@pytest.mark.parametrize(
    ("made", "layout"),
    [
        (A + A, "Local"),
        (R * R, "Replicated"),
        (S0 - S0, "Sliced(0)"),
        (A + R, "Local"),
        (S0 + R, "Sliced(0)"),
        (S1 / B, "Sliced(1)"),
        (S0 + B, "Sliced(0)"),
        (S0 + ONE, "Sliced(0)"),
        (LR * S1, "Sliced(1)"),
        (2.0 ** A, "Local"),
        (cc.matmul(A, W), "Local"),
        (cc.matmul(R, W), "Replicated"),
        (cc.matmul(S0, W), "Sliced(0)"),
        (cc.matmul(R, W1), "Sliced(1)"),
        (cc.matmul(S1, W0), "Local"),
        (cc.all_reduce(A), "Replicated"),
        (cc.reduce_scatter(A, dim=1), "Sliced(1)"),
        (cc.all_gather(S1), "Replicated"),
        (cc.slice(R, 1), "Sliced(1)"),
        (cc.reduce(A, root=1), "Local"),
        (cc.broadcast(A), "Replicated"),
        (cc.send(S0, cc.Group("next")), "Sliced(0)"),
        (cc.norm(S0), "Replicated"),
        (cc.reduce_sum(A), "Local"),
        (cc.dropout(S1, 0.5), "Sliced(1)"),
        (cc.ite(S0 > S0, S0, 0.0), "Sliced(0)"),
        (cc.update(R, S0), "Replicated"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)  # fmt: skip
def test_layouts_follow_from_those_of_the_operands(made, layout):
    assert str(made.layout) == layout


def test_a_whole_operand_beside_slices_is_cut_like_them():
    total = S1 + B
    assert [x.op.label for x in total.operands if isinstance(x, cc.Stage)] == ["slice"]
    assert total.operands[1].op.dim == 0


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: A + S0, "expected no Local operand beside a Sliced one"),
        (lambda: S0 + S1, "sliced in the same dimension"),
        (lambda: S0 + tensor("row", cc.Sliced(0), (H,)), "sliced in the same dimension"),
        (lambda: cc.all_reduce(R), "expected a Local tensor for all_reduce, got Replicated"),
        (lambda: cc.all_gather(A), "expected a Sliced tensor for all_gather, got Local"),
        (lambda: cc.slice(S0), "expected a Replicated tensor for slice"),
        (lambda: cc.reduce_scatter(A, dim=2), "expected a dimension of [N,H] to slice, got 2"),
        (lambda: cc.reduce_scatter(A, "add"), "expected a reduction of sum, mean"),
        (lambda: cc.matmul(S1, W), "expected a product of Sliced and Replicated"),
        (lambda: cc.matmul(A, W0), "expected a product of Sliced and Replicated"),
        (lambda: cc.matmul(A, B), "expected matrices [..., m, k] and [k, n]"),
        (lambda: A + tensor("y", shape=(N, 3)), "trailing dimensions agree"),
        (lambda: A + tensor("y", group=cc.Group("other")), "expected operands of one group"),
        (lambda: cc.send(A, cc.Group()), "another group than world"),
        (lambda: cc.send(A, "next"), "expected a Group"),
        (lambda: cc.update(R, A), "expected the layout Replicated of r"),
        (lambda: cc.update(R, B), "expected [N,H] to update with, got [H]"),
        (lambda: cc.update(LR, LR), "expected a Tensor or a Variable, got the Scalar lr"),
        (lambda: cc.update(R + R, R), "expected an argument of the program"),
        (lambda: cc.update(R, 1.0), "got a number"),
        (lambda: cc.dropout(A, 1.0), "expected a rate in [0, 1)"),
        (lambda: cc.norm(3.0), "expected a value of the program"),
        (lambda: cc.sqrt("x"), "expected values of the program and numbers"),
        (lambda: A + "x", "expected values of the program and numbers"),
        (lambda: cc.Sliced(-1), "expected a dimension of at least 0"),
        (lambda: cc.Tensor("a b", fs.float32, [N]), "expected a name that is an identifier"),
        (lambda: cc.Tensor("a", fs.float32, [N], cc.Sliced(1)), "a dimension below 1 to slice"),
        (lambda: cc.Tensor("a", fs.float32, [None]), "lengths and symbolic sizes"),
        (lambda: cc.Tensor("a", fs.float32, [N], "Local"), "expected Local, Replicated"),
        (lambda: cc.Pipeline("p", [A], [A]), "expected stages as outputs"),
        (lambda: cc.Pipeline("p", [A], []), "expected a stage as output"),
        (lambda: cc.Pipeline("p", [A], [A + R]), "expected r among the arguments"),
        (lambda: cc.Pipeline("p", [A, tensor("a")], [A + A]), "got a twice"),
        (
            lambda: cc.Pipeline("p", [R], [cc.update(R, R + 1.0), cc.update(R, R)]),
            "expected one update of r, got two",
        ),
        (lambda: bool(A > A), "ite"),
    ],
)
def test_what_does_not_go_together_is_refused_where_it_is_written(make, text):
    with pytest.raises(InvalidArgumentError) as caught:
        make()
    assert text in str(caught.value)


def test_an_error_lists_the_operands_and_where_they_were_made():
    y = tensor("y", cc.Sliced(0))
    with pytest.raises(InvalidArgumentError) as caught:
        cc.maximum(A, y)
    text = str(caught.value)
    assert "a: float32[N,H] Local   made in test_program.py, line" in text
    assert "y: float32[N,H] Sliced(0)   made in test_program.py, line" in text


@pytest.mark.parametrize(
    "make",
    [
        lambda: A + tensor("y", dtype=fs.float16),
        lambda: cc.matmul(tensor("i", dtype=fs.int32), tensor("j", shape=(H, H), dtype=fs.int32)),
        lambda: cc.ite(A, A, A),
        lambda: (A > A) + (A > A),
        lambda: cc.dropout(tensor("i", dtype=fs.int32), 0.5),
        lambda: cc.update(R, cc.cast(R, fs.float16)),
    ],
)
def test_dtypes_are_not_promoted(make):
    with pytest.raises(DTypeError):
        make()


def test_a_stage_is_called_as_the_variable_that_takes_it():
    average = cc.all_reduce(A, "mean")
    pipe = cc.Pipeline("p", [A, R], [cc.update(R, average)])
    assert [s.name for s in pipe.graph.stages] == ["average", "new_r"]
    named = cc.Pipeline("p", [A], [cc.all_reduce(A, name="sum_of_all")])
    assert [s.name for s in named.graph.stages] == ["sum_of_all"]


def test_a_program_means_what_numpy_says_rank_by_rank():
    total = cc.all_reduce(A, "mean")
    size = cc.norm(total)
    pipe = cc.Pipeline("p", [A, R, LR], [cc.update(R, R - LR * total / size)])
    xs = [np.full((2, 3), i, np.float32) for i in (1.0, 2.0, 6.0)]
    r, mean = np.ones((2, 3), np.float32), np.full((2, 3), 3.0, np.float32)
    outputs, states = cc.schedule(pipe).evaluate({A: xs, R: [r] * 3, LR: [0.5]}, 3)
    assert states["r"] is outputs["new_r"]
    for one in outputs["new_r"]:
        np.testing.assert_allclose(one, r - 0.5 * mean / np.linalg.norm(mean), rtol=1e-6)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"a": [np.zeros((2, 3)), np.zeros((2, 4))]}, "expected H = 3 as a dimension of a, got 4"),
        ({"a": [np.zeros(2), np.zeros(2)]}, "expected [N,H] for a, got [2] of rank 0"),
        ({}, "expected values of a, got none"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(values, text):
    pipe = cc.Pipeline("p", [A], [cc.all_reduce(A)])
    with pytest.raises(InvalidArgumentError) as caught:
        cc.schedule(pipe).evaluate(values, 2)
    assert text in str(caught.value)
