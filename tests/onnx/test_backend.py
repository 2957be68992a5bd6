"""ONNX's own backend tests: every fifth of the nodes, all simple and PyTorch ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_suite as suite
import pytest
from onnx import helper

from flowscope.onnx import backend

#: Reasons for which a node test may be unsupported.
REASONS = (
    *("FLOAT4E2M1", "FLOAT8E8M0", "ImageDecoder", "ai.onnx.ml", "sequences and optionals"),
    *("a scan of batches", "must be known when the model is loaded", "known rank"),
)


def check(cases: list[Any]) -> None:
    wrong, passed = [], 0
    with np.errstate(all="ignore"):
        for case in cases:
            if case.name.startswith(suite.NOT_COMPARED):
                continue
            kind, why = suite.outcome(case)
            passed += kind == "passed"
            if kind == "wrong" or (kind == "unsupported" and not any(r in why for r in REASONS)):
                wrong.append((case.name, why))
    assert not wrong
    assert passed >= 0.93 * len(cases)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_fifth_node() -> None:
    check(suite.cases("node")[::5])


@pytest.mark.slow
@pytest.mark.parametrize("group", suite.GROUPS[1:])
def test_whole_models(group: str) -> None:
    check(suite.cases(group))


def test_one_node() -> None:
    node = helper.make_node("Add", ["a", "b"], ["c"])
    (found,) = backend.run_node(node, [np.float32([1, 2]), np.float32([3, 4])])
    assert found.tolist() == [4, 6]
    assert backend.supports_device("CPU")
    assert not backend.supports_device("CUDA")
