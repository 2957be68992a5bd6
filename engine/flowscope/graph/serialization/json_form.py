"""The JSON form of a graph: versioned, and checked when it is read.

    {"format": "flowscope-graph", "version": 1, "seed": null, "names": {}, "places": [...],
     "operations": [
       {"name": "x", "op": "Placeholder", "attributes": {"dtype": {"dtype": "float32"}, ...},
        "outputs": [["float32", [null, 2]]], "origin": [0]},
       {"name": "y", "op": "Exp", "inputs": ["x"], "control": ["init"], "device": "/device:GPU:0",
        "colocated": ["x"], "gradient": "Mine", "forward": "z",
        "outputs": [["float32", [null, 2]]]}]}

An input is an operation's name, with ":1" behind it for another output than the first. A shape is
a list with null for an unknown dimension, or null. Attributes are written by `values`. `names`
counts how often names were asked for, where operations do not tell. A place is [file, cell, line,
function]; an origin lists places, innermost first. What is empty is left out. `functions` are
objects of a name, operations, and names of tensors: captures, results, kept. `meta` adds
collections.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from flowscope.errors import DataLossError, DTypeError, InvalidArgumentError
from flowscope.graph.origins.origin import Origin, SourceLine
from flowscope.graph.providers import serializers
from flowscope.graph.serialization.definition import (
    FunctionDef,
    GraphDef,
    NodeDef,
    Output,
    WrittenOrigin,
    WrittenPlace,
    short_file,
)
from flowscope.graph.serialization.values import decode, encode, read_dims, read_dtype

FORMAT = "flowscope-graph"
#: The version that is written, and the highest that can be read.
VERSION = 1

_OPERATION_KEYS = frozenset(
    ("name", "op", "inputs", "control", "device", "colocated", "attributes", "outputs", "gradient",
     "forward", "origin")
)  # fmt: skip
_FUNCTION_KEYS = frozenset(("name", "operations", "captures", "results", "kept"))
_GRAPH_KEYS = frozenset(
    ("format", "version", "seed", "names", "places", "operations", "objects", "collections",
     "saver", "functions")
)  # fmt: skip


def json_of(graph_def: GraphDef, **parts: Any) -> str:
    """Returns the JSON form, with further `parts` of the top object."""
    return json.dumps(document_of(graph_def) | parts, separators=(",", ":"), allow_nan=False)


def document_of(graph_def: GraphDef) -> dict[str, Any]:
    """Returns the JSON form as dicts and lists."""
    places = _Places()
    operations = [_write_node(n, places) for n in graph_def.node]
    functions = [_write_function(f, places) for f in graph_def.functions]
    document = {
        "format": FORMAT,
        "version": VERSION,
        "seed": graph_def.seed,
        "names": graph_def.names,
        "places": [_write_place(p) for p in places.known],
        "operations": operations,
    }
    return document | {"functions": functions} if functions else document


def _write_function(function: FunctionDef, places: _Places) -> dict[str, Any]:
    facts = {k: getattr(function, k) for k in ("name", "captures", "results", "kept")}
    return facts | {"operations": [_write_node(n, places) for n in function.node]}


def _write_place(place: SourceLine) -> list[Any]:
    line = [short_file(place.filename), place.cell, place.line]
    return [*line, place.function] if place.function else line


class _Places:
    """Numbers the places of operations as they come."""

    def __init__(self) -> None:
        self.known: dict[SourceLine, int] = {}
        self._by_origin: dict[tuple[int, ...], list[int]] = {}
        self._kept: list[Origin] = []

    def of(self, origin: Origin | None) -> list[int]:
        if origin is None:
            return []
        key = origin.key
        if key not in self._by_origin:
            self._kept.append(origin)  # the key is made of ids: what they stand for must live
            known = self.known
            self._by_origin[key] = [known.setdefault(p, len(known)) for p in origin.places]
        return self._by_origin[key]


def _write_node(node: NodeDef, places: _Places) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "name": node.name,
        "op": node.op,
        "inputs": node.data_inputs,
        "control": node.control_inputs,
        "device": node.device,
        "colocated": node.colocation,
        "attributes": _write_attributes(node),
        "gradient": node.gradient,
        "forward": node.forward,
        "origin": places.of(node.origin),
    }
    facts = {k: v for k, v in facts.items() if v}
    if node.outputs is not None:
        facts["outputs"] = [[d.name, shape and list(shape)] for d, shape in node.outputs]
    return facts


def _write_attributes(node: NodeDef) -> dict[str, Any]:
    out = {}
    for name, value in node.attr.items():
        try:
            out[name] = encode(value)
        except DTypeError as e:
            raise DTypeError(f"attribute {name!r}: {e.message}").located(
                op=node.name, op_type=node.op
            ) from None
    return out


# -- reading --------------------------------------------------------------------------------------


def read_json(text: str | bytes) -> GraphDef:
    """The definition in a JSON form, see `GraphDef.from_json`."""
    return read_document(parse_json(text))


def parse_json(text: str | bytes) -> dict[str, Any]:
    """Returns the top object of a JSON form whose format and version fit."""
    if not isinstance(text, str | bytes):
        raise DTypeError(f"expected a graph's JSON form as a string, got {type(text).__name__}")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as e:
        raise DataLossError(f"expected a graph's JSON form, but it is no JSON: {e}") from None
    if type(found) is not dict or found.get("format") != FORMAT:
        raise InvalidArgumentError(
            f'expected a graph\'s JSON form, with "format": "{FORMAT}" at its start'
        )
    version = found.get("version")
    if type(version) is not int or version < 1:
        raise InvalidArgumentError(f"expected a version number of the JSON form, got {version!r}")
    if version > VERSION:
        raise InvalidArgumentError(
            f"the graph is written in version {version} of the JSON form, and this flowscope "
            f"reads versions up to {VERSION}: use a newer flowscope"
        )
    _no_others(found, _GRAPH_KEYS, "the graph")
    return found


def read_document(document: dict[str, Any]) -> GraphDef:
    """The graph's own facts in the top object."""
    places = [_read_place(p) for p in take(document, "places", list, "the graph")]
    node = _read_nodes(document, "the graph", places)
    functions = [
        _read_function(facts, f"function {i}", places)
        for i, facts in enumerate(take(document, "functions", list, "the graph"))
    ]
    seed = document.get("seed")
    if seed is not None and type(seed) is not int:
        raise InvalidArgumentError(f"expected an integer or null as the graph's seed, got {seed!r}")
    names = take(document, "names", dict, "the graph")
    if not all(type(n) is int and n >= 0 for n in names.values()):
        raise InvalidArgumentError("expected counts of names in the graph's names")
    return GraphDef(node, seed, names, functions)


def _read_nodes(facts: dict[str, Any], where: str, places: list[SourceLine]) -> list[NodeDef]:
    operations = take(facts, "operations", list, where)
    return [_read_node(f, f"{where}, operation {i}", places) for i, f in enumerate(operations)]


def _read_function(facts: Any, where: str, places: list[SourceLine]) -> FunctionDef:
    if type(facts) is not dict or type(facts.get("name")) is not str:
        raise InvalidArgumentError(f"{where} has no name")
    where = f"function {facts['name']!r}"
    _no_others(facts, _FUNCTION_KEYS, where)
    lists = [_texts(facts, key, where) for key in ("captures", "results", "kept")]
    return FunctionDef(facts["name"], _read_nodes(facts, where, places), *lists)


def _read_place(facts: Any) -> SourceLine:
    match facts:
        case [str(file), int() | None as cell, int(line)]:
            return WrittenPlace(file, cell, line)
        case [str(file), int() | None as cell, int(line), str(function)]:
            return WrittenPlace(file, cell, line, function)
    raise InvalidArgumentError(f"expected a place [file, cell, line, function], got {facts!r}")


def _read_node(facts: Any, where: str, places: list[SourceLine]) -> NodeDef:
    if type(facts) is not dict or type(facts.get("name")) is not str:
        raise InvalidArgumentError(f"{where} has no name")
    name: str = facts["name"]
    where = f"operation {name!r}"
    _no_others(facts, _OPERATION_KEYS, where)
    control = _texts(facts, "control", where)
    return NodeDef(
        name=name,
        op=take(facts, "op", str, where),
        input=[*_texts(facts, "inputs", where), *[f"^{c}" for c in control]],
        device=take(facts, "device", str, where),
        attr=_read_attributes(take(facts, "attributes", dict, where), where),
        colocation=_texts(facts, "colocated", where),
        outputs=_read_outputs(facts, where),
        gradient=take(facts, "gradient", str, where),
        forward=take(facts, "forward", str, where),
        origin=_read_origin(take(facts, "origin", list, where), places, where),
    )


def _read_attributes(facts: dict[str, Any], where: str) -> dict[str, Any]:
    out = {}
    for name, value in facts.items():
        out[name] = _at(decode, value, f"{where}, attribute {name!r}")
    return out


def _read_outputs(facts: dict[str, Any], where: str) -> list[Output] | None:
    if "outputs" not in facts:
        return None
    return [_at(_output, o, where) for o in take(facts, "outputs", list, where)]


def _output(facts: Any) -> Output:
    match facts:
        case [name, shape]:
            return read_dtype(name), read_dims(shape)
    raise InvalidArgumentError(f"expected an output [dtype, shape], got {facts!r}")


def _read_origin(indices: list[Any], places: list[SourceLine], where: str) -> Origin | None:
    if not all(type(i) is int and 0 <= i < len(places) for i in indices):
        raise InvalidArgumentError(f"{where}: its origin lists places that the graph does not have")
    return WrittenOrigin(tuple([places[i] for i in indices])) if indices else None


def take(facts: dict[str, Any], key: str, kind: type, where: str) -> Any:
    """Returns `facts[key]`, empty if there is none; raises InvalidArgumentError for other kinds."""
    value = facts.get(key)
    if value is None:
        return kind()
    if type(value) is not kind:
        raise InvalidArgumentError(
            f"{where}: expected {key!r} to be a {kind.__name__}, got {type(value).__name__}"
        )
    return value


def _texts(facts: dict[str, Any], key: str, where: str) -> list[str]:
    value: list[Any] = take(facts, key, list, where)
    if not all(type(v) is str for v in value):
        raise InvalidArgumentError(f"{where}: expected {key!r} to list names")
    return list(value)


def _no_others(facts: Iterable[str], known: frozenset[str], where: str) -> None:
    others = sorted(set(facts) - known)
    if others:
        raise InvalidArgumentError(f"{where} has parts that are not known here: {others}")


def _at(read: Callable[[Any], Any], value: Any, where: str) -> Any:
    try:
        return read(value)
    except InvalidArgumentError as e:
        raise InvalidArgumentError(f"{where}: {e.message}") from None
    except RecursionError:
        raise InvalidArgumentError(f"{where}: lists are nested too deep") from None


serializers.update(json_of=json_of, read_json=read_json)
