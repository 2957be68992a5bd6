"""What array, segment, sorting and counting functions say of arguments that do not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import DTypeError, InvalidArgumentError

#: (call of tensors, their dtypes and shapes, error class, what its text holds).
STATIC: list[tuple[Callable[..., Any], list[tuple[str, Any]], type[Exception], list[str]]] = []
#: (call of tensors, the arrays fed for them, what the text holds).
FED: list[tuple[Callable[..., Any], list[Any], list[str]]] = []


def static(
    call: Any, *inputs: tuple[str, Any], says: str, error: Any = InvalidArgumentError
) -> None:
    STATIC.append((call, list(inputs), error, says.split("|")))


def fed(call: Any, *arrays: Any, says: str) -> None:
    FED.append((call, [np.asarray(a) for a in arrays], says.split("|")))


def f(*shape: Any) -> tuple[str, Any]:
    return "float32", list(shape)


def i(*shape: Any) -> tuple[str, Any]:
    return "int32", list(shape)


D: dict[str, Any] = {"error": DTypeError}

# -- segments -------------------------------------------------------------------------------------

static(fs.segment_sum, f(3), f(3), says="segment ids of dtype int32 or int64, got float32", **D)
static(fs.segment_sum, f(3, 2), i(2), says="id per row of [3,2]|ids of shape [2]")
static(fs.segment_sum, f(3, 2), i(3, 2), says="ids of rank 1|got [3,2]")
static(fs.segment_max, ("complex64", [3]), i(3), says="expected a dtype|got complex64", **D)
static(lambda x: fs.segment_sum(x, [1, 0]), f(2), says="ids that never fall|unsorted")
static(lambda x, j: fs.unsorted_segment_sum(x, j, [1]), f(2), i(2), says="scalar number|[1]")
fed(fs.segment_sum, np.ones(2), [1, 0], says="ids that never fall")
fed(fs.segment_sum, np.ones(2), [-1, 0], says="ids from 0 on, got -1")
fed(lambda x, j: fs.unsorted_segment_sum(x, j, 2), np.ones(2), [0, 5], says="ids below 2, got 5")
fed(lambda x, n: fs.unsorted_segment_sum(x, [0], n), np.ones(1), -1, says="from 0 on, got -1")
fed(fs.segment_sum, np.ones((2, 2)), [0, 0, 0], says="id per row of [2,2]|[3]")

# -- matrices -------------------------------------------------------------------------------------

static(fs.matrix_diag, f(), says="rank 1 at least")
static(fs.matrix_diag_part, f(3), says="expected matrices, got [3]")
static(lambda x: fs.matrix_diag_part(x, k=3), f(2, 3), says="diagonals in [-1, 2]|got 3 to 3")
static(lambda x: fs.matrix_diag_part(x, k=(1, 0)), f(2, 3), says="rising order")
static(lambda x: fs.matrix_diag_part(x, k=1.5), f(2, 3), says="integer or a pair")
static(lambda x: fs.matrix_diag_part(x, align="LEFT"), f(2, 3), says="expected an align of")
static(lambda x, k: fs.matrix_diag_part(x, k=k), f(2, 3), i(), says="k known while")
static(fs.matrix_set_diag, f(2, 3), f(3), says="diagonals of shape [2]|got [3]")
static(fs.matrix_set_diag, f(2, 3), i(2), says="expected float32, got int32", **D)
static(lambda x: fs.matrix_band_part(x, 1.0, 0), f(2, 2), says="integer scalars", **D)
static(lambda x: fs.matrix_band_part(x, 1, 0), f(2), says="expected matrices, got [2]")
static(fs.diag_part, f(2, 3), says="another one twice over, got [2,3]")
static(fs.diag_part, ("float32", None), says="twice over")
static(fs.cross, f(2), f(2), says="last axis of 3, got [2]")
static(fs.cross, f(2, 3), f(3), says="one shape|[2,3]|[3]")
static(fs.cross, ("bool", [3]), ("bool", [3]), says="got bool", **D)
static(
    lambda x: fs.matrix_diag_part(x, k=(0, 1), padding_value=-1),
    ("uint8", [2, 2]), says="a padding_value of dtype uint8, got -1", **D,
)  # fmt: skip
static(fs.math.reduce_std, i(3), says="floating-point or complex numbers|int32[3]", **D)
fed(fs.matrix_set_diag, np.ones((2, 3)), np.ones(3), says="diagonals of shape [2]")

# -- moved elements -------------------------------------------------------------------------------

static(lambda x: fs.roll(x, 1.0, 0), f(3), says="shifts of dtype int32 or int64", **D)
static(lambda x: fs.roll(x, [1, 2], 0), f(3), says="a shift per axis, got [2] and []")
static(lambda x: fs.roll(x, 1, 1), f(3), says="axis in [-1, 1), got 1")
fed(lambda x, a: fs.roll(x, 1, a), np.ones(3), 2, says="axis in [-1, 1), got 2")
static(lambda x, n: fs.reverse_sequence(x, n, 0), f(2, 3), i(2), says="two different axes")
static(lambda x, n: fs.reverse_sequence(x, n, 1), f(2, 3), i(3), says="length per element|[3]")
static(lambda x, n: fs.reverse_sequence(x, n), f(2, 3), i(2), says="expected a seq_axis")
fed(lambda x, n: fs.reverse_sequence(x, n, 1), np.ones((2, 3)), [1, 4], says="lengths in [0, 3]")
static(lambda x: fs.space_to_depth(x, 2), f(1, 3, 4, 1), says="multiple of 2 for the height, got 3")
static(lambda x: fs.depth_to_space(x, 2), f(1, 3, 4, 6), says="multiple of 4 for the channels")
static(lambda x: fs.space_to_depth(x, 1), f(1, 2, 2, 1), says="block size of 2 or more, got 1")
static(lambda x: fs.space_to_depth(x, 2), f(2, 2), says="images of rank 4, got [2,2]")
static(lambda x: fs.space_to_depth(x, 2, data_format="CHW"), f(1, 2, 2, 1), says="got 'CHW'")
static(lambda x: fs.space_to_batch_nd(x, [2], [[0, 0]]), f(1, 3), says="multiple of 2|got 3")
static(lambda x: fs.space_to_batch_nd(x, [2], [[0, -1]]), f(1, 3), says="margins from 0 on")
static(lambda x: fs.space_to_batch_nd(x, [2], [0, 0]), f(1, 4), says="margins of rank 2")
static(lambda x: fs.space_to_batch_nd(x, [2, 2], [[0, 0]]), f(1, 4), says="margins of shape [2,2]")
static(lambda x: fs.space_to_batch_nd(x, [2, 2], [[0, 0]] * 2), f(1, 4), says="rank 3 at least")
static(lambda x: fs.batch_to_space_nd(x, [2], [[0, 0]]), f(3, 4), says="multiple of 2 for the ba")
static(lambda x: fs.batch_to_space_nd(x, [2], [[9, 0]]), f(2, 4), says="crops of at most 8")
static(lambda x: fs.meshgrid(x, indexing="ab"), f(3), says="'ab'")
static(lambda x: fs.meshgrid(x, index="xy"), f(3), says="got index")
static(
    lambda x: fs.extract_image_patches(x, [1, 2, 2], [1, 1, 1, 1], [1, 1, 1, 1], "SAME"),
    f(1, 2, 2, 1), says="expected ksizes [1, n, n, 1]",
)  # fmt: skip
static(
    lambda x: fs.extract_image_patches(x, [1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], "FULL"),
    f(1, 2, 2, 1), says='"SAME" or "VALID"',
)  # fmt: skip
static(
    lambda x: fs.extract_image_patches(x, [1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], "SAME"),
    f(2, 2), says="rank 4, got [2,2]",
)  # fmt: skip

# -- gathers and scatters -------------------------------------------------------------------------

static(lambda x, j: fs.gather(x, j, batch_dims=1), f(2, 3), f(2, 1), says="got float32", **D)
static(lambda x, j: fs.gather(x, j, batch_dims=1), f(2, 3), i(3, 1), says="1 equal axes in front")
static(lambda x, j: fs.gather(x, j, axis=0, batch_dims=1), f(2, 3), i(2, 1), says="up to the axis")
static(fs.batch_gather, f(2, 3), ("int32", None), says="known rank")
static(lambda x, j: fs.gather_nd(x, j, batch_dims=2), f(2, 3), i(2, 1), says="batch_dims below")
fed(lambda x, j: fs.gather(x, j, batch_dims=1), np.ones((2, 3)), [[0], [3]], says="[0, 3), got 3")
static(fs.tensor_scatter_nd_add, f(3), f(1, 1), f(1), says="indices of dtype int32", **D)
static(fs.tensor_scatter_nd_add, f(3), i(1, 1), i(1), says="updates of float32, got int32", **D)
static(fs.tensor_scatter_nd_max, ("bool", [3]), i(1, 1), ("bool", [1]), says="got bool", **D)
static(fs.tensor_scatter_nd_add, f(3), i(1, 2), f(1), says="at most 1 numbers per position, got 2")
static(fs.tensor_scatter_nd_add, f(3, 2), i(1, 1), f(1), says="updates of shape [1,2], got [1]")
static(fs.tensor_scatter_nd_add, f(3), i(), f(), says="rank 1 at least")
fed(fs.tensor_scatter_nd_add, np.ones(3), [[3]], np.ones(1), says="indices in [0, 3), got 3")
fed(lambda j, u: fs.scatter_nd(j, u, [3]), [[0]], np.ones(2), says="updates of shape [1], got [2]")

# -- sorting, sets, counts ------------------------------------------------------------------------

static(fs.sort, f(), says="axis in [0, 0), got -1")
static(fs.sort, ("bool", [2]), says="got bool", **D)
static(lambda x: fs.sort(x, direction="UP"), f(2), says="got 'UP'")
static(lambda x: fs.argsort(x, axis=[0, 1]), f(2, 2), says="expected one axis")
static(fs.searchsorted, f(2, 3), f(3, 3), says="equal axes but the last")
static(fs.searchsorted, f(3), i(3), says="float32 and int32", **D)
static(lambda x: fs.searchsorted(x, x, side="up"), f(3), says="got 'up'")
static(lambda x: fs.searchsorted(x, x, out_type="int8"), f(3), says="got int8", **D)
static(fs.unique, f(2, 2), says="expected a vector, got [2,2]")
static(lambda x: fs.unique(x, "int8"), f(2), says="got int8", **D)
static(fs.setdiff1d, f(2), i(2), says="float32 and int32", **D)
static(fs.bincount, f(3), says="integers to count, got float32", **D)
static(lambda n: fs.bincount(n, minlength=-1), i(3), says="minlength from 0 on|got -1")
static(fs.bincount, i(3), f(2), says="a weight per number, got [2] for [3]")
fed(fs.bincount, [1, -2], says="numbers from 0 on, got -2")
static(lambda x: fs.histogram_fixed_width(x, [0.0, 1.0], 0), f(3), says="one bin at least, got 0")
static(lambda x: fs.histogram_fixed_width(x, [0.0]), f(3), says="a range [low, high], got [1]")
fed(lambda x: fs.histogram_fixed_width(x, [1.0, 1.0]), np.ones(2, "f4"), says="of rising limits")
fed(lambda x: fs.unravel_index(x, [2, 3]), [6], says="places in [0, 6), got 6 to 6")
static(fs.unravel_index, i(2, 2), i(2), says="places of rank 0 or 1")

# -- arrays ---------------------------------------------------------------------------------------

static(lambda x: fs.linspace(x, x, 0), f(), says="at least one number, got 0")
static(lambda x: fs.linspace(x, x, 2.0), f(), says="integer scalar as num", **D)
static(fs.linspace, f(), ("float64", []), i(), says="float32 and float64", **D)
fed(lambda n: fs.linspace(0.0, 1.0, n), 0, says="at least one number, got 0")
static(lambda x, v: fs.pad(x, [[1, 1]], constant_values=v), f(2), f(1), says="scalar to pad with")
static(lambda x, v: fs.pad(x, [[1, 1]], constant_values=v), f(2), i(), says="float32 and int", **D)
static(lambda x: fs.repeat(x, [1, 2], 0), f(3), says="3 repeats for axis 0|got [2]")
static(lambda x: fs.repeat(x, 1.5, 0), f(3), says="repeats as a vector of int32", **D)
fed(lambda x, n: fs.repeat(x, n, 0), np.ones(2), [1, -1], says="2 repeats from 0 on, got [1, -1]")
static(fs.where_v2, f(2), f(2), f(2), says="a bool condition, got float32", **D)
static(fs.where_v2, ("bool", [2]), f(3), f(3), says="[2]|[3]|broadcast")
static(fs.fft, f(3), says="complex64 or complex128, got float32", **D)
static(fs.fft2d, ("complex64", [3]), says="rank 2 at least, got [3]")
static(fs.signal.rfft, i(3), says="float32 or float64, got int32", **D)
static(lambda x: fs.signal.rfft(x, [1, 2]), f(3), says="1 lengths of int32", **D)

# -- axes that come late --------------------------------------------------------------------------

fed(fs.reduce_sum, np.ones((2, 3)), 2, says="axis in [-2, 2), got 2")
fed(fs.reduce_sum, np.ones((2, 3)), [0, 0], says="permutation of 2 axes, got [1, 0, 0]")
fed(fs.transpose, np.ones((2, 3)), [0, 0], says="permutation of 2 axes, got [0, 0]")
fed(fs.reverse, np.ones((2, 3)), [0, -2], says="each axis once, got [0, -2]")
fed(lambda x, n: fs.split(x, n, 1, num=2), np.ones((2, 3)), [1, 1], says="add up to 3")
static(fs.reduce_sum, f(2), f(), says="axes of dtype int32 or int64, got float32", **D)
static(fs.transpose, f(2, 3), i(3), says="expected 2 axes, got [3]")
static(lambda x, n: fs.split(x, n, 0), f(3), ("int32", [None]), says="number of parts known")
static(lambda x, n: fs.split(x, n, 0), f(3), i(), says="number of parts known")

# -- arithmetic -----------------------------------------------------------------------------------

for _call in (fs.erf, fs.lgamma, fs.math.ndtri, fs.math.bessel_i0, fs.math.special.spence):
    static(_call, i(2), says="floating-point|got int32", **D)
for _call in (fs.igamma, fs.zeta, fs.math.xlog1py, fs.math.multiply_no_nan):
    static(_call, f(2), ("float64", [2]), says="float32 and float64", **D)
static(fs.betainc, f(2), f(2), ("float64", [2]), says="float32 and float64", **D)
static(fs.lbeta, i(2), says="got int32", **D)
static(fs.angle, i(2), says="floating-point or complex numbers, got int32", **D)
static(lambda x: fs.math.polyval(x, x), f(2), says="a list of coefficients", **D)
static(lambda x: fs.accumulate_n([x], shape=[3]), f(2), says="tensors of shape [3], got float32[2]")
static(lambda x: fs.accumulate_n([x], tensor_dtype="int32"), f(2), says="expected int32", **D)
static(fs.bitwise.bitwise_and, f(2), f(2), says="integer, got float32", **D)
fed(fs.truncatediv, [1, 2], [1, 0], says="division by zero")
fed(fs.truncatemod, [1, 2], [1, 0], says="division by zero")


@pytest.mark.parametrize(("call", "inputs", "error", "says"), STATIC)
def test_what_is_known_is_said_while_building(graph, call, inputs, error, says):
    tensors = [fs.placeholder(dtype, shape) for dtype, shape in inputs]
    with pytest.raises(error) as e:
        call(*tensors)
    for part in says:
        assert part in str(e.value)


@pytest.mark.parametrize(("call", "arrays", "says"), FED)
def test_the_rest_is_said_while_running(sess, call, arrays, says):
    tensors = [fs.placeholder(fs.as_dtype(a.dtype)) for a in arrays]
    out = call(*tensors)
    with pytest.raises(InvalidArgumentError) as e:
        sess.run(out, dict(zip(tensors, arrays, strict=True)))
    for part in says:
        assert part in e.value.message
    assert e.value.op is not None
    assert "test_errors_arrays.py" in e.value.origin
