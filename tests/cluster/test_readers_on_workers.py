"""Readers on workers: files are read there, and their bytes do not pass through the client."""

from __future__ import annotations

from pathlib import Path

import pytest
from cluster_hosts import hosts_here, on, restart, worker

import flowscope as fs
from flowscope.errors import DataLossError, FailedPreconditionError, OutOfRangeError
from flowscope.ops.input.records import record

pytestmark = pytest.mark.usefixtures("graph")
MODES = ["compiled", "op", "tokens"]


@pytest.fixture
def ends():
    with hosts_here(2) as found:
        yield found


@pytest.mark.parametrize("mode", MODES)
def test_bytes_of_records_stay_on_the_worker(ends, mode: str, tmp_path: Path) -> None:
    cluster, hosts = ends
    records = [bytes([i]) * 100_000 for i in range(4)]
    damaged = bytearray(record(b"x" * 50))
    damaged[20] ^= 1
    (tmp_path / "a").write_bytes(b"".join(map(record, records)))
    (tmp_path / "b").write_bytes(damaged)
    with on(1):
        queue = fs.FIFOQueue(10, fs.string, [[]], name="names")
        reader = fs.TFRecordReader(name="reader")
    name = fs.placeholder(fs.string, [])
    put, close = queue.enqueue(name), queue.close()
    key, value = reader.read(queue)
    with on(1):
        total = fs.reduce_sum(fs.cast(fs.decode_raw(value, fs.uint8), fs.int64))
    produced = reader.num_records_produced()
    with fs.Session(cluster, config=fs.ConfigProto(mode=mode)) as sess:
        for one in ("a", "b"):
            sess.run(put, {name: str(tmp_path / one)})
        counters = cluster.endpoint.counters()[worker(1)]
        assert sess.run(total) == 0
        before = counters.received_bytes + counters.sent_bytes
        assert sess.run([key, total])[1] == 100_000
        assert sess.run(total) == 200_000
        assert counters.received_bytes + counters.sent_bytes - before < 20_000
        assert sess.run(produced) == 3
        assert "task:1" in sess.placements[value.op.id]
        assert sess.run(total) == 300_000
        with pytest.raises(DataLossError, match="byte 0 of .*/b'") as e:
            sess.run(total)
        assert e.value.op is value.op
        sess.run([reader.reset(), close])
        with pytest.raises(OutOfRangeError):
            sess.run(total)
        restart(cluster, hosts, 1)
        with pytest.raises(FailedPreconditionError, match='reader "reader" was lost with'):
            sess.run(produced)
