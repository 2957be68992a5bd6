"""A node of a model while it is converted: its inputs, attributes, names, and what is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from onnx import AttributeProto, GraphProto, NodeProto

import flowscope as fs
from flowscope.errors import InvalidArgumentError, UnimplementedError
from flowscope.onnx.protos import as_array

#: What a name of a model stands for: a tensor, the elements of a sequence, or None for an optional
#: without a value.
Value: TypeAlias = "fs.Tensor | list[Any] | None"
_Array: TypeAlias = "npt.NDArray[Any]"


#: Attributes that follow from inputs, matter in training alone, or are asked for where they count.
_WITHOUT_EFFECT = {
    "broadcast", "count_include_pad", "kernel_shape", "momentum", "noop_with_empty_axes",
    "saturate", "seed", "type",
}  # fmt: skip


class OnnxNode:
    """One node being converted.

    Attributes:
        proto: The node.
        opset: The version of the domain's operators that the model asks for.
        name: What its operation is called in the current scope.
        inputs: What it takes; None for an input that is left out.
        values: All values of its graph so far, by name.
        run_graph: Converts one of its bodies: `run_graph(body, values of its inputs)`.
    """

    def __init__(
        self,
        proto: NodeProto,
        opset: int,
        name: str,
        inputs: Sequence[Value],
        run_graph: Callable[[GraphProto, Sequence[Value]], list[Value]],
        values: Mapping[str, Value],
    ) -> None:
        self.proto = proto
        self.opset = opset
        self.name = name
        self.inputs = list(inputs)
        self.run_graph = run_graph
        self.values = values
        self._attributes: Mapping[str, AttributeProto] = {a.name: a for a in proto.attribute}
        self._read: set[str] = set()

    @property
    def type(self) -> str:
        """The operator's name."""
        return self.proto.op_type

    @property
    def outputs(self) -> int:
        """How many outputs it lists; some may be left out, which have no name."""
        return len(self.proto.output)

    def wants(self, i: int) -> bool:
        """Whether output `i` has a name."""
        return i < len(self.proto.output) and bool(self.proto.output[i])

    def has(self, i: int) -> bool:
        """Whether input `i` is given."""
        return i < len(self.inputs) and self.inputs[i] is not None

    def get(self, i: int) -> fs.Tensor | None:
        """The tensor that is input `i`, None where it is left out."""
        return self.x(i) if self.has(i) else None

    def x(self, i: int) -> fs.Tensor:
        """The tensor that is input `i`."""
        found = self.inputs[i] if i < len(self.inputs) else None
        if not isinstance(found, fs.Tensor):
            raise InvalidArgumentError(f"expected a tensor as input {i}, got {kind_of(found)}")
        return found

    def tensors(self) -> list[fs.Tensor]:
        """All inputs, tensors."""
        return [self.x(i) for i in range(len(self.inputs))]

    def sequence(self, i: int) -> list[fs.Tensor]:
        """The elements of the sequence that is input `i`."""
        found = self.inputs[i] if i < len(self.inputs) else None
        if not isinstance(found, list):
            raise InvalidArgumentError(f"expected a sequence as input {i}, got {kind_of(found)}")
        return found

    def known(self, i: int) -> _Array | None:
        """The value of input `i` where it is known before a step runs, else None."""
        found = self.get(i)
        if found is None:
            return None
        if 0 in (found.spec.shape or ()) and found.spec.is_static and found.dtype.kind in "fiub":
            return np.zeros(found.spec.shape, found.dtype.np_dtype)  # type: ignore[arg-type]
        return known(found)

    def constant(self, i: int, what: str) -> _Array:
        """The value of input `i`, which must be known before a step runs."""
        found = self.known(i)
        if found is None:
            raise UnimplementedError(
                f"{what} (input {i}) must be known when the model is loaded; here it is computed"
            )
        return found

    def rank(self, i: int = 0) -> int:
        """The rank of input `i`, which must be known."""
        return rank_of(self.x(i))

    def axis(self, default: int, i: int = 0, name: str = "axis") -> int:
        """The attribute `axis`, from 0, of input `i`."""
        return int(normalized([self.attr(name, default)], self.rank(i))[0])

    def attr(self, name: str, default: Any = None) -> Any:
        """An attribute's value: a number, a text, a list of these, an array, a graph."""
        self._read.add(name)
        found = self._attributes.get(name)
        return default if found is None else attribute_value(found)

    def check_all_read(self) -> None:
        """Raises UnimplementedError if its converter has not asked for an attribute."""
        left = self._attributes.keys() - self._read - _WITHOUT_EFFECT
        if left:
            raise UnimplementedError(
                f"attributes that are not supported: {', '.join(sorted(left))}"
            )

    def needed(self, name: str) -> Any:
        """An attribute's value; raises InvalidArgumentError if there is none."""
        if name not in self._attributes:
            raise InvalidArgumentError(f"expected an attribute {name!r}")
        return self.attr(name)

    def axes(self, i: int = 1) -> list[int] | None:
        """The axes that an input or, in older opsets, an attribute lists, as they stand there."""
        if self.has(i):
            return [int(a) for a in self.constant(i, "the axes").reshape(-1)]
        found = self.attr("axes")
        return None if found is None else [int(a) for a in found]


def attribute_value(a: AttributeProto) -> Any:
    """The value of an attribute in Python's terms."""
    match a.type:
        case AttributeProto.FLOAT:
            return a.f
        case AttributeProto.INT:
            return a.i
        case AttributeProto.STRING:
            return a.s.decode()
        case AttributeProto.TENSOR:
            return as_array(a.t)
        case AttributeProto.GRAPH:
            return a.g
        case AttributeProto.FLOATS:
            return list(a.floats)
        case AttributeProto.INTS:
            return list(a.ints)
        case AttributeProto.STRINGS:
            return [s.decode() for s in a.strings]
        case AttributeProto.SPARSE_TENSOR:
            return a.sparse_tensor
        case AttributeProto.TYPE_PROTO:
            return a.tp
        case _:
            raise UnimplementedError(f"attribute {a.name!r} is of a kind that is not supported")


def known(tensor: fs.Tensor | None) -> _Array | None:
    """The tensor's value where it is known before a step runs, else None."""
    found = None if tensor is None else fs.get_static_value(tensor)
    return None if found is None else np.asarray(found)


def rank_of(tensor: fs.Tensor) -> int:
    """The rank of a tensor, which must be known."""
    if tensor.ndim is None:
        raise UnimplementedError("expected an input of known rank")
    return tensor.ndim


def dims_of(tensor: fs.Tensor) -> list[int | None]:
    """The dimensions of a tensor of known rank, None where one is not known."""
    rank_of(tensor)
    return list(tensor.shape.as_list())


def size_at(tensor: fs.Tensor, axis: int) -> Any:
    """One dimension of a tensor: a number where it is known, else an int64 scalar."""
    size = dims_of(tensor)[axis]
    return fs.shape(tensor, out_type=fs.int64)[axis] if size is None else size


def sizes_of(tensor: fs.Tensor) -> list[Any]:
    """The dimensions of a tensor of known rank: numbers, or int64 scalars."""
    return [size_at(tensor, i) for i in range(rank_of(tensor))]


def shape_from(sizes: Sequence[Any]) -> Any:
    """A shape from numbers and int64 scalars."""
    if all(isinstance(s, int | np.integer) for s in sizes):
        return np.array(sizes, np.int64)
    return fs.stack([fs.cast(s, fs.int64) for s in sizes])


def normalized(axes: Sequence[Any], rank: int) -> list[int]:
    """Axes counted from the front; raises InvalidArgumentError for one that is out of range."""
    for a in axes:
        if not -rank <= a < max(rank, 1):
            raise InvalidArgumentError(f"expected axes in [{-rank}, {rank}), got {a}")
    return [int(a) % max(rank, 1) for a in axes]


def full_like(value: Any, tensor: fs.Tensor) -> fs.Tensor:
    """A constant scalar of a tensor's dtype."""
    return fs.constant(np.asarray(value).astype(tensor.dtype.np_dtype), dtype=tensor.dtype)


def kind_of(value: Value) -> str:
    """What messages call a value."""
    if value is None:
        return "none"
    return "a sequence" if isinstance(value, list) else str(value.spec)
