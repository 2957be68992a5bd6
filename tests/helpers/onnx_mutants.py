"""ONNX models with random damage: loading one gives a model or one error of flowscope's.

    python tests/helpers/onnx_mutants.py 100000 --seed 7

prints those that raise something else, or take too long. The models are small ones of `onnx_models`
and those of the package's own node tests.
"""

from __future__ import annotations

import argparse
import random
import time
import traceback
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import onnx
from onnx import TensorProto
from onnx.backend.test.loader import load_model_tests
from onnx_models import residual_network, transformer

import flowscope as fs

#: One mutant takes at most so many seconds of a core.
MOST_S = 5.0
#: Larger models of the package's are not changed.
_MOST_BYTES = 200_000
NUMBERS = [0, 1, -1, 2, 5, 63, 65, 2**31 - 1, -(2**31), 2**40, 2**62, -(2**63)]
TEXTS = ["", "x", "../../etc/passwd", "a:0", "\0", "SAME_UPPER", "linear", "ai.onnx.ml", "☃"]


@cache
def samples() -> tuple[bytes, ...]:
    """Small models, serialized."""
    own = [transformer(1, 8), residual_network((1, 1), 2)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of infinities in what the tests expect
        cases = sorted(load_model_tests(kind="node"), key=lambda case: str(case.name))
    found = [m.SerializeToString() for m in (*own, *[c.model for c in cases if c.model])]
    return tuple([bytes(data) for data in found if len(data) < _MOST_BYTES])


def graphs_of(model: Any) -> list[Any]:
    """The graph, those in attributes, and functions."""
    found: list[Any] = [model.graph, *model.functions]
    for graph in found:
        for node in graph.node:
            for a in node.attribute:
                found += [g for g in (a.g, *a.graphs) if g.node]
    return found


def nodes_of(model: Any) -> list[Any]:
    """All nodes; one that does nothing where there are none."""
    return [n for g in graphs_of(model) for n in g.node] or [model.graph.node.add()]


def _attribute(rng: random.Random, _: Any, node: Any) -> None:
    for a in node.attribute:
        if a.ints and rng.random() < 0.5:
            a.ints[rng.randrange(len(a.ints))] = rng.choice(NUMBERS)
        elif a.HasField("i"):
            a.i = rng.choice(NUMBERS)
        elif a.HasField("s"):
            a.s = rng.choice(TEXTS).encode()
        elif a.HasField("f"):
            a.f = rng.choice([0.0, -1.0, float("nan"), float("inf"), 1e38])
    if node.attribute and rng.random() < 0.3:
        rng.choice(node.attribute).name = rng.choice(["axis", "axes", "pads", "to", "body", "?"])


def _tensor(rng: random.Random, model: Any, _: Any) -> None:
    tensors = [t for g in graphs_of(model) for t in getattr(g, "initializer", ())]
    if not tensors:
        return
    tensor = rng.choice(tensors)
    what = rng.randrange(5)
    if what == 0 and tensor.dims:
        tensor.dims[rng.randrange(len(tensor.dims))] = rng.choice(NUMBERS)
    elif what == 1:
        tensor.dims.append(rng.choice(NUMBERS))
    elif what == 2:
        tensor.data_type = rng.randrange(30)
    elif what == 3:
        tensor.raw_data = tensor.raw_data[: rng.randrange(9)]
    else:
        tensor.data_location = TensorProto.EXTERNAL
        facts = {"location": rng.choice(TEXTS), "offset": "-1", "length": str(rng.choice(NUMBERS))}
        for key, value in facts.items():
            tensor.external_data.add(key=key, value=value)


def _input(rng: random.Random, model: Any, node: Any) -> None:
    names = [name for n in nodes_of(model) for name in (*n.input, *n.output)] or ["x"]
    sides = node.input if rng.random() < 0.7 else node.output
    if sides and rng.random() < 0.7:
        sides[rng.randrange(len(sides))] = rng.choice([*names, *TEXTS])
    elif sides and rng.random() < 0.5:
        del sides[rng.randrange(len(sides))]
    else:
        sides.append(rng.choice(names))


def _operator(rng: random.Random, model: Any, node: Any) -> None:
    others = onnx.load_model_from_string(rng.choice(samples())).graph.node
    node.op_type = rng.choice(others).op_type if others else "Identity"
    if rng.random() < 0.2:
        node.domain = rng.choice(TEXTS)


def _type(rng: random.Random, model: Any, _: Any) -> None:
    infos = [i for g in graphs_of(model) for i in getattr(g, "value_info", ())]
    infos += [*model.graph.input, *model.graph.output]
    info = rng.choice(infos) if infos else model.graph.input.add()
    tensor = info.type.tensor_type
    if tensor.shape.dim and rng.random() < 0.6:
        rng.choice(tensor.shape.dim).dim_value = rng.choice(NUMBERS)
    elif rng.random() < 0.5:
        tensor.elem_type = rng.randrange(30)
    else:
        tensor.ClearField("shape")


def _opset(rng: random.Random, model: Any, _: Any) -> None:
    for one in model.opset_import:
        one.version = rng.choice([1, 6, 7, 9, 13, 18, 21, 99, -1])


def _body(rng: random.Random, model: Any, node: Any) -> None:
    graphs = graphs_of(model)
    for a in node.attribute:
        if a.HasField("g"):
            a.g.CopyFrom(rng.choice(graphs) if rng.random() < 0.5 else onnx.GraphProto())
            return
    node.name = rng.choice(TEXTS) * rng.choice([1, 1000])


CHANGES: list[Callable[[random.Random, Any, Any], None]] = [
    _attribute, _attribute, _tensor, _input, _input, _operator, _type, _opset, _body,
]  # fmt: skip


def mutant(rng: random.Random, data: bytes) -> bytes:
    """Returns a model with one to three changes, of its bytes or of its parts."""
    if rng.random() < 0.3:
        changed = bytearray(data)
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(changed))
            if rng.random() < 0.2:
                del changed[at : at + rng.randrange(1, 40)]
            else:
                changed[at] = rng.randrange(256)
            if not changed:
                break
        return bytes(changed)
    model = onnx.load_model_from_string(data)
    for _ in range(rng.randrange(1, 4)):
        try:
            rng.choice(CHANGES)(rng, model, rng.choice(nodes_of(model)))
        except (TypeError, ValueError):  # a function's node is no graph's body
            continue
    return bytes(model.SerializeToString())


def read(data: bytes) -> bool:
    """Whether a model can be loaded; an error of flowscope's says no."""
    try:
        with fs.onnx.load(data):
            return True
    except fs.errors.OpError:
        return False


def wrong(seed: int) -> str | None:
    """What is wrong with how the mutant of a seed is loaded; None if nothing is."""
    rng = random.Random(seed)
    data = mutant(rng, rng.choice(samples()))
    start = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            read(data)
    except Exception:
        return traceback.format_exc(limit=-6)
    took = time.process_time() - start
    return f"took {took:.1f} s" if took > MOST_S else None


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for i in range(given.seed, given.seed + given.count):
        problem = wrong(i)
        if problem is not None:
            print(f"seed {i}: {problem}", flush=True)
