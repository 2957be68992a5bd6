"""Writes docs/ops.md, all public names and op types: `python -m flowscope.ops.reference`.

What dtypes an op takes is found by trying: its shape rule is asked with inputs of unknown shape,
for each dtype of each input, until some choice for the other inputs is accepted.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import sys
import types
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from flowscope.errors import OpError
from flowscope.graph.op import Op, Spec, all_ops, has_kernel
from flowscope.graph.unsupported import as_markdown
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import DType

#: Where the page lies, seen from the repository's top folder.
PAGE = "docs/ops.md"
_HEAD = """# Names and ops

Written by `python -m flowscope.ops.reference`; a test keeps it true.

## Functions and classes

`fs.f, fs.math.f` are names of one function. Behind what a class is stand its methods and
attributes.
"""
_VALUES = """
## Values

| name | value |
|---|---|
"""
_OPS = """
## Op types

Per input the dtypes that it takes; `*` behind an input: any number of them. "value" stands for all
but handles and arrays of tensors, "number" for float, integer and complex, "float" for float16,
bfloat16, float32 and float64, "integer" for those of 8 to 64 bits, signed or not, "tiny" for
float8, int2, int4 and their kin, "quantised" for qint8 and its kin. "∂" stands for a gradient, and
"GPU" for a kernel that runs there too.
"""
#: Groups of dtypes by the name that the page gives them, the widest first.
_GROUPS: dict[str, frozenset[DType]] = {
    "any": frozenset(dtypes.ALL),
    "value": frozenset(d for d in dtypes.ALL if d.kind in "fiucbsqenm"),
} | {
    name: frozenset(d for d in dtypes.ALL if d.kind in kinds)
    for name, kinds in {
        "number": "fiuc",
        "float": "f",
        "integer": "iu",
        "signed integer": "i",
        "unsigned integer": "u",
        "complex": "c",
        "tiny": "enm",
        "quantised": "q",
    }.items()
}
#: What other inputs are tried with, besides the dtype itself; many inputs with the first of these.
_OTHERS = (dtypes.int32, dtypes.int64, dtypes.bool_, dtypes.float32, dtypes.string, dtypes.resource)
#: Values for attributes without a default, by name and by type.
_BY_NAME: dict[str, Any] = {"equation": "...ij->...ij", "dtype": dtypes.float32, "num": 2, "n": 2}
_BY_TYPE: dict[str, Any] = {
    "int": 1, "bool": False, "str": "", "float": 1.0, "DType": dtypes.float32, "Dims": (2,),
    "Axes": (0,), "tuple": (), "index_dtype": dtypes.int32,
}  # fmt: skip


def page() -> str:
    """Returns the page's text."""
    topics, values = _entries()
    parts = [_HEAD]
    for topic, rows in topics.items():
        parts.append(f"\n### {topic}\n\n| name | what |\n|---|---|\n")
        parts += [
            f"| `{', '.join(names)}{_signature(f)}` | {_line(f)}{_members(f)} |\n"
            for f, names in rows
        ]
    parts.append(_VALUES)
    parts += [f"| `{', '.join(names)}` | {_shown(value)} |\n" for value, names in values]
    parts.append(_OPS + "\n| op | inputs | | devices | what |\n|---|---|---|---|---|\n")
    for name, cls in sorted(all_ops().items()):
        if cls.__module__.startswith("flowscope."):
            parts.append(_op_row(name, cls))
    return "".join(parts)


# -- names ----------------------------------------------------------------------------------------

Rows = list[tuple[Any, list[str]]]


def _entries() -> tuple[dict[str, Rows], Rows]:
    """The public names: the functions and classes by topic, and the values.

    A topic is the first line of the module in which something is defined.
    """
    found: dict[int, tuple[Any, list[str]]] = {}
    for name, value in public_names():
        found.setdefault(id(value), (value, []))[1].append(name)
    rows = [(value, sorted(names, key=_depth)) for value, names in found.values()]
    rows.sort(key=lambda row: row[1][0])
    topics: dict[str, Rows] = {}
    for value, names in rows:
        if callable(value):
            topics.setdefault(_topic(value), []).append((value, names))
    return dict(sorted(topics.items())), [row for row in rows if not callable(row[0])]


def _topic(value: Any) -> str:
    module = sys.modules.get(getattr(value, "__module__", ""))
    return ((module and module.__doc__) or "Others").partition("\n")[0].rstrip(".")


def _depth(name: str) -> tuple[int, str]:
    return name.count("."), name


def public_names() -> Iterator[tuple[str, Any]]:
    """Yields the public names and what they stand for: `fs.x`, `fs.part.x`, and so on."""
    # Found at run time: the op library imports nothing above itself.
    yield from _names_of("fs", import_module("flowscope"))


def _names_of(prefix: str, module: types.ModuleType) -> Iterator[tuple[str, Any]]:
    for name in sorted(_exported(module)):
        value = getattr(module, name)
        if isinstance(value, types.ModuleType):
            yield from _names_of(f"{prefix}.{name}", value)
        else:
            yield f"{prefix}.{name}", value


def _exported(module: types.ModuleType) -> set[str]:
    """The public names of a module: what it imports by `as` or `*`, and its `__all__`.

    Where it has none, what it defines counts.
    """
    listed = getattr(module, "__all__", None)
    found = set(listed or ())
    for statement in ast.parse(Path(str(module.__file__)).read_text("utf-8")).body:
        if listed is None or isinstance(statement, ast.ImportFrom):
            found |= _made_by(statement)
    return {n for n in found if not n.startswith("_")}


def _made_by(statement: ast.stmt) -> set[str]:
    """Returns the names that a statement of a module shows."""
    match statement:
        case ast.FunctionDef() | ast.ClassDef():
            return {statement.name}
        case ast.Assign():
            targets = [e for t in statement.targets for e in getattr(t, "elts", [t])]
            return {t.id for t in targets if isinstance(t, ast.Name)}
        case ast.AnnAssign(target=ast.Name(id=name)):
            return {name}
        case ast.ImportFrom(module=str(source), names=[ast.alias(name="*")]):
            return set(import_module(source).__all__)
        case ast.ImportFrom():
            return {a.asname for a in statement.names if a.asname}
    return set()


def _members(value: Any) -> str:
    """Returns the names of a class's own methods and attributes, as a list behind its row."""
    if not isinstance(value, type):
        return ""
    plain = {n for base in value.__mro__ if base.__module__ == "builtins" for n in dir(base)}
    names = [n for n in dir(value) if not n.startswith("_") and n not in plain]
    return f" ({', '.join([f'`{n}`' for n in names])})" if names else ""


def _shown(value: Any) -> str:
    if isinstance(value, DType):
        return f"an element type, {value.size * 8} bits" if value.kind not in "srv" else "a type"
    return f"`{value!r}`" if isinstance(value, int | str | None) else f"a {type(value).__name__}"


def _signature(function: Callable[..., Any]) -> str:
    """Returns the parameters and their defaults, without types."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return "(...)"
    plain = [p.replace(annotation=p.empty, default=_named_default(p)) for p in parameters]
    return str(inspect.Signature(plain)).replace("|", "\\|")


def _named_default(parameter: inspect.Parameter) -> Any:
    default = parameter.default
    is_named = callable(default) and default is not parameter.empty
    return _Name(default) if is_named else default


class _Name:
    """A default that is a function or a class, by its name: its text would hold an address."""

    def __init__(self, what: Any) -> None:
        self._what = what

    def __repr__(self) -> str:
        return str(getattr(self._what, "__name__", self._what))


def _line(what: Any) -> str:
    doc = inspect.getdoc(what) or ""
    first = " ".join(doc.partition("\n\n")[0].split())
    return first.replace("|", "\\|")


# -- op types -------------------------------------------------------------------------------------


def _op_row(name: str, cls: type[Op]) -> str:
    op = _example(cls)
    inputs = "?" if op is None else _inputs(op)
    has_gradient = cls.is_differentiable and cls.grad is not Op.grad
    devices = [d for d in ("CPU", "GPU") if op is not None and has_kernel(op, d)] or cls.devices
    mark = "∂" if has_gradient else ""
    return f"| `{name}` | {inputs} | {mark} | {' '.join(devices)} | {_line(cls)} |\n"


def _example(cls: type[Op]) -> Op | None:
    """Returns an op of the class with some attributes, None if none could be guessed."""
    known: dict[str, Any] = {}
    for f in dataclasses.fields(cls):
        if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING:
            kind = str(f.type).split("[", 1)[0].split("|", 1)[0].strip()
            known[f.name] = _BY_NAME.get(f.name, _BY_TYPE.get(f.name, _BY_TYPE.get(kind)))
    try:
        return cls(**known)
    except (OpError, TypeError, ValueError):
        return None


def _inputs(op: Op) -> str:
    """Returns each input's name and the dtypes that it takes."""
    parameters = list(inspect.signature(op.infer).parameters.values())
    if not parameters:
        return ""
    names = [p.name for p in parameters]
    many = parameters[-1].kind is inspect.Parameter.VAR_POSITIONAL
    taken = [_taken(op, i, len(names)) for i in range(len(names))]
    if not all(taken):  # they depend on each other in ways that are not tried
        return ", ".join(names)
    texts = [f"{n}{'*' if many and i == len(names) - 1 else ''}: {_named(taken[i])}"
             for i, n in enumerate(names)]  # fmt: skip
    return "; ".join(texts)


def _taken(op: Op, place: int, count: int) -> frozenset[DType]:
    """Returns the dtypes that an op takes as one of its inputs."""
    return frozenset(d for d in dtypes.ALL if _is_taken(op, d, place, count))


def _is_taken(op: Op, dtype: DType, place: int, count: int) -> bool:
    last = list(inspect.signature(op.infer).parameters.values())[-1]
    most = _MOST if last.kind is inspect.Parameter.VAR_POSITIONAL else 1
    others_tried = _OTHERS if count < 4 else _OTHERS[:4]
    choices = [dtype, *(d for d in others_tried if d is not dtype)]
    # Of many inputs the first ones are chosen freely, the others alike.
    free = min(count - 1, 3)
    for others in itertools.product(choices, repeat=free):
        rest = list(others) + [others[-1]] * (count - 1 - free) if others else []
        if _accepts(op, [*rest[:place], dtype, *rest[place:]], dtype, most):
            return True
    return False


def _accepts(op: Op, kinds: list[DType], of_variable: DType, most: int) -> bool:
    """Whether the shape rule takes inputs of these dtypes; the last one may come `most` times."""
    held = dtypes.float32 if of_variable is dtypes.resource else of_variable
    for more in range(most):
        try:
            op.infer(*[_spec(d, held) for d in kinds + kinds[-1:] * more])
        except Exception:  # whatever a shape rule stumbles over: it does not take these
            continue
        return True
    return False


#: So many inputs at the end are tried.
_MOST = 3


def _spec(dtype: DType, held: DType) -> Spec:
    if dtype is dtypes.resource:
        return Spec(dtype, (), variable=Spec(held, None))
    return Spec(dtype, None)


def _named(found: frozenset[DType]) -> str:
    """Returns a set of dtypes in words, groups first."""
    if not found:
        return "?"
    words: list[str] = []
    left = set(found)
    for name, group in _GROUPS.items():
        if group <= left:
            words.append(name)
            left -= group
    words += [d.name for d in dtypes.ALL if d in left]
    return ", ".join(words)


def main() -> None:
    """Writes the pages into the repository in which the package lies."""
    root = Path(__file__).resolve().parents[3]
    (root / PAGE).write_text(page(), encoding="utf-8")
    (root / "docs/unsupported.md").write_text(as_markdown(), encoding="utf-8")


if __name__ == "__main__":
    main()
