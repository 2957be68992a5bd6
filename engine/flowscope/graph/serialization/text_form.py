"""The text form of a graph: a line per operation, to be read by people and by `text_reader`.

    x = Placeholder(dtype=float32, shape=[?,2])   float32[?,2]
    w = VarHandleOp(dtype=float32, shape=[2,1], container="", shared_name="w")   resource[]
    w/read = ReadVariableOp(w)   float32[2,1]
    y = MatMul(x, w/read, transpose_b=False)   float32[?,1] after init on /device:GPU:0 with w

A line says name, op type, inputs ("a:1" is the second output of a), attributes that are not as the
op type has them by default, dtypes and shapes of the outputs (`()` for none), and then what there
is of: operations that must finish first, the device that was asked for, operations to share a
device with, and the registered gradient that takes the op's place. Lines that begin with "#" are
remarks, and `@seed 3` gives the graph's seed. Names of unusual characters stand in double quotes.

Functions come first, each behind those that it calls: their operations, the tensors outside that
stand for their last parameters, and what they return. `keeps` lists tensors that gradients read.

    function f {
      f/x = Parameter(spec=float32[2], index=0)   float32[2]
      f/c = Parameter(spec=float32[], index=1)   float32[]
      f/Mul = Mul(f/x, f/c)   float32[2]
      captures c
      returns f/Mul
    }
    y = Call(x, c, function=@f)   float32[2]
"""

from __future__ import annotations

import dataclasses
import functools
import re
from typing import Any

from flowscope.errors import DTypeError
from flowscope.graph.op import Op, find_op_class
from flowscope.graph.providers import serializers
from flowscope.graph.serialization.definition import FunctionDef, GraphDef, NodeDef, split_input
from flowscope.graph.serialization.literals import name_text, quoted, write
from flowscope.graph.values.shapes import text as shape_text

DEVICE = re.compile(r"[\w/:*.-]+", re.ASCII)


def text_of(graph_def: GraphDef, exact: bool = True) -> str:
    """Returns the text form.

    Args:
        graph_def: The graph.
        exact: Whether large arrays are written in full; a text without them cannot be read back.
    """
    lines = [] if graph_def.seed is None else [f"@seed {graph_def.seed}"]
    for function in graph_def.functions:
        lines += _function(function, exact)
    lines += [line_of(n, exact) for n in graph_def.node]
    return "".join(f"{line}\n" for line in lines)


def _function(function: FunctionDef, exact: bool) -> list[str]:
    tails = {
        "captures": function.captures, "returns": function.results, "keeps": function.kept
    }  # fmt: skip
    inside = [line_of(n, exact) for n in function.node]
    inside += [f"{word} {', '.join(map(_input, names))}" for word, names in tails.items() if names]
    return [f"function {name_text(function.name)} {{", *[f"  {line}" for line in inside], "}"]


def line_of(node: NodeDef, exact: bool = True) -> str:
    """Returns the line of one operation."""
    inputs = [_input(i) for i in node.data_inputs]
    arguments = ", ".join([*inputs, *_attributes(node, exact)])
    specs = ""
    if node.outputs is not None:
        specs = ", ".join(f"{d}{shape_text(s)}" for d, s in node.outputs) or "()"
    return (
        f"{name_text(node.name)} = {node.op}({arguments})   {specs}"
        f"{_names(' after ', node.control_inputs)}"
        f"{_device(node.device)}"
        f"{_names(' with ', node.colocation)}"
        f"{' gradient ' + quoted(node.gradient) if node.gradient else ''}"
    ).rstrip()


def _input(text: str) -> str:
    name, index = split_input(text)
    return f"{name_text(name)}:{index}" if index else name_text(name)


def _names(word: str, names: list[str]) -> str:
    return word + ", ".join(map(name_text, names)) if names else ""


def _device(device: str) -> str:
    if not device:
        return ""
    return f" on {device if DEVICE.fullmatch(device) else quoted(device)}"


def _attributes(node: NodeDef, exact: bool) -> list[str]:
    known: Any = find_op_class(node.op) or Op
    usual = defaults(known)
    out = []
    for name, value in node.attr.items():
        if is_implied(node.op, name, node.attr):
            continue
        try:
            text = write(value, exact)
        except DTypeError as e:
            raise DTypeError(f"attribute {name!r}: {e.message}").located(
                op=node.name, op_type=node.op
            ) from None
        if usual.get(name) != text:
            out.append(f"{name}={text}")
    return out


def is_implied(op_type: str, attribute: str, known: dict[str, Any]) -> bool:
    """Whether the text leaves an attribute out for another says it: a constant's dtype.

    (That of quantised numbers is none of their array's.)
    """
    is_said = op_type == "Const" and attribute == "dtype" and "value" in known
    return is_said and getattr(known.get("dtype"), "kind", "") != "q"


@functools.cache
def defaults(op: Any) -> dict[str, str]:
    """Returns the texts of the attributes that an op type has by default."""
    return {name: write(value, True) for name, value in _defaults(op).items()}


def default_values(op_type: str) -> dict[str, Any]:
    """Returns the attributes that an op type has by default; none for one that is not known."""
    known: Any = find_op_class(op_type) or Op
    return _defaults(known)


@functools.cache
def _defaults(op: Any) -> dict[str, Any]:
    if not dataclasses.is_dataclass(op):
        return {}
    return {f.name: f.default for f in dataclasses.fields(op) if _has_default(f)}


def _has_default(field: dataclasses.Field[Any]) -> bool:
    """Whether a field has a default that a text may leave out."""
    if field.default is dataclasses.MISSING:
        return False
    try:
        write(field.default, True)
    except DTypeError:
        return False
    return True


serializers.update(text_of=text_of, default_values=default_values)
