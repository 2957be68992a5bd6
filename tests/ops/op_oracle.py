"""An independent evaluator: it walks the graph kernel by kernel and checks each on the way."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from flowscope.graph.op import kernel_of
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values.expression import into_buffer, python_text
from flowscope.graph.values.shapes import compatible


def evaluate(fetches: list[Tensor], feeds: dict[Tensor, Any]) -> list[Any]:
    """Returns the values of `fetches`, and asserts that every operation keeps its promises."""
    values: dict[Tensor, Any] = dict(feeds)
    with np.errstate(all="ignore"):
        for op in _needed(fetches, feeds):
            _invoke(op, values)
    return [values[t] for t in fetches]


class Moved:
    """A tensor as a function of one feed, to be called many times: nothing is checked on the way.

    What does not follow from that feed is computed once.
    """

    def __init__(self, fetch: Tensor, feeds: dict[Tensor, Any], x: Tensor) -> None:
        self._fetch, self._x = fetch, x
        self._values: dict[Tensor, Any] = dict(feeds)
        self._late: list[Operation] = []
        following = {x}
        for op in _needed([fetch], feeds):
            if following.isdisjoint(op.inputs):
                _compute(op, self._values)
            else:
                following.update(op.outputs)
                self._late.append(op)

    def __call__(self, value: Any) -> Any:
        """Returns the tensor's value where the feed has this one."""
        values = {**self._values, self._x: value}
        for op in self._late:
            _compute(op, values)
        return values[self._fetch]


def _kernel(op: Operation) -> Any:
    return kernel_of(
        op.definition, "CPU", [t.spec for t in op.inputs], [t.spec for t in op.outputs]
    )


def _compute(op: Operation, values: dict[Tensor, Any]) -> None:
    definition = op.definition
    leading = [np, np.random.default_rng(definition.seed)] if definition.is_random else [np]
    with np.errstate(all="ignore"):
        result = _kernel(op)(*leading, *[values[t] for t in op.inputs])
    outputs = result if isinstance(result, tuple) else (result,)
    values.update(zip(op.outputs, outputs))


def _needed(fetches: list[Tensor], feeds: dict[Tensor, Any]) -> list[Operation]:
    found: set[Operation] = set()
    stack = [t.op for t in fetches if t not in feeds]
    while stack:
        op = stack.pop()
        if op not in found:
            found.add(op)
            stack += [t.op for t in op.inputs if t not in feeds]
            stack += [c for c in op.control_inputs if not feeds.keys() & set(c.outputs)]
    return sorted(found, key=lambda op: op.id)


def _invoke(op: Operation, values: dict[Tensor, Any]) -> None:
    definition = op.definition
    inputs = [values[t] for t in op.inputs]
    copies = [np.copy(v) for v in inputs]
    leading = [np, np.random.default_rng(definition.seed)] if definition.is_random else [np]
    result = _kernel(op)(*leading, *inputs)
    for before, after in zip(copies, inputs):
        assert same_bits(before, np.asarray(after)), f"{op.type} changed an input"
    _check_templates(op, inputs, result)
    outputs = result if isinstance(result, tuple) else (result,) if op.outputs else ()
    assert len(outputs) == len(op.outputs), op
    for t, v in zip(op.outputs, outputs):
        check_promise(t, v)
        if not definition.views:
            assert not any(np.shares_memory(v, i) for i in inputs), f"{op.type} shares memory"
            is_own = not np.ndim(v) or np.asarray(v).flags.writeable or op.type == "Const"
            assert is_own, f"{op.type} makes a read-only array"
        _check_memory_order(op, inputs, v)
        values[t] = v
    _check_forwards(op, inputs, outputs)


def _check_memory_order(op: Operation, inputs: list[Any], value: Any) -> None:
    order = op.definition.memory_order
    arrays = [i for i in inputs if np.ndim(i)]
    if order is None or not np.ndim(value):
        return
    if order == "R":
        is_free = not np.ndim(inputs[0]) or not _is_row_major(inputs[0])
        assert is_free or _is_row_major(value), f"{op.type} is not row-major"
    elif order != "K" or all(map(_is_row_major, arrays)):
        is_free = order == "C2" and np.ndim(value) > 2
        assert is_free or value.flags.c_contiguous, f"{op.type} is not in C order"
    if order == "K":
        _check_reuse(op, inputs, value)
        _check_parts(op, inputs, value)


def _is_row_major(array: Any) -> bool:
    """Whether no stride is smaller than that of a later axis (axes of length 1 do not count)."""
    strides = [s for s, n in zip(array.strides, array.shape, strict=True) if n > 1]
    is_falling = all(a >= b for a, b in itertools.pairwise(strides))
    return not array.size or (is_falling and min(strides, default=1) > 0)


def _check_reuse(op: Operation, inputs: list[Any], value: Any) -> None:
    """Asserts that writing into an input's buffer gives what a new array would be."""
    expression = op.definition.expression
    into = expression and into_buffer(expression)
    for i, given in enumerate(inputs if into else []):
        if np.shape(given) == value.shape and given.dtype == value.dtype:
            names = {f"x{j}": v for j, v in enumerate(inputs)}
            names[f"x{i}"] = given.copy(order="K")
            text = python_text(into, [*names], out=f"x{i}")
            made = eval(text, {"xp": np, **names})  # noqa: S307
            assert same_bits(made, value), f"{op.type} differs in a reused buffer"


def _check_parts(op: Operation, inputs: list[Any], value: Any) -> None:
    """Asserts that an element does not depend on those beside it (see plan.shared)."""
    expression = op.definition.expression
    if expression is None or into_buffer(expression) is None:
        return
    arrays = [x for x in inputs if np.ndim(x)]
    if not all(x.shape == value.shape and x.flags.c_contiguous for x in arrays):
        return
    parts = []
    for at in (slice(0, 1), slice(1, None)):
        names = {f"x{j}": x[at] if np.ndim(x) else x for j, x in enumerate(inputs)}
        parts.append(eval(python_text(expression, [*names]), {"xp": np, **names}))  # noqa: S307
    assert same_bits(np.concatenate(parts), value), f"{op.type} differs in parts"


def _check_forwards(op: Operation, inputs: list[Any], outputs: Any) -> None:
    if len(op.outputs) != 1:
        return
    index = op.definition.forwards(tuple(t.spec for t in op.inputs), op.outputs[0].spec)
    if index is not None:
        assert same_bits(outputs[0], inputs[index]), f"{op.type} is not its input {index}"


def _check_templates(op: Operation, inputs: list[Any], result: Any) -> None:
    expression = op.definition.expression
    names = {f"x{i}": v for i, v in enumerate(inputs)}
    if expression is not None and op.outputs:
        made = eval(python_text(expression, [*names]), {"xp": np, **names})  # noqa: S307
        assert same_bits(made, result), f"template of {op.type}: {made!r} is not {result!r}"
    scalar = op.definition.scalar_expression
    if scalar is not None and all(isinstance(v, np.number) for v in inputs):
        made = eval(python_text(scalar, [*names]), {"xp": np, **names})  # noqa: S307
        assert same_bits(made, result), f"scalar template of {op.type}: {made!r} is not {result!r}"


def check_promise(t: Tensor, value: Any) -> None:
    """Asserts that a value has the dtype, shape and constant that were inferred."""
    spec = t.spec
    if spec.dtype.kind == "s":
        return
    assert isinstance(value, np.ndarray if np.ndim(value) else np.generic), (t, type(value))
    assert value.dtype == spec.dtype.np_dtype, (t, value.dtype)
    assert compatible(spec.shape, value.shape), (t, value.shape)
    if spec.constant is not None:
        assert same_bits(np.asarray(spec.constant), value), (t, spec.constant, value)
    if spec.dims is not None:
        flat = np.reshape(value, -1).tolist()
        known = tuple(d if d >= 0 else None for d in flat)
        assert compatible(spec.dims, known), (t, spec.dims, value)


def same_bits(a: Any, b: Any) -> bool:
    """Whether two values (or tuples of them) are equal to the last bit; NaN is NaN."""
    if isinstance(a, tuple):
        return isinstance(b, tuple) and all(same_bits(x, y) for x, y in zip(a, b, strict=True))
    x, y = np.asarray(a), np.asarray(b)
    if x.dtype != y.dtype or x.shape != y.shape:
        return False
    if x.dtype.kind == "O":
        return x.tolist() == y.tolist()
    return x.tobytes() == y.tobytes() or (x.dtype.kind in "fc" and _equal_but_nans(x, y))


def _equal_but_nans(x: Any, y: Any) -> bool:
    return bool(np.array_equal(np.where(np.isnan(x), 0, x), np.where(np.isnan(y), 0, y))) and bool(
        (np.isnan(x) == np.isnan(y)).all()
    )


@contextmanager
def noted(what: Any) -> Iterator[None]:
    """Says in an error's notes which of a test's cases it was."""
    try:
        yield
    except Exception as error:
        error.add_note(f"the case was {what}")
        raise
