"""Labels of sequences made ready for connectionist temporal classification."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Op, Spec
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.expected import expected
from flowscope.graph.values.shapes import compatible, text
from flowscope.ops.core.build import apply_many
from flowscope.ops.core.declare import op_function
from flowscope.ops.core.shape_rules import check_kind

__all__ = ["collapse_repeated", "ctc_unique_labels"]


def _check_labels(labels: Spec) -> None:
    check_kind(labels.dtype, "iu")
    if labels.shape is not None:
        _check_matrix(labels.shape)


def _check_matrix(dims: Sequence[int | None]) -> None:
    if len(dims) != 2:
        raise expected("labels of rank 2, [batch, time]", tuple(dims))


class UniqueLabels(Op, is_differentiable=False, devices=("CPU",)):
    """Each row's different labels, in order of appearance with zeros behind, and each one's number.

    Shapes: [batch, time] -> [batch, time], [batch, time]
    """

    def infer(self, labels: Spec) -> Any:
        _check_labels(labels)
        dims = labels.shape or (None, None)
        return Spec(dtypes.int64, dims), Spec(dtypes.int32, dims)

    def kernel(self, xp: ArrayModule, labels: Array) -> Any:
        _check_matrix(labels.shape)
        known = np.zeros(labels.shape, np.int64)
        numbers = np.zeros(labels.shape, np.int32)
        for i, row in enumerate(labels):
            values, first, places = np.unique(row, return_index=True, return_inverse=True)
            order = np.argsort(first)
            known[i, : len(values)] = values[order]
            numbers[i] = np.argsort(order)[places.reshape(-1)]
        return known, numbers


class CollapsedRepeats(Op, is_differentiable=False, devices=("CPU",)):
    """Rows without labels that repeat the one before, zeros behind, and their lengths.

    Shapes: labels [batch, time], lengths [batch] -> [batch, longest], [batch]
    """

    def infer(self, labels: Spec, lengths: Spec) -> Any:
        _check_labels(labels)
        check_kind(lengths.dtype, "i")
        batch = (labels.shape or (None,))[0]
        if not compatible(lengths.shape, (batch,)):
            raise expected(f"one length per row: {text((batch,))}", lengths.shape)
        return Spec(labels.dtype, (batch, None)), Spec(lengths.dtype, (batch,))

    def kernel(self, xp: ArrayModule, labels: Array, lengths: Array) -> Any:
        _check_matrix(labels.shape)
        kept = np.arange(labels.shape[1]) < lengths[:, None]
        kept[:, 1:] &= labels[:, 1:] != labels[:, :-1]
        counts = kept.sum(1)
        out = np.zeros((len(labels), int(counts.max(initial=0))), labels.dtype)
        out[np.arange(out.shape[1]) < counts[:, None]] = labels[kept]
        return out, counts.astype(lengths.dtype)


def ctc_unique_labels(labels: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Returns each row's different labels, zeros behind, and each label's number among them.

    `ctc_loss_v2` takes the pair as `unique`.

    Args:
        labels: Integers, [batch, time].
        name: Name of the operation.
    """
    first, numbers = apply_many(UniqueLabels(), convert_to_tensor(labels), name=name)
    return first, numbers


@op_function("labels seq_length")
def collapse_repeated(
    labels: Any, seq_length: Any, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Returns labels without those that repeat the one before, and the new lengths.

    Args:
        labels: Integers, [batch, time].
        seq_length: How many labels of each row count, [batch].
    """
    out, counts = apply_many(CollapsedRepeats(), labels, seq_length, name=name)
    return out, counts
