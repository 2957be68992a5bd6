"""Barriers and staging areas: TensorFlow's examples, their rules, and random programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from late_steps import late

import flowscope as fs
from flowscope.errors import (
    CancelledError,
    InvalidArgumentError,
    OutOfRangeError,
    ResourceExhaustedError,
    UnimplementedError,
)

MODES = ("compiled", "op", "tokens")
staging = fs.contrib.staging


def session(mode: str = "compiled") -> fs.Session:
    return fs.Session(config=fs.ConfigProto(mode=mode))


def plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return value.tolist() if isinstance(value, np.ndarray) else value


# -- barriers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_a_barrier_gives_elements_when_they_are_complete(graph: fs.Graph, mode: str) -> None:
    barrier = fs.Barrier((fs.string, fs.int32), shapes=((), ()))
    words = barrier.insert_many(0, ["k1", "k2", "k3"], ["a", "b", "c"])
    numbers = barrier.insert_many(1, ["k3", "k1"], [13, 11])
    last = barrier.insert_many(1, ["k2"], [12])
    new = barrier.insert_many(1, ["k9"], [12])
    sizes = [barrier.ready_size(), barrier.incomplete_size()]
    taken, rest = barrier.take_many(2), barrier.take_many(5, allow_small_batch=True)
    close, cancel = barrier.close(), barrier.close(cancel_pending_enqueues=True)
    with session(mode) as sess:
        sess.run(words)
        with pytest.raises(InvalidArgumentError, match="b'k1' has a value for component 0"):
            sess.run(words)
        assert sess.run(sizes) == [0, 3]
        late(sess, taken, match="Barrier")
        sess.run(numbers)
        assert sess.run(sizes) == [2, 1]
        least = -(2**63)
        values = [[b"a", b"c"], [11, 13]]
        assert plain(sess.run(taken)) == [[least, least + 2], [b"k1", b"k3"], values]
        sess.run(close)
        with pytest.raises(CancelledError, match="closed already"):
            sess.run(close)
        with pytest.raises(CancelledError, match="b'k9' is new"):
            sess.run(new)
        late(sess, rest)  # "k2" may still be completed
        sess.run(last)
        assert plain(sess.run(rest)) == [[least + 1], [b"k2"], [[b"b"], [12]]]
        with pytest.raises(OutOfRangeError, match="insufficient elements"):
            sess.run(rest)
        sess.run(cancel)
        with pytest.raises(CancelledError, match="was cancelled"):
            sess.run(last)


def test_a_barrier_without_shapes_stacks_what_has_one(graph: fs.Graph) -> None:
    barrier = fs.Barrier([fs.float32])
    keys, values = fs.placeholder(fs.string, [None]), fs.placeholder(fs.float32)
    insert = barrier.insert_many(0, keys, values)
    with session() as sess:
        sess.run(insert, {keys: ["a", "b"], values: np.ones([2, 3])})
        assert plain(sess.run(barrier.take_many(2)[2])) == [[[1, 1, 1], [1, 1, 1]]]
        sess.run(insert, {keys: ["a"], values: np.ones([1, 3])})
        sess.run(insert, {keys: ["b"], values: np.ones([1, 2])})
        with pytest.raises(InvalidArgumentError, match="different shapes cannot be stacked"):
            sess.run(barrier.take_many(2))
        with pytest.raises(InvalidArgumentError, match="one per key"):
            sess.run(insert, {keys: ["a"], values: np.ones([2, 3])})


# -- staging areas --------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_a_staging_area_hands_elements_on_in_order(graph: fs.Graph, mode: str) -> None:
    area = staging.StagingArea([fs.int64, fs.string], [[], None], names=["x", "w"], capacity=3)
    x = fs.placeholder(fs.int64, [])
    put = area.put({"w": ["a", "b"], "x": x})
    got, second, size = area.get(), area.peek(1), area.size()
    assert got["x"].shape.as_list() == [] and got["w"].shape.ndims is None
    with session(mode) as sess:
        for i in range(3):
            sess.run(put, {x: i})
        late(sess, put, {x: 3}, match="StagingArea")
        assert sess.run(second)["x"] == 1
        assert [sess.run(got)["x"] for _ in range(2)] == [0, 1]
        late(sess, second)
        sess.run(area.clear())
        assert sess.run(size) == 0
        late(sess, got)


def test_a_memory_limit_holds_what_does_not_fit(graph: fs.Graph) -> None:
    area = staging.StagingArea([fs.float64], memory_limit=100)
    x = fs.placeholder(fs.float64)
    put, got = area.put(x), area.get()
    with session() as sess:
        sess.run(put, {x: np.ones(10)})
        late(sess, put, {x: np.ones(3)})
        sess.run(put, {x: np.ones(2)})
        with pytest.raises(ResourceExhaustedError, match="memory limit of 100 bytes, and 104"):
            sess.run(put, {x: np.ones(13)})
        assert [len(sess.run(got)[0]) for _ in range(2)] == [10, 2]


@pytest.mark.parametrize("mode", MODES)
def test_a_map_hands_elements_and_components_on_by_key(graph: fs.Graph, mode: str) -> None:
    area = staging.MapStagingArea([fs.float32, fs.int64], names=["x", "n"], ordered=True)
    key = fs.placeholder(fs.int64, [])
    whole = area.put(key, {"x": 1.5, "n": 2})
    half, other = area.put(key, {"x": 3.5}), area.put(key, {"n": 4})
    got, any_one, seen = area.get(key), area.get(), area.peek(key, ["n"])
    piece = area.get(key, indices=["x"])
    sizes = [area.size(), area.incomplete_size()]
    with session(mode) as sess:
        for k in (7, 3, 5):
            sess.run(whole, {key: k})
        with pytest.raises(InvalidArgumentError, match="the key 3 has these components already"):
            sess.run(half, {key: 3})
        sess.run(half, {key: 1})
        assert sess.run(sizes) == [3, 1]
        late(sess, got, {key: 1})
        assert sess.run(any_one)[0] == 3
        sess.run(other, {key: 1})
        assert sess.run(any_one) == (1, {"x": 3.5, "n": 4})
        assert sess.run(piece, {key: 7})[1] == {"x": 1.5}
        assert sess.run(seen, {key: 7}) == {"n": 2}
        assert sess.run(sizes) == [1, 1]
        sess.run(half, {key: 7})
        assert sess.run(got, {key: 7})[1] == {"x": 3.5, "n": 2}
        assert sess.run(any_one)[0] == 5
        assert sess.run(sizes) == [0, 0]


# -- mistakes -------------------------------------------------------------------------------------

MISTAKES = {
    "component": (
        lambda: fs.Barrier([fs.int32]).insert_many(1, ["a"], [1]),
        "component_index",
    ),
    "values": (lambda: fs.Barrier([fs.int32], [[]]).insert_many(0, ["a"], [1, 2]), "for each key"),
    "timeout": (lambda: fs.Barrier([fs.int32]).take_many(1, timeout=3), "RunOptions"),
    "shapes": (lambda: fs.Barrier([fs.int32], [[], []]), "a shape for each"),
    "too few": (lambda: staging.StagingArea([fs.int32] * 2).put([1]), "a value for each"),
    "too many": (lambda: staging.StagingArea([fs.int32]).put([1, 2]), "a value for each"),
    "limit": (lambda: staging.StagingArea([fs.int32], capacity=-1), "capacity of 0 or more"),
    "names": (
        lambda: staging.StagingArea([fs.int32], names=["a"]).put({"b": 1}),
        "names among a",
    ),
    "no names": (lambda: staging.StagingArea([fs.int32]).put({"b": 1}), "has no names"),
    "indices": (lambda: staging.MapStagingArea([fs.int32]).get(1, indices=[1]), "0 to 0"),
    "dtype": (lambda: staging.StagingArea([fs.int32], [[2]]).put([[1]]), "component 0 of shape"),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_mistakes_are_told_where_they_are_made(graph: fs.Graph, what: str) -> None:
    make, message = MISTAKES[what]
    with pytest.raises((InvalidArgumentError, UnimplementedError), match=message):
        make()
