"""Random programs on barriers, staging areas, queues and tables: nothing is lost or doubled.

One program has them all, in loops and branches, on two devices or on two workers. After each step a
model of Python's dicts and lists says what is in which of them: also where the step was given up
while it waited, and had taken and put in before.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from cluster_hosts import hosts_here, on

import flowscope as fs
from flowscope.errors import DeadlineExceededError

MODES = ("compiled", "op", "tokens")
SHORT = fs.RunOptions(timeout_in_ms=10)
LONG = fs.RunOptions(timeout_in_ms=20_000)


class Program:
    """The graph: what each move runs.

    Args:
        place: Returns a device scope by number, 0 or 1.
    """

    def __init__(self, place: Any) -> None:
        lookup, staging = fs.contrib.lookup, fs.contrib.staging
        self.n = fs.placeholder(fs.int32, [])
        self.keys = fs.placeholder(fs.int64, [None])
        self.key = self.keys[0]
        with place(0):
            self.barrier = fs.Barrier([fs.int64, fs.string], [[], []])
            self.area = staging.StagingArea([fs.int64], [[]], capacity=4)
            self.counts = lookup.MutableHashTable(fs.int64, fs.int64, 0)
        with place(1):
            self.map = staging.MapStagingArea([fs.int64, fs.string], [[], []], ordered=True)
            self.queue = fs.FIFOQueue(20, [fs.int64], [[]])
            self.words = lookup.MutableHashTable(fs.string, fs.int64, -1)
            self.never = fs.FIFOQueue(1, [fs.int64], [[]])
        words = fs.as_string(self.keys)
        word = words[0]
        moves: dict[str, Any] = {
            "insert 0": self.barrier.insert_many(0, words, self.keys),
            "insert 1": self.barrier.insert_many(1, words, words),
            "take": self.barrier.take_many(self.n)[1],
            "put": self.area.put([self.key]),
            "get": self.area.get()[0],
            "map 0": self.map.put(self.key, [self.key], [0]),
            "map 1": self.map.put(self.key, [word], [1]),
            "map get": self.map.get(self.key)[1],
            "map next": self.map.get()[0],
            "enqueue": self.queue.enqueue_many([self.keys]),
        }
        # Elements go from the queue to the area, in a loop, and are counted on their way.
        moves["loop"] = fs.while_loop(lambda i: i < self.n, self._moved, [fs.constant(0)])
        moves["branch"] = fs.cond(self.n > 0, self._taken, lambda: self.words.size())
        #: The same, and then a wait for what never comes.
        self.stuck = {}
        for name in ("insert 0", "insert 1", "take", "put", "get", "map 0", "map get", "map next"):
            with fs.control_dependencies(fs.nest.flatten(moves[name])):
                self.stuck[name] = self.never.dequeue()
        self.moves = moves
        self.sizes = [
            self.barrier.ready_size(), self.barrier.incomplete_size(), self.area.size(),
            self.map.size(), self.map.incomplete_size(), self.queue.size(), self.counts.size(),
            self.words.size(),
        ]  # fmt: skip
        self.entries = [*self.counts.export(), *self.words.export()]

    def _moved(self, i: fs.Tensor) -> fs.Tensor:
        element = self.queue.dequeue()
        with fs.control_dependencies(
            [self.counts.insert(element, self.counts.lookup(element) + 1)]
        ):
            with fs.control_dependencies([self.area.put([element])]):
                return i + 1

    def _taken(self) -> fs.Tensor:
        word = fs.as_string(self.area.get()[0])
        with fs.control_dependencies([self.words.insert(word, fs.cast(self.n, fs.int64))]):
            return self.words.size()


class Model:
    """What is in all of them."""

    def __init__(self) -> None:
        self.order: list[int] = []
        self.pieces: dict[int, set[int]] = {}
        self.area: list[int] = []
        self.map: dict[int, set[int]] = {}
        self.queue: list[int] = []
        self.counts: dict[int, int] = {}
        self.words: dict[bytes, int] = {}

    def ready(self) -> list[int]:
        return [k for k in self.order if len(self.pieces[k]) == 2]

    def whole(self) -> list[int]:
        return sorted(k for k, parts in self.map.items() if len(parts) == 2)

    def sizes(self) -> list[int]:
        whole = len(self.whole())
        return [
            len(self.ready()), len(self.order) - len(self.ready()), len(self.area), whole,
            len(self.map) - whole, len(self.queue), len(self.counts), len(self.words),
        ]  # fmt: skip

    def insert(self, component: int, keys: list[int]) -> None:
        for key in keys:
            if key not in self.pieces:
                self.order.append(key)
            self.pieces.setdefault(key, set()).add(component)

    def run(self, move: str, keys: list[int], n: int, found: Any) -> None:
        match move.split():
            case ["insert", which]:
                self.insert(int(which), keys)
            case ["take"]:
                taken = self.ready()[:n]
                assert found.tolist() == [b"%d" % k for k in taken]
                for key in taken:
                    self.order.remove(key)
                    del self.pieces[key]
            case ["put"]:
                self.area.append(keys[0])
            case ["get"]:
                assert found == self.area.pop(0)
            case ["map", "get"]:
                assert [int(x) for x in found] == [keys[0]] * 2
                del self.map[keys[0]]
            case ["map", "next"]:
                assert found == self.whole()[0]
                del self.map[int(found)]
            case ["map", which]:
                self.map.setdefault(keys[0], set()).add(int(which))
            case ["enqueue"]:
                self.queue += keys
            case ["loop"]:
                for key in self.queue[:n]:
                    self.counts[key] = self.counts.get(key, 0) + 1
                self.area += self.queue[:n]
                del self.queue[:n]
            case ["branch"]:
                if n:
                    self.words[b"%d" % self.area.pop(0)] = n
                assert found == len(self.words)

    def chosen(self, rng: random.Random, move: str) -> tuple[list[int], int] | None:
        """Keys and a number with which a move need not wait; None if there are none."""
        free = rng.sample(range(30), 6)
        match move.split():
            case ["insert", which]:
                fits = [k for k in free if int(which) not in self.pieces.get(k, ())]
                return (fits, 0) if fits else None
            case ["take"]:
                most = len(self.ready())
                return ([0], rng.randint(1, most)) if most else None
            case ["put"]:
                return (free, 0) if len(self.area) < 4 else None
            case ["get"]:
                return (free, 0) if self.area else None
            case ["map", "get"]:
                return ([rng.choice(self.whole())], 0) if self.whole() else None
            case ["map", "next"]:
                return ([0], 0) if self.whole() else None
            case ["map", which]:
                fits = [k for k in free if int(which) not in self.map.get(k, ())]
                return (fits, 0) if fits else None
            case ["enqueue"]:
                return (free, 0) if len(self.queue) < 12 else None
            case ["loop"]:
                most = min(len(self.queue), 4 - len(self.area))
                return ([0], rng.randint(0, most))
            case ["branch"]:
                return ([0], rng.randint(0, 1) if self.area else 0)
        raise AssertionError(move)


#: What only takes: a worker that has put something in, and whose part has ended, leaves it in.
TAKES = ("take", "get", "map get", "map next")


def check_random_program(
    sess: fs.Session, program: Program, seed: str, count: int, stuck: Any = None
) -> None:
    rng, model = random.Random(seed), Model()

    def feeds(keys: list[int], n: int) -> dict[Any, Any]:
        return {program.keys: keys, program.n: n}

    for _ in range(count):
        way = rng.choice(["run", "run", "run", "stuck"])
        move = rng.choice(list(program.moves if way == "run" else stuck or program.stuck))
        chosen = model.chosen(rng, move)
        if chosen is None:
            if move in ("take", "get", "put", "map next"):  # it waits
                with pytest.raises(DeadlineExceededError):
                    sess.run(program.moves[move], feeds([0], 1), SHORT)
        elif way == "stuck":
            with pytest.raises(DeadlineExceededError):
                sess.run(program.stuck[move], feeds(*chosen), SHORT)
        else:
            found = sess.run(program.moves[move], feeds(*chosen), LONG)
            model.run(move, *chosen, found)
        assert [int(x) for x in sess.run(program.sizes)] == model.sizes(), move
    found = [x.tolist() for x in sess.run(program.entries)]
    assert dict(zip(*found[:2])) == model.counts
    assert dict(zip(*found[2:])) == model.words
    assert model.counts and model.words


@pytest.mark.parametrize(
    ("mode", "split"), [*[(mode, "never") for mode in MODES], ("compiled", "always")]
)
def test_on_two_devices(graph: fs.Graph, mode: str, split: str) -> None:
    program = Program(lambda i: fs.device(f"/device:CPU:{i}"))
    config = fs.ConfigProto(mode=mode, device_count={"CPU": 2}, split_partitions=split)
    with fs.Session(config=config) as sess:
        check_random_program(sess, program, f"{mode} {split}", 120)


@pytest.mark.parametrize("mode", ["compiled", "tokens"])
def test_on_two_workers(graph: fs.Graph, mode: str) -> None:
    with hosts_here(2) as (cluster, _):
        program = Program(on)
        with fs.Session(cluster, config=fs.ConfigProto(mode=mode)) as sess:
            check_random_program(sess, program, f"workers {mode}", 80, TAKES)
