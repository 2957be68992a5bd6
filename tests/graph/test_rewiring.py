"""Inputs that are replaced: forward references."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowscope as fs

fc = fs.collectives


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_a_reference_has_the_value_of_what_resolves_it(graph: Any, mode: str) -> None:
    x = fs.placeholder(fs.float32, [None])
    ref = fc.forward_reference(x, [None, None])
    y = fs.reduce_sum(ref, 1)
    later = fs.tile(x[None], [2, 1])
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        fc.resolve_references([(ref, later)])
        assert sess.run(y, {x: [1.0, 2.0]}).tolist() == [3.0, 3.0]
        assert sess.run(fs.gradients(y, x)[0], {x: [1.0, 2.0]}).tolist() == [2.0, 2.0]
    orders = [op.order for op in graph.get_operations()]
    assert orders == sorted(orders)
    for op in graph.get_operations():
        assert all(t.op.order < op.order for t in op.inputs)


def test_what_depends_on_a_reference_comes_later_in_program_order(graph: Any) -> None:
    """A write of what depends on it comes after a read that was built behind it."""
    v = fs.Variable(1.0)
    ref = fc.forward_reference(1.0)
    write = v.assign(ref)
    read = v.read_value()
    fc.resolve_references([(ref, read + 10.0)])
    with fs.Session() as sess:
        sess.run(v.initializer)
        assert sess.run([write, read]) == [11.0, 1.0]


def test_in_the_body_of_a_loop(graph: Any) -> None:
    def body(i: Any, x: Any) -> Any:
        ref = fc.forward_reference(x)
        y = ref * 2.0
        fc.resolve_references([(ref, x + 1.0)])
        return i + 1, y

    _, x = fs.while_loop(lambda i, _: i < 3, body, (0, 0.0))
    for mode in ("compiled", "op", "tokens"):
        with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
            assert sess.run(x) == 14.0


def test_graphs_with_references_are_written_and_read(graph: Any) -> None:
    x = fs.placeholder(fs.float32, [], name="x")
    ref = fc.forward_reference(x)
    fs.identity(ref, name="y")
    fc.resolve_references([(ref, x * 3.0)])
    definition = graph.as_graph_def()
    with fs.Graph().as_default():
        x, y = fs.import_graph_def(definition, return_elements=["x:0", "y:0"], name="")
        with fs.Session() as sess:
            assert sess.run(y, {x: 2.0}) == 6.0


def test_what_cannot_resolve_a_reference(graph: Any) -> None:
    x = fs.constant([1.0, 2.0])
    ref, other = fc.forward_reference(x), fc.forward_reference(x)
    y = ref + 1.0
    with pytest.raises(fs.errors.DTypeError, match="that forward_reference has returned"):
        fc.resolve_references([(y, x)])
    with pytest.raises(fs.errors.InvalidArgumentError, match="a tensor of shape"):
        fc.resolve_references([(ref, fs.zeros([3]))])
    with pytest.raises(fs.errors.DTypeError, match="expected float32 as an input"):
        fc.resolve_references([(ref, fs.zeros([2], fs.float64))])
    with pytest.raises(fs.errors.InvalidArgumentError, match="would depend on itself"):
        fc.resolve_references([(other, x * 2.0), (ref, y * 2.0)])
    assert ref.op.inputs == (x,)
    assert other.op.inputs == (x,)
    with fs.Graph().as_default():
        foreign = fs.zeros([2])
    with pytest.raises(fs.errors.GraphError, match="do not stand in the block"):
        fc.resolve_references([(ref, foreign)])
    with fs.Session() as sess:
        np.testing.assert_array_equal(sess.run(y), [2.0, 3.0])
