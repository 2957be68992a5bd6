"""Programs as bytes: what a client sends to its own workers, which make the code themselves.

A program is written as rows of plain data, so that no chain of nodes is too long for pickle. The
user's functions and types are not written: each is a number, which the receiver binds. Pickle runs
what it reads: bytes may come from the client of a worker's own cluster, and never from a file.
"""

from __future__ import annotations

import importlib
import io
import pickle
from collections.abc import Callable, Sequence
from types import FunctionType, MethodType
from typing import Any

from flowscope.graph.op import Op, Spec, find_op_class, op_class
from flowscope.plan.ir.collector import paused_collector
from flowscope.plan.ir.origins import OperationRef, RecordedOrigin
from flowscope.plan.ir.program import Node, Program, Value
from flowscope.plan.ir.structured import CondNode, LoopNode

_KINDS: tuple[type[Node], ...] = (Node, LoopNode, CondNode)
#: Functions and types of these modules are found by their names.
_OURS = ("builtins", "flowscope", "ml_dtypes", "numpy")


#: A function or type of the user's.
UserObject = Callable[..., Any]


def dumps(program: Program) -> tuple[bytes, tuple[UserObject, ...]]:
    """Returns a program as bytes, and the user's functions and types in it, by their numbers."""
    out, objects = io.BytesIO(), list[UserObject]()
    with paused_collector():
        _Pickler(out, objects).dump(_Writer().program(program))
    return out.getvalue(), tuple(objects)


def loads(data: bytes, objects: Sequence[UserObject] = ()) -> Program:
    """Returns the program that `dumps` has written.

    Args:
        data: The bytes.
        objects: The user's functions and types by their numbers: what was there, or what stands
            for it.
    """
    with paused_collector():
        return _Reader().program(_Unpickler(io.BytesIO(data), objects).load())


def rows_of(program: Program) -> Any:
    """Returns a program as rows of plain data, for what holds one and is written itself."""
    return _Writer().program(program)


def program_of(rows: Any) -> Program:
    """Returns the program of some rows."""
    return _Reader().program(rows)


class _Pickler(pickle.Pickler):
    """Writes ops by the names of their types, and what is the user's as numbers."""

    def __init__(self, out: io.BytesIO, objects: list[UserObject]) -> None:
        super().__init__(out, pickle.HIGHEST_PROTOCOL)
        self._objects = objects
        self._numbers: dict[int, int] = {}
        #: Origins as they are written: many operations come from one line.
        self._origins: dict[tuple[int, ...], RecordedOrigin] = {}

    def reducer_override(self, obj: Any) -> Any:
        """The reduced form of an operation, a type of op, or a function or type of the user's.

        It is asked of what is no plain data; `persistent_id` would be asked of every number.
        """
        if type(obj) is OperationRef:
            return obj.reduced(self._origins)
        if not isinstance(obj, type | FunctionType | MethodType):
            return NotImplemented
        if (obj.__module__ or "").partition(".")[0] in _OURS:
            if isinstance(obj, type) and issubclass(obj, Op) and _is_registered(obj):
                return _op_type, (obj.__module__, obj.__name__)
            return NotImplemented
        if id(obj) not in self._numbers:
            self._numbers[id(obj)] = len(self._objects)
            self._objects.append(obj)
        return _user_object, (self._numbers[id(obj)],)


class _Unpickler(pickle.Unpickler):
    def __init__(self, source: io.BytesIO, objects: Sequence[UserObject]) -> None:
        super().__init__(source)
        self._objects = objects

    def find_class(self, module: str, name: str) -> Any:
        """Returns a global; for the number of an object what the receiver has bound to it."""
        if (module, name) == (__name__, _user_object.__name__):
            return self._objects.__getitem__
        return super().find_class(module, name)


def _is_registered(op: type[Op]) -> bool:
    return find_op_class(op.__name__) is op


def _op_type(module: str, name: str) -> type[Op]:
    """Returns a type of op."""
    importlib.import_module(module)  # families of ops are loaded when first used
    return op_class(name)


def _user_object(number: int) -> UserObject:
    """Stands for the function or type of the user's that has this number; see `_Unpickler`."""
    raise NotImplementedError


class _Writer:
    """Numbers nodes and values in the order of the rows, and writes these."""

    def __init__(self) -> None:
        self._values: dict[Value, int] = {}
        self._nodes: dict[Node, int] = {}
        #: What many nodes have in common is written once.
        self._specs: dict[tuple[Any, Any], Spec] = {}
        self._ops: dict[type[Op], Op] = {}

    def program(self, program: Program) -> Any:
        """Returns the rows of a whole program."""
        self._number(program)
        return self._rows(program)

    def _number(self, program: Program) -> None:
        for value in program.feeds:
            self._values[value] = len(self._values)
        for node in program.nodes:
            self._nodes[node] = len(self._nodes)
            for value in node.outputs:
                self._values[value] = len(self._values)
            for block in node.blocks:
                self._number(block)

    def _rows(self, program: Program) -> Any:
        feeds = [(v.index, v.spec, v.name) for v in program.feeds]
        nodes = [self._row(n) for n in program.nodes]
        targets = [self._nodes[n] for n in program.targets]
        return feeds, nodes, self._numbers(program.fetches), targets, program.notes

    def _row(self, node: Node) -> Any:
        op = self._op(node.op)
        facts = (op, node.name, node.order, node.requested, node.origins, node.path)
        placed = (node.device, node.reason, node.group)
        edges = self._numbers(node.inputs), [self._nodes[n] for n in node.control]
        specs = [self._spec(v.spec) for v in node.outputs]
        blocks = [self._rows(b) for b in node.blocks]
        return _KINDS.index(type(node)), facts, placed, specs, edges, blocks

    def _numbers(self, values: Sequence[Value]) -> list[int]:
        return [self._values[v] for v in values]

    def _op(self, op: Op) -> Op:
        """Returns an op without attributes for all nodes of its type."""
        return op if op.__dict__ else self._ops.setdefault(type(op), op)

    def _spec(self, spec: Spec) -> Spec:
        """Returns one spec for all that are alike and know nothing more of their values."""
        if spec.constant is None and spec.dims is None and spec.variable is None:
            return self._specs.setdefault((spec.dtype, spec.shape), spec)
        return spec


class _Reader:
    """Makes all nodes and values in the order of the rows, then joins them."""

    def __init__(self) -> None:
        self._values: list[Value] = []
        self._nodes: list[Node] = []
        self._edges: list[tuple[Node, Any, Any]] = []

    def program(self, rows: Any) -> Program:
        """Returns the program of some rows."""
        made = self._made(rows)
        program = self._joined(rows, made)
        for node, (inputs, control), blocks in self._edges:
            node.inputs = tuple([self._values[i] for i in inputs])
            node.control = tuple([self._nodes[i] for i in control])
            node.blocks = tuple([self._joined(*b) for b in blocks])
        return program

    def _made(self, rows: Any) -> tuple[list[Value], list[Node]]:
        feeds = [Value(None, index, spec, name) for index, spec, name in rows[0]]
        self._values += feeds
        return feeds, [self._node(row) for row in rows[1]]

    def _node(self, row: Any) -> Node:
        kind, (op, name, order, requested, origins, path), placed, specs, edges, blocks = row
        node: Node = _KINDS[kind](op, name, order, (), specs, requested, origins, path)
        node.device, node.reason, node.group = placed
        self._nodes.append(node)
        self._values += node.outputs
        self._edges.append((node, edges, [(b, self._made(b)) for b in blocks]))
        return node

    def _joined(self, rows: Any, made: tuple[list[Value], list[Node]]) -> Program:
        fetches = tuple([self._values[i] for i in rows[2]])
        targets = tuple([self._nodes[i] for i in rows[3]])
        return Program(tuple(made[1]), tuple(made[0]), fetches, targets, rows[4])


__all__ = ["dumps", "loads", "program_of", "rows_of"]
