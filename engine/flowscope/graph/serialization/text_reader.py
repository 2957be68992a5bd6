"""Reads the text form of a graph. See `text_form` for what it looks like."""

from __future__ import annotations

import re
from typing import Any

from flowscope.errors import DTypeError
from flowscope.graph.constant import Literal
from flowscope.graph.providers import serializers
from flowscope.graph.serialization.definition import (
    FunctionDef,
    GraphDef,
    NodeDef,
    Output,
    input_name,
)
from flowscope.graph.serialization.literals import Scanner
from flowscope.graph.serialization.text_form import DEVICE, default_values, is_implied
from flowscope.graph.serialization.values import dtype_of
from flowscope.graph.values.dtypes import ALL

_TYPE = re.compile(r"[^\W\d]\w*")
_ATTRIBUTE = re.compile(r"([^\W\d]\w*)[ \t]*=")
_INDEX = re.compile(r":\d+", re.ASCII)
_SEED = re.compile(r"@seed[ \t]+(-?\d+)[ \t]*", re.ASCII)
_DTYPE = re.compile(r"[a-z][a-z0-9_]*(?=\[)", re.ASCII)
_FUNCTION = re.compile(r"function(?=[ \t]+[^ \t=])")
_LISTS = re.compile(r"(?:captures|returns|keeps)(?=[ \t]+[^ \t=])")
_DTYPES = {d.name: d for d in ALL}


def read_text(text: str) -> GraphDef:
    """The definition in a text; raises InvalidArgumentError with the line that is wrong."""
    if not isinstance(text, str):
        raise DTypeError(f"expected a graph's text form as a string, got {type(text).__name__}")
    graph_def = GraphDef()
    inside: FunctionDef | None = None
    number = 0
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        scan = Scanner(line, number)
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        if inside is not None:
            inside = _in_function(scan, inside)
        elif scan.find(_FUNCTION) is not None:
            inside = FunctionDef(scan.name("a function's name"))
            graph_def.functions.append(inside)
            scan.need("{")
            scan.end()
        elif stripped.startswith("@"):
            graph_def.seed = _seed(stripped, number)
        else:
            graph_def.node.append(_node(scan))
    if inside is not None:
        raise Scanner("", number).fail(f"'}}' behind the operations of {inside.name!r}")
    return graph_def


def _in_function(scan: Scanner, function: FunctionDef) -> FunctionDef | None:
    """Reads a line of a function; returns the function, None behind its end."""
    if scan.has("}"):
        scan.end()
        return None
    word = scan.find(_LISTS)
    if word is None:
        function.node.append(_node(scan))
        return function
    names = [_input(scan)]
    while scan.has(","):
        names.append(_input(scan))
    scan.end()
    lists = {"captures": function.captures, "returns": function.results, "keeps": function.kept}
    lists[word] += names
    return function


def _seed(line: str, number: int) -> int:
    found = _SEED.fullmatch(line)
    if found is None:
        raise Scanner(line, number).fail("'@seed' and an integer")
    return Scanner(line, number).integer(found.group(1))


def _node(scan: Scanner) -> NodeDef:
    node = NodeDef(name=scan.name("an operation's name"), line=scan.number)
    scan.need("=")
    node.op = scan.token(_TYPE, "an op type")
    scan.need("(")
    if not scan.has(")"):
        _arguments(scan, node)
    value = node.attr.get("value")
    if is_implied(node.op, "dtype", node.attr) and isinstance(value, Literal):
        node.attr.setdefault("dtype", dtype_of(value.array))
    for name, usual in default_values(node.op).items():
        node.attr.setdefault(name, usual)
    node.outputs = _outputs(scan)
    _tail(scan, node)
    if not scan.is_done():
        raise scan.fail("'after', 'on', 'with', 'gradient' or the end of the line")
    return node


def _arguments(scan: Scanner, node: NodeDef) -> None:
    while True:
        attribute = scan.find(_ATTRIBUTE)
        if attribute is not None:
            name = attribute.rstrip("= \t")
            if name in node.attr:
                raise scan.wrong(f"the attribute {name!r} is given twice")
            node.attr[name] = scan.value()
        elif node.attr:
            raise scan.fail("an attribute, for inputs stand before attributes")
        else:
            node.input.append(_input(scan))
        if scan.has(")"):
            return
        scan.need(",", "',' or ')'")


def _input(scan: Scanner) -> str:
    name = scan.name("an input or an attribute")
    index = scan.find(_INDEX)
    return input_name(name, scan.integer(index[1:]) if index else 0)


def _outputs(scan: Scanner) -> list[Output] | None:
    if scan.has("()"):
        return []
    first = scan.find(_DTYPE)
    if first is None:
        return None
    outputs = [_output(scan, first)]
    while scan.has(","):
        outputs.append(_output(scan, scan.token(_DTYPE, "a dtype and a shape")))
    return outputs


def _output(scan: Scanner, name: str) -> Output:
    if name not in _DTYPES:
        raise scan.wrong(f"expected a dtype, got {name!r}")
    spec = scan.spec(_DTYPES[name])
    return spec.dtype, spec.shape


def _tail(scan: Scanner, node: NodeDef) -> None:
    if scan.has("after "):
        node.input += [f"^{name}" for name in _list(scan)]
    if scan.has("on "):
        node.device = _device(scan)
    if scan.has("with "):
        node.colocation = _list(scan)
    if scan.has("gradient "):
        name: Any = scan.value()
        if type(name) is not str:
            raise scan.wrong("expected a gradient's name in double quotes")
        node.gradient = name


def _list(scan: Scanner) -> list[str]:
    names = [scan.name("an operation's name")]
    while scan.has(","):
        names.append(scan.name("an operation's name"))
    return names


def _device(scan: Scanner) -> str:
    if scan.text.startswith('"', scan.at):
        return scan.name("a device's name")
    return scan.token(DEVICE, "a device's name")


serializers.update(read_text=read_text)
