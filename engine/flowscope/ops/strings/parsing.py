"""Numbers and records from strings. All of it runs on the CPU."""

from __future__ import annotations

import re
from typing import Any

from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import DType, as_dtype, string as STRING
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.ops.core.build import apply, apply_many
from flowscope.ops.core.shape_rules import check_kind
from flowscope.ops.strings.string_op import StringOp, as_strings, as_text, check_string, mapped

__all__ = ["decode_csv", "decode_raw", "string_to_number"]

_INTEGER = re.compile(rb"\s*[+-]?[0-9]+\s*")
_REAL = re.compile(
    rb"\s*[+-]?([0-9]+\.?[0-9]*([eE][+-]?[0-9]+)?|\.[0-9]+([eE][+-]?[0-9]+)?|inf|infinity|nan)\s*",
    re.IGNORECASE,
)


def parsed(s: bytes, dtype: DType) -> Any:
    """Returns the number that a string spells out.

    Raises:
        InvalidArgumentError: if it spells out none, or one that the dtype has not.
    """
    pattern = _INTEGER if dtype.is_integer else _REAL
    if pattern.fullmatch(s) is None:
        raise InvalidArgumentError(f"expected a number of {dtype}, got {s.decode('latin-1')!r}")
    if not dtype.is_integer:
        return float(s)
    value = int(s)
    if not dtype.min <= value <= dtype.max:
        raise expected(f"a number of {dtype}, in [{dtype.min}, {dtype.max}]", value)
    return value


@frozen
class StringToNumber(StringOp):
    """The numbers that strings spell out.

    Raises: InvalidArgumentError if one spells out none.
    """

    dtype: DType

    def infer(self, x: Spec) -> Spec:
        check_string(x)
        return x.like(self.dtype)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        return mapped(xp, lambda s: parsed(s, self.dtype), self.dtype.np_dtype, x)


@frozen
class DecodeRaw(StringOp):
    """The bytes of strings, all equally long, as numbers.

    Shapes: s -> s + [bytes / size of a number]
    Raises: InvalidArgumentError if they differ in length, or it is no multiple of the size.
    """

    dtype: DType
    little_endian: bool

    def infer(self, x: Spec) -> Spec:
        check_string(x)
        return Spec(self.dtype, None if x.shape is None else (*x.shape, None))

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        shape = () if isinstance(x, bytes) else x.shape
        values = [x] if isinstance(x, bytes) else x.reshape(-1).tolist()
        size = len(values[0]) if values else 0
        for v in values:
            if len(v) != size or size % self.dtype.size:
                raise expected(
                    f"strings of one length, a multiple of {self.dtype.size} bytes", size, len(v)
                )
        wire = self.dtype.np_dtype.newbyteorder("<" if self.little_endian else ">")
        flat = xp.frombuffer(b"".join(values), wire).astype(self.dtype.np_dtype)
        return flat.reshape(*shape, size // self.dtype.size)


@frozen
class DecodeCSV(StringOp, out=STRING):
    """The fields of records, a tensor for each column.

    Attributes: `dtypes` of the columns; `required` says of each whether it may be empty; the
        `delimiter` of fields; whether "..." quotes one; what stands for an `empty` field; the
        `columns` taken, all if there are none.

    Shapes: records s, defaults [] or [1] -> s for each column
    Raises: InvalidArgumentError if a record has too few or too many fields, or one does not fit.
    """

    dtypes: tuple[DType, ...]
    required: tuple[bool, ...]
    delimiter: str
    quotes: bool
    empty: str
    columns: tuple[int, ...] = ()

    def infer(self, records: Spec, *defaults: Spec) -> Any:
        check_string(records)
        for d, default in zip(self.dtypes, defaults):
            if default.dtype is not d or default.rank not in (None, 0, 1):
                raise expected_dtype(f"a default of {d}[1]", default)
        return tuple([Spec(d, records.shape) for d in self.dtypes])

    def kernel(self, xp: ArrayModule, records: Array, *defaults: Array) -> Any:
        shape = () if isinstance(records, bytes) else records.shape
        lines = [records] if isinstance(records, bytes) else records.reshape(-1).tolist()
        fallback = [None if r else _first(d) for r, d in zip(self.required, defaults)]
        rows = [self._row(i, line, fallback) for i, line in enumerate(lines)]
        out = []
        for i, d in enumerate(self.dtypes):
            column = xp.empty(len(rows), d.np_dtype)
            column[:] = [row[i] for row in rows]
            out.append(column.reshape(shape)[()])
        return out[0] if len(out) == 1 else tuple(out)

    def _row(self, number: int, line: bytes, fallback: list[Any]) -> list[Any]:
        fields = _fields(line.decode("latin-1"), self.delimiter, self.quotes)
        if self.columns:
            if max(self.columns) >= len(fields):
                raise expected(
                    f"{max(self.columns) + 1} fields at least in record {number}", len(fields)
                )
            fields = [fields[c] for c in self.columns]
        if len(fields) != len(self.dtypes):
            raise expected(f"{len(self.dtypes)} fields in record {number}", len(fields))
        return [self._value(number, i, f, fallback[i]) for i, f in enumerate(fields)]

    def _value(self, number: int, index: int, field: str, default: Any) -> Any:
        dtype = self.dtypes[index]
        if field in ("", self.empty):
            if self.required[index]:
                raise InvalidArgumentError(f"field {index} is required, but empty in {number}")
            return default
        raw = field.encode("latin-1")
        if dtype is dtypes.string:
            return raw
        try:
            return parsed(raw, dtype)
        except InvalidArgumentError as e:
            raise InvalidArgumentError(f"field {index} of record {number}: {e.message}") from None


def _first(default: Array) -> Any:
    return default if isinstance(default, bytes) else default.reshape(-1)[0]


def _fields(line: str, delimiter: str, quotes: bool) -> list[str]:
    """Returns the fields of a record, as RFC 4180 says."""
    out, at, n = [], 0, len(line.rstrip("\r\n"))
    while True:
        if quotes and line.startswith('"', at):
            field, at = _quoted(line, at + 1)
            if at < n and line[at] != delimiter:
                raise InvalidArgumentError(
                    f"expected a delimiter behind a quoted field of {line!r}"
                )
        else:
            end = line.find(delimiter, at, n)
            end = n if end < 0 else end
            field, at = line[at:end], end
            if quotes and '"' in field:
                raise expected("quotes around a whole field only", repr(line))
        out.append(field)
        if at >= n:
            return out
        at += 1


def _quoted(line: str, at: int) -> tuple[str, int]:
    """Returns a quoted field that begins at a place, and the place behind it."""
    parts = []
    while True:
        end = line.find('"', at)
        if end < 0:
            raise InvalidArgumentError(f"expected a closing quote in {line!r}")
        parts.append(line[at:end])
        if not line.startswith('"', end + 1):
            return "".join(parts), end + 1
        parts.append('"')
        at = end + 2


def string_to_number(
    string_tensor: Any = None,
    out_type: Any = dtypes.float32,
    name: str | None = None,
    input: Any = None,
) -> Tensor:
    """Returns the numbers that strings spell out.

    Args:
        string_tensor: Strings.
        out_type: float32, float64, int32 or int64.
        name: Name of the operation.
        input: New name of `string_tensor`.
    """
    dtype = as_dtype(out_type)
    if dtype.name not in ("float32", "float64", "int32", "int64", "uint32", "uint64"):
        raise expected_dtype("float32, float64, int32 or int64", dtype)
    value = input if string_tensor is None else string_tensor
    return apply(StringToNumber(dtype), as_strings(value), name=name)


def decode_raw(
    input_bytes: Any = None,
    out_type: Any = None,
    little_endian: bool = True,
    name: str | None = None,
    bytes: Any = None,
) -> Tensor:
    """Returns the bytes of strings, all equally long, as numbers along a new last axis.

    Args:
        input_bytes: Strings.
        out_type: Dtype of the numbers.
        little_endian: Whether the lowest byte of a number comes first.
        name: Name of the operation.
        bytes: Old name of `input_bytes`.
    """
    dtype = as_dtype(out_type)
    if dtype.kind not in "fiucb":
        raise expected_dtype("a dtype of numbers or bools", dtype)
    value = bytes if input_bytes is None else input_bytes
    return apply(DecodeRaw(dtype, bool(little_endian)), as_strings(value), name=name)


def decode_csv(
    records: Any,
    record_defaults: Any,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    name: str | None = None,
    na_value: str = "",
    select_cols: Any = None,
) -> list[Tensor]:
    """Returns the fields of records, a tensor for each column.

    Args:
        records: Strings, a record each.
        record_defaults: For each column what stands for an empty field, which says the dtype too;
            an empty tensor if it may not be empty.
        field_delim: What stands between fields, one character.
        use_quote_delim: Whether "..." quotes a field.
        name: Name of the operation.
        na_value: A text that stands for an empty field.
        select_cols: Numbers of the columns that are taken, rising; all by default.
    """
    if len(field_delim) != 1:
        raise expected("one character as field_delim", repr(field_delim))
    defaults = [convert_to_tensor(d) for d in record_defaults]
    columns = tuple([int(c) for c in select_cols or ()])
    if columns and (list(columns) != sorted(set(columns)) or len(columns) != len(defaults)):
        raise expected(f"{len(defaults)} rising column numbers", list(columns))
    for d in defaults:
        check_kind(d.dtype, "fis", "float, integer or string columns")
    op = DecodeCSV(
        tuple([d.dtype for d in defaults]),
        tuple([d.spec.shape == (0,) for d in defaults]),
        field_delim,
        bool(use_quote_delim),
        as_text(na_value, "na_value"),
        columns,
    )
    return list(apply_many(op, as_strings(records), *defaults, name=name))
