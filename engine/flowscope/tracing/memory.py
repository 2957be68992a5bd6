"""Bytes of values that are alive over a step, from the lifetimes that planning knows."""

from __future__ import annotations

from typing import Any

import numpy as np

from flowscope.plan.analysis.lifetimes import Lifetimes
from flowscope.tracing.decoding import StepSpans
from flowscope.tracing.nodes import PlanNodes
from flowscope.tracing.recording import Frames, Memory

Array = Any


def memory_of(known: Lifetimes, found: StepSpans, nodes: PlanNodes, begin: int) -> Memory:
    """Returns the bytes that were alive over a step, one reading behind each operation.

    Args:
        known: What is alive behind each node.
        found: The spans of the step, by their ends.
        nodes: The nodes of its plan.
        begin: When the step began.
    """
    spans, frames = found.spans, found.frames
    rows = np.flatnonzero(spans.node >= 0)
    node, frame, iteration = spans.node[rows], spans.frame[rows], spans.iteration[rows]
    level = np.array([known.level.get(n, 0) for n in nodes.nodes], np.int64)
    kept = np.array([known.kept.get(n, 0) for n in nodes.nodes], np.int64)
    nbytes = level[node] if len(rows) else np.empty(0, np.int64)
    if len(frames.loop):
        inside = frame >= 0
        around = _kept_around(frames, kept)
        at = frame[inside]
        nbytes[inside] += around[at] + kept[frames.loop[at]] * np.maximum(iteration[inside], 0)
        _add_lists(known, nodes, kept, nbytes, node, frame, iteration, frames)
    return Memory(np.r_[begin, spans.end[rows]], np.r_[0, nbytes])


def _kept_around(frames: Frames, kept: Array) -> Array:
    """Bytes that the loops around each frame hold when the frame begins."""
    found = np.zeros(len(frames.loop), np.int64)
    parent = frames.parent
    is_inner = parent >= 0
    own = np.where(is_inner, kept[frames.loop[parent]] * np.maximum(frames.iteration, 0), 0)
    while True:  # as often as loops are nested
        more = np.where(is_inner, found[parent] + own, 0)
        if np.array_equal(more, found):
            return found
        found = more


def _add_lists(
    known: Lifetimes,
    nodes: PlanNodes,
    kept: Array,
    nbytes: Array,
    node: Array,
    frame: Array,
    iteration: Array,
    frames: Frames,
) -> None:
    """Adds the lists that are alive behind the loops that have kept them."""
    outermost = np.full(len(frames.loop), -1)
    outermost[:] = np.arange(len(frames.loop))
    while (up := frames.parent[outermost] >= 0).any():
        outermost = np.where(up, frames.parent[outermost], outermost)
    top = np.where(frame >= 0, frames.loop[outermost[frame]], node)
    for one in known.lists:
        maker = nodes.index[one.maker]
        own = (frame >= 0) & (frames.loop[frame] == maker)
        total = max(0, kept[maker] * (iteration[own].max(initial=-1) + 1) - one.shared)
        until = [nodes.index[n] for n in one.until[1:] if n in nodes.index]
        nbytes[np.isin(top, until) | ((node == maker) & (frame < 0))] += total
        if one.taker is not None:
            taker = nodes.index[one.taker]
            inside = (frame >= 0) & (frames.loop[frame] == taker)
            nbytes[inside] += np.maximum(0, total - kept[maker] * iteration[inside])


__all__ = ["memory_of"]
