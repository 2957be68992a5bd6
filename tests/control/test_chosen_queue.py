"""`QueueBase.from_list`: each step chooses one of several queues."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import numpy as np
import pytest
from late_steps import late

import flowscope as fs
from flowscope.errors import (
    CancelledError,
    DTypeError,
    InvalidArgumentError,
    OutOfRangeError,
    UnimplementedError,
)

MODES = ("compiled", "op", "tokens")


@pytest.mark.parametrize("mode", MODES)
def test_a_random_program(graph: fs.Graph, mode: str) -> None:
    """Against lists: operations of chosen queues and of the queues themselves, by turns."""
    r = random.Random(mode)
    queues = [
        fs.FIFOQueue(30, [fs.int32, fs.string], [[2], []], names=["n", "s"]),
        fs.PaddingFIFOQueue(30, [fs.int32, fs.string], [[None], []], names=["n", "s"]),
        fs.FIFOQueue(30, [fs.int32, fs.string], [[2], []], names=["n", "s"]),
    ]
    index, count = fs.placeholder(fs.int64, []), fs.placeholder(fs.int32, [])
    n, s = fs.placeholder(fs.int32, [2]), fs.placeholder(fs.string, [])
    ns, ss = fs.placeholder(fs.int32, [3, 2]), fs.placeholder(fs.string, [3])
    chosen, fixed = fs.QueueBase.from_list(index, queues), fs.QueueBase.from_list(1, queues)
    assert [shape.as_list() for shape in chosen.shapes] == [[None], []]
    assert (chosen.dtypes, chosen.names) == (queues[0].dtypes, ["n", "s"])
    one, many = chosen.dequeue(), chosen.dequeue_many(count)
    assert (one["n"].shape.as_list(), many["s"].shape.as_list()) == ([None], [None])
    put, put_many = chosen.enqueue({"n": n, "s": s}), chosen.enqueue_many({"n": ns, "s": ss})
    sizes = [chosen.size(), fixed.size(), queues[0].size(), chosen.is_closed()]
    kept: list[deque[Any]] = [deque() for _ in queues]
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        for step in range(40):
            at = r.randrange(3)
            elements = [([step, i], b"%d" % step) for i in range(3)]
            do = r.choice(["put", "put_many", "take", "take_many"])
            if do == "put":
                sess.run(put, {index: at, n: elements[0][0], s: elements[0][1]})
                kept[at].append(elements[0])
            elif do == "put_many":
                feeds = {ns: [e[0] for e in elements], ss: [e[1] for e in elements]}
                if len(kept[at]) <= 27:
                    sess.run(put_many, {index: at, **feeds})
                    kept[at].extend(elements)
            elif do == "take" and kept[at]:
                found = sess.run(one, {index: at})
                assert (found["n"].tolist(), found["s"]) == kept[at].popleft()
            elif do == "take_many" and kept[at]:
                wanted = min(2, len(kept[at]))
                found = sess.run(many, {index: at, count: wanted})
                got = list(zip(found["n"].tolist(), found["s"].tolist(), strict=True))
                assert got == [kept[at].popleft() for _ in range(wanted)]
            found = sess.run(sizes, {index: at})
            assert found == [len(kept[at]), len(kept[1]), len(kept[0]), False]


def test_waits_and_ends_are_those_of_the_chosen_one(graph: fs.Graph, sess: fs.Session) -> None:
    queues = [fs.FIFOQueue(1, fs.int32, []) for _ in range(2)]
    index = fs.placeholder(fs.int32, [])
    chosen = fs.QueueBase.from_list(index, queues)
    put, take = chosen.enqueue(5), chosen.dequeue()
    up_to = chosen.dequeue_up_to(4)
    close = chosen.close(cancel_pending_enqueues=True)
    sess.run(put, {index: 1})
    late(sess, take, {index: 0}, match=queues[0].name)
    assert sess.run(queues[1].size()) == 1
    sess.run(close, {index: 1})
    assert sess.run(up_to, {index: 1}).tolist() == [5]
    with pytest.raises(OutOfRangeError):
        sess.run(take, {index: 1})
    with pytest.raises(CancelledError):
        sess.run(put, {index: 1})
    sess.run(put, {index: 0})
    late(sess, put, {index: 0}, match=queues[0].name)
    with pytest.raises(InvalidArgumentError, match=r"got 2"):
        sess.run(take, {index: 2})
    assert sess.run(take, {index: 0}) == 5


def test_a_runner_fills_a_chosen_queue(graph: fs.Graph, sess: fs.Session) -> None:
    queues = [fs.FIFOQueue(10, fs.int32, []) for _ in range(2)]
    chosen = fs.QueueBase.from_list(fs.constant(1), queues)
    number = fs.train.range_input_producer(4, 1, shuffle=False).dequeue()
    fs.train.add_queue_runner(fs.train.QueueRunner(chosen, [chosen.enqueue(number)]))
    sess.run(fs.local_variables_initializer())
    coord = fs.train.Coordinator()
    threads = fs.train.start_queue_runners(sess, coord)
    assert sess.run(queues[1].dequeue_up_to(9)).tolist() == [0, 1, 2, 3]
    coord.request_stop()
    coord.join(threads)


def test_what_cannot_be_chosen(graph: fs.Graph) -> None:
    one, other = fs.FIFOQueue(1, fs.int32, [], name="one"), fs.FIFOQueue(1, fs.float32, [])
    for given in ([], one, [one, 3]):
        with pytest.raises(DTypeError, match="a list of queues"):
            fs.QueueBase.from_list(0, given)
    with pytest.raises(DTypeError, match="components have the same dtypes"):
        fs.QueueBase.from_list(0, [one, other])
    with pytest.raises(DTypeError, match="components have the same names"):
        fs.QueueBase.from_list(0, [one, fs.FIFOQueue(1, fs.int32, [], names=["a"])])
    with pytest.raises(InvalidArgumentError, match="0 to 0, got 1"):
        fs.QueueBase.from_list(1, [one])
    with pytest.raises(DTypeError, match="an integer"):
        fs.QueueBase.from_list(np.float32(1), [one])
    chosen = fs.FIFOQueue.from_list(0, [one, fs.FIFOQueue(1, fs.int32)])
    assert chosen.shapes[0].ndims is None
    names = fs.FIFOQueue.from_list(0, [fs.FIFOQueue(1, fs.string, name="names")])
    with pytest.raises(UnimplementedError, match='chosen of "names" has no handle'):
        fs.IdentityReader().read(names)
