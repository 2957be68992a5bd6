"""Ops that move values or order operations: placeholders, identities, groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flowscope.errors import UnsupportedGradientError
from flowscope.graph.default import get_default_graph
from flowscope.graph.graph import Graph
from flowscope.graph.indexed_slices import IndexedSlices, convert_to_tensor_or_indexed_slices
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values.dtypes import DType, as_dtype
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import Dims, as_dims, compatible, text
from flowscope.ops.core.build import apply, apply_none, on_values, unary

__all__ = [
    "group",
    "identity",
    "identity_n",
    "no_op",
    "placeholder",
    "placeholder_with_default",
    "prevent_gradient",
    "stop_gradient",
    "tuple",
]


@frozen
class Placeholder(Op, keeps_finite=True):
    """A value that each run must be fed."""

    dtype: DType
    shape: Dims

    def infer(self) -> Spec:
        return Spec(self.dtype, self.shape)

    def grad(self, g: Tensor, y: Tensor) -> Any:
        return ()

    def kernel(self, xp: ArrayModule) -> Array:
        raise expected(
            f"a feed of dtype {self.dtype} and shape {text(self.shape)}",
            "none: give its value in the feed_dict of Session.run",
        )


@frozen
class PlaceholderWithDefault(Op, views=(0,), template="{0}", passes_slices=True):
    """A value that a run may be fed; else it is the input.

    Shapes: the input must fit `shape`, which is the output's.
    """

    shape: Dims

    def infer(self, x: Spec) -> Spec:
        if not compatible(x.shape, self.shape):
            raise expected(f"a default of shape {text(self.shape)}", x.shape)
        return Spec(x.dtype, self.shape)

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        return (g,)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        return x


@frozen
class Identity(
    Op,
    views=(0,),
    memory_order="R",
    template="{0}",
    passes_slices=True,
    keeps_finite=True,
    may_run_early=True,
):
    """The input as it is."""

    def infer(self, x: Spec) -> Spec:
        return x

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        return (g,)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        return x


@frozen
class StopGradient(
    Op, views=(0,), memory_order="R", template="{0}", is_differentiable=False, keeps_finite=True
):
    """The input as it is; gradients do not flow through."""

    def infer(self, x: Spec) -> Spec:
        return x

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        return x


@frozen
class PreventGradient(Op, views=(0,), memory_order="R", template="{0}"):
    """The input as it is; asking for a gradient through it is an error."""

    message: str

    def infer(self, x: Spec) -> Spec:
        return x

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        raise UnsupportedGradientError(f"no gradient is allowed here: {self.message}")

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        return x


@frozen
class NoOp(Op, is_differentiable=False):
    """Nothing: it only waits for its control inputs."""

    def infer(self) -> Any:
        return ()

    def kernel(self, xp: ArrayModule) -> None:
        return None


_IDENTITY = Identity()
_STOP = StopGradient()
_NO_OP = NoOp()


def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Tensor:
    """Returns a tensor whose value is fed: `sess.run(y, feed_dict={x: ...})`.

    Args:
        dtype: Element type of what is fed.
        shape: Static shape; None for any, None in it for any size.
        name: Name of the operation.

    Example:
        >>> x = fs.placeholder(fs.float32, [None], name="x")
        >>> fs.Session().run(x * 2.0, {x: [1.0, 2.5]})
        array([2., 5.], dtype=float32)
    """
    return apply(Placeholder(as_dtype(dtype), as_dims(shape)), name=name)


def placeholder_with_default(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """Returns a tensor that is `input` unless a value is fed.

    Args:
        input: The default value.
        shape: Static shape of what may be fed; the default must fit it.
        name: Name of the operation.
    """
    return unary(PlaceholderWithDefault(as_dims(shape)), input, name)


def identity(input: Any, name: str | None = None) -> Tensor:
    """Returns a tensor with `input`'s value: a new operation, e.g. to place or to order."""
    if type(input) is not Tensor and isinstance(getattr(input, "values", None), Tensor):
        return on_values(input, lambda v: identity(v, name))  # type: ignore[no-any-return]
    return unary(_IDENTITY, input, name)


def identity_n(input: Any, name: str | None = None) -> list[Tensor]:
    """Returns an `identity` of each tensor of the list."""
    return [unary(_IDENTITY, x, name or "IdentityN") for x in input]


def stop_gradient(input: Any, name: str | None = None) -> Tensor:
    """Returns `input`'s value as a constant for gradients.

    Example:
        >>> x = fs.constant(3.0)
        >>> fs.Session().run(fs.gradients(x * fs.stop_gradient(x), x))
        [np.float32(3.0)]
    """
    if type(input) is not Tensor and isinstance(getattr(input, "values", None), Tensor):
        return on_values(input, lambda v: stop_gradient(v, name))  # type: ignore[no-any-return]
    return unary(_STOP, input, name)


def prevent_gradient(input: Any, message: str = "", name: str | None = None) -> Tensor:
    """Returns `input`'s value; `fs.gradients` through it raises a LookupError."""
    return unary(PreventGradient(message), input, name)


def no_op(name: str | None = None) -> Operation:
    """Returns an operation that does nothing: something to hang control dependencies on."""
    return apply_none(_NO_OP, name=name)


def group(*inputs: Any, **kwargs: Any) -> Operation:
    """Returns an operation that is done when all of `inputs` are, on their device.

    Where they stand on several devices, there is one operation per device, and one that waits for
    these.

    Args:
        *inputs: Operations, tensors, variables, None, and lists of them.
        **kwargs: Only `name`, the operation's name.

    Example:
        >>> a, b = fs.Variable(1.0), fs.Variable(2.0)
        >>> sess = fs.Session()
        >>> sess.run(fs.group(a.initializer, b.initializer))
        >>> sess.run([a, b])
        [np.float32(1.0), np.float32(2.0)]
    """
    name = kwargs.pop("name", None)
    if kwargs:
        raise expected("only the keyword name", ", ".join(kwargs))
    waited = [_element(x) for x in _flat(inputs)]
    graph = waited[0].graph if waited else get_default_graph()
    by_device: dict[str, list[Any]] = {}
    for thing in waited:
        by_device.setdefault(thing.device, []).append(thing)
    name = name or "group_deps"
    if len(by_device) < 2:
        (device,) = by_device or [None]
        return _waiting(graph, device, waited, name)
    with graph.name_scope(name) as full:
        parts = [_waiting(graph, d, by_device[d], "NoOp") for d in sorted(by_device)]
    with graph.control_dependencies(parts):
        return graph.add(_NO_OP, (), full)


def _waiting(graph: Graph, device: str | None, things: list[Any], name: str) -> Operation:
    """Returns an operation on a device ("": where it is asked for) that waits for others."""
    with graph.control_dependencies(things), graph.device(device or ""):
        return graph.add(_NO_OP, (), name)


def tuple(tensors: Any, name: str | None = None, control_inputs: Any = None) -> list[Any]:
    """Returns the tensors' values, each of them only once all have been computed.

    Args:
        tensors: Tensors, slices, or None (which stays None). In the place of an operation comes one
            that has run once all have.
        name: Name scope of the operations.
        control_inputs: Further operations to wait for.

    Raises:
        InvalidArgumentError: if there is nothing to wait for.
    """
    given = [
        t if t is None or isinstance(t, Operation) else convert_to_tensor_or_indexed_slices(t)
        for t in tensors
    ]
    known = [t for t in given if t is not None]
    if not known:
        raise expected("at least one tensor", repr(tensors))
    graph = known[0].graph
    with graph.name_scope(name or "tuple"):
        gate = group(*known, *(control_inputs or ()))
        with graph.control_dependencies([gate]):
            return [None if t is None else _gated(t) for t in given]


def _gated(t: Any) -> Any:
    if isinstance(t, IndexedSlices):
        return IndexedSlices(_gated(t.values), t.indices, t.dense_shape)
    if isinstance(t, Operation):
        return group(t)
    return identity(t, "control_dependency")


def _flat(inputs: Any) -> Iterator[Any]:
    for x in inputs:
        if isinstance(x, list | set | frozenset | type(())):
            yield from _flat(x)
        elif isinstance(x, dict):
            yield from _flat(x.values())
        elif x is not None:
            yield x


def _element(thing: Any) -> Any:
    if isinstance(thing, Tensor | Operation):
        return thing
    element = getattr(thing, "_as_graph_element", None)
    if element is None:
        raise expected_dtype("operations, tensors or variables", repr(thing))
    return element()
