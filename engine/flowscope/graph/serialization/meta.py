"""A graph with its collections and the objects in them: variables, for example.

An entry of a collection is written as {"tensor": "a:0"}, {"operation": "a"}, {"value": ...} or
{"object": 3}, the third of the graph's `objects`. What kinds of objects there are is a table that
higher floors fill: `kinds`. What cannot be written is left out, and listed in `skipped`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Any

from flowscope.errors import DTypeError, InvalidArgumentError, NotFoundError
from flowscope.graph.graph import Graph
from flowscope.graph.indexed_slices import IndexedSlices
from flowscope.graph.lazy import frozen, mutable
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.providers import load
from flowscope.graph.serialization.build import Imported, import_nodes
from flowscope.graph.serialization.definition import (
    GraphDef,
    NodeDef,
    as_graph_def,
    callees,
    copied,
)
from flowscope.graph.serialization.json_form import json_of, parse_json, read_document, take
from flowscope.graph.serialization.values import decode, encode


@frozen
class CollectionKind:
    """Objects that stand in collections and are written by their facts.

    Attributes:
        name: The kind's name in files.
        cls: Its class.
        write: Function of an object that returns its facts: a dict that JSON can hold, in which
            operations and tensors are names. Texts under "skipped" tell what of it cannot be
            written.
        read: Function of facts, and of a function that finds an operation ("a") or a tensor
            ("a:0") by the name that the facts give, which returns the object.
    """

    name: str
    cls: type
    write: Callable[[Any], dict[str, Any]]
    read: Callable[[dict[str, Any], Callable[[str], Any]], Any]


#: The collection of the inputs that a part of a graph takes from outside.
UNBOUND = "unbound_inputs"
_UNBOUND_INPUT = "$unbound_inputs_"

#: All kinds, by name.
kinds: dict[str, CollectionKind] = {}


def register_kind(kind: CollectionKind) -> None:
    """Lets collections with objects of a class be written."""
    kinds[kind.name] = kind


@mutable
class MetaGraphDef:
    """A graph, its collections and the objects in them, as data.

    Attributes:
        graph_def: The graph.
        collections: Entries by collection, as the module's docstring tells.
        objects: Facts of objects, each with its kind's name as "kind".
        saver: What a saver wrote about itself, None if there is none.
        skipped: What could not be written, one text per entry.
    """

    graph_def: GraphDef = field(default_factory=GraphDef)
    collections: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    objects: list[dict[str, Any]] = field(default_factory=list)
    saver: dict[str, Any] | None = None
    skipped: list[str] = field(default_factory=list, compare=False)

    def to_json(self) -> str:
        """Returns the JSON form: the graph's, with collections, objects and saver."""
        parts = {"objects": self.objects, "collections": self.collections, "saver": self.saver}
        return json_of(self.graph_def, **parts)

    @staticmethod
    def from_json(text: str | bytes) -> MetaGraphDef:
        """The object of a JSON form; raises as `GraphDef.from_json` does."""
        document = parse_json(text)
        found = MetaGraphDef(read_document(document))
        found.objects = take(document, "objects", list, "the graph")
        found.collections = take(document, "collections", dict, "the graph")
        found.saver = take(document, "saver", dict, "the graph") or None
        entries = [found.objects, *found.collections.values()]
        if not all(type(e) is list and all(type(f) is dict for f in e) for e in entries):
            raise InvalidArgumentError("expected objects and collections to be lists of objects")
        return found

    def SerializeToString(self) -> bytes:
        """Returns the JSON form as bytes."""
        return self.to_json().encode()

    def ParseFromString(self, serialized: bytes) -> int:
        """Takes all facts from a JSON form; returns how many bytes were read."""
        vars(self).update(vars(MetaGraphDef.from_json(serialized)))
        return len(serialized)

    def __repr__(self) -> str:
        size, variables = len(self.graph_def.node), len(self.objects)
        names = ", ".join(self.collections) or "none"
        return f"<fs.MetaGraphDef: {size} operations, {variables} objects, collections: {names}>"


# -- writing --------------------------------------------------------------------------------------


def meta_graph_of(
    graph: Graph,
    graph_def: GraphDef | None = None,
    collection_list: Iterable[str] | None = None,
    scope: str | None = None,
    unbound: str = UNBOUND,
) -> MetaGraphDef:
    """Returns a graph with its collections as data.

    Args:
        graph: The graph.
        graph_def: Its operations, if they are not to be all of them as they are.
        collection_list: Collections to write; all by default.
        scope: Only what lies in this name scope is written, under names without it. What it takes
            from outside is written as "$unbound_inputs_x", to be given when it is imported.
        unbound: The collection that lists these names.

    Raises:
        InvalidArgumentError: if operations in the scope call functions.
    """
    nodes = graph.as_graph_def() if graph_def is None else as_graph_def(graph_def)
    known = {n.name for n in nodes.node}
    every = [key for key in graph.collections if graph.get_collection(key)]
    keys = every if collection_list is None else list(collection_list)
    writer = _Writer(lambda name: name in known and _is_in(name, scope))
    for key in keys:
        writer.add(key, graph.get_collection(key))
    if scope:
        scope = scope.rstrip("/")
        inside = [n for n in nodes.node if _is_in(n.name, scope)]
        called = callees(inside)
        if called:
            raise InvalidArgumentError(
                f"the scope {scope!r} cannot be written alone: it calls the function {called[0]!r}"
            )
        nodes = GraphDef([_stripped(n, scope) for n in inside], nodes.seed)
        writer.strip(scope)
        inputs = dict.fromkeys(i for n in nodes.node for i in n.input if _is_unbound(i))
        if inputs:
            writer.collections[unbound] = [{"value": i} for i in inputs]
    return MetaGraphDef(nodes, writer.collections, writer.objects, skipped=writer.skipped)


def _is_in(name: str, scope: str | None) -> bool:
    return not scope or name.startswith(scope.rstrip("/") + "/")


class _Writer:
    """Writes entries of collections; an object that stands in several is written once."""

    def __init__(self, has: Callable[[str], bool]) -> None:
        self._has = has
        self.collections: dict[str, list[dict[str, Any]]] = {}
        self.objects: list[dict[str, Any]] = []
        self.skipped: list[str] = []
        self._numbers: dict[int, int] = {}

    def add(self, key: Any, values: list[Any]) -> None:
        load("kinds")
        if type(key) is not str:
            self.skipped.append(f"collection {key!r}: its name is no string")
            return
        entries = []
        for value in values:
            try:
                entry = self._entry(value)
            except DTypeError as e:
                self.skipped.append(f"collection {key!r}: {e.message}")
                continue
            if entry is not None:
                entries.append(entry)
        if entries:
            self.collections[key] = entries

    def _entry(self, value: Any) -> dict[str, Any] | None:
        """The written form of a value; None where its operation is not written either."""
        if isinstance(value, Tensor | Operation):
            op = value.op if isinstance(value, Tensor) else value
            kind = "tensor" if isinstance(value, Tensor) else "operation"
            return {kind: value.name} if self._has(op.name) else None
        if id(value) in self._numbers:
            return {"object": self._numbers[id(value)]}
        for known in kinds.values():
            if type(value) is known.cls:
                return self._object(known, value)
        return {"value": encode(value)}

    def _object(self, kind: CollectionKind, value: Any) -> dict[str, Any] | None:
        facts = kind.write(value)
        if not all(self._has(_op_name(n)) for n in _references(facts)):
            return None
        self.skipped += facts.pop("skipped", ())
        self._numbers[id(value)] = len(self.objects)
        self.objects.append({"kind": kind.name, **facts})
        return {"object": len(self.objects) - 1}

    def strip(self, scope: str) -> None:
        """Takes the scope off all names."""
        for facts in [*self.objects, *[e for es in self.collections.values() for e in es]]:
            facts.update(_map_references(facts, lambda n: n[len(scope) + 1 :]))


def _op_name(name: str) -> str:
    return name.partition(":")[0]


def _references(facts: dict[str, Any]) -> list[str]:
    found: list[str] = []
    _map_references(facts, lambda n: found.append(n) or n)  # type: ignore[func-returns-value]
    return found


def _map_references(facts: dict[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    """Returns the facts that name operations or tensors, with their names changed."""
    return {k: change(v) for k, v in facts.items() if k in _REFERENCES and isinstance(v, str)}


#: Facts of objects and entries that are names of operations or tensors.
_REFERENCES = frozenset(
    ("tensor", "operation", "handle", "initial_value", "initializer", "snapshot",
     "values", "indices", "dense_shape")
)  # fmt: skip


def _stripped(node: NodeDef, scope: str) -> NodeDef:
    out = copied(node)
    out.name = node.name[len(scope) + 1 :]
    out.input = [_input_within(i, scope) for i in node.input]
    out.colocation = [n[len(scope) + 1 :] for n in node.colocation if _is_in(n, scope)]
    if node.attr.get("shared_name") == node.name:
        out.attr["shared_name"] = out.name
    return out


def _input_within(text: str, scope: str) -> str:
    mark, name = ("^", text[1:]) if text.startswith("^") else ("", text)
    inner = name[len(scope) + 1 :] if _is_in(name, scope) else _UNBOUND_INPUT + name
    return mark + inner


def _is_unbound(text: str) -> bool:
    return text.lstrip("^").startswith(_UNBOUND_INPUT)


def check_unbound(meta: MetaGraphDef, collection: str, given: Iterable[str]) -> None:
    """Raises InvalidArgumentError unless all inputs from outside of what was written are given."""
    names = [str(e.get("value")) for e in meta.collections.get(collection, [])]
    known = {n.removesuffix(":0") for n in given}
    missing = [n for n in names if n not in known]
    if missing:
        raise InvalidArgumentError(
            f"the graph takes {', '.join(missing)} from outside: give them by input_map"
        )


# -- reading --------------------------------------------------------------------------------------


def import_meta(
    meta: MetaGraphDef, scope: str = "", clear_devices: bool = False, input_map: Any = None
) -> Imported:
    """Adds operations, objects and collections to the default graph.

    Args:
        meta: The graph.
        scope: Name scope of what is added, "" for none.
        clear_devices: Whether the devices that were asked for are forgotten.
        input_map: As in `import_graph_def`.

    Raises:
        NotFoundError: if it names kinds of objects, operations or op types that are not known.
    """
    load("kinds")
    unknown = sorted({str(f.get("kind")) for f in meta.objects} - set(kinds))
    if unknown:
        raise NotFoundError(f"objects of unknown kinds stand in collections: {', '.join(unknown)}")
    graph_def = meta.graph_def
    if clear_devices:
        graph_def = GraphDef()
        graph_def.CopyFrom(meta.graph_def)
        for node in graph_def.all_nodes():
            node.device = ""
    imported = import_nodes(graph_def, dict(input_map or {}), scope)
    objects = [kinds[f["kind"]].read(f, imported.find) for f in meta.objects]
    for key, entries in meta.collections.items():
        for entry in entries:
            imported.graph.add_to_collection(key, _value(key, entry, imported, objects))
    if meta.graph_def.seed is not None and imported.graph.seed is None:
        imported.graph.seed = meta.graph_def.seed
    return imported


def _value(key: str, entry: dict[str, Any], imported: Imported, objects: list[Any]) -> Any:
    match entry:
        case {"tensor": str(name), **others} if not others and ":" in name:
            return imported.find(name)
        case {"operation": str(name), **others} if not others:
            return imported.find(name)
        case {"object": int(number), **others} if not others and 0 <= number < len(objects):
            return objects[number]
        case {"value": value, **others} if not others:
            return decode(value)
    raise InvalidArgumentError(f"collection {key!r}: expected an entry, got {json.dumps(entry)}")


# -- slices ---------------------------------------------------------------------------------------


def _write_slices(slices: IndexedSlices) -> dict[str, Any]:
    shape = slices.dense_shape
    facts = {"values": slices.values.name, "indices": slices.indices.name}
    return facts if shape is None else facts | {"dense_shape": shape.name}


def _read_slices(facts: dict[str, Any], find: Callable[[str], Any]) -> IndexedSlices:
    parts = [facts.get(k) for k in ("values", "indices", "dense_shape")]
    if not all(isinstance(p, str | None) for p in parts) or None in parts[:2]:
        raise InvalidArgumentError(f"expected slices of tensors, got {json.dumps(facts)}")
    return IndexedSlices(*[None if p is None else find(p) for p in parts])


register_kind(CollectionKind("slices", IndexedSlices, _write_slices, _read_slices))
