"""Has clients take elements from queues of workers while they are stopped, late, and given up.

    python tests/helpers/random_takers.py 200 --seed 1000

Each element was taken by one step whose `run` has returned, or it is in its queue at the end. The
one exception is counted by the hosts: a client was given up after it had confirmed and before it
heard so. Producers meet no faults; what clients do and meet follows from a seed, when it comes does
not.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parent)]

import numpy as np
from cluster_hosts import Cluster, Host, hosts_here, on
from process_channels import until

import flowscope as fs
from flowscope import errors

#: Elements of each of the two queues, and clients that take them.
ELEMENTS, CLIENTS = 12, 3
#: Faults of a run, each within so many seconds after the one before.
FAULTS, SOON_S = 8, 0.02
#: Milliseconds that a step has at most.
DEADLINES_MS = (2, 10, 40)
#: What clients and hosts do to steps.
KINDS = ("stop", "one host", "both hosts")
#: What a step may raise that has met a fault.
_ENDED = (errors.CancelledError, errors.DeadlineExceededError)
_LOST = (errors.UnavailableError, errors.AbortedError, errors.FailedPreconditionError)


class Program:
    """Queues on two workers, and what takes from them: in a graph of its own."""

    def __init__(self) -> None:
        self.graph = fs.Graph()
        with self.graph.as_default():
            queues = []
            for task in (0, 1):
                with on(task), fs.container("shared"):
                    name = f"q{task}"
                    queues.append(fs.FIFOQueue(1000, fs.int32, [], shared_name=name))
            self.x = fs.placeholder(fs.int32, [None])
            with on(0):
                self.puts = [q.enqueue_many([self.x]) for q in queues]
                one, two = [q.dequeue() for q in queues]
                many = queues[0].dequeue_many(2)
            with on(1), fs.container("shared"):
                used = one + 0
                never = fs.FIFOQueue(1, fs.int32, [], shared_name="never").dequeue()
            self.sizes = [q.size() for q in queues]
            #: What a step fetches; the last never ends well.
            self.takes: list[list[Any]] = [[one], [used], [one, two], [many], [two], [one, never]]
            self.singles = [one, two]


class Taker:
    """A client that takes elements on a thread, and begins anew where it was given up."""

    def __init__(self, program: Program, hosts: list[Host], seed: int) -> None:
        self.taken: list[int] = []
        self.is_over = False
        self._program = program
        self._hosts = hosts
        self._random = random.Random(seed)
        self._begin()
        self.failure: BaseException | None = None
        self.thread = threading.Thread(target=self._work)
        self.thread.start()

    def _work(self) -> None:
        try:
            while not self.is_over:
                self._step()
        except BaseException as e:
            self.failure = e

    def _step(self) -> None:
        fetches = self._random.choice(self._program.takes)
        options = fs.RunOptions(timeout_in_ms=self._random.choice(DEADLINES_MS))
        try:
            for found in self.session.run(fetches, options=options):
                self.taken += np.ravel(found).tolist()
        except _ENDED:
            return
        except _LOST:
            self._again()

    def _leave(self) -> None:
        self.session.close()
        self.cluster.endpoint.close()
        for host in self._hosts:  # as "client.leave" does, which comes before a goodbye
            host.steps.client_lost(self.cluster.endpoint.name)

    def _again(self) -> None:
        self._leave()
        self._begin()

    def _begin(self) -> None:
        """Plans all steps, for their deadlines are shorter than a plan may take."""
        self.cluster = Cluster([h.task for h in self._hosts])
        self.session = fs.Session(self.cluster, self._program.graph)
        for fetches in self._program.takes:
            with contextlib.suppress(*_ENDED, *_LOST):  # the first run says so, or plans it
                self.session.plan(fetches)

    def close(self) -> None:
        """Ends it, when its step has ended."""
        self.is_over = True
        self.thread.join(60)
        assert not self.thread.is_alive(), "a step has not ended by its deadline"
        self._leave()
        if self.failure is not None:
            raise self.failure


def check(seed: int) -> int:
    """Runs what a seed stands for; returns how many elements were taken.

    Raises:
        AssertionError: if an element was lost, or was taken twice.
    """
    chance = random.Random(seed)
    program = Program()
    with hosts_here(2) as (cluster, hosts), fs.Session(cluster, program.graph) as sess:
        unheard = [noted for host in hosts for noted in [_unheard(host)]]
        takers = [Taker(program, hosts, chance.randrange(2**32)) for _ in range(CLIENTS)]
        try:
            put = [_put(sess, program, task) for task in (0, 1)]
            until(lambda: any(taker.taken or taker.failure for taker in takers), 60)
            for _ in range(FAULTS):
                time.sleep(chance.random() * SOON_S)
                _strike(chance.choice(KINDS), chance.choice(takers), hosts, chance)
        finally:
            for taker in takers:
                taker.close()
        taken = Counter([e for taker in takers for e in taker.taken])
        left = Counter(_left(sess, program, hosts))
    wanted = Counter([e for some in put for e in some])
    twice = (taken + left) - wanted
    assert not twice, f"seed {seed}: taken twice: {sorted(twice)}"
    lost = wanted - (taken + left)
    confirmed = Counter([e for some in unheard for e in some])
    assert not lost - confirmed, f"seed {seed}: lost: {sorted(lost - confirmed)}"
    return taken.total()


def _put(sess: fs.Session, program: Program, task: int) -> range:
    elements = range(task * 1000, task * 1000 + ELEMENTS)
    sess.run(program.puts[task], {program.x: list(elements)})
    return elements


def _strike(kind: str, taker: Taker, hosts: list[Host], chance: random.Random) -> None:
    if kind == "stop":
        taker.session.stop()
        return
    client = taker.cluster.endpoint.name
    for host in [chance.choice(hosts)] if kind == "one host" else hosts:
        try:
            host.endpoint.give_up(client, ConnectionAbortedError("it was silent"))
        except errors.UnavailableError:  # it was given up already
            continue


def _unheard(host: Host) -> list[int]:
    """Returns the elements of lost clients that had confirmed them, as they come."""
    found: list[int] = []
    lost = host.steps.taken.client_lost

    def noting(client: str) -> None:
        for one in list(host.steps.taken._taken.values()):
            if one.client == client and one.is_confirmed:
                moved = one.queues._taken.values()
                found.extend([int(e[0]) for moves in moved for some in moves for e in some])
        lost(client)

    host.steps.taken.client_lost = noting  # type: ignore[method-assign]
    return found


def _left(sess: fs.Session, program: Program, hosts: list[Host]) -> list[int]:
    """The elements in the queues, once no step is on its way."""
    end = time.monotonic() + 20
    while any(h.steps.running or len(h.steps.taken) for h in hosts):
        assert time.monotonic() < end, "steps of clients that are gone have not ended"
        time.sleep(0.001)
    found = []
    for size, one in zip(program.sizes, program.singles, strict=True):
        found += [int(sess.run(one)) for _ in range(sess.run(size))]
    return found


def main() -> int:
    """Returns 1 if an element was lost or taken twice, for the shell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    taken = failed = 0
    for seed in range(asked.seed, asked.seed + asked.count):
        try:
            taken += check(seed)
        except AssertionError as error:
            failed += 1
            print(error, flush=True)
    print(f"{asked.count} runs from seed {asked.seed}: {taken} elements taken, {failed} failed")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
