"""Generates the front end's message types from `flowscope.live.protocol.schema`.

python -m flowscope.live.protocol.typescript > labextension/src/wire/messages.ts
"""

from __future__ import annotations

import collections.abc
import dataclasses
import inspect
import json
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, get_args, get_origin

from flowscope.live.protocol import schema
from flowscope.live.protocol.questions import Answer, Question, answer_types, message_types
from flowscope.live.protocol.schema import Table

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
    parts = [
        "// Generated from flowscope.live.protocol.schema by flowscope.live.protocol.typescript:"
        " do not edit."
    ]
    parts.append(f"export const PROTOCOL = {schema.PROTOCOL};")
    columns = "".join(f'  {name}: "{kind}",\n' for name, kind in schema.COLUMNS.items())
    parts.append("/** How the fields of a node travel. */")
    parts[-1] += f"\nexport const COLUMNS = {{\n{columns}}} as const;"
    parts += [_interface(c) for c in message_types()]
    answers = answer_types()
    of_base: dict[type, Iterable[type]] = {Answer: answers.values(), Question: answers}
    for name in ("FromKernel", "FromView"):
        members = [c for m in get_args(getattr(schema, name)) for c in of_base.get(m, [m])]
        parts.append(f"export type {name} = {' | '.join(c.__name__ for c in members)};")
    parts.append(_questions(answers))
    return "\n\n".join(parts) + "\n"


def _questions(answers: Mapping[type[Question], type[Answer]]) -> str:
    """The types and the table of all questions."""
    types, rows = [], []
    for asks, answer in answers.items():
        kind = asks.kind
        tables = json.dumps([list(path) for path in _tables(answer)])
        types.append(f"  readonly {kind}: readonly [{asks.__name__}, {answer.__name__}];")
        rows.append(f'  {kind}: {{ answer: "{answer.kind}", tables: {tables} }},')
    return "\n".join([
        "/** Questions and their answers, by the questions' kinds. */",
        "export interface Questions {", *types, "}", "",
        "/** Of each question: the kind of its answer, and where that has tables. */",
        "export const QUESTIONS = {", *rows, "} as const;",
    ])  # fmt: skip


def _tables(kind: Any) -> Iterator[tuple[str, ...]]:
    """The paths of the tables of a class: names of fields, and "*" for all items of a list."""
    for field, hint in typing.get_type_hints(kind).items():
        inner = [a for a in (get_args(hint) or (hint,)) if a is not type(None)]
        is_list = get_origin(hint) is tuple
        for one in inner:
            if one is Table:
                yield (field, "*") if is_list else (field,)
            elif dataclasses.is_dataclass(one):
                for path in _tables(one):
                    yield (field, "*", *path) if is_list else (field, *path)


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
