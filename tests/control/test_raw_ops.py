"""Primitives of control flow by hand: how they are built, and what is refused at the line."""

from __future__ import annotations

from typing import Any

import pytest

import flowscope as fs
from flowscope import raw_ops
from flowscope.control.frames import frames_of


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with fs.Graph().as_default():
        yield


class Count:
    """A loop by hand that counts from 0 to n."""

    def __init__(self, n: Any, name: str = "count", start: Any = 0, k: int = 10) -> None:
        def constant(value: Any) -> Any:
            return raw_ops.Enter(
                data=value, frame_name=name, is_constant=True, parallel_iterations=k
            )

        self.start = raw_ops.Enter(
            data=fs.convert_to_tensor(start), frame_name=name, parallel_iterations=k
        )
        self.i, self.index = raw_ops.Merge(inputs=[self.start, self.start])
        self.go = raw_ops.LoopCond(input=fs.less(self.i, constant(fs.convert_to_tensor(n))))
        self.stop, self.inside = raw_ops.Switch(data=self.i, pred=self.go)
        self.next = raw_ops.NextIteration(data=self.inside + constant(fs.constant(1)))
        self.i.op._update_input(1, self.next)
        self.result = raw_ops.Exit(data=self.stop)


# -- building -------------------------------------------------------------------------------------


def test_outputs_have_tensorflows_names() -> None:
    data = fs.constant([1.0, 2.0])
    pair = raw_ops.Switch(data=data, pred=fs.constant(True), name="s")
    assert (pair.output_false.name, pair.output_true.name) == ("s:0", "s:1")
    merged = raw_ops.Merge(inputs=[pair.output_false, pair.output_true])
    assert merged.output.shape.as_list() == [2]
    assert merged.value_index.dtype is fs.int32
    false, true = fs.switch([1.0, 2.0], True)
    assert fs.merge([false, true], name="m").output.name == "m:0"
    with pytest.raises(fs.errors.InvalidArgumentError, match="got None among"):
        fs.merge([false, None])


def test_what_a_loop_is_made_of() -> None:
    loop = Count(5)
    assert loop.i.op.inputs == (loop.start, loop.next)
    assert loop.result.dtype is fs.int32
    frames = frames_of(fs.get_default_graph())
    inner = frames.of(loop.i.op)
    assert inner is not None
    assert (inner.name, inner.parent, inner.parallel_iterations) == ("count", None, 10)
    assert frames.of(loop.result.op) is None
    assert frames.inside(loop.result.op) is inner


def test_loops_in_loops() -> None:
    x = raw_ops.Enter(data=fs.constant(1), frame_name="outer")
    y = raw_ops.Enter(data=x, frame_name="inner")
    frames = frames_of(fs.get_default_graph())
    inner = frames.of(y.op)
    assert inner is not None
    assert inner.path == "outer/inner"
    assert frames.of(raw_ops.Exit(data=y).op) is frames.of(x.op)
    assert frames.of(raw_ops.Exit(data=raw_ops.Exit(data=y)).op) is None


def test_loops_of_one_name_in_different_loops_differ() -> None:
    a = raw_ops.Enter(data=fs.constant(1), frame_name="a")
    b = raw_ops.Enter(data=fs.constant(1), frame_name="b")
    x = raw_ops.Enter(data=a, frame_name="in")
    y = raw_ops.Enter(data=b, frame_name="in")
    with pytest.raises(fs.errors.InvalidArgumentError, match="inputs from different frames"):
        _ = x + y


def test_variables_are_used_in_every_frame() -> None:
    v = fs.Variable(0, name="v")
    x = raw_ops.Enter(data=fs.constant(1), frame_name="loop")
    added = v.assign_add(x)
    frames = frames_of(fs.get_default_graph())
    assert frames.of(added.op) is frames.of(x.op)


# -- what is refused ------------------------------------------------------------------------------


def test_a_value_from_outside_in_a_loop() -> None:
    n = fs.constant(5, name="n")
    loop = Count(n)
    with pytest.raises(fs.errors.InvalidArgumentError) as caught:
        fs.add(loop.inside, n)
    text = str(caught.value)
    assert "inputs from different frames" in text
    assert '"n:0" stands outside of all loops' in text
    assert '"Switch:1" stands in the loop "count" (begun in ' in text
    assert 'the variable that "Const' in text
    assert 'fs.raw_ops.Enter(data=..., frame_name="count", is_constant=True)' in text
    assert "fs.raw_ops.Exit" in text
    assert "TensorArray" in text
    assert "fs.add(loop.inside, n)" in text


def test_a_value_of_a_loop_behind_it() -> None:
    loop = Count(5)
    with pytest.raises(fs.errors.InvalidArgumentError, match='to use "Merge:0" behind the loop'):
        fs.add(loop.result, loop.i)


def test_values_of_two_loops() -> None:
    data = fs.placeholder(fs.float32, [])
    one = raw_ops.Enter(data=data, frame_name="foo_1")
    two = raw_ops.Enter(data=data, frame_name="foo_2")
    with pytest.raises(fs.errors.InvalidArgumentError) as caught:
        fs.add(one, two)
    assert 'in the loop "foo_1"' in str(caught.value)
    assert 'in the loop "foo_2"' in str(caught.value)
    assert "bring it in" not in str(caught.value)


def test_waiting_for_what_stands_outside() -> None:
    loop = Count(5)
    before = fs.no_op("before")
    with fs.control_dependencies([before]):
        with pytest.raises(fs.errors.InvalidArgumentError, match='to run after "before"'):
            fs.square(loop.inside)


@pytest.mark.parametrize("op", [raw_ops.Exit, raw_ops.NextIteration])
def test_leading_out_of_no_loop(op: Any) -> None:
    with pytest.raises(fs.errors.InvalidArgumentError, match='"x:0" stands in no loop'):
        op(data=fs.constant(1, name="x"))


def test_enters_that_disagree() -> None:
    x = fs.constant(1)
    raw_ops.Enter(data=x, frame_name="loop", parallel_iterations=4)
    with pytest.raises(fs.errors.InvalidArgumentError, match="parallel_iterations=4 elsewhere"):
        raw_ops.Enter(data=x, frame_name="loop", parallel_iterations=5)
    for k in (0, -1):
        with pytest.raises(fs.errors.InvalidArgumentError, match="of at least 1"):
            raw_ops.Enter(data=x, frame_name="other", parallel_iterations=k)


def test_what_may_be_merged_later() -> None:
    loop = Count(5)
    i = loop.i.op
    with pytest.raises(fs.errors.InvalidArgumentError, match="by what NextIteration returns"):
        i._update_input(1, loop.inside)
    with pytest.raises(fs.errors.InvalidArgumentError, match="by what NextIteration returns"):
        loop.inside.op._update_input(0, loop.next)
    with pytest.raises(fs.errors.InvalidArgumentError, match="among 2, got number 2"):
        i._update_input(2, loop.next)
    other = Count(5, name="other")
    with pytest.raises(fs.errors.InvalidArgumentError, match="inputs from different frames"):
        i._update_input(1, other.next)


def test_a_variable_whose_shape_changes() -> None:
    start = raw_ops.Enter(data=fs.zeros([1]), frame_name="grows")
    x, _ = raw_ops.Merge(inputs=[start, start])
    after = raw_ops.NextIteration(data=fs.stack([x, x]))
    with pytest.raises(fs.errors.InvalidArgumentError) as caught:
        x.op._update_input(1, after)
    assert "is float32[1] at its entry and float32[2,1] after an iteration" in str(caught.value)


def test_a_broken_line_leaves_the_graph_as_it_was() -> None:
    loop = Count(5)
    graph = fs.get_default_graph()
    count = len(graph)
    with pytest.raises(fs.errors.InvalidArgumentError):
        fs.add(loop.inside, loop.result)
    assert len(graph) == count
    assert fs.add(loop.result, loop.result) is not None
