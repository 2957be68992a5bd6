"""Conditions: a small language of comparisons over one value, for breakpoints and watchpoints.

    max > 3
    nan > 0 or inf > 0
    iteration >= 10 and 0.5 < mean <= 1
    not finite
    shape != (3, 4)

A condition is comparisons of numbers and names, joined by `and`, `or`, `not` and parentheses; sums,
products and the like of numbers and names are numbers. It is parsed, and what is no part of the
language is refused: nothing that was typed is ever executed.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from flowscope.errors import InvalidArgumentError


def _finite(value: Any) -> Any:
    return np.isfinite(value) if value.dtype.kind in "fc" else np.ones(value.shape, bool)


def _count(found: Any) -> int:
    return int(np.count_nonzero(found))


#: What a name means, of a value.
NAMES: Mapping[str, Callable[[Any], Any]] = {
    "value": lambda v: v,
    "min": np.min,
    "max": np.max,
    "mean": np.mean,
    "sum": np.sum,
    "norm": lambda v: np.sqrt(np.sum(np.square(np.abs(v), dtype=np.float64))),
    "nan": lambda v: _count(np.isnan(v)) if v.dtype.kind in "fc" else 0,
    "inf": lambda v: _count(np.isinf(v)) if v.dtype.kind in "fc" else 0,
    "finite": lambda v: bool(np.all(_finite(v))),
    "size": np.size,
    "rank": np.ndim,
    "shape": np.shape,
    "nbytes": lambda v: v.nbytes,
}
#: Names that stand for where the step is.
PLACES = ("iteration", "step", "hits")

_COMPARISONS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_ARITHMETIC: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
}
#: A condition has at most so many characters.
_LONGEST = 1000


class Condition:
    """A condition that was parsed.

    Args:
        text: The condition.

    Raises:
        InvalidArgumentError: if it is none.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            if len(text) > _LONGEST:
                raise _refused(f"at most {_LONGEST} characters")
            self._tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise _refused(f"a comparison such as max > 3, got {text!r}") from None
        _check(self._tree)

    def __call__(self, value: Any, places: Mapping[str, int]) -> bool:
        """Whether it holds.

        Args:
            value: The value.
            places: What `PLACES` stand for.
        """
        array = np.asarray(value)
        with np.errstate(all="ignore"):
            return bool(np.any(_computed(self._tree, array, places)))

    @property
    def asks_value(self) -> bool:
        """Whether it asks anything of the value, not only of where the step is."""
        return any(isinstance(n, ast.Name) and n.id in NAMES for n in ast.walk(self._tree))

    def __repr__(self) -> str:
        return self.text

    def __reduce__(self) -> tuple[type[Condition], tuple[str]]:
        return Condition, (self.text,)


def _refused(expected: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"a condition: expected {expected}")


def _check(tree: ast.expr) -> None:
    """Refuses what is no part of the language."""
    for node in ast.walk(tree):
        match node:
            case ast.BoolOp() | ast.And() | ast.Or() | ast.Compare() | ast.Load() | ast.BinOp():
                continue
            case ast.UnaryOp(op=ast.Not() | ast.USub()) | ast.Not() | ast.USub():
                continue
            case ast.cmpop() | ast.operator() if type(node) in (*_COMPARISONS, *_ARITHMETIC):
                continue
            case ast.Constant(value=bool() | int() | float()) | ast.Tuple():
                continue
            case ast.Name(id=name) if name in NAMES or name in PLACES:
                continue
            case ast.Name(id=name):
                known = ", ".join([*NAMES, *PLACES])
                raise _refused(f"names among {known}; got {name!r}")
        what = ast.unparse(node) if isinstance(node, ast.expr) else type(node).__name__
        raise _refused(f"comparisons of numbers and names, got {what!r}")


def _computed(tree: ast.expr, value: Any, places: Mapping[str, int]) -> Any:
    match tree:
        case ast.Constant(value=number):
            return number
        case ast.Tuple(elts=elements):
            return tuple([_computed(e, value, places) for e in elements])
        case ast.Name(id=name):
            return places[name] if name in PLACES else NAMES[name](value)
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return not np.any(_computed(inner, value, places))
        case ast.UnaryOp(operand=inner):
            return -_computed(inner, value, places)
        case ast.BinOp(left=left, op=how, right=right):
            pair = _computed(left, value, places), _computed(right, value, places)
            return _ARITHMETIC[type(how)](*pair)
        case ast.BoolOp(op=ast.And(), values=parts):
            return all(np.any(_computed(p, value, places)) for p in parts)
        case ast.BoolOp(values=parts):
            return any(np.any(_computed(p, value, places)) for p in parts)
        case ast.Compare(left=first, ops=hows, comparators=others):
            numbers = [_computed(one, value, places) for one in (first, *others)]
            found: Any = True
            for comparison, a, b in zip(hows, numbers, numbers[1:], strict=False):
                if isinstance(a, tuple) is not isinstance(b, tuple):
                    raise _refused("a shape beside a shape, such as shape != (3, 4)")
                found = found & _COMPARISONS[type(comparison)](a, b)
            return found
    raise _refused("a comparison")


__all__ = ["NAMES", "PLACES", "Condition"]
