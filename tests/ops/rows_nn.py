# ruff: noqa: E501
# fmt: off
"""Activations, cross entropies, rankings: what the main table lacks."""

from __future__ import annotations

from typing import Any

import numpy as np
from row_tools import In, Table

import flowscope as fs

ROWS = Table()
row, unary = ROWS.row, ROWS.unary

row("crelu", fs.nn.crelu, lambda x: np.concatenate([np.maximum(x, 0), np.maximum(-x, 0)], -1), In(), order=1)
row("crelu_axis", lambda x: fs.nn.crelu(x, axis=0), lambda x: np.concatenate([np.maximum(x, 0), np.maximum(-x, 0)], 0), In(), order=1)
unary("swish_beta", lambda x: fs.nn.swish(x, 2.0), lambda x: x / (1 + np.exp(-2 * x)))
unary("silu", fs.nn.silu, lambda x: x / (1 + np.exp(-x)))
for _alpha in (0.0, 2.0, -0.5):
    unary(f"leaky_relu_{_alpha}", lambda x, a=_alpha: fs.nn.leaky_relu(x, a), lambda x, a=_alpha: np.where(x > 0, x, x * x.dtype.type(a)), 0.1, 2, order=1)
row("leaky_relu_far", fs.nn.leaky_relu, lambda x: np.array([-np.inf, np.inf], x.dtype), In(value=[-np.inf, np.inf]), order=0)
row("weighted_loss_names", lambda z, x: fs.nn.weighted_cross_entropy_with_logits(labels=z, logits=x, pos_weight=2.0),
    lambda z, x: (1 - z) * x + (1 + z) * np.log1p(np.exp(-x)), In(low=0, high=1), In())


def soft(x: Any) -> Any:
    powers = np.exp(x.astype("f8") - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


row("sparse_loss_4d", lambda x: fs.nn.sparse_softmax_cross_entropy_with_logits(labels=[[[0, 1]], [[2, 2]]], logits=x),
    lambda x: -np.log(np.take_along_axis(soft(x), np.array([[[0, 1]], [[2, 2]]])[..., None], -1)[..., 0]).astype(x.dtype), In((2, 1, 2, 3)), rank=True)
row("softmax_loss_4d", lambda z, x: fs.nn.softmax_cross_entropy_with_logits_v2(z, x, axis=0),
    lambda z, x: -(z * np.log(soft(x.transpose(1, 2, 3, 0)).transpose(3, 0, 1, 2))).sum(0).astype(x.dtype), In((3, 2, 1, 2), 0.1, 1), In((3, 2, 1, 2)), rank=True)
row("poisson_loss_full", lambda z, x: fs.nn.log_poisson_loss(z, x, True),
    lambda z, x: (np.exp(x) - z * x + np.where(z >= 1, z * np.log(z) - z + 0.5 * np.log(2 * np.pi * z), 0)).astype(x.dtype), In(value=[0.5, 2, 3], dtype="float64"), In((3,)),
    dtypes=("float64",), order=1)
row("top_k_ties", lambda x: fs.nn.top_k(x, 3), lambda x: [np.array([[5, 5, 2]], x.dtype), np.array([[1, 2, 3]], "i4")], In(value=[[1, 5, 5, 2]]), order=0)
for _shape, _k in (((3, 20), 4), ((2, 3, 20), 1), ((40,), 8), ((3, 20), 12)):
    row(f"top_k_{_k}_of_{'x'.join(map(str, _shape))}", lambda x, k=_k: fs.nn.top_k(x, k),
        lambda x, k=_k: [np.take_along_axis(x, (o := np.argsort(-x.astype('f8'), -1, kind="stable")[..., :k]), -1), o.astype("i4")], In(_shape), dtypes=("float32", "float64", "int32"), order=0)
row("top_k_lowest", lambda x: fs.nn.top_k(x, 3), lambda x: [np.array([1, -np.inf, -np.inf], x.dtype), np.array([2, 0, 1], "i4")],
    In(value=[-np.inf, -np.inf, 1, *[-np.inf] * 17]), order=0)


# -- connectionist temporal classification: see test_ctc.py for more than one step and label ----------


def _labels() -> Any:
    return fs.SparseTensor(np.array([[0, 0], [1, 0]]), np.array([1, 0], "i4"), [2, 1])


def _one_step(x: Any) -> Any:
    return -np.log(soft(x)[0, [0, 1], [1, 0]]).astype(x.dtype)


_STEP = In((1, 2, 3))
row("ctc_loss", lambda x: fs.nn.ctc_loss(_labels(), x, [1, 1]), _one_step, _STEP, order=1)
row("ctc_greedy", lambda x: [fs.nn.ctc_greedy_decoder(x, [1, 1])[1]], lambda x: [-x.max(2).T], _STEP, order=0)
row("ctc_beam", lambda x: [fs.nn.ctc_beam_search_decoder(x, [1, 1], 3, 1)[1]], lambda x: [np.log(soft(x)[0].max(1)[:, None]).astype(x.dtype)], _STEP, order=0)
