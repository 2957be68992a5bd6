"""Attributes as text: written, and read by a scanner.

None, True, False, numbers, strings in double quotes, bytes (b'...') and dtypes (float32) are
themselves. A tuple is [1, 2], with ? for None in it: a shape reads [?,2]. An array is its dtype and
its values, float32([[1.0], [2.0]]); where decimals do not give the bits, and where it is large,
float32(base64="...", shape=[2,1]), or in a shortened text float32(..., shape=[2,1]). A NumPy scalar
is np.float32(1.0). What is known of a tensor is dtype and shape, float32[?,2]; for a handle "of"
and the same of its variable follow. @f is the function f.
"""

from __future__ import annotations

import ast
import json
import math
import re
from typing import Any

import numpy as np

from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.constant import Literal
from flowscope.graph.op import Spec
from flowscope.graph.serialization import values
from flowscope.graph.serialization.definition import FunctionName
from flowscope.graph.values.dtypes import ALL, DType, of_numpy
from flowscope.graph.values.string_values import boxed

NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*", re.ASCII)
#: Arrays of more elements are shortened, or written as base64.
INLINE_SIZE = 32

_DTYPES = {d.name: d for d in ALL}
_WORDS: dict[str, Any] = {
    "None": None, "True": True, "False": False, "inf": math.inf, "nan": math.nan
}  # fmt: skip
_PLAIN = frozenset({type(None), bool, int, float, complex})


# -- writing --------------------------------------------------------------------------------------


def write(value: Any, exact: bool) -> str:
    """Returns the value's text; raises DTypeError for what cannot be written."""
    kind = type(value)
    if kind in _PLAIN:
        return repr(value)
    if kind is tuple:
        return f"[{_parts(value, exact)}]"
    if isinstance(value, bytes):
        return repr(bytes(value))
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, DType):
        return value.name
    if isinstance(value, Literal):
        return _array(value.array, exact)
    if isinstance(value, np.number | np.bool_):
        return f"np.{_array(value, exact)}"
    if isinstance(value, Spec):
        return f"{value} of {write(value.variable, exact)}" if value.variable else str(value)
    if isinstance(value, FunctionName):
        return f"@{name_text(value.name)}"
    values.encode(value)  # says what cannot be written
    raise DTypeError(f"a value of type {kind.__name__} cannot be written as text")


def _parts(value: tuple[Any, ...], exact: bool) -> str:
    comma = "," if all(v is None or type(v) is int for v in value) else ", "
    return comma.join("?" if v is None else write(v, exact) for v in value)


def name_text(name: str) -> str:
    """Returns a name of an operation, in double quotes if it has unusual characters."""
    return name if NAME.fullmatch(name) else quoted(name)


def quoted(text: str) -> str:
    """Returns `text` in double quotes, on one line."""
    return json.dumps(text, ensure_ascii=not text.isprintable())


def _array(array: Any, exact: bool) -> str:
    array = np.asarray(boxed(array))
    dtype = of_numpy(array.dtype)
    shape = f"shape=[{','.join(map(str, array.shape))}]"
    if array.size > INLINE_SIZE and not exact:
        return f"{dtype}(..., {shape})"
    if dtype.kind == "s":
        items = [repr(bytes(v)) for v in array.reshape(-1).tolist()]
    else:
        items = [str(v) for v in array.reshape(-1)] if array.size <= INLINE_SIZE else []
        if array.size > INLINE_SIZE or not _is_exact(items, array, dtype):
            data = values.to_base64(values.little_endian(array))
            return f'{dtype}(base64="{data}", {shape})'
    tail = f", {shape}" if array.size == 0 else ""
    return f"{dtype}({_nested(items, array.shape)}{tail})"


def _is_exact(items: list[str], array: Any, dtype: DType) -> bool:
    try:
        back = _numbers([_number(i) for i in items], dtype, array.shape)
    except InvalidArgumentError:
        return False
    return bool(np.asarray(back).tobytes() == array.tobytes())


def _nested(items: list[str], shape: tuple[int, ...]) -> str:
    if not shape:
        return items[0]
    if not items:
        return "[]"
    step = len(items) // shape[0]
    rows = [_nested(items[i : i + step], shape[1:]) for i in range(0, len(items), step)]
    return f"[{', '.join(rows)}]"


def _number(text: str) -> Any:
    word = text.lstrip("-")
    if word in _WORDS:
        return -_WORDS[word] if text[0] == "-" else _WORDS[word]
    if word.isdigit():
        return int(text)
    return complex(text) if "j" in text else float(text)


#: Types of the values that stand for elements, by the dtype's kind.
_KINDS: dict[str, tuple[type, ...]] = {
    "f": (int, float), "c": (int, float, complex), "i": (int,), "u": (int,), "b": (bool,)
}  # fmt: skip


def _numbers(items: list[Any], dtype: DType, shape: tuple[int, ...]) -> Any:
    wanted = _KINDS.get(dtype.kind, ())
    if any(type(v) not in wanted for v in items):
        raise InvalidArgumentError(f"expected values of {dtype}, got others")
    try:
        with np.errstate(over="ignore"):
            return values.shaped(np.array(items, dtype.np_dtype), shape)
    except OverflowError:
        raise InvalidArgumentError(f"a value is beyond the range of {dtype}") from None


def _from_base64(text: Any, dtype: DType, shape: tuple[int, ...]) -> Any:
    return values.from_bytes(values.from_base64(text), dtype, shape)


# -- reading --------------------------------------------------------------------------------------

_BLANKS = (" ", "\t")
_SPACE = re.compile(r"[ \t]*")
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_BYTES = re.compile(r"""b'(?:[^'\\]|\\.)*'|b"(?:[^"\\]|\\.)*\"""")
_NUMBER = re.compile(
    r"-?(?:\d+\.?\d*(?:e[+-]?\d+)?|inf\b|nan\b)(?![\w.])|\([-+.\w]*j\)|[-+.\w]*j(?!\w)", re.ASCII
)
_SHAPE = re.compile(r"\[(?:\.\.\.|[\d?, ]*)\]", re.ASCII)
_WORD = re.compile(r"[A-Za-z_][\w.]*", re.ASCII)


class Scanner:
    """Reads one line from left to right; all that is unexpected is an InvalidArgumentError."""

    def __init__(self, text: str, number: int) -> None:
        self.text = text
        self.at = 0
        self.number = number

    def fail(self, expected: str) -> InvalidArgumentError:
        """Returns the error that says what was expected here, and what came."""
        rest = self.text[self.at :].strip()
        came = rest if len(rest) <= 20 else rest[:20] + "..."
        if not rest:
            return self.wrong(f"expected {expected}, got the end of the line")
        return self.wrong(f"expected {expected}, got {came!r}")

    def wrong(self, message: str) -> InvalidArgumentError:
        """Returns an error about this line."""
        line = f"line {self.number}, column {self.at + 1}"
        return InvalidArgumentError(f"{line}: {message}\n  {self.text.strip()[:200]}")

    def skip(self) -> None:
        """Passes over blanks."""
        if self.text.startswith(_BLANKS, self.at):
            self.at = _SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]

    def find(self, pattern: re.Pattern[str]) -> str | None:
        """The match here, behind blanks, and moves behind it; None if nothing matches."""
        if self.text.startswith(_BLANKS, self.at):
            self.skip()
        found = pattern.match(self.text, self.at)
        if found is None or found.end() == self.at:
            return None
        self.at = found.end()
        return found.group()

    def has(self, mark: str) -> bool:
        """Passes over `mark` if it stands here."""
        if self.text.startswith(_BLANKS, self.at):
            self.skip()
        if not self.text.startswith(mark, self.at):
            return False
        self.at += len(mark)
        return True

    def need(self, mark: str, expected: str | None = None) -> None:
        """Passes over `mark`, which must stand here."""
        if not self.has(mark):
            raise self.fail(expected or repr(mark))

    def is_done(self) -> bool:
        """Whether nothing is left."""
        self.skip()
        return self.at == len(self.text)

    def end(self) -> None:
        """Checks that nothing is left."""
        if not self.is_done():
            raise self.fail("the end of the line")

    # -- values ---------------------------------------------------------------------------------

    def value(self) -> Any:
        """Reads a value."""
        if self.has("["):
            return self._tuple()
        if self.has("@"):
            return FunctionName(self.name("a function's name"))
        for pattern, read in _TOKENS:
            token = self.find(pattern)
            if token is not None:
                return self._checked(read, token)
        word = self.find(_WORD)
        if word is None:
            raise self.fail("a value")
        if word in _WORDS:
            return _WORDS[word]
        return self._typed(word)

    def name(self, expected: str) -> str:
        """Reads a name, in double quotes or without; `expected` says of what."""
        text = self.find(STRING)
        if text is not None:
            found: str = self._checked(json.loads, text)
            return found
        return self.token(NAME, expected)

    def token(self, pattern: re.Pattern[str], expected: str) -> str:
        """Reads what must match here."""
        found = self.find(pattern)
        if found is None:
            raise self.fail(expected)
        return found

    def spec(self, dtype: DType) -> Spec:
        """Reads a shape behind a dtype, and the variable's Spec of a handle."""
        inner = self.token(_SHAPE, "a shape like [?,2]")[1:-1].strip()
        sizes = [d.strip() for d in inner.split(",")] if inner else []
        if inner != "..." and not all(d == "?" or d.isdigit() for d in sizes):
            raise self.wrong(f"expected a shape like [?,2], got [{inner}]")
        if inner == "...":
            return Spec(dtype, None)
        dims = [None if d == "?" else self.integer(d) for d in sizes]
        return Spec(dtype, self._checked(values.read_dims, dims))

    def integer(self, digits: str) -> int:
        """Returns the integer that a text of digits says."""
        if len(digits) > 20:
            raise self.wrong(f"expected an integer of at most 64 bits, got {digits[:20]}...")
        return int(digits)

    def _checked(self, read: Any, *arguments: Any) -> Any:
        try:
            return read(*arguments)
        except InvalidArgumentError as e:
            raise self.wrong(e.message) from None
        except (ValueError, SyntaxError):
            raise self.wrong(f"expected a value, got {arguments[0]!r}") from None

    def _tuple(self) -> tuple[Any, ...]:
        try:
            return tuple(self._items())
        except RecursionError:
            raise self.wrong("brackets are nested too deep") from None

    def _items(self) -> list[Any]:
        items: list[Any] = []
        if self.has("]"):
            return items
        while True:
            items.append(None if self.has("?") else self.value())
            if self.has("]"):
                return items
            self.need(",", "',' or ']'")

    def _typed(self, word: str) -> Any:
        """Reads what begins with a dtype: the dtype itself, an array, or a NumPy scalar."""
        is_scalar = word.startswith("np.")
        dtype = _DTYPES.get(word.removeprefix("np."))
        if dtype is None:
            raise self.wrong(f"expected a value or a dtype, got {word!r}")
        if not is_scalar and self.text.startswith("[", self.at):
            spec = self.spec(dtype)
            if not self.has("of "):
                return spec
            return Spec(dtype, spec.shape, variable=self._variable())
        if not is_scalar and not self.has("("):
            return dtype
        if is_scalar:
            self.need("(")
        array = self._array(dtype)
        self.need(")", "')'")
        if is_scalar and not isinstance(array, np.generic):
            raise self.wrong("expected one number")
        return array if is_scalar else Literal(array)

    def _variable(self) -> Spec:
        found = self.value()
        if isinstance(found, Spec):
            return found
        raise self.wrong("expected a dtype with a shape, like float32[?,2], behind 'of'")

    def _array(self, dtype: DType) -> Any:
        if self.has("..."):
            raise self.wrong(
                "the values were left out when this text was written: write it with exact=True"
            )
        if self.has("base64="):
            data = self.value()
            shape = self._shape()
            return self._checked(_from_base64, data, dtype, shape)
        flat, shape = self._flat(self.value())
        if self.has(","):
            self.at -= 1
            shape = self._shape()
            if math.prod(shape) != len(flat):
                raise self.wrong(f"expected {math.prod(shape)} values, got {len(flat)}")
        if dtype.kind != "s":
            return self._checked(_numbers, flat, dtype, shape)
        if not all(type(v) is bytes for v in flat):
            raise self.wrong("expected strings like b'text'")
        return self._checked(values.strings, flat, shape)

    def _shape(self) -> tuple[int, ...]:
        self.need(",", "', shape='")
        self.need("shape=")
        found = self.value()
        return self._checked(values.read_sizes, list(found) if type(found) is tuple else found)  # type: ignore[no-any-return]

    def _flat(self, value: Any) -> tuple[list[Any], tuple[int, ...]]:
        """Returns the elements of nested tuples, and their shape."""
        if type(value) is not tuple:
            return [value], ()
        parts = [self._flat(v) for v in value]
        inner = {shape for _, shape in parts}
        if len(inner) > 1:
            raise self.wrong("expected rows of one length")
        flat = [v for items, _ in parts for v in items]
        return flat, (len(value), *next(iter(inner), ()))


_TOKENS = (
    (STRING, json.loads),
    (_BYTES, ast.literal_eval),
    (_NUMBER, _number),
)
