"""ONNX's own backend tests on flowscope: counts what passes, is not supported, is wrong.

python tests/helpers/onnx_suite.py node simple pytorch-converted pytorch-operator
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner

import flowscope as fs
from flowscope.onnx.backend import prepare

GROUPS = ["node", "simple", "pytorch-converted", "pytorch-operator"]
#: What is not compared: random numbers, and two units in the last place of float16.
NOT_COMPARED = ("test_bernoulli", "test_training_dropout", "test_attention_4d_causal_fp16")


def cases(group: str) -> list[Any]:
    """The tests of a group; those of nodes are computed, with NumPy's warnings."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return sorted(load_model_tests(kind=group), key=lambda c: str(c.name))


def data(case: Any) -> tuple[Any, list[tuple[list[Any], list[Any]]]]:
    """A test's model, and its inputs and outputs."""
    if case.data_sets:
        return case.model, [([*map(_array, i)], [*map(_array, o)]) for i, o in case.data_sets]
    folder = Path(case.model_dir)
    sets = []
    for one in sorted(folder.glob("test_data_set_*")):
        sides = [[*_read(one, side)] for side in ("input", "output")]
        sets.append((sides[0], sides[1]))
    return onnx.load(folder / "model.onnx"), sets


def _read(folder: Path, side: str) -> Iterator[Any]:
    for i in range(len([*folder.glob(f"{side}_*.pb")])):
        yield _array(onnx.TensorProto.FromString((folder / f"{side}_{i}.pb").read_bytes()))


def _array(value: Any) -> Any:
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def outcome(case: Any) -> tuple[str, str]:
    """ "passed", "unsupported" or "wrong", and why."""
    model, sets = data(case)
    try:
        prepared = prepare(model)
    except fs.errors.UnimplementedError as e:
        return "unsupported", str(e)
    for inputs, outputs in sets:
        found = prepared.run(inputs)
        try:
            Runner.assert_similar_outputs(outputs, found, case.rtol, case.atol)
        except AssertionError as e:
            return "wrong", str(e)
    return "passed", ""


def main(groups: list[str]) -> None:
    for group in groups:
        found: dict[str, list[str]] = {"passed": [], "unsupported": [], "wrong": []}
        for case in cases(group):
            kind, why = outcome(case)
            found[kind].append(f"  {case.name}: {' '.join(why.split())[:160]}")
        print(group, {k: len(v) for k, v in found.items()})
        print(*found["unsupported"], *found["wrong"], sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:] or GROUPS)
