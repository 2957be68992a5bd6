"""Messages to and from their JSON form."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

from flowscope.live.graphs.columns import columns_of
from flowscope.live.graphs.nodes import Described
from flowscope.live.protocol.questions import answer_types, message_types
from flowscope.live.protocol.schema import (
    HEATS,
    PROTOCOL,
    Ack,
    Alive,
    BreakpointWish,
    Choose,
    Command,
    Connect,
    Delta,
    Disconnect,
    FromKernel,
    FromView,
    MoveWish,
    RecordWish,
    Replacement,
    ReplayWish,
    Snapshot,
    Table,
    WatchWish,
)
from flowscope.live.protocol.tables import Numbers

#: Field names by message class; `dataclasses.asdict` takes five times as long on a large graph.
_FIELDS: dict[type, tuple[str, ...]] = {
    c: tuple(f.name for f in dataclasses.fields(c)) for c in message_types()
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
    if not isinstance(message, Snapshot | Delta):
        return plain(message, buffers), buffers
    change = message.graph
    bare_change: Any = None if change is None else dataclasses.replace(change, added=(), changed=())
    told = plain(dataclasses.replace(message, graph=bare_change, trace=None))
    if change is not None:
        for name in ("added", "changed"):
            columns, buffer = columns_of(getattr(change, name))
            told["graph"][name] = plain(dataclasses.replace(columns, buffer=len(buffers)))
            buffers.append(buffer)
    told["trace"] = plain(message.trace, buffers)
    return told, buffers


def plain(value: Any, buffers: list[bytes] | None = None) -> Any:
    """The message as dicts, lists, strings, numbers, booleans and None.

    Args:
        value: The message, or a part of it.
        buffers: Gets the numbers of its tables; None where they are not wanted.
    """
    kind = type(value)
    if kind in _FLAT:
        return dict(value.__dict__)
    fields = _FIELDS.get(kind)
    if fields is not None:
        return {name: plain(getattr(value, name), buffers) for name in fields}
    if kind is Numbers:
        if buffers is not None:
            buffers.append(value.data)
        at = value.buffer if buffers is None else len(buffers) - 1
        return plain(Table(value.rows, at, value.columns))
    if kind is tuple or kind is Described:
        return [plain(v, buffers) for v in value]
    if kind is dict:
        return {k: plain(v, buffers) for k, v in value.items()}
    return value


def message_from(data: Any) -> FromView:
    """Returns a view's message from its JSON form; raises ValueError if it is none."""
    read = _READERS.get(data["kind"]) if type(data) is dict and _is_text(data.get("kind")) else None
    found: FromView | None = None if read is None else read(data)
    if found is None:
        raise ValueError(f"not a message of protocol {PROTOCOL}: {data!r}")
    return found


#: What a field may hold, by its annotation, and of a list each item.
_KINDS: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "str | None": (str, type(None)),
    "int": (int,),
    "int | None": (int, type(None)),
    "float | None": (int, float, type(None)),
    "bool": (bool,),
    "tuple[str, ...]": (list,),
    "tuple[int, ...]": (list,),
}
_ITEMS = {"tuple[str, ...]": str, "tuple[int, ...]": int}


def _fits(value: Any, annotation: str) -> bool:
    if type(value) not in _KINDS[annotation]:
        return False
    if type(value) is float:
        return math.isfinite(value)
    return type(value) is not list or all(type(v) is _ITEMS[annotation] for v in value)


def _filled(kind: Any, data: dict[str, Any]) -> Any:
    """Returns an object of a class from its fields; None where they do not fit."""
    fields = {f.name: str(f.type) for f in dataclasses.fields(kind) if f.name != "kind"}
    if not all(name in data and _fits(data[name], fields[name]) for name in fields):
        return None
    given = {name: data[name] for name in fields}
    return kind(**{k: tuple(v) if type(v) is list else v for k, v in given.items()})


def _from_view(kind: Any) -> Callable[[dict[str, Any]], Any]:
    """The reader of a message that says which view it is of."""

    def read(data: dict[str, Any]) -> Any:
        found = _filled(kind, data)
        is_known = found is not None and found.view and getattr(found, "most", 1) > 0
        return found if is_known else None

    return read


def _kind(message: Any) -> str:
    """The name of a class in messages."""
    return str(message.kind)


def _connect(data: dict[str, Any]) -> Connect | None:
    version = data.get("protocol")
    return _from_view(Connect)({**data, "protocol": version if type(version) is int else 0})  # type: ignore[no-any-return]


def _command(data: dict[str, Any]) -> Command | None:
    number: Any = data.get("command_id")
    name: Any = data.get("name")
    value: Any = data.get("value")
    if type(number) is not int or not _is_text(name):
        return None
    wish = _WISHES.get(name)
    if type(value) is dict and wish is not None:
        found = _filled(wish, value) if len(value) == len(dataclasses.fields(wish)) else None
        if found is None:
            raise ValueError(f"not a {wish.__name__} of protocol {PROTOCOL}: {value!r}")
        return Command(number, name, found, _view(data))
    takes = _VALUES.get(name)
    if takes is None or not takes(value):
        return None
    return Command(number, name, float(value) if name in _PACES else value, _view(data))


def _choose(data: dict[str, Any]) -> Choose | None:
    what: Any = data.get("what")
    value = data.get("value")
    takes = _CHOICES.get(what) if _is_text(what) else None
    if takes is None or not takes(value):
        return None
    return Choose(what, tuple(value) if type(value) is list else value)


def _view(data: dict[str, Any]) -> int:
    view = data.get("view")
    return view if type(view) is int else 0


_Takes = Callable[[Any], bool]


def _is(annotation: str) -> _Takes:
    return lambda value: _fits(value, annotation)


def _in(*values: str) -> _Takes:
    return lambda value: type(value) is str and value in values


def _pair(*kinds: type) -> _Takes:
    """Whether it is a list of a text and something of one of these."""

    def takes(value: Any) -> bool:
        return type(value) is list and tuple(map(type, value)) in {(str, k) for k in kinds}

    return takes


def _is_nothing(value: Any) -> bool:
    return value is None


def _is_text(value: Any) -> bool:
    return type(value) is str


def _is_pace(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < math.inf


def _is_opening(value: Any) -> bool:
    return type(value) is dict and all(type(k) is str and type(v) is bool for k, v in value.items())


#: What is wished for with a command.
_WISHES: dict[str, Any] = {
    "break": BreakpointWish,
    "watch": WatchWish,
    "replace": Replacement,
    "record": RecordWish,
    "replay": ReplayWish,
    "move": MoveWish,
}
#: Commands whose value is a number: of seconds, of steps a second, 1 or 0.
_PACES = ("pace", "trace", "stop_at_nan")
_PLAIN = (
    "pause", "resume", "stop", "step_op", "step_iteration", "step_out", "step_run", "step_back",
    "record", "run",
)  # fmt: skip
#: What commands take besides wishes.
_VALUES: dict[str, _Takes] = {
    **dict.fromkeys(_PACES, _is_pace),
    **dict.fromkeys(("unbreak", "enable", "disable"), _is("int")),
    **dict.fromkeys(_PLAIN, _is_nothing),
    "level": _in("graph", "lowered", "partitions"),
}
#: What may be chosen.
_CHOICES: dict[str, _Takes] = {
    "selection": _is("str | None"),
    "iteration": lambda value: value is None or _pair(int)(value),
    "open_scopes": _is_opening,
    "find": _is_text,
    "isolated": _is_text,
    "fetches": _is("tuple[str, ...]"),
    "feed": _pair(str, type(None)),
    "baseline": _is("int | None"),
    "step": _is("int | None"),
    "heat": _in(*HEATS),
}
_READERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "connect": _connect,
    "command": _command,
    "choose": _choose,
    **{_kind(c): _from_view(c) for c in (Disconnect, Alive, Ack, *answer_types())},
}
