"""Classes drawn at random to stand for all others, so that a step touches few of them.

A sampler also tells how often each class is expected among its draws: losses subtract the logarithm
of that, so that they mean the same as with all classes.

Source: Jean et al. 2015, "On using very large target vocabulary for neural machine translation";
Gutmann & Hyvarinen 2010, noise-contrastive estimation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.expected import expected
from flowscope.graph.values.shapes import compatible
from flowscope.ops.core.build import apply_many
from flowscope.ops.core.declare import op_function
from flowscope.ops.core.shape_rules import check_kind
from flowscope.ops.random.seeds import seed_of as op_seed

__all__ = [
    "all_candidate_sampler",
    "compute_accidental_hits",
    "fixed_unigram_candidate_sampler",
    "log_uniform_candidate_sampler",
    "uniform_candidate_sampler",
]

#: So many times as many classes as are wanted are drawn at once when they must differ.
_SPARE = 2


@frozen
class Sampler(Op, abstract=True, is_random=True, is_differentiable=False, devices=("CPU",)):
    """What the samplers share.

    Attributes:
        num_true: How many true classes each example has.
        num_sampled: How many classes are drawn.
        unique: Whether they must differ.
        seed: The op's seed.
    """

    num_true: int
    num_sampled: int
    unique: bool
    seed: int

    def infer(self, true_classes: Spec) -> Any:
        check_kind(true_classes.dtype, "i")
        if not compatible(true_classes.shape, (None, self.num_true)):
            raise expected(f"true classes of shape [?,{self.num_true}]", true_classes.shape)
        batch = None if true_classes.shape is None else true_classes.shape[0]
        return (
            Spec(dtypes.int64, (self.num_sampled,)),
            Spec(dtypes.float32, (batch, self.num_true)),
            Spec(dtypes.float32, (self.num_sampled,)),
        )

    def sample(
        self,
        true_classes: Array,
        draw: Callable[[int], Array],
        probability: Callable[[Array], Array],
    ) -> Any:
        """Returns drawn classes, and how often true and drawn ones are expected.

        Args:
            true_classes: Classes of the examples.
            draw: Returns so many classes.
            probability: Returns with which probability one draw gives each of some classes.
        """
        if not self.unique:
            drawn, tries = draw(self.num_sampled), None
        else:
            drawn, tries = self._distinct(draw)
        expected = [self._expected(probability(c), tries) for c in (true_classes, drawn)]
        return drawn, *expected

    def _distinct(self, draw: Callable[[int], Array]) -> tuple[Array, int]:
        """Returns classes that differ, in the order of their first draws, and how many draws."""
        drawn = np.zeros(0, np.int64)
        while True:
            drawn = np.concatenate([drawn, draw(_SPARE * self.num_sampled)])
            first = np.sort(np.unique(drawn, return_index=True)[1])
            if len(first) >= self.num_sampled:
                first = first[: self.num_sampled]
                return drawn[first], int(first[-1]) + 1 if len(first) else 0

    def _expected(self, p: Array, tries: int | None) -> Array:
        with np.errstate(divide="ignore"):
            n = p * self.num_sampled if tries is None else -np.expm1(tries * np.log1p(-p))
        return n.astype(np.float32)


@frozen
class _Ranged(Sampler, abstract=True):
    """A sampler of classes in [0, range_max)."""

    range_max: int = 1

    def infer(self, true_classes: Spec) -> Any:
        if self.unique and self.num_sampled > self.range_max:
            raise expected(f"at most {self.range_max} different classes", self.num_sampled)
        return super().infer(true_classes)

    def draw(self, rng: Any, count: int) -> Array:
        """Returns so many classes."""
        raise NotImplementedError

    def probability(self, classes: Array) -> Array:
        """Returns with which probability one draw gives each of the classes."""
        raise NotImplementedError

    def kernel(self, xp: ArrayModule, rng: Any, true_classes: Array) -> Any:
        def chances(classes: Array) -> Array:
            return self.probability(classes.astype(np.float64))

        return self.sample(true_classes, partial(self.draw, rng), chances)


class UniformCandidateSampler(_Ranged):
    """Classes of equal probability, and the expected counts of true and drawn ones.

    Shapes: true classes [batch, num_true] -> [num_sampled], [batch, num_true], [num_sampled]
    """

    def draw(self, rng: Any, count: int) -> Array:
        return rng.integers(0, self.range_max, count)

    def probability(self, classes: Array) -> Array:
        return np.full(classes.shape, 1 / self.range_max)


class LogUniformCandidateSampler(_Ranged):
    """Classes by Zipf's law: the n-th with log((n + 2) / (n + 1)) / log(range_max + 1).

    Shapes: true classes [batch, num_true] -> [num_sampled], [batch, num_true], [num_sampled]
    """

    def draw(self, rng: Any, count: int) -> Array:
        powers = np.exp(rng.random(count) * np.log(self.range_max + 1.0))
        return (powers.astype(np.int64) - 1) % self.range_max

    def probability(self, classes: Array) -> Array:
        return np.log((classes + 2) / (classes + 1)) / np.log(self.range_max + 1.0)


@frozen
class FixedUnigramCandidateSampler(_Ranged):
    """Classes by given weights, and the expected counts of true and drawn ones.

    Attributes: `weights` has one number per class.
    Shapes: true classes [batch, num_true] -> [num_sampled], [batch, num_true], [num_sampled]
    """

    weights: tuple[float, ...] = ()

    def infer(self, true_classes: Spec) -> Any:
        choices = sum(w > 0 for w in self.weights)
        if choices == 0 or (self.unique and self.num_sampled > choices):
            raise expected(f"weights above 0 for {self.num_sampled} classes", choices)
        return super().infer(true_classes)

    def draw(self, rng: Any, count: int) -> Array:
        total = np.cumsum(self.weights)
        return np.searchsorted(total, rng.random(count) * total[-1], side="right")

    def probability(self, classes: Array) -> Array:
        weights = np.asarray(self.weights)
        known = (classes >= 0) & (classes < len(weights))
        places = np.where(known, classes, 0).astype(np.int64)
        return np.where(known, weights[places] / weights.sum(), 0.0)


class AllCandidateSampler(Sampler, is_random=False):
    """All classes below num_sampled, each expected once.

    Shapes: true classes [batch, num_true] -> [num_sampled], [batch, num_true], [num_sampled]
    """

    def kernel(self, xp: ArrayModule, true_classes: Array) -> Any:
        ones = np.ones(self.num_sampled, np.float32)
        return np.arange(self.num_sampled), np.ones(true_classes.shape, np.float32), ones


@frozen
class ComputeAccidentalHits(Op, is_differentiable=False):
    """Where drawn classes are true ones: the examples, the places of the draws, and minus infinity.

    Shapes: true classes [batch, num_true], drawn [n] -> [hits], [hits], [hits]
    """

    num_true: int

    def infer(self, true_classes: Spec, drawn: Spec) -> Any:
        if not compatible(true_classes.shape, (None, self.num_true)) or drawn.rank not in (None, 1):
            raise expected(
                f"true classes of shape [?,{self.num_true}] and a vector of drawn ones",
                true_classes,
                drawn,
            )
        kinds = dtypes.int32, dtypes.int64, dtypes.float32
        return tuple(Spec(kind, (None,)) for kind in kinds)

    def kernel(self, xp: ArrayModule, true_classes: Array, drawn: Array) -> Any:
        order = xp.argsort(drawn, kind="stable")
        ordered = drawn[order]
        # Of equal ones the last counts.
        at = xp.searchsorted(ordered, true_classes.reshape(-1), side="right") - 1
        is_hit = at >= 0
        if drawn.size:
            is_hit &= ordered[xp.maximum(at, 0)] == true_classes.reshape(-1)
        (places,) = xp.nonzero(is_hit)
        hits = order[at[places]] if drawn.size else places
        lowest = xp.full(places.shape, -3.4028234663852886e38, xp.float32)
        return (places // self.num_true).astype(xp.int32), hits.astype(xp.int64), lowest


class Candidates(NamedTuple):
    """What a sampler returns."""

    sampled_candidates: Tensor
    true_expected_count: Tensor
    sampled_expected_count: Tensor


class AccidentalHits(NamedTuple):
    """What `compute_accidental_hits` returns."""

    indices: Tensor
    ids: Tensor
    weights: Tensor


def _sampled(kind: Any, true_classes: Any, seed: Any, name: str | None, **attributes: Any) -> Any:
    classes = convert_to_tensor(true_classes, None, None, dtypes.int64)
    op = kind(seed=op_seed(seed, name or kind.__name__), **attributes)
    return Candidates(*apply_many(op, classes, name=name))


def uniform_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """Returns classes of equal probability.

    Args:
        true_classes: Classes of the examples, [batch, num_true].
        num_true: How many each example has.
        num_sampled: How many are drawn.
        unique: Whether they must differ.
        range_max: How many classes there are.
        seed: Seed of the op.
        name: Name of the operation.

    Returns:
        The drawn classes, and how often true and drawn ones are expected.
    """
    return _sampled(  # type: ignore[no-any-return]
        UniformCandidateSampler, true_classes, seed, name, num_true=num_true,
        num_sampled=num_sampled, unique=bool(unique), range_max=int(range_max),
    )  # fmt: skip


def log_uniform_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """Returns classes by Zipf's law, for classes in falling order of frequency.

    The arguments are those of `uniform_candidate_sampler`.
    """
    return _sampled(  # type: ignore[no-any-return]
        LogUniformCandidateSampler, true_classes, seed, name, num_true=num_true,
        num_sampled=num_sampled, unique=bool(unique), range_max=int(range_max),
    )  # fmt: skip


def fixed_unigram_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    vocab_file: str = "",
    distortion: float = 1.0,
    num_reserved_ids: int = 0,
    num_shards: int = 1,
    shard: int = 0,
    unigrams: Any = (),
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """Returns classes by given frequencies.

    The arguments are those of `uniform_candidate_sampler`, and:
        vocab_file: A file with a line per class, whose last number (after commas) is its frequency.
        distortion: To which power frequencies are raised.
        num_reserved_ids: How many classes in front are never drawn.
        num_shards: Into how many parts the classes are dealt out.
        shard: Which part this is.
        unigrams: The frequencies, in place of the file.
    """
    if bool(vocab_file) == bool(len(unigrams)):
        raise expected("one of vocab_file and unigrams", "both or none")
    given = _frequencies(vocab_file) if vocab_file else list(unigrams)
    own = [float(w) ** distortion for i, w in enumerate(given, num_reserved_ids)
           if i % num_shards == shard]  # fmt: skip
    weights = (*[0.0] * num_reserved_ids, *own)
    if num_shards == 1 and len(weights) != range_max:
        raise expected(f"{range_max} frequencies", len(weights))
    return _sampled(  # type: ignore[no-any-return]
        FixedUnigramCandidateSampler, true_classes, seed, name, num_true=num_true,
        num_sampled=num_sampled, unique=bool(unique), range_max=int(range_max), weights=weights,
    )  # fmt: skip


def _frequencies(path: str) -> list[float]:
    with open(path, encoding="utf-8") as lines:
        return [float(line.rsplit(",", 1)[-1]) for line in lines if line.strip()]


def all_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """Returns all classes below `num_sampled`: for tests of what samples approximate."""
    return _sampled(  # type: ignore[no-any-return]
        AllCandidateSampler, true_classes, seed, name, num_true=num_true,
        num_sampled=num_sampled, unique=bool(unique),
    )  # fmt: skip


@op_function("sampled_candidates:int64 true_classes~sampled_candidates")
def compute_accidental_hits(
    true_classes: Any,
    sampled_candidates: Any,
    num_true: int,
    seed: int | None = None,
    name: str | None = None,
) -> AccidentalHits:
    """Returns where drawn classes are an example's own, so that losses can leave them out.

    Args:
        true_classes: Classes of the examples, [batch, num_true].
        sampled_candidates: The drawn classes.
        num_true: How many true classes each example has.
        seed: Any: nothing is drawn here.

    Returns:
        The examples, the drawn classes' places, and for each hit the lowest number: to be added to
        logits.
    """
    del seed
    op = ComputeAccidentalHits(int(num_true))
    return AccidentalHits(*apply_many(op, true_classes, sampled_candidates, name=name))
