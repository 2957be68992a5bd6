"""Lookup tables: TensorFlow's examples, random programs against a dict, files, mistakes, lives."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import (
    DTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
)

MODES = ("compiled", "op", "tokens")
lookup = fs.contrib.lookup


def session(mode: str = "compiled", **more: Any) -> fs.Session:
    return fs.Session(config=fs.ConfigProto(mode=mode, **more))


def ran(sess: fs.Session, fetch: Any) -> Any:
    found = sess.run(fetch)
    return found.tolist() if isinstance(found, np.ndarray) else found


# -- TensorFlow's documentation -------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_the_examples_of_tensorflows_documentation(graph: fs.Graph, mode: str, tmp_path) -> None:
    words = fs.constant(["emerson", "lake", "palmer"])
    features = fs.constant(["emerson", "lake", "and", "palmer"])
    table = lookup.index_table_from_tensor(words, num_oov_buckets=1, default_value=-1)
    ids = table.lookup(features)
    plain = lookup.string_to_index(features, words)
    back = lookup.index_to_string(fs.constant([1, 5], fs.int64), words, "UNKNOWN")
    name = tmp_path / "vocabulary.txt"
    name.write_text("emerson\nlake\npalmer\n")
    of_file = lookup.index_table_from_file(str(name), num_oov_buckets=1)
    to_word = lookup.index_to_string_table_from_file(str(name), default_value="UNKNOWN")
    static = fs.lookup.StaticHashTable(
        fs.lookup.KeyValueTensorInitializer(["a", "b", "c"], [7, 8, 9]), default_value=-1
    )
    square = static.lookup(fs.constant([["a", "f"], ["c", "b"]]))
    older = lookup.HashTable(lookup.KeyValueTensorInitializer([1, 2], [0.5, 1.5]), -1.0)
    buckets = fs.lookup.StaticVocabularyTable(
        fs.lookup.KeyValueTensorInitializer(
            ["emerson", "lake", "palmer"], np.array([0, 1, 2]), fs.string, fs.int64
        ),
        num_oov_buckets=2,
    )
    dense = lookup.MutableDenseHashTable(fs.string, fs.int64, -1, empty_key="", deleted_key="$")
    assert len(graph.get_collection(fs.GraphKeys.TABLE_INITIALIZERS)) == 8
    with session(mode) as sess:
        with pytest.raises(FailedPreconditionError, match="run fs.tables_initializer"):
            sess.run(ids)
        for init in (fs.tables_initializer(), fs.initialize_all_tables(), table.init):
            sess.run(init)  # as often as somebody likes
        assert ran(sess, ids) == ran(sess, of_file.lookup(features)) == [0, 1, 3, 2]
        assert ran(sess, plain) == [0, 1, -1, 2]
        assert ran(sess, back) == [b"lake", b"UNKNOWN"]
        assert ran(sess, to_word.lookup(fs.constant([0, 7], fs.int64))) == [b"emerson", b"UNKNOWN"]
        assert ran(sess, square) == [[7, -1], [9, 8]]
        assert ran(sess, older[fs.constant(2)]) == 1.5
        assert ran(sess, table.size()) == 4
        found = ran(sess, buckets.lookup(features))
        assert found[:2] == [0, 1]
        assert found[2] == 3 + ran(sess, fs.strings.to_hash_bucket_fast("and", 2))
        sess.run(dense.insert(["a", "b"], [1, 2]))
        sess.run(dense.remove("b"))
        assert ran(sess, dense.lookup(["a", "b"])) == [1, -1]


def test_sparse_keys_give_sparse_values(graph: fs.Graph) -> None:
    table = lookup.index_table_from_tensor(["a", "b"], num_oov_buckets=1)
    keys = fs.SparseTensor([[0, 1], [2, 0]], ["b", "z"], [3, 2])
    found = table.lookup(keys)
    mutable = lookup.MutableHashTable(fs.string, fs.float32, [0.0, 0.0])
    assert isinstance(found, fs.SparseTensor) and found.dtype is fs.int64
    with session() as sess:
        sess.run(fs.tables_initializer())
        value = sess.run(found)
        assert (value.indices.tolist(), value.values.tolist()) == ([[0, 1], [2, 0]], [1, 2])
        sess.run(mutable.insert("z", [1.0, 2.0]))
        assert ran(sess, mutable.lookup(keys.values)) == [[0, 0], [1, 2]]


def test_buckets_alone_numbers_as_words_and_another_hash(graph: fs.Graph) -> None:
    alone = lookup.IdTableWithHashBuckets(None, 7)
    strong = lookup.StrongHashSpec([1, 2])
    keyed = lookup.index_table_from_tensor(["a"], num_oov_buckets=5, hasher_spec=strong)
    numbers = lookup.index_table_from_tensor([42, 1, -1000], 3, dtype=fs.int32)
    with session() as sess:
        sess.run([fs.tables_initializer(), alone.initializer])
        assert ran(sess, alone.lookup(fs.constant(["x", "y"]))) == ran(
            sess, fs.string_to_hash_bucket_fast(["x", "y"], 7)
        )
        assert ran(sess, [alone.size(), keyed.size(), numbers.size()]) == [7, 6, 6]
        assert ran(sess, keyed.lookup(fs.constant(["a", "q"]))) == [
            0,
            1 + ran(sess, fs.string_to_hash_bucket_strong("q", 5, [1, 2])),
        ]
        bucket = ran(sess, fs.string_to_hash_bucket_fast("11", 3))
        assert ran(sess, numbers.lookup(fs.constant([1, 42, 11]))) == [1, 0, 3 + bucket]


# -- against a dict -------------------------------------------------------------------------------

#: What makes a table, keys of it, and values.
KINDS = {
    "int64": (fs.int64, (), lambda rng: rng.randrange(-40, 40)),
    "int32": (fs.int32, (), lambda rng: rng.randrange(-40, 40)),
    "string": (fs.string, (), lambda rng: b"w%d" % rng.randrange(80)),
    "pairs": (fs.int64, (2,), lambda rng: (rng.randrange(9), rng.randrange(9))),
    "words": (fs.string, (2,), lambda rng: (b"%d" % rng.randrange(9), b"%d" % rng.randrange(9))),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_random_programs_do_what_a_dict_does(graph, kind: str, mode: str, tmp_path) -> None:
    rng = random.Random(f"{kind} {mode}")
    dtype, shape, key = KINDS[kind]
    never = ([-77] * 2, [-78] * 2) if dtype is not fs.string else (["E"] * 2, ["D"] * 2)
    if shape:
        table = lookup.MutableDenseHashTable(dtype, fs.float32, [-1.0], *never)
    else:
        table = lookup.MutableHashTable(dtype, fs.float32, [-1.0])
    keys, values = fs.placeholder(dtype, [None, *shape]), fs.placeholder(fs.float32, [None, 1])
    put, drop, get = table.insert(keys, values), table.remove(keys), table.lookup(keys)
    with fs.control_dependencies([put]):
        after = table.lookup(keys)
    size, saver = table.size(), fs.train.Saver()
    model: dict[Any, float] = {}
    saved: tuple[str, dict[Any, float]] | None = None
    with session(mode) as sess:
        for number in range(120):
            some = [key(rng) for _ in range(rng.choice([0, 1, 3, 40]))]
            given = np.empty((len(some), *shape), dtype.np_dtype)
            given[...] = some if some else given
            feeds = {keys: given, values: np.arange(len(some), dtype=np.float32)[:, None] + number}
            move = rng.choice(["put", "put", "drop", "get", "after", "save", "restore"])
            if move in ("put", "after"):
                found = sess.run(after if move == "after" else put, feeds)
                model |= {k: float(i + number) for i, k in enumerate(some)}
                if move == "after":
                    assert found.ravel().tolist() == [model[k] for k in some]
            elif move == "drop":
                sess.run(drop, feeds)
                model = {k: v for k, v in model.items() if k not in some}
            elif move == "get":
                found = sess.run(get, feeds)
                assert found.shape == (len(some), 1)
                assert found.ravel().tolist() == [model.get(k, -1.0) for k in some]
            elif move == "save":
                saved = saver.save(sess, tmp_path / "model", write_meta_graph=False), dict(model)
            elif saved is not None:
                saver.restore(sess, saved[0])
                model = dict(saved[1])
            assert sess.run(size) == len(model)
        assert model
        found_keys, found_values = (x.tolist() for x in sess.run(table.export()))
        as_keys = [tuple(k) for k in found_keys] if shape else found_keys
        assert dict(zip(as_keys, [v for (v,) in found_values])) == model


@pytest.mark.parametrize("mode", MODES)
def test_loops_and_branches_read_and_write_in_program_order(graph: fs.Graph, mode: str) -> None:
    table = lookup.MutableHashTable(fs.int64, fs.int64, 0)

    def body(i: fs.Tensor, total: fs.Tensor) -> tuple[fs.Tensor, fs.Tensor]:
        seen = table.lookup(i % 3)
        with fs.control_dependencies([table.insert(i % 3, seen + i)]):
            total += table.lookup(i % 3)
        return i + 1, total

    start = [fs.constant(0, fs.int64), fs.constant(0, fs.int64)]
    _, total = fs.while_loop(lambda i, _: i < 9, body, start)
    flag = fs.placeholder(fs.bool, [])

    def drop() -> fs.Tensor:
        with fs.control_dependencies([table.remove(fs.constant([0, 1], fs.int64))]):
            return table.size()

    size = fs.cond(flag, drop, table.size)
    sums, expected = dict.fromkeys(range(3), 0), 0
    for i in range(9):
        sums[i % 3] += i
        expected += sums[i % 3]
    with session(mode) as sess:
        assert sess.run(total) == expected
        assert sess.run(size, {flag: False}) == 3
        assert sess.run(size, {flag: True}) == 1
        assert sess.run(table.lookup(np.arange(3))).tolist() == [0, 0, sums[2]]


# -- files ----------------------------------------------------------------------------------------


def test_columns_of_files(graph: fs.Graph, tmp_path: Path) -> None:
    file = tmp_path / "table.txt"
    file.write_bytes(b"one,1,1.5\r\ntwo,2,2.5\nthree,3,3.5")
    index = fs.lookup.TextFileIndex
    make = fs.lookup.TextFileInitializer
    floats = lookup.HashTable(make(str(file), fs.string, 0, fs.float32, 2, delimiter=","), -1.0)
    whole = lookup.HashTable(
        make(fs.constant(str(file)), fs.int64, index.LINE_NUMBER, fs.string, index.WHOLE_LINE), "-"
    )
    two = lookup.index_table_from_file(
        str(file), vocab_size=2, key_column_index=1, delimiter=",", key_dtype=fs.int64
    )
    assert len(graph.get_collection(fs.GraphKeys.ASSET_FILEPATHS)) == 3
    with session() as sess:
        sess.run(fs.tables_initializer())
        assert ran(sess, floats.lookup(fs.constant(["two", "x"]))) == [2.5, -1.0]
        assert ran(sess, whole.lookup(fs.constant([0, 2], fs.int64))) == [
            b"one,1,1.5",
            b"three,3,3.5",
        ]
        assert ran(sess, two.lookup(fs.constant([1, 2, 3], fs.int64))) == [0, 1, -1]


BAD_FILES = {
    "a column is missing": (b"a\t1\nb\n", {}, "column 1 in line 1"),
    "a number is none": (b"a\tx\n", {}, "int64 in column 1 of line 0"),
    "a number is too large": (b"a\t%d\n" % 2**70, {}, "numbers that fit int64"),
    "it is too short": (b"a\t1\n", {"vocab_size": 2}, "2 lines"),
}


@pytest.mark.parametrize("bad", BAD_FILES)
def test_a_damaged_file_is_refused_and_leaves_the_table_as_it_was(graph, bad, tmp_path) -> None:
    text, more, message = BAD_FILES[bad]
    file = tmp_path / "table.txt"
    init = fs.lookup.TextFileInitializer(str(file), fs.string, 0, fs.int64, 1, **more)
    table = lookup.HashTable(init, -1)
    with session() as sess:
        with pytest.raises(NotFoundError, match=r"table\.txt"):
            sess.run(table.init)
        file.write_bytes(text)
        with pytest.raises(InvalidArgumentError, match=message):
            sess.run(table.init)
        file.write_bytes(b"a\t1\nb\t2\n")
        sess.run(table.init)
        assert ran(sess, table.lookup(fs.constant(["b"]))) == [2]


# -- mistakes -------------------------------------------------------------------------------------

AN_INIT = lambda: lookup.KeyValueTensorInitializer(["a"], [1])  # noqa: E731
MISTAKES = {
    "float keys": (lambda: lookup.MutableHashTable(fs.float32, fs.int64, -1), "strings or int"),
    "keys": (lambda: lookup.HashTable(AN_INIT(), -1).lookup(fs.constant([1.0])), "dtype string"),
    "values": (
        lambda: lookup.MutableHashTable(fs.int64, fs.int64, -1).insert([1, 2], [1, 2, 3]),
        r"values of shape",
    ),
    "default": (lambda: lookup.HashTable(AN_INIT(), [1, 2]), "a scalar as default_value"),
    "lengths": (lambda: lookup.KeyValueTensorInitializer(["a", "b"], [1]), "each of the keys"),
    "one key": (
        lambda: lookup.MutableDenseHashTable(fs.int64, fs.int64, -1, 3, 3),
        "that differ",
    ),
    "buckets": (
        lambda: lookup.MutableDenseHashTable(fs.int64, fs.int64, -1, 3, 4, 12),
        "power of two",
    ),
    "no bucket": (lambda: fs.lookup.StaticVocabularyTable(AN_INIT(), 0), "1 or more"),
    "int32": (lambda: fs.lookup.StaticVocabularyTable(AN_INIT(), 1), "int64 values"),
    "no table": (lambda: lookup.IdTableWithHashBuckets(None, 0), "without a table"),
    "hash": (lambda: lookup.StrongHashSpec([1]), "two integers"),
    "no file": (lambda: lookup.index_table_from_file(""), "vocabulary_file"),
    "column": (
        lambda: fs.lookup.TextFileInitializer("f", fs.string, -3, fs.int64, 0),
        "key_index of -2 or more",
    ),
    "line": (
        lambda: fs.lookup.TextFileInitializer("f", fs.string, -1, fs.int64, 0),
        "int64 as key_dtype",
    ),
    "negative": (lambda: lookup.index_table_from_tensor(["a"], -1), "0 or more"),
    "no words": (lambda: lookup.index_to_string_table_from_tensor(None), "as mapping"),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_mistakes_are_told_where_they_are_made(graph: fs.Graph, what: str) -> None:
    make, message = MISTAKES[what]
    with pytest.raises((InvalidArgumentError, DTypeError), match=message):
        make()


@pytest.mark.parametrize("mode", MODES)
def test_mistakes_that_only_values_tell(graph: fs.Graph, mode: str) -> None:
    twice = lookup.HashTable(lookup.KeyValueTensorInitializer(["a", "b", "a"], [1, 2, 3]), -1)
    same = lookup.HashTable(lookup.KeyValueTensorInitializer(["a", "a"], [1, 1]), -1)
    one = lookup.HashTable(AN_INIT(), -1, shared_name="shared")
    other = lookup.HashTable(lookup.KeyValueTensorInitializer(["b"], [1]), -1, shared_name="shared")
    third = lookup.MutableHashTable(fs.string, fs.int32, -1, shared_name="shared")
    dense = lookup.MutableDenseHashTable(fs.int64, fs.int64, -1, 3, 4)
    with session(mode) as sess:
        with pytest.raises(FailedPreconditionError, match="b'a' stands twice"):
            sess.run(twice.init)
        sess.run(same.init)
        sess.run(one.init)
        with pytest.raises(FailedPreconditionError, match="initialized already, with other"):
            sess.run(other.init)
        assert ran(sess, other.lookup(fs.constant(["a", "b"]))) == [1, -1]
        with pytest.raises(InvalidArgumentError, match="kind HashTable, expected MutableHash"):
            sess.run(third.size())
        for what, number in (("empty_key", 3), ("deleted_key", 4)):
            for op in (dense.insert([1, number], [1, 2]), dense.lookup([number])):
                with pytest.raises(InvalidArgumentError, match=f"{what} must not be used"):
                    sess.run(op)
        assert sess.run(dense.size()) == 0


# -- how long they live ---------------------------------------------------------------------------


def test_two_sessions_share_a_table_of_a_container(graph: fs.Graph) -> None:
    with fs.container("tables of a test"):
        table = lookup.MutableHashTable(fs.int64, fs.int64, -1)
    own = lookup.MutableHashTable(fs.int64, fs.int64, -1)
    with session() as one, session() as two:
        one.run([table.insert([1], [2]), own.insert([1], [2])])
        assert two.run([table.size(), own.size()]) == [1, 0]
    fs.Session.reset("", ["tables of a test"])
    with session() as sess:
        assert sess.run(table.size()) == 0


def test_a_re_run_cell_keeps_a_table_that_is_the_same(graph: fs.Graph) -> None:
    def cell(words: list[str], default: int = -1) -> tuple[Any, Any, Any]:
        with graph.cell("a"):
            mutable = lookup.MutableHashTable(fs.string, fs.int64, default)
            static = lookup.index_table_from_tensor(words)
            return mutable, static, fs.tables_initializer()

    with session() as sess:
        mutable, static, init = cell(["a", "b"])
        sess.run([init, mutable.insert(["x"], [1])])
        mutable, static, init = cell(["a", "b"])
        assert sess.run(mutable.size()) == 1
        assert ran(sess, static.lookup(fs.constant(["b", "c"]))) == [1, -1]
        mutable, static, init = cell(["a", "c"])
        sess.run(init)
        assert ran(sess, static.lookup(fs.constant(["b", "c"]))) == [-1, 1]
        assert sess.run(mutable.size()) == 1


def test_savers_restore_what_fits_and_say_what_is_missing(graph: fs.Graph, tmp_path) -> None:
    table = lookup.MutableHashTable(fs.string, fs.int64, -1, name="words")
    lookup.MutableHashTable(fs.string, fs.int64, -1, name="passing", checkpoint=False)
    weight = fs.Variable(1.0, name="weight")
    saver = fs.train.Saver()
    renamed = fs.train.Saver({"other": table, "weight": weight})
    with session() as sess:
        sess.run([fs.global_variables_initializer(), table.insert(["a"], [1])])
        path = saver.save(sess, tmp_path / "model")
        names = sorted(name for name, _ in fs.train.list_variables(path))
        assert names == ["weight", "words-keys", "words-values"]
        with pytest.raises(NotFoundError, match=r"other-keys(.|\n)*other-values"):
            renamed.restore(sess, path)
        sess.run([table.insert(["b"], [2]), weight.assign(3.0)])
        renamed.restore(sess, path, partial=True)
        assert sess.run([table.size(), weight]) == [2, 1.0]
        saver.restore(sess, path)
        assert sess.run(table.size()) == 1


def test_a_monitored_session_fills_and_restores_tables(graph: fs.Graph, tmp_path) -> None:
    table = lookup.MutableHashTable(fs.string, fs.int64, -1)
    words = lookup.index_table_from_tensor(["a", "b"])
    step = fs.train.get_or_create_global_step().assign_add(1)
    ids, put, size = words.lookup(fs.constant("b")), table.insert("x", 5), table.size()
    for count in (0, 1):
        with fs.train.MonitoredTrainingSession(
            checkpoint_dir=str(tmp_path), save_checkpoint_steps=1
        ) as sess:
            assert sess.run(size) == count
            assert sess.run(ids) == 1
            sess.run(put)
            sess.run(step)


def test_a_graph_that_is_read_again_has_its_tables(graph: fs.Graph, tmp_path: Path) -> None:
    table = lookup.MutableDenseHashTable(fs.string, fs.int64, -1, b"\xff", "d", name="t")
    table.insert(["a"], [4], name="put")
    fs.identity(table.lookup(["a", "b"]), name="found")
    fs.train.export_meta_graph(str(tmp_path / "graph"))
    with fs.Graph().as_default(), session() as sess:
        fs.train.import_meta_graph(str(tmp_path / "graph"))
        sess.run("put")
        assert ran(sess, "found:0") == [4, -1]


def test_a_lookup_cannot_be_replayed_and_says_why(graph: fs.Graph) -> None:
    table = lookup.MutableHashTable(fs.string, fs.int64, -1)
    with session() as sess:
        sess.debug.record()
        sess.run(table.lookup("a"))
        with pytest.raises(FailedPreconditionError, match="a table, which other steps change"):
            sess.debug.replay(0)
