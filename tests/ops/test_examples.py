"""Serialized examples to tensors, against what the messages themselves hold."""

from __future__ import annotations

import random

import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.ops.input import example_scan
from flowscope.ops.kernels import native_loops

MODES = ("compiled", "op", "tokens")
LISTS = {"int64": "int64_list", "float32": "float_list", "string": "bytes_list"}


@pytest.fixture(params=["native", "python"])
def loops(request, monkeypatch):
    """Loops that are compiled, or run as Python."""
    if request.param == "python":

        def none(_):
            raise ImportError

        with monkeypatch.context() as m:
            m.setattr(native_loops, "_compiled", none)
            found = example_scan.tiers.__wrapped__()
            assert found.get(10**9).given is memoryview
        monkeypatch.setattr(example_scan, "tiers", lambda: found)
    else:
        pytest.importorskip("llvmlite")
        assert example_scan.tiers().get(10**9).given is not memoryview


def example(**features) -> bytes:
    made = fs.train.Example()
    for name, values in features.items():
        fill(made.features.feature[name], values)
    return made.SerializeToString()


def fill(feature, values) -> None:
    """Makes a list of the kind that the first value has; none if there is no value."""
    if values:
        kind = {int: "int64_list", float: "float_list", bytes: "bytes_list"}[type(values[0])]
        getattr(feature, kind).value.extend(values)


def random_value(r: random.Random, dtype: str):
    if dtype == "int64":
        return r.choice([0, 5, 127, 128, -1, r.randrange(-(2**63), 2**63)])
    if dtype == "float32":
        return float(np.float32(r.uniform(-9, 9)))
    return r.randbytes(r.randrange(4))


def random_features(r: random.Random) -> dict:
    made = {}
    for i in range(r.randrange(1, 6)):
        dtype = r.choice(list(LISTS))
        shape = [r.randrange(4) for _ in range(r.randrange(3))]
        default = np.array(
            [random_value(r, dtype) for _ in range(int(np.prod(shape)))],
            object if dtype == "string" else dtype,
        ).reshape(shape)
        if not default.size:
            shape, default = [1], default.reshape(-1)[:0]
        made[f"f{i}"] = r.choice(
            [
                fs.VarLenFeature(dtype),
                fs.FixedLenFeature(shape, dtype, default if default.size else None),
                fs.FixedLenSequenceFeature(shape, dtype, True, random_value(r, dtype)),
            ]
        )
    return made


def random_examples(r: random.Random, features: dict, count: int) -> list[dict]:
    found = []
    for _ in range(count):
        one = {}
        for key, f in r.sample(sorted(features.items()), len(features)):
            may_miss = not isinstance(f, fs.FixedLenFeature) or f.default_value is not None
            if may_miss and r.random() < 0.3:
                continue
            size = 1 if isinstance(f, fs.VarLenFeature) else int(np.prod(f.shape))
            rows = 1 if isinstance(f, fs.FixedLenFeature) else r.randrange(4)
            one[key] = [random_value(r, f.dtype) for _ in range(size * rows)]
        one[f"other{r.randrange(3)}"] = [1]
        found.append(one)
    return found


def check(found, features: dict, examples: list[dict], is_single: bool) -> None:
    for key, f in features.items():
        rows = [e.get(key, []) for e in examples]
        got = found[key]
        dtype = object if f.dtype == "string" else f.dtype
        if isinstance(f, fs.VarLenFeature):
            places = [[i, j][is_single:] for i, row in enumerate(rows) for j in range(len(row))]
            assert got.indices.tolist() == places
            assert got.values.dtype == dtype
            assert got.values.tolist() == [v for row in rows for v in row]
            assert got.dense_shape.tolist() == [len(rows), max(map(len, rows))][is_single:]
            continue
        size = int(np.prod(f.shape))
        if isinstance(f, fs.FixedLenFeature):
            default = (
                np.reshape(f.default_value, -1).tolist() if f.default_value is not None else []
            )
            want = [row or default for row in rows]
            shape = [len(rows), *f.shape]
        else:
            longest = max(map(len, rows))
            want = [row + [f.default_value] * (longest - len(row)) for row in rows]
            shape = [len(rows), longest // size, *f.shape]
        array = np.empty(len(rows) * len(want[0]), dtype)
        array[:] = [v for row in want for v in row]
        array = array.reshape(shape)[0 if is_single else slice(None)]
        np.testing.assert_array_equal(got, array)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(6))
def test_random_examples(mode: str, seed: int, loops: str) -> None:
    r = random.Random(seed)
    features = random_features(r)
    examples = random_examples(r, features, r.randrange(1, 8))
    data = [example(**e) for e in examples]
    graph = fs.Graph()
    with graph.as_default():
        batch, one = fs.placeholder(fs.string, [None]), fs.placeholder(fs.string, [])
        parsed = fs.parse_example(batch, features)
        single = fs.parse_single_example(one, features)
    with fs.Session(graph=graph, config=fs.ConfigProto(mode=mode)) as sess:
        for _ in range(2):
            check(sess.run(parsed, {batch: data}), features, examples, False)
        for value, e in zip(data, examples):
            check(sess.run(single, {one: value}), features, [e], True)


def test_shapes_are_known_while_the_graph_is_built() -> None:
    features = {
        "a": fs.FixedLenFeature([2, 3], fs.float32),
        "b": fs.VarLenFeature(fs.int64),
        "c": fs.FixedLenSequenceFeature([2], fs.string, allow_missing=True),
    }
    found = fs.parse_example(fs.placeholder(fs.string, [7]), features)
    assert found["a"].shape.as_list() == [7, 2, 3]
    assert found["c"].shape.as_list() == [7, None, 2]
    assert found["b"].shape.ndims == 2
    single = fs.parse_single_example(fs.placeholder(fs.string, []), features)
    assert single["a"].shape.as_list() == [2, 3]
    assert single["c"].shape.as_list() == [None, 2]


def test_no_examples() -> None:
    features = {
        "a": fs.FixedLenFeature([2], fs.float32),
        "b": fs.VarLenFeature(fs.int64),
        "c": fs.FixedLenSequenceFeature([], fs.string, allow_missing=True),
    }
    with fs.Session() as sess:
        given = fs.placeholder(fs.string, [None])
        found = sess.run(fs.parse_example(given, features), {given: []})
    assert found["a"].shape == (0, 2)
    assert found["b"].dense_shape.tolist() == [0, 0]
    assert found["c"].shape == (0, 0)


@pytest.mark.parametrize("mode", MODES)
def test_sparse_features(mode: str) -> None:
    """The example of TensorFlow's documentation."""
    data = [example(ix=[3, 20], val=[0.5, -1.0]), example(ix=[42], val=[0.0])]
    features = {"sparse": fs.SparseFeature("ix", "val", fs.float32, 100)}
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        found = sess.run(fs.parse_example(data, features))["sparse"]
        single = sess.run(fs.parse_single_example(data[0], features))["sparse"]
    assert found.indices.tolist() == [[0, 3], [0, 20], [1, 42]]
    assert found.values.tolist() == [0.5, -1, 0]
    assert found.dense_shape.tolist() == [2, 100]
    assert (single.indices.tolist(), single.dense_shape.tolist()) == ([[3], [20]], [100])


@pytest.mark.parametrize("mode", MODES)
def test_sequences(mode: str, loops: str) -> None:
    r = random.Random(3)
    made, lists = [], []
    for i in range(5):
        one = fs.train.SequenceExample()
        fill(one.context.feature["id"], [i])
        dense = [[float(r.randrange(9)), 1.0] for _ in range(r.randrange(4))]
        words = [[r.randbytes(2) for _ in range(r.randrange(3))] for _ in range(r.randrange(4))]
        for name, rows in (("dense", dense), ("words", words)):
            for row in rows:
                fill(one.feature_lists.feature_list[name].feature.add(), row)
        made.append(one.SerializeToString())
        lists.append((dense, words))
    context = {"id": fs.FixedLenFeature([], fs.int64)}
    sequence = {
        "dense": fs.FixedLenSequenceFeature([2], fs.float32, allow_missing=True),
        "words": fs.VarLenFeature(fs.string),
    }
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        ids, found, lengths = sess.run(fs.io.parse_sequence_example(made, context, sequence))
        one = fs.placeholder(fs.string, [])
        single = fs.parse_single_sequence_example(one, context, sequence)
        singles = [sess.run(single, {one: value}) for value in made]
    assert ids["id"].tolist() == list(range(5))
    assert lengths["dense"].tolist() == [len(dense) for dense, _ in lists]
    places = [
        ([i, j, k], word)
        for i, (_, words) in enumerate(lists)
        for j, row in enumerate(words)
        for k, word in enumerate(row)
    ]
    assert found["words"].indices.tolist() == [p for p, _ in places]
    assert found["words"].values.tolist() == [word for _, word in places]
    for i, (dense, _) in enumerate(lists):
        assert found["dense"][i, : len(dense)].tolist() == dense
        assert not found["dense"][i, len(dense) :].any()
        assert singles[i][0]["id"] == i
        assert singles[i][1]["dense"].tolist() == dense
        assert singles[i][1]["words"].indices.tolist() == [p[1:] for p, _ in places if p[0] == i]


X = {"x": fs.FixedLenFeature([], fs.int64)}


@pytest.mark.parametrize(
    ("data", "features", "match"),
    [
        (b"\x0b", X, "expected a serialized example, got other bytes in example 1 'two'"),
        (b"\n\xff\xff\xff\xff\xff\xff\xff\xff\x7f", X, "expected a serialized example"),
        (b"\n" + b"\xff" * 12, X, "expected a serialized example"),
        (example(x=[3])[:-1], X, "expected a serialized example"),
        (b"\n\x0b\n\x09\n\x01x\x12\x04\x1a\x09\n\x01", X, "expected a serialized example"),
        (b"\n\x0b\n\x09\n\x01x\x12\x04\x1a\x02\n\x09", X, "expected a serialized example"),
        (b"\n\x0b\n\x09\n\x01x\x12\x04\x1a\x02\x08\xff", X, "expected a serialized example"),
        (example(x=[1, 2]), X, "expected 1 values in feature 'x' of example 1 'two', got 2"),
        (example(y=[1]), X, "expected feature 'x', which has no default, in example 1"),
        (example(x=[1.5]), X, "expected values of int64 in feature 'x' of .*, got float32"),
        (example(x=[b"a"]), X, "expected values of int64 in feature 'x' of .*, got string"),
        (
            example(x=[1, 2, 3]),
            {"x": fs.FixedLenSequenceFeature([2], fs.int64, allow_missing=True)},
            "expected a multiple of 2 values",
        ),
    ],
)
def test_damaged_and_wrong_examples(data, features, match: str, loops: str) -> None:
    whole = example(x=[1, 2] if isinstance(features["x"], fs.FixedLenSequenceFeature) else [1])
    with fs.Graph().as_default(), fs.Session() as sess:
        given = fs.placeholder(fs.string, [None])
        found = fs.parse_example(given, features, example_names=["one", "two"])
        with pytest.raises(InvalidArgumentError, match=match):
            sess.run(found, {given: [whole, data]})


def test_random_damage_is_an_error_or_another_example(loops: str) -> None:
    r = random.Random(5)
    data = example(x=[1, 300], s=[b"abc", b""], f=[1.5])
    features = {
        "x": fs.VarLenFeature(fs.int64), "s": fs.VarLenFeature(fs.string),
        "f": fs.VarLenFeature(fs.float32),
    }  # fmt: skip
    given = fs.placeholder(fs.string, [None])
    found = fs.parse_example(given, features)
    outcomes = set()
    with fs.Session() as sess:
        for _ in range(200):
            bad = bytearray(data)
            for _ in range(r.randrange(1, 4)):
                bad[r.randrange(len(bad))] = r.randrange(256)
            try:
                sess.run(
                    found, {given: [bytes(bad)[: r.choice([len(bad), r.randrange(len(bad))])]]}
                )
                outcomes.add("another")
            except InvalidArgumentError:
                outcomes.add("error")
    assert outcomes == {"another", "error"}


@pytest.mark.parametrize(
    ("features", "error", "match"),
    [
        ({}, InvalidArgumentError, "not empty"),
        ({"x": 3}, DTypeError, "FixedLenFeature"),
        ({"x": fs.FixedLenFeature([], fs.int32)}, DTypeError, "float32, int64 or string"),
        ({"x": fs.FixedLenFeature([None], fs.int64)}, InvalidArgumentError, "that is known"),
        ({"x": fs.FixedLenFeature([2], fs.int64, 1)}, InvalidArgumentError, "a default of 2"),
        ({"x": fs.FixedLenSequenceFeature([], fs.int64)}, InvalidArgumentError, "allow_missing"),
        (
            {"x": fs.VarLenFeature(fs.int64), "y": fs.SparseFeature("i", "x", fs.float32, 3)},
            InvalidArgumentError,
            "one dtype",
        ),
    ],
)
def test_wrong_features(features, error, match: str) -> None:
    with pytest.raises(error, match=match):
        fs.parse_example(["a"], features)


def test_a_graph_with_parsing_comes_back() -> None:
    given = fs.placeholder(fs.string, [None], name="given")
    features = {"x": fs.FixedLenFeature([2], fs.int64), "t": fs.VarLenFeature(fs.string)}
    fs.identity(fs.parse_example(given, features)["x"], name="x")
    text = fs.get_default_graph().as_graph_def()
    with fs.Graph().as_default(), fs.Session() as sess:
        fs.import_graph_def(text, name="")
        assert sess.run("x:0", {"given:0": [example(x=[4, 5])]}).tolist() == [[4, 5]]


@pytest.mark.parametrize("mode", MODES)
def test_parsing_in_a_loop_and_in_a_branch(mode: str) -> None:
    data = fs.constant([example(x=[i]) for i in range(6)])

    def one(i, total):
        value = fs.parse_single_example(data[i], X)["x"]
        more = fs.cond(value % 2 > 0, lambda: 10 * fs.parse_example([data[i]], X)["x"][0],
                       lambda: value)  # fmt: skip
        return i + 1, total + more

    total = fs.while_loop(lambda i, _: i < 6, one, [0, fs.constant(0, fs.int64)])[1]
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        assert [sess.run(total) for _ in range(2)] == [96, 96]
