"""Forward references: values that are used before what makes them is built.

Code that builds one replica of a model after the other needs the result of a collective before the
last replica's part of it is there. It takes a forward reference, and resolves it later:

    refs = []
    for x in tensors:
        refs.append(fs.collectives.forward_reference(x))
        ...  # goes on with the reference
    fs.collectives.resolve_references(zip(refs, fs.collectives.all_reduce(tensors)))
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.rewiring import replace_inputs
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import Dims, as_dims
from flowscope.ops.core.build import apply

__all__ = ["forward_reference", "resolve_references"]


@frozen
class ForwardReference(
    Op,
    views=(0,),
    memory_order="R",
    template="{0}",
    keeps_finite=True,
    may_run_early=True,
):
    """The value of its input, which another tensor replaces later.

    Attributes:
        shape: The static shape of what replaces the input; no more is known of it.

    Shapes: any -> shape
    """

    shape: Dims

    def infer(self, x: Spec) -> Spec:
        return Spec(x.dtype, self.shape)

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        return (g,)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        return x


def forward_reference(tensor: Any, shape: Any = "same", name: str | None = None) -> Tensor:
    """Returns a tensor that stands for one which is built later.

    Until `resolve_references` replaces it, its value is that of `tensor`. The gradient goes to the
    input that the reference has when the gradient is built; `Graph.gradient_override_map` with
    "ForwardReference" gives it another one.

    Args:
        tensor: A tensor of the same dtype as the later one.
        shape: The static shape of the later one; "same" for that of `tensor`.
        name: Name of the operation.

    Example:
        >>> x = fs.constant([1.0, 2.0])
        >>> ref = fs.collectives.forward_reference(x)
        >>> y = ref + 1.0
        >>> fs.collectives.resolve_references([(ref, x * 10.0)])
        >>> fs.Session().run(y)
        array([11., 21.], dtype=float32)
    """
    x = convert_to_tensor(tensor)
    is_same = isinstance(shape, str) and shape == "same"
    dims = x.spec.shape if is_same else as_dims(shape)
    return apply(ForwardReference(dims), x, name=name)


def resolve_references(pairs: Iterable[tuple[Tensor, Any]]) -> None:
    """Gives forward references the tensors for which they stand.

    Args:
        pairs: (reference, tensor): references as `forward_reference` has returned them.

    Raises:
        DTypeError: if something is no forward reference, or the tensor has another dtype.
        InvalidArgumentError: if shapes contradict, or the tensor depends on its own reference.
        GraphError: if the two do not stand in the same block of the same graph.
    """
    found = []
    for ref, tensor in pairs:
        if not isinstance(ref, Tensor) or not isinstance(ref.op.definition, ForwardReference):
            raise expected_dtype("a tensor that forward_reference has returned", repr(ref))
        x = convert_to_tensor(tensor)
        if not ref.shape.is_compatible_with(x.shape):
            raise expected(f"a tensor of shape {ref.shape} for {ref.name!r}", x.spec)
        found.append((ref.op, 0, x))
    replace_inputs(found)
