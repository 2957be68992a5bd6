# ruff: noqa: E501  (a table: one line per row)
# fmt: off
"""What adds up many numbers of 16 bits: as exact as its result's dtype, for it adds in float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowscope as fs
from flowscope.graph.op import all_ops
from flowscope.ops.collective.pieces import CollectiveFold
from flowscope.ops.core.build import apply
from flowscope.ops.nn.normalization_ops import NeighbourSum

N = 1500
SEGMENTS = np.arange(N) * 3 // N
PLACES = np.stack([np.zeros(N), np.arange(N)], 1).astype("i8")


def _sparse(x: Any) -> Any:
    return fs.SparseTensor(PLACES, x, [1, N])


def _grad(y: Any, x: Any) -> Any:
    return fs.convert_to_tensor(fs.gradients(y, x)[0])


#: Name -> the function of tensors, and the shapes of its inputs. ONES: products of factors near 1.
CASES: dict[str, tuple[Any, ...]] = {
    "sum": (lambda x: fs.reduce_sum(x, -1), (2, N)),
    "sum_late_axis": (lambda x: fs.reduce_sum(x, fs.placeholder_with_default([1], [1])), (2, N)),
    "mean": (lambda x: fs.reduce_mean(x, -1), (2, N)),
    "mean_grad": (lambda x: _grad(fs.reduce_mean(x), x), (70_000,)),
    "variance": (lambda x: fs.math.reduce_variance(200 * x, -1), (2, N)),
    "std": (lambda x: fs.math.reduce_std(200 * x, -1), (2, N)),
    "logsumexp": (lambda x: fs.reduce_logsumexp(x, -1), (2, N)),
    "norm": (lambda x: fs.norm(500 * x, axis=-1), (2, N)),
    "norm_1": (lambda x: fs.norm(x, 1, axis=-1), (2, N)),
    "norm_3": (lambda x: fs.norm(x, 3, axis=-1), (2, N)),
    "prod": (lambda x: fs.reduce_prod(x, -1), "near one"),
    "cumsum": (lambda x: fs.cumsum(x, -1), (2, N)),
    "cumprod": (lambda x: fs.cumprod(x, -1), "near one"),
    "cumulative_logsumexp": (lambda x: fs.math.cumulative_logsumexp(x, -1), (2, N)),
    "softmax": (fs.nn.softmax, (2, N)),
    "softmax_first": (lambda x: fs.nn.softmax(x, 0), (N, 2)),
    "log_softmax": (fs.nn.log_softmax, (2, N)),
    "cross_entropy": (lambda x: fs.nn.softmax_cross_entropy_with_logits_v2(fs.ones_like(x) / N, x), (2, N)),
    "sparse_cross_entropy": (lambda x: fs.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 1], logits=x), (2, N)),
    "l2_loss": (fs.nn.l2_loss, (N,)),
    "matmul": (fs.matmul, (2, N), (N, 2)),
    "matmul_batch": (fs.matmul, (2, 2, N), (2, N, 2)),
    "einsum": (lambda a, b: fs.einsum("ij,jk->ik", a, b), (2, N), (N, 2)),
    "einsum_one": (lambda a: fs.einsum("ij->i", a), (2, N)),
    "tensordot": (lambda a, b: fs.tensordot(a, b, 1), (2, N), (N, 2)),
    "add_n": (lambda x: fs.add_n(fs.unstack(x, axis=1)), (2, 200)),
    "bias_grad": (lambda x, b: _grad(fs.nn.bias_add(x, b), b), (N, 2), (2,)),
    "broadcast_grad": (lambda x, b: _grad(x + b, b), (N, 2), (2,)),
    "broadcast_to_grad": (lambda b: _grad(fs.broadcast_to(b, fs.placeholder_with_default([N, 2], [2])), b), (2,)),
    "tile_grad": (lambda b: _grad(fs.tile(b, [N, 1]), b), (1, 2)),
    "segment_sum": (lambda x: fs.segment_sum(x, SEGMENTS), (N, 2)),
    "segment_prod": (lambda x: fs.segment_prod(x[0], SEGMENTS), "near one"),
    "segment_mean": (lambda x: fs.segment_mean(x, SEGMENTS), (N, 2)),
    "unsorted_sum": (lambda x: fs.unsorted_segment_sum(x, SEGMENTS, 3), (N, 2)),
    "unsorted_mean": (lambda x: fs.unsorted_segment_mean(200 * x, SEGMENTS, 3), (N, 2)),
    "unsorted_sqrt_n": (lambda x: fs.unsorted_segment_sqrt_n(200 * x, SEGMENTS, 3), (N, 2)),
    "unsorted_prod": (lambda x: fs.unsorted_segment_prod(x[0], SEGMENTS, 3), "near one"),
    "sparse_segment_sum": (lambda x: fs.sparse_segment_sum(x, np.arange(N), SEGMENTS), (N, 2)),
    "sparse_segment_mean": (lambda x: fs.sparse_segment_mean(200 * x, np.arange(N), SEGMENTS), (N, 2)),
    "sparse_segment_sqrt_n": (lambda x: fs.sparse_segment_sqrt_n(200 * x, np.arange(N), SEGMENTS), (N, 2)),
    "gather_grad": (lambda b: _grad(fs.gather(b, SEGMENTS), b), (3, 2)),
    "gather_axis_grad": (lambda b: _grad(fs.gather(b, SEGMENTS, axis=1), b), (2, 3)),
    "gather_nd_grad": (lambda b: _grad(fs.gather_nd(b, SEGMENTS[:, None]), b), (3, 2)),
    "batch_gather_grad": (lambda b: _grad(fs.gather(b, [SEGMENTS, SEGMENTS], batch_dims=1), b), (2, 3)),
    "scatter_nd": (lambda x: fs.scatter_nd(SEGMENTS[:, None], x, [3, 2]), (N, 2)),
    "tensor_scatter_add": (lambda x, b: fs.tensor_scatter_add(b, SEGMENTS[:, None], x), (N, 2), (3, 2)),
    "embedding": (lambda b: fs.nn.embedding_lookup_sparse(b, _sparse(SEGMENTS), None, combiner="sum"), (3, 2)),
    "avg_pool": (lambda x: fs.nn.avg_pool(x, [1, 20, 20, 1], [1] * 4, "VALID"), (1, 20, 20, 2)),
    "avg_pool_grad": (lambda x: _grad(fs.nn.avg_pool(x, [1, 20, 20, 1], [1] * 4, "SAME"), x), (1, 20, 20, 2)),
    "avg_pool3d": (lambda x: fs.nn.avg_pool3d(x, [1, 8, 8, 8, 1], [1] * 5, "SAME"), (1, 8, 8, 8, 2)),
    "avg_pool3d_grad": (lambda x: _grad(fs.nn.avg_pool3d(x, [1, 8, 8, 8, 1], [1] * 5, "SAME"), x), (1, 8, 8, 8, 2)),
    "max_pool_grad": (lambda x: _grad(fs.nn.max_pool(x, [1, 9, 9, 1], [1] * 4, "SAME"), x), (1, 20, 20, 1)),
    "max_pool3d_grad": (lambda x: _grad(fs.nn.max_pool3d(x, [1, 5, 5, 5, 1], [1] * 5, "SAME"), x), (1, 8, 8, 8, 1)),
    "conv2d": (lambda x, k: fs.nn.conv2d(x, k, 1, "VALID"), (1, 10, 10, 9), (10, 10, 9, 2)),
    "conv2d_filter": (lambda x, k: _grad(fs.nn.conv2d(x, k, 1, "SAME"), k), (1, 20, 20, 2), (3, 3, 2, 2)),
    "conv2d_input": (lambda x, k: _grad(fs.nn.conv2d(x, k, 1, "SAME"), x), (1, 8, 8, 2), (5, 5, 2, 40)),
    "conv3d": (lambda x, k: fs.nn.conv3d(x, k, [1] * 5, "VALID"), (1, 5, 5, 5, 9), (5, 5, 5, 9, 2)),
    "conv3d_filter": (lambda x, k: _grad(fs.nn.conv3d(x, k, [1] * 5, "SAME"), k), (1, 8, 8, 8, 1), (3, 3, 3, 1, 2)),
    "conv3d_input": (lambda x, k: _grad(fs.nn.conv3d(x, k, [1] * 5, "SAME"), x), (1, 4, 4, 4, 1), (3, 3, 3, 1, 40)),
    "depthwise": (lambda x, k: fs.nn.depthwise_conv2d(x, k, [1] * 4, "VALID"), (1, 30, 30, 2), (30, 30, 2, 1)),
    "depthwise_filter": (lambda x, k: _grad(fs.nn.depthwise_conv2d(x, k, [1] * 4, "SAME"), k), (1, 30, 30, 2), (3, 3, 2, 1)),
    "depthwise_input": (lambda x, k: _grad(fs.nn.depthwise_conv2d(x, k, [1] * 4, "SAME"), x), (1, 9, 9, 1), (9, 9, 1, 9)),
    "dilation2d_filter": (lambda x, k: _grad(fs.nn.dilation2d(x, k, [1] * 4, [1] * 4, "SAME"), k), (1, 30, 30, 2), (2, 2, 2)),
    "dilation2d_input": (lambda x, k: _grad(fs.nn.dilation2d(x, k, [1] * 4, [1] * 4, "SAME"), x), (1, 30, 30, 2), (9, 9, 2)),
    "moments": (lambda x: fs.stack(fs.nn.moments(x, [0])), (N, 2)),
    "weighted_moments": (lambda x: fs.stack(fs.nn.weighted_moments(x, [0], fs.ones_like(x))), (N, 2)),
    "l2_normalize": (lambda x: fs.nn.l2_normalize(200 * x, -1), (2, N)),
    "lrn": (lambda x: fs.nn.lrn(x, 500), (1, 1, 1, N)),
    "lrn_grad": (lambda x: apply(NeighbourSum(500), x), (1, 1, 1, N)),
    "clip_by_norm": (lambda x: fs.clip_by_norm(200 * x, 5.0), (N,)),
    "clip_by_average_norm": (lambda x: fs.clip_by_average_norm(200 * x, 0.01), (N,)),
    "global_norm": (lambda x: fs.global_norm([200 * x]), (N,)),
    "sparse_sum": (lambda x: fs.sparse_reduce_sum(_sparse(x), 1), (N,)),
    "sparse_softmax": (lambda x: fs.sparse_softmax(_sparse(x)).values, (N,)),
    "sparse_matmul": (lambda x, b: fs.sparse_tensor_dense_matmul(_sparse(x), b), (N,), (N, 2)),
    "bincount": (lambda x: fs.math.bincount(SEGMENTS, weights=x), (N,)),
    "collective_fold": (lambda *xs: apply(CollectiveFold("mean"), *xs), (N,), (N,), (N,)),
    "overlap_and_add": (lambda x: fs.signal.overlap_and_add(x, 1), (300, 300)),
}
# fmt: on


def _arrays(shapes: Any, np_dtype: Any) -> list[Any]:
    rng = np.random.default_rng(0)
    if shapes == ("near one",):
        return [rng.choice([0.9375, 1.0625], (2, N)).astype(np_dtype)]
    return [rng.uniform(0.5, 1.5, s).astype(np_dtype) for s in shapes]


def _value(function: Any, arrays: list[Any]) -> Any:
    with fs.Graph().as_default(), fs.Session() as session:
        xs = [fs.placeholder(fs.as_dtype(a.dtype), a.shape) for a in arrays]
        return session.run(function(*xs), dict(zip(xs, arrays, strict=True)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", CASES)
def test_sums_of_short_numbers_are_rounded_once(name: str, dtype: str) -> None:
    function, *shapes = CASES[name]
    arrays = _arrays(tuple(shapes), fs.as_dtype(dtype).np_dtype)
    found = _value(function, arrays)
    exact = _value(function, [a.astype(np.float64) for a in arrays])
    assert fs.as_dtype(np.asarray(found).dtype).name == dtype
    bits = {"float16": 10, "bfloat16": 7}[dtype]
    ulp = np.exp2(np.floor(np.log2(np.maximum(np.abs(exact), 2.0**-14))) - bits)
    assert np.max(np.abs(np.asarray(found, np.float64) - exact) / ulp) <= 2.5


def test_every_op_that_adds_up_is_among_the_cases() -> None:
    used: set[str] = set()
    for function, *shapes in CASES.values():
        with fs.Graph().as_default() as graph:
            function(*[fs.constant(a) for a in _arrays(tuple(shapes), np.float32)])
            used |= {op.type for op in graph.get_operations()}
    # Sums of products over iterations, see test_products.py; integers of 8 bits.
    inner = {"SumOfProducts", "SumOfMatMuls", "QuantizedAvgPool", "QuantizedConv2D"}
    own = {n: op for n, op in all_ops().items() if op.__module__.startswith("flowscope.")}
    wanted = {n for n, op in own.items() if op.accumulates}
    assert wanted - inner <= used, sorted(wanted - inner - used)


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_modes_round_alike(mode: str) -> None:
    x = np.random.default_rng(1).uniform(-1, 1, (3, N)).astype(np.float16)
    p = fs.placeholder(fs.float16, x.shape)
    first = [0, fs.constant(0, fs.float16)]
    loop = fs.while_loop(
        lambda i, t: i < 3, lambda i, t: (i + 1, t + fs.reduce_sum(fs.nn.softmax(p))), first
    )[1]
    with fs.Session(config=fs.ConfigProto(mode=mode)) as session:
        assert session.run(loop, {p: x}) == np.float16(9)
