"""TensorFlow's checkpoints: read bit for bit, restored, written, and refused where damaged."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowscope as fs
from flowscope.tensorflow.checkpoints.bundle import write_bundle
from flowscope.tensorflow.checkpoints.slice_keys import slice_key
from flowscope.tensorflow.checkpoints.sorted_table import read_table, table_bytes, unsnapped

FOLDER = Path(__file__).parent / "data" / "checkpoint"
PREFIX = str(FOLDER / "model-7")


def expected() -> dict[str, Any]:
    with np.load(FOLDER / "expected.npz") as file:
        found = {name.replace("|", "/"): file[name] for name in file.files}
    found["v/bfloat16"] = found["v/bfloat16"].view(fs.bfloat16.np_dtype)
    found["v/text"] = np.array([b"", b"a\x00b", "ü".encode() * 70], object)
    return found


def same(a: Any, b: Any) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    equal = a.tolist() == b.tolist() if a.dtype == object else a.tobytes() == b.tobytes()
    return a.dtype == b.dtype and a.shape == b.shape and equal


def test_all_dtypes_and_parts_are_read_bit_for_bit() -> None:
    values = expected()
    assert fs.train.latest_checkpoint(str(FOLDER)) == PREFIX
    reader = fs.train.load_checkpoint(str(FOLDER))
    assert dict(fs.train.list_variables(PREFIX)) == {n: list(v.shape) for n, v in values.items()}
    for name, value in values.items():
        assert same(reader.get_tensor(name), value), name
        assert same(fs.train.load_variable(PREFIX, name), value)
    # A part of a tensor that was written in two parts, across their border.
    assert same(reader.read("columns", [1, 140], [1, 20]), values["columns"][1:, 140:160])
    assert not reader.has_tensor("other")
    with pytest.raises(fs.errors.NotFoundError, match="other"):
        reader.get_tensor("other")


def test_savers_restore_and_warm_starts_take_them() -> None:
    values = expected()
    with fs.Graph().as_default():
        rows = fs.get_variable(
            "rows",
            [7, 5],
            partitioner=fs.fixed_size_partitioner(2),
            initializer=fs.zeros_initializer(),
        )
        columns = fs.get_variable("columns", [2, 300])
        text = fs.get_variable("v/text", [3], fs.string, initializer=fs.constant_initializer(b""))
        with fs.Session() as session:
            report = fs.train.Saver().restore(session, PREFIX)
            assert report is not None and report.is_complete
            assert same(session.run(fs.convert_to_tensor(rows)), values["rows"])
            assert same(session.run(columns), values["columns"])
            assert same(session.run(text), values["v/text"])
    with fs.Graph().as_default():
        other = fs.get_variable("mine", [3, 1], fs.float32)
        fs.train.init_from_checkpoint(PREFIX, {"v/float32": "mine"})
        with fs.Session() as session:
            session.run(fs.global_variables_initializer())
            assert same(session.run(other), values["v/float32"])


def test_what_is_written_is_as_tensorflow_writes_it(tmp_path: Path) -> None:
    values = {n: v for n, v in expected().items() if n.startswith("v/")}
    write_bundle(str(tmp_path / "mine"), values)
    mine = read_table((tmp_path / "mine.index").read_bytes())
    theirs = read_table((FOLDER / "model-7.index").read_bytes())
    reader = fs.train.load_checkpoint(PREFIX)
    for name, value in values.items():
        # Checksum, size, dtype and shape; only the place in the file differs.
        a, b = (fs.train.load_checkpoint(p)._entries[name] for p in (tmp_path / "mine", PREFIX))
        assert (a.crc32c, a.size, a.dtype, a.shape) == (b.crc32c, b.size, b.dtype, b.shape)
        assert same(reader.get_tensor(name), value)
    assert mine[b""] == theirs[b""]


def test_a_saver_writes_them_and_keeps_few(tmp_path: Path) -> None:
    with fs.Graph().as_default():
        w = fs.Variable([1.0, 2.0], name="w")
        s = fs.Variable([b"x", b""], name="s")
        with fs.Session() as session:
            session.run(fs.global_variables_initializer())
            saver = fs.train.Saver(max_to_keep=2, write_version=fs.train.SaverDef.V2)
            for step in range(4):
                session.run(fs.assign(w, [step, 2.0]))
                saver.save(session, str(tmp_path / "model"), step)
            names = {p.name for p in tmp_path.iterdir() if not p.name.endswith(".meta")}
            assert names == {"checkpoint"} | {
                f"model-{i}.{end}" for i in (2, 3) for end in ("index", "data-00000-of-00001")
            }
            text = (tmp_path / "checkpoint").read_text()
            assert text.startswith('model_checkpoint_path: "')
            latest = fs.train.latest_checkpoint(str(tmp_path))
            assert latest == str(tmp_path / "model-3")
            session.run(fs.assign(w, [9.0, 9.0]))
            # A saver of our own format restores the other one too, and writes over it.
            ours = fs.train.Saver()
            ours.restore(session, latest)
            assert session.run(w).tolist() == [3.0, 2.0]
            assert session.run(s).tolist() == [b"x", b""]
            session.run(fs.assign(w, [5.0, 5.0]))
            ours.save(session, latest)
            assert fs.train.load_variable(latest, "w").tolist() == [5.0, 5.0]
            session.run(fs.assign(w, [6.0, 6.0]))
            saver.save(session, latest)
            assert fs.train.load_variable(latest, "w").tolist() == [6.0, 6.0]


def test_tables_of_any_size_come_back() -> None:
    rng = random.Random(1)
    for size in (0, 1, 15, 16, 17, 300, 20_000):
        values = {
            bytes(rng.choices(b"ab/\x00", k=rng.randrange(1, 12))): rng.randbytes(rng.randrange(9))
            for _ in range(size)
        }
        assert read_table(table_bytes(values)) == values


def test_what_snappy_compressed_is_read() -> None:
    # A literal, a copy that overlaps itself, and one with an offset of two bytes.
    data = bytes([13, 2 << 2]) + b"abc" + bytes([(0 << 2) | 1, 3, (5 << 2) | 2, 7, 0])
    assert unsnapped(data) == b"abcabcaabcabc"
    for broken in (data[:-1], b"\xff\xff\xff\x0f" + data, bytes([13, 1, 9]) + data[2:]):
        with pytest.raises(fs.errors.DataLossError):
            unsnapped(broken)


def test_keys_of_parts_are_tensorflows() -> None:
    keys = [k for k in read_table((FOLDER / "model-7.index").read_bytes()) if k[:1] == b"\0"]
    rows = [slice_key("rows", [(s, n), (0, 5)]) for s, n in ((0, 3), (3, 2), (5, 2))]
    columns = [slice_key("columns", [(0, 2), (s, 150)]) for s in (0, 150)]
    assert sorted(keys) == sorted(rows + columns)


def copied(folder: Path) -> Path:
    for path in FOLDER.glob("model-7.*"):
        shutil.copy(path, folder)
    return folder / "model-7"


@pytest.mark.parametrize("suffix", ["index", "data-00000-of-00001"])
def test_any_damage_is_one_error(suffix: str, tmp_path: Path) -> None:
    prefix = copied(tmp_path)
    path = prefix.with_suffix(f".{suffix}")
    whole = path.read_bytes()
    rng = random.Random(suffix)
    values = expected()
    for _ in range(250):
        data = bytearray(whole)
        at = rng.randrange(len(data))
        if rng.random() < 0.2:
            data = data[:at]
        else:
            data[at] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        try:
            reader = fs.train.load_checkpoint(prefix)
            for name in reader.get_variable_to_shape_map():
                assert same(reader.get_tensor(name), values[name])
        except fs.errors.DataLossError:
            continue


def test_a_missing_file_of_bytes_is_named(tmp_path: Path) -> None:
    prefix = copied(tmp_path)
    prefix.with_suffix(".data-00000-of-00001").unlink()
    with pytest.raises(fs.errors.DataLossError, match="data-00000-of-00001"):
        fs.train.load_variable(prefix, "rows")


@pytest.mark.parametrize(
    ("number", "form"),
    [(0, "80"), (63, "bf"), (-1, "7f"), (-64, "40"), (64, "c040"), (-65, "3fbf"), (8191, "dfff"),
     (8192, "e02000"), (2**62, "ffc04000000000000000"), (-(2**63), "003f8000000000000000")],
)  # fmt: skip
def test_numbers_in_keys_sort_as_numbers(number: int, form: str) -> None:
    assert slice_key("", [(number, 0)])[5:-1].hex() == form


def test_version_1_is_refused_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(table_bytes({b"": b""}))
    with pytest.raises(fs.errors.UnimplementedError, match="version 1"):
        fs.train.load_checkpoint(tmp_path / "old")
