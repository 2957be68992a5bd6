"""TensorFlow's graphs with random damage: reading one gives a graph or one error of flowscope's.

    python tests/helpers/tensorflow_mutants.py 100000 --seed 7

prints those that raise something else, or take too long.
"""

from __future__ import annotations

import argparse
import random
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import flowscope as fs
from flowscope.graph.messages.tensorflow_schema import message_class

DATA = Path(__file__).parents[1] / "tensorflow" / "data"
#: One mutant takes at most so many seconds of a core.
MOST_S = 5.0
NUMBERS = [0, 1, -1, 2, 5, 63, 65, 2**31 - 1, -(2**31), 2**40, 2**62, -(2**63)]
TEXTS = ["", "x", "^x", "x:1", "x:-1", "x:99999999999", "a:b:c:d", "\0", "NCHW", "VALID", "☃"]


def samples() -> list[bytes]:
    """The graphs of the tests, without the large ones."""
    found = []
    for path in sorted(DATA.glob("*.npz")):
        with np.load(path) as file:
            found.append(file["graph"].tobytes())
    return [data for data in found if len(data) < 80_000]


def nodes_of(graph: Any) -> list[Any]:
    return [*graph.node, *[n for f in graph.library.function for n in f.node_def]]


def _number(rng: random.Random, _: Any, node: Any) -> None:
    for value in node.attr.values():
        kind = value.WhichOneof("value")
        if kind == "list" and value.list.i:
            value.list.i[rng.randrange(len(value.list.i))] = rng.choice(NUMBERS)
        elif kind == "i":
            value.i = rng.choice(NUMBERS)


def _constant(rng: random.Random, graph: Any, _: Any) -> None:
    tensors = [n.attr["value"].tensor for n in nodes_of(graph) if n.op == "Const"]
    tensor = rng.choice(tensors)
    if tensor.tensor_shape.dim and rng.random() < 0.4:
        rng.choice(tensor.tensor_shape.dim).size = rng.choice(NUMBERS)
    elif rng.random() < 0.3:
        tensor.tensor_shape.dim.add(size=rng.choice(NUMBERS))
    elif tensor.int_val:
        tensor.int_val[0] = max(-(2**31), min(2**31 - 1, rng.choice(NUMBERS)))
    elif len(tensor.tensor_content) >= 8:
        number = rng.choice(NUMBERS).to_bytes(8, "little", signed=True)
        tensor.tensor_content = number[: rng.choice([4, 8])] + tensor.tensor_content[8:]
    else:
        tensor.dtype = rng.randrange(1, 24)


def _input(rng: random.Random, graph: Any, node: Any) -> None:
    others = [n.name for n in graph.node] + TEXTS
    what = rng.randrange(3)
    if what and node.input:
        node.input[rng.randrange(len(node.input))] = rng.choice(others)
    elif node.input and rng.random() < 0.5:
        del node.input[rng.randrange(len(node.input))]
    else:
        node.input.append(rng.choice(others))


def _op(rng: random.Random, graph: Any, node: Any) -> None:
    node.op = rng.choice(nodes_of(graph)).op


def _attribute(rng: random.Random, graph: Any, node: Any) -> None:
    other = rng.choice(nodes_of(graph))
    if node.attr and rng.random() < 0.4:
        del node.attr[rng.choice(sorted(node.attr))]
    for name in rng.sample(sorted(other.attr), min(2, len(other.attr))):
        node.attr[name].CopyFrom(other.attr[name])


def _text(rng: random.Random, _: Any, node: Any) -> None:
    texts = [v for v in node.attr.values() if v.WhichOneof("value") == "s"]
    if texts and rng.random() < 0.7:
        rng.choice(texts).s = rng.choice(TEXTS).encode()
    elif rng.random() < 0.5:
        node.device = rng.choice(["/gpu:0", "/job:x", "nowhere", "/cpu:0"])
    else:
        node.name = rng.choice(TEXTS)


def _function(rng: random.Random, graph: Any, node: Any) -> None:
    names = [f.signature.name for f in graph.library.function] or ["f"]
    for value in node.attr.values():
        if value.WhichOneof("value") == "func":
            value.func.name = rng.choice(names)
            return
    if graph.library.function:
        function = rng.choice(graph.library.function)
        for key in list(function.ret)[:1]:
            function.ret[key] = rng.choice(TEXTS + [n.name for n in function.node_def])


CHANGES: list[Callable[[random.Random, Any, Any], None]] = [
    _number, _constant, _constant, _input, _op, _attribute, _text, _function,
]  # fmt: skip


def mutant(rng: random.Random, data: bytes) -> bytes:
    """Returns a graph with one to three changes, of its bytes or of its parts."""
    if rng.random() < 0.3:
        changed = bytearray(data)
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(changed))
            if rng.random() < 0.2:
                del changed[at : at + rng.randrange(1, 40)]
            else:
                changed[at] = rng.randrange(256)
        return bytes(changed)
    graph = message_class("GraphDef").FromString(data)
    for _ in range(rng.randrange(1, 4)):
        rng.choice(CHANGES)(rng, graph, rng.choice(nodes_of(graph)))
    return bytes(graph.SerializeToString())


def read(data: bytes) -> bool:
    """Whether a graph can be read and imported; an error of flowscope's says no."""
    try:
        with fs.Graph().as_default():
            fs.import_graph_def(fs.GraphDef.FromString(data), name="")
    except fs.errors.OpError:
        return False
    return True


def wrong(seed: int, datas: list[bytes]) -> str | None:
    """What is wrong with how the mutant of a seed is read; None if nothing is."""
    rng = random.Random(seed)
    data = mutant(rng, rng.choice(datas))
    start = time.process_time()
    try:
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
    found = samples()
    for i in range(given.seed, given.seed + given.count):
        problem = wrong(i, found)
        if problem is not None:
            print(f"seed {i}: {problem}", flush=True)
