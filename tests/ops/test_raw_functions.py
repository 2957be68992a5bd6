"""Raw ops that are plain functions, beside TensorFlow 2.21: data/tensorflow_raw_ops.jsonl."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import DTypeError, UnimplementedError
from flowscope.ops.raw_functions import TABLE

DATA = Path(__file__).parent / "data" / "tensorflow_raw_ops.jsonl"
ROWS = {row["op"]: row for row in map(json.loads, DATA.read_text("utf-8").splitlines())}
#: What the rows' arguments are written with.
WORDS = {
    "fs": fs, "C": lambda v: np.array(v, np.complex64), "I8": lambda v: np.array(v, np.int64),
    "F8": np.float64,
}  # fmt: skip


def made(op: str) -> Any:
    """The result of a raw op for the arguments of its row."""
    return eval(f"fs.raw_ops.{op}({ROWS[op]['arguments']})", WORDS)  # noqa: S307


def check(found: Any, wanted: Any) -> None:
    """Asserts that values are TensorFlow's, and of its dtypes."""
    if isinstance(wanted, list):
        assert len(found) == len(wanted)
        for f, w in zip(found, wanted, strict=True):
            check(f, w)
    elif isinstance(wanted, dict):
        value = np.asarray(found)
        if value.dtype.names:  # a quantised number
            value = value.view(np.uint8)
        assert str(value.dtype) == wanted["d"]
        if value.dtype.kind == "c":
            value = np.stack([value.real, value.imag])
        np.testing.assert_allclose(value, np.array(wanted["v"]), 2e-4, 1e-5)
    elif wanted is not None:
        assert found.decode("latin1") == wanted


def test_the_table_is_the_rows() -> None:
    assert list(TABLE) == list(ROWS)
    assert len(TABLE) > 350


@pytest.mark.parametrize("op", TABLE)
def test_arguments_are_tensorflows(op: str) -> None:
    ours = inspect.signature(getattr(fs.raw_ops, op)).parameters.values()
    theirs = inspect.signature(eval(f"lambda {ROWS[op]['signature']}: 0", WORDS)).parameters  # noqa: S307
    assert [(p.name, p.default) for p in ours] == [(p.name, p.default) for p in theirs.values()]
    assert all(p.kind is p.KEYWORD_ONLY for p in ours)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_values_are_tensorflows(mode: str) -> None:
    with fs.Graph().as_default():
        results = {op: made(op) for op, row in ROWS.items() if "arguments" in row}
        fetches = {op: list(r) if isinstance(r, list | tuple) else r for op, r in results.items()}
        with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
            found = sess.run(fetches)
    for op, values in found.items():
        assert ROWS[op]["outputs"] == (
            list(results[op]._fields) if hasattr(results[op], "_fields") else None
        ), op
        check(values, ROWS[op]["value"])


def test_names_and_what_is_refused(graph: Any) -> None:
    product = fs.raw_ops.MatMul(a=[[1.0]], b=[[2.0]])
    assert product.op.name == "MatMul"
    assert product.op.origin.place.filename == __file__
    assert fs.raw_ops.Sum(input=[1.0], axis=0, name="total").op.name == "total"
    assert fs.raw_ops.SparseReduceSum(
        input_indices=np.zeros((1, 1), np.int64), input_values=[2.0], input_shape=[1],
        reduction_axes=[0], name="s",
    ).op.name == "s"  # fmt: skip
    with pytest.raises(
        UnimplementedError, match=r"raw_ops.MatMul: expected grad_a=False.*got True"
    ):
        fs.raw_ops.MatMul(a=[[1.0]], b=[[2.0]], grad_a=True)
    with pytest.raises(TypeError, match=r"MatMul\(\) takes 0 positional arguments"):
        fs.raw_ops.MatMul([[1.0]], [[2.0]])
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'b'"):
        fs.raw_ops.MatMul(a=[[1.0]])
    with pytest.raises(
        DTypeError, match="expected the dtype float64, which follows from the input"
    ):
        fs.raw_ops.Real(input=np.complex128(1 + 2j))
    assert fs.raw_ops.Real(input=np.complex128(1 + 2j), Tout=fs.float64).dtype is fs.float64
    with pytest.raises(AttributeError, match="no attribute 'MatMull': did you mean 'MatMul'"):
        _ = fs.raw_ops.MatMull


def test_gradients_flow_through(graph: Any, sess: Any) -> None:
    x = fs.constant([[1.0, 2.0]])
    y = fs.raw_ops.MatMul(a=x, b=[[3.0], [4.0]])
    assert sess.run(fs.gradients(y, x)[0]).tolist() == [[3.0, 4.0]]


def test_seeds_of_two_numbers(graph: Any, sess: Any) -> None:
    a, b, c = (
        fs.raw_ops.RandomUniform(shape=[4], dtype=fs.float32, seed=1, seed2=s) for s in (2, 2, 3)
    )
    values = sess.run([a, b, c])
    assert (values[0] == values[1]).all()
    assert (values[0] != values[2]).any()
