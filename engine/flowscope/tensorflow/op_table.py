"""What makes operations of ours of a TensorFlow op type: functions of `fs.raw_ops`, and a few more.

A maker takes a `OpUse` and returns the op's outputs: a tensor, an operation, or a tuple of them in
TensorFlow's order, None where an output does not exist here.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol

from flowscope.errors import InvalidArgumentError, UnimplementedError
from flowscope.graph.constant import add_constant
from flowscope.graph.default import get_default_graph
from flowscope.graph.lazy import frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values.dtypes import DType
from flowscope.ops.core.build import apply
from flowscope.ops.state import variable_ops as state
from flowscope.tensorflow.signatures import OpSignature, signature
from flowscope.tensorflow.values import FunctionRef


class Functions(Protocol):
    """The functions of a file, ready to be called."""

    def call(self, ref: FunctionRef, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Adds a call of a function; returns its results."""

    def body(self, ref: FunctionRef, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Adds the operations of a function to the current block; returns its results."""


@frozen
class OpUse:
    """One use of an op type in a file.

    Attributes:
        op: The op type.
        name: The node's name.
        inputs: The tensors that it takes.
        attributes: Its attributes by TensorFlow's names.
        functions: The file's functions.
    """

    op: str
    name: str
    inputs: list[Tensor]
    attributes: Mapping[str, Any]
    functions: Functions

    def attribute(self, name: str, kind: type, default: Any = None) -> Any:
        """Returns an attribute.

        Raises:
            InvalidArgumentError: if it is missing and has no default, or is of another type.
        """
        found = self.attributes.get(name, default)
        if isinstance(found, kind):
            return found
        raise InvalidArgumentError(f"expected the attribute {name}, a {kind.__name__}, got {found}")


Maker = Callable[[OpUse], Any]

#: Makers by op type; modules that have more fill it.
makers: dict[str, Maker] = {}


def maker(*ops: str) -> Callable[[Maker], Maker]:
    """Decorator: a function is the maker of op types."""

    def register(function: Maker) -> Maker:
        makers.update(dict.fromkeys(ops, function))
        return function

    return register


def is_known(op: str) -> bool:
    """Whether operations can be made of an op type."""
    return signature(op) is not None and (op in makers or _raw_function(op) is not None)


def make(use: OpUse) -> Any:
    """Adds the operations for one use of an op type to the default graph; returns its outputs."""
    return makers.get(use.op, _raw)(use)


def _raw(use: OpUse) -> Any:
    function, known = _raw_function(use.op), signature(use.op)
    if function is None or known is None:
        raise UnimplementedError(f"no op type of TensorFlow is named {use.op!r} here")
    arguments = _grouped(use, known)
    names = _arguments_of(use.op)
    for theirs, value in use.attributes.items():
        name = known.renamed.get(theirs, theirs)
        if name in names and name not in arguments:
            arguments[name] = value
    return function(**arguments, name=use.name)


def _grouped(use: OpUse, known: OpSignature) -> dict[str, Any]:
    """Returns the inputs by name: a tensor, or a list of them."""
    arguments: dict[str, Any] = {}
    at = 0
    for one in known.inputs:
        count = one.length(use.attributes)
        part = use.inputs[at : at + count]
        if len(part) < count:
            raise InvalidArgumentError(f"expected {one.name} as an input, got {len(use.inputs)}")
        arguments[one.name] = part if one.is_list else part[0]
        at += count
    if at != len(use.inputs):
        raise InvalidArgumentError(f"expected {at} inputs, got {len(use.inputs)}")
    return arguments


@functools.cache
def _raw_function(op: str) -> Callable[..., Any] | None:
    raw_ops = import_module("flowscope.raw_ops")
    return getattr(raw_ops, op) if op in raw_ops.__all__ else None


@functools.cache
def _arguments_of(op: str) -> frozenset[str]:
    return frozenset(inspect.signature(_raw_function(op)).parameters)  # type: ignore[arg-type]


#: Op types of variables in TensorFlow 1, which stand for the variable and for its value.
VARIABLES = ("Variable", "VariableV2")


@maker(*VARIABLES)
def _variable(use: OpUse) -> Any:
    names = {n: use.attributes.get(n, "") for n in ("container", "shared_name")}
    facts = {"dtype": use.attribute("dtype", DType), "shape": use.attributes.get("shape")}
    return import_module("flowscope.raw_ops").VarHandleOp(**facts, **names, name=use.name)


def read_variable(handle: Tensor) -> Tensor:
    """Returns the value of a variable."""
    return apply(state.ReadVariableOp(), handle)


def _fs() -> Any:
    return import_module("flowscope")


@maker("Const")
def _const(use: OpUse) -> Any:
    value = use.attributes.get("value")
    if value is None or isinstance(value, str | int | float | FunctionRef):
        raise InvalidArgumentError(f"expected a tensor as the attribute value, got {value!r}")
    return add_constant(get_default_graph(), value, use.attributes.get("dtype"), use.name)


@maker("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def _fused_batch_norm(use: OpUse) -> Any:
    x, scale, offset, mean, variance = use.inputs
    is_training = use.attributes.get("is_training", True)
    factor = float(use.attributes.get("exponential_avg_factor", 1.0))
    given = (mean, variance) if not is_training or factor != 1.0 else (None, None)
    y, mean, variance = _fs().nn.fused_batch_norm(
        x, scale, offset, *given,
        epsilon=float(use.attributes.get("epsilon", 1e-4)),
        data_format=use.attributes.get("data_format", "NHWC"),
        is_training=is_training,
        exponential_avg_factor=factor,
        name=use.name,
    )  # fmt: skip
    return y, mean, variance, None, None, None


@maker("StridedSlice")
def _strided_slice(use: OpUse) -> Any:
    masks = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    given = {m: use.attributes.get(m, 0) for m in masks}
    return _fs().strided_slice(*use.inputs, **given, name=use.name)


@maker("Equal", "NotEqual")
def _equal(use: OpUse) -> Any:
    """With `incompatible_shape_error=False`, shapes that do not fit give one bool."""
    fs = _fs()
    x, y = use.inputs
    if not use.attributes.get("incompatible_shape_error", True) and not _broadcasts(x, y):
        return fs.constant(use.op == "NotEqual", name=use.name)
    return (fs.equal if use.op == "Equal" else fs.not_equal)(x, y, name=use.name)


def _broadcasts(x: Tensor, y: Tensor) -> bool:
    """Whether two shapes may fit each other, as far as they are known."""
    a, b = x.spec.shape, y.spec.shape
    if a is None or b is None:
        return True
    pairs = zip(reversed(a), reversed(b), strict=False)
    return all(m == n or None in (m, n) or 1 in (m, n) for m, n in pairs)


@maker("_SwitchN")
def _switch_n(use: OpUse) -> Any:
    """A chain of Switches: the data leaves at the index; the last takes all that are too large."""
    raw = import_module("flowscope.raw_ops")
    fs = _fs()
    data, index = use.inputs
    count = use.attribute("num_outs", int)
    if not 1 <= count <= 1 << 12:
        raise InvalidArgumentError(f"expected 1 to 4096 outputs, got {count}")
    outputs = []
    with fs.name_scope(use.name):
        for i in range(count - 1):
            is_here = fs.equal(index, i)
            data, out = raw.Switch(data=data, pred=is_here)
            index = raw.Switch(data=index, pred=is_here).output_false
            outputs.append(out)
        return (*outputs, fs.identity(data))


__all__ = ["Functions", "OpUse", "is_known", "make", "maker", "makers"]
