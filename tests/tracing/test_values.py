"""Values in recordings: what was fetched and recorded, within a bound, in files."""

import json
import zlib

import numpy as np
import pytest

import flowscope as fs
from flowscope.tracing import files, load, values
from flowscope.tracing.recording import KeptValue, TensorValues
from flowscope.tracing.values import FetchedValues, is_storable, merged

pytestmark = pytest.mark.usefixtures("graph")


def kept(*steps, size=10):
    return tuple([KeptValue(k, (), np.full(size, k, np.float32)) for k in steps])


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_what_traced_steps_fetch_is_in_the_file(tmp_path, mode):
    x = fs.placeholder(fs.float32, [2], name="x")
    y = fs.exp(x, name="y")
    s, total = fs.constant("text", name="s"), fs.reduce_sum(y, name="sum")
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        sess.run(y, {x: [9.0, 9.0]})
        with fs.profile(sess) as profiled:
            told = [sess.run([y, s, {"sum": total}], {x: [k, 1.0]})
                    for k in range(3)]  # fmt: skip
            told[0][0][:] = 77.0  # the user's own array: what was recorded stays
        sess.run(y, {x: [9.0, 9.0]})
    profiled.save(tmp_path / "run.recording")
    found = {one.name: one for one in load(tmp_path / "run.recording").values}
    assert sorted(found) == ["sum:0", "y:0"]
    assert [k.step for k in found["y:0"].kept] == [1, 2, 3]
    for k, one in enumerate(found["y:0"].kept):
        np.testing.assert_array_equal(one.value, np.exp(np.array([k, 1.0], np.float32)))
    assert found["sum:0"].kept[1].value == told[1][2]["sum"]
    assert type(found["sum:0"].kept[1].value) is np.float32


def test_what_sessions_record_is_in_it_with_its_iterations(tmp_path):
    x = fs.placeholder(fs.bfloat16, [2], name="x")
    _, v = fs.while_loop(lambda i, v: i < 2, lambda i, v: (i + 1, fs.tanh(v)), [0, x], name="w")
    with fs.Session() as sess, fs.profile() as profiled:
        history = sess.debug.record(["w/body/Tanh", "x"])
        for k in range(2):
            sess.run(v, {x: [k, 1.0]})
    told = history.values("w/body/Tanh")
    profiled.save(tmp_path / "run.recording")
    found = {one.name: one.kept for one in load(tmp_path / "run.recording").values}
    rows = [(k.step, k.iterations) for k in found["w/body/Tanh:0"]]
    assert (
        rows
        == [(k.step, k.iterations) for k in told]
        == [(0, (0,)), (0, (1,)), (1, (0,)), (1, (1,))]
    )
    for one, expected in zip(found["w/body/Tanh:0"], told, strict=True):
        assert one.value.dtype == expected.value.dtype == fs.bfloat16.as_numpy_dtype
        assert one.value.tobytes() == expected.value.tobytes()
    assert [k.step for k in found["x:0"]] == [0, 1]


def test_the_newest_within_the_bound_are_kept_and_the_others_counted():
    log = FetchedValues(1000)
    with fs.Graph().as_default():
        y, z = fs.constant(1.0, name="y"), fs.constant(1.0, name="z")
    for step in range(10):
        log.take(step, (y,), (np.zeros(20, np.float32),))
    log.take(10, (z,), (np.zeros(1000, np.float32),))
    log.take(None, (z,), (np.float32(1),))
    told = {one.name: one for one in log.told()}
    assert [k.step for k in told["y:0"].kept] == [7, 8, 9] and told["y:0"].dropped == 7
    assert told["z:0"] == TensorValues("z:0", (), 1)
    off = FetchedValues(0)
    off.take(1, (y,), (np.float32(1),))
    assert off.told() == ()


def test_of_a_tensor_in_both_what_was_recorded_is_kept():
    recorded = (TensorValues("a", kept(1, 2), 0),)
    fetched = (TensorValues("a", kept(1), 0), TensorValues("b", kept(0, 1, 3), 4))
    both = merged(recorded, fetched, 10_000)
    assert [(v.name, [k.step for k in v.kept], v.dropped) for v in both] == [
        ("a", [1, 2], 0), ("b", [0, 1, 3], 4),
    ]  # fmt: skip
    some = merged(recorded, fetched, 3 * 240)
    assert [(v.name, [k.step for k in v.kept], v.dropped) for v in some] == [
        ("a", [2], 1), ("b", [1, 3], 5),
    ]  # fmt: skip


def test_only_numbers_and_bools_are_kept():
    assert is_storable(np.float32(1)) and is_storable(np.zeros(2, bool))
    assert is_storable(np.zeros(2, fs.bfloat16.as_numpy_dtype))
    for value in (b"text", np.array([b"text"], object), None, np.zeros(1, "M8[s]"), 3):
        assert not is_storable(value)


@pytest.fixture
def file(tmp_path):
    y = fs.constant(np.arange(6.0).reshape(2, 3), name="y")
    with fs.Session() as sess, fs.profile(sess) as profiled:
        sess.run(y)
    profiled.save(tmp_path / "run.recording")
    return tmp_path / "run.recording"


def changed(path, change):
    """Writes the file again with another header, and a checksum that fits."""
    data, start = path.read_bytes()[:-4], len(files.MAGIC)
    size = int.from_bytes(data[start : start + 8], "little")
    header = json.loads(data[start + 8 : start + 8 + size])
    change(header)
    text = json.dumps(header).encode()
    body = files.MAGIC + len(text).to_bytes(8, "little") + text + data[start + 8 + size :]
    path.write_bytes(body + zlib.crc32(body).to_bytes(4, "little"))


def test_a_file_that_says_more_than_it_holds_is_damaged(file):
    original = file.read_bytes()
    changed(file, lambda header: None)
    assert load(file).values[0].kept[0].value.tolist() == [[0, 1, 2], [3, 4, 5]]
    row = [0, [], "float64", [2, 3]]
    for bad in (
        [["y:0", 0, [[0, [], "float64", [2, 30000]]]]],
        [["y:0", 0, [[0, [], "float64", [-2, 3]]]]],
        [["y:0", 0, [[0, [], "string", [6]]]]],
        [["y:0", 0, [[0, [], "no such dtype", [6]]]]],
        [["y:0", 0, [row, row]]],
        [["y:0", 0, 7]],
        7,
    ):
        file.write_bytes(original)
        changed(file, lambda header, bad=bad: header.update(values=bad))
        with pytest.raises(fs.errors.DataLossError, match="is damaged"):
            load(file)


def test_the_bound_is_the_one_that_is_told():
    assert values.MAX_BYTES == 16 << 20
    assert "16 MiB" in fs.profile.save.__doc__
