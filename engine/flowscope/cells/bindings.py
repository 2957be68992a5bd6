"""Which tensors the user's names stand for: what later cells mean when they take one.

Operations without a name of their own are named by their type, counted. A line that is put before
others shifts these names: what had been "add:0" is "add_1:0" now, and "add:0" is another thing. An
operation of a later cell has taken the value of `a`, though, so where `a` has moved on to another
tensor, that operation no longer takes what its code says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

from flowscope.graph.operation import Operation, Tensor

#: Longer lists and larger objects are not looked through.
LONG = 1000


def bindings(names: Mapping[str, Any]) -> dict[str, Tensor]:
    """Returns the tensors (for variables: their handles) by the expressions that lead to them.

    Args:
        names: Values by name; lists, tuples, dicts and objects among them are looked into.
    """
    found = {}
    for name, value in list(names.items()):
        if name.startswith("_") or name in ("In", "Out"):
            continue
        tensor = _tensor(value)
        if tensor is not None:
            found[name] = tensor
        else:
            inner = ((f"{name}{path}", _tensor(one)) for path, one in _inside(value))
            found.update({path: one for path, one in inner if one is not None})
    return found


def _tensor(value: Any) -> Tensor | None:
    if isinstance(value, Operation):
        return None
    handle = getattr(value, "handle", value) if _is_ours(value) else None
    return handle if isinstance(handle, Tensor) else None


def _is_ours(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "flowscope"


def _inside(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, list | tuple) and len(value) <= LONG:
        yield from ((f"[{i}]", one) for i, one in enumerate(value))
    elif isinstance(value, dict) and len(value) <= LONG:
        yield from ((f"[{key!r}]", one) for key, one in list(value.items()))
    elif _is_looked_into(value):
        yield from ((f".{key}", one) for key, one in list(vars(value).items()))


def _is_looked_into(value: Any) -> bool:
    if isinstance(value, type | ModuleType) or _is_ours(value) or callable(value):
        return False
    return len(getattr(value, "__dict__", ())) in range(1, LONG)


__all__ = ["bindings"]
