"""`map_fn`, `vectorized_map`, `foldl`, `foldr` and `scan`: loops over first axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowscope import nest
from flowscope.control.arrays.elements import Arrays, Elements, new_arrays, stacked, written
from flowscope.control.function import function
from flowscope.control.while_loop import while_loop
from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.default import get_default_graph
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.specs import TensorSpec
from flowscope.graph.unsupported import refuse

__all__ = ["foldl", "foldr", "map_fn", "scan", "vectorized_map"]


def _check_function(fn: Any) -> None:
    if not callable(fn):
        raise DTypeError(f"expected a function as fn, got {fn!r}")


def _check_result(expected: Any, found: Any, hint: str) -> None:
    try:
        nest.assert_same_structure(expected, found)
    except InvalidArgumentError as e:
        raise type(e)(f"fn returned another structure than {hint}: {e.message}") from None


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
    fn_output_signature: Any = None,
) -> Any:
    """Returns the results of `fn` for the parts of `elems` along the first axis, stacked.

    The results do not depend on each other, so iterations may overlap where operations wait. Of
    `elems` of length 0 the result has length 0, if the shape of a part's result is known.

    Args:
        fn: Takes a part of `elems`, in its structure; returns tensors or sparse tensors.
        elems: A tensor, a sparse tensor, or a nested structure of them, of one length.
        dtype: Dtypes in the structure of the results, where that is not the structure of `elems`;
            a `fs.SparseTensorSpec` for what is sparse.
        parallel_iterations: As in `while_loop`.
        back_prop: Whether gradients flow through.
        swap_memory: As in `while_loop`.
        infer_shape: Whether all results have the shape of the first.
        name: Name scope of the operations.
        fn_output_signature: The newer name of `dtype`; it may have a `fs.TensorSpec` per result.

    Example:
        >>> fs.Session().run(fs.map_fn(lambda v: v * v, fs.range(4)))
        array([0, 1, 4, 9], dtype=int32)
    """
    _check_function(fn)
    dtype = _signature(dtype, fn_output_signature)
    with get_default_graph().name_scope(name or "map"):
        parts = Elements(elems)
        like = elems if dtype is None else dtype
        kinds = parts.kinds if dtype is None else nest.flatten(dtype)
        arrays = new_arrays(kinds, parts.count, infer_shape)

        def body(i: Any, arrays: Any) -> Any:
            found = fn(parts.at(i))
            hint = "elems: dtype=... says what it returns" if dtype is None else "dtype"
            _check_result(like, found, hint)
            found = nest.flatten(found)
            return i + 1, written(arrays, i, found, "dtype=... says what fn returns")

        _, arrays = while_loop(
            lambda i, _: i < parts.count,
            body,
            [0, arrays],
            **_options(parallel_iterations, back_prop, swap_memory),
        )
        return _stacked(like, arrays, parts)


def vectorized_map(
    fn: Callable[..., Any], elems: Any, fallback_to_while_loop: bool = True, warn: bool = True
) -> Any:
    """Returns the results of `fn` for the parts of `elems` along the first axis, stacked.

    It is the loop of `map_fn`; `fn` is called once, and dtypes and structure of its results are
    found by that.

    Args:
        fn: Takes a part of `elems`, in its structure; returns a tensor or a nested structure.
        elems: A tensor or a nested structure of tensors, of one length or of length 1: then its
            one part goes with all parts of the others.
        fallback_to_while_loop: True: what TensorFlow makes of operations that it cannot vectorise.
        warn: Whether to warn where operations are not vectorised.

    Raises:
        DTypeError: if fn returns operations.
        UnimplementedError: if there may be no loop.
    """
    _check_function(fn)
    refuse("vectorized_map", fallback_to_while_loop=fallback_to_while_loop)
    with get_default_graph().name_scope("vectorized_map"):
        wholes = [convert_to_tensor(e) for e in nest.flatten(elems)]
        lengths = [t.spec.shape[0] if t.spec.shape else None for t in wholes]
        is_mapped = [n != 1 or set(lengths) == {1} for n in lengths]
        structures: list[Any] = []

        def flat(*parts: Tensor) -> Any:
            given = iter(parts)
            ones = [next(given) if m else t[0] for t, m in zip(wholes, is_mapped, strict=True)]
            out = fn(nest.pack_sequence_as(elems, ones))
            structures.append(out)
            return [_tensor(t) for t in nest.flatten(out)]

        mapped = [t for t, m in zip(wholes, is_mapped, strict=True) if m]
        traced = function(flat, name=getattr(fn, "__name__", "fn").strip("<>"))
        body = traced.get_concrete_function(*[TensorSpec(t.shape[1:], t.dtype) for t in mapped])
        kinds = [t.dtype for t in body.results]
        found = map_fn(lambda parts: traced(*parts), mapped, dtype=kinds)
        return nest.pack_sequence_as(structures[0], found)


def _tensor(value: Any) -> Tensor:
    if value is None or isinstance(value, Operation):
        raise DTypeError(f"fn of vectorized_map: expected tensors as its results, got {value!r}")
    return convert_to_tensor(value)


def _signature(dtype: Any, newer: Any) -> Any:
    if dtype is not None and newer is not None:
        raise DTypeError("dtype was given twice, by its old and its new name fn_output_signature")
    return dtype if newer is None else newer


def _stacked(like: Any, arrays: list[Arrays], parts: Elements) -> Any:
    return nest.pack_sequence_as(like, [stacked(a, parts.static) for a in arrays])


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

    Example:
        >>> fs.Session().run(fs.foldl(lambda total, v: total * 10 + v, fs.constant([1, 2, 3])))
        np.int32(123)
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
    """`foldl` from the last part of `elems` to the first; same arguments."""
    options = _options(parallel_iterations, back_prop, swap_memory)
    return _folded(fn, elems, initializer, True, options, name or "foldr")


def _first(parts: Elements, initializer: Any, reverse: bool) -> tuple[Any, Any, int]:
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
        parts = Elements(elems)
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

    Example:
        >>> fs.Session().run(fs.scan(lambda total, v: total + v, fs.range(5)))
        array([ 0,  1,  3,  6, 10], dtype=int32)
    """
    _check_function(fn)
    with get_default_graph().name_scope(name or "scan"):
        parts = Elements(elems)
        result, start, used = _first(parts, initializer, reverse)
        flat = [convert_to_tensor(v) for v in nest.flatten(result)]
        arrays = new_arrays([t.dtype for t in flat], parts.count, infer_shape)
        if used:
            arrays = written(arrays, parts.count - 1 if reverse else 0, flat, "")
        step = -1 if reverse else 1

        def body(i: Any, result: Any, arrays: Any) -> Any:
            found = fn(result, parts.at(i))
            _check_result(result, found, "the result so far")
            hint = "the dtype of the first result must stay"
            return i + step, found, written(arrays, i, nest.flatten(found), hint)

        _, _, arrays = while_loop(
            lambda i, *_: i >= 0 if reverse else i < parts.count,
            body,
            [start, result, arrays],
            **_options(parallel_iterations, back_prop, swap_memory),
        )
        return _stacked(result, arrays, parts)
