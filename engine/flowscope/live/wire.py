"""Messages to and from their JSON form."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from flowscope.live import schema
from flowscope.live.schema import (
    PROTOCOL,
    Alive,
    Choose,
    Command,
    Connect,
    Disconnect,
    FromKernel,
    FromView,
)

#: Field names by message class; `dataclasses.asdict` takes five times as long on a large graph.
_FIELDS: dict[type, tuple[str, ...]] = {
    c: tuple(f.name for f in dataclasses.fields(c))
    for c in vars(schema).values()
    if isinstance(c, type) and dataclasses.is_dataclass(c)
}


def to_json(message: FromKernel) -> dict[str, Any]:
    """Returns the JSON form of a message: dicts, lists, strings, numbers, booleans and None."""
    return _plain(message)  # type: ignore[no-any-return]


def _plain(value: Any) -> Any:
    kind = type(value)
    fields = _FIELDS.get(kind)
    if fields is not None:
        return {name: _plain(getattr(value, name)) for name in fields}
    if kind is tuple:
        return [_plain(v) for v in value]
    return value


def message_from(data: Any) -> FromView:
    """Returns a view's message from its JSON form; raises ValueError if it is none."""
    match data:
        case {"kind": "connect", "view": int(view)}:
            return Connect(view)
        case {"kind": "disconnect", "view": int(view)}:
            return Disconnect(view)
        case {"kind": "alive", "view": int(view)}:
            return Alive(view)
        case {"kind": "command", "command_id": int(number), "name": "pace", "value": value}:
            if isinstance(value, int | float) and 0 <= value < math.inf:
                return Command(number, "pace", float(value))
        case {"kind": "choose", "what": "selection", "value": None | str() as name}:
            return Choose("selection", name)
        case {"kind": "choose", "what": "iteration", "value": None}:
            return Choose("iteration", None)
        case {"kind": "choose", "what": "iteration", "value": [str(frame), int(count)]}:
            return Choose("iteration", (frame, count))
        case {"kind": "choose", "what": "open_scopes", "value": dict(scopes)}:
            if all(isinstance(k, str) and isinstance(v, bool) for k, v in scopes.items()):
                return Choose("open_scopes", scopes)
        case {
            "kind": "command",
            "command_id": int(number),
            "name": "level",
            "value": "graph" | "lowered" as level,
        }:
            return Command(number, "level", level)
        case {
            "kind": "command",
            "command_id": int(number),
            "name": "pause" | "resume" | "stop" | "step_op" | "step_iteration" as name,
        } if data.get("value") is None:
            return Command(number, name)
    raise ValueError(f"not a message of protocol {PROTOCOL}: {data!r}")
