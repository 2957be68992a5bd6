"""A graph as plain data: what the text form, the JSON form and imports share."""

from __future__ import annotations

import os
from dataclasses import field
from typing import Any

from flowscope.errors import DTypeError
from flowscope.graph.lazy import frozen, mutable
from flowscope.graph.op import Spec
from flowscope.graph.origins.origin import Origin, SourceLine
from flowscope.graph.providers import serializer
from flowscope.graph.serialization.formats import is_tensorflow
from flowscope.graph.values.dtypes import DType
from flowscope.graph.values.shapes import Dims

#: Dtype and static shape of an output.
Output = tuple[DType, Dims]


@frozen
class WrittenPlace(SourceLine):
    """A line of code as a file tells it: the code itself is not at hand."""

    @property
    def text(self) -> str:
        """Nothing: a file of that name here may hold other code."""
        return ""


class WrittenOrigin(Origin):
    """An origin that was read from a file."""

    __slots__ = ("_places",)

    def __init__(self, places: tuple[SourceLine, ...]) -> None:
        super().__init__(())
        self._places = places

    @property
    def key(self) -> tuple[int, ...]:
        """What two origins of the same lines share while both live."""
        return (id(self._places),)

    @property
    def places(self) -> tuple[SourceLine, ...]:
        """The user's lines, innermost first; empty if there was none."""
        return self._places

    @property
    def place(self) -> SourceLine | None:
        """The user's innermost line."""
        return self._places[0] if self._places else None


@mutable
class NodeDef:
    """One operation.

    Attributes:
        name: Its name.
        op: The op type, e.g. "MatMul".
        input: What it takes: "a" (which is "a:0"), "a:1", and "^c" for a control input.
        device: The device that was asked for, "" for none.
        attr: Attributes by name.
        colocation: Names of operations that it shares a device with.
        outputs: Dtype and shape of each output; None where nobody said.
        gradient: Name of the registered gradient that takes the op's place, "" for none.
        forward: Name of the operation whose gradient it was made for, "" for most.
        origin: The user's lines that made it, if they are known.
        line: In which line of a text it stands, if it was read from one.
    """

    name: str = ""
    op: str = ""
    input: list[str] = field(default_factory=list)
    device: str = ""
    attr: dict[str, Any] = field(default_factory=dict)
    colocation: list[str] = field(default_factory=list)
    outputs: list[Output] | None = None
    gradient: str = ""
    forward: str = field(default="", compare=False)
    origin: Origin | None = field(default=None, compare=False, repr=False)
    line: int | None = field(default=None, compare=False, repr=False)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NodeDef):
            return NotImplemented
        return _facts(self) == _facts(other) and same_value(
            sorted(self.attr.items()), sorted(other.attr.items())
        )

    @property
    def data_inputs(self) -> list[str]:
        """The inputs that hand over a value."""
        return [i for i in self.input if not i.startswith("^")]

    @property
    def control_inputs(self) -> list[str]:
        """Names of the operations that must finish first."""
        return [i[1:] for i in self.input if i.startswith("^")]

    def CopyFrom(self, other: NodeDef) -> None:
        """Takes all facts from `other`."""
        for key, value in vars(other).items():
            copied = value.copy() if isinstance(value, list | dict) else value
            setattr(self, key, copied)


def _facts(node: NodeDef) -> tuple[Any, ...]:
    return (
        node.name, node.op, node.input, node.device, node.colocation, node.outputs, node.gradient
    )  # fmt: skip


@frozen
class FunctionName:
    """Stands for a function of the graph in attributes."""

    name: str


@mutable
class FunctionDef:
    """A function: operations that calls run with other inputs each time.

    Attributes:
        name: Its name.
        node: Its operations, of which the `Parameter`s are its inputs. They use each other only.
        captures: Tensors outside, which calls pass for the last parameters.
        results: Tensors that calls return.
        kept: Further tensors that calls have outputs for, behind the results.
    """

    name: str = ""
    node: list[NodeDef] = field(default_factory=list)
    captures: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)

    @property
    def parameters(self) -> list[NodeDef]:
        """Its inputs, in order."""
        found = [n for n in self.node if n.op == "Parameter"]
        return sorted(found, key=lambda n: _index(n))

    @property
    def callees(self) -> list[str]:
        """Names of the functions that it calls."""
        return callees(self.node)


def _index(node: NodeDef) -> int:
    index = node.attr.get("index")
    return index if isinstance(index, int) else 0


def callees(nodes: list[NodeDef]) -> list[str]:
    """Returns the names of the functions that operations call."""
    return [v.name for n in nodes for v in n.attr.values() if isinstance(v, FunctionName)]


def callees_first(functions: list[FunctionDef]) -> list[FunctionDef]:
    """Returns the functions so that each stands behind those it calls, where that is possible."""
    known = {f.name: f for f in functions}
    done: dict[str, FunctionDef] = {}
    for function in functions:
        stack = [(function, iter(function.callees))]
        entered = {function.name}
        while stack:
            at, left = stack[-1]
            name = next(left, None)
            if name is None:
                done.setdefault(at.name, at)
                stack.pop()
            elif name in known and name not in done and name not in entered:
                entered.add(name)
                stack.append((known[name], iter(known[name].callees)))
    return list(done.values())


def same_value(a: Any, b: Any) -> bool:
    """Whether two attributes are the same to the last bit (so nan is nan, and -0.0 is not 0.0)."""
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(same_value(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, float | complex):
        return repr(a) == repr(b)
    if isinstance(a, Spec):
        return (a.dtype, a.shape) == (b.dtype, b.shape) and same_value(a.variable, b.variable)
    return bool(a == b)


@mutable
class GraphDef:
    """A graph as data: `node` is a list that may be read, changed, written and imported.

    Attributes:
        node: The operations, in the order in which they were made.
        seed: The graph's random seed, None if it was not set.
        names: How often names were asked for, where the operations' names do not tell.
        functions: Functions that operations call, each behind those that it calls itself.
    """

    node: list[NodeDef] = field(default_factory=list)
    seed: int | None = None
    names: dict[str, int] = field(default_factory=dict, compare=False)
    functions: list[FunctionDef] = field(default_factory=list)

    def all_nodes(self) -> list[NodeDef]:
        """Returns the operations, those of functions too."""
        return [*[n for f in self.functions for n in f.node], *self.node]

    def strip_default_attrs(self) -> None:
        """Takes out the attributes that are as the op types have them by default."""
        default_values = serializer("default_values")
        for node in self.all_nodes():
            usual = default_values(node.op)
            node.attr = {
                k: v for k, v in node.attr.items() if k not in usual or not same_value(v, usual[k])
            }

    def text(self, exact: bool = True) -> str:
        """Returns the text form, see `Graph.text`."""
        return serializer("text_of")(self, exact)  # type: ignore[no-any-return]

    @staticmethod
    def from_text(text: str) -> GraphDef:
        """The definition in a text form; raises InvalidArgumentError if it cannot be read."""
        return serializer("read_text")(text)  # type: ignore[no-any-return]

    def to_json(self) -> str:
        """Returns the JSON form, see `Graph.to_json`."""
        return serializer("json_of")(self)  # type: ignore[no-any-return]

    @staticmethod
    def from_json(text: str | bytes) -> GraphDef:
        """The definition in a JSON form.

        Raises:
            DataLossError: if it is not JSON.
            InvalidArgumentError: if it is no graph, or of a version that is not known here.
        """
        return serializer("read_json")(text)  # type: ignore[no-any-return]

    def SerializeToString(self) -> bytes:
        """Returns the JSON form as bytes."""
        return self.to_json().encode()

    def ParseFromString(self, serialized: bytes) -> int:
        """Takes all facts from a serialized graph; returns how many bytes were read."""
        self._take(GraphDef.FromString(serialized))
        return len(serialized)

    @staticmethod
    def FromString(serialized: bytes) -> GraphDef:
        """The definition in a JSON form, or in TensorFlow's binary or text form.

        Op types of TensorFlow become ours, and operations have the names that they have there: a
        graph that was frozen by TensorFlow can be imported. Nothing in it is executed.

        Raises:
            DataLossError: if it is none of these.
            FailedPreconditionError: if it is TensorFlow's and protobuf is not installed.
            NotFoundError: if it uses op types of TensorFlow that are not known: all of them.
            InvalidArgumentError: if it does not hold together.
        """
        if is_tensorflow(serialized):
            return serializer("read_tensorflow")(serialized)  # type: ignore[no-any-return]
        return GraphDef.from_json(serialized)

    def CopyFrom(self, other: GraphDef) -> None:
        """Takes copies of all facts from `other`."""
        self._take(GraphDef(_copies(other.node), other.seed, dict(other.names)))
        for f in other.functions:
            parts = list(f.captures), list(f.results), list(f.kept)
            self.functions.append(FunctionDef(f.name, _copies(f.node), *parts))

    def _take(self, other: GraphDef) -> None:
        vars(self).update(vars(other))

    def __repr__(self) -> str:
        types = len({n.op for n in self.node})
        return f"<fs.GraphDef: {len(self.node)} operations of {types} types>"


def _copies(nodes: list[NodeDef]) -> list[NodeDef]:
    return [copied(n) for n in nodes]


def copied(node: NodeDef) -> NodeDef:
    """Returns a copy, whose lists and attributes can be changed."""
    out = NodeDef()
    out.CopyFrom(node)
    return out


def as_graph_def(value: Any) -> GraphDef:
    """Returns `value` if it is a GraphDef; raises DTypeError if not."""
    if isinstance(value, GraphDef):
        return value
    raise DTypeError(
        f"expected a GraphDef, got {type(value).__name__}: graph.as_graph_def() makes one, "
        "fs.io.read_graph reads one from a file"
    )


def input_name(op: str, index: int) -> str:
    """Returns how a NodeDef names an output."""
    return f"{op}:{index}" if index else op


def split_input(text: str) -> tuple[str, int]:
    """Returns (operation, output index) of "a", "a:1" or "^a" (which has the index -1)."""
    if text.startswith("^"):
        return text[1:], -1
    name, colon, index = text.rpartition(":")
    if colon and index.isdecimal() and len(index) < 10:
        return name, int(index)
    return text, 0


def short_file(filename: str) -> str:
    """Returns a file's name without its folder: a written graph tells nothing of the disk."""
    return os.path.basename(filename)
