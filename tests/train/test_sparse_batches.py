"""Batches of sparse tensors, beside what the examples hold."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import DTypeError, InvalidArgumentError

train = fs.train
MODES = ("compiled", "op", "tokens")

pytestmark = pytest.mark.usefixtures("graph")


def record(tags: list[int]) -> bytes:
    made = fs.train.Example()
    made.features.feature["tags"].int64_list.value.extend(tags)
    made.features.feature["count"].int64_list.value.append(len(tags))
    return made.SerializeToString()


def all_of(fetches: Any, mode: str) -> list[Any]:
    out = []
    creator = train.ChiefSessionCreator(config=fs.ConfigProto(mode=mode))
    with train.MonitoredSession(creator) as sess:
        while not sess.should_stop():
            out.append(sess.run(fetches))
    return out


def rows(value: Any) -> list[list[int]]:
    """The examples of a sparse batch; asserts that its shape is as small as can be."""
    found: list[list[int]] = [[] for _ in range(value.dense_shape[0])]
    for (row, column), number in zip(value.indices.tolist(), value.values.tolist(), strict=True):
        assert column == len(found[row])
        found[row].append(number)
    assert value.dense_shape[1] == max(map(len, found))
    return found


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(3))
def test_random_programs(mode: str, seed: int) -> None:
    """Examples of files in batches of each kind: all of them come, once, and belong together."""
    r = random.Random(f"{mode} {seed}")
    lists = [[r.randrange(99) for _ in range(r.randrange(4))] for _ in range(r.randrange(5, 20))]
    records = [record(tags) for tags in lists]
    kind, is_many = r.choice(["batch", "shuffle", "join"]), r.random() < 0.5
    wanted = [bool(len(tags)) or r.random() < 0.5 for tags in lists]
    keeps = r.random() < 0.5
    as_dict = r.random() < 0.5

    def inputs(part: list[int]) -> tuple[Any, fs.Tensor]:
        features = {"tags": fs.VarLenFeature(fs.int64), "count": fs.FixedLenFeature([], fs.int64)}
        data = [np.array([records[i] for i in part], object), [wanted[i] for i in part]]
        text, keep = train.slice_input_producer(data, num_epochs=1, shuffle=False)
        if is_many:
            text, keep = fs.expand_dims(text, 0), fs.expand_dims(keep, 0)
        parse = fs.parse_example if is_many else fs.parse_single_example
        found = parse(text, features)
        tensors = [found["tags"], found["count"]]
        return (dict(zip("tc", tensors, strict=True)) if as_dict else tensors), keep

    size = r.randrange(1, 5)
    more = {"enqueue_many": is_many, "allow_smaller_final_batch": True}
    indices = list(range(len(lists)))
    if kind == "join":
        pairs = [inputs(indices[::2]), inputs(indices[1::2])]
        keeps = False
        batch = train.batch_join([tensors for tensors, _ in pairs], size, **more)
    else:
        tensors, keep = inputs(indices)
        keep = keep if keeps else True
        if kind == "batch":
            batch = train.maybe_batch(tensors, keep, size, **more)
        else:
            batch = train.maybe_shuffle_batch(tensors, size, 20, 5, keep, seed=seed, **more)
    tags, counts = (batch["t"], batch["c"]) if as_dict else batch
    assert isinstance(tags, fs.SparseTensor)
    assert (tags.rank, tags.dtype, counts.shape.ndims) == (2, fs.int64, 1)
    doubled = fs.sparse_reduce_sum(tags, 1) * 2
    found = all_of([tags, counts, doubled], mode)
    got = [row for value, _, _ in found for row in rows(value)]
    for value, lengths, sums in found:
        assert [len(row) for row in rows(value)] == lengths.tolist()
        assert [2 * sum(row) for row in rows(value)] == sums.tolist()
    kept = [tags for tags, keep in zip(lists, wanted, strict=True) if keep or not keeps]
    assert got == kept if kind == "batch" else sorted(got) == sorted(kept)


def test_shapes_that_are_given_and_ranks() -> None:
    sparse = fs.SparseTensor([[0, 1]], ["x"], [2, 3])
    one = train.batch([sparse, fs.placeholder_with_default([1, 2], [None])], 2, shapes=[None, [2]])
    assert (one[0].rank, one[1].shape.as_list()) == (3, [2, 2])
    alone = train.shuffle_batch([sparse], 2, 9, 3, enqueue_many=True, shapes=[[]])
    assert (alone.rank, alone.dtype) == (2, fs.string)
    unknown = fs.SparseTensor(fs.placeholder(fs.int64), fs.placeholder(fs.int32), [2, 2])
    open_rank = fs.SparseTensor(
        fs.placeholder(fs.int64), fs.placeholder(fs.int32), fs.placeholder(fs.int64)
    )
    joined = train.batch_join([[unknown], [open_rank]], 2)
    assert joined.rank is None


def test_what_cannot_be_batched() -> None:
    sparse, dense = fs.SparseTensor([[0]], [1.0], [2]), fs.constant([1.0])
    with pytest.raises(InvalidArgumentError, match="sparse tensors in the same places"):
        train.batch_join([[sparse], [dense]], 2)
    with pytest.raises(DTypeError, match="sparse tensors of one dtype"):
        train.batch_join([[sparse], [fs.SparseTensor([[0]], [1], [2])]], 2)
    with pytest.raises(InvalidArgumentError, match="sparse tensors of one rank"):
        train.batch_join([[sparse], [fs.SparseTensor([[0, 0]], [1.0], [2, 2])]], 2)
    with pytest.raises(InvalidArgumentError, match="rank 2 or more"):
        train.batch([sparse], 2, enqueue_many=True)
    with pytest.raises(InvalidArgumentError, match=r"None or \[\] as the shape of the sparse"):
        train.batch([sparse, dense], 2, shapes=[[2], [1]])
    with pytest.raises(InvalidArgumentError, match="a shape for each of the 2 tensors"):
        train.batch([sparse, dense], 2, shapes=[[]])
