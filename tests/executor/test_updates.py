"""Update groups where operations run one by one: a stopped step has done an update or not."""

from __future__ import annotations

import contextlib
import itertools

import pytest
from late_steps import late
from stopping import StopAt

import flowscope as fs
from flowscope.ops.state.variable_ops import AssignAddVariableOp
from flowscope.runtime.waits.gate import Gate

pytestmark = pytest.mark.usefixtures("graph")

BEFORE, AFTER = (1.0, 1.0, 1.0), (0.0, -1.0, -2.0)


@pytest.fixture(params=["compiled", "op", "tokens"])
def config(request):
    return fs.ConfigProto(mode=request.param)


class OneByOne(fs.train.GradientDescentOptimizer):
    """Writes each variable in a branch of its own."""

    def _apply_dense(self, grad, var):
        update = super()._apply_dense
        return fs.cond(fs.reduce_sum(grad) > 0.0, lambda: update(grad, var), fs.no_op).op


def states(config, step, variables):
    """Yields the values of variables after a step that was stopped at each of its safepoints."""
    start = fs.global_variables_initializer()
    for n in itertools.count():
        with fs.Session(config=config) as s:
            s.run(start)
            s.gate = StopAt(n)
            with contextlib.suppress(fs.errors.CancelledError):
                s.run(step)
            is_whole = s.gate.count >= 0
            s.gate = Gate()
            yield tuple(s.run(variables))
        if is_whole:
            return


def variables():
    return [fs.Variable(1.0, name=name) for name in "abc"]


def loss_of(a, b, c):
    return a + 2.0 * fs.sin(b * 0.0) + b * 2.0 + fs.exp(c * 0.0) * c * 3.0


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", [fs.train.GradientDescentOptimizer, OneByOne])
def test_an_update_is_whole_wherever_the_step_is_stopped(config, optimizer):
    abc = variables()
    loss = loss_of(*abc)
    train = optimizer(1.0).minimize(loss)
    found = list(states(config, train, abc))
    assert set(found) <= {BEFORE, AFTER}
    assert found == sorted(found, reverse=True)
    assert found[-1] == AFTER
    assert config.mode == "compiled" or found[0] == BEFORE


@pytest.mark.slow
def test_an_update_in_a_loop_is_whole_in_every_iteration(config):
    abc = variables()

    def body(i):
        with fs.control_dependencies([OneByOne(1.0).minimize(loss_of(*abc))]):
            return i + 1

    loop = fs.while_loop(lambda i: i < 3, body, [0])
    found = set(states(config, loop, abc))
    whole = {tuple(1.0 - k * n for k in (1.0, 2.0, 3.0)) for n in range(4)}
    assert {(0.0, -1.0, -2.0), (-1.0, -3.0, -5.0), (-2.0, -5.0, -8.0)} <= found <= whole


def test_an_update_waits_for_all_that_it_needs_before_it_begins(config):
    """One gradient comes late: no variable has changed when the step gives up waiting for it."""
    a, b, c = abc = variables()
    comes_late = fs.FIFOQueue(1, [fs.float32], shapes=[()])
    train = fs.train.GradientDescentOptimizer(1.0).minimize(a + b * comes_late.dequeue() + c)
    with fs.Session(config=config) as s:
        s.run(fs.global_variables_initializer())
        late(s, train, ms=100)
        assert s.run(abc) == [1.0, 1.0, 1.0]
        s.run(comes_late.enqueue(3.0))
        s.run(train)
        assert s.run(abc) == [0.0, -2.0, 0.0]


def test_effects_keep_their_order_though_an_update_needs_one_of_them(config):
    """The second write needs what is told last: all that is told comes before the first."""
    seen = []
    a, b, c = abc = variables()

    def told(what, value):
        found = fs.py_func(lambda v: (seen.append((what, float(v))), v)[1], [value], fs.float32)
        found.set_shape([])
        return found

    graph = fs.get_default_graph()
    first = graph.add(AssignAddVariableOp("both"), (a.handle, fs.constant(1.0)), "first")
    told("one", fs.constant(5.0))
    last = told("two", c + 1.0)
    second = graph.add(AssignAddVariableOp("both"), (b.handle, last), "second")
    with fs.Session(config=config) as s:
        s.run(fs.global_variables_initializer())
        effects = [op for op in graph.get_operations() if op.type == "PyFunc"]
        s.run([first, second, *effects])
        assert s.run(abc) == [2.0, 3.0, 1.0]
    assert sorted(seen) == [("one", 5.0), ("two", 2.0)]  # they may overlap


def test_two_updates_that_need_parts_of_each_other_are_one(config):

    a, b, c = variables()
    d = fs.Variable(1.0, name="d")
    graph = fs.get_default_graph()

    def add(group, variable, value):
        op = graph.add(
            AssignAddVariableOp(group), (variable.handle, value), variable.op.name + "_add"
        )
        return op.outputs[0]

    one = add("x", a, fs.constant(1.0))
    two = add("y", b, fs.constant(1.0))
    three = add("x", c, two * 2.0)
    four = add("y", d, one * 3.0)
    found = set(states(config, [three, four], [a, b, c, d]))
    assert found - {(1.0, 1.0, 1.0, 1.0)} == {(2.0, 2.0, 5.0, 7.0)}
