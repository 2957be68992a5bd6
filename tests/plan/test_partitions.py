"""Plans of two partitions, cut by hand: one function, the same bits; or a back end for each."""

import dataclasses

import numpy as np
import pytest
from cut_programs import DEVICES, cut
from direct_runs import in_step
from random_programs import Program as RandomProgram

import flowscope as fs
from flowscope.plan.back_ends import OpByOp
from flowscope.plan.merging import merged
from flowscope.plan.passes.regions import regions
from flowscope.plan.plan import compiled
from flowscope.plan.serialization import dumps, loads
from flowscope.plan.verify import verify
from flowscope.runtime.random_generators import generator

pytestmark = pytest.mark.usefixtures("graph")
RUN = (7, 11, 3)


def bits(values):
    return [(np.asarray(v).dtype, np.asarray(v).shape, np.asarray(v).tobytes()) for v in values]


def two(sess, fetches, feeds, back_ends=("python", "python"), seed=0, is_split=True):
    """Returns the plan of two partitions."""
    plan = sess.plan(fetches, list(feeds))
    devices = dict.fromkeys(("", *DEVICES), sess.devices[0])
    partitions = cut(plan.program, back_ends, seed, is_split)
    planner = sess._planner
    return compiled(plan.request, partitions, plan, devices, generator, planner.back_ends)


def run(sess, plan, feeds, by_op=False):
    states = tuple(sess._planner.state(h.op) for h in plan.handles)
    arrays = tuple([c(v) for c, v in zip(map(sess._planner.converter, feeds), feeds.values())])
    function = plan.executable.by_op if by_op else plan.executable.function
    with in_step(sess, plan):
        return function(sess.gate, RUN, arrays, states)


def straight():
    x = fs.placeholder(fs.float32, [3, 3])
    y = fs.tanh(x) @ x + 1.0
    z = fs.random_uniform([3], seed=4) * fs.reduce_sum(y, 0)
    w = fs.Variable(np.ones((3, 3), "f"), name="w")
    return [y, z, w.assign_add(y), y - z], {x: np.linspace(-1, 1, 9, dtype="f").reshape(3, 3)}


def blocks():
    x = fs.placeholder(fs.float32, [3])
    n = fs.placeholder(fs.int32, [])

    def body(i, v, total):
        w = fs.cond(fs.reduce_sum(v) > 2.0, lambda: fs.tanh(v) - 1.0, lambda: v * 2.0 + x)
        _, inner = fs.while_loop(lambda j, u: j < i, lambda j, u: (j + 1, u * w), [0, v])
        drawn = fs.random_uniform([3], seed=2)
        return i + 1, w + drawn, total + fs.reduce_sum(inner)

    _, v, total = fs.while_loop(lambda i, *_: i < n, body, [0, x, 0.0])
    gradients = fs.gradients(total, [x])
    return [v, total, *gradients, fs.reduce_max(v)], {x: np.array([0.1, -0.2, 0.3], "f"), n: 4}


PROGRAMS = {"straight": straight, "blocks": blocks}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("back_end", ["python", "op", "tokens"])
def test_partitions_of_one_process_are_one_function_with_the_same_bits(name, seed, back_end):
    fetches, feeds = PROGRAMS[name]()
    with fs.Session() as sess:
        sess.run(fs.global_variables_initializer())
        plan = two(sess, fetches, feeds, (back_end, back_end), seed)
        assert [p.device for p in plan.partitions] == list(DEVICES)
        assert {"Send", "Recv"} <= {n.op.type for p in plan.partitions for n in p.program.walk()}
        for partition in plan.partitions:
            verify(partition.program)
        verify(plan.program)
        assert not {n.op.type for n in plan.program.walk()} & {"Send", "Recv"}
        found = bits(run(sess, plan, feeds))
        sess.run(fs.global_variables_initializer())
        there = sess.plan(fetches, list(feeds))
        assert found == bits(run(sess, there, feeds))
        if back_end == "python":
            assert plan.executable.text.count("def region") == 1
            sess.run(fs.global_variables_initializer())
            assert found == bits(run(sess, plan, feeds, by_op=True))


def test_sends_stand_in_bodies_and_branches():
    fetches, feeds = blocks()
    with fs.Session() as sess:
        plan = two(sess, fetches, feeds, seed=1)
    inside = [
        n.op.type
        for p in plan.partitions
        for m in p.program.nodes
        for b in m.blocks
        for n in b.walk()
    ]
    assert inside.count("Send") == inside.count("Recv") > 3
    text = plan.text("partition")
    assert text.count("partition on ") == 2 and "compiled by python:" in text
    assert "Recv()   " in text and "Send(" in text


@pytest.mark.parametrize("seed", range(1, 4))
@pytest.mark.parametrize("back_ends", [("python", "op"), ("tokens", "python"), ("tokens", "op")])
def test_each_partition_can_have_a_code_back_end_of_its_own(back_ends, seed):
    fetches, feeds = straight()
    x = next(iter(feeds))
    fetches = [*fetches, fs.while_loop(lambda i: i < 3, lambda i: i + 1, [0]), x]
    with fs.Session() as sess:
        sess.run(fs.global_variables_initializer())
        flat = sess.plan(fetches, list(feeds))
        there = bits(run(sess, flat, feeds))
        for by_op in (False, True):
            sess.run(fs.global_variables_initializer())
            plan = two(sess, fetches, feeds, back_ends, seed, is_split=False)
            assert [p.back_end for p in plan.partitions] == list(back_ends)
            assert sum(len(p.regions) for p in plan.partitions) > 2
            assert bits(run(sess, plan, feeds, by_op)) == there
        assert ("def region" in plan.executable.text) is (back_ends != ("tokens", "op"))


def test_a_loop_on_two_devices_needs_one_back_end():
    fetches, feeds = blocks()
    with fs.Session() as sess:
        with pytest.raises(fs.errors.UnimplementedError, match='"python" and "op": give these'):
            two(sess, fetches, feeds, ("python", "op"))


@pytest.mark.parametrize("back_ends", [("python", "python"), ("op", "python")])
def test_what_fails_in_a_partition_is_named(back_ends):
    x = fs.placeholder(fs.float32, [None])
    y = fs.reshape(fs.tanh(x), [2, 2], name="square")
    with fs.Session() as sess:
        plan = two(sess, [y + 1.0], {x: [1.0]}, back_ends)
        with pytest.raises(Exception) as caught:
            run(sess, plan, {x: [1.0]})
    failed = plan.executable.failed(caught.value)
    assert failed is not None and failed.node.name == "square"
    assert failed.inputs[0].shape == (1,)


def test_partitions_without_a_common_order_are_refused():
    fetches, feeds = straight()
    with fs.Session() as sess:
        one, other = two(sess, fetches, feeds).partitions
    nodes = [n for n in one.program.nodes if n.op.type != "Send"]
    lost = dataclasses.replace(one, program=dataclasses.replace(one.program, nodes=tuple(nodes)))
    with pytest.raises(fs.errors.InternalError, match="recv.* wait for each other"):
        merged([lost, other])


@pytest.mark.filterwarnings("ignore::flowscope.errors.ControlFlowWarning")
@pytest.mark.parametrize("seed", [pytest.param(i, marks=pytest.mark.slow) for i in range(40)])
def test_random_programs_give_the_same_bits_in_two_partitions(seed):
    program = RandomProgram(seed)
    found = []
    with program.graph.as_default(), fs.Session(graph=program.graph) as sess:
        plan = sess.plan(program.fetches, [t for t, _ in program.feeds])
        for function in (
            plan,
            *[two(sess, program.fetches, dict(program.feeds), seed=i) for i in range(2)],
        ):
            sess.run(program.initializer)
            results = []
            for arrays in program.fed:
                feeds = {t: a.copy() for (t, _), a in zip(program.feeds, arrays, strict=True)}
                try:
                    results.append(bits(run(sess, function, feeds)))
                except Exception as e:
                    failed = function.executable.failed(e)
                    results.append(failed and failed.node.name)
            results.append(bits(sess.run(program.variables)))
            found.append(results)
    assert found[1] == found[0]
    assert found[2] == found[0]


def test_partitions_go_to_another_process_as_bytes():
    fetches, feeds = blocks()
    with fs.Session() as sess:
        plan = two(sess, fetches, feeds)
        there = []
        for p in plan.partitions:
            program = loads(dumps(p.program)[0])
            assert program.text() == p.program.text()
            there.append(dataclasses.replace(p, program=program, regions=regions(program)))
        assert merged(there).text() == merged(plan.partitions).text()
        devices = dict.fromkeys(("", *DEVICES), sess.devices[0])
        given = (plan, devices, generator, sess._planner.back_ends)
        made = compiled(plan.request, tuple(there), *given)
        assert made.text("code") == plan.text("code")
        assert bits(run(sess, made, feeds)) == bits(run(sess, plan, feeds))


def test_a_session_can_hold_a_code_back_end_of_its_own():
    class Counting:
        """Counts the regions that it compiles, and has them interpreted."""

        def __init__(self):
            self.regions = []

        def compile(self, region, target, variant):
            self.regions.append(region)
            return OpByOp().compile(region, target, variant)

    x = fs.placeholder(fs.float32, [3])
    with fs.Session() as sess, fs.Session() as other:
        mine = sess._planner.back_ends["python"] = Counting()
        assert sess.run(x * 2.0, {x: [1, 2, 3]}).tolist() == [2, 4, 6]
        assert [len(r.outputs) for r in mine.regions] == [1]
        assert sess.plan(x * 3.0, [x]).text("code") == "compiled mode: no code"
        assert "def region" in other.plan(x * 3.0, [x]).text("code")
