"""Normalisations, and dropout."""

from __future__ import annotations

from typing import Any

import numpy as np

import flowscope as fs
from flowscope.errors import UnimplementedError
from flowscope.onnx.node import OnnxNode, full_like, rank_of
from flowscope.onnx.protos import dtype_of
from flowscope.onnx.table import converts


def _per_channel(v: fs.Tensor, x: fs.Tensor) -> Any:
    return fs.reshape(fs.cast(v, x.dtype), [1, -1, *[1] * (rank_of(x) - 2)])


@converts("BatchNormalization")
def _batch_normalization(n: OnnxNode) -> Any:
    x, scale, bias, mean, variance = n.tensors()[:5]
    epsilon = n.attr("epsilon", 1e-5)
    if n.opset < 7 and not n.attr("is_test", 0):
        raise UnimplementedError("training of opset 6 is not supported")
    if not n.attr("training_mode", 0):
        factor = scale / fs.sqrt(fs.cast(variance, scale.dtype) + full_like(epsilon, scale))
        shift = bias - fs.cast(mean, scale.dtype) * factor
        if rank_of(x) == 1:
            return x * fs.cast(factor, x.dtype) + fs.cast(shift, x.dtype)
        return x * _per_channel(factor, x) + _per_channel(shift, x)
    momentum = full_like(n.attr("momentum", 0.9), mean)
    axes = [i for i in range(rank_of(x)) if i != 1]
    own_mean, own_variance = fs.nn.moments(x, axes)
    factor = scale / fs.sqrt(fs.cast(own_variance, scale.dtype) + full_like(epsilon, scale))
    shift = bias - fs.cast(own_mean, scale.dtype) * factor
    found = x * _per_channel(factor, x) + _per_channel(shift, x)
    kept = full_like(1, mean) - momentum
    return (
        found,
        mean * momentum + fs.cast(own_mean, mean.dtype) * kept,
        variance * momentum + fs.cast(own_variance, mean.dtype) * kept,
    )


@converts("InstanceNormalization")
def _instance_normalization(n: OnnxNode) -> Any:
    x, scale, bias = n.tensors()
    mean, variance = fs.nn.moments(x, list(range(2, rank_of(x))), keep_dims=True)
    deviation = fs.sqrt(variance + full_like(n.attr("epsilon", 1e-5), x))
    return (x - mean) / deviation * _per_channel(scale, x) + _per_channel(bias, x)


@converts("LayerNormalization")
def _layer_normalization(n: OnnxNode) -> Any:
    x, dtype = n.x(0), dtype_of(n.attr("stash_type", 1))
    axes = list(range(n.axis(-1), rank_of(x)))
    wide = fs.cast(x, dtype)
    mean, variance = fs.nn.moments(wide, axes, keep_dims=True)
    inverse = fs.math.reciprocal(fs.sqrt(variance + full_like(n.attr("epsilon", 1e-5), wide)))
    found = fs.cast((wide - mean) * inverse, x.dtype) * n.x(1)
    if n.has(2):
        found = found + n.x(2)
    return found, mean, inverse


@converts("RMSNormalization")
def _rms_normalization(n: OnnxNode) -> Any:
    x, dtype = n.x(0), dtype_of(n.attr("stash_type", 1))
    axes = list(range(n.axis(-1), rank_of(x)))
    wide = fs.cast(x, dtype)
    square = fs.reduce_mean(fs.square(wide), axes, True)
    inverse = fs.math.reciprocal(fs.sqrt(square + full_like(n.attr("epsilon", 1e-5), wide)))
    return fs.cast(fs.cast(wide * inverse, x.dtype) * n.x(1), n.x(1).dtype)


@converts("GroupNormalization")
def _group_normalization(n: OnnxNode) -> Any:
    x, groups = n.x(0), n.needed("num_groups")
    dtype = dtype_of(n.attr("stash_type", 1)) if n.opset >= 21 else x.dtype
    flat = fs.reshape(fs.cast(x, dtype), fs.concat([fs.shape(x)[:1], [groups, -1]], 0))
    mean, variance = fs.nn.moments(flat, [2], keep_dims=True)
    deviation = fs.sqrt(variance + full_like(n.attr("epsilon", 1e-5), flat))
    found = fs.cast((flat - mean) / deviation, x.dtype)
    if n.opset < 21:  # a scale per group
        found = found * fs.reshape(n.x(1), [1, -1, 1]) + fs.reshape(n.x(2), [1, -1, 1])
        return fs.reshape(found, fs.shape(x))
    found = fs.reshape(found, fs.shape(x))
    return found * _per_channel(n.x(1), x) + _per_channel(n.x(2), x)


@converts("LRN")
def _lrn(n: OnnxNode) -> Any:
    x, size = n.x(0), n.needed("size")
    alpha, beta, bias = n.attr("alpha", 1e-4), n.attr("beta", 0.75), n.attr("bias", 1.0)
    before = (size - 1) // 2
    rest = [[0, 0]] * (rank_of(x) - 2)
    squares = fs.pad(fs.square(x), [[0, 0], [before, size - 1 - before], *rest])
    channels = fs.shape(x, out_type=fs.int64)[1]
    total = None
    for i in range(size):
        part = fs.gather(squares, fs.range(fs.constant(i, fs.int64), channels + i), axis=1)
        total = part if total is None else total + part
    inner = full_like(bias, x) + full_like(alpha / size, x) * total
    return x / fs.pow(inner, full_like(beta, x))


@converts("Dropout")
def _dropout(n: OnnxNode) -> Any:
    x, ratio = n.x(0), fs.constant(n.attr("ratio", 0.5), fs.float32)
    if n.has(1):
        ratio = fs.reshape(fs.cast(n.x(1), fs.float32), [])
    trains = n.known(2) if n.has(2) else np.array(False)
    if trains is not None and not np.reshape(trains, ()):
        return fs.identity(x), fs.ones_like(x, dtype=fs.bool)
    uniform = fs.random_uniform(fs.shape(x), seed=n.attr("seed"))
    kept = fs.greater_equal(uniform, ratio)
    factor = fs.math.reciprocal(fs.constant(1, fs.float32) - ratio)
    if trains is None:
        is_training = fs.reshape(n.x(2), [])
        kept = fs.logical_or(kept, fs.logical_not(is_training))
        factor = fs.where_v2(is_training, factor, fs.ones_like(factor))
    return fs.where_v2(kept, x * fs.cast(factor, x.dtype), full_like(0, x)), kept
