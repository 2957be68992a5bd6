"""The page of all functions and ops is as the package is."""

from __future__ import annotations

import types
from pathlib import Path

import pytest
from test_names import module_of, sections

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


def rows() -> dict[str, list[str]]:
    topics, values = reference._entries()
    return {n: names for rows in (*topics.values(), values) for _, names in rows for n in names}


def test_functions_with_all_their_names() -> None:
    assert rows()["fs.matmul"] == ["fs.matmul", "fs.linalg.matmul", "fs.math.matmul"]
    assert reference._signature(fs.matmul).startswith("(a, b, transpose_a=False")


def test_every_public_name_is_on_the_page() -> None:
    found = rows()
    shown = {n for n in fs.__all__ if not isinstance(getattr(fs, n), types.ModuleType)}
    assert sorted(n for n in shown if f"fs.{n}" not in found) == []
    for module, names in sections().items():
        prefix = "fs" if module == "fs" else f"fs.{module}"
        there = [
            n for n in names if not isinstance(getattr(module_of(module), n), types.ModuleType)
        ]
        assert [n for n in there if f"{prefix}.{n}" not in found] == []
    assert {n for n in fs.errors.__dict__ if n.endswith("Error")} <= {
        n.rpartition(".")[2] for n in found
    }


@pytest.mark.parametrize(
    "name",
    [
        "Session", "Variable", "TensorArray", "FIFOQueue", "while_loop", "layers.Dense",
        "train.AdamOptimizer", "train.Saver", "nn.rnn_cell.LSTMCell", "nn.dynamic_rnn", "float32",
        "raw_ops.Switch", "raw_ops.ResourceApplyAdam", "errors.OutOfRangeError",
        "ConfigProto", "layers.dense",
        "show", "test.compute_gradient", "nest.flatten", "dtypes.experimental.int4", "newaxis",
    ],
)  # fmt: skip
def test_names_of_all_parts_are_on_the_page(name: str) -> None:
    assert f"fs.{name}" in rows()


def test_what_only_serves_a_module_is_not_public() -> None:
    names = rows()
    assert not {"fs.graph_util.Graph", "fs.test.np", "fs.ops", "fs.absent", "fs.strings.Any"} & set(
        names
    )


@pytest.mark.slow
def test_classes_have_their_methods_on_the_page(page: str) -> None:
    (row,) = [line for line in page.splitlines() if line.startswith("| `fs.Session(")]
    assert "`run`" in row
    assert "`partial_run`" in row
