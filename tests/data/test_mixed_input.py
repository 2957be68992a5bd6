"""Readers, datasets, parsing and tables in training programs made at random: beside fed values.

A program takes its examples from files, by a reader or a dataset, parses them, looks words up in a
table and learns from them. Whatever else happens - breakpoints, cells that are run again, a graph
with thousands of other operations, a recording - its losses are those of a program to which the
same values are fed.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import FailedPreconditionError, OutOfRangeError

MODES = ("compiled", "op", "tokens")
WORDS = ["red", "green", "blue", "other"]
BATCH, STEPS, WIDTH = 3, 6, 4


class MixedProgram:
    """A program by a seed."""

    def __init__(self, seed: int, folder: Path) -> None:
        chance = random.Random(seed)
        self.source = chance.choice(["reader", "read_up_to", "dataset", "prefetched", "feedable"])
        self.table = chance.choice(["static", "mutable", "dense"])
        self.parse = chance.choice(["batch", "single"]) if "read" not in self.source else "batch"
        self.control = chance.choice(["none", "cond", "while"])
        self.more = chance.choice([0, 0, 2500])
        numbers = np.random.default_rng(seed)
        count = BATCH * STEPS
        self.words = [chance.choice(WORDS[:3]) for _ in range(count)]
        self.values = numbers.normal(size=(count, WIDTH)).astype("f")
        self.tags = [
            [chance.randrange(5) for _ in range(chance.randrange(4))] for _ in range(count)
        ]
        self.files = [str(folder / f"{i}") for i in range(3)]
        for i, file in enumerate(self.files):
            with fs.python_io.TFRecordWriter(file) as writer:
                for k in range(i * count // 3, (i + 1) * count // 3):
                    writer.write(self.example(k))

    def example(self, k: int) -> bytes:
        made = fs.train.Example()
        feature = made.features.feature
        feature["word"].bytes_list.value.append(self.words[k].encode())
        feature["value"].float_list.value.extend(self.values[k].tolist())
        if self.tags[k]:
            feature["tags"].int64_list.value.extend(self.tags[k])
        return made.SerializeToString()

    # -- the program ------------------------------------------------------------------------------

    def records(self) -> tuple[Any, list[Any], Any]:
        """The records of a batch, what begins with the input, and what a step is fed."""
        if "read" in self.source:
            queue = fs.FIFOQueue(5, fs.string, [[]], name="names")
            reader = fs.TFRecordReader(name="reader")
            begin = [queue.enqueue_many([self.files])]
            if self.source == "reader":
                values: list[Any] = []
                for _ in range(BATCH):
                    with fs.control_dependencies(values):
                        values.append(reader.read(queue)[1])
                return fs.stack(values), begin, None
            read = reader.read_up_to(queue, BATCH)[1]  # a file has a multiple of these
            return read, begin, None
        dataset = fs.data.TFRecordDataset(self.files)
        dataset = dataset.batch(BATCH)
        if self.source == "prefetched":
            dataset = dataset.prefetch(2)
        iterator = dataset.make_initializable_iterator("input")
        if self.source != "feedable":
            return iterator.get_next(), [iterator.initializer], None
        name = fs.placeholder(fs.string, [], name="handle")
        fed = fs.data.Iterator.from_string_handle(name, fs.string, [None])
        return fed.get_next(), [iterator.initializer], (name, iterator.string_handle())

    def parsed(self, records: Any) -> tuple[Any, Any, Any]:
        features = {
            "word": fs.FixedLenFeature([], fs.string),
            "value": fs.FixedLenFeature([WIDTH], fs.float32), "tags": fs.VarLenFeature(fs.int64),
        }  # fmt: skip
        if self.parse == "batch":
            found = fs.parse_example(records, features)
            return found["word"], found["value"], fs.sparse_tensor_to_dense(found["tags"], -1)
        ones = []
        for i in range(BATCH):
            one = fs.parse_single_example(records[i], features)
            tags = fs.sparse_tensor_to_dense(one["tags"], -1)
            ones.append((one["word"], one["value"], fs.pad(tags + 1, [[0, 4 - fs.size(tags)]]) - 1))
        return tuple(fs.stack(list(parts)) for parts in zip(*ones, strict=True))  # type: ignore[return-value]

    def ids(self, words: Any) -> tuple[Any, list[Any]]:
        """Numbers of words by a table, and what fills it."""
        if self.table == "static":
            table = fs.contrib.lookup.index_table_from_tensor(fs.constant(WORDS[:2]), 1)
            return table.lookup(words), [fs.tables_initializer()]
        if self.table == "mutable":
            made = fs.contrib.lookup.MutableHashTable(fs.string, fs.int64, 2)
        else:
            made = fs.contrib.lookup.MutableDenseHashTable(fs.string, fs.int64, 2, "", "gone")
        fill = made.insert(fs.constant(WORDS[:2]), fs.constant([0, 1], fs.int64))
        return made.lookup(words), [fill]

    def loss(self, ids: Any, values: Any, tags: Any) -> Any:
        """What is learnt: with vectors of words and tags, perhaps in a branch or a loop."""
        start = np.linspace(-1, 1, 3 * WIDTH, dtype="f").reshape(3, WIDTH)
        vectors = fs.get_variable("vectors", initializer=start)
        weights = fs.get_variable("weights", initializer=np.linspace(0, 1, 6, dtype="f"))
        product = fs.multiply(fs.gather(vectors, ids), values, name="product")
        scores = fs.reduce_sum(product, 1) + fs.reduce_sum(fs.gather(weights, tags + 1), 1)
        if self.control == "cond":
            scores = fs.cond(scores[0] > 0, lambda: scores * 2.0, lambda: fs.tanh(scores))
        if self.control == "while":
            scores = fs.while_loop(
                lambda i, s: i < 3, lambda i, s: (i + 1, fs.sin(s)), [0, scores]
            )[1]
        return fs.reduce_mean(fs.square(scores - 1.0), name="loss")

    def train(self, ids: Any, values: Any, tags: Any) -> list[Any]:
        with fs.variable_scope("model", reuse=fs.AUTO_REUSE):
            loss = self.loss(ids, values, tags)
        rest = fs.constant(0.0)
        for _ in range(self.more):  # a flat graph
            rest = rest + 1.0
        return [loss, fs.train.GradientDescentOptimizer(0.1).minimize(loss), rest]

    def expected(self) -> list[float]:
        """The losses where values are fed, one operation at a time."""
        ids, values = fs.placeholder(fs.int64, [None]), fs.placeholder(fs.float32, [None, WIDTH])
        tags = fs.placeholder(fs.int64, [None, 4])
        fetches = self.train(ids, values, tags)[:2]
        numbers = np.array([WORDS.index(w) for w in self.words])
        padded = np.array([t + [-1] * (4 - len(t)) for t in self.tags])
        with fs.Session(config=fs.ConfigProto(mode="op")) as sess:
            sess.run(fs.global_variables_initializer())
            batches = [slice(i, i + BATCH) for i in range(0, len(numbers), BATCH)]
            feeds = [{ids: numbers[b], values: self.values[b], tags: padded[b]} for b in batches]
            return [sess.run(fetches, feed)[0] for feed in feeds]


def padded(tags: Any) -> Any:
    return fs.pad(tags + 1, [[0, 0], [0, 4 - fs.shape(tags)[1]]]) - 1


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(14))
def test_training_from_files_is_that_of_fed_values(seed: int, mode: str, tmp_path: Path) -> None:
    program, chance = MixedProgram(seed, tmp_path), random.Random(seed)
    with fs.Graph().as_default():
        wanted = program.expected()
    graph = fs.Graph()
    with graph.as_default():
        with graph.cell("input"):
            records, begin, fed = program.records()
        with graph.cell("parsing"):
            words, values, tags = program.parsed(records)
            ids, fill = program.ids(words)
        with graph.cell("model"):
            fetches = program.train(ids, values, padded(tags) if program.parse == "batch" else tags)
            init = fs.global_variables_initializer()
        with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
            sess.run([init, *begin, *fill])
            feeds = {fed[0]: sess.run(fed[1])} if fed else {}
            found, seen = [], []
            first = 2 if fed else 1  # the number of the first of these steps
            for number in range(first, first + STEPS):
                does = chance.choice(["nothing", "a breakpoint", "the cell again", "a recording"])
                if does == "a breakpoint":
                    sess.debug.break_after("model/product")
                    sess.debug.on_stop(lambda stop: seen.append(stop))
                elif does == "the cell again":
                    with graph.cell("parsing") as run:
                        words, values, tags = program.parsed(records)
                        program.ids(words)
                    assert not run.report.is_news  # and the table and the input are as they were
                elif does == "a recording":
                    history = sess.debug.record()
                loss, _, rest = sess.run(fetches, feeds)
                found.append(loss)
                assert rest == program.more
                if does == "a breakpoint":
                    assert len(seen) == 1
                    seen.clear()
                    sess.debug.clear()
                    sess.debug.on_stop(None)
                elif does == "a recording":
                    with pytest.raises(FailedPreconditionError, match="queue, a lock or a table"):
                        sess.debug.replay(number)
                    with pytest.raises(FailedPreconditionError, match="nothing can be replayed"):
                        sess.debug.replay()
                    history.remove()
            np.testing.assert_allclose(found, wanted, rtol=2e-5)
            if "read" not in program.source:
                with pytest.raises(OutOfRangeError):
                    sess.run(fetches, feeds)


@pytest.mark.parametrize("mode", MODES)
def test_a_step_that_parses_what_is_fed_is_replayed(mode: str, tmp_path: Path) -> None:
    program = MixedProgram(1, tmp_path)
    program.parse, program.more = "batch", 0
    with fs.Graph().as_default(), fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        given = fs.placeholder(fs.string, [None])
        words, values, tags = program.parsed(given)
        ids = fs.cast(fs.equal(words, "green"), fs.int64)
        fetches = program.train(ids, values, padded(tags))[:2]
        sess.run(fs.global_variables_initializer())
        history = sess.debug.record()
        losses = [
            sess.run(fetches, {given: [program.example(k) for k in range(i, i + BATCH)]})[0]
            for i in range(0, 12, BATCH)
        ]
        for number, loss in zip(history.steps, losses, strict=True):
            with sess.debug.replay(number) as past:
                assert past.run()[fetches[0].name] == loss
