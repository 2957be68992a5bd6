"""Connectionist temporal classification on arrays: the loss with its gradient, and two decoders.

A sequence of T distributions over classes and a blank stands for every labelling that one gets by
taking a class per time step, merging repeats and dropping blanks. The loss is minus the logarithm
of the probability of one labelling. With a blank put around every label it becomes a chain of
states through which paths move by 0, 1 or 2 states per step; alpha is the probability to arrive at
a state, beta that to go on from it to the end. All examples of a batch and all states go through a
step at once; the loop is over time.

The beam search keeps the likeliest prefixes, each with its probability to have ended in a blank
and in its last label.

Source: Graves et al. 2006, "Connectionist temporal classification", equations 6 to 16; the beam
search: Graves & Jaitly 2014, algorithm 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowscope.errors import InvalidArgumentError
from flowscope.graph.op import Array
from flowscope.graph.values.expected import expected

_NEVER = -np.inf


def log_softmax(x: Array) -> Array:
    """Returns the logarithm of softmax along the last axis, in float64."""
    wide = x.astype(np.float64)
    wide -= wide.max(axis=-1, keepdims=True)
    wide -= np.log(np.exp(wide).sum(axis=-1, keepdims=True))
    return wide


def labels_of(indices: Array, values: Array, batch: int, classes: int) -> list[list[int]]:
    """Returns the labels of each example."""
    found: list[list[int]] = [[] for _ in range(batch)]
    for (example, _), label in zip(indices.tolist(), values.tolist(), strict=True):
        if not 0 <= example < batch:
            raise expected(f"labels of {batch} examples", f"number {example}")
        if not 0 <= label < classes - 1:
            raise expected(f"labels in [0, {classes - 1})", label)
        found[example].append(label)
    return found


def without_repeats(labels: list[int]) -> list[int]:
    """Returns labels without those that equal the one before."""
    return [label for i, label in enumerate(labels) if i == 0 or label != labels[i - 1]]


class Chains:
    """The chains of states of a batch: blanks and labels in turns.

    Args:
        labels: The labels of each example.
        blank: The blank's class.
        merges: Whether a label may last for several steps (and equal ones need a blank between).
    """

    def __init__(self, labels: list[list[int]], blank: int, merges: bool) -> None:
        longest = max((len(own) for own in labels), default=0)
        self.sizes = np.array([2 * len(own) + 1 for own in labels])
        self.states = np.full((len(labels), 2 * longest + 1), blank)
        for row, own in zip(self.states, labels, strict=True):
            row[1 : 2 * len(own) : 2] = own
        is_label = self.states != blank
        #: The logarithms of whether a path may stay in a state, and reach it from two before.
        self.stay = _allowed(~is_label | merges)
        jump = is_label.copy()
        jump[:, :2] = False
        if merges:
            jump[:, 2:] &= self.states[:, 2:] != self.states[:, :-2]
        self.jump = _allowed(jump)
        self.inside = _allowed(np.arange(self.states.shape[1]) < self.sizes[:, None])

    def arrive(self, before: Array) -> Array:
        """Returns the log-probabilities to be in each state one step later."""
        total = np.logaddexp(before + self.stay, _moved(before, 1))
        return np.logaddexp(total, _moved(before, 2) + self.jump)

    def leave(self, after: Array) -> Array:
        """Returns those to go on from each state, from those one step later."""
        total = np.logaddexp(after + self.stay, _moved(after, -1))
        return np.logaddexp(total, _moved(after + self.jump, -2))

    def last(self) -> Array:
        """Returns the logarithm of whether each state is an end."""
        places = np.arange(self.states.shape[1])
        return _allowed((places >= self.sizes[:, None] - 2) & (places < self.sizes[:, None]))


def _allowed(mask: Array) -> Array:
    return np.where(mask, 0.0, _NEVER)


def _moved(x: Array, by: int) -> Array:
    """Returns rows moved to the right (or left), with nothing behind."""
    out = np.full_like(x, _NEVER)
    if by > 0:
        out[:, by:] = x[:, :-by]
    elif x.shape[1] > -by:
        out[:, :by] = x[:, -by:]
    return out


def loss(
    logits: Array, lengths: Array, labels: list[list[int]], blank: int, merges: bool
) -> tuple[Array, Array]:
    """Returns losses [batch] and their gradient for the logits [time, batch, classes].

    An example that no path fits has an infinite loss, and no gradient.
    """
    logs = log_softmax(logits)
    steps, batch, _ = logits.shape
    chains = Chains(labels, blank, merges)
    own = np.take_along_axis(logs, chains.states[None].repeat(steps, 0), 2) if steps else logs
    alphas = _alphas(own, chains)
    ends = lengths - 1
    total = np.full(batch, _NEVER)
    has_steps = lengths > 0
    if steps:
        final = alphas[np.maximum(ends, 0), np.arange(batch)] + chains.last()
        total = np.where(has_steps, np.logaddexp.reduce(final, axis=1), _NEVER)
    total = np.where(~has_steps & (chains.sizes == 1), 0.0, total)
    gradient = np.zeros(logits.shape)
    is_possible = np.isfinite(total)
    beta = np.full(chains.states.shape, _NEVER)
    for t in range(steps - 1, -1, -1):
        if t + 1 < steps:
            beta = chains.leave(beta + own[t + 1])
        beta = np.where((ends == t)[:, None], chains.last(), beta)
        runs = is_possible & (t < lengths)
        gradient[t, runs] = _slope(logs[t], alphas[t] + beta, total, chains.states)[runs]
    return np.abs(-total).astype(logits.dtype), gradient.astype(logits.dtype)


def _alphas(own: Array, chains: Chains) -> Array:
    """Returns the log-probabilities to be in each state at each time."""
    out = np.full(own.shape[:2] + chains.states.shape[1:], _NEVER)
    for t in range(len(own)):
        if t == 0:
            out[0, :, :2] = own[0, :, :2]
        else:
            out[t] = chains.arrive(out[t - 1]) + own[t]
        out[t] += chains.inside
    return out


def _slope(logs: Array, joint: Array, total: Array, states: Array) -> Array:
    """Returns softmax minus the share of the paths that are at each class.

    Shapes: logs [batch, classes], joint [batch, states], total [batch] -> [batch, classes]
    """
    known = np.where(np.isfinite(total), total, 0.0)
    shares = np.exp(joint - known[:, None])
    out = np.exp(logs)
    rows = np.arange(len(states))[:, None]
    np.subtract.at(out, (np.broadcast_to(rows, states.shape), states), shares)
    return out


def greedy(
    logits: Array, lengths: Array, merges: bool, blank: int
) -> tuple[list[list[int]], Array]:
    """Returns the likeliest class at each step as labels, and minus the sum of its logits."""
    best = logits.argmax(axis=2)
    values = logits.max(axis=2)
    found, scores = [], np.zeros((logits.shape[1], 1), logits.dtype)
    for b, length in enumerate(lengths.tolist()):
        path = best[:length, b].tolist()
        scores[b] = -values[:length, b].sum()
        if merges:
            path = without_repeats(path)
        found.append([label for label in path if label != blank])
    return found, scores


class Beams:
    """The likeliest prefixes of one example.

    Args:
        width: How many prefixes are kept.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self.prefixes: list[tuple[int, ...]] = [()]
        #: Log-probabilities that what was seen is the prefix and ends in a blank, or in its label.
        self.blank = np.zeros(1)
        self.label = np.full(1, _NEVER)

    @property
    def total(self) -> Array:
        """The prefixes' log-probabilities."""
        return np.logaddexp(self.blank, self.label)

    def step(self, logs: Array) -> None:
        """Goes on by one time step; the blank comes last."""
        total, last = self.total, np.array([p[-1] if p else -1 for p in self.prefixes])
        known = {p: i for i, p in enumerate(self.prefixes)}
        # What each prefix gives to each label behind it: a repeat needs a blank between.
        given = np.repeat(total[:, None], len(logs) - 1, axis=1)
        labelled = np.flatnonzero(last >= 0)
        given[labelled, last[labelled]] = self.blank[labelled]
        blank = total + logs[-1]
        label = self.label.copy()
        fresh = given + logs[:-1]
        for i, prefix in enumerate(self.prefixes):
            parent = known.get(prefix[:-1]) if prefix else None
            if parent is not None:
                label[i] = np.logaddexp(label[i], given[parent, prefix[-1]])
                fresh[parent, prefix[-1]] = _NEVER  # it is there already
        label[labelled] += logs[last[labelled]]
        self._keep(blank, label, fresh)

    def _keep(self, blank: Array, label: Array, fresh: Array) -> None:
        """Keeps the likeliest of the prefixes that were there and of those with a new label."""
        n = len(blank)
        scores = np.concatenate([np.logaddexp(blank, label), fresh.reshape(-1)])
        order = np.argsort(-scores, kind="stable")[: self.width]
        order = order[np.isfinite(scores[order])]
        made = [divmod(int(i) - n, fresh.shape[1]) for i in order if i >= n]
        old = [int(i) for i in order if i < n]
        self.prefixes = [
            *[self.prefixes[i] for i in old],
            *[(*self.prefixes[i], c) for i, c in made],
        ]
        self.blank = np.concatenate([blank[old], np.full(len(made), _NEVER)])
        self.label = np.concatenate([label[old], [fresh[i, c] for i, c in made]])


def beam_search(
    logits: Array, lengths: Array, width: int, paths: int, merges: bool
) -> tuple[list[list[list[int]]], Array]:
    """Returns, per path and example, labels; and the paths' log-probabilities [batch, paths]."""
    logs = log_softmax(logits)
    batch = logits.shape[1]
    found: list[list[list[int]]] = [[] for _ in range(paths)]
    scores = np.zeros((batch, paths), logits.dtype)
    for b, length in enumerate(lengths.tolist()):
        beams = Beams(width)
        for t in range(length):
            beams.step(logs[t, b])
        order = np.argsort(-beams.total, kind="stable")[:paths]
        if len(order) < paths:
            raise InvalidArgumentError(f"expected {paths} paths, found only {len(order)}")
        for n, i in enumerate(order):
            labels = list(beams.prefixes[i])
            found[n].append(without_repeats(labels) if merges else labels)
        scores[b] = beams.total[order]
    return found, scores


def sparse(found: list[list[int]]) -> tuple[Any, Any, Any]:
    """Returns labels as the coordinates, values and shape of a sparse tensor."""
    places = [(b, i) for b, own in enumerate(found) for i in range(len(own))]
    values = [label for own in found for label in own]
    longest = max((len(own) for own in found), default=0)
    indices = np.array(places, np.int64).reshape(-1, 2)
    return indices, np.array(values, np.int64), np.array([len(found), longest], np.int64)
