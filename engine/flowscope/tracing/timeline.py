"""Timelines of `RunMetadata.step_stats`, under TensorFlow 1's name."""

from __future__ import annotations

from collections import Counter
from typing import Any

from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.runtime.config import DeviceStepStats, NodeExecStats, StepStats, timelines
from flowscope.tracing.chrome import written


class Timeline:
    """The steps of one run, for Chrome's viewer.

        sess.run(y, options=fs.RunOptions(trace_level=fs.RunOptions.FULL_TRACE),
                 run_metadata=metadata)
        text = timeline.Timeline(metadata.step_stats).generate_chrome_trace_format()

    Args:
        step_stats: What a traced run has told.
        graph: Taken for TensorFlow's programs: the statistics tell what ran.
    """

    def __init__(self, step_stats: StepStats, graph: Any = None) -> None:
        if not isinstance(step_stats, StepStats):
            raise DTypeError(f"expected RunMetadata.step_stats, got {step_stats!r}")
        self._stats = step_stats

    def generate_chrome_trace_format(
        self, show_dataflow: bool = True, show_memory: bool = False, op_time: str = "schedule"
    ) -> str:
        """Returns the run in Chrome's trace format, as JSON.

        Args:
            show_dataflow: Whether arrows lead from operations to those that take their results.
            show_memory: Whether the bytes of operations' results are told, with an event where each
                is made and where it dies, and a counter per device of those that are alive.
            op_time: "schedule", "all" or "gpu": on CPUs they are the same.
        """
        if op_time not in ("schedule", "all", "gpu"):
            raise InvalidArgumentError(
                f'expected op_time "schedule", "all" or "gpu", got {op_time!r}'
            )
        events: list[dict[str, Any]] = []
        latest: dict[str, dict[str, Any]] = {}
        starts = [s.all_start_nanos for d in self._stats.dev_stats for s in d.node_stats]
        origin = min(starts, default=0)
        for pid, device in enumerate(self._stats.dev_stats):
            args = {"name": f"{device.device} Compute"}
            events.append({"ph": "M", "name": "process_name", "pid": pid, "args": args})
            for stats in device.node_stats:
                made = _event(stats, pid, origin, show_memory)
                events.append(made)
                if show_dataflow:
                    events += _arrows(made, latest, len(events))
                latest[stats.node_name] = made
        if show_memory:
            for pid, device in enumerate(self._stats.dev_stats, len(self._stats.dev_stats)):
                events += _memory(device, pid, origin // 1000)
        return written(events)


def _memory(device: DeviceStepStats, pid: int, origin_us: int) -> list[dict[str, Any]]:
    """Returns events for what takes memory on a device and gives it back, and the counter."""
    args = {"name": f"{device.device} Tensors"}
    events: list[dict[str, Any]] = [{"ph": "M", "name": "process_name", "pid": pid, "args": args}]
    changes: dict[str, Counter[int]] = {}
    objects = 0
    for stats in device.node_stats:
        for used in stats.memory:
            alive: dict[int, list[int]] = {}
            for record in used.allocation_records:
                time_us, nbytes = record.alloc_micros - origin_us, record.alloc_bytes
                changes.setdefault(used.allocator_name, Counter())[time_us] += nbytes
                shared = {"cat": "Tensor", "name": stats.node_name, "pid": pid, "tid": 0}
                if nbytes > 0:
                    objects += 1
                    alive.setdefault(nbytes, []).append(objects)
                    event = {**shared, "ph": "N", "id": objects, "ts": float(time_us)}
                    events.append({**event, "args": {"bytes": nbytes}})
                elif alive.get(-nbytes):
                    number = alive[-nbytes].pop()
                    events.append({**shared, "ph": "D", "id": number, "ts": float(time_us)})
    for name, found in changes.items():
        total = 0
        for time_us in sorted(found):
            total += found[time_us]
            shared = {"cat": "Memory", "name": name, "pid": pid, "tid": 0}
            events.append({**shared, "ph": "C", "ts": float(time_us), "args": {name: total}})
    return events


def _event(stats: NodeExecStats, pid: int, origin: int, show_memory: bool) -> dict[str, Any]:
    op, inputs = _parts(stats.timeline_label)
    args: dict[str, Any] = {"name": stats.node_name, "op": op}
    args |= {f"input{i}": name for i, name in enumerate(inputs)}
    if show_memory:
        args["bytes"] = sum(m.total_bytes for m in stats.memory)
    return {
        "ph": "X",
        "cat": "Op",
        "name": op,
        "pid": pid,
        "tid": stats.thread_id,
        "ts": (stats.all_start_nanos - origin) / 1000,
        "dur": stats.all_end_rel_nanos / 1000,
        "args": args,
    }


def _parts(label: str) -> tuple[str, list[str]]:
    """Returns op type and inputs of a label such as "c = Add(a, b)"."""
    op, _, inputs = label.partition(" = ")[2].removesuffix(")").partition("(")
    return op or label, [name for name in inputs.split(", ") if name]


def _arrows(
    event: dict[str, Any], latest: dict[str, dict[str, Any]], number: int
) -> list[dict[str, Any]]:
    """Returns events that join an operation to those whose results it takes."""
    found: list[dict[str, Any]] = []
    names = [v for k, v in event["args"].items() if k.startswith("input")]
    for i, name in enumerate(names):
        source = latest.get(name.partition(":")[0])
        if source is not None:
            shared = {"cat": "DataFlow", "name": name, "id": (number << 8) + i}
            end = source["ts"] + source["dur"]
            found.append({**shared, "ph": "s", **_at(source, end)})
            found.append({**shared, "ph": "t", **_at(event, event["ts"])})
    return found


def _at(event: dict[str, Any], time_us: float) -> dict[str, Any]:
    return {"pid": event["pid"], "tid": event["tid"], "ts": time_us}


__all__ = ["Timeline"]


timelines.append(Timeline)
