"""Queues as they are built: names, shapes, what does not fit, the written forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")


def test_names_and_what_is_known() -> None:
    queue = fs.FIFOQueue(3, [fs.float32, fs.int32], shapes=[[2], []], name="q")
    assert queue.name == "q"
    assert queue.queue_ref.dtype is fs.resource
    assert queue.dtypes == [fs.float32, fs.int32]
    assert [s.as_list() for s in queue.shapes] == [[2], []]
    assert queue.names is None
    assert queue.enqueue([[1.0, 2.0], 3]).name == "q_enqueue"
    assert queue.enqueue_many([[[1.0, 2.0]], [3]]).name == "q_EnqueueMany"
    assert queue.size().name == "q_Size:0"
    assert queue.close().name == "q_Close"
    assert queue.is_closed().name == "q_Is_Closed:0"
    one = queue.dequeue()
    assert [(t.name, t.shape.as_list()) for t in one] == [("q_Dequeue:0", [2]), ("q_Dequeue:1", [])]
    many = queue.dequeue_many(4)
    assert [t.name for t in many] == ["q_DequeueMany:0", "q_DequeueMany:1"]
    assert [t.shape.as_list() for t in many] == [[4, 2], [4]]
    some = queue.dequeue_up_to(4)
    assert [t.shape.as_list() for t in some] == [[None, 2], [None]]
    assert repr(queue) == "<fs.FIFOQueue 'q' of float32, int32>"


def test_one_component_comes_alone() -> None:
    queue = fs.FIFOQueue(3, fs.float32, shapes=[])
    assert queue.dequeue().shape.as_list() == []
    assert queue.dequeue_many(fs.placeholder(fs.int32, [])).shape.as_list() == [None]
    free = fs.FIFOQueue(3, [fs.float32])
    assert free.dequeue().shape.ndims is None
    assert free.shapes[0].ndims is None


def test_names_make_elements_dicts(sess: fs.Session) -> None:
    queue = fs.FIFOQueue(3, [fs.float32, fs.int32], names=["x", "n"], shapes=[[], []])
    sess.run(queue.enqueue({"n": 2, "x": 1.5}))
    sess.run(queue.enqueue_many({"n": [3], "x": [2.5]}))
    assert sess.run(queue.dequeue()) == {"x": 1.5, "n": 2}
    many = queue.dequeue_many(1)
    assert set(many) == {"x", "n"}
    for wrong, what in [
        ([1.0, 2], "a dict with 'x'"),
        ({"x": 1.0}, "expected values for 'x'"),
        ({"x": 1.0, "m": 2}, "got 'x', 'm'"),
    ]:
        with pytest.raises(fs.errors.InvalidArgumentError, match=what):
            queue.enqueue(wrong)
    with pytest.raises(fs.errors.InvalidArgumentError, match="the queue has no names"):
        fs.FIFOQueue(3, [fs.float32]).enqueue({"x": 1.0})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dtypes": [], "capacity": 1}, "a dtype for each component"),
        ({"dtypes": [fs.float32], "shapes": [[], []]}, "each of the 1 components, got 2"),
        ({"dtypes": [fs.float32, fs.int32], "shapes": [[]]}, "each of the 2 components, got 1"),
        ({"dtypes": [fs.float32], "shapes": [[None]]}, "shapes that are fully known"),
        ({"dtypes": [fs.float32], "names": ["a", "b"]}, "a name for each of the 1"),
        ({"dtypes": [fs.float32] * 2, "names": ["a", "a"]}, "names that differ"),
        ({"dtypes": [fs.float32], "capacity": "many"}, "a number of elements, got 'many'"),
    ],
)
def test_what_no_queue_is_made_of(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(fs.errors.InvalidArgumentError, match=message):
        fs.FIFOQueue(**{"capacity": 3, **arguments})


def test_what_does_not_fit_is_refused_at_the_line() -> None:
    queue = fs.FIFOQueue(3, [fs.float32, fs.int32], shapes=[[2], []], name="q")
    cases: list[tuple[Callable[[], Any], str]] = [
        (lambda: queue.enqueue([[1.0, 2.0, 3.0], 1]), r"component 0 of an element of shape \[2\]"),
        (lambda: queue.enqueue([[1.0, 2.0], "a"]), "int32"),
        (lambda: queue.enqueue([[1.0, 2.0]]), r"expected 2 components, '0' \(float32\), '1' \(in"),
        (lambda: queue.enqueue([[1.0, 2.0], fs.constant(1.0)]), "int32"),
        (lambda: queue.enqueue_many([[1.0, 2.0], 3]), "component 1 with a first axis|behind the"),
        (lambda: queue.enqueue_many([[[1.0, 2.0]], [3, 4]]), r"number of elements, got \[1, 2\]"),
        (lambda: queue.dequeue_many(-1), "of 0 or more, got -1"),
        (lambda: queue.dequeue_many([1, 2]), "as a scalar, got shape"),
        (lambda: fs.FIFOQueue(3, fs.float32).dequeue_many(2), "make it with shapes="),
        (lambda: fs.FIFOQueue(3, fs.float32).dequeue_up_to(2), "make it with shapes="),
    ]
    for build, message in cases:
        with pytest.raises(fs.errors.InvalidArgumentError, match=message):
            build()


def test_a_handle_is_neither_fed_nor_fetched(sess: fs.Session) -> None:
    queue = fs.FIFOQueue(3, fs.float32)
    with pytest.raises(fs.errors.InvalidArgumentError, match="no value to fetch"):
        sess.run(queue.queue_ref)
    with pytest.raises(fs.errors.InvalidArgumentError, match="cannot be fed"):
        sess.run(queue.size(), {queue.queue_ref: 1})
    variable = fs.Variable(1.0)
    with pytest.raises(fs.errors.DTypeError, match="expected a queue"):
        fs.get_default_graph().add(queue.size().op.definition, (variable.handle,))


def test_a_graph_with_queues_is_written_and_read(sess: fs.Session) -> None:
    queue = fs.FIFOQueue(3, [fs.float32, fs.string], shapes=[[2], []], name="q")
    queue.enqueue([[1.0, 2.0], b"a"])
    queue.dequeue_many(2)
    graph = fs.get_default_graph()
    for again in (fs.Graph.from_text(graph.text(exact=True)), fs.Graph.from_json(graph.to_json())):
        assert again.text(exact=True) == graph.text(exact=True)
