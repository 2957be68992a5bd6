"""Partitions: text in, text out. Node `A1` is on the first device, `B1` on the second one."""

import textwrap

import pytest
from several_devices import by_letter, device, short, with_transfers

import flowscope as fs
from flowscope.graph.values.dtypes import variant
from flowscope.plan.passes.partition import project
from flowscope.plan.verify import verify

pytestmark = pytest.mark.usefixtures("graph")


def parts(fetches, feeds=(), rule=by_letter):
    """The parts of a written program, by the letters of the devices that run them."""
    with fs.Session(config=fs.ConfigProto(mode="op")) as sess:
        given = dict(sess.plan(fetches, list(feeds)).stages())["place"]
    found = project(with_transfers(given, rule))
    for one in found:
        verify(one.program)
    return {"ABCDEFGH"[int(one.device[-1])]: one for one in found}


def check(found, **texts):
    assert {k: short(p.program) for k, p in found.items()} == {
        k: textwrap.dedent(text).strip() for k, text in texts.items()
    }


def test_a_transfer_has_two_ends_and_a_control_input_becomes_an_empty_message():
    x = fs.placeholder(fs.float32, [2], name="x")
    a = fs.tanh(x, name="A1")
    b = fs.multiply(a, fs.exp(a, name="B1"), name="B2")
    with fs.control_dependencies([b.op]):
        c = fs.square(x, name="A2")
        d = fs.sin(x, name="A3")
    found = parts([b, fs.add(c, d, name="A4"), x], [x])
    assert {k: p.fetched for k, p in found.items()} == {"A": (1, 2), "B": (0,)}
    check(
        found,
        A="""
            A1 = Tanh(feed0) A
            A1/to_CPU:1 = Send(A1) A
            ^B2/from_CPU:1 = Recv() A
            A2 = Square(feed0) A after ^B2/from_CPU:1
            A3 = Sin(feed0) A after ^B2/from_CPU:1
            A4 = Add(A2, A3) A
        """,
        B="""
            A1/from_CPU:0 = Recv() B
            B1 = Exp(A1/from_CPU:0) B
            B2 = Mul(A1/from_CPU:0, B1) B
            ^B2/to_CPU:0 = Send(^B2/done) B after B2
        """,
    )


def test_consumers_on_one_device_share_one_recv():
    x = fs.placeholder(fs.float32, [2], name="x")
    a = fs.tanh(x, name="A1")
    b = fs.exp(x, name="B1")
    both = [fs.add(a, b, name="B2"), fs.multiply(a, 2.0, name="B3")]
    found = parts([*both, fs.sin(a, name="C1")], [x])
    check(
        found,
        A="""
            A1 = Tanh(feed0) A
            A1/to_CPU:1 = Send(A1) A
            A1/to_CPU:2 = Send(A1) A
        """,
        B="""
            B1 = Exp(feed0) B
            A1/from_CPU:0 = Recv() B
            B2 = Add(A1/from_CPU:0, B1) B
            B3 = Mul(A1/from_CPU:0, B3/y) B
        """,
        C="""
            A1/from_CPU:0 = Recv() C
            C1 = Sin(A1/from_CPU:0) C
        """,
    )


def test_who_takes_part_in_a_branch_is_told_its_predicate():
    x = fs.placeholder(fs.float32, [], name="x")
    a = fs.tanh(x, name="A1")
    y = fs.cond(
        fs.greater(a, 0.0, name="A2"),
        lambda: fs.exp(a, name="B1"),
        lambda: fs.sin(a, name="C1"),
        name="A3",
    )
    found = parts([fs.square(y, name="A4")], [x])
    check(
        found,
        A="""
            A1 = Tanh(feed0) A
            A2 = Greater(A1, A2/y) A
            A2/told/to_CPU:1 = Send(A2) A
            A2/told/to_CPU:2 = Send(A2) A
            A3/Cond = Cond(A2) A
              then():
                A1/to_CPU:1 = Send(A1) A
                -> nothing
              else():
                A1/to_CPU:2 = Send(A1) A
                -> nothing
            A3/Cond/from_CPU:1 = Recv() A
            A4 = Square(A3/Cond/from_CPU:1) A
        """,
        B="""
            A2/told/from_CPU:0 = Recv() B
            A3/Cond = Cond(A2/told/from_CPU:0) B
              then():
                A1/from_CPU:0 = Recv() B
                A3/then/B1 = Exp(A1/from_CPU:0) B
                -> A3/then/B1
              else():
                A3/else/C1/from_CPU:2 = Recv() B
                -> A3/else/C1/from_CPU:2
            A3/Cond/to_CPU:0 = Send(A3/Cond) B
        """,
        C="""
            A2/told/from_CPU:0 = Recv() C
            A3/Cond = Cond(A2/told/from_CPU:0) C
              then():
                -> nothing
              else():
                A1/from_CPU:0 = Recv() C
                A3/else/C1 = Sin(A1/from_CPU:0) C
                A3/else/C1/to_CPU:1 = Send(A3/else/C1) C
                -> nothing
        """,
    )


def test_who_takes_part_in_a_loop_is_told_the_condition_nested_too():
    x = fs.placeholder(fs.float32, [], name="x")

    def inner(j, u, v):
        return fs.add(j, 1, name="A2"), fs.multiply(u, v, name="B1"), v

    def outer(i, v):
        less = lambda j, u, v: fs.less(u, 9.0, name="A1")  # noqa: E731
        w = fs.while_loop(less, inner, [0, v, v], name="A3")[1]
        return fs.add(i, 1, name="A4"), fs.add(w, 1.0, name="C1")

    less = lambda i, v: fs.less(v, 5.0, name="A5")  # noqa: E731
    _, y = fs.while_loop(less, outer, [0, x], name="A6")
    found = parts([y], [x])
    check(
        found,
        A="""
            A6/Loop = Loop() A
              cond():
                v/from_CPU:2 = Recv() A
                A6/cond/A5 = Less(v/from_CPU:2, A6/cond/A5/y) A
                A6/cond/A5/told/to_CPU:2 = Send(A6/cond/A5) A
                A6/cond/A5/told/to_CPU:1 = Send(A6/cond/A5) A
                -> A6/cond/A5
              body():
                A6/body/A3/Loop = Loop() A
                  cond():
                    u/from_CPU:1 = Recv() A
                    A6/body/A3/cond/A1 = Less(u/from_CPU:1, A6/body/A3/cond/A1/y) A
                    A6/body/A3/cond/A1/told/to_CPU:1 = Send(A6/body/A3/cond/A1) A
                    A6/body/A3/cond/A1/told/to_CPU:2 = Send(A6/body/A3/cond/A1) A
                    -> A6/body/A3/cond/A1
                  body():
                    -> nothing
                -> nothing
        """,
        C="""
            A6/Loop = Loop(feed0) C
              cond(v):
                v/to_CPU:0 = Send(v) C
                A6/cond/A5/told/from_CPU:0 = Recv() C
                -> A6/cond/A5/told/from_CPU:0
              body(v):
                v_1/to_CPU:1 = Send(v) C
                A6/body/A3/Loop = Loop(v) C
                  cond(v):
                    A6/body/A3/cond/A1/told/from_CPU:0 = Recv() C
                    -> A6/body/A3/cond/A1/told/from_CPU:0
                  body(v):
                    v_2/to_CPU:1 = Send(v) C
                    -> v
                A6/body/A3/Loop:0/from_CPU:1 = Recv() C
                A6/body/C1 = Add(A6/body/A3/Loop:0/from_CPU:1, A6/body/C1/y) C
                -> A6/body/C1
        """,
        B="""
            A6/Loop = Loop() B
              cond():
                A6/cond/A5/told/from_CPU:0 = Recv() B
                -> A6/cond/A5/told/from_CPU:0
              body():
                v_1/from_CPU:2 = Recv() B
                A6/body/A3/Loop = Loop(v_1/from_CPU:2) B
                  cond(u):
                    u/to_CPU:0 = Send(u) B
                    A6/body/A3/cond/A1/told/from_CPU:0 = Recv() B
                    -> A6/body/A3/cond/A1/told/from_CPU:0
                  body(u):
                    v_2/from_CPU:2 = Recv() B
                    A6/body/A3/body/B1 = Mul(u, v_2/from_CPU:2) B
                    -> A6/body/A3/body/B1
                A6/body/A3/Loop:0/to_CPU:2 = Send(A6/body/A3/Loop:0) B
                -> nothing
        """,
    )


def test_a_device_with_work_in_an_outer_loop_alone_has_no_inner_one():
    x = fs.placeholder(fs.float32, [], name="x")

    def outer(i, v):
        less = lambda u: fs.less(u, 9.0, name="B1")  # noqa: E731
        w = fs.while_loop(less, lambda u: fs.multiply(u, v, name="B2"), [v], name="B3")
        return fs.add(i, 1, name="C1"), fs.add(w, 1.0, name="B4")

    less = lambda i, v: fs.less(v, 5.0, name="B5")  # noqa: E731
    found = parts(fs.while_loop(less, outer, [0, x], name="B6"), [x])
    check(
        found,
        B="""
            B6/Loop = Loop(feed0) B
              cond(v):
                B6/cond/B5 = Less(v, B6/cond/B5/y) B
                B6/cond/B5/told/to_CPU:2 = Send(B6/cond/B5) B
                -> B6/cond/B5
              body(v):
                B6/body/B3/Loop = Loop(v) B
                  cond(u):
                    B6/body/B3/cond/B1 = Less(u, B6/body/B3/cond/B1/y) B
                    -> B6/body/B3/cond/B1
                  body(u):
                    B6/body/B3/body/B2 = Mul(u, v) B
                    -> B6/body/B3/body/B2
                B6/body/B4 = Add(B6/body/B3/Loop:0, B6/body/B4/y) B
                -> B6/body/B4
        """,
        C="""
            B6/Loop = Loop(B6/Const) C
              cond(i):
                B6/cond/B5/told/from_CPU:1 = Recv() C
                -> B6/cond/B5/told/from_CPU:1
              body(i):
                B6/body/C1 = Add(i, B6/body/C1/y) C
                -> B6/body/C1
        """,
    )


def test_a_trip_count_that_is_known_before_the_loop_is_told_once():
    x = fs.placeholder(fs.float32, [], name="x")
    n = fs.identity(fs.placeholder_with_default(3, [], name="n"), name="A1")
    _, y = fs.while_loop(
        lambda i, v: fs.less(i, n, name="A2"),
        lambda i, v: (fs.add(i, 1, name="A3"), fs.sin(v, name="B1")),
        [0, x],
        name="A4",
    )
    found = parts([y], [x])
    check(
        found,
        A="""
            n = PlaceholderWithDefault(n/x) A
            A1 = Identity(n) A
            A4/Loop/trips = TripCount(A4/Const, A1) A
            A4/Loop/trips/told/to_CPU:1 = Send(A4/Loop/trips) A
            A4/Loop = Loop(A4/Const) A
              cond(i):
                A4/cond/A2 = Less(i, A1) A
                -> A4/cond/A2
              body(i):
                A4/body/A3 = Add(i, A4/body/A3/y) A
                -> A4/body/A3
        """,
        B="""
            A4/Loop/trips/told/from_CPU:0 = Recv() B
            A4/Loop = Loop(A4/Loop/trips/told/from_CPU:0, feed0) B
              body(v):
                A4/body/B1 = Sin(v) B
                -> A4/body/B1
        """,
    )


def test_an_invariant_is_sent_once_before_the_loops():
    x = fs.placeholder(fs.float32, [], name="x")
    a = fs.tanh(x, name="B1")

    def outer(v):
        less = lambda u: fs.less(u, 9.0, name="A1")  # noqa: E731
        return fs.while_loop(less, lambda u: fs.multiply(u, a, name="A2"), [v], name="A3")

    found = parts(fs.while_loop(lambda v: fs.less(v, 5.0, name="A4"), outer, [x], name="A5"), [x])
    check(
        found,
        B="""
            B1 = Tanh(feed0) B
            B1/to_CPU:0 = Send(B1) B
        """,
        A="""
            B1/from_CPU:1 = Recv() A
            A5/Loop = Loop(feed0) A
              cond(v):
                A5/cond/A4 = Less(v, A5/cond/A4/y) A
                -> A5/cond/A4
              body(v):
                A5/body/A3/Loop = Loop(v) A
                  cond(u):
                    A5/body/A3/cond/A1 = Less(u, A5/body/A3/cond/A1/y) A
                    -> A5/body/A3/cond/A1
                  body(u):
                    A5/body/A3/body/A2 = Mul(u, B1/from_CPU:1) A
                    -> A5/body/A3/body/A2
                -> A5/body/A3/Loop:0
        """,
    )


def test_a_list_stays_with_what_it_keeps_and_its_elements_are_sent():
    x = fs.placeholder(fs.float32, [], name="x")

    def body(i, v):
        return fs.add(i, 1, name="A2"), fs.sin(v, name="B1")

    less = lambda i, v: fs.less(i, 3, name="A1")  # noqa: E731
    _, y = fs.while_loop(less, body, [0, x], name="A3")
    g = fs.gradients(y, x)
    found = parts(g, [x], lambda n: device(2) if "_grad" in n.name else by_letter(n))
    texts = {k: short(p.program).splitlines() for k, p in found.items()}
    assert texts["B"][-4:] == [
        "gradients/A3/Loop_grad/while_grad = Loop(A3/Loop:1, A3/Loop:2) B",
        "  body(v):",
        "    v/to_CPU:2 = Send(v) B",
        "    -> nothing",
    ]
    assert "    v/from_CPU:1 = Recv() C" in texts["C"]
    nodes = [n for p in found.values() for n in p.program.walk()]
    ends = [n for n in nodes if n.op.type in ("Send", "Recv")]
    assert variant not in {v.spec.dtype for n in ends for v in (*n.inputs, *n.outputs)}


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_an_update_group_on_two_devices_is_whole_and_each_keeps_its_own_values(mode):
    x = fs.placeholder(fs.float32, None, name="x")
    with fs.device("/cpu:0"):
        a = fs.Variable([1.0, 2.0], name="A")
    with fs.device("/cpu:1"):
        b = fs.Variable([3.0, 4.0], name="B")
    group = fs.group(a.assign_add(x), b.assign_add(x * fs.ones([2])), name="both")
    config = fs.ConfigProto(mode=mode, device_count={"CPU": 2})
    with fs.Session(config=config) as sess:
        sess.run(fs.global_variables_initializer())
        sess.run(group, {x: [1.0, 1.0]})
        for wrong in ([1.0, 2.0, 3.0], [[1.0], [2.0]]):
            with pytest.raises(fs.errors.InvalidArgumentError):
                sess.run(group, {x: wrong})
        assert sess.run([a, b])[0].tolist() == [2, 3]
        assert sess.run([a, b])[1].tolist() == [4, 5]
        plan = sess.plan(group, [x])
    begins = [n for n in plan.program.walk() if n.op.type == "BeginUpdate"]
    checks = [n for n in plan.program.walk() if n.op.type == "CheckUpdate"]
    assert {n.device for n in begins or checks} == {device(0), device(1)}
    for part in plan.partitions:
        verify(part.program)
        assert {h.device for n in part.program.walk() for h in n.handles} == {part.device}
        types = [n.op.type for n in part.program.nodes]
        write = types.index("AssignAddVariableOp")
        assert {"Recv", "BeginUpdate", "CheckUpdate"} & set(types[:write])
