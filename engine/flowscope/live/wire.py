"""Messages to and from their JSON form."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from flowscope.live import schema
from flowscope.live.columns import columns_of
from flowscope.live.nodes import Described
from flowscope.live.schema import (
    HEATS,
    PROTOCOL,
    Ack,
    Alive,
    AskCluster,
    AskExplanation,
    AskHistory,
    AskPlacement,
    AskSpans,
    AskSummaries,
    AskValues,
    BreakpointWish,
    Choose,
    Command,
    Connect,
    Delta,
    Disconnect,
    ExplainedTensor,
    Explanation,
    FromKernel,
    FromView,
    MoveWish,
    RecordWish,
    Replacement,
    ReplayWish,
    Snapshot,
    Spans,
    Summaries,
    Table,
    TensorHistory,
    Values,
    WatchWish,
)
from flowscope.live.tables import Numbers

#: Field names by message class; `dataclasses.asdict` takes five times as long on a large graph.
_FIELDS: dict[type, tuple[str, ...]] = {
    c: tuple(f.name for f in dataclasses.fields(c))
    for c in vars(schema).values()
    if isinstance(c, type) and dataclasses.is_dataclass(c)
}
#: Classes whose fields hold no others.
_FLAT = {
    c for c in _FIELDS if {f.type for f in dataclasses.fields(c)} <= {"str", "int", "float", "bool"}
}


def to_json(message: FromKernel) -> dict[str, Any]:
    """Returns the JSON form of a message: dicts, lists, strings, numbers, booleans and None."""
    return plain(message)  # type: ignore[no-any-return]


def to_wire(message: FromKernel) -> tuple[dict[str, Any], list[bytes]]:
    """Returns a message as it travels: its JSON form, with columns for operations, and buffers."""
    buffers: list[bytes] = []
    if isinstance(message, Spans):
        return _with_tables(message, buffers), buffers
    if isinstance(message, Values):
        told = to_json(dataclasses.replace(message, values=()))
        told["values"] = [_with_tables(v, buffers) for v in message.values]
        return told, buffers
    if isinstance(message, Explanation):
        told = to_json(dataclasses.replace(message, tensors=()))
        told["tensors"] = [_explained(one, buffers) for one in message.tensors]
        return told, buffers
    if isinstance(message, Summaries):
        bare = dataclasses.replace(message, scalars=(), histograms=())
        told = _with_tables(bare, buffers)
        for name in ("scalars", "histograms"):
            told[name] = [_with_tables(one, buffers) for one in getattr(message, name)]
        return told, buffers
    if isinstance(message, TensorHistory):
        told = _with_tables(dataclasses.replace(message, shown=None), buffers)
        told["shown"] = None if message.shown is None else _with_tables(message.shown, buffers)
        return told, buffers
    if not isinstance(message, Snapshot | Delta):
        return to_json(message), []
    change = message.graph
    bare_change: Any = None if change is None else dataclasses.replace(change, added=(), changed=())
    told = plain(dataclasses.replace(message, graph=bare_change, trace=None))
    if change is not None:
        for name in ("added", "changed"):
            columns, buffer = columns_of(getattr(change, name))
            told["graph"][name] = plain(dataclasses.replace(columns, buffer=len(buffers)))
            buffers.append(buffer)
    if message.trace is not None:
        told["trace"] = _with_tables(message.trace, buffers)
    return told, buffers


def _explained(tensor: ExplainedTensor, buffers: list[bytes]) -> dict[str, Any]:
    """Returns the JSON form of a tensor, the numbers of whose value go into buffers."""
    value = None if tensor.value is None else _with_tables(tensor.value, buffers)
    return {**plain(dataclasses.replace(tensor, value=None)), "value": value}


def _with_tables(message: Any, buffers: list[bytes]) -> dict[str, Any]:
    """Returns the JSON form of what has tables, whose numbers go into buffers."""
    told: dict[str, Any] = {}
    for name in _FIELDS[type(message)]:
        value = getattr(message, name)
        if isinstance(value, Numbers):
            buffers.append(value.data)
            value = Table(value.rows, len(buffers) - 1, value.columns)
        told[name] = plain(value)
    return told


def plain(value: Any) -> Any:
    """Returns what a message holds as dicts, lists, strings, numbers, booleans and None."""
    kind = type(value)
    if kind in _FLAT:
        return dict(value.__dict__)
    fields = _FIELDS.get(kind)
    if fields is not None:
        return {name: plain(getattr(value, name)) for name in fields}
    if kind is Numbers:
        return plain(Table(value.rows, value.buffer, value.columns))
    if kind is tuple or kind is Described:
        return [plain(v) for v in value]
    if kind is dict:
        return {k: plain(v) for k, v in value.items()}
    return value


def message_from(data: Any) -> FromView:
    """Returns a view's message from its JSON form; raises ValueError if it is none."""
    match data:
        case {"kind": "connect", "view": int(view)} if view:
            version = data.get("protocol")
            return Connect(view, version if isinstance(version, int) else 0)
        case {"kind": "disconnect", "view": int(view)} if view:
            return Disconnect(view)
        case {"kind": "alive", "view": int(view)} if view:
            return Alive(view)
        case {"kind": "ack", "view": int(view), "seq": int(seq)} if view:
            return Ack(view, seq)
        case {
            "kind": "command",
            "command_id": int(number),
            "name": "pace" | "trace" as name,
            "value": value,
        }:
            if isinstance(value, int | float) and 0 <= value < math.inf:
                return Command(number, name, float(value), _view(data))
        case {
            "kind": "command",
            "command_id": int(number),
            "name": "unbreak" | "enable" | "disable" as name,
            "value": int(value),
        }:
            return Command(number, name, value, _view(data))
        case {
            "kind": "command",
            "command_id": int(number),
            "name": "break" | "watch" | "replace" | "record" | "replay" as name,
            "value": dict(wish),
        }:
            return Command(number, name, _as(_WISHES[name], wish), _view(data))
        case {
            "kind": "ask_values",
            "view": int(view),
            "request_id": int(number),
            "stop": str(stop),
            "tensors": list(names),
        } if view and all(isinstance(name, str) for name in names):
            return AskValues(view, number, stop, tuple(names))
        case {
            "kind": "ask_placement",
            "view": int(view),
            "request_id": int(number),
            "name": str(name),
            "device": str(device),
            "parts": list(parts),
        } if view and all(isinstance(part, str) for part in parts):
            return AskPlacement(view, number, name, device, tuple(parts))
        case {"kind": "command", "command_id": int(number), "name": "move", "value": dict(wish)}:
            return Command(number, "move", _as(MoveWish, wish), _view(data))
        case {
            "kind": "ask_history",
            "view": int(view),
            "request_id": int(number),
            "tensor": str(tensor),
            "most": int(most),
            "row": None | int() as row,
        } if view and most > 0 and not isinstance(row, bool):
            return AskHistory(view, number, tensor, most, row)
        case {"kind": "ask_cluster", "view": int(view), "request_id": int(number)} if view:
            return AskCluster(view, number)
        case {
            "kind": "ask_summaries",
            "view": int(view),
            "request_id": int(number),
            "step": None | int() as step,
        } if view and not isinstance(step, bool):
            return AskSummaries(view, number, step)
        case {
            "kind": "ask_explanation",
            "view": int(view),
            "request_id": int(number),
            "name": str(name),
        } if view:
            return AskExplanation(view, number, name)
        case {"kind": "ask_spans", "view": int(view)} if view:
            return _ask_spans(data, view)
        case {"kind": "choose", "what": "selection", "value": None | str() as name}:
            return Choose("selection", name)
        case {"kind": "choose", "what": "iteration", "value": None}:
            return Choose("iteration", None)
        case {"kind": "choose", "what": "iteration", "value": [str(frame), int(count)]}:
            return Choose("iteration", (frame, count))
        case {"kind": "choose", "what": "find" | "isolated" as what, "value": str(text)}:
            return Choose(what, text)
        case {"kind": "choose", "what": "step", "value": None | int() as number} if not isinstance(
            number, bool
        ):
            return Choose("step", number)
        case {"kind": "choose", "what": "heat", "value": str(heat)} if heat in HEATS:
            return Choose("heat", heat)
        case {"kind": "choose", "what": "open_scopes", "value": dict(scopes)}:
            if all(isinstance(k, str) and isinstance(v, bool) for k, v in scopes.items()):
                return Choose("open_scopes", scopes)
        case {
            "kind": "command",
            "command_id": int(number),
            "name": "level",
            "value": "graph" | "lowered" | "partitions" as level,
        }:
            return Command(number, "level", level, _view(data))
        case {"kind": "choose", "what": "fetches", "value": list(names)}:
            if all(isinstance(name, str) for name in names):
                return Choose("fetches", tuple(names))
        case {"kind": "choose", "what": "feed", "value": [str(name), None | str() as text]}:
            return Choose("feed", (name, text))
        case {"kind": "choose", "what": "baseline", "value": None | int() as number}:
            return Choose("baseline", number)
        case {
            "kind": "command",
            "command_id": int(number),
            "name": (
                "pause"
                | "resume"
                | "stop"
                | "step_op"
                | "step_iteration"
                | "step_out"
                | "step_run"
                | "step_back"
                | "record"
                | "run"
            ) as name,
        } if data.get("value") is None:
            return Command(number, name, None, _view(data))
    raise ValueError(f"not a message of protocol {PROTOCOL}: {data!r}")


#: What is wished for with a command.
_WISHES: dict[str, Any] = {
    "break": BreakpointWish,
    "watch": WatchWish,
    "replace": Replacement,
    "record": RecordWish,
    "replay": ReplayWish,
}
#: What a field of a wish may hold, by its annotation.
_KINDS: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "str | None": (str, type(None)),
    "int": (int,),
    "int | None": (int, type(None)),
    "bool": (bool,),
    "tuple[str, ...]": (list,),
    "tuple[int, ...]": (list,),
}


def _as(kind: Any, wish: dict[str, Any]) -> Any:
    """Returns a wish from its JSON form; raises ValueError if it is none."""
    fields = dataclasses.fields(kind)
    fits = {f.name for f in fields} == set(wish) and all(
        type(wish[f.name]) in _KINDS[str(f.type)] for f in fields
    )
    if not fits:
        raise ValueError(f"not a {kind.__name__} of protocol {PROTOCOL}: {wish!r}")
    lists = {f.name: wish[f.name] for f in fields if type(wish[f.name]) is list}
    items = {f.name: str if f.type == "tuple[str, ...]" else int for f in fields}
    if not all(type(item) is items[name] for name, found in lists.items() for item in found):
        raise ValueError(f"not a {kind.__name__} of protocol {PROTOCOL}: {wish!r}")
    return kind(**wish | {name: tuple(found) for name, found in lists.items()})


def _ask_spans(data: dict[str, Any], view: int) -> AskSpans:
    match data:
        case {
            "request_id": int(number),
            "step": None | int() as step,
            "begin_us": None | int() | float() as begin,
            "end_us": None | int() | float() as end,
            "most": int(most),
        } if most > 0 and all(t is None or math.isfinite(t) for t in (begin, end)):
            return AskSpans(number, step, begin, end, most, view)
    raise ValueError(f"not a message of protocol {PROTOCOL}: {data!r}")


def _view(data: dict[str, Any]) -> int:
    view = data.get("view")
    return view if isinstance(view, int) else 0
