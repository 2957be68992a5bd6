"""Variants of code: plain code does not change, and all give the same bits."""

import itertools
import re
from typing import NamedTuple

import numpy as np
import pytest
from random_programs import Program as RandomProgram

import flowscope as fs
from flowscope.plan.codegen import outlining
from flowscope.plan.codegen.readings import SlotTable
from flowscope.plan.codegen.stamps import Stamped, Stamps
from flowscope.plan.codegen.variants import PLAIN, Breakpoints
from flowscope.plan.ir.breakpoints import NO_TESTS, BreakTests

pytestmark = pytest.mark.usefixtures("graph")
RUN = (7, 11, 3)


class Span(NamedTuple):
    node: object
    iterations: tuple
    begin: int
    end: int


def decoded(table, start, stamps, cuts=()):
    """Returns the spans that readings tell, which may come in pieces."""
    slots, frames, spans = SlotTable(table), {}, []
    cursor = slots.cursor(start)
    for piece in np.split(np.array(stamps, np.int64), cuts):
        reading = slots.read(cursor, piece)
        frames |= {int(row[0]): row for row in reading.frames}
        for i in np.flatnonzero(slots.parts(reading)):
            frame, iteration, path = int(reading.frame[i]), int(reading.iteration[i]), ()
            while frame >= 0:
                path = (iteration, *path)
                frame, iteration = int(frames[frame][2]), int(frames[frame][3])
            node = slots.nodes[slots.owner[reading.slots[i]]]
            spans.append(Span(node, path, int(reading.starts[i]), int(reading.end[i])))
    return spans


def bits(values):
    return [(np.asarray(v).dtype, np.asarray(v).shape, np.asarray(v).tobytes()) for v in values]


class Asked(dict):
    """A breakpoint at every node."""

    def get(self, name):
        return lambda run, counts, values: True


class Gate:
    """Notes where steps are held; those whose breakpoint is `leave` go on one by one."""

    raised, is_by_op, moves = False, False, None

    def __init__(self, leave=None):
        self.leave = leave
        self.seen = []
        self.asked = BreakTests(Asked(), Asked())

    def breakpoints(self):
        return self.asked

    def hold(self, point, here):
        where = here.where()
        if here.is_breakpoint:
            self.seen.append((where.node.name, tuple(at.iteration for at in where.loops)))
        if len(self.seen) - 1 == self.leave:
            self.asked = NO_TESTS
            return True
        return False


def nested():
    x = fs.placeholder(fs.float32, [2])
    n = fs.placeholder(fs.int32, [])

    def body(i, v):
        v = fs.cond(fs.equal(i % 2, 0), lambda: fs.tanh(v, name="even"), lambda: v * 2.0)
        v = fs.while_loop(
            lambda j, u: j < i, lambda j, u: (j + 1, fs.add(u, x, name="inner")), [0, v],
            maximum_iterations=2,
        )[1]  # fmt: skip
        return i + 1, v + fs.random_uniform([2], seed=3)

    _, v = fs.while_loop(lambda i, v: i < n, body, [0, x])
    return [v, fs.reduce_sum(v, name="last")], {x: np.array([0.5, -1.0], "f"), n: 4}


def planned(sess, fetches, feeds):
    plan = sess.plan(fetches, list(feeds))
    arrays = tuple([c(v) for c, v in zip(map(sess._planner.converter, feeds), feeds.values())])
    return plan, arrays, tuple(sess._planner.state(h.op) for h in plan.handles)


def by_op(plan, arrays, states):
    """Returns the names of what runs in op mode, in order, with the iterations around."""
    seen = []

    def probe(node, iterations, outputs):
        if node.op.type not in ("Const", "NoOp"):
            seen.append((node.name, iterations))

    plan.executable.probed(probe)(Gate(), RUN, arrays, states)
    return seen


def stamped(plan, arrays, states, clock=None):
    clock = clock or itertools.count(1).__next__
    code = plan.variant(Stamps(clock))
    stamps = []
    start = clock()
    values = code.function(Gate(), Stamped(RUN, stamps), arrays, states)
    return values, decoded(code.code.stamps, start, stamps), stamps


def test_stamps_tell_when_each_node_ran():
    fetches, feeds = nested()
    with fs.Session() as sess:
        plan, arrays, states = planned(sess, fetches, feeds)
        values, spans, stamps = stamped(plan, arrays, states)
        assert bits(values) == bits(plan.executable.function(Gate(), RUN, arrays, states))
        assert [(s.node.name, s.iterations) for s in spans] == by_op(plan, arrays, states)
    assert [abs(t) for t in stamps] == list(range(2, len(stamps) + 2))
    assert all(s.begin < s.end for s in spans)
    leaves = [s for s in spans if not s.node.blocks]
    assert all(a.end <= b.begin for a, b in itertools.pairwise(leaves))
    even = [s.iterations for s in spans if s.node.name.endswith("even")]
    assert even == [(0,), (2,)]
    inner = [s.iterations for s in spans if s.node.name.endswith("inner")]
    assert inner == [(1, 0), (2, 0), (2, 1), (3, 0), (3, 1)]
    assert (spans[-1].node.name, spans[-1].end) == ("last", len(stamps) + 1)


def test_what_a_step_has_stamped_before_it_ended_can_be_read():
    fetches, feeds = nested()
    with fs.Session() as sess:
        plan, arrays, states = planned(sess, fetches, feeds)
        clock = itertools.count(1).__next__
        _, spans, stamps = stamped(plan, arrays, states, clock)
    table = plan.variant(Stamps(clock)).code.stamps
    for n in range(len(stamps)):
        found = decoded(table, 1, stamps[:n])
        assert found == spans[: len(found)]
        assert not found or found[-1].end == n + 1 or stamps[n - 1] < 0 or found[-1].end < n + 1
    assert len(decoded(table, 1, stamps[:-1])) == len(spans) - 1


def test_readings_may_come_in_pieces():
    fetches, feeds = nested()
    with fs.Session() as sess:
        plan, arrays, states = planned(sess, fetches, feeds)
        clock = itertools.count(1).__next__
        _, spans, stamps = stamped(plan, arrays, states, clock)
    table = plan.variant(Stamps(clock)).code.stamps
    for a, b in itertools.combinations(range(0, len(stamps) + 1, 3), 2):
        assert decoded(table, 1, stamps, (a, b)) == spans


def test_intervals_are_a_partition_of_the_time():
    fetches, feeds = nested()
    with fs.Session() as sess:
        plan, arrays, states = planned(sess, fetches, feeds)
        clock = itertools.count(1).__next__
        _, spans, stamps = stamped(plan, arrays, states, clock)
    slots = SlotTable(plan.variant(Stamps(clock)).code.stamps)
    reading = slots.read(slots.cursor(1), np.array(stamps))
    own = np.bincount(slots.owner[reading.slots], reading.end - reading.begin)
    assert own.sum() == abs(stamps[-1]) - 1
    for i, node in enumerate(slots.nodes):
        if node.blocks:
            inside = [s for s in spans if s.node in [n for b in node.blocks for n in b.walk()]]
            whole = sum(s.end - s.begin for s in spans if s.node is node)
            leaves = sum(s.end - s.begin for s in inside if not s.node.blocks)
            assert 0 < own[i] <= whole - leaves


def test_functions_of_deep_blocks_are_stamped_too(monkeypatch):
    monkeypatch.setattr(outlining, "MOST_LOOPS", 1)
    fetches, feeds = nested()
    with fs.Session() as sess:
        plan, arrays, states = planned(sess, fetches, feeds)
        values, spans, _ = stamped(plan, arrays, states)
        assert plan.executable.code.outlined
        assert bits(values) == bits(plan.executable.function(Gate(), RUN, arrays, states))
        assert [(s.node.name, s.iterations) for s in spans] == by_op(plan, arrays, states)


def test_plain_code_does_not_change_by_a_character():
    x = fs.placeholder(fs.float32, [2, 2])
    y = fs.cond(fs.reduce_sum(x) > 0.0, lambda: fs.tanh(x) @ x, lambda: x - 1.0) * 2.0
    with fs.Session() as sess:
        plan, *_ = planned(sess, [y], {x: np.eye(2, dtype="f")})
    before = plan.text("code")
    stamps = plan.variant(Stamps(itertools.count(1).__next__)).text
    stops = plan.variant(Breakpoints(frozenset(n.name for n in plan.program.walk()))).text
    assert plan.text("code") == before
    assert plan.variant(PLAIN) is plan.executable
    assert re.sub(r" *stamp.*\n", "", stamps) == before
    assert "locals()" not in before
    assert re.sub(r" *(asks, only, tests =|if asks).*\n", "", stops) == before


def test_a_variant_is_made_once():
    with fs.Session() as sess:
        plan = sess.plan(fs.constant(1.0) + 2.0)
    chosen = Breakpoints(frozenset(["add"]))
    assert plan.variant(chosen) is plan.variant(Breakpoints(frozenset(["add"])))


def test_code_stands_before_chosen_nodes():
    fetches, feeds = nested()
    with fs.Session() as sess:
        plan, arrays, states = planned(sess, fetches, feeds)
        there = bits(plan.executable.function(Gate(), RUN, arrays, states))
        names = [n.name for n in plan.program.walk()]
        chosen = frozenset(n for n in names if n.endswith(("even", "inner", "last")))
        code = plan.variant(Breakpoints(chosen))
        gate = Gate()
        assert bits(code.function(gate, RUN, arrays, states)) == there
        short = [(name.rpartition("/")[2], at) for name, at in gate.seen]
        assert short == [
            ("even", (0,)), ("inner", (1, 0)), ("even", (2,)), ("inner", (2, 0)),
            ("inner", (2, 1)), ("inner", (3, 0)), ("inner", (3, 1)), ("last", ()),
        ]  # fmt: skip
        for leave in range(len(short)):
            gate = Gate(leave)
            assert bits(code.function(gate, RUN, arrays, states)) == there
            assert len(gate.seen) >= leave + 1


def test_nothing_stands_inside_of_an_update_group():
    v, w = fs.Variable([1.0, 2.0], name="v"), fs.Variable([3.0], name="w")
    loss = fs.reduce_sum(v * v) + fs.reduce_sum(w)
    train = fs.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
    with fs.Session() as sess:
        sess.run(fs.global_variables_initializer())
        plan, arrays, states = planned(sess, [train], {})
        writes = [n.name for n in plan.program.nodes if n.op.type == "ApplyMomentum"]
        gate = Gate()
        code = plan.variant(Breakpoints(frozenset(writes[-1:])))
        code.function(gate, RUN, arrays, states)
    first = next(i for i, n in enumerate(plan.program.nodes) if n.writes_state)
    position = [n.name for n in plan.program.nodes].index(gate.seen[0][0])
    assert len(gate.seen) == 1 and position <= first


def test_a_node_of_a_condition_can_be_chosen():
    _, feeds = nested()
    n = list(feeds)[1]
    i = fs.while_loop(lambda i: fs.less(i, n, name="test"), lambda i: i + 1, [0])
    with fs.Session() as sess:
        plan, arrays, states = planned(sess, [i], {n: 3})
        assert "while s" in plan.text("code")
        (name,) = [m.name for m in plan.program.walk() if m.name.endswith("test")]
        gate = Gate()
        code = plan.variant(Breakpoints(frozenset([name])))
        assert code.function(gate, RUN, arrays, states)[0] == 3
    assert [at for _, at in gate.seen] == [(0,), (1,), (2,), (3,)]


@pytest.mark.parametrize("mode", ["op", "tokens"])
def test_what_is_no_code_has_no_variants(mode):
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        plan = sess.plan(fs.constant(1.0) + 2.0)
    with pytest.raises(fs.errors.UnimplementedError, match=f'"{mode}" makes no code .* compiled'):
        plan.variant(Breakpoints(frozenset(["add"])))


@pytest.mark.filterwarnings("ignore::flowscope.errors.ControlFlowWarning")
@pytest.mark.parametrize("seed", [pytest.param(i, marks=pytest.mark.slow) for i in range(30)])
def test_variants_of_random_programs_give_the_same_bits(seed):
    program = RandomProgram(seed)
    found = []
    with program.graph.as_default(), fs.Session(graph=program.graph) as sess:
        feeds = {t: a for (t, _), a in zip(program.feeds, program.fed[0], strict=True)}
        plan, arrays, states = planned(sess, program.fetches, feeds)
        names = [n.name for n in plan.program.walk()]
        variants = [
            (PLAIN, Gate(), RUN),
            (Stamps(itertools.count(1).__next__), Gate(), Stamped(RUN, [])),
            (Breakpoints(frozenset(names[::5])), Gate(), RUN),
            (Breakpoints(frozenset(names[::7])), Gate(leave=1), RUN),
        ]
        for variant, gate, run in variants:
            sess.run(program.initializer)
            code = plan.variant(variant)
            try:
                fed = tuple([np.copy(a)[()] for a in arrays])
                results = bits(code.function(gate, run, fed, states))
            except Exception as e:
                failed = code.failed(e)
                results = failed and (failed.node.name, failed.iterations)
            found.append([results, bits(sess.run(program.variables))])
    assert all(f == found[0] for f in found)
