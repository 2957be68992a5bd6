"""Ten thousand files: each record comes once, and few files are open at a time."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import flowscope as fs
from flowscope.ops.input.records import record

pytestmark = [pytest.mark.usefixtures("graph"), pytest.mark.slow]
COUNT, BATCH = 10_000, 100


@pytest.fixture(scope="module")
def pattern(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("many")
    for i in range(COUNT):
        (folder / f"{i:05}").write_bytes(record(b"%d" % i) + record(b"+%d" % i))
    return f"{folder}/*"


def open_files() -> int:
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.exists() else 0


def all_of(session: fs.Session, batch: Any) -> list[bytes]:
    """All records; while they come few files are open."""
    before, found, most = open_files(), [], 0
    with suppress(fs.errors.OutOfRangeError):
        while len(found) <= 2 * COUNT:
            found += session.run(batch).tolist()
            most = max(most, open_files() - before)
    assert most < 20 and open_files() - before <= 2
    return found


def expected() -> list[bytes]:
    return sorted([b"%d" % i for i in range(COUNT)] + [b"+%d" % i for i in range(COUNT)])


def test_from_a_producer_through_a_reader(pattern: str) -> None:
    names = fs.train.match_filenames_once(pattern)
    queue = fs.train.string_input_producer(names, num_epochs=1, seed=1)
    value = fs.TFRecordReader().read(queue)[1]
    batch = fs.train.batch([value], BATCH, capacity=4 * BATCH, allow_smaller_final_batch=True)
    with fs.Session() as session:
        session.run([fs.global_variables_initializer(), fs.local_variables_initializer()])
        coord = fs.train.Coordinator()
        threads = fs.train.start_queue_runners(session, coord)
        found = all_of(session, batch)
        coord.request_stop()
        coord.join(threads)
    assert found != expected() and sorted(found) == expected()


@pytest.mark.parametrize("parallel", [None, 4])
def test_from_a_dataset(pattern: str, parallel: int | None) -> None:
    names = fs.data.Dataset.list_files(pattern, seed=1)
    dataset = fs.data.TFRecordDataset(names, num_parallel_reads=parallel).batch(BATCH).prefetch(1)
    batch = dataset.make_one_shot_iterator().get_next()
    with fs.Session() as session:
        found = all_of(session, batch)
    assert sorted(found) == expected()
