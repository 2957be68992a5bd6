"""Generates the front end's message types from `flowscope.live.protocol.schema`.

python -m flowscope.live.protocol.typescript > labextension/src/wire/messages.ts
"""

from __future__ import annotations

import collections.abc
import dataclasses
import inspect
import types
import typing
from typing import Any, Literal, get_args, get_origin

from flowscope.live.protocol import schema

_SCALARS = {
    object: "unknown",
    int: "number",
    float: "number",
    str: "string",
    bool: "boolean",
    type(None): "null",
}


def typescript() -> str:
    """Returns the text of messages.ts."""
    candidates = [c for c in vars(schema).values() if isinstance(c, type)]
    classes = [c for c in candidates if dataclasses.is_dataclass(c)]
    classes.sort(key=lambda c: (c.__module__, inspect.getsourcelines(c)[1]))
    parts = [
        "// Generated from flowscope.live.protocol.schema by flowscope.live.protocol.typescript:"
        " do not edit."
    ]
    parts.append(f"export const PROTOCOL = {schema.PROTOCOL};")
    columns = "".join(f'  {name}: "{kind}",\n' for name, kind in schema.COLUMNS.items())
    parts.append("/** How the fields of a node travel. */")
    parts[-1] += f"\nexport const COLUMNS = {{\n{columns}}} as const;"
    parts += [_interface(c) for c in classes]
    for name in ("FromKernel", "FromView"):
        members = " | ".join(c.__name__ for c in get_args(getattr(schema, name)))
        parts.append(f"export type {name} = {members};")
    return "\n\n".join(parts) + "\n"


def _interface(cls: type) -> str:
    hints = typing.get_type_hints(cls)
    fields = [f"  readonly {f.name}: {_type(hints[f.name])};" for f in dataclasses.fields(cls)]
    doc = inspect.cleandoc(cls.__doc__ or "").splitlines()[0]
    return "\n".join([f"/** {doc} */", f"export interface {cls.__name__} {{", *fields, "}"])


def _type(hint: Any) -> str:
    if hint in _SCALARS:
        return _SCALARS[hint]
    if dataclasses.is_dataclass(hint):
        return str(hint.__name__)  # type: ignore[union-attr]
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return " | ".join(f'"{a}"' for a in args)
    if origin in (types.UnionType, typing.Union):
        return " | ".join(_type(a) for a in args)
    if origin is dict:
        return f"Readonly<Record<{_type(args[0])}, {_type(args[1])}>>"
    if origin is tuple and len(args) == 2 and args[1] is Ellipsis:
        inner = _type(args[0])
        return f"readonly ({inner})[]" if " | " in inner else f"readonly {_array(inner)}[]"
    if origin is collections.abc.Sequence:
        return f"readonly {_type(args[0])}[]"
    if origin is tuple:
        return "readonly [" + ", ".join(_type(a) for a in args) + "]"
    raise TypeError(f"no TypeScript type for {hint!r}")


def _array(inner: str) -> str:
    return f"({inner})" if inner.startswith("readonly") else inner


if __name__ == "__main__":
    print(typescript(), end="")
