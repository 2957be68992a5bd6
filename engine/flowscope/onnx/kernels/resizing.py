"""Where resizing takes its samples: positions and weights along one axis."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from flowscope.errors import InvalidArgumentError
from flowscope.onnx.kernels.operator import computes

_Array = Any
_Region = tuple[float, float] | None
#: Elements that a matrix of weights, or an output, may have.
_MAX = 1 << 28


@dataclasses.dataclass(frozen=True)
class Resizing:
    """How a node resizes.

    Attributes:
        mode: "nearest", "linear" or "cubic".
        transform: From a place of the output to one of the input.
        nearest: Which place counts as the nearest.
        a: The coefficient of cubic interpolation.
        excludes: Whether samples outside have no weight.
        antialias: Whether a smaller output has wider windows.
        extrapolation: The value outside a region.
        policy: What happens to the ratio of the sizes.
    """

    mode: str = "nearest"
    transform: str = "half_pixel"
    nearest: str = "round_prefer_floor"
    a: float = -0.75
    excludes: bool = False
    antialias: bool = False
    extrapolation: float = 0.0
    policy: str = "stretch"

    def settings(self) -> dict[str, Any]:
        """The attributes by name."""
        return dataclasses.asdict(self)

    def _positions(self, old: int, new: int, scale: float, region: _Region) -> _Array:
        at = np.arange(new, dtype=np.float64)
        match self.transform:
            case "asymmetric":
                return at / scale
            case "half_pixel":
                return (at + 0.5) / scale - 0.5
            case "half_pixel_symmetric":
                exact = scale * old
                centre = old / 2
                return centre * (1 - new / exact) + (at + 0.5) / scale - 0.5
            case "pytorch_half_pixel":
                return (at + 0.5) / scale - 0.5 if scale * old > 1 else np.full(new, -0.5)
            case "align_corners":
                exact = scale * old
                return at * (old - 1) / (exact - 1) if exact != 1 else np.zeros(new)
            case "tf_half_pixel_for_nn":
                return (at + 0.5) / scale
            case "tf_crop_and_resize" if region is not None:
                start, end = region
                if new > 1:
                    return start * (old - 1) + at * (end - start) * (old - 1) / (new - 1)
                return np.full(new, 0.5 * (start + end) * (old - 1))
        raise InvalidArgumentError(f"expected a known transformation, got {self.transform!r}")

    def places(self, old: int, new: int, scale: float, region: _Region) -> _Array:
        """Per place of the output that of the input, int64."""
        at = self._positions(old, new, scale, region)
        functions: dict[str, Any] = {
            "round_prefer_floor": lambda v: np.ceil(v - 0.5),
            "round_prefer_ceil": lambda v: np.floor(v + 0.5),
            "floor": np.floor,
            "ceil": np.ceil,
        }
        if self.nearest not in functions:
            raise InvalidArgumentError(f"expected a known rounding, got {self.nearest!r}")
        return np.clip(functions[self.nearest](at), 0, old - 1).astype(np.int64)

    def matrix(
        self, old: int, new: int, scale: float, region: _Region
    ) -> tuple[_Array, _Array | None]:
        """The weights [new, old] of an output's samples, and what is added to the outputs."""
        if old * new > _MAX:
            raise InvalidArgumentError(f"expected at most {_MAX} weights, got {old} x {new}")
        at = self._positions(old, new, scale, region)
        shrink = min(1.0, scale) if self.antialias else 1.0
        reach = (1 if self.mode == "linear" else 2) / shrink
        first = np.floor(at - reach).astype(np.int64)
        steps = np.arange(math.ceil(2 * reach) + 3)
        samples = first[:, None] + steps
        distance = np.abs(at[:, None] - samples) * shrink
        weights = self._weights(distance)
        if self.excludes:
            weights = np.where((samples < 0) | (samples >= old), 0, weights)
        total = weights.sum(1, keepdims=True)
        weights = weights / np.where(total == 0, 1, total)
        out = np.zeros((new, old))
        np.add.at(out, (np.arange(new)[:, None], np.clip(samples, 0, old - 1)), weights)
        if self.transform != "tf_crop_and_resize":
            return out, None
        outside = (at < 0) | (at > old - 1)
        out[outside] = 0
        return out, outside * self.extrapolation

    def _weights(self, d: _Array) -> _Array:
        if self.mode == "linear":
            return np.maximum(0, 1 - d)
        if self.mode != "cubic":
            raise InvalidArgumentError(f"expected nearest, linear or cubic, got {self.mode!r}")
        a = self.a
        near = (a + 2) * d**3 - (a + 3) * d**2 + 1
        far = a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a
        return np.where(d <= 1, near, np.where(d < 2, far, 0))


def out_sizes(
    how: Resizing, old: list[int], values: _Array, is_size: bool
) -> tuple[list[int], list[float]]:
    """The sizes and scales of the resized axes."""
    if len(values) != len(old):
        raise InvalidArgumentError(f"expected {len(old)} sizes or scales, got {len(values)}")
    if not is_size:
        scales = [float(v) for v in values]
        sizes = [int(np.floor(o * np.float32(s))) for o, s in zip(old, values, strict=True)]
    else:
        sizes = [int(v) for v in values]
        scales = [s / max(o, 1) for s, o in zip(sizes, old, strict=True)]
        if how.policy != "stretch":
            scale = min(scales) if how.policy == "not_larger" else max(scales)
            scales = [scale] * len(old)
            sizes = [math.floor(scale * o + 0.5) for o in old]
    if any(s < 0 for s in sizes) or math.prod(sizes) > _MAX or not all(s > 0 for s in scales):
        raise InvalidArgumentError(f"expected sizes of an array, got {sizes}")
    return sizes, scales


@computes("Resize")
def _resize(
    x: _Array, given: _Array, *roi: _Array, how: dict[str, Any], axes: list[int], is_size: bool
) -> _Array:
    way = Resizing(**how)
    sizes, scales = out_sizes(way, [x.shape[a] for a in axes], given, is_size)
    found = x
    for i, (axis, size, scale) in enumerate(zip(axes, sizes, scales, strict=True)):
        old = x.shape[axis]
        if size == old and scale == 1 and not roi:
            continue
        region = (float(roi[0][i]), float(roi[0][i + len(axes)])) if roi else None
        if way.mode == "nearest":
            found = np.take(found, way.places(old, size, scale, region), axis)
            continue
        weights, bias = way.matrix(old, size, scale, region)
        found = np.moveaxis(found, axis, -1) @ weights.T
        found = np.moveaxis(found if bias is None else found + bias, -1, axis)
    return found.astype(x.dtype)
