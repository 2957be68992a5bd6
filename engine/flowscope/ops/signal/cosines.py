"""Discrete cosine transforms, by Fourier transforms of twice the length.

Source: Makhoul 1980, "A fast cosine transform in one and two dimensions".
"""

from __future__ import annotations

import math
from typing import Any

from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.operation import Tensor
from flowscope.graph.values.expected import expected
from flowscope.ops.array.arrays import range as range_of
from flowscope.ops.array.joining import concat
from flowscope.ops.array.padding import pad
from flowscope.ops.array.shaping import expand_dims, shape_of
from flowscope.ops.core.casting import cast, complex, real
from flowscope.ops.core.shape_rules import check_kind
from flowscope.ops.math.elementwise import cos, multiply, rsqrt, sin, sqrt
from flowscope.ops.signal.fourier import irfft, rfft

__all__ = ["dct", "idct"]

_INVERSE = {1: 1, 2: 3, 3: 2}


def dct(
    input: Any,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Returns the discrete cosine transform along the last axis.

    Args:
        input: A float32 or float64 tensor.
        type: 1, 2 or 3.
        n: How many elements are transformed: the others are cut off, or zeros put behind.
        axis: -1.
        norm: None, or "ortho" for the transform (of type 2 or 3) that keeps lengths.
        name: Name scope of the operations.

    Raises:
        InvalidArgumentError: if there is no such transform.
    """
    _check(type, n, axis, norm)
    x = _lined(input)
    check_kind(x.dtype, "f")
    with x.graph.name_scope(name or "dct"):
        if n is not None:
            x = _of_length(x, n)
        if type == 1:
            return _first(x)
        return (_second if type == 2 else _third)(x, norm == "ortho")


def idct(
    input: Any,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Returns the inverse of `dct`, but for a factor of 2n where there is no norm.

    The arguments are those of `dct`; n must be None.
    """
    if n is not None:
        raise expected("n of None for an inverse", n)
    _check(type, None, axis, norm)
    return dct(input, _INVERSE[type], None, axis, norm, name or "idct")


def _check(kind: int, n: Any, axis: int, norm: str | None) -> None:
    if kind not in _INVERSE:
        raise expected("a transform of type 1, 2 or 3", repr(kind))
    if axis != -1:
        raise expected("axis -1", repr(axis))
    if n is not None and n < 1:
        raise expected("n of 1 at least", n)
    if norm not in (None, "ortho"):
        raise expected('norm None or "ortho"', repr(norm))
    if kind == 1 and (norm is not None or (n is not None and n < 2)):
        raise InvalidArgumentError("expected a transform of type 1 without norm, of 2 or more")


def _lined(value: Any) -> Tensor:
    """Returns a tensor with a last axis."""
    x = convert_to_tensor(value)
    if x.spec.rank == 0:
        raise expected("rank 1 at least", x.spec)
    return x


def _of_length(x: Tensor, n: int) -> Tensor:
    known = x.shape.as_list()[-1]
    if known is None:
        raise InvalidArgumentError("expected a known last axis where n is given")
    if n <= known:
        return x[..., :n]  # type: ignore[no-any-return]
    return pad(x, [*[[0, 0]] * (len(x.shape) - 1), [0, n - known]])


def _length(x: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the last axis's length as an integer and as a float."""
    count = shape_of(x)[-1]
    return count, cast(count, x.dtype)


def _turns(x: Tensor, way: int) -> tuple[Tensor, Tensor]:
    """Returns the real and imaginary parts of 2 * exp(way * i * k * pi / 2n)."""
    count, length = _length(x)
    angles = multiply(cast(range_of(count), x.dtype), math.pi / 2 / length)
    return multiply(cos(angles), 2.0), multiply(sin(angles), 2.0 * way)


def _first(x: Tensor) -> Tensor:
    if x.shape.as_list()[-1] in (0, 1):
        raise expected("2 elements at least for type 1", x.spec)
    return real(rfft(concat([x, x[..., -2:0:-1]], -1)))


def _second(x: Tensor, is_ortho: bool) -> Tensor:
    count, length = _length(x)
    spectrum = rfft(x, expand_dims(count * 2, 0))[..., :count]
    y = real(multiply(spectrum, complex(*_turns(x, -1))))
    y.set_shape(x.shape)
    if not is_ortho:
        return y
    return multiply(y, _weights(x, multiply(rsqrt(length), 0.5), math.sqrt(2)))


def _third(x: Tensor, is_ortho: bool) -> Tensor:
    count, length = _length(x)
    if is_ortho:
        scaled = multiply(x, _weights(x, sqrt(length), math.sqrt(0.5)))
    else:
        scaled = multiply(x, length)
    turned = multiply(complex(*_turns(x, 1)), complex(scaled, multiply(scaled, 0.0)))
    y = irfft(turned, expand_dims(count * 2, 0))[..., :count]
    y.set_shape(x.shape)
    return y  # type: ignore[no-any-return]


def _weights(x: Tensor, first: Tensor, ratio: float) -> Tensor:
    """Returns one number for the first element and another for all others."""
    rest = cast(range_of(shape_of(x)[-1]) > 0, x.dtype)
    return multiply(first, rest * (ratio - 1) + 1)
