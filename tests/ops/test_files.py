"""Files as operations, and a pipeline from files to batches."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import flowscope as fs
from flowscope.errors import (
    DTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
)

MODES = ("compiled", "op", "tokens")


def session(mode: str) -> fs.Session:
    return fs.Session(config=fs.ConfigProto(mode=mode))


@pytest.mark.parametrize("mode", MODES)
def test_written_files_are_read_in_the_order_of_effects(graph, tmp_path: Path, mode: str) -> None:
    name, contents = fs.placeholder(fs.string, []), fs.placeholder(fs.string, [])
    write = fs.write_file(name, contents)
    with fs.control_dependencies([write]):
        back = fs.read_file(name)
    path = tmp_path / "new" / "folder" / "a.txt"
    with session(mode) as sess:
        for text in (b"first\x00\xff", b""):
            assert sess.run(back, {name: str(path), contents: text}) == text
        assert path.read_bytes() == b""
        path.write_bytes(b"other")  # it is read anew in each run
        assert sess.run(fs.read_file(str(path))) == b"other"


def test_what_cannot_be_read_is_told_with_its_name(graph, tmp_path: Path) -> None:
    with fs.Session() as sess:
        with pytest.raises(NotFoundError, match="nowhere.txt"):
            sess.run(fs.read_file(str(tmp_path / "nowhere.txt")))
        with pytest.raises(FailedPreconditionError, match="cannot read the file"):
            sess.run(fs.read_file(str(tmp_path)))
        (tmp_path / "file").write_text("")
        with pytest.raises(Exception, match="cannot write the file"):
            sess.run(fs.write_file(str(tmp_path / "file" / "in"), "x"))
    with pytest.raises(InvalidArgumentError, match="scalar"):
        fs.read_file(["a", "b"])
    with pytest.raises(DTypeError, match="string"):
        fs.read_file(1.0)


def test_files_that_match_come_in_order(graph, tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv", "c.txt"):
        (tmp_path / name).write_text("")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "e.csv").write_text("")

    def names(found) -> list[str]:
        return [Path(os.fsdecode(f)).name for f in found]

    with fs.Session() as sess:
        csv = str(tmp_path / "*.csv")
        assert names(sess.run(fs.matching_files(csv))) == ["a.csv", "b.csv"]
        both = [str(tmp_path / "*.txt"), csv, csv]
        assert names(sess.run(fs.matching_files(both))) == ["a.csv", "b.csv", "c.txt"]
        assert names(sess.run(fs.matching_files(str(tmp_path / "*/e.csv")))) == ["e.csv"]
        assert sess.run(fs.matching_files(str(tmp_path / "no*"))).shape == (0,)
        once = fs.train.match_filenames_once(csv)
        sess.run(fs.local_variables_initializer())
        (tmp_path / "f.csv").write_text("")
        assert names(sess.run(once)) == ["a.csv", "b.csv"]
    with pytest.raises(InvalidArgumentError, match="a pattern"):
        fs.matching_files([["a"]])


@pytest.mark.parametrize("mode", MODES)
def test_from_files_to_batches(graph, tmp_path: Path, mode: str) -> None:
    """Names to a queue, files to examples, examples to batches, as TensorFlow's guide has it."""
    for i in range(5):
        (tmp_path / f"{i}.csv").write_text(f"{i},{i * 10.5}")
    names = fs.train.match_filenames_once(str(tmp_path / "*.csv"))
    queue = fs.train.string_input_producer(names, num_epochs=1, shuffle=False)
    number, value = fs.decode_csv(fs.read_file(queue.dequeue()), [[0], [0.0]])
    batch = fs.train.batch([number, value], 2, allow_smaller_final_batch=True)
    found = []
    with session(mode) as sess:
        sess.run([fs.global_variables_initializer(), fs.local_variables_initializer()])
        coord = fs.train.Coordinator()
        threads = fs.train.start_queue_runners(sess, coord)
        with coord.stop_on_exception():
            while not coord.should_stop():
                found.append([x.tolist() for x in sess.run(batch)])
        coord.join(threads)
    assert found == [[[0, 1], [0.0, 10.5]], [[2, 3], [21.0, 31.5]], [[4], [42.0]]]


def test_a_file_that_vanishes_is_the_error_of_the_batch(graph, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    given = [str(tmp_path / "a"), str(tmp_path / "gone")]
    queue = fs.train.string_input_producer(given, num_epochs=1, shuffle=False)
    batch = fs.train.batch([fs.read_file(queue.dequeue())], 2)
    with pytest.raises(NotFoundError, match="gone"), fs.train.MonitoredSession() as sess:
        sess.run(batch)
