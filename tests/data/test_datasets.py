"""Datasets: each transformation by a plain model, random chains of all of them, and errors."""

from __future__ import annotations

import gzip
import itertools
import random
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowscope as fs

Dataset = fs.data.Dataset
MODES = ("compiled", "op", "tokens")


def elements(
    make: Callable[[], Any], mode: str = "compiled", seed: int | None = None, most: int = 500
) -> list[Any]:
    """The elements of a dataset, as steps of a new session take them."""
    with fs.Graph().as_default():
        fs.set_random_seed(seed)
        element = make().make_one_shot_iterator().get_next()
        with fs.Session(config=fs.ConfigProto(mode=mode)) as session:
            found: list[Any] = []
            with suppress(fs.errors.OutOfRangeError):
                found.extend(session.run(element) for _ in range(most))
            return found


def plain(found: Any) -> Any:
    """Values as Python's own, to be compared."""
    return [np.asarray(v).tolist() if not isinstance(v, tuple | dict) else v for v in found]


# -- random chains --------------------------------------------------------------------------------

#: A transformation, and the same of a list.
Change = tuple[Callable[[Any], Any], Callable[[list[int]], list[int]]]


def _interleaved(values: list[int], cycle: int, block: int, times: int) -> list[int]:
    """The order in which a cycle of repeated values comes, by TensorFlow's documentation."""
    source = iter(values)
    slots: list[Any] = [None] * cycle
    out: list[int] = []
    at, has_ended = 0, False
    while not has_ended or any(s is not None for s in slots):
        if slots[at] is None and not has_ended:
            value = next(source, None)
            has_ended = value is None
            slots[at] = None if value is None else [value] * times
            continue
        taken = (slots[at] or [])[:block]
        out += taken
        if slots[at] is not None:
            slots[at] = slots[at][block:] if len(taken) == block else None
        at = (at + 1) % cycle
    return out


def _chunks(values: list[int], size: int) -> list[list[int]]:
    return [values[i : i + size] for i in range(0, len(values), size)]


def changes(rng: random.Random) -> list[Change]:
    """One of each kind of transformation of scalars, with numbers drawn at random."""
    a, b, k = rng.randrange(1, 5), rng.randrange(9), rng.randrange(1, 4)
    more = rng.choice([None, 2, 3])
    return [
        (lambda d: d.map(lambda x: x * a + b, more), lambda v: [x * a + b for x in v]),
        (
            lambda d: d.filter(lambda x: fs.not_equal(x % 3, k)),
            lambda v: [x for x in v if x % 3 != k],
        ),
        (
            lambda d: d.flat_map(lambda x: Dataset.range(x % 4).map(lambda y: x + y)),
            lambda v: [x + y for x in v for y in range(x % 4)],
        ),
        (
            lambda d: d.interleave(lambda x: Dataset.from_tensors(x).repeat(k), a, b + 1, more),
            lambda v: _interleaved(v, a, b + 1, k),
        ),
        (lambda d: d.batch(k).unbatch(), lambda v: v),
        (
            lambda d: d.window(k, a, b + 1).flat_map(lambda w: w.batch(k).map(fs.reduce_sum)),
            lambda v: [sum(v[i : i + (k - 1) * (b + 1) + 1 : b + 1]) for i in range(0, len(v), a)],
        ),
        (
            lambda d: d.batch(k, drop_remainder=True).map(fs.reduce_sum),
            lambda v: [sum(c) for c in _chunks(v, k) if len(c) == k],
        ),
        (
            lambda d: d.map(lambda x: fs.fill([x % 3], x)).padded_batch(a, [None]).map(
                lambda x: fs.reduce_sum(x) + fs.size(x, out_type=fs.int64)
            ),
            lambda v: [
                sum(x * (x % 3) for x in c) + len(c) * max(x % 3 for x in c) for c in _chunks(v, a)
            ],
        ),
        (lambda d: d.take(b).concatenate(d.skip(a)), lambda v: v[:b] + v[a:]),
        (lambda d: d.shard(a, a // 2), lambda v: v[a // 2 :: a]),
        (lambda d: d.repeat(k), lambda v: v * k),
        (lambda d: d.cache().repeat(2), lambda v: v * 2),
        (lambda d: d.prefetch(b), lambda v: v),
        (
            lambda d: Dataset.zip((d, {"x": d.skip(k)})).map(lambda p, q: p + q["x"]),
            lambda v: [p + q for p, q in zip(v, v[k:])],
        ),
        (
            lambda d: d.enumerate(b).map(lambda i, x: x + i),
            lambda v: [x + i for i, x in enumerate(v, b)],
        ),
        (
            lambda d: d.map(
                lambda x: fs.while_loop(
                    lambda i, _: i < x % 4, lambda i, s: (i + 1, s + i), [x - x, x]
                )[1]
            ),
            lambda v: [x + sum(range(x % 4)) for x in v],
        ),
    ]  # fmt: skip


def chain(number: int, has_chance: bool) -> tuple[Callable[[], Any], list[int]]:
    """A random chain as a dataset, and its elements where nothing in it is random."""
    rng = random.Random(number)
    count = rng.randrange(4, 12)
    picked = [rng.choice(changes(rng)) for _ in range(rng.randrange(2, 6))]
    if has_chance:
        picked.insert(1, (lambda d: d.shuffle(rng.randrange(1, 9), seed=number), lambda v: v))
        picked.append((
            lambda d: d.map(lambda x: x + fs.random_uniform([], 0, 1000, fs.int64)).repeat(2),
            lambda v: v,
        ))  # fmt: skip
    expected = list(range(count))
    for _, model in picked:
        expected = model(expected)[:200]

    def make() -> Any:
        found = Dataset.range(count)
        state = rng.getstate()
        for change, _ in picked:
            found = change(found).take(200)
        rng.setstate(state)
        return found

    return make, expected


@pytest.mark.parametrize("number", range(30))
def test_random_chains_give_what_a_plain_model_gives(number: int) -> None:
    make, expected = chain(number, has_chance=False)
    assert plain(elements(make, MODES[number % 3])) == expected


@pytest.mark.parametrize("number", range(40, 52))
def test_random_chains_with_chance_are_the_same_in_all_modes(number: int) -> None:
    """Whatever computes ahead, and however many other runs there were."""
    make, _ = chain(number, has_chance=True)
    first = plain(elements(make, seed=5))
    for mode in MODES[1:]:
        assert plain(elements(lambda: make().prefetch(3), mode, seed=5)) == first
    if len(first) > 3:
        assert plain(elements(make, seed=6)) != first


# -- each by itself -------------------------------------------------------------------------------


def test_structures_of_elements() -> None:
    def make() -> Any:
        rows = {"a": np.arange(6).reshape(3, 2), "b": ["x", "y", "z"]}
        return Dataset.from_tensor_slices((rows, [1.0, 2.0, 3.0]))

    with fs.Graph().as_default():
        found = make()
        assert found.output_types == ({"a": fs.int64, "b": fs.string}, fs.float32)
        assert found.output_shapes == ({"a": [2], "b": []}, [])
        assert found.output_classes == ({"a": fs.Tensor, "b": fs.Tensor}, fs.Tensor)
        batched = found.batch(2)
        assert fs.data.get_output_shapes(batched) == ({"a": [None, 2], "b": [None]}, [None])
        assert found.batch(2, True).output_shapes == ({"a": [2, 2], "b": [2]}, [2])
    first = elements(make)[1]
    assert first[0]["a"].tolist() == [2, 3]
    assert (first[0]["b"], first[1]) == (b"y", 2.0)


def test_windows_of_structures() -> None:
    def make() -> Any:
        pairs = Dataset.zip((Dataset.range(5), {"x": Dataset.range(10, 15)}))
        windows = pairs.window(3, shift=2, drop_remainder=True)
        return windows.flat_map(lambda n, d: Dataset.zip((n.batch(3), d["x"].batch(3))))

    found = elements(make)
    assert [(n.tolist(), x.tolist()) for n, x in found] == [
        ([0, 1, 2], [10, 11, 12]),
        ([2, 3, 4], [12, 13, 14]),
    ]


def test_sparse_tensors_are_elements() -> None:
    def make() -> Any:
        return Dataset.range(2).map(lambda i: fs.SparseTensor([[i]], [2.0], [3]))

    assert [fs_value.indices.tolist() for fs_value in elements(make)] == [[[0]], [[1]]]
    with fs.Graph().as_default():
        assert make().output_classes is fs.SparseTensor
        with pytest.raises(TypeError, match="expected dense tensors to batch"):
            make().batch(2)


def test_what_is_fetched_belongs_to_the_user() -> None:
    with fs.Graph().as_default():
        cached = Dataset.from_tensor_slices(np.zeros((2, 3))).cache().repeat(2)
        element = cached.make_one_shot_iterator().get_next()
        with fs.Session() as session:
            session.run(element)[:] = 7.0
            session.run(element)
            assert session.run(element).tolist() == [0.0, 0.0, 0.0]


def test_generators() -> None:
    begun = []

    def generate(count: Any) -> Iterator[Any]:
        begun.append(count)
        for i in range(count):
            yield i, {"row": [1.0] * i}

    def make() -> Any:
        types, shapes = (fs.int32, {"row": fs.float32}), ([], {"row": [None]})
        return Dataset.from_generator(generate, types, shapes, args=[3]).repeat(2)

    found = elements(make)
    assert [i for i, _ in found] == [0, 1, 2, 0, 1, 2]
    assert found[5][1]["row"].tolist() == [1.0, 1.0]
    assert begun == [3, 3]


def test_a_generator_that_yields_something_else_is_told_of() -> None:
    def make() -> Any:
        return Dataset.from_generator(lambda: iter([[1], [1, 2]]), fs.int32, [1])

    with pytest.raises(
        fs.errors.InvalidArgumentError, match=r"element 1 of the generator <lambda>"
    ):
        elements(make)


def test_an_error_of_a_generator_is_told_with_its_line() -> None:
    def generate() -> Iterator[int]:
        yield 1
        raise KeyError("the line of the generator")

    with fs.Graph().as_default():
        numbers = Dataset.from_generator(generate, fs.int64, [])
        element = numbers.make_one_shot_iterator().get_next()
        with fs.Session() as session:
            assert session.run(element) == 1
            with pytest.raises(
                fs.errors.UnknownError, match=r"element 1: KeyError in generate"
            ) as e:
                session.run(element)
            assert "test_datasets.py" in str(e.value)
            with pytest.raises(fs.errors.OutOfRangeError):
                session.run(element)


def test_reduce_runs_through_a_dataset() -> None:
    with fs.Graph().as_default():
        w = fs.Variable(np.int64(2))
        values = Dataset.range(5).shuffle(3)
        total, count = values.reduce(
            (np.int64(0), 0), lambda state, x: (state[0] + w * x, state[1] + 1)
        )
        with fs.Session() as session:
            session.run(w.initializer)
            assert session.run([total, count]) == [20, 5]
            assert session.run([w.assign(3), total])[1] in (20, 30)


def test_shuffles() -> None:
    def make(again: bool | None, size: int = 10, seed: int | None = 3) -> Callable[[], Any]:
        return lambda: Dataset.range(10).shuffle(size, seed, again).repeat(2).batch(10)

    first, second = elements(make(None))
    assert sorted(first) == sorted(second) == list(range(10))
    assert first.tolist() != second.tolist()
    same, again = elements(make(False))
    assert same.tolist() == again.tolist()
    assert elements(make(None, 1))[0].tolist() == list(range(10))
    # With neither seed each iterator has its own order.
    free = [tuple(elements(make(None, seed=None))[0]) for _ in range(4)]
    assert len(set(free)) > 1


def test_rows_that_are_gathered_are_those_that_are_stacked() -> None:
    """A batch of rows in shuffled order, and of elements that a map hands on."""
    arrays = np.arange(120.0).reshape(40, 3), np.array([b"%d" % i for i in range(40)], object)

    def make(change: Callable[[Any], Any]) -> Callable[[], Any]:
        return lambda: change(
            Dataset.from_tensor_slices(arrays).take(37).shuffle(7, seed=2).repeat(2)
        ).batch(8)

    gathered = elements(make(lambda d: d))
    stacked = elements(make(lambda d: d.map(lambda *x: x)))
    for one, other in zip(gathered, stacked, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_files(tmp_path: Path) -> None:
    texts = {"a.txt": "one\ntwo\r\n", "b.txt": "three"}
    for name, text in texts.items():
        (tmp_path / name).write_bytes(text.encode())
    (tmp_path / "c.gz").write_bytes(gzip.compress(b"zipped\nlines\n"))
    (tmp_path / "d.z").write_bytes(zlib.compress(b"x" * 100_000 + b"\nend"))
    (tmp_path / "e.bin").write_bytes(b"HH" + b"abcdef" + b"F")

    def lines(names: Any, kind: str | None = None) -> list[bytes]:
        return elements(lambda: fs.data.TextLineDataset(names, kind, buffer_size=64))

    assert lines([str(tmp_path / n) for n in texts]) == [b"one", b"two", b"three"]
    assert lines(str(tmp_path / "c.gz"), "GZIP") == [b"zipped", b"lines"]
    assert [len(line) for line in lines(str(tmp_path / "d.z"), "ZLIB")] == [100_000, 3]

    def records(size: int) -> list[bytes]:
        name = str(tmp_path / "e.bin")
        return elements(lambda: fs.data.FixedLengthRecordDataset(name, size, 2, 1))

    assert records(3) == [b"abc", b"def"]
    with pytest.raises(fs.errors.InvalidArgumentError, match="expected records of 4 bytes"):
        records(4)
    found = elements(lambda: Dataset.list_files(str(tmp_path / "*.txt"), shuffle=False))
    assert [Path(n.decode()).name for n in found] == list(texts)
    assert len(elements(lambda: Dataset.list_files(str(tmp_path / "*.txt")))) == 2
    with pytest.raises(fs.errors.InvalidArgumentError, match="No files matched"):
        elements(lambda: Dataset.list_files(str(tmp_path / "*.nothing")))


@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_files_of_records(tmp_path: Path, compression: str) -> None:
    names = [str(tmp_path / f"{i}.records") for i in range(3)]
    for i, name in enumerate(names):
        with fs.python_io.TFRecordWriter(name, compression) as writer:
            for k in range(4):
                writer.write(b"%d-%d" % (i, k) * 100)

    def records(**more: Any) -> list[bytes]:
        found = elements(lambda: fs.data.TFRecordDataset(names, compression, **more))
        return [v[:3] for v in found]

    expected = [b"%d-%d" % (i, k) for i in range(3) for k in range(4)]
    assert records() == expected
    assert sorted(records(num_parallel_reads=2)) == expected
    assert records(num_parallel_reads=2)[:4] == [b"0-0", b"1-0", b"0-1", b"1-1"]
    damaged = bytearray(Path(names[1]).read_bytes())
    damaged[len(damaged) // 2] ^= 255
    Path(names[1]).write_bytes(damaged)
    with pytest.raises(fs.errors.DataLossError):
        records()
    left = elements(
        lambda: fs.data.TFRecordDataset(Dataset.from_tensor_slices(names), compression).apply(
            fs.data.experimental.ignore_errors()
        )
    )
    assert [v[:3] for v in left][-4:] == expected[-4:]
    with pytest.raises(fs.errors.UnimplementedError, match="buffer_size"):
        records(buffer_size=9)


def test_broken_files_are_told_and_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(gzip.compress(b"whole\n"))
    (tmp_path / "b").write_bytes(gzip.compress(b"broken\n" * 99)[:-30])
    names = [str(tmp_path / n) for n in ("a", "b", "nowhere", "a")]
    with fs.Graph().as_default():
        line = fs.data.TextLineDataset(names, "GZIP").make_one_shot_iterator().get_next()
        with fs.Session() as session:
            assert session.run(line) == b"whole"
            with pytest.raises(fs.errors.DataLossError, match="ends too early"):
                [session.run(line) for _ in range(99)]
            with pytest.raises(fs.errors.NotFoundError, match="nowhere"):
                session.run(line)
            assert session.run(line) == b"whole"
            with pytest.raises(fs.errors.OutOfRangeError):
                session.run(line)


def test_a_cache_file_serves_later_sessions(tmp_path: Path) -> None:
    calls = itertools.count()

    def make() -> Any:
        numbers = Dataset.range(4).map(
            lambda i: fs.py_func(lambda x: (next(calls), x)[1], [i], fs.int64)
        )
        texts = numbers.map(lambda i: (i, fs.as_string(i), fs.fill([2], "ab")))
        return texts.cache(str(tmp_path / "kept" / "cache"))

    first = elements(make)
    assert [p.name for p in (tmp_path / "kept").iterdir()] == ["cache"]
    again = elements(make)
    assert next(calls) == 4
    assert repr(first) == repr(again)
    assert len(again) == 4
    (tmp_path / "kept" / "cache").write_bytes(b'[["int64", [9], 72]]\nabc')
    with pytest.raises(fs.errors.DataLossError, match="holds no elements"):
        elements(make)


def test_failing_elements_are_told_by_number_and_line() -> None:
    with fs.Graph().as_default():
        numbers = Dataset.range(4).map(lambda x: 10 // (x - 1))  # the line that errors name
        element = numbers.make_one_shot_iterator().get_next()
        with fs.Session() as session:
            assert session.run(element) == -10
            with pytest.raises(fs.errors.InvalidArgumentError) as caught:
                session.run(element)
            assert 'element 1 of "' in str(caught.value)
            assert "the line that errors name" in str(caught.value.source)
            assert [session.run(element), session.run(element)] == [10, 5]
    ignoring = fs.data.experimental.ignore_errors()
    found = elements(lambda: Dataset.range(4).map(lambda x: 10 // (x - 1)).apply(ignoring))
    assert found == [-10, 10, 5]


@pytest.mark.parametrize("parallel", [None, 2])
def test_a_function_may_end_its_dataset(parallel: int | None) -> None:
    def two(x: Any) -> Any:
        if x == 2:
            raise StopIteration
        return x

    def make() -> Any:
        return Dataset.range(5).map(lambda x: fs.py_func(two, [x], fs.int64), parallel)

    assert elements(make) == [0, 1]


def test_experimental_transformations() -> None:
    x = fs.data.experimental

    def make() -> Any:
        both = x.Counter(3, 2).take(4).apply(x.map_and_batch(lambda i: i * 10, 3))
        return both.apply(x.unbatch()).apply(x.enumerate_dataset(7))

    assert elements(make) == [(7, 30), (8, 50), (9, 70), (10, 90)]
    shuffled = elements(lambda: Dataset.range(5).apply(x.shuffle_and_repeat(5, 2, seed=1)).batch(5))
    assert [sorted(v) for v in shuffled] == [list(range(5))] * 2


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda: Dataset.from_tensor_slices(3), ValueError, "a first axis of elements"),
        (lambda: Dataset.from_tensor_slices(([1], [1, 2])), ValueError, "as many slices"),
        (lambda: Dataset.range(), ValueError, "1 to 3 arguments"),
        (lambda: Dataset.range(3).batch(0), ValueError, "batch_size above 0"),
        (lambda: Dataset.range(3).batch("a"), TypeError, "batch_size as an integer"),
        (lambda: Dataset.range(3).map(7), TypeError, "a function as map_func"),
        (lambda: Dataset.range(3).map(lambda x: None), TypeError, "expected tensors"),
        (lambda: Dataset.range(3).map(lambda x: x, 0), ValueError, "num_parallel_calls"),
        (lambda: Dataset.range(3).filter(lambda x: x), TypeError, "a bool scalar"),
        (lambda: Dataset.range(3).flat_map(lambda x: x), TypeError, "as fs.data.Dataset"),
        (lambda: Dataset.range(3).shard(2, 2), ValueError, "0 <= index < num_shards"),
        (lambda: Dataset.range(3).padded_batch(2, [3]), ValueError, "a padded shape"),
        (lambda: Dataset.range(3).concatenate(Dataset.from_tensors(1.0)), TypeError, "int64"),
        (lambda: Dataset.range(3).concatenate(Dataset.from_tensors((1, 2))), ValueError, "struct"),
        (lambda: Dataset.zip((Dataset.range(3), 4)), TypeError, "datasets to zip"),
        (lambda: Dataset.range(3).unbatch(), ValueError, "a first axis to unbatch"),
        (lambda: Dataset.range(3).apply(lambda d: 3), TypeError, "fs.data.Dataset"),
        (lambda: fs.data.TextLineDataset("a", "LZW"), ValueError, "compression_type"),
        (lambda: Dataset.range(3).reduce(0, lambda s, x: x), TypeError, "reduce_func returns"),
    ],
)  # fmt: skip
def test_what_is_refused_at_once(make: Callable[[], Any], kind: Any, text: str) -> None:
    with fs.Graph().as_default(), pytest.raises(kind, match=text):
        make()


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda n: Dataset.range(3).batch(n), "batch_size above 0"),
        (lambda n: Dataset.range(3).shuffle(n), "buffer_size above 0"),
        (lambda n: Dataset.range(1, 9, n), "a step of a range other than 0"),
        (lambda n: Dataset.range(3).shard(n, n), "0 <= index < num_shards"),
        (lambda n: Dataset.range(3).map(lambda i: fs.fill([i + n], i)).batch(2), "of one shape"),
        (lambda n: Dataset.range(n, 3).map(fs.range).padded_batch(3, [1]), "no larger"),
    ],
)  # fmt: skip
def test_what_is_refused_when_it_runs(make: Callable[[Any], Any], text: str) -> None:
    with fs.Graph().as_default():
        zero = fs.placeholder(fs.int64, [])
        iterator = make(zero).make_initializable_iterator()
        element = iterator.get_next()
        with fs.Session() as session:
            session.run(iterator.initializer, {zero: 0})
            with pytest.raises(fs.errors.InvalidArgumentError, match=text):
                session.run(element)


def test_names_that_are_not_here_are_told_of() -> None:
    with pytest.raises(AttributeError, match=r"the methods of fs\.data\.Dataset"):
        _ = fs.data.experimental.CsvDataset


def test_what_may_wait_is_refused_in_functions() -> None:
    with fs.Graph().as_default():
        queue = fs.FIFOQueue(3, [fs.int64], [[]])
        waiting = Dataset.range(3).map(lambda x: x + queue.dequeue())
        iterator = waiting.make_initializable_iterator()
        with fs.Session() as session, pytest.raises(ValueError, match="may wait for other steps"):
            session.run(iterator.initializer)
