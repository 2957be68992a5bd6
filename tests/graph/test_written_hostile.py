"""Whatever a file holds, reading it gives a graph or one error of flowscope's classes."""

from __future__ import annotations

import json
import random
import resource
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from graph_mutants import mutants

import flowscope as fs

HEAD = {"format": "flowscope-graph", "version": 1}
#: What takes the place of parts of a graph.
VALUES: list[Any] = [
    None, True, 0, 1, -1, 64, 2**31, 2**62, 2**64, 10**30, 0.5, "", "x", "x:1", "float32", "string",
    "resource", "\ud800", [], [-1], [2**40], [1] * 65, [None], {}, {"dtype": "string"},
    {"dtype": "int64"}, {"float": "nan"}, {"bytes": "AAAA"}, {"function": "f"},
    {"spec": ["float32", [], None]}, {"array": {"dtype": "int32", "shape": [0], "data": ""}},
    {"array": {"dtype": "int64", "shape": [1], "data": "//////////8="}},
]  # fmt: skip


def document(*operations: Any, **parts: Any) -> str:
    return json.dumps({**HEAD, "operations": list(operations), **parts})


def placeholder(name: str, dtype: str, shape: Any) -> dict[str, Any]:
    attributes = {"dtype": {"dtype": dtype}, "shape": shape}
    return {"name": name, "op": "Placeholder", "attributes": attributes}


def const(name: str, dtype: str, shape: list[int], data: str) -> dict[str, Any]:
    array = {"array": {"dtype": dtype, "shape": shape, "data": data}}
    return {
        "name": name, "op": "Const", "attributes": {"value": array, "dtype": {"dtype": dtype}}
    }  # fmt: skip


def op(kind: str, *inputs: str, **attributes: Any) -> dict[str, Any]:
    return {"name": "y", "op": kind, "inputs": list(inputs), "attributes": attributes}


def read(text: str) -> None:
    with fs.Graph().as_default():
        fs.import_graph_def(fs.GraphDef.from_json(text), name="")


def a_graph() -> Any:
    with fs.Graph().as_default() as graph:
        x = fs.placeholder(fs.float32, [None, 2], name="x")
        w = fs.Variable(np.ones((2, 3), np.float32), name="w")
        y = fs.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2.0), [0, fs.matmul(x, w)])
        z = fs.cond(fs.reduce_sum(y[1]) > 0, lambda: y[1] + 1.0, lambda: y[1])
        parts = fs.split(z, 3, 1)
        fs.reshape(parts[0], fs.shape(x)[:1])
        fs.train.MomentumOptimizer(0.1, 0.9).minimize(fs.reduce_mean(z))
        graph.add_to_collection("things", x)
        return fs.train.Saver().export_meta_graph()


def places(tree: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inside = tree.items() if isinstance(tree, dict) else enumerate(tree)
    nested = [(k, v) for k, v in inside if isinstance(v, dict | list)]
    return [*[(*at, k) for k, _ in nested], *[p for k, v in nested for p in places(v, (*at, k))]]


def changed(tree: Any, rng: random.Random) -> Any:
    """Returns a copy in which some parts are others."""
    tree = json.loads(json.dumps(tree))
    for _ in range(rng.choice([1, 1, 3])):
        at = tree
        for key in rng.choice(places(tree)):
            at = at[key]
        if not at:
            continue
        key = rng.choice(list(at)) if isinstance(at, dict) else rng.randrange(len(at))
        if rng.random() < 0.2:
            del at[key]
        else:
            at[key] = rng.choice([*VALUES, rng.choice(tree["operations"])["name"]])
    return tree


@pytest.fixture(scope="module")
def meta() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(a_graph().to_json())
    return found


@pytest.mark.slow
@pytest.mark.parametrize("with_shapes", [True, False])
def test_changed_graphs_give_a_graph_or_an_error(meta: Any, with_shapes: bool) -> None:
    rng = random.Random(3)
    plain = json.loads(json.dumps(meta))
    for node in [] if with_shapes else plain["operations"]:
        node.pop("outputs", None)
    for _ in range(300):
        text = json.dumps(changed(plain, rng))
        with suppress(fs.errors.OpError), fs.Graph().as_default():
            fs.train.import_meta_graph(fs.MetaGraphDef.from_json(text))


@pytest.mark.slow
def test_changed_texts_give_a_graph_or_an_error(meta: Any) -> None:
    rng = random.Random(4)
    graph_def = fs.MetaGraphDef.from_json(json.dumps(meta)).graph_def
    lines = graph_def.text().splitlines()
    for _ in range(300):
        n = rng.randrange(len(lines))
        at = rng.randrange(len(lines[n]) + 1)
        put = rng.choice(["(", "[", "]", '"', "9" * 30, "9" * 5000, "?", "nan", "-", "\x00", "²"])
        line = lines[n][:at] + put + lines[n][at + rng.choice([0, 1, 7]) :]
        with suppress(fs.errors.OpError), fs.Graph().as_default():
            text = "\n".join([*lines[:n], line, *lines[n + 1 :]])
            fs.import_graph_def(fs.GraphDef.from_text(text), name="")


LONG = placeholder("x", "int32", [10**9 // 3])


@pytest.mark.memory
@pytest.mark.parametrize(
    "operations",
    [
        [LONG, op("StridedSlice", "x", key=[["slice", None, None, None]])],
        [LONG, placeholder("z", "float32", None), op("Reshape", "z", "x")],
        [placeholder("x", "float32", [2**31]), op("SplitEven", "x", num=2**27)],
        [placeholder("x", "float32", [10**8]), op("Unpack", "x", num=10**8)],
        [
            placeholder("x", "float32", None), placeholder("p", "int32", None),
            op("DynamicPartition", "x", "p", num_partitions=10**8),
        ],
        [
            const("a", "int32", [], "AAAAAA=="), const("b", "int32", [], "////fw=="),
            const("c", "int32", [], "AQAAAA=="), op("Range", "a", "b", "c"),
        ],
    ],
)  # fmt: skip
def test_small_files_take_little_memory(operations: Any) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with suppress(fs.errors.InvalidArgumentError):
        read(document(*operations))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_a_long_range_knows_its_length_without_its_numbers() -> None:
    assert fs.range(2**31 - 1).shape == [2**31 - 1]
    assert fs.range(fs.constant(0.0), 1e9, 0.5).shape == [2 * 10**9]
    with pytest.raises(fs.errors.InvalidArgumentError, match="finite number of steps"):
        fs.range(0.0, float("inf"))


@pytest.mark.parametrize(
    "text",
    [
        document(const("c", "float32", [2**62, 0], "")),
        document(const("c", "float32", [1] * 65, "AAAAAA==")),
        document(placeholder("x", "float32", [1] * 65)),
        document(placeholder("x", "float32", [2**63])),
        document(placeholder("x", "float32", []), op("Size", "x", out_type={"dtype": "string"})),
        document(placeholder("x", "float32", []), op("Exp", "x:²")),
        json.dumps({**HEAD, "seed": "x"}),
    ],
)
def test_odd_values_are_invalid_arguments(text: str) -> None:
    with pytest.raises(fs.errors.InvalidArgumentError):
        read(text)


def function(number: int, *calls: int, **parts: Any) -> dict[str, Any]:
    """A function of one float that calls others, one behind the other."""
    name = f"f{number}"
    spec = {"spec": ["float32", [], None]}
    nodes = [{"name": f"{name}/p", "op": "Parameter", "attributes": {"spec": spec, "index": 0}}]
    for i, callee in enumerate(calls):
        call = {"name": f"{name}/c{i}", "op": "Call", "inputs": [nodes[-1]["name"]]}
        nodes.append({**call, "attributes": {"function": {"function": f"f{callee}"}}})
    return {"name": name, "operations": nodes, "results": [nodes[-1]["name"]], **parts}


def test_functions_may_be_nested_so_deep() -> None:
    call = op("Call", "x", function={"function": "f0"})
    deep = [*[function(i, i + 1) for i in range(127)], function(127)]
    text = document(placeholder("x", "float32", []), call, functions=deep)
    for mode in ("compiled", "op", "tokens"):
        with fs.Session(graph=fs.Graph.from_json(text), config=fs.ConfigProto(mode=mode)) as sess:
            assert sess.run("y:0", {"x:0": 1.5}) == 1.5
    with pytest.raises(fs.errors.InvalidArgumentError, match="at most 128 deep"):
        read(document(functions=[*deep[:127], function(127, 128), function(128)]))
    doubling = [*[function(i, i + 1, i + 1) for i in range(30)], function(30)]
    with pytest.raises(fs.errors.InvalidArgumentError, match="at most 1048576 operations"):
        read(document(functions=doubling))


def test_what_functions_capture_must_exist() -> None:
    for name in ("nothing", "x:1"):
        broken = function(0, captures=[name])
        with pytest.raises(fs.errors.InvalidArgumentError, match="captures"):
            read(document(placeholder("x", "float32", []), functions=[broken]))


@pytest.mark.parametrize("text", [5, None, [b"x"]])
def test_what_is_no_string_is_a_type_error(text: Any) -> None:
    for reader in (fs.GraphDef.from_json, fs.GraphDef.from_text):
        with pytest.raises(TypeError, match="as a string"):
            reader(text)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_mutants_give_a_graph_or_an_error_in_time(seed: int) -> None:
    """A slice of `helpers/graph_mutants.py`, which runs any number of them."""
    assert list(mutants(50, seed)) == []
