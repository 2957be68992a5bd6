# ruff: noqa: E501
# fmt: off
"""Rows of strings; what they must give is what TensorFlow 2.21 gives."""

from __future__ import annotations

from typing import Any

import numpy as np
from row_tools import In, Table, vec

import flowscope as fs
from flowscope.ops.core.build import apply_many
from flowscope.ops.strings.join_split import StringSplit

ROWS = Table()


def S(*values: Any) -> In:
    return In(value=[v.encode() if isinstance(v, str) else v for v in values], dtype="object")


def out(*values: Any) -> Any:
    """A reference that is a vector of strings."""
    found = np.empty(len(values), object)
    found[:] = [v.encode() if isinstance(v, str) else v for v in values]
    return lambda *_: found


def row(name: str, call: Any, reference: Any, *inputs: In, **options: Any) -> None:
    ROWS.row(name, call, reference, *inputs, **{"order": 0, "dtypes": ("float32",), **options})


def ints(*values: Any, dtype: str = "i8") -> Any:
    return lambda *_: np.array(values, dtype)


_AB = S("ab", "", "c\u00e9")
row("string_length", fs.strings.length, ints(2, 0, 3, dtype="i4"), _AB)
row("string_length_utf8", lambda s: fs.strings.length(s, unit="UTF8_CHAR"), ints(2, 0, 2, dtype="i4"), _AB)
row("string_lower", fs.strings.lower, out("abc", b"\xc3\x89"), S("AbC", "\u00c9"))
row("string_upper", lambda s: fs.strings.upper(s, "utf-8"), out("ABC", "\u00c9"), S("AbC", "\u00e9"))
row("string_strip", fs.string_strip, out("a b", ""), S(" a b\n", "\t"))
row("encode_base64", fs.encode_base64, out("YWJjPz4", "YQ"), S("abc?>", "a"))
row("encode_base64_pad", lambda s: fs.encode_base64(s, pad=True), out("YQ=="), S("a"))
row("decode_base64", fs.decode_base64, out("ab?", "a", "a", ""), S("YWI_", "YQ", "YQ==", ""))
_LONG = S("", "a", "hello world", "x" * 20, "y" * 40, "z" * 100, "TensorFlow is a long string " * 10)
row("hash_bucket", lambda s: fs.string_to_hash_bucket(s, 1000), ints(899, 868, 655, 341, 129, 879, 212), _LONG)
row("hash_bucket_fast", lambda s: fs.string_to_hash_bucket_fast(s, 1000000007),
    ints(912170738, 384735799, 253301321, 116240151, 475450229, 618016899, 205079732), _LONG)
row("hash_bucket_strong", lambda s: fs.string_to_hash_bucket_strong(s, 1000, [123, 456]), ints(214, 228, 686, 93, 731, 90, 560), _LONG)
row("fingerprint", fs.fingerprint, lambda s: np.array([[79, 64, 144, 47, 59, 106, 225, 154], [227, 117, 223, 182, 101, 66, 69, 179]], "u1"), S("", "a"))
row("fingerprint_numbers", fs.fingerprint, lambda s: np.array([[227, 117, 223, 182, 101, 66, 69, 179]], "u1"), In(value=[[97]], dtype="uint8"))
row("regex_replace", lambda s: fs.regex_replace(s, "a+", r"<\0>"), out("<aa>b", "b<a>"), S("aab", "ba"))
row("regex_replace_first", lambda s: fs.regex_replace(s, "(a)(b)", r"\2\1", replace_global=False), out("baab"), S("abab"))
row("regex_full_match", lambda s: fs.strings.regex_full_match(s, "a*b"), lambda s: np.array([True, True, False]), S("aab", "b", "ba"))
row("unicode_transcode", lambda s: fs.strings.unicode_transcode(s, "UTF-8", "UTF-16-BE"), out(b"\0a\0b"), S("ab"))
row("string_join", lambda a, b: fs.string_join([a, "-", b]), out("a-b", "c-d"), S("a", "c"), S("b", "d"))
row("string_join_separator", lambda a, b: fs.strings.join([a, b], "+"), out("a+b"), S("a"), S("b"))
row("substr", lambda s: fs.substr(s, 1, 3), out("ell", "orl"), S("hello", "world"))
row("substr_each", fs.substr, out("a", "efg", "lo"), S("abc", "defg", "hello"), vec(0, 1, -2), vec(1, 9, 2))
row("substr_utf8", lambda s: fs.substr(s, 1, 1, unit="UTF8_CHAR"), out("\u00e9"), S("h\u00e9llo"))
row("as_string", fs.as_string, out("1.500000", "-2.000000", "nan", "inf"), In(value=[1.5, -2, np.nan, np.inf], dtype="float32"))
row("as_string_int", lambda x: fs.as_string(x, width=4, fill="0"), out("0005", "0042"), vec(5, 42))
row("as_string_width", lambda x: fs.as_string(x, width=4, fill="-"), out("5   "), vec(5))
row("as_string_bool", fs.as_string, out("true", "false"), In(value=[True, False], dtype="bool"))
row("as_string_precision", lambda x: fs.as_string(x, precision=2), out("1.23"), In(value=[1.23456], dtype="float32"))
row("as_string_scientific", lambda x: fs.as_string(x, scientific=True), out("1.234560e+00"), In(value=[1.23456], dtype="float32"))
row("as_string_shortest", lambda x: fs.as_string(x, shortest=True), out("1.23456"), In(value=[1.23456], dtype="float32"))
row("as_string_complex", fs.as_string, out("(1.000000,2.000000)"), In(value=[1 + 2j], dtype="complex64"))
row("as_string_string", fs.as_string, out("a"), S("a"))
row("string_format", lambda x: fs.reshape(fs.strings.format("a {} b {}", [x, 1.5]), [1]), out("a [0 1 2 ... 7 8 9] b 1.5"), vec(*range(10)))
row("reduce_join", lambda s: fs.reduce_join(fs.reshape(s, [2, 2]), 0), out("ac", "bd"), S("a", "b", "c", "d"))
row("reduce_join_last", lambda s: fs.reduce_join(fs.reshape(s, [2, 2]), -1, separator="-"), out("a-b", "c-d"), S("a", "b", "c", "d"))
row("reduce_join_keep", lambda s: fs.reduce_join(fs.reshape(s, [2, 2]), 1, keepdims=True), lambda s: np.array([[b"ab"], [b"cd"]], object), S("a", "b", "c", "d"))
row("reduce_join_order", lambda s: fs.reduce_join(fs.reshape(s, [2, 2]), [0, 1], keepdims=True), lambda s: np.array([[b"acbd"]], object), S("a", "b", "c", "d"))
row("reduce_join_none", lambda s: fs.reduce_join(fs.reshape(s, [2, 0]), 1), out("", ""), In((0,), dtype="object", value=[]))
row("unsorted_segment_join", lambda s, i: fs.strings.unsorted_segment_join(s, i, 3, ":"), out("a:c", "b", ""), S("a", "b", "c", "d"), vec(0, 1, 0, -1))


def parts(*rows: Any) -> Any:
    """Indices, values and shape of the parts."""
    def reference(*_: Any) -> Any:
        places = [(i, j) for i, r in enumerate(rows) for j in range(len(r))]
        return [np.array(places, "i8").reshape(-1, 2), out(*[p for r in rows for p in r])(), np.array([len(rows), max(map(len, rows), default=0)])]

    return reference


def split(**options: Any) -> Any:
    return lambda s: list(apply_many(StringSplit(**options), s))


row("string_split", split(separator=" ", any_of=True, skip_empty=True), parts("abc", ""), S("a b  c", ""), dynamic=True)
row("string_split_any", split(separator=",;", any_of=True), parts(["a", "b", "", "c"]), S("a;b,,c"), dynamic=True)
row("string_split_letters", split(separator="", letters=True), parts("abc"), S("abc"), dynamic=True)
row("string_split_words", split(separator=""), parts("abc"), S(" a b  c "), dynamic=True)
row("string_split_limit", split(separator=", ", limit=1), parts(["a", "b, c"], ["d"]), S("a, b, c", "d"), dynamic=True)
row("string_to_number", fs.string_to_number, lambda s: np.array([1.5, -2000, 7, np.inf, np.nan, 0.5], "f4"), S("1.5", "-2e3", " 7 ", "inf", "nan", ".5"))
row("string_to_number_int", lambda s: fs.strings.to_number(s, "int32"), ints(3, -4, dtype="i4"), S("3", "-4"))
row("decode_raw", lambda s: fs.decode_raw(s, "int16"), lambda s: np.array([[25185, 25699], [26213, 26727]], "i2"), S("abcd", "efgh"), dynamic=True)
row("decode_raw_big", lambda s: fs.decode_raw(s, "uint16", little_endian=False), lambda s: np.array([[24930, 25444]], "u2"), S("abcd"), dynamic=True)
row("decode_csv", lambda s: fs.decode_csv(s, [[0], [9.0], [""]]), lambda s: [np.array([1, 4], "i4"), np.array([2.5, 9], "f4"), out("abc", 'x,"y"')()],
    S("1,2.5,abc", '4,,"x,""y"""'))
row("decode_csv_na", lambda s: fs.decode_csv(s, [[0], 5], field_delim=";", na_value="NA"), lambda s: [np.array([1], "i4"), np.array([5], "i4")], S("1;NA"))
row("decode_csv_columns", lambda s: fs.decode_csv(s, [[0], [0.0]], select_cols=[0, 2]), lambda s: [np.array([1], "i4"), np.array([3], "f4")], S("1,2,3"))
row("decode_csv_one", lambda s: fs.decode_csv(s, [[""]], use_quote_delim=False), lambda s: [out('"a"')()], S('"a"\n'))
