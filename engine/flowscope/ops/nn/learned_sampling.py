"""Classes drawn by frequencies that are learned from the true classes as they come."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Spec, frozen
from flowscope.graph.scopes import control_dependencies
from flowscope.graph.values import dtypes
from flowscope.graph.values.expected import expected
from flowscope.graph.values.shapes import compatible
from flowscope.ops.array.arrays import ones_like
from flowscope.ops.core.build import apply_many
from flowscope.ops.core.flow import identity
from flowscope.ops.nn.candidate_sampling import Candidates, Sampler
from flowscope.ops.random.seeds import seed_of as op_seed
from flowscope.ops.state.scatters import scatter_add
from flowscope.ops.state.variables import GraphKeys, Variable

__all__ = ["learned_unigram_candidate_sampler"]


@frozen
class LearnedUnigramCandidateSampler(Sampler):
    """Classes by counts, and the expected counts of true and drawn ones.

    Shapes: true classes [batch, num_true], counts [classes] -> [num_sampled], [batch, num_true],
        [num_sampled]
    """

    range_max: int = 1

    def infer(self, true_classes: Spec, counts: Spec) -> Any:  # type: ignore[override]
        if self.unique and self.num_sampled > self.range_max:
            raise expected(f"at most {self.range_max} different classes", self.num_sampled)
        if not compatible(counts.shape, (self.range_max,)):
            raise expected(f"{self.range_max} counts", counts)
        return super().infer(true_classes)

    def kernel(self, xp: ArrayModule, rng: Any, true_classes: Array, counts: Array) -> Any:
        total = np.cumsum(counts)
        if true_classes.size and not 0 <= true_classes.min() <= true_classes.max() < len(counts):
            raise InvalidArgumentError(f"expected true classes in [0, {len(counts)})")

        def draw(count: int) -> Array:
            return np.searchsorted(total, rng.random(count) * total[-1], side="right")

        def probability(classes: Array) -> Array:
            return counts[classes] / total[-1]

        return self.sample(true_classes, draw, probability)


def learned_unigram_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """Returns classes by how often each has been a true class in the steps before.

    The counts are a local variable, so `fs.local_variables_initializer()` must have run; they begin
    at 1. The arguments are those of `fs.nn.uniform_candidate_sampler`.
    """
    classes = convert_to_tensor(true_classes, None, None, dtypes.int64)
    kind = LearnedUnigramCandidateSampler
    label = name or kind.__name__
    with classes.graph.name_scope(label):
        counts = Variable(
            np.ones(int(range_max), np.int64),
            trainable=False,
            collections=[GraphKeys.LOCAL_VARIABLES],
            name="counts",
        )
        op = kind(num_true, num_sampled, bool(unique), op_seed(seed, label), int(range_max))
        drawn = apply_many(op, classes, counts.value())
        with control_dependencies(drawn):
            update = scatter_add(counts, classes, ones_like(classes))
        with control_dependencies([update]):
            return Candidates(*(identity(t) for t in drawn))
