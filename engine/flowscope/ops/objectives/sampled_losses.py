"""Losses over many classes, of which a step touches the true ones and a sample of the others."""

from __future__ import annotations

from typing import Any

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.expected import expected
from flowscope.ops.array.arrays import ones_like, zeros_like
from flowscope.ops.array.gathering import scatter_nd
from flowscope.ops.array.joining import concat, stack
from flowscope.ops.array.shaping import expand_dims, reshape, shape_of
from flowscope.ops.core.casting import cast
from flowscope.ops.core.flow import stop_gradient
from flowscope.ops.linalg.products import matmul
from flowscope.ops.math.elementwise import add, log, multiply, realdiv, subtract
from flowscope.ops.math.reductions import reduce_sum
from flowscope.ops.nn.candidate_sampling import (
    compute_accidental_hits,
    log_uniform_candidate_sampler,
)
from flowscope.ops.objectives.cross_entropy import (
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits_v2,
)
from flowscope.ops.sparse.embedding import embedding_lookup

__all__ = ["nce_loss", "sampled_softmax_loss"]


def nce_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = False,
    partition_strategy: str = "mod",
    name: str | None = "nce_loss",
) -> Tensor:
    """Returns the noise-contrastive loss: is a class an example's own, or was it drawn?

    Args:
        weights: A row per class, [num_classes, width], in one part or several.
        biases: A number per class.
        labels: The examples' classes, [batch, num_true].
        inputs: The last layer's outputs, [batch, width].
        num_sampled: How many classes are drawn.
        num_classes: How many there are.
        num_true: How many true classes each example has.
        sampled_values: What a sampler returned; by default Zipf's law is used.
        remove_accidental_hits: Whether drawn classes that are an example's own are left out.
        partition_strategy: How rows are dealt out to several parts; see `embedding_lookup`.
        name: Name scope of the operations.

    Returns:
        The losses, [batch].

    Source: Gutmann & Hyvarinen 2010.
    """
    logits, targets = _sampled_logits(
        weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values,
        remove_accidental_hits, partition_strategy, name or "nce_loss", None,
    )  # fmt: skip
    losses = sigmoid_cross_entropy_with_logits(labels=targets, logits=logits, name="sampled_losses")
    return reduce_sum(losses, 1)


def sampled_softmax_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = True,
    partition_strategy: str = "mod",
    name: str | None = "sampled_softmax_loss",
    seed: int | None = None,
) -> Tensor:
    """Returns the softmax cross entropy over the true classes and a sample of the others.

    The arguments are those of `nce_loss`, and:
        seed: Seed of the sampler.

    Returns:
        The losses, [batch].

    Source: Jean et al. 2015, section 3.
    """
    logits, targets = _sampled_logits(
        weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values,
        remove_accidental_hits, partition_strategy, name or "sampled_softmax_loss", seed,
    )  # fmt: skip
    return softmax_cross_entropy_with_logits_v2(stop_gradient(targets), logits)


def _sampled_logits(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int,
    sampled_values: Any,
    remove_hits: bool,
    strategy: str,
    name: str,
    seed: int | None,
) -> tuple[Tensor, Tensor]:
    """Returns logits [batch, num_true + num_sampled], and which of them are the true ones'."""
    x = convert_to_tensor(inputs)
    with x.graph.name_scope(name):
        classes = cast(convert_to_tensor(labels, None, None, dtypes.int64), dtypes.int64)
        if sampled_values is None:
            sampled_values = log_uniform_candidate_sampler(
                classes, num_true, num_sampled, True, num_classes, seed
            )
        if len(sampled_values) != 3:
            raise expected("sampled_values as a sampler returns them", len(sampled_values))
        drawn, true_count, drawn_count = map(stop_gradient, map(convert_to_tensor, sampled_values))
        drawn = cast(drawn, dtypes.int64)
        flat = reshape(classes, [-1])
        n = shape_of(flat)[0]
        # Rows of both kinds come from one lookup, so that their gradients are one.
        ids = concat([flat, drawn], 0)
        rows = embedding_lookup(weights, ids, strategy)
        shifts = embedding_lookup(biases, ids, strategy)
        of_true = _own_logits(x, rows[:n], num_true)
        of_true = add(of_true, reshape(shifts[:n], [-1, num_true]))
        of_drawn = add(matmul(x, rows[n:], transpose_b=True), shifts[n:])
        if remove_hits:
            of_drawn = _without_hits(of_drawn, classes, drawn, num_true)
        of_true = subtract(of_true, cast(log(true_count), x.dtype))
        of_drawn = subtract(of_drawn, cast(log(drawn_count), x.dtype))
        logits = concat([of_true, of_drawn], 1)
        shares = realdiv(ones_like(of_true), float(num_true))
        return logits, concat([shares, zeros_like(of_drawn)], 1)


def _own_logits(x: Tensor, rows: Tensor, num_true: int) -> Tensor:
    """Returns the products of each example with the rows of its own classes.

    Shapes: x [batch, width], rows [batch * num_true, width] -> [batch, num_true]
    """
    width = shape_of(x)[1:]
    grouped = reshape(rows, concat([[-1, num_true], width], 0))
    return reduce_sum(multiply(expand_dims(x, 1), grouped), 2)


def _without_hits(logits: Tensor, classes: Tensor, drawn: Tensor, num_true: int) -> Tensor:
    """Returns the logits with the lowest number added where a drawn class is the example's own."""
    examples, places, lowest = compute_accidental_hits(classes, drawn, num_true)
    at = stack([cast(examples, dtypes.int64), places], 1)
    shape = cast(shape_of(logits), dtypes.int64)
    return add(logits, scatter_nd(at, cast(lowest, logits.dtype), shape))
