"""Where windows lie along the axes of an image: for convolutions and pools.

A window of `window` elements, `dilation` apart, moves over an axis in steps of `stride`; the axis
is continued by a margin before and behind it. "VALID" has no margin and leaves out what does not
fit; "SAME" has as many windows as there are strides in the axis, the margin split evenly, the odd
element behind; "EXPLICIT" takes the margins as given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flowscope.graph.constant import get_static_value
from flowscope.graph.op import Op, frozen
from flowscope.graph.values.expected import expected
from flowscope.graph.values.shapes import Dims

#: Spellings of "channels last" and "channels first", by the number of spatial axes.
FORMATS = {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}


@dataclass(frozen=True, slots=True)
class Axis:
    """One spatial axis, with all its sizes known.

    Attributes:
        size: Its length. window, stride, dilation: See above. low: The margin before it.
        out: How many windows there are.
    """

    size: int
    window: int
    stride: int
    dilation: int
    low: int
    out: int

    @property
    def extent(self) -> int:
        """The length from a window's first element to its last."""
        return (self.window - 1) * self.dilation + 1

    @property
    def span(self) -> int:
        """The length from the first window's first element to the last one's last."""
        return (self.out - 1) * self.stride + self.extent if self.out else 0

    @property
    def is_plain(self) -> bool:
        """Whether each window is one element and there is one window per element."""
        return self.window == 1 == self.stride and self.low == 0 and self.out == self.size

    @property
    def has_margin(self) -> bool:
        """Whether a window reaches beyond the axis."""
        return self.low > 0 or self.span > self.size

    def tap(self, i: int) -> slice:
        """Returns which elements of the span the windows have as their i-th."""
        first = i * self.dilation
        return slice(first, first + (self.out - 1) * self.stride + 1, self.stride)

    def inside(self) -> tuple[slice, slice]:
        """Returns which part of the span lies on the axis, and which part of the axis that is."""
        stop = max(0, min(self.size, self.span - self.low))
        return slice(self.low, self.low + stop), slice(0, stop)

    def part(self, start: int, stop: int) -> tuple[Axis, slice]:
        """Returns windows start to stop alone, as an Axis on a slice of this one."""
        first = start * self.stride - self.low
        last = (stop - 1) * self.stride - self.low + self.extent
        begin, end = max(first, 0), max(min(last, self.size), 0)
        begin = min(begin, end)
        low = max(begin - first, 0)
        axis = Axis(end - begin, self.window, self.stride, self.dilation, low, stop - start)
        return axis, slice(begin, end)


@frozen
class Windowed(Op, abstract=True, calls=20):
    """Base of ops with windows.

    Attributes:
        strides: One per axis of the image, batch and channels included.
        padding: "SAME", "VALID" or "EXPLICIT".
        data_format: Channels last ("NHWC", "NDHWC") or first ("NCHW", "NCDHW").
        explicit_paddings: For "EXPLICIT": the margins before and behind each axis, in a row.
    """

    strides: tuple[int, ...]
    padding: str
    data_format: str = "NHWC"
    explicit_paddings: tuple[int, ...] = ()

    @property
    def channels_first(self) -> bool:
        """Whether the channels are the second axis, and not the last."""
        return self.data_format.startswith("NC")

    @property
    def channel_axis(self) -> int:
        """The number of the channels' axis."""
        return 1 if self.channels_first else len(self.strides) - 1

    def spatial(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """The entries for the spatial axes, of `values` with one per axis of the image."""
        return tuple(values[2:] if self.channels_first else values[1:-1])

    def joined(self, batch: Any, spatial: Sequence[Any], channels: Any) -> tuple[Any, ...]:
        """Returns the parts of a shape in the data format's order."""
        if self.channels_first:
            return (batch, channels, *spatial)
        return (batch, *spatial, channels)

    def dilation(self) -> tuple[int, ...]:
        """Returns the dilation along each spatial axis."""
        return (1,) * (len(self.strides) - 2)

    def margins(self) -> tuple[tuple[int, int], ...]:
        """Returns the explicit margins of each spatial axis."""
        pads = self.explicit_paddings
        return self.spatial(list(zip(pads[::2], pads[1::2], strict=True)))

    def outs(self, sizes: Dims, windows: Sequence[int | None]) -> tuple[int | None, ...]:
        """Returns how many windows there are along each spatial axis, as far as that is known."""
        n = len(self.strides) - 2
        sizes = (None,) * n if sizes is None else sizes
        pads = self.margins() or ((0, 0),) * n
        return tuple(
            count(size, window, stride, dilation, self.padding, pad)
            for size, window, stride, dilation, pad in zip(
                sizes, windows, self.spatial(self.strides), self.dilation(), pads, strict=True
            )
        )

    def axes(self, sizes: Sequence[int], windows: Sequence[int]) -> tuple[Axis, ...]:
        """Returns the spatial axes of an image of these sizes."""
        pads = self.margins() or ((0, 0),) * len(windows)
        steps, rates = self.spatial(self.strides), self.dilation()
        return tuple(
            axis_of(size, window, step, rate, self.padding, pad)
            for size, window, step, rate, pad in zip(
                sizes, windows, steps, rates, pads, strict=True
            )
        )


def axis_of(
    size: int, window: int, stride: int, dilation: int, padding: str, pads: tuple[int, int] = (0, 0)
) -> Axis:
    """Returns the axis of a length on which windows lie.

    Raises:
        InvalidArgumentError: if not even one could lie there.
    """
    out = count(size, window, stride, dilation, padding, pads)
    assert out is not None
    low = pads[0]
    if padding == "SAME":
        low = max((out - 1) * stride + (window - 1) * dilation + 1 - size, 0) // 2
    return Axis(size, window, stride, dilation, low, out)


def count(
    size: int | None,
    window: int | None,
    stride: int,
    dilation: int,
    padding: str,
    pads: tuple[int, int] = (0, 0),
) -> int | None:
    """Returns how many windows lie along an axis; None where that is not known.

    Raises:
        InvalidArgumentError: if not even one could lie there.
    """
    if size is None:
        return None
    if padding == "SAME":
        return -(-size // stride)
    if window is None:
        return None
    extent = (window - 1) * dilation + 1
    room = size + sum(pads) - extent
    if room < 0:
        raise expected(
            f"an image at least as large as a window of {extent}",
            f"{size} with margins of {sum(pads)}",
        )
    return room // stride + 1


def as_format(data_format: str | None, spatial: int) -> str:
    """Returns a `data_format` argument; None stands for channels last."""
    known = FORMATS[spatial]
    if data_format is None:
        return known[0]
    if data_format not in known:
        raise expected(f"data_format {known[0]} or {known[1]}", repr(data_format))
    return data_format


def as_steps(value: Any, spatial: int, data_format: str, what: str) -> tuple[int, ...]:
    """Returns strides, dilations or window sizes as one number per axis of the image.

    Args:
        value: A number for all spatial axes, or one number for each, or one per axis.
        spatial: How many spatial axes there are.
        data_format: Where the channels are.
        what: What messages call it.
    """
    known = 1 if value is None else get_static_value(value)
    if known is None:
        raise expected(f"{what} known while the graph is built", repr(value))
    steps = [known] if isinstance(known, int) else [int(v) for v in list(known.reshape(-1))]
    if len(steps) == 1:
        steps *= spatial
    if len(steps) == spatial:
        steps = [1, 1, *steps] if data_format.startswith("NC") else [1, *steps, 1]
    if len(steps) != spatial + 2 or min(steps) < 1:
        raise expected(f"{what}: 1, {spatial} or {spatial + 2} positive numbers", repr(value))
    return tuple(steps)


def check_untouched(
    steps: tuple[int, ...], data_format: str, what: str, batch: bool = True
) -> None:
    """Raises InvalidArgumentError unless the steps leave the channels (and the batch) alone."""
    channels = steps[1] if data_format.startswith("NC") else steps[-1]
    if channels != 1 or (batch and steps[0] != 1):
        raise expected(f"{what} of 1 for batch and channels", f"{list(steps)} for {data_format}")


def as_padding(padding: Any, spatial: int, data_format: str) -> tuple[str, tuple[int, ...]]:
    """Returns a `padding` argument as its name and the explicit margins."""
    if isinstance(padding, str):
        name = padding.upper()
        if name not in ("SAME", "VALID"):
            raise expected('padding "SAME", "VALID" or a list of margins', repr(padding))
        return name, ()
    pairs = [[int(v) for v in pair] for pair in padding]
    if len(pairs) != spatial + 2 or any(len(p) != 2 or min(p) < 0 for p in pairs):
        raise expected(f"{spatial + 2} pairs of margins from 0 on", repr(padding))
    if any(pairs[0]) or any(pairs[1 if data_format.startswith("NC") else -1]):
        raise expected("no margins for batch and channels", f"{padding!r} for {data_format}")
    return "EXPLICIT", tuple(v for pair in pairs for v in pair)
