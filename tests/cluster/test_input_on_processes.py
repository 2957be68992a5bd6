"""Readers, parsing and tables in processes of a Dask cluster: their bytes stay off the client."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from local_clusters import kept_away, wait_until

import flowscope as fs
from flowscope.errors import (
    AbortedError,
    FailedPreconditionError,
    OutOfRangeError,
    UnavailableError,
)

pytestmark = pytest.mark.usefixtures("graph")
MODES = ["compiled", "op", "tokens"]
READER, TRAINER = [f"/job:worker/replica:0/task:{i}" for i in (1, 2)]
WORDS = ["red", "green", "blue"]
FEATURES = {
    "image": fs.FixedLenFeature([], fs.string),
    "word": fs.FixedLenFeature([], fs.string),
    "size": fs.FixedLenFeature([], fs.int64),
}


def example(number: int, size: int = 50_000) -> bytes:
    made = fs.train.Example()
    feature = made.features.feature
    feature["image"].bytes_list.value.append(bytes([number]) * size)
    feature["word"].bytes_list.value.append(WORDS[number % 3].encode())
    feature["size"].int64_list.value.append(size)
    return made.SerializeToString()


def until_it_fails(session: Any, fetch: Any) -> None:
    """Runs steps; a first one may begin before it is known that a worker is gone."""
    for _ in range(100):
        session.run(fetch)


def write(path: Path, numbers: range) -> str:
    with fs.python_io.TFRecordWriter(path) as writer:
        for number in numbers:
            writer.write(example(number))
    return str(path)


def client_bytes(cluster: Any) -> int:
    """Bytes that the client has sent to workers, and got from them."""
    counters = cluster.endpoint.counters().values()
    return sum(c.received_bytes + c.sent_bytes for c in counters)


def parsed(records: Any) -> tuple[Any, Any]:
    """The sums of images, float32 [n], and numbers of words, int64 [n]; on the reader's worker."""
    found = fs.parse_example(records, FEATURES)
    table = fs.contrib.lookup.index_table_from_tensor(fs.constant(WORDS[:2]), num_oov_buckets=1)
    pixels = fs.reshape(fs.decode_raw(found["image"], fs.uint8), [-1, 50_000])
    return fs.reduce_sum(fs.cast(pixels, fs.float32), 1), table.lookup(found["word"])


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_no_byte_of_a_record_passes_through_the_client(
    mode: str, cluster: fs.cluster.Cluster, tmp_path: Path
) -> None:
    """From a queue of names, from a dataset, and in random order; training is on another worker."""
    files = [write(tmp_path / f"f{i}", range(8 * i, 8 * i + 8)) for i in range(3)]
    with fs.device(READER):
        names = fs.FIFOQueue(10, fs.string, [[]], name="names")
        reader = fs.TFRecordReader(name="reader")
        value = reader.read(names, name="read")[1]
        queued = parsed(fs.expand_dims(value, 0))
        dataset = fs.data.TFRecordDataset(files).batch(4).prefetch(1)
        iterator = dataset.make_initializable_iterator()
        of_dataset = parsed(iterator.get_next())
        made = fs.contrib.framework.RecordInput(f"{tmp_path}/f*", 6, 10, 2, seed=1)
        random = parsed(made.get_yield_op())
        many = fs.contrib.lookup.MutableHashTable(fs.int64, fs.float32, 0.0)
        insert = many.insert(queued[1], queued[0])
    with fs.device(TRAINER):
        total = fs.get_variable("total", [], fs.float32, fs.zeros_initializer(), use_resource=True)
        steps = {
            kind: fs.group(total.assign_add(fs.reduce_sum(sums + fs.cast(words, fs.float32))))
            for kind, (sums, words) in
            {"queued": queued, "dataset": of_dataset, "random": random}.items()
        }  # fmt: skip
    init = fs.group(total.initializer, iterator.initializer, fs.tables_initializer())
    put = names.enqueue_many([files])
    truth = sum(n * 50_000 + min(n % 3, 2) for n in range(24))
    with fs.Session(cluster, config=fs.ConfigProto(mode=mode)) as session:
        session.run([init, put])
        # The plans are sent with the first step of each.
        for kind, count in (("queued", 24), ("dataset", 6), ("random", 4)):
            session.run(total.initializer)
            session.run(steps[kind])
            begin = client_bytes(cluster)
            for _ in range(count - 1):
                session.run(steps[kind])
            assert client_bytes(cluster) - begin < 24 * 2_000  # of 1.2 million bytes of records
            assert session.run(total) == np.float32(truth), kind
        assert "task:1" in session.placements[value.op.id]
        with pytest.raises(OutOfRangeError):
            session.run(steps["dataset"])
        session.run(names.enqueue(files[0]))
        session.run(insert)
        assert session.run(many.export()[0]).shape == (1,)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["reader", "dataset", "table"])
def test_the_killed_worker_of_a_reader_is_told_and_what_it_held(
    kind: str, cluster: fs.cluster.Cluster, tmp_path: Path
) -> None:
    files = [write(tmp_path / "f", range(8))]
    with fs.device(READER):
        names = fs.FIFOQueue(10, fs.string, [[]], name="names")
        value = fs.TFRecordReader(name="reader").read(names, name="read")[1]
        dataset = fs.data.TFRecordDataset(files).make_initializable_iterator("files")
        table = fs.contrib.lookup.MutableHashTable(fs.int64, fs.float32, 0.0, name="table")
    asked = {
        "reader": fs.strings.length(value), "dataset": fs.strings.length(dataset.get_next("next")),
        "table": table.lookup(fs.constant([1], fs.int64)),
    }[kind]  # fmt: skip
    held = {"reader": 'queue "names"', "dataset": '"files"', "table": 'table "table"'}[kind]
    victim = cluster.task(READER)
    with fs.Session(cluster) as session:
        session.run([names.enqueue_many([files]), dataset.initializer])
        session.run(table.insert(fs.constant([1], fs.int64), fs.constant([2.0])))
        session.run(asked)
        with kept_away(cluster, READER):
            os.kill(victim.pid, signal.SIGKILL)
            with pytest.raises((UnavailableError, AbortedError)) as lost:
                until_it_fails(session, asked)
        assert "task:1" in str(lost.value)
        lives = (victim.name, victim.incarnation)
        wait_until(
            lambda: any(
                t.name == READER and (t.name, t.incarnation) != lives for t in cluster.tasks
            )
        )
        wait_until(lambda: cluster.health(READER)[0] == "ok")
        with pytest.raises(FailedPreconditionError, match="was lost with") as gone:
            session.run(asked)
        assert held in str(gone.value), str(gone.value)
        if kind == "dataset":
            session.run(dataset.initializer)
            assert session.run(asked) > 50_000
