"""Readers: records from files whose names come from a queue."""

from __future__ import annotations

import gzip
import random
import threading
import zlib
from pathlib import Path

import pytest
from late_steps import late

import flowscope as fs
from flowscope.errors import (
    CancelledError,
    DataLossError,
    DTypeError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
)
from flowscope.ops.input.records import record

MODES = ("compiled", "op", "tokens")


def session(mode: str = "compiled") -> fs.Session:
    return fs.Session(config=fs.ConfigProto(mode=mode))


def filled(names: list, is_closed: bool = True, capacity: int = -1):
    """A queue, and the operations that put names into it and close it."""
    queue = fs.FIFOQueue(capacity, fs.string, [[]])
    put = queue.enqueue_many([[str(n) for n in names]] if names else [fs.constant([], fs.string)])
    with fs.control_dependencies([put]):
        last = queue.close() if is_closed else fs.no_op()
    return queue, last


def all_of(sess: fs.Session, fetches) -> list:
    found = []
    while True:
        try:
            found.append(sess.run(fetches))
        except OutOfRangeError:
            return found


class Files:
    """Random files of one kind, and what a reader should make of them."""

    def __init__(self, kind: str, folder: Path, seed: int) -> None:
        self.r = random.Random(seed)
        self.names, self.records = [], []
        make = getattr(self, f"_{kind}")
        self.compression = self.r.choice(["", "GZIP", "ZLIB"]) if kind in ("fixed", "tf") else ""
        pack = {"": bytes, "GZIP": gzip.compress, "ZLIB": zlib.compress}[self.compression]
        self.skipped = self.r.randrange(3)
        self.lengths = self.r.randrange(6), self.r.randrange(1, 9), self.r.randrange(5), 0
        if self.r.random() < 0.5:
            self.lengths = (*self.lengths[:3], self.r.randrange(1, 15))
        for i in range(self.r.randrange(1, 6)):
            path = folder / f"{seed}-{i}"
            self.names.append(str(path).encode())
            values, contents = make(self.names[-1])
            path.write_bytes(pack(contents))
            self.records.append(values)

    def reader(self):
        raise NotImplementedError

    def _whole(self, name):
        contents = self.r.randbytes(self.r.randrange(50))
        self.reader = fs.WholeFileReader
        return [(name, contents)], contents

    def _identity(self, name):
        self.reader = fs.IdentityReader
        return [(name, name)], b""

    def _lines(self, name):
        lines = [b"x" * self.r.choice((0, 1, 20, 300_000)) for _ in range(self.r.randrange(6))]
        ends = [self.r.choice((b"\n", b"\r\n")) for _ in lines]
        if lines and lines[-1] and self.r.random() < 0.5:
            ends[-1] = b""
        self.reader = lambda: fs.TextLineReader(skip_header_lines=self.skipped)
        contents = b"".join(a + b for a, b in zip(lines, ends))
        found = [(b"%s:%d" % (name, i + 1), line) for i, line in enumerate(lines)]
        return found[self.skipped :], contents

    def _fixed(self, name):
        header, length, footer, hop = self.lengths
        contents = self.r.randbytes(self.r.randrange(100))
        self.reader = lambda: fs.FixedLengthRecordReader(
            length, header, footer, hop, encoding=self.compression
        )
        found, at = [], header
        while at + length <= len(contents) - footer:
            found.append((b"%s:%d" % (name, len(found)), contents[at : at + length]))
            at += hop or length
        return found, contents

    def _tf(self, name):
        values = [self.r.randbytes(self.r.randrange(40)) for _ in range(self.r.randrange(5))]
        self.reader = lambda: fs.TFRecordReader(
            options=fs.python_io.TFRecordOptions(self.compression)
        )
        found, at = [], 0
        for value in values:
            found.append((b"%s:%d" % (name, at), value))
            at += len(value) + 16
        return found, b"".join(map(record, values))


@pytest.mark.parametrize("kind", ["whole", "identity", "lines", "fixed", "tf"])
def test_readers_read_what_is_there(graph, tmp_path: Path, kind: str) -> None:
    """Random files, read one by one and by several, given up and gone on with elsewhere."""
    for seed in range(12):
        files = Files(kind, tmp_path, seed)
        flat = [pair for records in files.records for pair in records]
        r = random.Random(seed)
        queue, put = filled([n.decode() for n in files.names])
        reader, count = files.reader(), fs.placeholder(fs.int64, [])
        one, many = reader.read(queue), reader.read_up_to(queue, count)
        asked = reader.num_records_produced(), reader.num_work_units_completed()
        state = reader.serialize_state()
        other = files.reader()
        restore = other.restore_state(state)
        rest = other.read(queue)
        with session(MODES[seed % 3]) as sess:
            sess.run(put)
            found, whole = [], r.random() < 0.5
            stop = r.randrange(len(flat) + 1)
            while len(found) < (len(flat) if whole else stop):
                if r.random() < 0.5:
                    found.append(sess.run(one))
                else:
                    keys, values = sess.run(many, {count: r.randrange(1, 4)})
                    found += zip(keys.tolist(), values.tolist())
                assert sess.run(asked[0]) == len(found)
            if not whole:
                sess.run(restore)
                found += all_of(sess, rest)
            else:
                with pytest.raises(OutOfRangeError, match="is closed and has insufficient"):
                    sess.run(one)
                assert sess.run(asked) == (len(flat), len(files.names))
                sess.run(reader.reset())
                assert sess.run(asked) == (0, 0)
            assert found == flat, seed


@pytest.mark.parametrize("mode", MODES)
def test_a_read_waits_for_a_name(graph, tmp_path: Path, mode: str) -> None:
    for i in range(3):
        (tmp_path / f"{i}").write_bytes(b"" if i == 1 else b"a%d\nb%d" % (i, i))
    queue, _ = filled([], is_closed=False)
    name = fs.placeholder(fs.string, [])
    put, reader = queue.enqueue(name), fs.TextLineReader()
    _, value = reader.read(queue)
    with session(mode) as sess:
        found: list[bytes] = []
        threads = [threading.Thread(target=lambda: found.append(sess.run(value))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for i in range(3):
            sess.run(put, {name: str(tmp_path / f"{i}")})
        for thread in threads:
            thread.join()
        assert sorted(found) == [b"a0", b"a2", b"b0", b"b2"]


@pytest.mark.parametrize("mode", MODES)
def test_no_record_is_lost_by_deadlines_and_stops(graph, tmp_path: Path, mode: str) -> None:
    (tmp_path / "a").write_bytes(b"1\n2\n3\n")
    names = fs.FIFOQueue(10, fs.string, [[]])
    never = fs.FIFOQueue(10, fs.string, [[]])
    put, reader = names.enqueue(str(tmp_path / "a")), fs.TextLineReader()
    _key, value = reader.read(names)
    with fs.control_dependencies([value]):
        stuck = never.dequeue()
    with session(mode) as sess:
        late(sess, value)  # it waits for a name
        sess.run(put)
        assert sess.run(value) == b"1"
        late(sess, [value, stuck])  # it has read a record, which comes back
        assert sess.run(reader.num_records_produced()) == 1
        assert [sess.run(value) for _ in range(2)] == [b"2", b"3"]
        assert sess.run(names.size()) == 0


def test_names_come_in_a_circle_of_a_full_queue(graph, tmp_path: Path) -> None:
    """Many empty files behind each other, more than fit into the queue at once."""
    path = tmp_path / "empty"
    path.write_bytes(b"")
    (tmp_path / "last").write_bytes(b"found")
    queue, put = filled([path] * 3000 + [tmp_path / "last"], capacity=8)
    _, value = fs.TextLineReader().read(queue)
    with session() as sess:
        filler = threading.Thread(target=lambda: sess.run(put))
        filler.start()
        assert sess.run(value) == b"found"
        filler.join()


@pytest.mark.slow
def test_ten_thousand_files(graph, tmp_path: Path) -> None:
    for i in range(10_000):
        (tmp_path / f"{i:05}").write_bytes(b"%d" % i)
    queue, put = filled(sorted(tmp_path.iterdir()))
    reader = fs.WholeFileReader()
    _, values = reader.read_up_to(queue, 100)
    with session() as sess:
        sess.run(put)
        assert [v[0] for v in all_of(sess, values)] == [b"%d" % i for i in range(10_000)]


@pytest.mark.parametrize("mode", MODES)
def test_damaged_and_missing_files(graph, tmp_path: Path, mode: str) -> None:
    good = record(b"first") + record(b"second") + record(b"third")
    damaged = bytearray(good)
    damaged[len(record(b"first")) + 14] ^= 1
    (tmp_path / "damaged").write_bytes(damaged)
    (tmp_path / "good").write_bytes(good)
    queue, put = filled([tmp_path / n for n in ("gone", "damaged", "good")])
    reader = fs.TFRecordReader()
    _key, value = reader.read(queue)
    with session(mode) as sess:
        sess.run(put)
        with pytest.raises(NotFoundError, match="gone") as e:
            sess.run(value)
        assert e.value.op is value.op
        assert sess.run(value) == b"first"
        for _ in range(2):  # more might have been added to it
            with pytest.raises(DataLossError, match="byte 21 of .*damaged' *: it is damaged"):
                sess.run(value)
        sess.run(reader.reset())
        assert [sess.run(value) for _ in range(3)] == [b"first", b"second", b"third"]


def test_a_file_that_grows_and_one_that_vanishes(graph, tmp_path: Path) -> None:
    path = tmp_path / "a"
    whole = record(b"one") + record(b"two" * 1000)
    path.write_bytes(whole[:-5])
    queue, put = filled([path])
    reader = fs.TFRecordReader()
    _, value = reader.read(queue)
    state = reader.serialize_state()
    with session() as sess:
        sess.run(put)
        assert sess.run(value) == b"one"
        with pytest.raises(DataLossError, match="ends within it"):
            sess.run(value)
        with path.open("ab") as file:
            file.write(whole[-5:])
        saved = sess.run(state)
        path.unlink()  # it is open, and can be read on
        assert sess.run(value) == b"two" * 1000
        with pytest.raises(NotFoundError, match="/a'"):
            sess.run(reader.restore_state(saved))
        for wrong in (b"\xff", b"\x08\x05"):
            with pytest.raises(InvalidArgumentError, match="expected"):
                sess.run(reader.restore_state(wrong))


@pytest.mark.parametrize("mode", MODES)
def test_reads_in_branches_and_loops(graph, tmp_path: Path, mode: str) -> None:
    (tmp_path / "a").write_bytes(b"".join(b"%d\n" % i for i in range(10)))
    queue, put = filled([tmp_path / "a"])
    reader = fs.TextLineReader()

    def body(i, total):
        number = fs.cond(
            fs.equal(i % 2, 0),
            lambda: fs.string_to_number(reader.read(queue)[1], fs.int32),
            lambda: fs.constant(100),
        )
        return i + 1, total + number

    _, total = fs.while_loop(lambda i, t: i < 8, body, [0, 0])
    with session(mode) as sess:
        sess.run(put)
        assert sess.run(total) == 400 + 0 + 1 + 2 + 3
        assert sess.run(total) == 400 + 4 + 5 + 6 + 7
        with pytest.raises(OutOfRangeError):
            sess.run(total)


def test_two_sessions_share_a_reader_and_its_queue(graph, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1\n2\n3\n4\n")
    with fs.container("shared readers"):
        queue, put = filled([tmp_path / "a"])
        reader = fs.TextLineReader()
    _, value = reader.read(queue)
    with session() as one, session() as other:
        one.run(put)
        assert [s.run(value) for s in (one, other, one, other)] == [b"1", b"2", b"3", b"4"]
        with pytest.raises(OutOfRangeError):
            other.run(value)
        fs.Session.reset("", ["shared readers"])
        assert one.run(reader.num_records_produced()) == 0


def test_who_waits_is_told_when_the_container_is_dropped(graph) -> None:
    with fs.container("dropped readers"):
        queue, _ = filled([], is_closed=False)
        reader = fs.TextLineReader()
    _, value = reader.read(queue)
    with session() as sess:
        errors = []

        def read() -> None:
            try:
                sess.run(value)
            except CancelledError as e:
                errors.append(e)

        thread = threading.Thread(target=read)
        thread.start()
        while not sess.run(queue.size()) and not any(q.waiting[1] for q in sess.queues.values()):
            pass
        fs.Session.reset("", ["dropped readers"])
        thread.join()
        assert "was dropped with its container" in str(errors[0])


@pytest.mark.parametrize("mode", MODES)
def test_files_are_read_where_the_reader_is_placed(graph, tmp_path: Path, mode: str) -> None:
    (tmp_path / "a").write_bytes(b"1\n2\n")
    with fs.device("/cpu:1"):
        reader = fs.TextLineReader()
    queue, put = filled([tmp_path / "a"])
    _, value = reader.read(queue)
    with fs.device("/cpu:0"):
        number = fs.string_to_number(value) * 2
    config = fs.ConfigProto(device_count={"CPU": 2}, mode=mode)
    with fs.Session(config=config) as sess:
        sess.run(put)
        assert sess.run(number) == 2.0
        assert sess.placements[value.op.id].lower().endswith("cpu:1")
        assert sess.run(number) == 4.0


def test_misuse(graph) -> None:
    numbers = fs.FIFOQueue(3, fs.int32, [[]])
    reader = fs.WholeFileReader()
    with pytest.raises(DTypeError, match="a queue of strings"):
        reader.read(numbers)
    with pytest.raises(DTypeError, match="a queue of strings"):
        reader.read(["a", "b"])
    with session() as sess, pytest.raises(DTypeError, match="a queue of strings"):
        sess.run(reader.read(numbers.queue_ref))
    names = fs.FIFOQueue(3, fs.string, [[]])
    for count in (0, -1):
        with pytest.raises(InvalidArgumentError, match="above 0"):
            reader.read_up_to(names, count)
    for wrong in (0, -3):
        with pytest.raises(InvalidArgumentError, match="record_bytes"):
            fs.FixedLengthRecordReader(wrong)
    with pytest.raises(InvalidArgumentError, match="header_bytes"):
        fs.FixedLengthRecordReader(3, header_bytes=-1)
    with pytest.raises(InvalidArgumentError, match="compression"):
        fs.FixedLengthRecordReader(3, encoding="LZ4")
    with pytest.raises(InvalidArgumentError, match="skip_header_lines"):
        fs.TextLineReader(-1)
    assert reader.supports_serialize and isinstance(reader, fs.ReaderBase)
