"""Raw operations of readers, tables, staging areas and barriers, in three modes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import flowscope as fs
from flowscope import raw_ops as raw
from flowscope.errors import (
    DTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    UnimplementedError,
)

pytestmark = pytest.mark.usefixtures("graph")
MODES = ("compiled", "op", "tokens")


@pytest.fixture(params=MODES)
def sess(request, graph):
    with fs.Session(config=fs.ConfigProto(mode=request.param)) as made:
        yield made


def records(path: Path, values: list[bytes], compression: str | None = None) -> str:
    with fs.python_io.TFRecordWriter(path, compression) as writer:
        for value in values:
            writer.write(value)
    return str(path)


# -- readers --------------------------------------------------------------------------------------


def test_readers(sess, tmp_path):
    (tmp_path / "lines").write_bytes(b"head\none\ntwo\n")
    (tmp_path / "fixed").write_bytes(b"HHabxcdxF")
    packed = records(tmp_path / "packed", [b"p", b"q"], "GZIP")
    names = raw.FIFOQueueV2(component_types=[fs.string], shapes=[[]])
    name = fs.placeholder(fs.string, [])
    put = raw.QueueEnqueueV2(handle=names, components=[name])

    def read(reader, path):
        record = raw.ReaderReadV2(reader_handle=reader, queue_handle=names)
        sess.run(put, {name: str(path)})
        return sess.run(record)

    lines = raw.TextLineReaderV2(skip_header_lines=1)
    assert read(lines, tmp_path / "lines").value == b"one"
    assert sess.run(raw.ReaderNumRecordsProducedV2(reader_handle=lines)) == 1
    state = sess.run(raw.ReaderSerializeStateV2(reader_handle=lines))
    rest = raw.ReaderReadUpToV2(reader_handle=lines, queue_handle=names, num_records=9)
    assert sess.run(rest).values.tolist() == [b"two"]
    sess.run(raw.ReaderRestoreStateV2(reader_handle=lines, state=state))
    assert sess.run(rest.values).tolist() == [b"two"]
    sess.run(raw.ReaderResetV2(reader_handle=lines))
    assert sess.run(raw.ReaderNumWorkUnitsCompletedV2(reader_handle=lines)) == 0
    fixed = raw.FixedLengthRecordReaderV2(
        record_bytes=2, header_bytes=2, footer_bytes=1, hop_bytes=3
    )
    assert read(fixed, tmp_path / "fixed").value == b"ab"
    assert read(raw.TFRecordReaderV2(compression_type="GZIP"), packed).value == b"p"
    assert read(raw.IdentityReaderV2(), "anything") == (b"anything", b"anything")
    assert read(raw.WholeFileReaderV2(), tmp_path / "lines").value == b"head\none\ntwo\n"
    # What one shares by name, an object of ours and TensorFlow's older names are the same.
    first, second = [raw.TextLineReader(shared_name="shared") for _ in range(2)]
    assert read(first, tmp_path / "lines").value == b"head"
    for value in (b"one", b"two"):
        one = raw.ReaderRead(reader_handle=second, queue_handle=names)
        assert sess.run(one.value) == value
    ours = fs.TextLineReader(shared_name="shared")
    assert sess.run(raw.ReaderNumRecordsProduced(reader_handle=ours)) == 3
    with pytest.raises(DTypeError, match="expected the handle of a reader"):
        raw.ReaderResetV2(reader_handle=names)
    with pytest.raises(DTypeError, match="expected a queue of strings"):
        raw.ReaderReadV2(reader_handle=lines, queue_handle="names")
    with pytest.raises(InvalidArgumentError, match="record_bytes"):
        raw.FixedLengthRecordReaderV2(record_bytes=0)


# -- tables ---------------------------------------------------------------------------------------


def test_static_tables(sess, tmp_path):
    table = raw.HashTableV2(key_dtype=fs.string, value_dtype=fs.int64, shared_name="words")
    same = raw.HashTableV2(key_dtype=fs.string, value_dtype=fs.int64, shared_name="words")
    found = raw.LookupTableFindV2(table_handle=same, keys=["b", "x"], default_value=-1)
    with pytest.raises(FailedPreconditionError, match="words"):
        sess.run(found)
    sess.run(raw.InitializeTableV2(table_handle=table, keys=["a", "b"], values=[5, 6]))
    assert sess.run(found).tolist() == [6, -1]
    assert sess.run(raw.LookupTableSizeV2(table_handle=same)) == 2
    all_ = raw.LookupTableExportV2(table_handle=same, Tkeys=fs.string, Tvalues=fs.int64)
    assert [v.tolist() for v in sess.run(all_)] == [[b"a", b"b"], [5, 6]]
    with pytest.raises(DTypeError, match="expected Tkeys and Tvalues string and int64"):
        raw.LookupTableExportV2(table_handle=same, Tkeys=fs.int64, Tvalues=fs.int64)
    (tmp_path / "words").write_bytes(b"# a comment\nx,7\ny,8\nz,9\n")
    file = raw.HashTable(key_dtype=fs.string, value_dtype=fs.int64)
    sess.run(
        raw.InitializeTableFromTextFile(
            table_handle=file, filename=str(tmp_path / "words"), key_index=0, value_index=1,
            vocab_size=2, delimiter=",", offset=1,
        )
    )  # fmt: skip
    found = raw.LookupTableFind(table_handle=file, keys=[["y", "z"]], default_value=0)
    assert sess.run(found).tolist() == [[8, 0]]
    lines = raw.HashTableV2(key_dtype=fs.string, value_dtype=fs.int64)
    sess.run(
        raw.InitializeTableFromTextFileV2(
            table_handle=lines, filename=str(tmp_path / "words"), key_index=-2, value_index=-1,
            offset=1,
        )
    )  # fmt: skip
    found = raw.LookupTableFindV2(table_handle=lines, keys="z,9", default_value=-1)
    assert sess.run(found) == 2  # the lines that are passed over are not counted
    for wrong in ({"vocab_size": 0}, {"offset": -1}, {"key_index": -3}):
        with pytest.raises(InvalidArgumentError, match=next(iter(wrong))):
            raw.InitializeTableFromTextFileV2(
                table_handle=lines, filename="x", **({"key_index": 0, "value_index": 1} | wrong)
            )
    with pytest.raises(DTypeError, match="expected the handle of a table"):
        raw.LookupTableSizeV2(table_handle=fs.Variable(1.0).handle)
    with pytest.raises(DTypeError, match="strings or integers as keys"):
        raw.HashTableV2(key_dtype=fs.float32, value_dtype=fs.int64)


def test_tables_that_change(sess):
    made = {
        "plain": raw.MutableHashTableV2(key_dtype=fs.int64, value_dtype=fs.float32),
        "vectors": raw.MutableHashTableOfTensorsV2(
            key_dtype=fs.int64, value_dtype=fs.float32, value_shape=[2]
        ),
        "dense": raw.MutableDenseHashTableV2(
            empty_key=np.int64(-1), deleted_key=np.int64(-2), value_dtype=fs.float32,
            value_shape=[2], initial_num_buckets=4, max_load_factor=0.5,
        ),
    }  # fmt: skip
    for kind, table in made.items():
        shape = [] if kind == "plain" else [2]
        values = np.arange(3, dtype="f").reshape([3] + [1] * len(shape)) * np.ones(shape, "f")
        default = np.full(shape, 9.0, "f")
        sess.run(raw.LookupTableInsertV2(table_handle=table, keys=[3, 4, 5], values=values))
        sess.run(raw.LookupTableRemoveV2(table_handle=table, keys=[4]))
        found = raw.LookupTableFindV2(table_handle=table, keys=[5, 4], default_value=default)
        np.testing.assert_array_equal(sess.run(found), [values[2], default])
        sess.run(raw.LookupTableImportV2(table_handle=table, keys=[8], values=values[1:2]))
        out = raw.LookupTableExportV2(table_handle=table, Tkeys=fs.int64, Tvalues=fs.float32)
        keys, exported = sess.run(out)
        assert keys.tolist() == [8] and sess.run(raw.LookupTableSize(table_handle=table)) == 1
        np.testing.assert_array_equal(exported, values[1:2])
    for wrong in ({"max_load_factor": 1.0}, {"initial_num_buckets": 3}, {"value_shape": [None]}):
        with pytest.raises(InvalidArgumentError, match=next(iter(wrong))):
            raw.MutableDenseHashTableV2(empty_key=0, deleted_key=1, value_dtype=fs.float32, **wrong)
    ours = fs.contrib.lookup.MutableHashTable(fs.string, fs.int64, -1)
    sess.run(raw.LookupTableInsertV2(table_handle=ours, keys=["k"], values=[3]))
    assert sess.run(ours.lookup(fs.constant(["k"]))).tolist() == [3]


# -- staging areas and barriers -------------------------------------------------------------------


def test_staging_areas_are_shared_by_name(sess):
    put = raw.Stage(values=[np.float32(1.5), [1, 2]], capacity=2, shared_name="area")
    dtypes = [fs.float32, fs.int32]
    facts = {"dtypes": dtypes, "capacity": 2, "shared_name": "area"}
    size = raw.StageSize(**facts)
    for _ in range(2):
        sess.run(put)
    assert sess.run(size) == 2
    number, values = sess.run(raw.StagePeek(index=1, **facts))
    assert (number, values.tolist()) == (1.5, [1, 2])
    assert sess.run(raw.Unstage(**facts))[0] == 1.5
    sess.run(raw.StageClear(**facts))
    assert sess.run(size) == 0
    with pytest.raises(DTypeError, match="the staging area's"):
        raw.Unstage(dtypes=[fs.float32], capacity=2, shared_name="area")
    alone = [raw.StageSize(dtypes=dtypes), raw.StageSize(dtypes=dtypes)]
    assert sess.run([raw.Stage(values=[1.0, 2]), *alone])[1:] == [0, 0]


@pytest.mark.parametrize("prefix", ["", "Ordered"])
def test_staging_areas_with_keys(sess, prefix):
    def op(name, **more):
        return getattr(raw, f"{prefix}Map{name}")(shared_name="map", **more)

    dtypes = [fs.float32, fs.string]
    for key, number in ((7, 0.5), (3, 1.5)):
        sess.run(op("Stage", key=key, indices=[0], values=[np.float32(number)], dtypes=dtypes))
    assert sess.run(op("IncompleteSize", dtypes=dtypes)) == 2
    for key in (7, 3):
        sess.run(op("Stage", key=key, indices=fs.constant([1]), values=[f"k{key}"], dtypes=dtypes))
    assert sess.run(op("Size", dtypes=dtypes)) == 2
    assert sess.run(op("Peek", key=3, indices=[1], dtypes=[fs.string])) == [b"k3"]
    key, values = sess.run(op("UnstageNoKey", indices=[0, 1], dtypes=dtypes))
    assert (key, values) == ((3, [1.5, b"k3"]) if prefix else (7, [0.5, b"k7"]))
    left = 7 if prefix else 3
    assert sess.run(op("Unstage", key=left, indices=[0, 1], dtypes=dtypes))[1] == b"k%d" % left
    sess.run(op("Clear", dtypes=dtypes))
    index = fs.placeholder(fs.int32, [1])
    with pytest.raises(InvalidArgumentError, match="indices that are known"):
        op("Peek", key=3, indices=index, dtypes=[fs.string])
    with pytest.raises(InvalidArgumentError, match="all components"):
        raw.MapUnstage(key=1, indices=[1], dtypes=[fs.string], shared_name="nobody's")


def test_barriers(sess):
    barrier = raw.Barrier(component_types=[fs.float32, fs.string], shapes=[[], []])

    def insert(index, keys, values):
        return raw.BarrierInsertMany(
            handle=barrier, keys=keys, values=values, component_index=index
        )

    sess.run(insert(0, ["a", "b"], [1.0, 2.0]))
    sess.run(insert(1, ["b"], ["two"]))
    assert sess.run(raw.BarrierReadySize(handle=barrier)) == 1
    assert sess.run(raw.BarrierIncompleteSize(handle=barrier)) == 1
    types = {"component_types": [fs.float32, fs.string]}
    taken = sess.run(raw.BarrierTakeMany(handle=barrier, num_elements=1, **types))
    assert taken.keys.tolist() == [b"b"] and taken.values[1].tolist() == [b"two"]
    sess.run(raw.BarrierClose(handle=barrier))
    small = raw.BarrierTakeMany(handle=barrier, num_elements=3, allow_small_batch=True, **types)
    sess.run(insert(1, ["a"], ["one"]))
    assert sess.run(small.values[0]).tolist() == [1.0]
    with pytest.raises(OutOfRangeError):
        sess.run(small)
    for more in ({"timeout_ms": 5}, {"wait_for_incomplete": True}):
        with pytest.raises(UnimplementedError, match=next(iter(more))):
            raw.BarrierTakeMany(handle=barrier, num_elements=1, **types, **more)
    with pytest.raises(UnimplementedError, match="capacity"):
        raw.Barrier(component_types=[fs.float32], capacity=3)
    with pytest.raises(DTypeError, match="component_types"):
        raw.BarrierTakeMany(handle=barrier, num_elements=1, component_types=[fs.float32])
    with pytest.raises(DTypeError, match="expected the handle of a barrier"):
        raw.BarrierClose(handle=fs.Variable(1.0).handle)


# -- records in random order ----------------------------------------------------------------------


def test_records_in_random_order(sess, tmp_path):
    for i in range(5):
        records(tmp_path / f"r{i}", [b"%d.%d" % (i, k) for k in range(7)])
    facts = {"file_pattern": f"{tmp_path}/r[0-2],{tmp_path}/r[34]", "batch_size": 5}
    raws = raw.RecordInput(**facts, file_parallelism=2, file_buffer_size=10)
    assert raws.shape.as_list() == [5]
    epochs = [[v for _ in range(7) for v in sess.run(raws).tolist()] for _ in range(3)]
    everything = sorted(b"%d.%d" % (i, k) for i in range(5) for k in range(7))
    assert [sorted(e) for e in epochs] == [everything] * 3  # no epoch begins within another
    assert len({tuple(e) for e in epochs}) == 3 and everything not in epochs


def test_the_order_of_records_follows_from_the_seed(tmp_path):
    for i in range(5):
        records(tmp_path / f"r{i}", [b"%d.%d" % (i, k) for k in range(7)], "ZLIB")

    def taken(mode, session_seed, **more):
        with fs.Graph().as_default():
            fs.set_random_seed(session_seed)
            made = fs.contrib.framework.RecordInput(
                f"{tmp_path}/r*", 2, 10, compression_type="ZLIB", **more
            )
            got = made.get_yield_op()
            with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
                return [np.asarray(sess.run(got)).tolist() for _ in range(30)]

    first = taken("compiled", 1, parallelism=3)
    assert all(taken(mode, seed, parallelism=3) == first for mode, seed in zip(MODES, (1, 2, 3)))
    others = [taken("compiled", 1, parallelism=3, seed=1), taken("compiled", 1, parallelism=1),
              taken("compiled", 1, parallelism=3, shift_ratio=0.4)]  # fmt: skip
    assert all(other != first for other in others)
    parted = taken("compiled", 1, parallelism=3, batches=3)
    flat = [v for batch in first for v in batch]
    assert parted[0] == [flat[0:6:3], flat[1:6:3], flat[2:6:3]]


def test_what_records_in_random_order_refuse(sess, tmp_path):
    make = fs.contrib.framework.RecordInput
    for wrong in (
        {"batch_size": 0}, {"buffer_size": -1}, {"parallelism": 0}, {"batches": 0},
        {"shift_ratio": 1}, {"shift_ratio": -0.1},
    ):  # fmt: skip
        with pytest.raises(InvalidArgumentError, match=next(iter(wrong))):
            make("x", **wrong)
    with pytest.raises(InvalidArgumentError, match="compression"):
        make("x", compression_type="LZ4")
    with pytest.raises(DTypeError, match="file_pattern"):
        make(["a", "b"])
    nothing = make(f"{tmp_path}/none*").get_yield_op()
    with pytest.raises(NotFoundError, match="no files are found at .*none"):
        sess.run(nothing)
    records(tmp_path / "empty", [])
    with pytest.raises(OutOfRangeError):
        sess.run(make(f"{tmp_path}/empty").get_yield_op())
