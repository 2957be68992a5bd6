"""Strings: scalars, what the rows cannot hold, and errors."""

from __future__ import annotations

import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import DTypeError, InvalidArgumentError


def test_scalars(sess):
    x = fs.placeholder(fs.string, [])
    results = [
        fs.strings.upper(x),
        fs.strings.length(x),
        fs.substr(x, -3, 2),
        fs.string_join([x, "!"]),
        fs.encode_base64(x),
        fs.reduce_join(x),
        fs.decode_raw(x, "uint8"),
        fs.as_string(x),
        fs.strings.format("{}", x),
    ]
    got = sess.run(results, {x: "hello"})
    assert got[:6] == [b"HELLO", 5, b"ll", b"hello!", b"aGVsbG8", b"hello"]
    assert got[6].tolist() == list(b"hello")
    assert got[7:] == [b"hello", b'"hello"']
    assert sess.run(fs.string_to_number("2.5")) == 2.5
    assert sess.run(fs.decode_csv("1,a", [[0], [""]])) == [1, b"a"]
    assert sess.run(fs.reduce_join([["a", "b"], ["c", "d"]])) == b"abcd"
    assert sess.run(fs.strings.unicode_transcode(b"a\xff", "UTF-8", "UTF-8")) == "a\ufffd".encode()


def test_splits_are_sparse_tensors(sess):
    got = sess.run(fs.string_split(["a b  c", ""]))
    assert got.indices.tolist() == [[0, 0], [0, 1], [0, 2]]
    assert got.values.tolist() == [b"a", b"b", b"c"]
    assert got.dense_shape.tolist() == [2, 3]
    assert sess.run(fs.string_split(["a,b,,c"], ",", False)).values.tolist() == [
        b"a", b"b", b"", b"c"
    ]  # fmt: skip
    assert sess.run(fs.string_split(["ab"], "")).values.tolist() == [b"a", b"b"]
    assert sess.run(fs.strings.split(["a,b,,c"], ",", 1)).values.tolist() == [b"a", b"b,,c"]
    assert sess.run(fs.strings.bytes_split(["ab", "c"])).values.tolist() == [b"a", b"b", b"c"]
    with pytest.raises(InvalidArgumentError, match="no ragged tensors"):
        fs.strings.split(["a"], result_type="RaggedTensor")


def test_strings_of_three_axes(sess):
    x = np.array([b"%d" % i for i in range(12)], object).reshape(2, 3, 2)
    got = sess.run(fs.reduce_join(x, [2, 0], separator=","))
    assert got.tolist() == [b"0,1,6,7", b"2,3,8,9", b"4,5,10,11"]
    ids = [[0, 1, 0], [1, 1, 0]]
    joined = sess.run(fs.strings.unsorted_segment_join(x, ids, 2))
    assert joined.tolist() == [[b"0410", b"1511"], [b"268", b"379"]]


#: (call, what the text says), for what is found while it runs.
RUNS = [
    (lambda: fs.substr("abc", 5, 1), r"expected a place in \[-3, 3\]"),
    (lambda: fs.string_to_number("x"), "expected a number of float32, got 'x'"),
    (lambda: fs.string_to_number("1_0"), "expected a number of float32"),
    (lambda: fs.string_to_number("1.5", "int32"), "expected a number of int32, got '1.5'"),
    (lambda: fs.string_to_number("3000000000", "int32"), "got 3000000000"),
    (lambda: fs.decode_base64("Y!"), "expected web-safe base64"),
    (lambda: fs.decode_base64("YWJjZ"), "expected web-safe base64"),
    (lambda: fs.decode_raw(["abcd", "ef"], "int16"), "strings of one length"),
    (lambda: fs.decode_raw(["abc"], "int16"), "a multiple of 2 bytes"),
    (lambda: fs.decode_csv("1", [[0], [9.0]]), "expected 2 fields in record 0, got 1"),
    (lambda: fs.decode_csv("1", [[0]], select_cols=[3]), "expected 4 fields at least"),
    (lambda: fs.decode_csv(",2", [np.zeros(0, "i4"), [9.0]]), "field 0 is required"),
    (lambda: fs.decode_csv("x,2", [[1], [9.0]]), "field 0 of record 0: expected a number"),
    (lambda: fs.decode_csv('"a', [[""]]), "closing quote"),
    (lambda: fs.decode_csv('"a"b', [[""]]), "a delimiter behind"),
    (lambda: fs.decode_csv('a"b', [[""]]), "quotes around a whole field"),
    (lambda: fs.strings.unsorted_segment_join(["a"], [3], 2), "ids below 2, got 3"),
    (lambda: fs.strings.unicode_transcode(b"\xff", "UTF-8", "UTF-8", "strict"), "text in UTF-8"),
]


@pytest.mark.parametrize(("call", "says"), RUNS)
def test_bad_strings(sess, call, says):
    with pytest.raises(InvalidArgumentError, match=says):
        sess.run(call())


#: The same for what is found while the graph is built.
BUILDS = [
    (lambda: fs.strings.length([1]), DTypeError, "string"),
    (lambda: fs.string_join([]), InvalidArgumentError, "one tensor at least"),
    (lambda: fs.string_join([["a"], ["b", "c", "d"], ["e", "f"]]), InvalidArgumentError, "[3]"),
    (lambda: fs.strings.length("a", unit="LINE"), InvalidArgumentError, "unit"),
    (lambda: fs.strings.lower("a", "ascii"), InvalidArgumentError, "encoding"),
    (lambda: fs.regex_replace("a", "(", "b"), InvalidArgumentError, "regular expression"),
    (lambda: fs.regex_replace("a", fs.placeholder(fs.string), "b"), DTypeError, "known while"),
    (lambda: fs.as_string(1.0, scientific=True, shortest=True), InvalidArgumentError, "both"),
    (lambda: fs.as_string(1.0, fill="x"), InvalidArgumentError, "fill"),
    (lambda: fs.strings.format("{} {}", [1]), InvalidArgumentError, "expected 2 values"),
    (lambda: fs.string_to_hash_bucket("a", 0), InvalidArgumentError, "one bucket"),
    (lambda: fs.string_to_hash_bucket_strong("a", 2, [1]), InvalidArgumentError, "two integers"),
    (lambda: fs.fingerprint("a"), InvalidArgumentError, "rank 1"),
    (lambda: fs.fingerprint(["a"], "md5"), InvalidArgumentError, "farmhash64"),
    (lambda: fs.string_to_number("a", "bool"), DTypeError, "got bool"),
    (lambda: fs.decode_raw("a", "string"), DTypeError, "got string"),
    (lambda: fs.decode_csv("a", [[0]], field_delim="::"), InvalidArgumentError, "one character"),
    (lambda: fs.decode_csv("a", [[True]]), DTypeError, "got bool"),
    (lambda: fs.decode_csv("a", [[0]], select_cols=[1, 0]), InvalidArgumentError, "rising"),
    (lambda: fs.substr("a", 1.5, 1), DTypeError, "int32 or int64, got float32"),
]


@pytest.mark.parametrize(("call", "error", "says"), BUILDS)
def test_bad_arguments(graph, call, error, says):
    with pytest.raises(error) as e:
        call()
    assert says in str(e.value)
