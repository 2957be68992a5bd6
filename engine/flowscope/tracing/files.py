"""Recordings in files: versioned, checked, and read without running anything of them.

A file is a line that names the format, the length of a header, the header as JSON, the columns as
little-endian numbers in the order in which the header names them, the values of tensors in the
order in which it names those, and a checksum of all before it. Files of version 1 have no values;
those before version 3 tell the bytes of transfers of their nodes.
"""

from __future__ import annotations

import dataclasses
import json
import math
import zlib
from typing import Any

import numpy as np

from flowscope.errors import DataLossError, DTypeError, InvalidArgumentError, UnimplementedError
from flowscope.graph.serialization.files import read_file
from flowscope.graph.serialization.whole_files import replaced
from flowscope.graph.values import dtypes
from flowscope.tracing.recording import (
    VERSION,
    Frames,
    Gap,
    KeptValue,
    Lane,
    Memory,
    RecordedLine,
    Recording,
    Spans,
    TensorValues,
    TimeSplit,
    Totals,
    TracedNode,
    TracedStep,
)

MAGIC = b"flowscope recording\n"
#: The parts of a recording that are columns, and what they are made of.
_COLUMNS: dict[str, Any] = {"frames": Frames, "spans": Spans, "totals": Totals, "memory": Memory}
_KINDS = {"<i4", "<i8"}
#: The versions that are read.
_READ = (1, 2, VERSION)


def save(recording: Recording, path: Any) -> None:
    """Writes a recording to a file, whole or not at all.

    Args:
        recording: The recording.
        path: The file's path.
    """
    columns: list[tuple[str, str, Any]] = []
    for part in _COLUMNS:
        for field in dataclasses.fields(_COLUMNS[part]):
            array = getattr(getattr(recording, part), field.name)
            columns.append((part, field.name, array.astype(f"<i{array.dtype.itemsize}")))
    header = {
        "version": VERSION,
        "columns": [[p, n, a.dtype.str, len(a)] for p, n, a in columns],
        "nodes": [dataclasses.asdict(n) for n in recording.nodes],
        "lanes": [dataclasses.asdict(lane) for lane in recording.lanes],
        "steps": [_step_data(s) for s in recording.steps],
        "gaps": [dataclasses.asdict(g) for g in recording.gaps],
        "traced_steps": recording.traced_steps,
        "origin_us": recording.origin_us,
        "graph": recording.graph,
        "values": [_values_data(one) for one in recording.values],
    }
    text = json.dumps(header, allow_nan=False).encode()
    data = [MAGIC, len(text).to_bytes(8, "little"), text, *[a.tobytes() for *_, a in columns]]
    data += [_little(kept.value).tobytes() for one in recording.values for kept in one.kept]
    check = 0
    for part_data in data:
        check = zlib.crc32(part_data, check)
    with replaced(str(path)) as file:
        for part_data in data:
            file.write(part_data)
        file.write(check.to_bytes(4, "little"))


def _step_data(step: TracedStep) -> dict[str, Any]:
    found = {f.name: getattr(step, f.name) for f in dataclasses.fields(step)}
    return found | {"split": dataclasses.asdict(step.split)}


def _values_data(one: TensorValues) -> list[Any]:
    """The header's entries of a tensor: a row per value."""
    rows = [[k.step, k.iterations, dtypes.as_dtype(k.value.dtype).name, k.value.shape]
            for k in one.kept]  # fmt: skip
    return [one.name, one.dropped, rows]


def _little(value: Any) -> Any:
    array = np.asarray(value)
    return array.astype(array.dtype.newbyteorder("<"), copy=False)


def load(path: Any) -> Recording:
    """Returns the recording in a file.

    Raises:
        NotFoundError: if there is no such file.
        InvalidArgumentError: if it holds no recording.
        UnimplementedError: if another version of flowscope has written it.
        DataLossError: if it is damaged.
    """
    data = read_file(path)
    if not data.startswith(MAGIC):
        raise InvalidArgumentError(f"expected a recording that `save` has written, got {path!r}")
    body, check = data[:-4], data[-4:]
    at = len(MAGIC)
    size = int.from_bytes(data[at : at + 8], "little")
    try:
        header = json.loads(data[at + 8 : at + 8 + size])
        version = header["version"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _damaged(path) from None
    if version not in _READ:
        raise UnimplementedError(
            f"{path!r} is of version {version!r} of recordings, and this flowscope reads versions "
            f"{_READ[0]} to {VERSION}: open it with the flowscope that has written it"
        )
    if zlib.crc32(body).to_bytes(4, "little") != check:
        raise _damaged(path)
    try:
        return _recording(header, body, at + 8 + size)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, DTypeError):
        raise _damaged(path) from None


def _damaged(path: Any) -> DataLossError:
    return DataLossError(f"the recording {path!r} is damaged: write it again, or use a copy")


def _recording(header: dict[str, Any], body: bytes, at: int) -> Recording:
    parts: dict[str, dict[str, Any]] = {name: {} for name in _COLUMNS}
    for part, name, kind, rows in header["columns"]:
        if kind not in _KINDS:
            raise ValueError(kind)
        array = np.frombuffer(body, kind, rows, at)
        parts[part][name] = array.astype(array.dtype.newbyteorder("="))
        at += array.nbytes
    if "nbytes" not in parts["spans"]:
        parts["spans"]["nbytes"] = _of_nodes(header, parts["spans"])
    values = []
    for name, dropped, rows in header.get("values", ()):
        kept = []
        for row in rows:
            kept.append(_kept(row, body, at))
            at += kept[-1].value.nbytes
        values.append(TensorValues(name, tuple(kept), dropped))
    if at != len(body):
        raise ValueError(at)
    return Recording(
        nodes=tuple([_node(n) for n in header["nodes"]]),
        lanes=tuple([Lane(**lane) for lane in header["lanes"]]),
        steps=tuple([_step(s) for s in header["steps"]]),
        gaps=tuple([Gap(**g) for g in header["gaps"]]),
        traced_steps=header["traced_steps"],
        origin_us=header["origin_us"],
        graph=header["graph"],
        values=tuple(values),
        **{name: kind(**parts[name]) for name, kind in _COLUMNS.items()},
    )


def _kept(row: list[Any], body: bytes, at: int) -> KeptValue:
    step, iterations, name, shape = row
    dtype = np.dtype(dtypes.as_dtype(name).as_numpy_dtype)
    if dtype.hasobject or not all(type(size) is int and size >= 0 for size in shape):
        raise ValueError(name, shape)
    array = np.frombuffer(body, dtype.newbyteorder("<"), math.prod(shape), at).reshape(shape)
    return KeptValue(step, tuple(iterations), array.astype(dtype)[()])


def _of_nodes(header: dict[str, Any], spans: dict[str, Any]) -> Any:
    """Returns the bytes of spans in a file that tells them of nodes."""
    told = [n.pop("nbytes", None) for n in header["nodes"]]
    sizes = np.array([*[-1 if n is None else n for n in told], -1], np.int64)
    is_sent = np.array([lane["kind"] == "transfer" for lane in header["lanes"]], bool)
    return np.where(is_sent[spans["lane"]], sizes[spans["node"]], -1)


def _node(data: dict[str, Any]) -> TracedNode:
    line = None if data["line"] is None else RecordedLine(**data["line"])
    lists = {k: tuple(data[k]) for k in ("operations", "names", "waits_for")}
    return TracedNode(**{**data, **lists, "line": line})


def _step(data: dict[str, Any]) -> TracedStep:
    return TracedStep(**{**data, "split": TimeSplit(**data["split"])})


__all__ = ["load", "save"]
