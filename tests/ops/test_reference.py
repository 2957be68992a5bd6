"""The page of all functions and ops is as the package is."""

from __future__ import annotations

from pathlib import Path

import pytest

import flowscope as fs
from flowscope.graph.op import all_ops
from flowscope.ops import reference


@pytest.fixture(scope="module")
def page() -> str:
    return reference.page()


@pytest.mark.slow
def test_the_page_is_true(root: Path, page: str) -> None:
    written = (root / reference.PAGE).read_text(encoding="utf-8")
    assert written == page, "run `python -m flowscope.ops.reference`"


@pytest.mark.slow
def test_every_op_is_on_the_page(page: str) -> None:
    ours = [n for n, cls in all_ops().items() if cls.__module__.startswith("flowscope.")]
    assert [n for n in ours if f"| `{n}` |" not in page] == []


@pytest.mark.parametrize(
    ("op", "inputs"),
    [
        ("Exp", "x: float, complex"),
        ("Add", "a: number, string; b: number, string"),
        ("Select", "condition: bool; x: any; y: any"),
        ("BatchGather", "x: any; indices: int32, int64"),
        ("Concat", "xs*: value"),
        ("SparseTensorDenseMatMul", "indices: int64; values: number; shape: int64; b: number"),
    ],
)
def test_what_an_op_takes(op: str, inputs: str) -> None:
    row = reference._op_row(op, all_ops()[op])
    assert inputs in row


def test_functions_with_all_their_names() -> None:
    functions = {f: names for group in reference._functions().values() for f, names in group}
    assert functions[fs.matmul] == ["fs.matmul", "fs.linalg.matmul", "fs.math.matmul"]
    assert reference._signature(fs.matmul).startswith("(a, b, transpose_a=False")
