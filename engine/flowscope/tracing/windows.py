"""Windows: the part of a step that a view shows, as finely as it can show it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from flowscope.graph.lazy import frozen
from flowscope.tracing.recording import Recording, TracedStep

Array = Any


@frozen
class Window:
    """Spans of a part of a step.

    Attributes:
        columns: A row each, by begin, outer ones first: "lane", "node" (position in `nodes`, -1
            where it is no operation's), "frame" (row of `frames`), "iteration", "begin", "end",
            "nbytes" (-1 where that is not known), "count", "depth", "critical".
        nodes: The positions of the nodes in the recording.
        frames: The frames of the spans and those around: "loop", "parent", "iteration".
    """

    columns: Mapping[str, Array]
    nodes: Array
    frames: Mapping[str, Array]


def window(recording: Recording, step: TracedStep, begin: int, end: int, most: int) -> Window:
    """The spans of a step that a view shows.

    Args:
        recording: The recording.
        step: The step.
        begin, end: Nanoseconds of the recording.
        most: So many rows at most, more or less: neighbours in a lane that are too narrow for that
            become one row.
    """
    spans = recording.spans
    rows = np.concatenate([_rows(recording, s) for s in recording.steps if _meet(s, step)])
    rows = rows[(spans.begin[rows] < end) & (spans.end[rows] > begin)]
    rows = rows[np.lexsort((-rows, -spans.end[rows], spans.begin[rows]))]
    columns = {
        name: getattr(spans, name)[rows]
        for name in ("lane", "node", "frame", "iteration", "begin", "end", "nbytes")
    }
    columns["depth"] = _depths(recording, columns)
    columns["critical"] = np.isin(rows, recording.critical_path(step)).astype(np.int32)
    columns["count"] = np.ones(len(rows), np.int32)
    if len(rows) > most:
        columns = _merged(columns, begin, end, most)
    nodes = np.unique(columns["node"][columns["node"] >= 0])
    frames, at = _frames(recording, columns["frame"])
    loops = np.searchsorted(nodes, frames["loop"]) if len(nodes) else frames["loop"]
    missing = np.setdiff1d(frames["loop"], nodes)
    if len(missing):
        nodes = np.union1d(nodes, missing)
        loops = np.searchsorted(nodes, frames["loop"])
    columns["node"] = np.where(columns["node"] < 0, -1, np.searchsorted(nodes, columns["node"]))
    columns["frame"] = at
    return Window(columns, nodes, {**frames, "loop": loops.astype(np.int32)})


def _meet(one: TracedStep, other: TracedStep) -> bool:
    """Whether two steps ran at the same time, each in lanes of its own, or are one."""
    return one is other or (one.begin < other.end and one.end > other.begin)


def _rows(recording: Recording, step: TracedStep) -> Array:
    """Returns the rows of a step, with what stands before it: the user's program."""
    before = max((s.last for s in recording.steps if s.last <= step.first), default=0)
    return np.arange(before, step.last)


def _depths(recording: Recording, columns: Mapping[str, Array]) -> Array:
    """Returns in how many spans of loops and branches each lies."""
    nodes = columns["node"]
    present = set(np.unique(nodes).tolist())
    depths = np.zeros(len(recording.nodes) + 1, np.int32)  # the last one is that of -1
    for i, node in enumerate(recording.nodes):
        if node.parent >= 0:
            depths[i] = depths[node.parent] + (node.parent in present)
    return depths[nodes]


def _merged(columns: dict[str, Array], begin: int, end: int, most: int) -> dict[str, Array]:
    """Returns rows with narrow neighbours of one lane and depth as one."""
    narrowest = max(1, 2 * (end - begin) // most)
    is_narrow = columns["end"] - columns["begin"] < narrowest
    bins = (columns["begin"] - begin) // narrowest
    keys = np.stack([columns["lane"], columns["depth"], bins]).astype(np.int64)
    wide = {name: c[~is_narrow] for name, c in columns.items()}
    keys = keys[:, is_narrow]
    if not keys.shape[1]:
        return wide
    _, first, group = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    group = group.reshape(-1)
    narrow = {name: c[is_narrow] for name, c in columns.items()}
    count = np.bincount(group)
    made = {name: c[first].copy() for name, c in narrow.items()}
    made["count"] = count.astype(np.int32)
    made["end"] = np.full(len(first), np.iinfo(np.int64).min)
    np.maximum.at(made["end"], group, narrow["end"])
    np.maximum.at(made["critical"], group, narrow["critical"])
    is_unknown = np.zeros(len(first), bool)
    np.logical_or.at(is_unknown, group, narrow["nbytes"] < 0)
    together = np.bincount(group, narrow["nbytes"]).astype(np.int64)
    made["nbytes"] = np.where(is_unknown, -1, together)
    made["node"] = np.where(count > 1, -1, made["node"])
    joined = {name: np.concatenate([wide[name], made[name]]) for name in columns}
    order = np.lexsort((joined["depth"], joined["begin"]))
    return {name: c[order] for name, c in joined.items()}


def _frames(recording: Recording, used: Array) -> tuple[dict[str, Array], Array]:
    """Returns the frames that are used with those around, and the rows of the used ones."""
    frames = recording.frames
    wanted = np.unique(used[used >= 0])
    while True:
        around = frames.parent[wanted]
        more = np.union1d(wanted, around[around >= 0])
        if len(more) == len(wanted):
            break
        wanted = more
    parents = frames.parent[wanted]
    told = {
        "loop": frames.loop[wanted],
        "parent": np.where(parents < 0, -1, np.searchsorted(wanted, parents)).astype(np.int32),
        "iteration": frames.iteration[wanted],
    }
    at = np.where(used < 0, -1, np.searchsorted(wanted, used)).astype(np.int32)
    return told, at


__all__ = ["Window", "window"]
