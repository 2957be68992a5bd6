"""Writes docs/ops.md, the page of all op functions and types: `python -m flowscope.ops.reference`.

What dtypes an op takes is found by trying: its shape rule is asked with inputs of unknown shape,
for each dtype of each input, until some choice for the other inputs is accepted.
"""

from __future__ import annotations

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
from flowscope.graph import dtypes
from flowscope.graph.dtypes import DType
from flowscope.graph.op import Op, Spec, all_ops, has_kernel
from flowscope.graph.unsupported import as_markdown

#: Where the page lies, seen from the repository's top folder.
PAGE = "docs/ops.md"
_HEAD = """# Functions and ops

Written by `python -m flowscope.ops.reference`; a test keeps it true.

## Functions

`fs.f, fs.math.f` are names of one function.
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
    parts = [_HEAD]
    for topic, functions in _functions().items():
        parts.append(f"\n### {topic}\n\n| function | what |\n|---|---|\n")
        parts += [
            f"| `{', '.join(names)}{_signature(f)}` | {_line(f)} |\n" for f, names in functions
        ]
    parts.append(_OPS + "\n| op | inputs | | devices | what |\n|---|---|---|---|---|\n")
    for name, cls in sorted(all_ops().items()):
        if cls.__module__.startswith("flowscope."):
            parts.append(_op_row(name, cls))
    return "".join(parts)


# -- functions ------------------------------------------------------------------------------------


def _functions() -> dict[str, list[tuple[Callable[..., Any], list[str]]]]:
    """Returns the op functions with their names, by topic: the first line of their module."""
    found: dict[Any, list[str]] = {}
    for name, value in _public():
        if callable(value) and not isinstance(value, type):
            if getattr(value, "__module__", "").startswith("flowscope.ops."):
                found.setdefault(value, []).append(name)
    topics: dict[str, list[tuple[Callable[..., Any], list[str]]]] = {}
    for function, names in found.items():
        title = (sys.modules[function.__module__].__doc__ or "").partition("\n")[0].rstrip(".")
        topics.setdefault(title, []).append((function, sorted(names, key=_depth)))
    return {t: sorted(topics[t], key=lambda pair: pair[1][0]) for t in sorted(topics)}


def _depth(name: str) -> tuple[int, str]:
    return name.count("."), name


def _public() -> Iterator[tuple[str, Any]]:
    """Yields the public names and what they stand for: `fs.x` and `fs.part.x`."""
    # Found at run time: the op library imports nothing above itself.
    package = import_module("flowscope")
    for name, value in sorted(vars(package).items()):
        if name.startswith("_"):
            continue
        if not isinstance(value, types.ModuleType):
            yield f"fs.{name}", value
        elif value.__name__ == f"flowscope.{name}" and not hasattr(value, "__path__"):
            for inner, member in sorted(vars(value).items()):
                if not inner.startswith("_") and not isinstance(member, types.ModuleType):
                    yield f"fs.{name}.{inner}", member


def _signature(function: Callable[..., Any]) -> str:
    """Returns the parameters and their defaults, without types."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
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
