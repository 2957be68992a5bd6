"""Strings (bytes of any length) element by element. All of it runs on the CPU."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import broadcast
from flowscope.graph.values.work import per_element
from flowscope.ops.core.build import apply
from flowscope.ops.core.declare import op_function
from flowscope.ops.core.shape_rules import check_kind
from flowscope.ops.strings.formatting import layout
from flowscope.ops.strings.string_op import StringOp, as_strings, as_text, check_string

__all__ = [
    "as_string",
    "decode_base64",
    "encode_base64",
    "regex_replace",
    "string_join",
    "string_strip",
    "substr",
]


# -- one string -----------------------------------------------------------------------------------


@frozen
class StringLength(StringOp, out=dtypes.int32):
    """The number of bytes, or of characters in UTF-8."""

    unit: str = "BYTE"

    def one(self, s: bytes) -> int:
        if self.unit == "BYTE":
            return len(s)
        return sum((b & 0xC0) != 0x80 for b in s)


@frozen
class StringCase(StringOp):
    """Letters made small or capital, those of ASCII or all of UTF-8."""

    upper: bool
    encoding: str = ""

    def one(self, s: bytes) -> bytes:
        if not self.encoding:
            return s.upper() if self.upper else s.lower()
        found = s.decode(errors="replace")
        return (found.upper() if self.upper else found.lower()).encode()


class StringStrip(StringOp):
    """The string without white space at its ends."""

    def one(self, s: bytes) -> bytes:
        return s.strip()


class EncodeBase64(StringOp):
    """The string in web-safe base64, filled up with = at the end."""

    def one(self, s: bytes) -> bytes:
        return base64.urlsafe_b64encode(s)


class EncodeBase64Unpadded(StringOp):
    """The string in web-safe base64."""

    def one(self, s: bytes) -> bytes:
        return base64.urlsafe_b64encode(s).rstrip(b"=")


class DecodeBase64(StringOp):
    """What a string in web-safe base64 stands for.

    Raises: InvalidArgumentError if it is none.
    """

    def one(self, s: bytes) -> bytes:
        bare = s.rstrip(b"=")
        try:
            if re.fullmatch(rb"[A-Za-z0-9_-]*", bare) is None:
                raise ValueError
            return base64.urlsafe_b64decode(bare + b"=" * (-len(bare) % 4))
        except (ValueError, binascii.Error):
            raise expected("web-safe base64", repr(s)) from None


@frozen
class RegexReplace(StringOp):
    """The string with what matches a pattern rewritten."""

    pattern: str
    rewrite: str
    everywhere: bool = True

    def one(self, s: bytes) -> bytes:
        rewrite = re.sub(rb"\\([0-9])", rb"\\g<\1>", self.rewrite.encode("latin-1"))
        pattern = re.compile(self.pattern.encode("latin-1"))
        return pattern.sub(rewrite, s, count=0 if self.everywhere else 1)


@frozen
class RegexFullMatch(StringOp, out=dtypes.bool_):
    """Whether the whole string matches a pattern."""

    pattern: str

    def one(self, s: bytes) -> bool:
        return re.fullmatch(self.pattern.encode("latin-1"), s) is not None


@frozen
class UnicodeTranscode(StringOp):
    """Text in another encoding. What cannot be read is replaced, dropped or an error."""

    source: str
    target: str
    errors: str
    replacement: int

    def one(self, s: bytes) -> bytes:
        codec = "utf-16-be" if self.source == "UTF-16" else self.source
        mark = chr(self.replacement)
        try:
            mode = {"replace": "replace", "ignore": "ignore", "strict": "strict"}[self.errors]
            found = s.decode(codec, mode)
        except (UnicodeError, LookupError) as e:
            raise InvalidArgumentError(f"expected text in {self.source}: {e}") from None
        return found.replace("\ufffd", mark).encode(self.target)


# -- several strings ------------------------------------------------------------------------------


@frozen
class StringJoin(StringOp, work=per_element(10e-9)):
    """Strings one behind the other, with a separator; scalars are broadcast."""

    separator: str = ""

    def one(self, *values: bytes) -> bytes:
        return self.separator.encode("latin-1").join(values)


@frozen
class Substr(StringOp):
    """A part of a string, by its first place and its length.

    Shapes: strings, places, lengths are broadcast
    Raises: InvalidArgumentError if the place lies outside.
    """

    unit: str = "BYTE"

    def infer(self, x: Spec, place: Spec, length: Spec) -> Spec:
        check_string(x)
        for s in (place, length):
            if s.dtype.name not in ("int32", "int64"):
                raise expected_dtype("places and lengths of int32 or int64", s.dtype)
        return Spec(dtypes.string, broadcast(broadcast(x.shape, place.shape), length.shape))

    def one(self, s: bytes, place: int, length: int) -> bytes:
        letters: Any = s if self.unit == "BYTE" else s.decode(errors="surrogateescape")
        n = len(letters)
        if not -n <= place <= n:
            raise expected(f"a place in [{-n}, {n}] of {s!r}", place)
        first = place + n if place < 0 else place
        part = letters[first : first + max(length, 0)]
        return part if isinstance(part, bytes) else part.encode(errors="surrogateescape")


@frozen
class AsString(StringOp):
    """Numbers and bools as text, with printf's format.

    Attributes: `form` of the number, e.g. "%08.3f".
    """

    form: str

    def infer(self, x: Spec) -> Spec:
        check_kind(x.dtype, "fiucbs", "numbers, bools or strings")
        return x.like(dtypes.string)

    def one(self, value: Any) -> bytes:
        if isinstance(value, bytes):
            return self.form.encode() % value
        if isinstance(value, bool):
            return b"true" if value else b"false"
        if isinstance(value, complex):
            return f"({self.form % value.real},{self.form % value.imag})".encode()
        shown: str = self.form % value
        return shown.encode()


@frozen
class StringFormat(StringOp):
    """A text with values in it, laid out as `fs.print` does.

    Attributes: `parts` of the text, a None for each input; `summarize` elements at each end.
    """

    parts: tuple[str | None, ...]
    summarize: int

    def infer(self, *xs: Spec) -> Spec:
        return Spec(dtypes.string, ())

    def kernel(self, xp: ArrayModule, *xs: Array) -> Any:
        rest = iter(xs)
        texts = [layout(xp, next(rest), self.summarize) if p is None else p for p in self.parts]
        return "".join(texts).encode()


# -- functions ------------------------------------------------------------------------------------


def _unit(unit: str) -> str:
    if unit not in ("BYTE", "UTF8_CHAR"):
        raise expected('unit "BYTE" or "UTF8_CHAR"', repr(unit))
    return unit


def string_join(inputs: Any, separator: str = "", name: str | None = None) -> Tensor:
    """Returns strings one behind the other, element by element.

    Args:
        inputs: A list of tensors of one shape; scalars are broadcast.
        separator: What stands between them.
        name: Name of the operation.

    Example:
        >>> fs.Session().run(fs.string_join(["a", "b"], separator="-"))
        b'a-b'
    """
    tensors = [as_strings(x) for x in inputs]
    if not tensors:
        raise expected("one tensor at least", "none")
    return apply(StringJoin(as_text(separator, "separator")), *tensors, name=name)


def string_length(input: Any, name: str | None = None, unit: str = "BYTE") -> Tensor:
    """Returns the lengths of strings, in bytes or (unit "UTF8_CHAR") in characters."""
    return apply(StringLength(_unit(unit)), as_strings(input), name=name)


def string_lower(input: Any, encoding: str = "", name: str | None = None) -> Tensor:
    """Returns strings with small letters: of ASCII, or of all of Unicode if encoding is "utf-8"."""
    return _case(input, False, encoding, name or "StringLower")


def string_upper(input: Any, encoding: str = "", name: str | None = None) -> Tensor:
    """Returns strings with capital letters: of ASCII, or of all of Unicode for "utf-8"."""
    return _case(input, True, encoding, name or "StringUpper")


def _case(value: Any, upper: bool, encoding: str, name: str) -> Tensor:
    if encoding.lower() not in ("", "utf-8"):
        raise expected('encoding "" or "utf-8"', repr(encoding))
    return apply(StringCase(upper, encoding.lower()), as_strings(value), name=name)


def string_strip(input: Any, name: str | None = None) -> Tensor:
    """Returns strings without white space at their ends."""
    return apply(StringStrip(), as_strings(input), name=name)


def encode_base64(input: Any, pad: bool = False, name: str | None = None) -> Tensor:
    """Returns strings in web-safe base64; `pad` fills them up with =."""
    op = EncodeBase64() if pad else EncodeBase64Unpadded()
    return apply(op, as_strings(input), name=name or "EncodeBase64")


def decode_base64(input: Any, name: str | None = None) -> Tensor:
    """The bytes of strings in web-safe base64."""
    return apply(DecodeBase64(), as_strings(input), name=name)


def substr(input: Any, pos: Any, len: Any, name: str | None = None, unit: str = "BYTE") -> Tensor:
    """Returns parts of strings.

    Args:
        input: Strings.
        pos: Places where the parts begin; negative ones count from the end.
        len: Their lengths; a string may end earlier.
        name: Name of the operation.
        unit: "BYTE" or "UTF8_CHAR".
    """
    place, length = [convert_to_tensor(v, None, None, dtypes.int32) for v in (pos, len)]
    return apply(Substr(_unit(unit)), as_strings(input), place, length, name=name)


def regex_replace(
    input: Any, pattern: Any, rewrite: Any, replace_global: bool = True, name: str | None = None
) -> Tensor:
    r"""Returns strings in which what matches a pattern is rewritten.

    Args:
        input: Strings.
        pattern: A regular expression, in Python's syntax.
        rewrite: What stands for a match; \0 is the match, \1 its first group.
        replace_global: Whether all matches are rewritten, or the first alone.
        name: Name of the operation.
    """
    op = RegexReplace(_regex(pattern), as_text(rewrite, "rewrite"), bool(replace_global))
    return apply(op, as_strings(input), name=name)


def regex_full_match(input: Any, pattern: Any, name: str | None = None) -> Tensor:
    """Returns whether whole strings match a pattern, a regular expression in Python's syntax."""
    return apply(RegexFullMatch(_regex(pattern)), as_strings(input), name=name)


def _regex(pattern: Any) -> str:
    found = as_text(pattern, "pattern")
    try:
        re.compile(found.encode("latin-1"))
    except re.error as e:
        raise expected("a regular expression", f"{found!r}: {e}") from None
    return found


@op_function("input")
def as_string(
    input: Any,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str = "",
    name: str | None = None,
) -> Tensor:
    """Returns numbers and bools as text.

    Args:
        input: A tensor of numbers, bools or strings.
        precision: Digits behind the point, 6 by default.
        scientific: Whether to write powers of ten.
        shortest: Whether to write the shorter of both forms.
        width: Least width of the text.
        fill: How to fill up to it: "" or " " in front, "0" with zeros, "-" behind, "+" with a sign.
    """
    if scientific and shortest:
        raise expected("scientific or shortest", "both")
    if fill not in ("", " ", "+", "-", "0", "#"):
        raise expected('a fill of " ", "+", "-", "0" or "#"', repr(fill))
    form = f"%{fill}{width if width > -1 else ''}"
    if input.dtype.kind in "fc":
        digits = f".{precision}" if precision > -1 else ""
        form += digits + ("e" if scientific else "g" if shortest else "f")
    else:
        form += "s" if input.dtype.kind == "s" else "d"
    return apply(AsString(form), input, name=name)


def string_format(
    template: str, inputs: Any, placeholder: str = "{}", summarize: int = 3, name: str | None = None
) -> Tensor:
    """Returns a text with values in it.

    Args:
        template: The text, with a placeholder for each value.
        inputs: A tensor, or a list of them.
        placeholder: What stands for a value.
        summarize: How many elements at each end of an axis are shown; all if -1.
        name: Name of the operation.
    """
    values = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    pieces = template.split(placeholder)
    if len(pieces) != len(values) + 1:
        raise expected(f"{len(pieces) - 1} values for the text", len(values))
    parts: list[str | None] = [pieces[0]]
    for piece in pieces[1:]:
        parts += [None, piece]
    op = StringFormat(tuple(parts), summarize)
    tensors = [convert_to_tensor(v) for v in values]
    return apply(op, *tensors, name=name or "StringFormat")


def unicode_transcode(
    input: Any,
    input_encoding: str,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Tensor:
    """Returns text in another encoding.

    Args:
        input: Strings.
        input_encoding: Their encoding, e.g. "UTF-8".
        output_encoding: "UTF-8", "UTF-16-BE" or "UTF-32-BE".
        errors: What to do with what cannot be read: "replace", "ignore" or "strict".
        replacement_char: What stands for it.
        replace_control_characters: Not supported.
        name: Name of the operation.
    """
    if output_encoding not in ("UTF-8", "UTF-16-BE", "UTF-32-BE"):
        raise expected("UTF-8, UTF-16-BE or UTF-32-BE as output_encoding", repr(output_encoding))
    if errors not in ("replace", "ignore", "strict") or replace_control_characters:
        raise expected(
            "errors to be replace, ignore or strict, and control characters kept",
            repr(errors),
            replace_control_characters,
        )
    op = UnicodeTranscode(input_encoding, output_encoding, errors, replacement_char)
    return apply(op, as_strings(input), name=name)
