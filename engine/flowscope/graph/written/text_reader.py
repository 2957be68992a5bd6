"""Reads the text form of a graph. See `text_form` for what it looks like."""

from __future__ import annotations

import json
import re
from typing import Any

from flowscope.graph.constant import Literal
from flowscope.graph.dtypes import ALL
from flowscope.graph.written.definition import GraphDef, NodeDef, Output, input_name
from flowscope.graph.written.literals import STRING, Scanner
from flowscope.graph.written.text_form import DEVICE, NAME, default_values, is_implied
from flowscope.graph.written.values import dtype_of

_TYPE = re.compile(r"[^\W\d]\w*")
_ATTRIBUTE = re.compile(r"([^\W\d]\w*)[ \t]*=")
_INDEX = re.compile(r":\d+", re.ASCII)
_SEED = re.compile(r"@seed[ \t]+(-?\d+)[ \t]*", re.ASCII)
_SPEC = re.compile(r"([a-z]+\d*)\[(\.\.\.|[\d?, ]*)\]", re.ASCII)
_DTYPES = {d.name: d for d in ALL}


def read_text(text: str) -> GraphDef:
    """Returns what the text says; raises InvalidArgumentError with the line where it is wrong."""
    graph_def = GraphDef()
    for i, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        if stripped.startswith("@"):
            graph_def.seed = _seed(stripped, i)
        else:
            graph_def.node.append(_node(Scanner(line, i)))
    return graph_def


def _seed(line: str, number: int) -> int:
    found = _SEED.fullmatch(line)
    if found is None:
        raise Scanner(line, number).fail("'@seed' and an integer")
    return int(found.group(1))


def _node(scan: Scanner) -> NodeDef:
    node = NodeDef(name=_name(scan, "an operation's name"), line=scan.number)
    scan.need("=")
    node.op = _need(scan, _TYPE, "an op type")
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
    name = _name(scan, "an input or an attribute")
    index = scan.find(_INDEX)
    return input_name(name, int(index[1:]) if index else 0)


def _name(scan: Scanner, expected: str) -> str:
    text = scan.find(STRING)
    if text is None:
        return _need(scan, NAME, expected)
    return _unquoted(scan, text)


def _unquoted(scan: Scanner, text: str) -> str:
    try:
        found: str = json.loads(text)
    except ValueError:
        raise scan.wrong(f"expected a name in double quotes, got {text}") from None
    return found


def _need(scan: Scanner, pattern: re.Pattern[str], expected: str) -> str:
    found = scan.find(pattern)
    if found is None:
        raise scan.fail(expected)
    return found


def _outputs(scan: Scanner) -> list[Output] | None:
    if scan.has("()"):
        return []
    first = scan.find(_SPEC)
    if first is None:
        return None
    outputs = [_spec(scan, first)]
    while scan.has(","):
        outputs.append(_spec(scan, _need(scan, _SPEC, "a dtype with a shape, like float32[?,2]")))
    return outputs


def _spec(scan: Scanner, text: str) -> Output:
    name, inner = _SPEC.fullmatch(text).groups()  # type: ignore[union-attr]
    if name not in _DTYPES:
        raise scan.wrong(f"expected a dtype, got {name!r}")
    if inner == "...":
        return _DTYPES[name], None
    sizes = [d.strip() for d in inner.split(",")] if inner.strip() else []
    if not all(d == "?" or d.isdigit() for d in sizes):
        raise scan.wrong(f"expected a shape like [?,2], got [{inner}]")
    return _DTYPES[name], tuple([None if d == "?" else int(d) for d in sizes])


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
    names = [_name(scan, "an operation's name")]
    while scan.has(","):
        names.append(_name(scan, "an operation's name"))
    return names


def _device(scan: Scanner) -> str:
    text = scan.find(STRING)
    if text is None:
        return _need(scan, DEVICE, "a device's name")
    return _unquoted(scan, text)
