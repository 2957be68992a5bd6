"""Connectionist temporal classification: losses and decoders for sequences without alignment."""

from __future__ import annotations

from typing import Any

from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Op, Spec, check_outputs, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.expected import expected
from flowscope.graph.values.shapes import compatible, text
from flowscope.ops.array.gathering import gather_nd
from flowscope.ops.array.joining import concat
from flowscope.ops.array.selection import sequence_mask, where
from flowscope.ops.array.shaping import expand_axes, shape_of, transpose
from flowscope.ops.core.build import apply_many
from flowscope.ops.core.casting import cast
from flowscope.ops.core.flow import prevent_gradient
from flowscope.ops.core.shape_rules import check_kind, check_rank
from flowscope.ops.kernels import ctc as ctc_kernels
from flowscope.ops.math.elementwise import greater, multiply
from flowscope.ops.sparse.sparse_tensor import SparseTensor

__all__ = [
    "ctc_beam_search_decoder",
    "ctc_beam_search_decoder_v2",
    "ctc_greedy_decoder",
    "ctc_loss",
    "ctc_loss_v2",
]


def _checked(inputs: Spec, lengths: Spec) -> tuple[int | None, ...]:
    """Checks logits [time, batch, classes] and lengths [batch]; returns the logits' sizes."""
    check_kind(inputs.dtype, "f")
    check_kind(lengths.dtype, "i")
    check_rank(inputs, 3, "logits of rank 3, [time, batch, classes]")
    dims = inputs.shape or (None, None, None)
    if not compatible(lengths.shape, dims[1:2]):
        raise expected(f"one length per example: {text(dims[1:2])}", lengths.shape)
    return dims


def _check_lengths(inputs: Array, lengths: Array) -> None:
    if lengths.shape != inputs.shape[1:2]:
        raise expected(f"one length per example: {text(inputs.shape[1:2])}", lengths.shape)
    if lengths.size and not (lengths.min() >= 0 and lengths.max() <= len(inputs)):
        raise expected(
            f"lengths in [0, {len(inputs)}]", f"{int(lengths.min())} to {int(lengths.max())}"
        )


@frozen
class CTCLoss(Op, devices=("CPU",), grad_reads=("y",)):
    """Minus the log-probability of each example's labels, and its gradient for the logits.

    The blank is the last class.

    Attributes:
        preprocess_collapse_repeated: Whether repeated labels are merged first.
        ctc_merge_repeated: Whether repeats on the way to a labelling are merged.
        ignore_longer_outputs_than_inputs: Whether examples with more labels than steps count 0.

    Shapes: logits [time, batch, classes], places of labels [n, 2], labels [n], lengths [batch]
        -> losses [batch], gradient [time, batch, classes]
    Source: Graves et al. 2006.
    """

    preprocess_collapse_repeated: bool = False
    ctc_merge_repeated: bool = True
    ignore_longer_outputs_than_inputs: bool = False

    def infer(self, inputs: Spec, indices: Spec, values: Spec, lengths: Spec) -> Any:
        dims = _checked(inputs, lengths)
        if not compatible(indices.shape, (None, 2)) or values.rank not in (None, 1):
            raise expected("labels as a sparse matrix", f"places {indices} and labels {values}")
        return Spec(inputs.dtype, dims[1:2]), Spec(inputs.dtype, dims)

    def grad(self, g: Any, y: Any, *inputs: Tensor) -> Any:
        """There is no second one, as in TensorFlow."""
        if g[0] is None:
            return (None,) * 4
        slope = prevent_gradient(y[1], "ctc_loss has no second gradient")
        return multiply(expand_axes(g[0], (0, 2)), slope), None, None, None

    def kernel(
        self, xp: ArrayModule, inputs: Array, indices: Array, values: Array, lengths: Array
    ) -> Any:
        _check_lengths(inputs, lengths)
        _, batch, classes = inputs.shape
        labels = ctc_kernels.labels_of(indices, values, batch, classes)
        if self.preprocess_collapse_repeated:
            labels = [ctc_kernels.without_repeats(own) for own in labels]
        longer = [b for b, own in enumerate(labels) if len(own) > lengths[b]]
        if longer and not self.ignore_longer_outputs_than_inputs:
            b = longer[0]
            raise expected(
                "at most as many labels as steps",
                f"{len(labels[b])} labels for {int(lengths[b])} steps in example {b}",
            )
        for b in longer:
            labels[b] = []
        used = lengths.copy()
        used[longer] = 0
        merges = self.ctc_merge_repeated
        return ctc_kernels.loss(inputs, used, labels, classes - 1, merges)


@frozen
class CTCGreedyDecoder(Op, is_differentiable=False, devices=("CPU",)):
    """The labels of the likeliest path, as a sparse matrix, and minus the sum of its logits.

    Shapes: logits [time, batch, classes], lengths [batch] -> [n, 2], [n], [2], [batch, 1]
    """

    merge_repeated: bool = False
    blank_index: int = -1

    def infer(self, inputs: Spec, lengths: Spec) -> Any:
        dims = _checked(inputs, lengths)
        return *_sparse_specs(), Spec(inputs.dtype, (dims[1], 1))

    def kernel(self, xp: ArrayModule, inputs: Array, lengths: Array) -> Any:
        _check_lengths(inputs, lengths)
        classes = inputs.shape[2]
        if not -classes <= self.blank_index < classes:
            raise expected(f"a blank_index in [{-classes}, {classes})", self.blank_index)
        blank = self.blank_index % classes
        found, scores = ctc_kernels.greedy(inputs, lengths, self.merge_repeated, blank)
        return *ctc_kernels.sparse(found), scores


def _sparse_specs() -> tuple[Spec, Spec, Spec]:
    int64 = dtypes.int64
    return Spec(int64, (None, 2)), Spec(int64, (None,)), Spec(int64, (2,))


@frozen
class CTCBeamSearchDecoder(Op, is_differentiable=False, devices=("CPU",)):
    """The likeliest labellings, as sparse matrices, and their log-probabilities.

    Shapes: logits [time, batch, classes], lengths [batch]
        -> for each path [n, 2], then for each [n], for each [2], and [batch, paths]
    Source: Graves & Jaitly 2014, algorithm 1.
    """

    beam_width: int
    top_paths: int
    merge_repeated: bool = True

    def infer(self, inputs: Spec, lengths: Spec) -> Any:
        dims = _checked(inputs, lengths)
        if not 0 < self.top_paths <= self.beam_width:
            raise expected(f"top_paths in [1, {self.beam_width}]", self.top_paths)
        check_outputs(3 * self.top_paths + 1)
        parts = zip(*[_sparse_specs()] * self.top_paths, strict=True)
        log_probability = Spec(inputs.dtype, (dims[1], self.top_paths))
        return *[spec for part in parts for spec in part], log_probability

    def kernel(self, xp: ArrayModule, inputs: Array, lengths: Array) -> Any:
        _check_lengths(inputs, lengths)
        found, scores = ctc_kernels.beam_search(
            inputs, lengths, self.beam_width, self.top_paths, self.merge_repeated
        )
        parts = zip(*[ctc_kernels.sparse(path) for path in found], strict=True)
        return *[array for part in parts for array in part], scores


def ctc_loss(
    labels: Any,
    inputs: Any = None,
    sequence_length: Any = None,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = True,
    ignore_longer_outputs_than_inputs: bool = False,
    time_major: bool = True,
    logits: Any = None,
) -> Tensor:
    """Returns minus the log-probability of each example's labels, over all alignments.

    Args:
        labels: A `SparseTensor` of int32, [batch, longest]: the labels in [0, classes - 1).
        inputs: Logits, [time, batch, classes]; the last class is the blank.
        sequence_length: How many steps each example has.
        preprocess_collapse_repeated: Whether repeated labels are merged first.
        ctc_merge_repeated: Whether repeats on the way to a labelling are merged, as usual.
        ignore_longer_outputs_than_inputs: Whether examples with more labels than steps count 0; by
            default they are errors.
        time_major: Whether time comes first; else [batch, time, classes].
        logits: New name of `inputs`.

    Returns:
        The losses, [batch].

    Raises:
        InvalidArgumentError: if labels or lengths do not fit.

    Source: Graves et al. 2006.
    """
    x = convert_to_tensor(inputs if logits is None else logits)
    if not isinstance(labels, SparseTensor):
        raise expected("labels as a fs.SparseTensor", repr(labels))
    if not time_major:
        x = transpose(x, [1, 0, 2])
    op = CTCLoss(
        bool(preprocess_collapse_repeated),
        bool(ctc_merge_repeated),
        bool(ignore_longer_outputs_than_inputs),
    )
    lengths = convert_to_tensor(sequence_length, None, None, dtypes.int32)
    return apply_many(op, x, labels.indices, labels.values, lengths)[0]


def ctc_loss_v2(
    labels: Any,
    logits: Any,
    label_length: Any,
    logit_length: Any,
    logits_time_major: bool = True,
    unique: Any = None,
    blank_index: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Returns minus the log-probability of each example's labels, over all alignments.

    Args:
        labels: Integers [batch, longest], or a `SparseTensor`.
        logits: Logits, [time, batch, classes].
        label_length: How many labels each example has; None for sparse ones.
        logit_length: How many steps each example has.
        logits_time_major: Whether time comes first; else [batch, time, classes].
        unique: A hint for speed, which is not needed.
        blank_index: The class of the blank, from the end where negative; 0 by default, and the last
            class for sparse labels.
        name: Name scope of the operations.

    Returns:
        The losses, [batch].
    """
    del unique
    x = convert_to_tensor(logits)
    with x.graph.name_scope(name or "ctc_loss"):
        if not logits_time_major:
            x = transpose(x, [1, 0, 2])
        if isinstance(labels, SparseTensor):
            given, blank = labels, -1 if blank_index is None else blank_index
        else:
            given = _sparse_labels(labels, label_length)
            blank = 0 if blank_index is None else blank_index
        values, x = _blank_last(given.values, x, blank)
        moved = SparseTensor(given.indices, values, given.dense_shape)
        return ctc_loss(moved, x, logit_length)


def _sparse_labels(labels: Any, lengths: Any) -> SparseTensor:
    dense = convert_to_tensor(labels)
    if lengths is None:
        raise expected("label_length for dense labels", "none")
    sizes = shape_of(dense)
    places = where(sequence_mask(lengths, sizes[1]))
    return SparseTensor(places, gather_nd(dense, places), cast(sizes, dtypes.int64))


def _blank_last(values: Tensor, x: Tensor, blank: int) -> tuple[Tensor, Tensor]:
    """Returns labels and logits with the classes in another order: the blank comes last."""
    classes = x.spec.shape[2] if x.spec.shape is not None and len(x.spec.shape) == 3 else None
    if blank == -1 or (classes is not None and blank == classes - 1):
        return values, x
    if blank < 0 and classes is None:
        raise InvalidArgumentError("expected a known number of classes for a negative blank_index")
    at = blank % classes if classes is not None else blank
    order = [x[:, :, :at], x[:, :, at + 1 :], x[:, :, at : at + 1]]
    behind = cast(greater(values, convert_to_tensor(at, values.dtype)), values.dtype)
    return values - behind, concat(order, 2)


def ctc_greedy_decoder(
    inputs: Any, sequence_length: Any, merge_repeated: bool = True, blank_index: int | None = None
) -> tuple[list[SparseTensor], Tensor]:
    """Returns the labels of the likeliest path.

    Args:
        inputs: Logits, [time, batch, classes].
        sequence_length: How many steps each example has.
        merge_repeated: Whether repeats are merged before blanks are dropped.
        blank_index: The class of the blank, from the end where negative; the last by default.

    Returns:
        A list with one sparse matrix of labels, and minus the sums of the logits on the path.
    """
    op = CTCGreedyDecoder(bool(merge_repeated), -1 if blank_index is None else int(blank_index))
    lengths = convert_to_tensor(sequence_length, None, None, dtypes.int32)
    *parts, scores = apply_many(op, convert_to_tensor(inputs), lengths)
    return [SparseTensor(*parts)], scores


def ctc_beam_search_decoder(
    inputs: Any,
    sequence_length: Any,
    beam_width: int = 100,
    top_paths: int = 1,
    merge_repeated: bool = True,
) -> tuple[list[SparseTensor], Tensor]:
    """Returns the likeliest labellings.

    Args:
        inputs: Logits, [time, batch, classes]; the last class is the blank.
        sequence_length: How many steps each example has.
        beam_width: How many beginnings are kept at each step.
        top_paths: How many labellings are returned.
        merge_repeated: Whether repeats in what was found are merged: "AAB" becomes "AB".

    Returns:
        A sparse matrix of labels per path, and the log-probabilities, [batch, top_paths].
    """
    op = CTCBeamSearchDecoder(int(beam_width), int(top_paths), bool(merge_repeated))
    lengths = convert_to_tensor(sequence_length, None, None, dtypes.int32)
    *parts, scores = apply_many(op, convert_to_tensor(inputs), lengths)
    n = op.top_paths
    return [SparseTensor(*parts[i::n]) for i in range(n)], scores


def ctc_beam_search_decoder_v2(
    inputs: Any, sequence_length: Any, beam_width: int = 100, top_paths: int = 1
) -> tuple[list[SparseTensor], Tensor]:
    """Returns `ctc_beam_search_decoder` without merging repeats in what was found."""
    return ctc_beam_search_decoder(inputs, sequence_length, beam_width, top_paths, False)
