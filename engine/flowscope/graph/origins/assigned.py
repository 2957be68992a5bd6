"""The Python variable that a line of the user's assigns, read from its source by `ast`.

Bytecode knows which expression an instruction belongs to. Where that expression is the whole value
of an assignment, what it made has the variable's name; where it is the whole value of a `return`,
the caller's expression decides. Nothing of the source is executed.
"""

from __future__ import annotations

import ast
import linecache
import weakref
from collections.abc import Iterator
from types import CodeType

#: Where an expression stands: first and last line, first and last column.
_Span = tuple[int | None, int | None, int | None, int | None]

#: In place of a name: the value is handed to the caller.
_RETURNED = ""
_MOST_FILES = 256
#: File name -> its lines, and what each expression of interest is assigned to.
_names: dict[str, tuple[list[str], dict[_Span, str]]] = {}
#: By the id of a code object that lives: where the expressions of its instructions stand.
_spans: dict[int, list[_Span]] = {}


def variable_of(frames: tuple[CodeType | int, ...]) -> str:
    """Returns the variable that takes what the frames make, "" if there is none.

    Args:
        frames: Code objects and instructions of the user's frames, in turn, innermost first.
    """
    for code, instruction in zip(frames[::2], frames[1::2], strict=True):
        name = _name_at(code, instruction)  # type: ignore[arg-type]
        if name != _RETURNED:
            return name or ""
    return ""


def _name_at(code: CodeType, instruction: int) -> str | None:
    spans = _spans.get(id(code))
    if spans is None:
        spans = _spans[id(code)] = list(code.co_positions())
        weakref.finalize(code, _spans.pop, id(code), None).atexit = False
    if not 0 <= instruction // 2 < len(spans):
        return None
    return _names_in(code.co_filename).get(spans[instruction // 2])


def _names_in(filename: str) -> dict[_Span, str]:
    lines = linecache.getlines(filename)
    known = _names.get(filename)
    if known is not None and known[0] is lines:
        return known[1]
    if len(_names) >= _MOST_FILES:
        _names.clear()
    try:
        found = dict(_assignments(ast.parse("".join(lines))))
    except (SyntaxError, ValueError, RecursionError):
        # A file may have been changed since it was imported, and need not be whole now.
        found = {}
    _names[filename] = lines, found
    return found


def _assignments(tree: ast.AST) -> Iterator[tuple[_Span, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _pairs(target, node.value)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            yield from _pairs(node.target, node.value)
        elif isinstance(node, ast.AugAssign):
            yield _span(node), _name_of(node.target)
        elif isinstance(node, ast.Return) and node.value is not None:
            yield from _spans_of(node.value, _RETURNED)
        elif isinstance(node, ast.Lambda):
            yield from _spans_of(node.body, _RETURNED)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[_Span, str]]:
    """Goes into tuples on both sides: `w, b = f(), g()`."""
    if not isinstance(target, ast.Tuple | ast.List):
        name = _name_of(target)
        if name:
            yield from _spans_of(value, name)
    elif isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts):
        for inner, one in zip(target.elts, value.elts, strict=True):
            yield from _pairs(inner, one)


def _name_of(target: ast.expr) -> str:
    """`w` of `w`, of `self.w` and of `weights["w"]`."""
    if isinstance(target, ast.Name):
        return target.id
    if isinstance(target, ast.Attribute):
        return target.attr
    key = target.slice if isinstance(target, ast.Subscript) else None
    return key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else ""


def _spans_of(value: ast.expr, name: str) -> Iterator[tuple[_Span, str]]:
    """The span of an expression; bytecode lets a method's call over lines begin at its name."""
    yield _span(value), name
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        line, end = value.func.end_lineno, value.func.end_col_offset
        if line != value.lineno and end is not None:
            start = end - len(value.func.attr.encode())
            yield (line, value.end_lineno, start, value.end_col_offset), name


def _span(node: ast.expr | ast.stmt) -> _Span:
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset


__all__ = ["variable_of"]
