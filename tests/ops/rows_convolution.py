# ruff: noqa: E501
# fmt: off
"""Convolutions: each output element worked out by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from row_tools import In, Table, vec

import flowscope as fs

ROWS = Table()
row = ROWS.row


def margins(padding: Any, sizes: Any, windows: Any, strides: Any, rates: Any) -> list[Any]:
    """The margins of the spatial axes, by their definition."""
    if padding == "VALID":
        return [(0, 0)] * len(sizes)
    if padding != "SAME":
        return [tuple(p) for p in padding[1:-1]]
    out = []
    for n, w, s, r in zip(sizes, windows, strides, rates):
        total = max((-(-n // s) - 1) * s + (w - 1) * r + 1 - n, 0)
        out.append((total // 2, total - total // 2))
    return out


def conv(x: Any, k: Any, strides: Any, padding: Any = "SAME", rates: Any = None) -> Any:
    """One sum of products per output element; channels last, any number of spatial axes."""
    d = x.ndim - 2
    strides, rates = [strides] * d if isinstance(strides, int) else strides, rates or [1] * d
    pads = margins(padding, x.shape[1:-1], k.shape[:-2], strides, rates)
    x = np.pad(x, [(0, 0), *pads, (0, 0)])
    extents = [(w - 1) * r + 1 for w, r in zip(k.shape, rates)]
    outs = [(n - e) // s + 1 for n, e, s in zip(x.shape[1:-1], extents, strides)]
    groups = x.shape[-1] // k.shape[-2]
    out = np.zeros((len(x), *outs, k.shape[-1]), x.dtype)
    for at in np.ndindex(*outs):
        window = tuple(slice(a * s, a * s + e, r) for a, s, e, r in zip(at, strides, extents, rates))
        for g in range(groups):
            c, o = k.shape[-2], k.shape[-1] // groups
            part = x[(slice(None), *window, slice(g * c, g * c + c))].astype(np.float64)
            ks = k[..., g * o : g * o + o].astype(np.float64)
            out[(slice(None), *at, slice(g * o, g * o + o))] = np.tensordot(part, ks, d + 1)
    return out


def conv_input(sizes: Any, k: Any, g: Any, *args: Any) -> Any:
    """The transpose of `conv`: for each input element, the outputs for a unit there, times g."""
    out = np.zeros(sizes, g.dtype)
    for at in np.ndindex(*sizes):
        unit = np.zeros(sizes, np.float64)
        unit[at] = 1
        out[at] = (conv(unit, k, *args) * g).sum()
    return out


def conv_filter(x: Any, sizes: Any, g: Any, *args: Any) -> Any:
    out = np.zeros(sizes, g.dtype)
    for at in np.ndindex(*sizes):
        unit = np.zeros(sizes, np.float64)
        unit[at] = 1
        out[at] = (conv(x, unit, *args) * g).sum()
    return out


def depthwise(x: Any, k: Any, *args: Any) -> Any:
    """Each channel by itself, through `conv` with a filter that is 0 for all others."""
    c, m = k.shape[-2:]
    wide = np.zeros((*k.shape[:-2], c, c * m), k.dtype)
    for i in range(c):
        wide[..., i, i * m : (i + 1) * m] = k[..., i, :]
    return conv(x, wide, *args)


def first(x: Any) -> Any:
    """Channels last -> channels first."""
    return np.moveaxis(x, -1, 1)


def last(x: Any) -> Any:
    return np.moveaxis(x, 1, -1)


EXPLICIT = [[0, 0], [1, 2], [0, 1], [0, 0]]
_IMAGE, _K = In((2, 5, 4, 2)), In((3, 2, 2, 3))

for _name, _strides, _padding, _rates in (
    ("same", 1, "SAME", None), ("valid", 1, "VALID", None), ("strides", [2, 2], "SAME", None),
    ("strides_valid", [2, 1], "VALID", None), ("dilated", 1, "SAME", [1, 2]), ("dilated_valid", 1, "VALID", [2, 1]),
    ("dilated_strides", [2, 3], "SAME", [2, 2]), ("explicit", 1, EXPLICIT, None), ("explicit_strides", [2, 3], EXPLICIT, None),
    ("far", 1, [[0, 0], [4, 0], [0, 3], [0, 0]], None),
):
    row(f"conv2d_{_name}",
        lambda x, k, s=_strides, p=_padding, r=_rates: fs.nn.conv2d(x, k, s, p, dilations=r or 1),
        lambda x, k, s=_strides, p=_padding, r=_rates: conv(x, k, s, p, r), _IMAGE, _K,
        dtypes=("float32", "float64") if _name != "same" else ("float16", "float32", "float64"), rtol=4e-3 if _name == "same" else None)
row("conv2d_nchw", lambda x, k: fs.nn.conv2d(x, k, [1, 1, 2, 1], "SAME", data_format="NCHW"),
    lambda x, k: first(conv(last(x), k, [2, 1])), In((2, 2, 5, 4)), _K)
row("conv2d_one_by_one", lambda x, k: fs.nn.conv2d(x, k, 1, "SAME"), lambda x, k: conv(x, k, 1), In((2, 3, 2, 4)), In((1, 1, 4, 3)))
row("conv2d_one_by_one_strides", lambda x, k: fs.nn.conv2d(x, k, 2, "VALID"), lambda x, k: conv(x, k, 2, "VALID"), In((2, 3, 3, 4)), In((1, 1, 4, 3)))
row("conv2d_groups", lambda x, k: fs.nn.conv2d(x, k, 1, "SAME"), lambda x, k: conv(x, k, 1), In((2, 3, 3, 4)), In((2, 2, 2, 6)))
row("conv2d_one_channel", lambda x, k: fs.nn.conv2d(x, k, 1, "SAME"), lambda x, k: conv(x, k, 1), In((2, 3, 7, 1)), In((3, 3, 1, 2)))
row("conv2d_no_images", lambda x, k: fs.nn.conv2d(x, k, 1, "SAME"), lambda x, k: np.zeros((0, 3, 3, 1), x.dtype), In((0, 3, 3, 2)), In((2, 2, 2, 1)))
row("conv2d_no_channels", lambda x, k: fs.nn.conv2d(x, k, 1, "SAME"), lambda x, k: np.zeros((1, 3, 3, 2), x.dtype), In((1, 3, 3, 0)), In((2, 2, 0, 2)), order=0)
row("conv2d_no_filters", lambda x, k: fs.nn.conv2d(x, k, 1, "SAME"), lambda x, k: np.zeros((1, 3, 3, 0), x.dtype), In((1, 3, 3, 2)), In((2, 2, 2, 0)))
row("conv3d", lambda x, k: fs.nn.conv3d(x, k, [1, 1, 2, 1, 1], "SAME"), lambda x, k: conv(x, k, [1, 2, 1]), In((1, 3, 3, 2, 2)), In((2, 2, 2, 2, 1)))
row("conv3d_ncdhw", lambda x, k: fs.nn.conv3d(x, k, 1, "VALID", "NCDHW"), lambda x, k: first(conv(last(x), k, 1, "VALID")),
    In((1, 2, 3, 3, 2)), In((2, 2, 2, 2, 1)))
row("conv1d", lambda x, k: fs.nn.conv1d(x, k, 2, "SAME"), lambda x, k: conv(x, k, 2), In((2, 5, 2)), In((3, 2, 3)), rank=True)
row("conv1d_ncw", lambda x, k: fs.nn.conv1d(x, k, 1, "VALID", data_format="NCW", dilations=2), lambda x, k: first(conv(last(x), k, 1, "VALID", [2])),
    In((2, 2, 5)), In((3, 2, 3)), rank=True)
row("conv1d_explicit", lambda x, k: fs.nn.conv1d(x, k, 1, [[0, 0], [2, 0], [0, 0]]), lambda x, k: conv(x, k, 1, [[0, 0], [2, 0], [0, 0]]),
    In((2, 4, 2)), In((3, 2, 3)), rank=True)
row("conv1d_more_axes", lambda x, k: fs.nn.conv1d(x, k, 1, "VALID"), lambda x, k: conv(x.reshape(4, 5, 2), k, 1, "VALID").reshape(2, 2, 3, 3),
    In((2, 2, 5, 2)), In((3, 2, 3)), rank=True)
for _shape, _kernel in (((2, 5, 2), (3, 2, 2)), ((1, 4, 3, 2), (2, 2, 2, 2)), ((1, 3, 2, 2, 1), (2, 2, 2, 1, 2))):
    _n = len(_shape) - 2
    row(f"convolution_{_n}d", lambda x, k: fs.nn.convolution(x, k, "SAME"), lambda x, k: conv(x, k, 1), In(_shape), In(_kernel), rank=True)
row("convolution_dilated", lambda x, k: fs.nn.convolution(x, k, "SAME", dilation_rate=[2, 1]), lambda x, k: conv(x, k, 1, "SAME", [2, 1]), _IMAGE, _K, rank=True)
row("atrous_conv2d", lambda x, k: fs.nn.atrous_conv2d(x, k, 2, "SAME"), lambda x, k: conv(x, k, 1, "SAME", [2, 2]), _IMAGE, _K, rank=True)
row("atrous_conv2d_transpose", lambda x, k: fs.nn.atrous_conv2d_transpose(x, k, [2, 5, 4, 2], 2, "SAME"),
    lambda g, k: conv_input((2, 5, 4, 2), k, g, 1, "SAME", [2, 2]), In((2, 5, 4, 3)), _K)

for _name, _strides, _padding, _rates in (
    ("same", 1, "SAME", None), ("strides", [2, 2], "SAME", None), ("valid", [2, 1], "VALID", None), ("dilated", 1, "VALID", [2, 1]),
    ("explicit", [2, 3], EXPLICIT, None), ("far", 1, [[0, 0], [4, 0], [0, 3], [0, 0]], None),
):
    _outs = conv(np.zeros((2, 5, 4, 2)), np.zeros((3, 2, 2, 3)), _strides, _padding, _rates).shape
    row(f"conv2d_backprop_input_{_name}",
        lambda k, g, s=_strides, p=_padding, r=_rates: fs.nn.conv2d_backprop_input([2, 5, 4, 2], k, g, s, p, dilations=r or 1),
        lambda k, g, s=_strides, p=_padding, r=_rates: conv_input((2, 5, 4, 2), k, g, s, p, r), _K, In(_outs))
    row(f"conv2d_backprop_filter_{_name}",
        lambda x, g, s=_strides, p=_padding, r=_rates: fs.nn.conv2d_backprop_filter(x, [3, 2, 2, 3], g, s, p, dilations=r or 1),
        lambda x, g, s=_strides, p=_padding, r=_rates: conv_filter(x, (3, 2, 2, 3), g, s, p, r), _IMAGE, In(_outs))
row("conv2d_backprop_input_fed", lambda n, k, g: fs.nn.conv2d_backprop_input(n, k, g, 2, "SAME"),
    lambda n, k, g: conv_input(tuple(n), k, g, 2), vec(1, 3, 4, 2), In((2, 2, 2, 1)), In((1, 2, 2, 1)), dynamic=True)
row("conv3d_backprop_filter", lambda x, g: fs.nn.conv3d_backprop_filter(x, [2, 2, 1, 2, 1], g, 1, "VALID"),
    lambda x, g: conv_filter(x, (2, 2, 1, 2, 1), g, 1, "VALID"), In((1, 3, 3, 2, 2)), In((1, 2, 2, 2, 1)))
row("conv2d_transpose", lambda x, k: fs.nn.conv2d_transpose(x, k, [1, 6, 5, 2], 2, "SAME"),
    lambda g, k: conv_input((1, 6, 5, 2), k, g, 2), In((1, 3, 3, 3)), _K)
row("conv2d_transpose_nchw", lambda x, k: fs.nn.conv2d_transpose(x, k, [1, 2, 6, 5], 2, "SAME", "NCHW"),
    lambda g, k: first(conv_input((1, 6, 5, 2), k, last(g), 2)), In((1, 3, 3, 3)), _K)
row("conv3d_transpose", lambda x, k: fs.nn.conv3d_transpose(x, k, [1, 3, 2, 2, 1], [2, 1, 1], "SAME"),
    lambda g, k: conv_input((1, 3, 2, 2, 1), k, g, [2, 1, 1]), In((1, 2, 2, 2, 2)), In((2, 2, 1, 1, 2)))
row("conv1d_transpose", lambda x, k: fs.nn.conv1d_transpose(x, k, [2, 5, 2], 2), lambda g, k: conv_input((2, 5, 2), k, g, 2), In((2, 3, 3)), In((3, 2, 3)), rank=True)
row("conv_transpose", lambda x, k: fs.nn.conv_transpose(x, k, [2, 5, 2], 2), lambda g, k: conv_input((2, 5, 2), k, g, 2), In((2, 3, 3)), In((3, 2, 3)), rank=True)

_D = In((2, 3, 2, 2))
for _name, _strides, _padding, _rates in (
    ("same", [1, 1], "SAME", None), ("strides", [2, 2], "SAME", None), ("valid", [1, 1], "VALID", None), ("dilated", [1, 1], "SAME", [2, 1]),
    ("explicit", [1, 1], EXPLICIT, None),
):
    row(f"depthwise_conv2d_{_name}",
        lambda x, k, s=_strides, p=_padding, r=_rates: fs.nn.depthwise_conv2d(x, k, [1, *s, 1], p, r),
        lambda x, k, s=_strides, p=_padding, r=_rates: depthwise(x, k, s, p, r), _IMAGE, _D)
row("depthwise_conv2d_single", lambda x, k: fs.nn.depthwise_conv2d(x, k, 1, "SAME"), lambda x, k: depthwise(x, k, 1), _IMAGE, In((2, 3, 2, 1)))
row("depthwise_conv2d_nchw", lambda x, k: fs.nn.depthwise_conv2d(x, k, 1, "SAME", data_format="NCHW"), lambda x, k: first(depthwise(last(x), k, 1)), In((2, 2, 5, 4)), _D)
row("depthwise_backprop_input", lambda k, g: fs.nn.depthwise_conv2d_backprop_input([1, 3, 3, 2], k, g, 1, "SAME"),
    lambda k, g: np.stack([(depthwise(u.reshape(1, 3, 3, 2), k, 1) * g).sum() for u in np.eye(18)]).reshape(1, 3, 3, 2).astype(g.dtype), _D, In((1, 3, 3, 4)))
row("depthwise_backprop_filter", lambda x, g: fs.nn.depthwise_conv2d_backprop_filter(x, [2, 3, 2, 2], g, 1, "SAME"),
    lambda x, g: np.stack([(depthwise(x, u.reshape(2, 3, 2, 2), 1) * g).sum() for u in np.eye(24)]).reshape(2, 3, 2, 2).astype(g.dtype),
    In((1, 3, 3, 2)), In((1, 3, 3, 4)))
row("separable_conv2d", lambda x, d, p: fs.nn.separable_conv2d(x, d, p, [1, 2, 2, 1], "SAME"), lambda x, d, p: conv(depthwise(x, d, [2, 2]), p, 1),
    _IMAGE, _D, In((1, 1, 4, 3)))
