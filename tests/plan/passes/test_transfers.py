"""Transfers: text in, text out. Node `A1` is on the first device, `B1` on the second one."""

import textwrap

import pytest
from random_programs import Program as RandomProgram
from several_devices import by_chance, by_letter, device, placed, short, with_transfers

import flowscope as fs
from flowscope.plan.passes.transfers import insert_transfers
from flowscope.plan.verify import verify

pytestmark = pytest.mark.usefixtures("graph")


def at_place(fetches, feeds=()):
    """Returns a program behind `place`, in which what is written stands as it is."""
    with fs.Session(config=fs.ConfigProto(mode="op")) as sess:
        return dict(sess.plan(fetches, list(feeds)).stages())["place"]


def check(fetches, feeds, text, rule=by_letter):
    program = with_transfers(at_place(fetches, feeds), rule)
    verify(program)
    assert short(program) == textwrap.dedent(text).strip()


def test_a_program_on_one_cpu_stays_as_it_is():
    x = fs.placeholder(fs.float32, [2], name="x")
    loop = fs.while_loop(lambda i: i < 3, lambda i: i + 1, [0])
    program = at_place([fs.tanh(x), loop], [x])
    assert insert_transfers(program) is program
    elsewhere = placed(program, lambda node: device(3))
    assert insert_transfers(elsewhere) is elsewhere


def test_a_value_crosses_once_directly_before_its_first_use():
    x = fs.placeholder(fs.float32, [2], name="x")
    a = fs.tanh(x, name="A1")
    b = fs.exp(x, name="B1")
    c = fs.add(a, b, name="B2")
    check([fs.multiply(c, a, name="B3"), fs.square(c, name="A2"), a], [x], """
        A1 = Tanh(feed0) A
        B1 = Exp(feed0) B
        A1/to_CPU:1 = Transfer(A1) B
        B2 = Add(A1/to_CPU:1, B1) B
        B3 = Mul(B2, A1/to_CPU:1) B
        B2/to_CPU:0 = Transfer(B2) A
        A2 = Square(B2/to_CPU:0) A
    """)  # fmt: skip


def test_what_only_a_branch_uses_crosses_in_it_and_what_more_use_before_it():
    x = fs.placeholder(fs.float32, [], name="x")
    a, b = fs.tanh(x, name="A1"), fs.exp(x, name="A2")
    found = fs.cond(
        fs.greater(x, 0.0, name="B3"),
        lambda: fs.multiply(a, b, name="B1"),
        lambda: fs.square(a, name="B2"),
        name="A4",
    )
    check([found, b], [x], """
        A1 = Tanh(feed0) A
        A2 = Exp(feed0) A
        B3 = Greater(feed0, B3/y) B
        B3/to_CPU:0 = Transfer(B3) A
        A1/to_CPU:1 = Transfer(A1) B
        A4/Cond = Cond(B3/to_CPU:0) A
          then():
            A2/to_CPU:1 = Transfer(A2) B
            A4/then/B1 = Mul(A1/to_CPU:1, A2/to_CPU:1) B
            -> A4/then/B1
          else():
            A4/else/B2 = Square(A1/to_CPU:1) B
            -> A4/else/B2
    """)  # fmt: skip


def test_a_result_lies_where_a_branch_makes_it_then_before_else():
    x = fs.placeholder(fs.float32, [], name="x")
    a = fs.tanh(x, name="A1")
    both = fs.cond(
        x > 0.0,
        lambda: (fs.square(a, name="B1"), fs.identity(a)),
        lambda: (fs.exp(a, name="C1"), a * 2.0),
        name="A2",
    )
    branches = [*both, fs.cond(x > 1.0, lambda: fs.sin(a, name="B1"), lambda: 1.0 * x, name="A5")]
    check([fs.add_n(branches, name="B9"), a], [x], """
        A1 = Tanh(feed0) A
        Greater = Greater(feed0, Greater/y) A
        A1/to_CPU:1 = Transfer(A1) B
        A2/Cond = Cond(Greater) A
          then():
            A2/then/B1 = Square(A1/to_CPU:1) B
            A2/then/Identity = Identity(A1) A
            -> A2/then/B1, A2/then/Identity
          else():
            A1/to_CPU:2 = Transfer(A1) C
            A2/else/C1 = Exp(A1/to_CPU:2) C
            A2/else/mul = Mul(A1, A2/else/mul/y) A
            A2/else/C1/to_CPU:1 = Transfer(A2/else/C1) B
            -> A2/else/C1/to_CPU:1, A2/else/mul
        Greater_1 = Greater(feed0, Greater_1/y) A
        A5/Cond = Cond(Greater_1) A
          then():
            A5/then/B1 = Sin(A1/to_CPU:1) B
            -> A5/then/B1
          else():
            A5/else/mul = Mul(A5/else/mul/x, feed0) A
            A5/else/mul/to_CPU:1 = Transfer(A5/else/mul) B
            -> A5/else/mul/to_CPU:1
        A2/Cond:1/to_CPU:1 = Transfer(A2/Cond:1) B
        B9 = AddN(A2/Cond:0, A2/Cond:1/to_CPU:1, A5/Cond) B
    """)  # fmt: skip


def test_an_invariant_crosses_before_the_outermost_loop_and_a_variable_in_every_iteration():
    x = fs.placeholder(fs.float32, [], name="x")
    a = fs.tanh(x, name="A1")

    def inner(j, v):
        return fs.add(j, 1, name="A5"), fs.multiply(v, a, name="B5")

    def outer(i, v):
        _, w = fs.while_loop(lambda j, v: fs.less(j, i, name="A4"), inner, [0, v], name="A3")
        return fs.add(i, 1, name="A6"), fs.add(w, x, name="B6")

    _, y = fs.while_loop(lambda i, v: fs.less(i, 3, name="A7"), outer, [0, a], name="A2")
    check([fs.exp(y, name="A8")], [x], """
        A1 = Tanh(feed0) A
        A1/to_CPU:1 = Transfer(A1) B
        A2/Loop = Loop(A2/Const, A1/to_CPU:1) A
          cond(i, v):
            A2/cond/A7 = Less(i, A2/cond/A7/y) A
            -> A2/cond/A7
          body(i, v):
            A2/body/A3/Loop = Loop(A2/body/A3/Const, v) A
              cond(j, v):
                A2/body/A3/cond/A4 = Less(j, i) A
                -> A2/body/A3/cond/A4
              body(j, v):
                A2/body/A3/body/A5 = Add(j, A2/body/A3/body/A5/y) A
                A2/body/A3/body/B5 = Mul(v, A1/to_CPU:1) B
                -> A2/body/A3/body/A5, A2/body/A3/body/B5
            A2/body/A6 = Add(i, A2/body/A6/y) A
            A2/body/B6 = Add(A2/body/A3/Loop:1, feed0) B
            -> A2/body/A6, A2/body/B6
        A2/Loop:1/to_CPU:0 = Transfer(A2/Loop:1) A
        A8 = Exp(A2/Loop:1/to_CPU:0) A
    """)  # fmt: skip


def test_variables_that_change_places_or_stay_lie_where_they_start():
    x = fs.placeholder(fs.float32, [], name="x")
    starts = [0, fs.sin(x, name="B1"), fs.cos(x, name="C1"), fs.tanh(x, name="C2")]
    found = fs.while_loop(
        lambda i, a, b, c: fs.less(i, 2, name="A1"),
        lambda i, a, b, c: (fs.add(i, 1, name="A2"), b, a, c),
        starts,
        name="A3",
    )
    check([fs.add_n(found[1:], name="C3")], [x], """
        B1 = Sin(feed0) B
        C1 = Cos(feed0) C
        C2 = Tanh(feed0) C
        C1/to_CPU:1 = Transfer(C1) B
        A3/Loop = Loop(A3/Const, B1, C1/to_CPU:1, C2) A
          cond(i, a, b, c):
            A3/cond/A1 = Less(i, A3/cond/A1/y) A
            -> A3/cond/A1
          body(i, a, b, c):
            A3/body/A2 = Add(i, A3/body/A2/y) A
            -> A3/body/A2, b, a, c
        A3/Loop:1/to_CPU:2 = Transfer(A3/Loop:1) C
        A3/Loop:2/to_CPU:2 = Transfer(A3/Loop:2) C
        C3 = AddN(A3/Loop:1/to_CPU:2, A3/Loop:2/to_CPU:2, A3/Loop:3) C
    """)  # fmt: skip


def test_a_condition_comes_to_the_loop():
    x = fs.placeholder(fs.float32, [], name="x")
    found = fs.while_loop(
        lambda v: fs.less(v, 9.0, name="B1"), lambda v: fs.add(v, x, name="C1"), [x], name="A1"
    )
    check([found], [x], """
        A1/Loop = Loop(feed0) A
          cond(v):
            v/to_CPU:1 = Transfer(v) B
            A1/cond/B1 = Less(v/to_CPU:1, A1/cond/B1/y) B
            A1/cond/B1/to_CPU:0 = Transfer(A1/cond/B1) A
            -> A1/cond/B1/to_CPU:0
          body(v):
            A1/body/C1 = Add(v, feed0) C
            -> A1/body/C1
    """)  # fmt: skip


def test_elements_of_lists_cross_and_lists_do_not():
    x = fs.placeholder(fs.float32, [], name="x")
    _, y = fs.while_loop(
        lambda i, v: fs.less(i, 3, name="A1"),
        lambda i, v: (fs.add(i, 1, name="A2"), fs.sin(v, name="B1")),
        [0, x],
        name="A3",
    )
    (g,) = fs.gradients(y, x)
    text = short(with_transfers(at_place([g], [x]), by_letter))
    loop, back = (
        next(n for n in text.splitlines() if n.startswith(name))
        for name in ("A3/Loop", "gradients/A3/Loop_grad")
    )
    assert "Transfer(A3/Loop" not in text
    assert "A3/Loop:" in back and loop


def test_a_list_on_two_devices_is_an_error_at_the_users_line():
    x = fs.placeholder(fs.float32, [], name="x")
    found = fs.TensorArray(fs.float32, 3, name="A1").write(0, x, name="A2")
    y = found.write(1, fs.sin(x))
    program = at_place([y.stack(name="B1")], [x])
    lists = {n.name: n.device for n in placed(program, by_letter).nodes}
    assert len(set(lists.values())) == 2
    with pytest.raises(fs.errors.InvalidArgumentError, match="a list stays on one device") as e:
        with_transfers(program, by_letter)
    assert "test_transfers.py" in str(e.value)


def test_an_accelerator_is_given_what_its_memory_or_the_hosts_shall_have():
    x = fs.placeholder(fs.float32, [None, 2], name="x")
    a = fs.tanh(x, name="A1")
    b = fs.reshape(fs.exp(a, name="B1"), fs.shape(a, name="A2"), name="B2")
    c = fs.cond(fs.reduce_sum(b, name="B3") > 0.0, lambda: fs.sin(b, name="B4"), lambda: x * 2.0)
    program = at_place([c], [x])
    gpu = device(0, "GPU")
    on = with_transfers(program, lambda n: gpu if by_letter(n) == device(1) else device(0))
    verify(on)
    found = {n.name: (n.op.send_device, n.op.to_host) for n in on.walk() if n.op.type == "Transfer"}
    assert found["A1/to_GPU:0"] == (device(0), False)
    assert "A2/to_GPU:0/host" in found or "A2/to_GPU:0" in found
    copies = [n for n in on.walk() if n.op.type == "Const" and n.device == gpu]
    assert all("for this memory" in n.reason for n in copies if not n.name.startswith("B"))


@pytest.mark.filterwarnings("ignore::flowscope.errors.ControlFlowWarning")
@pytest.mark.parametrize(
    "seed", [*range(10), *[pytest.param(i, marks=pytest.mark.slow) for i in range(10, 60)]]
)
def test_values_of_random_programs_are_where_they_are_used(seed):
    program = RandomProgram(seed)
    with program.graph.as_default():
        given = at_place(program.fetches, [t for t, _ in program.feeds])
    found = with_transfers(given, by_chance(given, seed))
    verify(found)
    assert insert_transfers(found) is found
    transfers = [n for n in found.walk() if n.op.type == "Transfer"]
    assert len({n.op.key for n in transfers}) == len(transfers) == len({n.name for n in transfers})
