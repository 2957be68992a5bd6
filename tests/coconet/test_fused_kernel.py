"""The fused operation: blocks change no bit, threads and broadcasts included."""

from __future__ import annotations

import numpy as np
import pytest

import flowscope as fs
from flowscope.coconet.chances import kept
from flowscope.coconet.fused_kernel import BLOCK, FusedElementwise, computed, read, written
from flowscope.errors import InvalidArgumentError

PROGRAM = [
    ("fold.mean", (0, 1, 2)),
    ("multiply", (5, 3)),
    ("sqrt", (6,)),
    ("greater", (7, 4)),
    ("ite", (8, 7, 0.25)),
    ("cast.float16", (9,)),
    ("pow", (9, 2.0)),
    ("relu", (11,)),
]
DRAW = np.random.default_rng(3)


@pytest.mark.parametrize("shape", [(0,), (1,), (7,), (3 * BLOCK + 5,), (20 * BLOCK,), (9, 8, 7)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_blocks_change_no_bit(graph, shape, dtype):
    arrays = [DRAW.uniform(0.1, 2.0, shape).astype(dtype) for _ in range(4)]
    arrays.append(np.asarray(0.7, dtype))
    op = FusedElementwise(written(PROGRAM), (12, 9, 10), (dtype, dtype, "float16"))
    outputs = list(graph.add(op, [fs.constant(x) for x in arrays]).outputs)
    values = computed(np, PROGRAM, list(arrays))
    with fs.Session() as sess:
        for one, at in zip(sess.run(outputs), op.results, strict=True):
            assert one.shape == shape
            np.testing.assert_array_equal(one, values[at])


def test_trailing_dimensions_are_broadcast_in_every_block(graph):
    x = DRAW.normal(size=(4000, 33)).astype("f4")
    row, column = DRAW.normal(size=33).astype("f4"), DRAW.normal(size=(4000, 1)).astype("f4")
    program = [("add", (0, 1)), ("multiply", (3, 2))]
    op = FusedElementwise(written(program), (4,), ("float32",))
    (found,) = graph.add(op, [fs.constant(a) for a in (x, row, column)]).outputs
    with fs.Session() as sess:
        np.testing.assert_array_equal(sess.run(found), (x + row) * column)


def test_instructions_are_read_as_they_were_written():
    assert read(written(PROGRAM)) == PROGRAM
    with pytest.raises(InvalidArgumentError, match="shapes that go together"):
        FusedElementwise("add 0 1", (2,), ("float32",)).infer(
            fs.Spec(fs.float32, (3,)), fs.Spec(fs.float32, (4,))
        )


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_chances_follow_from_the_place_in_the_whole(dim):
    shape = (5, 4, 3)
    whole = kept(np, 123, shape, 0, (0, 5), 0.5)
    cuts = [0, 1, 3, shape[dim]]
    parts = [kept(np, 123, shape, dim, (a, b), 0.5) for a, b in zip(cuts, cuts[1:], strict=False)]
    np.testing.assert_array_equal(np.concatenate(parts, dim), whole)


def test_chances_are_even_and_differ_by_key():
    many = kept(np, 7, (200_000,), 0, (0, 200_000), 0.3)
    assert abs(many.mean() - 0.7) < 0.005
    other = kept(np, 8, (200_000,), 0, (0, 200_000), 0.3)
    assert abs((many == other).mean() - (0.49 + 0.09)) < 0.01
    assert abs(np.corrcoef(many[1:], many[:-1])[0, 1]) < 0.01
