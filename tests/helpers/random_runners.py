"""Has runners move elements while they are stopped, closed, cancelled, paused and looked at.

    python tests/helpers/random_runners.py 1000 --seed 0

Elements go from one queue through runners into a second one, and from there to consumers. However
it ends, each element is in one of the queues or with one consumer; no thread is left and nobody
waits. What happens follows from a seed, when it comes does not.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import threading
from typing import Any

import flowscope as fs
from flowscope import errors
from flowscope.runtime.session.runner import Runner

#: What a step is within, on the stack.
RUN_STEP = Runner._step.__code__
#: Elements that there are, and seconds after which a thread has hung.
ELEMENTS, PATIENCE_S = 40, 30.0
#: How a cycle ends.
ENDS = (
    "the coordinator", "an error", "the end of the input", "a cancelled queue", "a stopped step",
    "a closed session", "a deadline", "Ctrl-C",
)  # fmt: skip
#: What may happen before.
MEANWHILE = ("nothing", "a pause", "a look", "a trace", "an operation is added", "slow motion")
_ENDED = (
    errors.CancelledError, errors.OutOfRangeError, errors.DeadlineExceededError, errors.GraphError,
)  # fmt: skip


class Pipeline:
    """A graph with two queues, and a runner of so many threads between them."""

    def __init__(self, threads: int, capacity: int, devices: int) -> None:
        self.graph = fs.Graph()
        self.devices = devices
        with self.graph.as_default():
            with fs.container("random runners"):  # it outlives the session
                self.first = fs.FIFOQueue(ELEMENTS, fs.int64, [], shared_name="first")
                self.second = fs.FIFOQueue(capacity, fs.int64, [], shared_name=f"second {capacity}")
            self.x = fs.placeholder(fs.int64, [None])
            self.fill = self.first.enqueue_many([self.x])
            with fs.device(f"/cpu:{devices - 1}"):
                moved = self.first.dequeue() + 0
            enqueue = self.second.enqueue(moved)
            self.runner = fs.train.QueueRunner(self.second, [enqueue] * threads)
            self.one, self.two = self.second.dequeue(), self.second.dequeue_up_to(2)
            self.sizes = [self.first.size(), self.second.size()]
            self.end, self.cancel = self.first.close(), self.second.close(True)


#: Threads, the capacity of the second queue, devices.
SHAPES = (1, 1, 1), (2, 3, 1), (1, 100, 2), (3, 2, 2)
PIPELINES = [Pipeline(*shape) for shape in SHAPES]


class Cycle:
    """One session, from its first element to its end."""

    def __init__(self, seed: int) -> None:
        chance = random.Random(seed)
        number = chance.randrange(len(SHAPES))
        self.end, self.meanwhile = chance.choice(ENDS), chance.choice(MEANWHILE)
        # A graph to which something is added again and again gets a warning.
        is_own = self.meanwhile == "an operation is added"
        self.pipeline = Pipeline(*SHAPES[number]) if is_own else PIPELINES[number]
        self.mode = chance.choice(["compiled", "compiled", "op", "tokens"])
        self.consumers, self.enough = chance.randint(1, 2), chance.randint(0, ELEMENTS // 2)
        self.states: list[Any] = []
        self.taken: list[int] = []
        self.failure: BaseException | None = None
        self.is_enough = threading.Event()

    def consume(self, session: Any, fetch: Any, options: Any) -> None:
        """Takes elements until there are no more, or somebody ends it."""
        try:
            while True:
                self.taken += session.run([fetch], options=options)[0].reshape(-1).tolist()
                if len(self.taken) >= self.enough:
                    self.is_enough.set()
        except _ENDED:
            pass
        except BaseException as error:
            self.failure = error
        finally:
            self.is_enough.set()

    def consume_until_interrupted(self, session: Any) -> None:
        """Takes elements on the main thread; another one sends the process Ctrl-C meanwhile."""
        is_over, has_ended = False, threading.Event()

        def handler(*_: Any) -> None:
            # Before and behind a step the test itself would lose what it has just got.
            nonlocal is_over
            is_over = True
            frame: Any = sys._getframe()
            while frame is not None and frame.f_code is not RUN_STEP:
                frame = frame.f_back
            if frame is not None:
                raise KeyboardInterrupt

        def send() -> None:
            self.is_enough.wait(PATIENCE_S)
            while not has_ended.is_set():  # the first one may come before a step that waits
                os.kill(os.getpid(), signal.SIGINT)
                has_ended.wait(0.05)

        before = signal.signal(signal.SIGINT, handler)
        sender = threading.Thread(target=send)
        sender.start()
        try:
            while not is_over:
                self.taken += session.run([self.pipeline.one])[0].reshape(-1).tolist()
                if len(self.taken) >= self.enough:
                    self.is_enough.set()
        except (KeyboardInterrupt, *_ENDED):
            pass
        finally:
            self.is_enough.set()
            has_ended.set()
            sender.join(PATIENCE_S)
            signal.signal(signal.SIGINT, before)

    def run(self) -> None:
        """Runs it, and checks that nothing is lost or left."""
        before = set(threading.enumerate())
        pipeline = self.pipeline
        config = fs.ConfigProto(mode=self.mode, device_count={"CPU": pipeline.devices})
        session = fs.Session(graph=pipeline.graph, config=config)
        try:
            self._run(session)
        finally:
            session.gate.set_pace(0.0)
            session.close()
        for thread in set(threading.enumerate()) - before:
            thread.join(PATIENCE_S)
            assert not thread.is_alive(), f"{thread.name} is left"
        if self.failure is not None:
            raise self.failure
        states = self.states
        left = [int(v) for state in states for (v,) in state._contents()]
        assert sorted([*left, *self.taken]) == list(range(ELEMENTS)), (left, self.taken)
        assert all(state.waiting == (0, 0) for state in states), states
        for state in states:
            state.clear()

    def _run(self, session: Any) -> None:
        pipeline = self.pipeline
        session.run(pipeline.fill, {pipeline.x: list(range(ELEMENTS))})
        session.run(pipeline.sizes)
        self.states = [*session.queues.values()]
        coordinator = fs.train.Coordinator(_ENDED)
        threads = pipeline.runner.create_threads(session, coordinator, start=True)
        options = fs.RunOptions(timeout_in_ms=20) if self.end == "a deadline" else None
        for number in range(self.consumers):
            fetch = (pipeline.one, pipeline.two)[number]
            thread = threading.Thread(target=self.consume, args=(session, fetch, options))
            thread.start()
            threads.append(thread)
        self._meanwhile(session)
        if self.end == "Ctrl-C":
            self.consume_until_interrupted(session)
        self.is_enough.wait(PATIENCE_S)
        self._end(session, coordinator)
        coordinator.request_stop()
        for state in self.states:  # whoever fills the first would do so for that
            state.close(cancel_pending_enqueues=True)
        coordinator.join(stop_grace_period_secs=PATIENCE_S)
        for thread in threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive(), f"{thread.name} hangs"

    def _meanwhile(self, session: Any) -> None:
        match self.meanwhile:
            case "a pause":
                session.gate.request("pause")
                session.gate.wait_until_held(0.005)
                session.gate.request("resume")
            case "a look":
                session.gate.look()
            case "a trace":
                with fs.profile(session):
                    self.is_enough.wait(0.002)
            case "an operation is added":
                with self.pipeline.graph.as_default():
                    fs.constant(1)
            case "slow motion":
                session.gate.set_pace(1e-4)

    def _end(self, session: Any, coordinator: Any) -> None:
        try:
            match self.end:
                case "the coordinator":
                    coordinator.request_stop()
                case "an error":
                    coordinator.request_stop(errors.OutOfRangeError("the test's own"))
                case "the end of the input":
                    session.run(self.pipeline.end)
                case "a cancelled queue":
                    session.run(self.pipeline.cancel)
                case "a stopped step":
                    session.stop()
                case "a closed session":
                    session.close()
        except _ENDED:
            pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cycles", type=int, nargs="?", default=1000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for seed in range(given.seed, given.seed + given.cycles):
        try:
            Cycle(seed).run()
        except BaseException:
            print(f"seed {seed}: {vars(Cycle(seed))}")
            raise
    print(f"{given.cycles} cycles from seed {given.seed}: nothing lost, nothing left")


if __name__ == "__main__":
    main()
