"""Iterators on workers: elements are read and computed there, and positions outlive a worker."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cluster_hosts import hosts_here, on

import flowscope as fs

Dataset = fs.data.Dataset
pytestmark = pytest.mark.usefixtures("graph")
WORKER = "/job:worker/replica:0/task:0"


@pytest.fixture
def hosts() -> Iterator[Any]:
    with hosts_here(2) as (found, _):
        yield found


def rest_of(session: Any, element: Any) -> list[Any]:
    found: list[Any] = []
    with suppress(fs.errors.OutOfRangeError):
        found.extend(session.run(element) for _ in range(100))
    return found


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_a_worker_gives_the_elements_that_a_client_would(mode: str, hosts: Any) -> None:
    def build() -> tuple[Any, ...]:
        fs.set_random_seed(3)
        w = fs.get_variable("w", [], fs.int64, fs.ones_initializer(), use_resource=True)

        def changed(x: Any) -> Any:
            chance = fs.random_uniform([], 0, 100, fs.int64)
            return x * 5 + w + chance + fs.py_func(lambda a: a * 2, [x], fs.int64)

        numbers = Dataset.range(10).shuffle(4).map(changed, 2)
        numbers = numbers.flat_map(lambda x: Dataset.from_tensors(x).repeat(2)).batch(3)
        iterator = numbers.prefetch(2).make_initializable_iterator()
        made = Dataset.from_generator(lambda: iter([1, 2]), fs.int64, []).make_one_shot_iterator()
        name = fs.placeholder(fs.string, [])
        fed = fs.data.Iterator.from_string_handle(name, fs.int64, [])
        begin = fs.group(w.initializer, iterator.initializer)
        return begin, iterator.get_next(), made, name, fed.get_next()

    config = fs.ConfigProto(mode=mode)
    with fs.Graph().as_default():
        begin, element, *_ = build()
        with fs.Session(config=config) as session:
            session.run(begin)
            expected = [v.tolist() for v in rest_of(session, element)]
    with on(0):
        begin, element, made, name, fed = build()
        handle = made.string_handle()
    with on(1):
        elsewhere = element + 0
    with fs.Session(hosts, config=config) as session:
        session.run(begin)
        assert [v.tolist() for v in rest_of(session, elsewhere)] == expected
        feeds = {name: session.run(handle)}
        assert [session.run(fed, feeds) for _ in range(2)] == [1, 2]
        with pytest.raises(fs.errors.OutOfRangeError, match="End of sequence"):
            session.run(fed, feeds)


@pytest.mark.slow
def test_no_element_is_lost_or_taken_twice_when_a_worker_is_killed(
    cluster: fs.cluster.Cluster, tmp_path: Path
) -> None:
    """The iterator's position comes back with the variables of the same checkpoint."""
    fs.set_random_seed(1)
    count = 400
    with fs.device(WORKER):
        total = fs.get_variable(
            "total", [count], initializer=fs.zeros_initializer(), use_resource=True
        )
        numbers = Dataset.range(count).shuffle(50).map(lambda x: fs.one_hot(x, count)).prefetch(4)
        iterator = numbers.make_one_shot_iterator()
        added = total.assign_add(iterator.get_next())
    step = fs.train.get_or_create_global_step()
    with fs.control_dependencies([added]):
        train = step.assign_add(1)
    saveable = fs.data.experimental.make_saveable_from_iterator(iterator)
    fs.add_to_collection(fs.GraphKeys.SAVEABLE_OBJECTS, saveable)
    victim = cluster.task(WORKER)
    with fs.train.MonitoredTrainingSession(
        cluster, checkpoint_dir=str(tmp_path), save_checkpoint_steps=7, max_wait_secs=60
    ) as session:
        for _ in range(20):
            session.run(train)
        killer = threading.Timer(0.02, os.kill, (victim.pid, signal.SIGKILL))
        killer.start()
        first = session._hooked
        while session._hooked is first:
            session.run(train)
        killer.join()
        for _ in range(count - int(session.run(step))):
            session.run(train)
        assert np.array_equal(session.run(total), np.ones(count))
    assert cluster.task(WORKER).incarnation != victim.incarnation
