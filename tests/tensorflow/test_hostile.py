"""Damaged and hostile graphs of TensorFlow: one clear error, in bounded time and memory."""

from __future__ import annotations

import time
import tracemalloc
from typing import Any

import pytest
import tensorflow_mutants as mutants

import flowscope as fs
from flowscope.graph.messages.protobuf import LENGTH, field
from flowscope.graph.messages.tensorflow_schema import message_class

FLOAT = 1


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_mutants_give_a_graph_or_an_error_in_time(part: int) -> None:
    datas = mutants.samples()
    for seed in range(300 * part, 300 * (part + 1)):
        assert mutants.wrong(seed, datas) is None, seed


def graph(*nodes: tuple[str, str, list[str]], **functions: list[tuple[str, str, list[str]]]) -> Any:
    """A graph of nodes (name, op, inputs) and of functions of one float."""
    message = message_class("GraphDef")()
    for node in nodes:
        fill(message.node.add(), *node)
    for name, inner in functions.items():
        function = message.library.function.add()
        function.signature.name = name
        function.signature.input_arg.add(name="x", type=FLOAT)
        function.signature.output_arg.add(name="y", type=FLOAT)
        for node in inner:
            fill(function.node_def.add(), *node)
        function.ret["y"] = inner[-1][0].partition("@")[0] + (
            ":z:0" if inner[-1][1] == "Mul" else ":output:0"
        )
    return message


def fill(node: Any, name: str, op: str, inputs: list[str]) -> None:
    node.name, _, function = name.partition("@")
    node.op = op
    node.input.extend(inputs)
    if op == "Placeholder":
        node.attr["dtype"].type = FLOAT
        node.attr["shape"].shape.dim.add(size=2)
    if function:
        node.attr["f"].func.name = function
        node.attr["Tin"].list.type.append(FLOAT)
        node.attr["Tout"].list.type.append(FLOAT)


def call(name: str, function: str, source: str) -> tuple[str, str, list[str]]:
    return f"{name}@{function}", "PartitionedCall", [source]


def refused(message: Any, match: str, most_s: float = 5.0) -> None:
    data = message if isinstance(message, bytes) else message.SerializeToString()
    start = time.process_time()
    with pytest.raises(fs.errors.OpError, match=match):
        fs.GraphDef.FromString(data)
    assert time.process_time() - start < most_s


X = ("x", "Placeholder", [])


def test_circles_are_named() -> None:
    refused(graph(X, ("a", "Mul", ["b", "x"]), ("b", "Mul", ["a", "x"])), '"a" waits for itself')
    refused(graph(X, ("a", "Mul", ["x", "x", "^a"])), '"a" waits for itself')
    refused(graph(X, ("a", "Mul", ["x", "nobody"])), '"a" takes "nobody"')
    refused(graph(X, X), 'two nodes are named "x"')


def test_functions_that_call_themselves_are_an_error() -> None:
    inner = [call("c", "f", "x")]
    refused(graph(X, call("y", "f", "x"), f=inner), "64 deep")
    refused(graph(X, call("y", "g", "x"), f=inner), 'no function "g"')


def test_functions_that_double_are_functions_once() -> None:
    functions = {
        f"f{i}": [
            call("a", f"f{i - 1}", "x"),
            call("b", f"f{i - 1}", "a:output:0"),
        ]
        for i in range(1, 40)
    }
    functions["f0"] = [("m", "Mul", ["x", "x"])]
    found = fs.GraphDef.FromString(graph(X, call("y", "f39", "x"), **functions).SerializeToString())
    assert len(found.functions) == 40
    with fs.Graph().as_default(), pytest.raises(fs.errors.OpError):
        fs.import_graph_def(found)  # 2**39 operations when it runs


def test_messages_nested_without_end_are_damaged() -> None:
    value = b""
    for _ in range(20_000):
        value = field(1, LENGTH, field(8, LENGTH, value))[:60_000]
    refused(field(1, LENGTH, field(2, LENGTH, b"Const") + field(5, LENGTH, value)), "damaged")


@pytest.mark.memory
def test_one_element_does_not_fill_the_memory() -> None:
    message = graph()
    for i in range(20):
        node = message.node.add(name=f"c{i}", op="Const")
        node.attr["dtype"].type = FLOAT
        tensor = node.attr["value"].tensor
        tensor.dtype = FLOAT
        tensor.float_val.append(1.0)
        tensor.tensor_shape.dim.add(size=10_000_000)
    tracemalloc.start()
    try:
        refused(message, "small, and its constants would be very large")
        assert tracemalloc.get_traced_memory()[1] < 300e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("sizes", [[2**62], [2**31, 2**31], [-1], [1] * 70, [3]])
def test_constants_have_the_elements_that_they_say(sizes: list[int]) -> None:
    message = graph()
    node = message.node.add(name="c", op="Const")
    tensor = node.attr["value"].tensor
    tensor.dtype = FLOAT
    tensor.tensor_content = b"\0" * 8
    for size in sizes:
        tensor.tensor_shape.dim.add(size=size)
    refused(message, "expected")


def test_a_long_chain_is_read() -> None:
    nodes = [(f"n{i}", "Mul", [f"n{i - 1}", "x"]) for i in range(1, 4000)]
    found = fs.GraphDef.FromString(
        graph(X, ("n0", "Mul", ["x", "x"]), *reversed(nodes)).SerializeToString()
    )
    assert len(found.node) == 4001
