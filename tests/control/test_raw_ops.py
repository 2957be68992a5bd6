"""Primitives of control flow by hand: how they are built, and what is refused at the line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowscope as fs
from flowscope import raw_ops
from flowscope.control.dynamic.frames import frames_of


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


def test_constants_are_used_in_every_frame() -> None:
    x = raw_ops.Enter(data=fs.placeholder(fs.int32, []), frame_name="loop")
    frames = frames_of(fs.get_default_graph())
    assert frames.of((x + 1).op) is frames.of(x.op)
    with fs.control_dependencies([fs.no_op()]):
        waits = fs.constant(1)
    with pytest.raises(fs.errors.InvalidArgumentError, match="inputs from different frames"):
        _ = x + waits


def test_variables_are_used_in_every_frame() -> None:
    v = fs.Variable(0, name="v")
    x = raw_ops.Enter(data=fs.constant(1), frame_name="loop")
    added = v.assign_add(x)
    frames = frames_of(fs.get_default_graph())
    assert frames.of(added.op) is frames.of(x.op)


# -- what is refused ------------------------------------------------------------------------------


def test_a_value_from_outside_in_a_loop() -> None:
    n = fs.placeholder(fs.int32, [], name="n")
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


def test_loops_of_one_name() -> None:
    Count(3)
    with pytest.raises(fs.errors.InvalidArgumentError) as caught:
        Count(8)
    assert 'the loop "count" has a LoopCond already, "LoopCond"' in str(caught.value)
    assert "frame_name of its own" in str(caught.value)


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


# -- running --------------------------------------------------------------------------------------


@pytest.fixture(params=["compiled", "op", "tokens"])
def run(request: pytest.FixtureRequest) -> Any:
    def call(fetches: Any, feeds: Any = None) -> Any:
        with fs.Session(config=fs.ConfigProto(mode=request.param)) as sess:
            return sess.run(fetches, feeds)

    return call


def into(name: str, value: Any, is_constant: bool = True, **options: Any) -> Any:
    return raw_ops.Enter(
        data=fs.convert_to_tensor(value), frame_name=name, is_constant=is_constant, **options
    )


@pytest.mark.parametrize("n", [0, 1, 10])
def test_a_loop_runs(run: Any, n: int) -> None:
    limit = fs.placeholder(fs.int32, [])
    assert run(Count(limit).result, {limit: n}) == n


@pytest.mark.parametrize("k", [1, 2, 8])
def test_windows_of_any_size_give_the_same(run: Any, k: int) -> None:
    assert run(Count(25, k=k).result) == 25


def test_both_sides_of_a_switch(run: Any) -> None:
    pred = fs.placeholder(fs.bool, [])
    false, true = raw_ops.Switch(data=fs.constant([1, 2, 3]), pred=pred)
    merged = raw_ops.Merge(inputs=[false + 10, true * 10])
    for side, want in ((True, [10, 20, 30]), (False, [11, 12, 13])):
        value, index = run(list(merged), {pred: side})
        assert value.tolist() == want
        assert isinstance(index, np.int32)
        assert index == int(side)


def test_what_has_no_value_cannot_be_fetched(run: Any) -> None:
    pred = fs.placeholder(fs.bool, [])
    _, true = raw_ops.Switch(data=fs.constant(1), pred=pred)
    value = fs.square(true, name="value")
    assert run(value, {pred: True}) == 1
    with pytest.raises(fs.errors.InvalidArgumentError, match="has no value") as caught:
        run(value, {pred: False})
    assert caught.value.op_name == "value"


def test_a_branch_that_is_not_taken_does_not_run() -> None:
    pred = fs.placeholder(fs.bool, [])
    variable = fs.Variable(0)
    one = fs.constant(1)
    false, true = raw_ops.Switch(data=one, pred=pred)
    with fs.control_dependencies([fs.identity(true)]):
        added = variable.assign_add(1)
    merged, _ = raw_ops.Merge(inputs=[false, added])
    with fs.Session() as sess:
        sess.run(variable.initializer)
        sess.run(merged, {pred: False})
        assert sess.run(variable) == 0
        sess.run(merged, {pred: True})
        assert sess.run(variable) == 1


def test_a_merge_of_dead_values_is_dead(run: Any) -> None:
    p, q = fs.placeholder(fs.bool, []), fs.placeholder(fs.bool, [])
    outer = raw_ops.Switch(data=fs.constant(1), pred=p)
    inner = raw_ops.Switch(data=outer.output_true, pred=q)
    both, _ = raw_ops.Merge(inputs=[inner.output_false + 10, inner.output_true + 20])
    result, _ = raw_ops.Merge(inputs=[outer.output_false, both])
    assert run(result, {p: False, q: False}) == 1
    assert run(result, {p: True, q: False}) == 11
    assert run(result, {p: True, q: True}) == 21


def test_control_triggers_are_alive(run: Any) -> None:
    pred = fs.placeholder(fs.bool, [])
    _, true = raw_ops.Switch(data=fs.constant(1), pred=pred)
    with fs.control_dependencies([true]):
        trigger = raw_ops.ControlTrigger()
    with fs.control_dependencies([trigger]):
        value = fs.identity(fs.constant(5))
    assert run(value, {pred: False}) == 5


def test_several_variables_and_constants(run: Any) -> None:
    x = fs.placeholder(fs.float32, [2])
    i, _ = raw_ops.Merge(inputs=[into("p", 0, False)] * 2)
    p, _ = raw_ops.Merge(inputs=[into("p", [1.0, 1.0], False)] * 2)
    pred = raw_ops.LoopCond(input=fs.less(i, into("p", 5)))
    (i0, i1), (p0, p1) = (raw_ops.Switch(data=v, pred=pred) for v in (i, p))
    i.op._update_input(1, raw_ops.NextIteration(data=i1 + into("p", 1)))
    p.op._update_input(1, raw_ops.NextIteration(data=p1 * into("p", x)))
    power, count = raw_ops.Exit(data=p0), raw_ops.Exit(data=i0)
    found, n = run([power, count], {x: [2.0, 3.0]})
    assert found.tolist() == [32.0, 243.0]
    assert n == 5


def nested(rows: Any, columns: Any) -> Any:
    """Counts rows times columns by two loops, one in the other."""
    i, _ = raw_ops.Merge(inputs=[into("outer", 0, False)] * 2)
    total, _ = raw_ops.Merge(inputs=[into("outer", 0, False)] * 2)
    pred = raw_ops.LoopCond(input=fs.less(i, into("outer", rows)))
    (_, i1), (t0, t1) = (raw_ops.Switch(data=v, pred=pred) for v in (i, total))
    one = into("outer", 1)
    zero_j = raw_ops.Enter(data=i1 - i1, frame_name="inner")
    j, _ = raw_ops.Merge(inputs=[zero_j] * 2)
    start = raw_ops.Enter(data=t1, frame_name="inner")
    t, _ = raw_ops.Merge(inputs=[start] * 2)
    limit = raw_ops.Enter(data=into("outer", columns), frame_name="inner", is_constant=True)
    step = raw_ops.Enter(data=one, frame_name="inner", is_constant=True)
    going = raw_ops.LoopCond(input=fs.less(j, limit))
    (_, j1), (s0, s1) = (raw_ops.Switch(data=v, pred=going) for v in (j, t))
    j.op._update_input(1, raw_ops.NextIteration(data=j1 + step))
    t.op._update_input(1, raw_ops.NextIteration(data=s1 + step))
    i.op._update_input(1, raw_ops.NextIteration(data=i1 + one))
    total.op._update_input(1, raw_ops.NextIteration(data=raw_ops.Exit(data=s0)))
    return raw_ops.Exit(data=t0)


@pytest.mark.parametrize(("rows", "columns"), [(3, 4), (3, 0), (0, 4)])
def test_a_loop_in_a_loop(run: Any, rows: int, columns: int) -> None:
    assert run(nested(rows, columns)) == rows * columns


def test_a_loop_on_a_branch_that_is_not_taken(run: Any) -> None:
    pred = fs.placeholder(fs.bool, [])
    false, true = raw_ops.Switch(data=fs.constant(3), pred=pred)
    counted = Count(7, start=true).result
    result, _ = raw_ops.Merge(inputs=[false, counted])
    assert run(result, {pred: False}) == 3
    assert run(result, {pred: True}) == 7


def test_structured_loops_in_loops_by_hand(run: Any) -> None:
    x, _ = raw_ops.Merge(inputs=[into("by-hand", 1, False)] * 2)
    pred = raw_ops.LoopCond(input=fs.less(x, into("by-hand", 100)))
    x0, x1 = raw_ops.Switch(data=x, pred=pred)
    doubled = fs.while_loop(lambda i, v: i < 2, lambda i, v: (i + 1, v * 2), [x1 - x1, x1])[1]
    more = fs.cond(fs.greater(doubled, x1), lambda: doubled + 1, lambda: doubled)
    x.op._update_input(1, raw_ops.NextIteration(data=more))
    value = 1
    while value < 100:
        value = value * 4 + 1
    assert run(raw_ops.Exit(data=x0)) == value


def test_an_assignment_in_a_loop() -> None:
    variable = fs.Variable(0)
    i, _ = raw_ops.Merge(inputs=[into("loop", 0, False, parallel_iterations=1)] * 2)
    one = into("loop", 1, parallel_iterations=1)
    pred = raw_ops.LoopCond(input=fs.less(i, into("loop", 4, parallel_iterations=1)))
    i0, i1 = raw_ops.Switch(data=i, pred=pred)
    with fs.control_dependencies([fs.identity(i1)]):
        added = variable.assign_add(one)
    with fs.control_dependencies([added]):
        after = fs.identity(i1)
    i.op._update_input(1, raw_ops.NextIteration(data=after + one))
    result = raw_ops.Exit(data=i0)
    with fs.Session() as sess:
        sess.run(variable.initializer)
        assert sess.run(result) == 4
        assert sess.run(variable) == 4


def test_queues_in_a_loop_by_hand(run: Any) -> None:
    queue = fs.FIFOQueue(20, fs.int32, shapes=[])
    i, _ = raw_ops.Merge(inputs=[into("loop", 0, False)] * 2)
    pred = raw_ops.LoopCond(input=fs.less(i, into("loop", 6)))
    i0, i1 = raw_ops.Switch(data=i, pred=pred)
    with fs.control_dependencies([queue.enqueue(i1)]):
        after = fs.identity(i1)
    i.op._update_input(1, raw_ops.NextIteration(data=after + into("loop", 1)))
    done = raw_ops.Exit(data=i0)
    with fs.control_dependencies([done]):
        assert run(queue.dequeue_many(6)).tolist() == [0, 1, 2, 3, 4, 5]


# -- the others -----------------------------------------------------------------------------------


def test_stacks(run: Any) -> None:
    stack = raw_ops.StackV2(max_size=-1, elem_type=fs.float32, stack_name="s")
    one = raw_ops.StackPushV2(handle=stack, elem=[1.0, 2.0])
    with fs.control_dependencies([one]):
        two = raw_ops.StackPushV2(handle=stack, elem=3.0)
    with fs.control_dependencies([two]):
        last = raw_ops.StackPopV2(handle=stack, elem_type=fs.float32)
    with fs.control_dependencies([last]):
        first = raw_ops.StackPopV2(handle=stack, elem_type=fs.float32)
    with fs.control_dependencies([first]):
        closed = raw_ops.StackCloseV2(handle=stack)
    values = run([first, last, closed])
    assert values[0].tolist() == [1.0, 2.0]
    assert values[1] == 3.0


def test_what_stacks_refuse(run: Any) -> None:
    small = raw_ops.StackV2(max_size=0, elem_type=fs.float32, stack_name="small")
    with pytest.raises(fs.errors.InvalidArgumentError, match="'small' overflowed its max_size"):
        run(raw_ops.StackPushV2(handle=small, elem=1.0))
    with pytest.raises(fs.errors.InvalidArgumentError, match="'small' is empty"):
        run(raw_ops.StackPopV2(handle=small, elem_type=fs.float32))
    with pytest.raises(fs.errors.DTypeError, match="float32, not int32"):
        raw_ops.StackPopV2(handle=small, elem_type=fs.int32)
    with pytest.raises(fs.errors.DTypeError, match="element of float32"):
        raw_ops.StackPushV2(handle=small, elem=fs.constant(1))
    with fs.control_dependencies([raw_ops.StackCloseV2(handle=small)]):
        late = raw_ops.StackPopV2(handle=small, elem_type=fs.float32)
    with pytest.raises(fs.errors.InvalidArgumentError, match="'small' is closed"):
        run(late)


@pytest.mark.parametrize(
    ("value", "want"),
    [(0, False), (2.5, True), ("", False), ("a", True), ([0], True), (True, True)],
)
def test_to_bool(run: Any, value: Any, want: bool) -> None:
    assert run(raw_ops.ToBool(input=value)) == want
    assert not run(raw_ops.ToBool(input=fs.zeros([0, 2])))


def test_ops_by_their_names(run: Any) -> None:
    x = fs.constant([1.0, 2.0])
    added = raw_ops.Add(x=x, y=x)
    some = raw_ops.Any(input=fs.constant([[True, False], [False, False]]), axis=1)
    same = raw_ops.RefIdentity(input=added)
    values = run([added, some, same])
    assert [v.tolist() for v in values] == [[2.0, 4.0], [True, False], [2.0, 4.0]]


# -- written, and built again ---------------------------------------------------------------------


def test_loops_are_written_and_read(run: Any) -> None:
    n = fs.placeholder(fs.int32, [], name="n")
    result = nested(n, 4).name
    graph = fs.get_default_graph()
    text = graph.text(exact=True)
    for again in (fs.Graph.from_text(text), fs.Graph.from_json(graph.to_json())):
        assert again.text(exact=True) == text
        with again.as_default():
            assert run(result, {"n:0": 3}) == 12
    fs.import_graph_def(graph.as_graph_def(), name="twice")
    assert run([result, f"twice/{result}"], {"n:0": 2, "twice/n:0": 5}) == [8, 20]


def test_a_loop_that_is_written_wrong() -> None:
    Count(5)
    text = fs.get_default_graph().text(exact=True)
    assert "NextIteration(add)   int32[]" in text
    wrong = text.replace("NextIteration(add)   int32[]", "NextIteration(Less)   bool[]")
    with pytest.raises(fs.errors.InvalidArgumentError, match=r"begins with int32\[\], its next"):
        fs.Graph.from_text(wrong)


def test_a_cell_with_a_loop_is_run_again() -> None:
    graph = fs.get_default_graph()
    with fs.Session() as sess:
        for n, k in ((5, 10), (5, 10), (7, 10), (7, 3), (2, 3)):
            with graph.cell("a"):
                loop = Count(n, k=k)
                y = fs.cast(loop.result, fs.float32) * 2.0
            assert sess.run([loop.result, y]) == [n, 2.0 * n]
