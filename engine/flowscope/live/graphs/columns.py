"""Operations as binary columns: how a large graph gets to a view in a few milliseconds.

A column of int32 numbers per field of `Node`, one behind the other in one buffer, in the order of
`schema.COLUMNS`; what repeats (texts, outputs, attributes, lines) stands once in a table, and a
column holds its index there, -1 for None. Fields of several values have a column of counts and one
of values. The fields that few operations have stand in `rest`.

Columns are made from operations without a `Node` for each; the tests hold the two to be equal.
"""

from __future__ import annotations

import dataclasses
from array import array
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from flowscope.graph.graph import Graph
from flowscope.graph.op import Op
from flowscope.graph.operation import Operation
from flowscope.live.graphs.blocks import blocks_of
from flowscope.live.graphs.nodes import (
    Described,
    attributes_of,
    flops_of,
    made_at,
    node_of,
    output_of,
    summary_of,
)
from flowscope.live.graphs.raw_loops import has_frames
from flowscope.live.protocol.schema import COLUMNS, Columns, Node

#: Field defaults: what equals them is not told in `rest`.
_DEFAULTS = {
    f.name: f.default for f in dataclasses.fields(Node) if f.default is not dataclasses.MISSING
}
_RARE = tuple(name for name in _DEFAULTS if name not in COLUMNS)


class _Table:
    """Things that columns refer to by number."""

    def __init__(self) -> None:
        self.things: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def number(self, thing: Any, key: Any = None) -> int:
        key = thing if key is None else key
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.things)
            self.things.append(thing)
        return found


class _Writer:
    """Columns that are being filled."""

    def __init__(self) -> None:
        self.texts = _Table()
        self.outputs = _Table()
        self.attributes = _Table()
        self.origins = _Table()
        self.rest: list[tuple[int, dict[str, Any]]] = []
        self.columns: dict[str, tuple[list[int], list[int]]] = {name: ([], []) for name in COLUMNS}
        self.rows = 0

    def columns_of(self) -> tuple[Columns, bytes]:
        """Returns the tables and the buffer."""
        numbers = array("i")
        for first, values in self.columns.values():
            numbers.extend(first)
            numbers.extend(values)
        found = Columns(
            rows=self.rows,
            buffer=0,
            texts=tuple(self.texts.things),
            outputs=tuple(self.outputs.things),
            attributes=tuple(self.attributes.things),
            origins=tuple(self.origins.things),
            rest=tuple(self.rest),
        )
        return found, numbers.tobytes()

    def node(self, node: Node) -> None:
        """Adds a row for a node."""
        for name, kind in COLUMNS.items():
            first, values = self.columns[name]
            value = getattr(node, name)
            if kind == "number":
                first.append(int(value))
            elif kind in ("numbers", "pairs"):
                first.append(len(value))
                values.extend(value if kind == "numbers" else [n for pair in value for n in pair])
            elif kind == "outputs":
                first.append(len(value))
                values.extend([self.outputs.number(v) for v in value])
            elif value is None:
                first.append(-1)
            elif kind == "text":
                first.append(self.texts.number(value))
            elif kind == "attributes":
                first.append(self.attributes.number(value, tuple(value.items())))
            else:
                first.append(self.origins.number(value))
        self.rest_of({name: getattr(node, name) for name in _RARE})

    def rest_of(self, fields: Mapping[str, Any]) -> None:
        """Ends a row with the fields that have no column."""
        told = {name: value for name, value in fields.items() if value != _DEFAULTS[name]}
        if told:
            self.rest.append((self.rows, told))
        self.rows += 1

    def operations(self, described: Described) -> None:
        """Adds a row for each operation, without making it a node."""
        operations = described.operations
        if operations and has_frames(operations[0].graph):  # scopes of its loops are no names'
            for node in described.nodes:
                self.node(node)
        elif operations:
            maker = _Maker(self, operations[0].graph, described.placements)
            for op in operations:
                maker.add(op)


class _Maker:
    """Fills columns from operations; what operations share is worked out once."""

    def __init__(self, writer: _Writer, graph: Graph, placements: Mapping[int, str]) -> None:
        self._writer = writer
        self._results = {t.op for f in list(graph.functions.values()) for t in f.results}
        self._placements = placements
        self._kinds: dict[type[Op], tuple[int, int, bool]] = {}
        self._origins: dict[Any, int] = {}
        self._specs: dict[Any, int] = {}
        self._known: dict[Any, int] = {}
        self._getters: dict[type[Op], Callable[[Op], tuple[Any, ...]]] = {}
        self._plain = writer.attributes.number({}, ())
        columns = writer.columns
        self._append = {name: columns[name][0].append for name in COLUMNS}
        self._extend = {name: columns[name][1].extend for name in COLUMNS}

    def add(self, op: Operation) -> None:
        """Adds a row."""
        definition = op.definition
        kind = self._kinds.get(type(definition)) or self._kind(op)
        if kind[2] or op.stale is not None:
            return self._writer.node(node_of(op, self._placements.get(op.id)))
        append, extend, texts = self._append, self._extend, self._writer.texts
        placed = self._placements.get(op.id)
        append["id"](op.id)
        append["name"](texts.number(op.name))
        append["type"](kind[0])
        inputs, control, outputs = op.inputs, op.control_inputs, op.outputs
        append["inputs"](len(inputs))
        extend["inputs"]([n for t in inputs for n in (t.op.id, t.value_index)])
        append["control"](len(control))
        if control:
            extend["control"]([c.id for c in control])
        append["outputs"](len(outputs))
        extend["outputs"]([self._output(t.spec.variable or t.spec) for t in outputs])
        append["attributes"](self._attributes(op))
        append["device"](texts.number(op.device))
        append["placed"](-1 if placed is None else texts.number(placed))
        append["summary"](kind[1])
        append["origin"](self._origin(op))
        append["body"](texts.number(op.block.name))
        append["is_result"](int(op in self._results))
        specs = [t.spec for t in inputs], [t.spec for t in outputs]
        self._writer.rest_of({"flops": flops_of(definition, *specs)})
        return None

    def _kind(self, op: Operation) -> tuple[int, int, bool]:
        """Returns the numbers of an op type's name and summary, and whether it runs bodies."""
        texts = self._writer.texts
        found = texts.number(op.type), texts.number(summary_of(op.definition)), bool(blocks_of(op))
        self._kinds[type(op.definition)] = found
        names = [f.name for f in dataclasses.fields(op.definition)]
        self._getters[type(op.definition)] = _getter(names)
        return found

    def _attributes(self, op: Operation) -> int:
        definition = op.definition
        values = self._getters[type(definition)](definition)
        if not values:
            return self._plain
        try:
            # Numbers and truth values that are equal are not written alike.
            key = type(definition), values, tuple(map(type, values))
            found = self._known.get(key)
        except TypeError:  # an array, say
            key, found = None, None
        if definition.is_expanded:  # facts of its inputs come in
            key = found = None
        if found is None:
            told = attributes_of(op)
            found = self._writer.attributes.number(told, tuple(told.items()))
            if key is not None:
                self._known[key] = found
        return found

    def _output(self, spec: Any) -> int:
        key = spec.dtype, spec.shape
        found = self._specs.get(key)
        if found is None:
            found = self._specs[key] = self._writer.outputs.number(output_of(spec))
        return found

    def _origin(self, op: Operation) -> int:
        key = op.origin.key
        found = self._origins.get(key)
        if found is None:
            place = made_at(op)
            found = -1 if place is None else self._writer.origins.number(place)
            self._origins[key] = found
        return found


def _getter(names: Sequence[str]) -> Callable[[Op], tuple[Any, ...]]:
    if not names:
        return lambda definition: ()
    if len(names) == 1:
        get = attrgetter(names[0])
        return lambda definition: (get(definition),)
    return attrgetter(*names)


def columns_of(nodes: Sequence[Node]) -> tuple[Columns, bytes]:
    """Returns nodes as columns: the tables, and the numbers as little-endian int32."""
    writer = _Writer()
    if isinstance(nodes, Described):
        writer.operations(nodes)
    else:
        for node in nodes:
            writer.node(node)
    return writer.columns_of()


def nodes_of(columns: Columns, buffer: bytes) -> tuple[Node, ...]:
    """Returns the nodes that columns tell of, as the front end reads them."""
    numbers = array("i")
    numbers.frombytes(buffer)
    at = 0

    def take(count: int) -> array[int]:
        nonlocal at
        at += count
        return numbers[at - count : at]

    fields: list[dict[str, Any]] = [{} for _ in range(columns.rows)]
    for name, kind in COLUMNS.items():
        first = take(columns.rows)
        for row, number in zip(fields, first, strict=True):
            row[name] = _value(kind, number, take, columns, name)
    for at_row, told in columns.rest:
        fields[at_row].update(told)
    return tuple([Node(**row) for row in fields])


def _value(kind: str, number: int, take: Any, columns: Columns, name: str) -> Any:
    if kind == "number":
        return bool(number) if name == "is_result" else number
    if kind == "numbers":
        return tuple(take(number))
    if kind == "pairs":
        values = take(2 * number)
        return tuple(zip(values[::2], values[1::2], strict=True))
    if kind == "outputs":
        return tuple(columns.outputs[i] for i in take(number))
    tables = {"text": columns.texts, "attributes": columns.attributes, "origin": columns.origins}
    table: Sequence[Any] = tables[kind]
    return None if number < 0 else table[number]


__all__ = ["columns_of", "nodes_of"]
