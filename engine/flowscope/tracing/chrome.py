"""Recordings in Chrome's trace format: what chrome://tracing and Perfetto open.

Source: "Trace Event Format", the JSON object form with complete events ("X"), metadata ("M"), flows
("s", "f") and counters ("C"). Slices of one thread nest: inner ones lie inside of outer ones and
come after them. A flow leads from the slice around its begin to the one around its end.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from flowscope.tracing.recording import Recording

#: The processes that lanes are shown in, by the lanes' kind.
_PROCESSES = {
    "device": "Devices",
    "helper": "Helper threads",
    "transfer": "Copies",
    "feeds": "Copies",
    "fetches": "Copies",
    "wait": "Waits",
    "pause": "Waits",
    "python": "Python",
    "compiling": "Python",
}
_PIDS = {name: pid for pid, name in enumerate(dict.fromkeys(_PROCESSES.values()), 1)}
_STEPS, _GAPS = 0, len(_PIDS) + 1


def chrome_trace(recording: Recording) -> str:
    """Returns a recording in Chrome's trace format, as JSON."""
    events = [*_names(recording), *_slices(recording), *_flows(recording), *_counters(recording)]
    return written(events)


def written(events: list[dict[str, Any]]) -> str:
    """Returns events as the text of a file; it can stand in a page, too."""
    text = json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e")


def _names(recording: Recording) -> Iterator[dict[str, Any]]:
    processes = {"Steps": _STEPS, **_PIDS, "Dropped": _GAPS}
    for name, pid in processes.items():
        yield {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}
        yield {"ph": "M", "name": "process_sort_index", "pid": pid, "args": {"sort_index": pid}}
    for tid, lane in enumerate(recording.lanes):
        pid = _PIDS[_PROCESSES[lane.kind]]
        args = {"name": lane.name}
        yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": args}


def _slices(recording: Recording) -> Iterator[dict[str, Any]]:
    for step in recording.steps:
        args = {"number": step.number, "error": step.error, "is_whole": step.is_whole}
        yield _slice(f"step {step.number}", "step", _STEPS, 0, step.begin, step.end, args)
    spans = recording.spans
    rows = np.lexsort((-np.arange(len(spans)), -spans.end, spans.begin))
    for row in rows.tolist():
        lane, position = int(spans.lane[row]), int(spans.node[row])
        found = recording.lanes[lane]
        told: tuple[str, str, dict[str, Any]] = (found.name, found.kind, {})
        if position >= 0:
            told = _told(recording, row, position)
        name, category, args = told
        pid = _PIDS[_PROCESSES[found.kind]]
        yield _slice(name, category, pid, lane, spans.begin[row], spans.end[row], args)
    for gap in recording.gaps:
        args = {"spans": gap.spans}
        yield _slice(gap.why, "gap", _GAPS, gap.lane, gap.begin, gap.end, args)


def _told(recording: Recording, row: int, position: int) -> tuple[str, str, dict[str, Any]]:
    node = recording.nodes[position]
    args: dict[str, Any] = {"name": node.name, "op": node.type, "phase": node.phase}
    frame = int(recording.spans.frame[row])
    if frame >= 0:
        args["frame"] = recording.path(frame)
        args["iteration"] = int(recording.spans.iteration[row])
    if node.line is not None:
        where = node.line.file if node.line.cell is None else f"cell {node.line.cell}"
        args["line"] = f"{where}, line {node.line.line}"
    nbytes = int(recording.spans.nbytes[row])
    if nbytes >= 0:
        ns = int(recording.spans.end[row] - recording.spans.begin[row])
        args["bytes"] = nbytes
        args |= {"MB/s": round(nbytes / ns * 1e3, 3)} if ns > 0 else {}
    if len(node.names) > 1:
        args["made of"] = ", ".join(node.names)
    return node.name, node.type, args


def _flows(recording: Recording) -> Iterator[dict[str, Any]]:
    """Yields an arrow for each value that went between partitions: from its Send to its Recv."""
    spans, kinds = recording.spans, [lane.kind for lane in recording.lanes]
    is_sent = np.array([*[kind == "transfer" for kind in kinds]], bool)[spans.lane]
    begins: dict[tuple[int, int], int] = {}
    ends: dict[tuple[int, int], int] = {}
    for row in np.flatnonzero(~is_sent & (spans.node >= 0)).tolist():
        node = int(spans.node[row])
        begins[node, int(spans.begin[row])] = ends[node, int(spans.end[row])] = row
    for row in np.flatnonzero(is_sent).tolist():
        node, begin, end = (int(c[row]) for c in (spans.node, spans.begin, spans.end))
        sent, received = begins.get((node, begin)), ends.get((node, end))
        if sent is None or received is None or sent == received:
            continue
        shared = {"cat": "transfer", "name": recording.nodes[node].name, "id": row}
        yield {**shared, "ph": "s", **_at(recording, sent, begin)}
        yield {**shared, "ph": "f", "bp": "e", **_at(recording, received, end)}


def _at(recording: Recording, row: int, time: int) -> dict[str, Any]:
    lane = int(recording.spans.lane[row])
    pid = _PIDS[_PROCESSES[recording.lanes[lane].kind]]
    return {"pid": pid, "tid": lane, "ts": time / 1000}


def _slice(
    name: str, category: str, pid: int, tid: int, begin: Any, end: Any, args: dict[str, Any]
) -> dict[str, Any]:
    return {
        "ph": "X",
        "name": name,
        "cat": category,
        "pid": pid,
        "tid": tid,
        "ts": int(begin) / 1000,
        "dur": (int(end) - int(begin)) / 1000,
        "args": args,
    }


def _counters(recording: Recording) -> Iterator[dict[str, Any]]:
    memory = recording.memory
    for time, nbytes in zip(memory.time.tolist(), memory.nbytes.tolist(), strict=True):
        args = {"bytes": nbytes}
        yield {"ph": "C", "name": "live bytes", "pid": _STEPS, "ts": time / 1000, "args": args}


__all__ = ["chrome_trace", "written"]
