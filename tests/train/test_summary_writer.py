"""Files of events: read back with TensorBoard, and with `summary_iterator`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader

import flowscope as fs
from flowscope.errors import (
    DataLossError,
    DTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    UnimplementedError,
)
from flowscope.ops.input.records import masked_crc32c


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with fs.Graph().as_default():
        yield


def files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


def events(path: Path) -> list[Any]:
    """What TensorBoard reads."""
    return list(LegacyEventFileLoader(str(path)).Load())


def test_checksums() -> None:
    """RFC 3720, B.4: 32 bytes of zeros have the CRC-32C 0x8a9136aa."""
    crc = (masked_crc32c(bytes(32)) - 0xA282EAD8) & 0xFFFFFFFF
    assert (crc << 15 | crc >> 17) & 0xFFFFFFFF == 0x8A9136AA


def test_tensorboard_reads_what_is_written(tmp_path: Path) -> None:
    x = fs.placeholder(fs.float32, [None], name="x")
    with fs.name_scope("train"):
        fs.summary.scalar("loss", fs.reduce_mean(x))
        fs.summary.histogram("x", x)
        fs.summary.image("picture", fs.reshape(x, [1, 1, 3, 1]), max_outputs=1)
        fs.summary.text("note", ["a", "b"])
    merged = fs.summary.merge_all()
    with fs.Session() as session, fs.summary.FileWriter(tmp_path, session.graph) as writer:
        for step in range(3):
            writer.add_summary(session.run(merged, {x: [step, 1.0, 2.0]}), step)
        writer.add_session_log(fs.SessionLog(status=fs.SessionLog.STOP), 3)
    (path,) = files(tmp_path)
    first, graph, *steps, last = events(path)
    assert first.file_version == "brain.Event:2"
    nodes = _nodes(graph.graph_def)
    assert nodes == [op.name for op in fs.get_default_graph().get_operations()]
    assert [e.step for e in steps] == [0, 1, 2]
    assert [e.summary.value[0].simple_value for e in steps] == [
        1.0,
        pytest.approx(4 / 3),
        pytest.approx(5 / 3),
    ]
    loss, numbers, picture, note = steps[2].summary.value
    assert [v.tag for v in steps[2].summary.value] == [
        "train/loss", "train/x", "train/picture/image", "train/note",
    ]  # fmt: skip
    assert loss.WhichOneof("value") == "simple_value"
    assert (numbers.histo.min, numbers.histo.max, numbers.histo.num) == (1.0, 2.0, 3.0)
    assert sum(numbers.histo.bucket) == 3.0
    assert (picture.image.height, picture.image.width) == (1, 3)
    assert picture.image.encoded_image_string.startswith(b"\x89PNG")
    assert note.metadata.plugin_data.plugin_name == "text"
    assert list(note.tensor.string_val) == [b"a", b"b"]
    assert (last.session_log.status, last.step) == (2, 3)
    assert abs(last.wall_time - path.stat().st_mtime) < 60


def _nodes(definition: bytes) -> list[str]:
    from tensorboard.compat.proto.graph_pb2 import GraphDef

    found = GraphDef.FromString(definition)
    mean = next(n for n in found.node if n.name == "train/loss")
    assert (mean.op, list(mean.input)) == ("ScalarSummary", ["train/Mean"])
    (shape,) = next(n for n in found.node if n.name == "x").attr["_output_shapes"].list.shape
    assert [d.size for d in shape.dim] == [-1]
    return [n.name for n in found.node]


def test_events_are_read_back(tmp_path: Path) -> None:
    summary = fs.Summary(value=[fs.Summary.Value(tag="a", simple_value=2.5)])
    with fs.summary.FileWriter(tmp_path, filename_suffix=".mine") as writer:
        writer.add_summary(summary, np.int64(7))
        assert writer.get_logdir() == str(tmp_path)
    (path,) = files(tmp_path)
    assert path.name.startswith("events.out.tfevents.") and path.name.endswith(".mine")
    _, event = fs.train.summary_iterator(path)
    assert (event.step, event.summary) == (7, summary)
    whole = path.read_bytes()
    path.write_bytes(whole[:-3])
    assert len(list(fs.train.summary_iterator(path))) == 1  # the last one is not complete yet
    path.write_bytes(whole[:-9] + b"X" + whole[-8:])
    with pytest.raises(DataLossError, match="checksum"):
        list(fs.train.summary_iterator(path))


def test_events_wait_until_enough_are_there(tmp_path: Path) -> None:
    writer = fs.summary.FileWriter(tmp_path, max_queue=2)
    (path,) = files(tmp_path)
    writer.add_summary(b"", 1)
    assert len(events(path)) == 1
    writer.add_summary(b"", 2)
    assert len(events(path)) == 3
    writer.add_summary(b"", 3)
    writer.flush()
    assert len(events(path)) == 4
    writer.add_summary(b"", 4)
    writer.close()
    assert len(events(path)) == 5


def test_a_writer_without_delay_writes_at_once(tmp_path: Path) -> None:
    with fs.summary.FileWriter(tmp_path, flush_secs=0) as writer:
        writer.add_summary(b"", 1)
        assert len(events(files(tmp_path)[0])) == 2


def test_events_wait_for_a_bounded_time(tmp_path: Path) -> None:
    with fs.summary.FileWriter(tmp_path, flush_secs=0.01) as writer:
        writer.add_summary(b"", 1)
        timer = writer._file._timer
        if timer is not None:  # it may have gone off already
            timer.join()
        assert len(events(files(tmp_path)[0])) == 2


def test_a_closed_writer_says_so_and_opens_another_file(tmp_path: Path) -> None:
    writer = fs.summary.FileWriter(tmp_path)
    writer.reopen()  # it is open
    writer.close()
    writer.close()
    with pytest.raises(FailedPreconditionError, match="reopen"):
        writer.add_summary(b"", 1)
    writer.reopen()
    writer.add_summary(b"", 1)
    writer.close()
    assert [len(events(f)) for f in files(tmp_path)] == [1, 2]


def test_a_forgotten_writer_writes_what_waits(tmp_path: Path) -> None:
    writer = fs.summary.FileWriter(tmp_path)
    writer.add_summary(b"", 1)
    del writer
    assert len(events(files(tmp_path)[0])) == 2


def test_writers_are_shared_by_folder(tmp_path: Path) -> None:
    try:
        writer = fs.summary.FileWriterCache.get(tmp_path)
        assert fs.summary.FileWriterCache.get(str(tmp_path)) is writer
    finally:
        fs.summary.FileWriterCache.clear()
    with pytest.raises(FailedPreconditionError):
        writer.add_summary(b"")


def test_bad_input(tmp_path: Path) -> None:
    with fs.summary.FileWriter(tmp_path / "deep" / "er") as writer:
        with pytest.raises(DTypeError, match="run the summary op"):
            writer.add_summary(fs.summary.scalar("a", 1.0))  # type: ignore[arg-type]
        with pytest.raises(InvalidArgumentError, match="serialized"):
            writer.add_summary(b"\xff")
        with pytest.raises(InvalidArgumentError, match="one of graph"):
            writer.add_graph(None)
        with pytest.raises(DTypeError, match=r"expected an fs\.Graph"):
            writer.add_graph(3)  # type: ignore[arg-type]
    with fs.Session() as session, pytest.raises(UnimplementedError, match="add_summary"):
        fs.summary.FileWriter(tmp_path, session=session)  # type: ignore[arg-type]
