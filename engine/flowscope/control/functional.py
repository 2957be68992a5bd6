"""`map_fn`, `foldl`, `foldr` and `scan`: loops over the first axis of tensors (SPEC C3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowscope import nest
from flowscope.control.tensor_array import TensorArray
from flowscope.control.while_loop import while_loop
from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.default import get_default_graph
from flowscope.graph.operation import Tensor
from flowscope.ops.arrays import shape
from flowscope.ops.sparse_tensor import SparseTensor

__all__ = ["foldl", "foldr", "map_fn", "scan"]


class _Elements:
    """Tensors, taken apart along their first axes."""

    def __init__(self, elems: Any) -> None:
        self.structure = elems
        tensors = [_whole(e) for e in nest.flatten(elems)]
        if not tensors:
            raise InvalidArgumentError("expected one tensor at least as elems, got none")
        for t in tensors:
            if t.spec.shape == ():
                raise InvalidArgumentError(f'elems must have a first axis: "{t.name}" is a scalar')
        known = [t.spec.shape[0] for t in tensors if t.spec.shape]
        sizes = {n for n in known if n is not None}
        if len(sizes) > 1:
            raise InvalidArgumentError(f"elems must have one length, got {sorted(sizes)}")
        self.static = next(iter(sizes), None)
        self.count: Any = self.static if sizes else shape(tensors[0])[0]
        self.dtypes = [t.dtype for t in tensors]
        self._arrays = [
            _array(t.dtype, self.count, element_shape=_tail(t)).unstack(t) for t in tensors
        ]

    def at(self, i: Any) -> Any:
        """Returns the elements at an index, in the structure of what was given."""
        return nest.pack_sequence_as(self.structure, [a.read(i) for a in self._arrays])


def _array(dtype: Any, count: Any, **options: Any) -> TensorArray:
    # What is read once need not be cleared, and reads of arrays that are not can be merged.
    return TensorArray(dtype, count, clear_after_read=False, **options)


def _whole(value: Any) -> Tensor:
    if isinstance(value, SparseTensor):
        raise DTypeError(
            f"expected tensors as elems, got {value!r}, which has no parts to go through: use "
            "fs.sparse.to_dense, or go through its values and indices"
        )
    if isinstance(value, TensorArray):
        raise DTypeError(f"expected tensors as elems, got {value!r}: use its stack()")
    return convert_to_tensor(value)


def _check_function(fn: Any) -> None:
    if not callable(fn):
        raise DTypeError(f"expected a function as fn, got {fn!r}")


def _check_result(expected: Any, found: Any, hint: str) -> None:
    try:
        nest.assert_same_structure(expected, found)
    except InvalidArgumentError as e:
        raise type(e)(f"fn returned another structure than {hint}: {e.message}") from None


def _written(arrays: list[TensorArray], i: Any, found: Any, hint: str) -> list[TensorArray]:
    values = [convert_to_tensor(v) for v in nest.flatten(found)]
    for k, (a, v) in enumerate(zip(arrays, values, strict=True)):
        if v.dtype is not a.dtype:
            raise DTypeError(
                f'fn returned {v.spec} ("{v.name}") as result {k}, expected {a.dtype}: {hint}'
            )
    return [a.write(i, v) for a, v in zip(arrays, values, strict=True)]


def _tail(t: Tensor) -> Any:
    return None if t.spec.shape is None else t.spec.shape[1:]


def _options(parallel_iterations: int | None, back_prop: bool, swap_memory: bool) -> dict[str, Any]:
    return {
        "parallel_iterations": parallel_iterations or 10,
        "back_prop": back_prop,
        "swap_memory": swap_memory,
    }


def map_fn(
    fn: Callable[..., Any],
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
) -> Any:
    """Returns the results of `fn` for the parts of `elems` along the first axis, stacked.

    The results do not depend on each other, so iterations may overlap where operations wait. Of
    `elems` of length 0 the result has length 0, if the shape of a part's result is known.

    Args:
        fn: Takes a part of `elems`, in its structure; returns tensors.
        elems: A tensor or a nested structure of tensors of one length.
        dtype: Dtypes in the structure of the results, where that is not the structure of `elems`.
        parallel_iterations: As in `while_loop`.
        back_prop: Whether gradients flow through.
        swap_memory: As in `while_loop`.
        infer_shape: Whether all results have the shape of the first.
        name: Name scope of the operations.
    """
    _check_function(fn)
    with get_default_graph().name_scope(name or "map"):
        parts = _Elements(elems)
        like = elems if dtype is None else dtype
        dtypes = parts.dtypes if dtype is None else nest.flatten(dtype)
        arrays = [_array(d, parts.count, infer_shape=infer_shape) for d in dtypes]

        def body(i: Any, arrays: Any) -> Any:
            found = fn(parts.at(i))
            hint = "elems: dtype=... says what it returns" if dtype is None else "dtype"
            _check_result(like, found, hint)
            return i + 1, _written(arrays, i, found, "dtype=... says what fn returns")

        _, arrays = while_loop(
            lambda i, _: i < parts.count,
            body,
            [0, arrays],
            **_options(parallel_iterations, back_prop, swap_memory),
        )
        return _stacked(like, arrays, parts)


def _stacked(like: Any, arrays: list[TensorArray], parts: _Elements) -> Any:
    tensors = [a.stack() for a in arrays]
    for a, t in zip(arrays, tensors, strict=True):
        dims = a.element_shape
        if dims.ndims is not None:
            t.set_shape([parts.static, *dims.as_list()])
    return nest.pack_sequence_as(like, tensors)


def foldl(
    fn: Callable[..., Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """Returns `fn(... fn(fn(initializer, elems[0]), elems[1]) ..., elems[-1])`.

    Args:
        fn: Takes the result so far and a part of `elems`; returns the next result.
        elems: A tensor or a nested structure of tensors of one length.
        initializer: The first result; the first part of `elems` by default.
        parallel_iterations: As in `while_loop`.
        back_prop: Whether gradients flow through.
        swap_memory: As in `while_loop`.
        name: Name scope of the operations.
    """
    options = _options(parallel_iterations, back_prop, swap_memory)
    return _folded(fn, elems, initializer, False, options, name or "foldl")


def foldr(
    fn: Callable[..., Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """Returns what `foldl` does, from the last part of `elems` to the first; same arguments."""
    options = _options(parallel_iterations, back_prop, swap_memory)
    return _folded(fn, elems, initializer, True, options, name or "foldr")


def _first(parts: _Elements, initializer: Any, reverse: bool) -> tuple[Any, Any, int]:
    """Returns the first result, where the loop starts, and how many parts are used already."""
    last = parts.count - 1
    if initializer is None:
        if parts.static == 0:
            raise InvalidArgumentError("elems of length 0 need an initializer")
        return parts.at(last if reverse else 0), (last - 1 if reverse else 1), 1
    return nest.map_structure(convert_to_tensor, initializer), (last if reverse else 0), 0


def _folded(
    fn: Callable[..., Any],
    elems: Any,
    initializer: Any,
    reverse: bool,
    options: dict[str, Any],
    name: str,
) -> Any:
    _check_function(fn)
    with get_default_graph().name_scope(name):
        parts = _Elements(elems)
        result, start, _ = _first(parts, initializer, reverse)
        step = -1 if reverse else 1

        def body(i: Any, a: Any) -> Any:
            found = fn(a, parts.at(i))
            _check_result(result, found, "the result so far")
            return i + step, found

        return while_loop(
            lambda i, a: i >= 0 if reverse else i < parts.count,
            body,
            [start, result],
            **options,
        )[1]


def scan(
    fn: Callable[..., Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """Returns all results of `foldl`, stacked along a new first axis.

    Args:
        fn: Takes the result so far and a part of `elems`; returns the next result.
        elems: A tensor or a nested structure of tensors of one length.
        initializer: The result before the first; by default the first part of `elems`, which then
            is the first result.
        parallel_iterations: As in `while_loop`.
        back_prop: Whether gradients flow through.
        swap_memory: As in `while_loop`.
        infer_shape: Whether all results have the shape of the first.
        reverse: Whether it goes from the last part to the first; results stay with their parts.
        name: Name scope of the operations.
    """
    _check_function(fn)
    with get_default_graph().name_scope(name or "scan"):
        parts = _Elements(elems)
        result, start, used = _first(parts, initializer, reverse)
        flat = [convert_to_tensor(v) for v in nest.flatten(result)]
        arrays = [_array(t.dtype, parts.count, infer_shape=infer_shape) for t in flat]
        if used:
            at = parts.count - 1 if reverse else 0
            arrays = [a.write(at, t) for a, t in zip(arrays, flat, strict=True)]
        step = -1 if reverse else 1

        def body(i: Any, result: Any, arrays: Any) -> Any:
            found = fn(result, parts.at(i))
            _check_result(result, found, "the result so far")
            written = _written(arrays, i, found, "the dtype of the first result must stay")
            return i + step, found, written

        _, _, arrays = while_loop(
            lambda i, *_: i >= 0 if reverse else i < parts.count,
            body,
            [start, result, arrays],
            **_options(parallel_iterations, back_prop, swap_memory),
        )
        return _stacked(result, arrays, parts)
