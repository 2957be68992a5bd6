"""Input: elements a second through runners, and the time to the first. Beside TensorFlow's.

    python tests/benchmarks/bench_input.py                      # flowscope
    python tests/benchmarks/bench_input.py --peer PYTHON        # and TensorFlow, in alternation

With --peer, PYTHON is an interpreter that has TensorFlow, or flowscope at an older version
(`--peer-library flowscope`). Prints the best of several rounds, and their ratio; microseconds of
the processor's time per element beside it, for other processes do not change these much.
"""

from __future__ import annotations

import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

ROUNDS = 3
#: Elements of a round, and of a batch.
ELEMENTS, BATCH = 8000, 32
#: The process' own clock covers the threads of runners, too.
Measured = tuple[float, float]


def library(name: str) -> Any:
    if name == "flowscope":
        import flowscope

        return flowscope
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    return tf


def taken(fs: Any, batch: Any, size: int) -> Measured:
    """Elements a second that come in batches, and microseconds of the processor's per element."""
    with fs.Session() as sess:
        sess.run([fs.global_variables_initializer(), fs.local_variables_initializer()])
        coord = fs.train.Coordinator()
        threads = fs.train.start_queue_runners(sess, coord)
        take = sess.make_callable(batch)
        found: list[Measured] = []
        for _ in range(20):
            take()
        for _ in range(ROUNDS):
            start, used = time.perf_counter(), time.process_time()
            for _ in range(ELEMENTS // size):
                take()
            used = (time.process_time() - used) / ELEMENTS * 1e6
            found.append((ELEMENTS / (time.perf_counter() - start), used))
        coord.request_stop()
        coord.join(threads)
    return max(one for one, _ in found), min(one for _, one in found)


def runner(fs: Any, capacity: int = 1000) -> Measured:
    """One runner that takes from one queue and puts into another, and nothing else."""
    numbers = fs.train.range_input_producer(1000, shuffle=False, capacity=capacity)
    batch = fs.train.batch([numbers.dequeue()], BATCH, capacity=capacity)
    return taken(fs, batch, BATCH)


def small_queue(fs: Any) -> Measured:
    """The same with the default capacity: the runner has to wait for each batch."""
    return runner(fs, 64)


def one_by_one(fs: Any) -> Measured:
    """A queue of 1000 that is filled and emptied element by element."""
    queue = fs.FIFOQueue(1000, [fs.float32], shapes=[[4]])
    enqueue = queue.enqueue([fs.constant([1.0, 2.0, 3.0, 4.0])])
    fs.train.add_queue_runner(fs.train.QueueRunner(queue, [enqueue]))
    return taken(fs, queue.dequeue(), 1)


def shuffled(fs: Any) -> Measured:
    """Images and labels, shuffled into batches."""
    images = fs.constant(np.zeros([500, 28, 28], np.float32))
    labels = fs.constant(np.arange(500, dtype=np.int32))
    image, label = fs.train.slice_input_producer([images, labels], seed=1)
    batch = fs.train.shuffle_batch([image, label], BATCH, 2000, 1000, seed=1)
    return taken(fs, batch, BATCH)


def first_element(fs: Any) -> Measured:
    """Milliseconds from a runner's start to the first batch, once its plans are made."""
    numbers = fs.train.range_input_producer(1000, shuffle=False)
    take = fs.train.batch([numbers.dequeue()], 1)
    best, used = float("inf"), float("inf")
    with fs.Session() as sess:
        sess.run([fs.global_variables_initializer(), fs.local_variables_initializer()])
        for _ in range(3):
            start, cpu = time.perf_counter(), time.process_time()
            coord = fs.train.Coordinator()
            threads = fs.train.start_queue_runners(sess, coord)
            sess.run(take)
            best = min(best, (time.perf_counter() - start) * 1e3)
            used = min(used, (time.process_time() - cpu) * 1e3)
            coord.request_stop()
            coord.join(threads)
            break  # the stop has closed the queue
    return best, used


# -- files and messages, written without either library ------------------------------------------


def record_of(data: bytes) -> bytes:
    """A record of TensorFlow's files: length and data, each with its checksum."""
    head = struct.pack("<Q", len(data))
    return head + _masked(head) + data + _masked(data)


def _masked(data: bytes) -> bytes:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _crc_of(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    return byte


_CRC = [_crc_of(byte) for byte in range(256)]


def field(number: int, data: bytes) -> bytes:
    """A field of a message, of a length below 2^21."""
    size, length = len(data), b""
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + data


def message(features: dict[str, tuple[int, bytes]]) -> bytes:
    """An example: by name the number of the kind of list, and the list's values."""
    entries = [
        field(1, field(1, name.encode()) + field(2, field(kind, values)))
        for name, (kind, values) in features.items()
    ]
    return field(1, b"".join(entries))


def example_of(number: int) -> bytes:
    return message({
        "label": (3, field(1, bytes([number % 100]))),
        "weights": (2, field(1, struct.pack("<10f", *range(10)))),
        "name": (1, field(1, b"name %d" % number)),
        "tags": (3, field(1, bytes(range(number % 5)))),
        "image": (1, field(1, bytes(500))),
    })  # fmt: skip


def image_example(png: bytes) -> bytes:
    return message({"image": (1, field(1, png))})


def png_of(width: int, height: int) -> bytes:
    """A PNG of three channels."""
    rows = np.random.default_rng(0).integers(0, 40, (height, 1 + 3 * width), np.uint8)
    rows[:, 0] = 0

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = zlib.compress(rows.tobytes())
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


# -- input from files -----------------------------------------------------------------------------


def files_by_reader(fs: Any, count: int) -> Measured:
    """Files a second: their names from a producer, their records through a reader, in batches."""
    with many_files(count) as pattern:
        names = fs.train.match_filenames_once(pattern)
        queue = fs.train.string_input_producer(names, num_epochs=1, seed=1)
        value = fs.TFRecordReader().read(queue)[1]
        batch = fs.train.batch([value], 100, capacity=1000, allow_smaller_final_batch=True)
        return files_per_s(fs, fs.size(batch), count)


def files_by_dataset(fs: Any, count: int) -> Measured:
    """Files a second of a dataset of their records, in batches."""
    with many_files(count) as pattern:
        names = fs.data.Dataset.list_files(pattern, shuffle=True, seed=1)
        dataset = fs.data.TFRecordDataset(names).batch(100).prefetch(1)
        batch = dataset.make_one_shot_iterator().get_next()
        return files_per_s(fs, fs.size(batch), count)


@contextmanager
def many_files(count: int) -> Iterator[str]:
    """Files of two records each, in memory where that is possible; a pattern for their names."""
    where = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=where) as folder:
        contents = record_of(bytes(100)) * 2
        for i in range(count):
            with open(f"{folder}/{i:06}", "wb") as file:
                file.write(contents)
        yield f"{folder}/*"


def files_per_s(fs: Any, size: Any, count: int) -> Measured:
    start, used, taken = time.perf_counter(), time.process_time(), 0
    with fs.Session() as sess:
        sess.run([fs.global_variables_initializer(), fs.local_variables_initializer()])
        coord = fs.train.Coordinator()
        threads = fs.train.start_queue_runners(sess, coord)
        try:
            while True:
                taken += int(sess.run(size))
        except fs.errors.OutOfRangeError:
            assert taken == 2 * count
        coord.request_stop()
        coord.join(threads)
    seconds = time.perf_counter() - start
    return count / seconds, (time.process_time() - used) / count * 1e6


def parsed(fs: Any) -> Measured:
    """Examples a second of `parse_example`: batches of 1000 with five features."""
    serialized = [example_of(i) for i in range(1000)]
    features = {
        "label": fs.FixedLenFeature([], fs.int64), "weights": fs.FixedLenFeature([10], fs.float32),
        "name": fs.FixedLenFeature([], fs.string), "tags": fs.VarLenFeature(fs.int64),
        "image": fs.FixedLenFeature([], fs.string),
    }  # fmt: skip
    given = fs.placeholder(fs.string, [None])
    found = fs.parse_example(given, features)
    with fs.Session() as sess:
        run = sess.make_callable(list(found.values()), [given])
        array = np.array(serialized, object)
        for _ in range(5):
            run(array)
        best, used = 0.0, float("inf")
        for _ in range(10):
            start, cpu = time.perf_counter(), time.process_time()
            run(array)
            best = max(best, 1000 / (time.perf_counter() - start))
            used = min(used, (time.process_time() - cpu) * 1e3)
    return best, used


def images(fs: Any) -> Measured:
    """Images a second: records of PNGs, read, parsed and decoded by four threads, in batches."""
    png = png_of(64, 64)
    contents = b"".join(record_of(image_example(png)) for _ in range(200))
    with tempfile.TemporaryDirectory() as folder:
        names = [f"{folder}/{i}" for i in range(4)]
        for name in names:
            with open(name, "wb") as file:
                file.write(contents)
        queue = fs.train.string_input_producer(names, seed=1)
        value = fs.TFRecordReader().read(queue)[1]
        parse = fs.io.parse_single_example if hasattr(fs, "io") else fs.parse_single_example
        one = parse(value, {"image": fs.FixedLenFeature([], fs.string)})
        image = fs.image.decode_png(one["image"], 3)
        image = fs.reshape(image, [64, 64, 3])
        return taken(fs, fs.train.batch([image], BATCH, 4, capacity=500), BATCH)


CASES: dict[str, tuple[str, Callable[[Any], Measured]]] = {
    "runner": ("elements/s", runner),
    "runner, small queue": ("elements/s", small_queue),
    "runner, one by one": ("elements/s", one_by_one),
    "shuffle_batch": ("elements/s", shuffled),
    "first element": ("ms", first_element),
    "parse_example": ("examples/s", parsed),
    "batch of images": ("images/s", images),
    "10^4 files, reader": ("files/s", lambda fs: files_by_reader(fs, 10_000)),
    "10^4 files, dataset": ("files/s", lambda fs: files_by_dataset(fs, 10_000)),
    "10^5 files, reader": ("files/s", lambda fs: files_by_reader(fs, 100_000)),
    "10^5 files, dataset": ("files/s", lambda fs: files_by_dataset(fs, 100_000)),
}


def measured(name: str, only: str) -> dict[str, Measured]:
    fs = library(name)
    found = {}
    for case, (_, measure) in CASES.items():
        if only in case:
            with fs.Graph().as_default():
                found[case] = measure(fs)
    return found


def of_another(python: str, name: str, only: str) -> dict[str, Measured]:
    command = [python, __file__, "--json", "--library", name, "--only", only]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", default="", help="an interpreter with another library")
    parser.add_argument("--peer-library", default="tensorflow")
    parser.add_argument("--library", default="flowscope")
    parser.add_argument("--only", default="", help="a part of the cases' names")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.json:
        print(json.dumps(measured(given.library, given.only)))
        return
    own = of_another(sys.executable, "flowscope", given.only)
    peer = of_another(given.peer, given.peer_library, given.only) if given.peer else {}
    for case, (value, used) in own.items():
        unit = CASES[case][0]
        line = f"{case:<20} {value:10.1f} {unit:<10} {used:7.1f} us of the processor"
        if case in peer:
            there = peer[case]
            line += f"   beside {there[0]:10.1f}, ratio {value / there[0]:5.2f}"
            line += f"; {there[1]:7.1f} us, ratio {there[1] / used:5.2f}"
        print(line)


if __name__ == "__main__":
    main()
