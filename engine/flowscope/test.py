"""Checks of gradients against differences, under TensorFlow 1's names (`fs.test`)."""

from __future__ import annotations

import typing as _typing
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from flowscope.api.absent import refusal as _refusal
from flowscope.autodiff.gradients import gradients
from flowscope.errors import GraphError, InvalidArgumentError
from flowscope.graph.constant import constant
from flowscope.graph.default import get_default_session
from flowscope.graph.indexed_slices import IndexedSlices
from flowscope.graph.operation import Tensor
from flowscope.graph.values.shapes import text
from flowscope.ops.core.flow import identity

#: The Jacobian by gradients, and by differences.
Jacobians = tuple[Any, Any]


def compute_gradient(
    x: Any,
    x_shape: Any,
    y: Tensor,
    y_shape: Any,
    x_init_value: Any = None,
    delta: float = 1e-3,
    init_targets: Any = None,
    extra_feed_dict: Any = None,
) -> Any:
    """Returns the Jacobian of `y` with respect to `x` by `gradients`, and by central differences.

    It runs in the default session.

    Args:
        x: A tensor, or a list of them; it is fed.
        x_shape: Its shape, or a list of them.
        y: A tensor.
        y_shape: Its shape.
        x_init_value: Where the Jacobian is taken; random numbers in [0, 1) by default. A list where
            `x` is one.
        delta: How far `x` is moved.
        init_targets: Operations to run before, such as initializers.
        extra_feed_dict: Values of other tensors.

    Returns:
        Two arrays [elements of x, elements of y]; a list of such pairs where `x` is a list. A
        complex element counts as two: its real part, and its imaginary part behind it.

    Raises:
        InvalidArgumentError: if `x` has no influence on `y`, or a shape does not fit.
        GraphError: if there is no default session.
    """
    session = _session()
    for target in init_targets or ():
        session.run(target)
    xs, shapes = (list(x), list(x_shape)) if isinstance(x, list | tuple) else ([x], [x_shape])
    several = isinstance(x, list | tuple) and x_init_value is not None
    starts = list(x_init_value) if several else [x_init_value] * len(xs)
    if not len(xs) == len(shapes) == len(starts):
        raise InvalidArgumentError(
            f"expected a shape and a value per x, got {len(xs)} xs, {len(shapes)} shapes "
            f"and {len(starts)} values"
        )
    values = [_start(t, s, v) for t, s, v in zip(xs, shapes, starts, strict=True)]
    feeds = {**(extra_feed_dict or {}), **dict(zip(xs, values, strict=True))}
    pairs = [_Check(session, t, y, y_shape, feeds).jacobians(delta) for t in xs]
    return pairs if isinstance(x, list | tuple) else pairs[0]


def compute_gradient_error(
    x: Any,
    x_shape: Any,
    y: Tensor,
    y_shape: Any,
    x_init_value: Any = None,
    delta: float = 1e-3,
    init_targets: Any = None,
    extra_feed_dict: Any = None,
) -> float:
    """Returns the largest difference between the two Jacobians of `compute_gradient`.

    Arguments as there; over all of `x` where that is a list.
    """
    found = compute_gradient(
        x, x_shape, y, y_shape, x_init_value, delta, init_targets, extra_feed_dict
    )
    pairs = found if isinstance(found, list) else [found]
    return float(np.max([np.max(np.abs(a - b), initial=0.0) for a, b in pairs], initial=0.0))


def _session() -> Any:
    session = get_default_session()
    if session is None:
        raise GraphError("no default session: use `with sess.as_default():`")
    return session


def _start(x: Tensor, shape: Any, value: Any) -> Any:
    shape, dtype = tuple(shape), x.dtype.np_dtype
    if value is None:
        return np.random.default_rng().random(shape).astype(dtype)
    value = np.array(value, dtype)
    if value.shape != shape:
        raise InvalidArgumentError(
            f'expected an x_init_value of shape {text(shape)} for "{x.name}", '
            f"got {text(value.shape)}"
        )
    return value


class _Check:
    """One pair (x, y): both Jacobians at one place."""

    def __init__(
        self, session: Any, x: Tensor, y: Tensor, y_shape: Sequence[int], feeds: dict[Any, Any]
    ) -> None:
        self._session = session
        self._x, self._y, self._feeds = x, y, feeds
        self._y_shape = tuple(y_shape)
        with x.graph.as_default():
            self._dy = constant(np.ones(self._y_shape), y.dtype)
            (self._dx,) = gradients(y, x, identity(self._dy))
        if self._dx is None:
            raise InvalidArgumentError(f'"{x.name}" has no influence on "{y.name}"')

    def jacobians(self, delta: float) -> Jacobians:
        """Returns the Jacobian by gradients and the one by differences."""
        start, dy = self._feeds[self._x], np.zeros(self._y_shape, self._y.dtype.np_dtype)
        shape = (_numbers(start).size, _numbers(dy).size)
        exact, rough = (np.zeros(shape, _numbers(start).dtype) for _ in range(2))
        for j in _moved(dy, 1.0):
            exact[:, j] = _numbers(self._cotangent(dy))
        if not shape[1] and self._cotangent(dy).any():
            raise InvalidArgumentError(
                f'the gradient of "{self._y.name}", which is empty, is not 0'
            )
        moved = np.array(start)
        for i in _moved(moved, delta):
            above = self._value(moved)
            _numbers(moved)[i] -= 2 * delta
            rough[i] = _numbers(above - self._value(moved)) / (2 * delta)
        return exact, rough

    def _cotangent(self, dy: Any) -> Any:
        found = self._session.run(self._dx, {**self._feeds, self._dy: dy})
        if not isinstance(self._dx, IndexedSlices):
            return np.asarray(found)
        whole = np.zeros_like(self._feeds[self._x])
        np.add.at(whole, found.indices, found.values)
        return whole

    def _value(self, x: Any) -> Any:
        return np.array(self._session.run(self._y, {**self._feeds, self._x: x}))


def _numbers(array: Any) -> Any:
    """Returns an array as a flat view of real numbers: two per complex element."""
    flat = np.asarray(array).reshape(-1)
    return flat.view(flat.real.dtype)


def _moved(array: Any, delta: float) -> Iterator[int]:
    """Yields each position of an array's numbers while the number there is `delta` larger."""
    numbers = _numbers(array)
    for i in range(numbers.size):
        before = numbers[i]
        numbers[i] += delta
        yield i
        numbers[i] = before


__all__ = ["compute_gradient", "compute_gradient_error"]

if not _typing.TYPE_CHECKING:  # type checkers know which names there are
    __getattr__ = _refusal(__name__, globals())
