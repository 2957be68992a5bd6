"""Expressions: what an op computes of numbers, in a form that several languages are printed from.

An op declares its expression as text, `template = "xp.maximum({0}, 0)"`. The text is parsed once,
when the op's class is defined, into a tree of the kinds in `KINDS`; all that generates code prints
that tree: `python_text` for arrays and NumPy's scalars, `number_text` for Python's own numbers.
What has no kind here cannot be declared: so each printer knows all that it may meet.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Sequence
from typing import Any

from flowscope.errors import InvalidArgumentError

#: A kind of node: what Python writes between operands, or before the only one; how tightly that
#: binds; and NumPy's function that computes the same into an array, "" if there is none.
Kind = tuple[str, int, str]
#: Binds as tightly as a name: never in parentheses.
_ATOM = 20
#: Operators with one and two operands.
_UNARY: dict[str, Kind] = {"neg": ("-", 13, "negative"), "invert": ("~", 13, "")}
_BINARY: dict[str, Kind] = {
    "mul": ("*", 12, "multiply"),
    "div": ("/", 12, "divide"),
    "add": ("+", 11, "add"),
    "sub": ("-", 11, "subtract"),
    "and": ("&", 9, "bitwise_and"),
    "xor": ("^", 8, "bitwise_xor"),
    "or": ("|", 7, "bitwise_or"),
}
_COMPARISONS: dict[str, Kind] = {
    "lt": ("<", 6, ""),
    "le": ("<=", 6, ""),
    "gt": (">", 6, ""),
    "ge": (">=", 6, ""),
    "eq": ("==", 6, ""),
    "ne": ("!=", 6, ""),
}
#: All kinds. "input" is input number `value`; "number" a literal; "nothing" None; "either" is the
#: second operand if the first holds, else the third; "any" is true if one operand is; "ufunc" calls
#: NumPy's function `value`, "into" does so and writes to a given array; "method" calls a method of
#: the first operand; "abs" is Python's own function; "first" is the first entry of
#: a pair, "pair" makes one.
KINDS: dict[str, Kind] = {
    **_UNARY,
    **_BINARY,
    **_COMPARISONS,
    **dict.fromkeys(("input", "number", "nothing", "either", "pair"), ("", _ATOM, "")),
    **dict.fromkeys(("ufunc", "into", "method", "abs", "first"), ("", _ATOM, "")),
    "any": ("or", 3, ""),
}
#: Kinds that Python's words compute of its own bools.
_OF_BOOLS = {"and": "({0} and {1})", "or": "({0} or {1})", "invert": "(not {0})"}


class Expression(tuple[Any, ...]):
    """A node of an expression; two are equal if they compute the same in the same way.

    Attributes:
        kind: One of `KINDS`.
        operands: Expressions.
        value: The position of an input, a literal, or the name of a function.
    """

    __slots__ = ()

    @property
    def kind(self) -> str:
        """Its kind."""
        return self[0]  # type: ignore[no-any-return]

    @property
    def operands(self) -> tuple[Expression, ...]:
        """What it is computed of."""
        return self[1]  # type: ignore[no-any-return]

    @property
    def value(self) -> Any:
        """What is not computed."""
        return self[2]

    @property
    def may_overflow(self) -> bool:
        """Whether, of integers, it can leave their range."""
        return self.kind in ("add", "sub", "mul", "neg")

    def functions(self) -> frozenset[str]:
        """The names of NumPy's functions that it calls."""
        mine = [self.value] if self.kind in ("ufunc", "into") else []
        return frozenset(mine).union(*[one.functions() for one in self.operands])

    @property
    def is_logical(self) -> bool:
        """Whether, of bools, it is a logical operation."""
        return self.kind in _OF_BOOLS


def _node(kind: str, operands: tuple[Expression, ...] = (), value: Any = None) -> Expression:
    return Expression((kind, operands, value))


#: The first input, as it is.
FIRST = _node("input", value=0)


@functools.cache
def parsed(text: str) -> Expression:
    """The expression that a text declares: Python's, with `{0}`, `{1}` for inputs, `xp` for NumPy.

    Raises:
        InvalidArgumentError: it has something that no kind of expression stands for.
    """
    try:
        body = ast.parse(text.format(*[f"_{i}" for i in range(10)]), mode="eval").body
    except (SyntaxError, ValueError, LookupError) as error:
        raise InvalidArgumentError(f"expected an expression of inputs, got {text!r}") from error
    return _Parser(text).node(body)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text

    def node(self, found: ast.expr) -> Expression:
        match found:
            case ast.Name(id=name) if name[:1] == "_" and name[1:].isdigit():
                return _node("input", value=int(name[1:]))
            case ast.Constant(value=None):
                return _node("nothing")
            case ast.Constant(value=int() | float() as number):
                return _node("number", value=number)
            case ast.UnaryOp(op=op, operand=operand) if type(op) in _AST:
                return _node(_AST[type(op)], (self.node(operand),))
            case ast.BinOp(op=op, left=a, right=b) if type(op) in _AST:
                return _node(_AST[type(op)], (self.node(a), self.node(b)))
            case ast.Compare(left=a, ops=[op], comparators=[b]) if type(op) in _AST:
                return _node(_AST[type(op)], (self.node(a), self.node(b)))
            case ast.BoolOp(op=ast.Or(), values=values):
                return _node("any", self.nodes(values))
            case ast.IfExp(test=test, body=a, orelse=b):
                return _node("either", self.nodes([test, a, b]))
            case ast.Tuple(elts=[_, _] as entries):
                return _node("pair", self.nodes(entries))
            case ast.Subscript(value=pair, slice=ast.Constant(value=0)):
                return _node("first", (self.node(pair),))
            case ast.Call(func=ast.Name(id="abs"), args=[operand], keywords=[]):
                return _node("abs", (self.node(operand),))
            case ast.Call(func=ast.Attribute(value=owner, attr=name), args=arguments, keywords=[]):
                if isinstance(owner, ast.Name) and owner.id == "xp":
                    return _node("ufunc", self.nodes(arguments), name)
                return _node("method", self.nodes([owner, *arguments]), name)
        shown = ast.unparse(found)
        raise InvalidArgumentError(f"expected operators and xp's functions, got {shown!r} in "
                                   f"the expression {self._text!r}")  # fmt: skip

    def nodes(self, found: Sequence[ast.expr]) -> tuple[Expression, ...]:
        return tuple([self.node(one) for one in found])


#: The kinds that Python's operators stand for.
_AST: dict[type, str] = {
    ast.USub: "neg", ast.Invert: "invert", ast.Mult: "mul", ast.Div: "div", ast.Add: "add",
    ast.Sub: "sub", ast.BitAnd: "and", ast.BitXor: "xor", ast.BitOr: "or", ast.Lt: "lt",
    ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne",
}  # fmt: skip


def into_buffer(expression: Expression) -> Expression | None:
    """The expression with its outermost function writing to an array; None if that is no ufunc."""
    kind, operands, value = expression
    name = value if kind == "ufunc" else KINDS[kind][2]
    if not name or not is_ufunc(name):
        return None
    return _node("into", operands, name)


@functools.cache
def is_ufunc(name: str) -> bool:
    """Whether a function of NumPy's is computed element by element."""
    import numpy as np

    return isinstance(getattr(np, name, None), np.ufunc)


def python_text(
    expression: Expression, names: Sequence[str], xp: str = "xp", out: str = "out"
) -> str:
    """Python's text of an expression, of arrays and NumPy's scalars.

    Args:
        expression: The expression.
        names: What stands for the inputs.
        xp: The name of the array module.
        out: Where a function that writes to an array finds it.
    """
    return _python_pattern(expression, xp).format(*names, out=out)


@functools.cache
def _python_pattern(expression: Expression, xp: str) -> str:
    """The text with `{0}`, `{1}` for the inputs and `{out}` for the array written to."""
    return _Python(xp).text(expression)


class _Python:
    def __init__(self, xp: str) -> None:
        self._xp = xp

    def text(self, expression: Expression) -> str:
        kind, operands, value = expression
        if kind == "input":
            return f"{{{value}}}"
        if kind == "number":
            return repr(value)
        if kind == "nothing":
            return "None"
        if kind in _UNARY:
            symbol, precedence, _ = _UNARY[kind]
            return symbol + self._within(operands[0], precedence)
        if kind == "either":
            test, yes, no = map(self.text, operands)
            return f"({yes} if {test} else {no})"
        if kind in ("ufunc", "into", "method", "pair"):
            return self._call(kind, [*map(self.text, operands)], value)
        if kind == "abs":
            return f"abs({self.text(operands[0])})"
        if kind == "first":
            return f"{self.text(operands[0])}[0]"
        return self._joined(kind, operands)

    def _joined(self, kind: str, operands: tuple[Expression, ...]) -> str:
        symbol, precedence, _ = KINDS[kind]
        first, *others = operands
        # Comparisons do not chain; of equal precedence only the first needs no parentheses.
        parts = [self._within(first, precedence + (kind in _COMPARISONS))]
        parts += [self._within(other, precedence + 1) for other in others]
        return f" {symbol} ".join(parts)

    def _call(self, kind: str, texts: list[str], value: Any) -> str:
        if kind == "pair":
            return f"({', '.join(texts)})"
        if kind == "method":
            return f"{texts[0]}.{value}({', '.join(texts[1:])})"
        if kind == "into":
            texts = [*texts, "out={out}"]
        return f"{self._xp}.{value}({', '.join(texts)})"

    def _within(self, expression: Expression, precedence: int) -> str:
        text = self.text(expression)
        return f"({text})" if KINDS[expression.kind][1] < precedence else text


def number_text(expression: Expression, names: Sequence[str]) -> str:
    """Python's text of an expression, of Python's own integers, floats and bools."""
    written = _OF_BOOLS.get(expression.kind)
    if written is not None:
        return written.format(*[number_text(one, names) for one in expression.operands])
    return python_text(expression, names)


__all__ = [
    "FIRST",
    "KINDS",
    "Expression",
    "into_buffer",
    "is_ufunc",
    "number_text",
    "parsed",
    "python_text",
]
