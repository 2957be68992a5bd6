"""Input by queues: what producers and batches give, and their end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import InvalidArgumentError, OutOfRangeError

train = fs.train

pytestmark = pytest.mark.usefixtures("graph")


def all_of(fetches: Any, most: int = 1000, mode: str = "compiled") -> list[Any]:
    """What steps give until the input is at its end, or `most` of them."""
    out = []
    with train.MonitoredSession(
        train.ChiefSessionCreator(config=fs.ConfigProto(mode=mode))
    ) as sess:
        while not sess.should_stop() and len(out) < most:
            out.append(sess.run(fetches))
    return out


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_strings_come_in_order_for_so_many_epochs(mode: str) -> None:
    queue = train.string_input_producer(["a", "b", "c"], num_epochs=2, shuffle=False)
    assert all_of(queue.dequeue(), mode=mode) == [b"a", b"b", b"c"] * 2


def test_without_epochs_there_is_no_end() -> None:
    queue = train.string_input_producer(["a", "b"], shuffle=False)
    assert all_of(queue.dequeue(), 7) == [b"a", b"b"] * 3 + [b"a"]


def test_shuffling_is_anew_in_each_epoch_and_follows_the_seed_and_the_run() -> None:
    def orders() -> list[list[int]]:
        with fs.Graph().as_default(), fs.Session() as sess:
            queue = train.range_input_producer(20, seed=3)
            (runner,) = fs.get_collection(fs.GraphKeys.QUEUE_RUNNERS)
            taken, found = queue.dequeue_many(20), []
            for _ in range(3):
                sess.run(runner.enqueue_ops)
                found.append(sess.run(taken).tolist())
            return found

    found = orders()
    assert orders() == found
    assert [sorted(one) for one in found] == [list(range(20))] * 3
    assert found[0] != found[1] != found[2] != list(range(20))


def test_rows_of_tensors_are_produced() -> None:
    rows = np.arange(12.0).reshape(3, 2, 2)
    queue = train.input_producer(rows, num_epochs=1, shuffle=False, summary_name="fullness")
    assert [x.tolist() for x in all_of(queue.dequeue())] == rows.tolist()
    (summary,) = fs.get_collection(fs.GraphKeys.SUMMARIES)
    assert summary.op.name.endswith("fullness")


@pytest.mark.parametrize("shuffle", [False, True])
def test_slices_of_several_tensors_belong_together(shuffle: bool) -> None:
    x, y = np.arange(10.0).reshape(5, 2), np.arange(5)
    found = all_of(train.slice_input_producer([x, y], num_epochs=1, shuffle=shuffle))
    assert [row.tolist() for row, _ in found] == [x[i].tolist() for _, i in found]
    numbers = [int(i) for _, i in found]
    assert sorted(numbers) == list(range(5))
    assert shuffle or numbers == list(range(5))


def test_limit_epochs() -> None:
    limited = train.limit_epochs(fs.constant(7.0), 2)
    with fs.Session() as sess:
        sess.run(fs.local_variables_initializer())
        assert [sess.run(limited) for _ in range(2)] == [7.0, 7.0]
        with pytest.raises(OutOfRangeError):
            sess.run(limited)
    forever = fs.constant(1.0)
    assert train.limit_epochs(forever) is forever


def numbers(n: int = 10, shuffle: bool = False) -> fs.Tensor:
    return train.range_input_producer(n, num_epochs=1, shuffle=shuffle).dequeue()


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
@pytest.mark.parametrize("smaller", [False, True])
def test_batches_in_order_and_the_last_one(mode: str, smaller: bool) -> None:
    x = numbers()
    batch = train.batch(
        [x, fs.cast(x, fs.float32) * [1.0, 2.0]], 4, allow_smaller_final_batch=smaller
    )
    assert [t.shape.as_list() for t in batch] == ([[None], [None, 2]] if smaller else [[4], [4, 2]])
    found = all_of(batch, mode=mode)
    want = [[0, 1, 2, 3], [4, 5, 6, 7]] + ([[8, 9]] if smaller else [])
    assert [x.tolist() for x, _ in found] == want
    assert found[1][1].tolist() == [[4, 8], [5, 10], [6, 12], [7, 14]]


def test_a_dict_and_a_list_of_one() -> None:
    x = numbers(4)
    assert train.batch([x], 2).shape.as_list() == [2]
    both = train.batch({"x": x, "a": x * 2}, 2)
    assert set(both) == {"x", "a"}
    alone = train.batch({"x": x}, 2)
    assert isinstance(alone, dict) and alone["x"].shape.as_list() == [2]


def test_examples_that_come_several_at_once() -> None:
    x = numbers(4)
    pairs = fs.stack([x * 10, x * 10 + 1])
    batch = train.batch([pairs], 3, enqueue_many=True, allow_smaller_final_batch=True)
    assert [b.tolist() for b in all_of(batch)] == [[0, 1, 10], [11, 20, 21], [30, 31]]


def test_examples_of_different_lengths_are_filled_up() -> None:
    x = numbers(4)
    batch = train.batch([fs.range(x), x], 2, dynamic_pad=True)
    assert batch[0].shape.as_list() == [2, None]
    found = [b.tolist() for b, _ in all_of(batch)]
    assert found == [[[0], [0]], [[0, 1, 0], [0, 1, 2]]]
    with pytest.raises(InvalidArgumentError, match="fully known"):
        train.batch([fs.range(x)], 2)


@pytest.mark.parametrize("threads", [1, 3])
def test_shuffled_batches_lose_and_double_nothing(threads: int) -> None:
    batch = train.shuffle_batch(
        [numbers(50)], 8, capacity=20, min_after_dequeue=10, num_threads=threads, seed=1,
        allow_smaller_final_batch=True,
    )  # fmt: skip
    found = [int(x) for b in all_of(batch) for x in b]
    assert sorted(found) == list(range(50)) != found


@pytest.mark.parametrize("join", ["batch_join", "shuffle_batch_join"])
def test_several_lists_are_joined(join: str) -> None:
    lists = [[numbers(10) + 100 * i] for i in range(3)]
    more = {} if join == "batch_join" else {"capacity": 40, "min_after_dequeue": 5}
    batch = getattr(train, join)(lists, 7, allow_smaller_final_batch=True, **more)
    found = sorted(int(x) for b in all_of(batch) for x in b)
    assert found == sorted(100 * i + n for i in range(3) for n in range(10))
    (runner,) = [
        r for r in fs.get_collection(fs.GraphKeys.QUEUE_RUNNERS) if len(r.enqueue_ops) == 3
    ]
    assert len(set(runner.enqueue_ops)) == 3


@pytest.mark.parametrize("name", ["batch", "batch_join", "shuffle_batch", "shuffle_batch_join"])
@pytest.mark.parametrize("many", [False, True])
def test_only_what_is_kept_comes_into_batches(name: str, many: bool) -> None:
    x = numbers(10)
    given = fs.stack([x, x + 100]) if many else x
    keep = fs.equal(given % 2, 0)
    tensors = [[given]] if name.endswith("join") else [given]
    more = {"capacity": 30, "min_after_dequeue": 2} if "shuffle" in name else {}
    function = getattr(train, f"maybe_{name}")
    batch = function(
        tensors, keep_input=keep, batch_size=2, enqueue_many=many, allow_smaller_final_batch=True,
        **more,
    )  # fmt: skip
    want = [0, 2, 4, 6, 8] + ([100, 102, 104, 106, 108] if many else [])
    assert sorted(int(x) for b in all_of(batch) for x in b) == want


def test_how_full_queues_are_is_a_summary() -> None:
    train.shuffle_batch([numbers(100)], 2, capacity=12, min_after_dequeue=2)
    names = [s.op.name for s in fs.get_collection(fs.GraphKeys.SUMMARIES)]
    assert [n.rpartition("/")[2] for n in names] == [
        "fraction_of_32_full",
        "fraction_over_2_of_10_full",
    ]


def test_the_error_of_an_example_is_that_of_the_batch() -> None:
    def broken(n: np.int32) -> np.int32:
        if n == 3:
            raise ZeroDivisionError("bad record")
        return n

    x = fs.py_func(broken, [numbers(10)], fs.int32)
    x.set_shape([])
    with pytest.raises(Exception, match="bad record"):
        all_of(train.batch([x], 2))


def test_what_does_not_fit_is_refused() -> None:
    x = numbers()
    for make, what in [
        (lambda: train.string_input_producer([]), "one string or more"),
        (lambda: train.limit_epochs(x, 0), "num_epochs above 0"),
        (lambda: train.input_producer(1.0), "rank 1 or more"),
        (lambda: train.input_producer(fs.placeholder(fs.int32, [3, None])), "element_shape"),
        (lambda: train.slice_input_producer([]), "one tensor or more"),
        (lambda: train.batch([], 2), "tensors to be batched"),
        (lambda: train.batch(x, 2), "a list or a dict"),
        (lambda: train.batch_join([[x], [fs.cast(x, fs.int64)]], 2), "same dtypes"),
        (lambda: train.batch_join([{"a": x}, [x]], 2), "same keys"),
        (lambda: train.maybe_batch([x], [True], 2), "keep_input of rank 0"),
        (lambda: train.batch([fs.placeholder(fs.int32)], 2), "known rank; give shapes="),
    ]:
        with pytest.raises(InvalidArgumentError, match=what):
            make()


def test_no_strings_at_run_time() -> None:
    count = fs.placeholder_with_default(fs.constant(0), [])
    queue = train.string_input_producer(fs.constant(["a"])[:count])
    with pytest.raises(InvalidArgumentError, match="one string or more"):
        all_of(queue.dequeue(), 1)
