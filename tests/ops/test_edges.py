# ruff: noqa: E501
# fmt: off
"""What is left of nothing, and other edges: the numbers are those of TensorFlow 2.21.

Each row is a call, the dtype of what comes, and its numbers; for an empty result zeros of its shape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowscope as fs

INF, NAN = float("inf"), float("nan")


def zeros(*shape: int, dtype: str = "f4") -> Any:
    return np.zeros(shape, dtype)


ROWS: list[tuple[Callable[[], Any], str, Any]] = [
    (lambda: fs.reduce_mean(zeros(0)), "f4", NAN),
    (lambda: fs.reduce_prod(zeros(0, dtype="i4")), "i4", 1),
    (lambda: fs.reduce_max(zeros(0, dtype="i4")), "i4", -2147483648),
    (lambda: fs.reduce_min(zeros(2, 0), 1), "f4", [INF, INF]),
    (lambda: fs.reduce_logsumexp(zeros(0)), "f4", -INF),
    (lambda: fs.reduce_all(zeros(0, dtype="?")), "?", True),
    (lambda: fs.reduce_any(zeros(0, 2, dtype="?"), 0), "?", [False, False]),
    (lambda: fs.argmax(zeros(0, 3), 1), "i8", zeros(0)),
    (lambda: fs.nn.top_k(np.float32([1, 2]), 0)[0], "f4", zeros(0)),
    (lambda: fs.unique(zeros(0, dtype="i4"))[1], "i4", zeros(0)),
    (lambda: fs.sort(zeros(2, 0)), "f4", zeros(2, 0)),
    (lambda: fs.concat([zeros(0, 2), np.float32([[1, 2]])], 0), "f4", [[1.0, 2.0]]),
    (lambda: fs.split(zeros(0, 2), 2, 0)[1], "f4", zeros(0, 2)),
    (lambda: fs.matmul(zeros(2, 0), zeros(0, 3)), "f4", [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]),
    (lambda: fs.einsum("ij,jk->ik", zeros(2, 0), zeros(0, 3)), "f4", [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]),
    (lambda: fs.gather(zeros(0, 2), zeros(0, dtype="i4")), "f4", zeros(0, 2)),
    (lambda: fs.gather_nd(np.float32([5, 6]), zeros(3, 0, dtype="i4")), "f4", [[5.0, 6.0], [5.0, 6.0], [5.0, 6.0]]),
    (lambda: fs.segment_sum(zeros(0, 2), zeros(0, dtype="i4")), "f4", zeros(0, 2)),
    (lambda: fs.segment_max(np.float32([1, -2]), [0, 3]), "f4", [1.0, 0.0, 0.0, -2.0]),
    (lambda: fs.segment_mean(np.float32([1, 2]), [0, 3]), "f4", [1.0, 0.0, 0.0, 2.0]),
    (lambda: fs.segment_prod(np.float32([1, 2]), [0, 3]), "f4", [1.0, 1.0, 1.0, 2.0]),
    (lambda: fs.unsorted_segment_sum(np.float32([1, 2]), [0, -1], 2), "f4", [1.0, 0.0]),
    (lambda: fs.nn.softmax(zeros(0, 3)), "f4", zeros(0, 3)),
    (lambda: fs.nn.softmax(zeros(3, 0)), "f4", zeros(3, 0)),
    (lambda: fs.matrix_determinant(zeros(0, 0)), "f4", 1.0),
    (lambda: fs.matrix_inverse(zeros(0, 0)), "f4", zeros(0, 0)),
    (lambda: fs.linalg.cholesky(zeros(0, 0)), "f4", zeros(0, 0)),
    (lambda: fs.linalg.qr(zeros(0, 2))[1], "f4", zeros(0, 2)),
    (lambda: fs.svd(zeros(2, 0))[0], "f4", zeros(0)),
    (lambda: fs.nn.conv2d(zeros(0, 3, 3, 1), filter=zeros(2, 2, 1, 1), strides=1, padding="SAME"), "f4", zeros(0, 3, 3, 1)),
    (lambda: fs.nn.max_pool(zeros(0, 2, 2, 1), 2, 2, "SAME"), "f4", zeros(0, 1, 1, 1)),
    (lambda: fs.cumsum(zeros(0, 2)), "f4", zeros(0, 2)),
    (lambda: fs.norm(zeros(0)), "f4", 0.0),
    (lambda: fs.sequence_mask([1, 0], 0), "?", zeros(2, 0)),
    (lambda: fs.one_hot([0, 1], 0), "f4", zeros(2, 0)),
    (lambda: fs.one_hot([-1, 5, 1], 3), "f4", [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]),
    (lambda: fs.tile(np.int32([[1, 2]]), [0, 2]), "i4", zeros(0, 4)),
    (lambda: fs.range(5, 0, -2), "i4", [5, 3, 1]),
    (lambda: fs.range(0, 0, 1), "i4", zeros(0)),
    (lambda: fs.searchsorted(zeros(0), np.float32([1])), "i4", [0]),
    (lambda: fs.bincount(zeros(0, dtype="i4")), "i4", zeros(0)),
    (lambda: fs.dynamic_partition(zeros(0), zeros(0, dtype="i4"), 2)[1], "f4", zeros(0)),
    (lambda: fs.pad(zeros(0), [[1, 1]]), "f4", [0.0, 0.0]),
    (lambda: fs.reverse(zeros(0, 2), [0]), "f4", zeros(0, 2)),
    (lambda: fs.transpose(zeros(0, 2)), "f4", zeros(2, 0)),
    (lambda: fs.where(zeros(0, dtype="?")), "i8", zeros(0, 1)),
    (lambda: fs.nn.sparse_softmax_cross_entropy_with_logits(labels=zeros(0, dtype="i4"), logits=zeros(0, 3)), "f4", zeros(0)),
    (lambda: fs.nn.l2_normalize(zeros(2), 0), "f4", [0.0, 0.0]),
    (lambda: fs.nn.moments(zeros(0, 2), [0])[1], "f4", [NAN, NAN]),
    (lambda: fs.broadcast_to(np.int32([1, 2]), [0, 2]), "i4", zeros(0, 2)),
    (lambda: fs.roll(zeros(0), 3, 0), "f4", zeros(0)),
    (lambda: fs.reverse_sequence(np.int32([[1, 2, 3]]), [0], 1), "i4", [[1, 2, 3]]),
    (lambda: fs.setdiff1d(np.int32([1, 1, 2]), np.int32([2]))[0], "i4", [1, 1]),
    (lambda: fs.round(np.float32([0.5, 1.5, 2.5, -0.5])), "f4", [0.0, 2.0, 2.0, -0.0]),
    (lambda: fs.floordiv(np.int32([-7, 7]), np.int32([2, -2])), "i4", [-4, -4]),
    (lambda: fs.truncatediv(np.int32([-7, 7]), np.int32([2, -2])), "i4", [-3, -3]),
    (lambda: fs.floormod(np.float32([-7.5, 7.5]), np.float32([2, -2])), "f4", [0.5, -0.5]),
    (lambda: fs.floordiv(np.int32([-(2**31)]), np.int32([-1])), "i4", [-2147483648]),
    (lambda: fs.abs(np.int8([-128])), "i1", [-128]),
    (lambda: fs.pow(np.int32([0, 2]), np.int32([0, 30])), "i4", [1, 1073741824]),
    (lambda: fs.div_no_nan(np.float32([1, 0]), np.float32([0, 0])), "f4", [0.0, 0.0]),
    (lambda: fs.cast(np.float32([-1.5, 300.7]), "int8"), "i1", [-1, 44]),
    (lambda: fs.cast(np.int32([300, -1]), "uint8"), "u1", [44, 255]),
    (lambda: fs.cast(np.float32([1e6, -1e6]), "float16"), "f2", [INF, -INF]),
    (lambda: fs.nn.in_top_k(np.float32([[1, 1, 0]]), [1], 1), "?", [True]),
    (lambda: fs.atan2(np.float32([0.0, -0.0]), np.float32([-1, -1])), "f4", [3.1415927410125732, -3.1415927410125732]),
    (lambda: fs.math.erfinv(np.float32([1, -1, 0])), "f4", [INF, -INF, 0.0]),
    (lambda: fs.nn.softplus(np.float32([1000, -1000])), "f4", [1000.0, 0.0]),
    (lambda: fs.log_sigmoid(np.float32([-1000, 1000])), "f4", [-1000.0, -0.0]),
    (lambda: fs.lgamma(np.float32([-1, 1])), "f4", [INF, 0.0]),
    (lambda: fs.cumprod(np.int32([[1, 2, 3]]), 1, exclusive=True, reverse=True), "i4", [[6, 3, 1]]),
    (lambda: fs.linspace(np.float32(1), np.float32(2), 1), "f4", [1.0]),
    (lambda: fs.confusion_matrix([0, 3], [1, 1]), "i4", [[0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 0]]),
    (lambda: fs.histogram_fixed_width(np.float32([np.inf, -np.inf, 5, 0]), [0.0, 5.0], 5), "i4", [2, 0, 0, 0, 2]),
    (lambda: fs.bitwise.right_shift(np.int32([-8]), np.int32([31])), "i4", [-1]),
    (lambda: fs.string_to_number(np.array([b"1e3", b" 2"], object)), "f4", [1000.0, 2.0]),
    (lambda: fs.strings.length(np.array([b"", b"\xff\x00"], object)), "i4", [0, 2]),
    (lambda: fs.string_join([np.array([], object), np.array([], object)]), "O", zeros(0)),
    (lambda: fs.string_split(np.array([b"a  b", b""], object)).values, "O", [b'a', b'b']),
    (lambda: fs.decode_raw(np.array([b"\x01\x00\x02\x00"], object), "uint16"), "u2", [[1, 2]]),
]


@pytest.mark.parametrize(("call", "dtype", "want"), ROWS)
def test_an_edge_is_as_in_tensorflow(sess: Any, call: Any, dtype: str, want: Any) -> None:
    got = np.asarray(sess.run(call()))
    assert got.dtype == np.dtype(dtype)
    assert got.shape == np.shape(want)
    if dtype[0] == "f":
        np.testing.assert_allclose(got, want, rtol=1e-6)
    else:
        assert got.tolist() == np.asarray(want).tolist()
