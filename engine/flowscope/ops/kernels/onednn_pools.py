"""Pools by oneDNN, where that library is installed; see `flowscope.ops.kernels.onednn`.

Large pools of float32 over the spatial axes go there, as long as all numbers are finite: the
library passes over NaN, and takes the lowest float for minus infinity.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from flowscope.ops.kernels.onednn import (
    DIFF_DST,
    DIFF_SRC,
    DST,
    SCRATCHPAD,
    SCRATCHPAD_MD,
    SRC,
    TRAINING,
    Calls,
    Library,
    RefusedByOneDnn,
    images_layout,
    library,
    longs_of,
    run,
    run_blocks,
    taken,
)
from flowscope.ops.kernels.sharing import FLOPS, batch_blocks
from flowscope.ops.kernels.windows import Axis

#: Below so many elements the calls cost more than they gain.
WORTH_ELEMENTS = 20_000

Kind = Literal["max", "max grad", "mean", "mean grad"]

_INFERENCE = 96
_MAX, _MEAN = 0x1FF, 0x3FF
_WORKSPACE = 64
_WORKSPACE_MD = 135


class PoolRecipe:
    """What was made for one pool's shapes.

    Args:
        library: The library.
        kind: What it computes.
        axes: All axes, the batch's first.
        is_last: Whether channels come last; else second.
    """

    def __init__(self, library: Library, kind: Kind, axes: tuple[Axis, ...], is_last: bool) -> None:
        self.library, self.kind = library, kind
        self.free: list[Calls] = []
        x, y = tuple(a.size for a in axes), tuple(a.out for a in axes)
        self.x, self.y = (_description(library, dims, is_last) for dims in (x, y))
        spatial = axes[1:-1] if is_last else axes[2:]
        margins = [max(0, a.span - a.low - a.size) for a in spatial]
        steps = [
            longs_of(values)
            for values in (
                [a.stride for a in spatial],
                [a.window for a in spatial],
                [a.dilation - 1 for a in spatial],
                [a.low for a in spatial],
                margins,
            )
        ]
        how = _MAX if kind.startswith("max") else _MEAN
        need = TRAINING if kind.endswith("grad") else _INFERENCE
        forward = library.made(
            "pooling_forward_primitive_desc_create", library.engine, need, how,
            self.x, self.y, *steps, library.attributes,
        )  # fmt: skip
        self.forward = library.made("primitive_create", forward)
        self.spare = [library.asked(forward, SCRATCHPAD_MD)]
        self.backward = None
        if need == TRAINING:
            made = library.made(
                "pooling_backward_primitive_desc_create", library.engine, how,
                self.x, self.y, *steps, forward, library.attributes,
            )  # fmt: skip
            self.backward = library.made("primitive_create", made)
            self.spare.append(library.asked(made, SCRATCHPAD_MD))
            self.workspace = library.asked(forward, _WORKSPACE_MD) if how == _MAX else None

    def calls(self, x: Any, y: Any, g: Any = None) -> Calls:
        """A call that computes y from x, or x's gradient `x` from y's `g`.

        Of a maximum, `y` is x itself then.
        """
        arrays: tuple[Any, ...] = (x, y) if self.backward is None else (x, g)
        if self.backward is not None and self.workspace is not None:
            arrays = (x, g, y)
        return taken(self.free, self._made).bind(*arrays)

    def _made(self) -> Calls:
        call = Calls(self.library, self.free)
        spares = [call.inside(s) for s in self.spare]
        x, y = call.outside(self.x), call.outside(self.y)
        if self.backward is None:
            call.add(self.forward, {SRC: x, DST: y, SCRATCHPAD: spares[0]})
            return call
        memories = {DIFF_SRC: x, DIFF_DST: y}
        if self.workspace is not None:
            found, top = call.inside(self.workspace), call.inside(self.y)
            given = {SRC: call.outside(self.x), DST: top, _WORKSPACE: found}
            call.add(self.forward, {**given, SCRATCHPAD: spares[0]})
            memories[_WORKSPACE] = found
        call.add(self.backward, {**memories, SCRATCHPAD: spares[1]})
        return call


def _description(library: Library, dims: tuple[int, ...], is_last: bool) -> Any:
    return library.described(*images_layout(dims)) if is_last else library.described(
        dims, [int(np.prod(dims[i + 1 :])) for i in range(len(dims))]
    )  # fmt: skip


@functools.lru_cache(512)
def _recipe(kind: Kind, axes: tuple[Axis, ...], is_last: bool) -> PoolRecipe | None:
    loaded = library()
    if loaded is None:
        return None
    try:
        with loaded.one_thread():
            return PoolRecipe(loaded, kind, axes, is_last)
    except RefusedByOneDnn:
        return None


def _suited(kind: Kind, axes: Sequence[Axis], *arrays: Any) -> dict[int, PoolRecipe] | None:
    """The primitives of a pool of these arrays, by the length of a block of the batch.

    None where NumPy should.
    """
    if any(type(a) is not np.ndarray or a.dtype != np.float32 for a in arrays):
        return None
    n = len(axes)
    is_last = axes[-1].is_plain
    if max(a.size for a in arrays) < WORTH_ELEMENTS or n not in (4, 5) or not axes[0].is_plain:
        return None
    if not (is_last or axes[1].is_plain):
        return None
    for a in axes:
        too_far = a.low >= a.extent or a.span - a.low - a.size >= a.extent
        if a.out < 1 or a.size < 1 or too_far:
            return None
    found = {}
    for some in _blocks(axes):
        length = len(range(axes[0].size)[some])
        found[length] = _recipe(kind, (_plain(length), *axes[1:]), is_last)
    return {n: r for n, r in found.items() if r is not None} if None not in found.values() else None


def _plain(length: int) -> Axis:
    return Axis(length, 1, 1, 1, 0, length)


def _blocks(axes: Sequence[Axis]) -> list[slice]:
    """Returns the blocks of the batch that threads share."""
    elements = math.prod(max(a.size, a.out) for a in axes)
    return batch_blocks(np, axes[0].size, 2 * FLOPS * elements)


def _run(
    found: dict[int, PoolRecipe], axes: Sequence[Axis], out: Any, calls: Callable[..., Calls]
) -> Any:
    """Returns `out` (or new memory in its place) with what calls(recipe, block, out) write."""
    blocks = _blocks(axes)

    def made(i: int) -> Calls:
        length = len(range(axes[0].size)[blocks[i]])
        return calls(found[length], blocks[i], out)

    late = run_blocks(next(iter(found.values())).library, len(blocks), made)
    if late:
        out = out.copy()
    for i in late:
        run(made(i))
    return out


def _is_finite(x: Any) -> bool:
    """Whether all numbers are finite; may say no where some are huge."""
    flat = x.reshape(-1)
    return bool(np.isfinite(np.dot(flat, flat)))


def pooled(kind: Literal["max", "mean"], x: Any, axes: Sequence[Axis]) -> Any:
    """Returns the maxima or means under the windows; None where NumPy should."""
    found = _suited(kind, axes, x)
    if found is None:
        return None
    x = np.ascontiguousarray(x)
    if kind == "max" and not _is_finite(x):
        return None
    y = np.empty([a.out for a in axes], np.float32)
    return _run(found, axes, y, lambda recipe, some, out: recipe.calls(x[some], out[some]))


def spread(kind: Literal["max grad", "mean grad"], x: Any, g: Any, axes: Sequence[Axis]) -> Any:
    """Returns the gradient of a pool; None where NumPy should.

    Args:
        kind: Of which pool.
        x: What was pooled; None for means, which do not need it.
        g: The gradient of what came out.
        axes: All axes, the batch's first.
    """
    found = _suited(kind, axes, g) if x is None else _suited(kind, axes, x, g)
    if found is None:
        return None
    given = None if x is None else np.ascontiguousarray(x)
    if given is not None and not _is_finite(given):
        return None
    back = np.ascontiguousarray(g)

    def calls(recipe: PoolRecipe, some: slice, out: Any) -> Calls:
        return recipe.calls(out[some], None if given is None else given[some], back[some])

    return _run(found, axes, np.empty([a.size for a in axes], np.float32), calls)


__all__ = ["PoolRecipe", "pooled", "spread"]
