"""Reductions of tensors that several devices have, with a copy of the result on each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.operation import Tensor
from flowscope.graph.scopes import colocate_with, device
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import compatible
from flowscope.ops.array.joining import concat, split
from flowscope.ops.array.shaping import reshape

__all__ = ["build_shuffle_all_reduce"]


def build_shuffle_all_reduce(
    input_tensors: Sequence[Any],
    gather_devices: Sequence[Any],
    red_op: Callable[[list[Tensor]], Tensor],
    un_op: Callable[[Tensor], Tensor] | None = None,
) -> list[Tensor]:
    """Returns the elementwise reduction of tensors, once beside each of them.

    Each tensor is cut into one slice per gather device. A gather device collects its slice of all
    tensors, reduces it, and gives it to all. With N tensors of K bytes, on the N gather devices,
    each device sends 2K(N-1)/N bytes. Slices differ by one element at most. Each element is reduced
    in the order of the tensors, so the bits of the results do not depend on the number of gather
    devices.

        sums = fs.experimental.build_shuffle_all_reduce(gradients, devices, fs.add_n)

    Args:
        input_tensors: Tensors of one dtype and one shape, which is known while the graph is built.
            The results share their devices.
        gather_devices: On which devices slices are reduced, as `fs.device` takes them.
        red_op: Reduces a list of slices elementwise: `fs.add_n`.
        un_op: What is done with each reduced slice, elementwise: `lambda x: x / 3.0`.

    Raises:
        InvalidArgumentError: if there is no tensor or no gather device, if shapes differ or are not
            known, or if a function does not return a slice as it has got.
        DTypeError: if dtypes differ.

    Source: `build_shuffle_all_reduce` of TensorFlow's contrib.all_reduce; BigDL's parameter
    synchronisation (SoCC'19, arXiv 1804.05839).
    """
    tensors = _alike([convert_to_tensor(t) for t in input_tensors])
    places = list(gather_devices)
    if not places:
        raise expected("at least one gather device", "none")
    count = tensors[0].shape.num_elements() or 0
    lengths = _lengths(count, len(places))
    with tensors[0].graph.name_scope("shuffle_all_reduce"):
        slices = [_slices(t, lengths) for t in tensors]
        reduced = []
        for i, place in enumerate(places[: len(lengths)]):
            with device(place):
                reduced.append(_reduced([s[i] for s in slices], red_op, un_op))
        return [_joined(reduced, t) for t in tensors]


def _alike(tensors: list[Tensor]) -> list[Tensor]:
    """Returns tensors of one dtype and one known shape."""
    if not tensors:
        raise expected("at least one tensor to reduce", "none")
    first = tensors[0]
    for i, t in enumerate(tensors):
        if t.dtype is not first.dtype:
            raise expected_dtype(f"{first.dtype.name} as the first tensor's", t.dtype)
        if not t.shape.is_fully_defined():
            raise expected(
                "tensors whose shapes are known while the graph is built", f"{t.spec} at {i}"
            )
        if not compatible(t.spec.shape, first.spec.shape):
            raise expected(f"tensors of one shape, {first.spec}", f"{t.spec} at {i}")
    return tensors


def _lengths(count: int, parts: int) -> list[int]:
    """Returns the lengths of at most so many parts, none of them empty unless nothing is there."""
    parts = max(1, min(parts, count))
    ends = [count * i // parts for i in range(parts + 1)]
    return [end - begin for begin, end in zip(ends, ends[1:], strict=False)]


def _slices(tensor: Tensor, lengths: list[int]) -> list[Tensor]:
    """Returns a tensor's slices, cut where it is."""
    with colocate_with(tensor):
        return split(reshape(tensor, [-1]), lengths, name="slices")


def _reduced(
    values: list[Tensor],
    red_op: Callable[[list[Tensor]], Tensor],
    un_op: Callable[[Tensor], Tensor] | None,
) -> Tensor:
    """Returns one slice, reduced."""
    found = convert_to_tensor(red_op(values))
    if un_op is not None:
        found = convert_to_tensor(un_op(found))
    if not compatible(found.spec.shape, values[0].spec.shape):
        raise InvalidArgumentError(
            f"expected functions that work element by element: of slices {values[0].spec} they "
            f"return {found.spec}"
        )
    return found


def _joined(slices: list[Tensor], beside: Tensor) -> Tensor:
    """Returns the whole of the reduced slices, with the shape and on the device of a tensor."""
    with colocate_with(beside):
        whole = slices[0] if len(slices) == 1 else concat(slices, 0)
        return reshape(whole, beside.shape.as_list(), name="reduced")
