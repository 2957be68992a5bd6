"""A plan after moves is made of the one before, and is the plan that would be made anew."""

import random

import numpy as np
import pytest
from random_programs import Program as RandomProgram

import flowscope as fs

DEVICES = 3
MODES = ["compiled", "op", "tokens"]


def config(mode="compiled"):
    return fs.ConfigProto(mode=mode, device_count={"CPU": DEVICES})


def told(plan):
    """Returns all that a plan says of itself."""
    stages = [(name, program.text()) for name, program in plan.stages()]
    placed = [(n.name, n.device, n.reason, n.requested) for n in plan.program.walk()]
    return plan.text("program"), plan.text("code"), stages, placed, plan.text("partition")


def is_made_of(plan, before):
    """Whether the passes before the placement did not run again."""
    return plan.operations is before.operations


@pytest.fixture
def session(graph):
    with fs.Session(graph=graph, config=config()) as found:
        yield found


@pytest.mark.filterwarnings("ignore::flowscope.errors.ControlFlowWarning")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "seed", [0, 1, *[pytest.param(i, marks=pytest.mark.slow) for i in range(2, 6)]]
)
def test_plans_after_random_moves_are_those_that_are_made_anew(seed, mode):
    rng, program = random.Random(seed), RandomProgram(seed)
    feeds = [t for t, _ in program.feeds]
    with fs.Session(graph=program.graph, config=config(mode)) as session:
        for _ in range(6):
            session.plan(program.fetches, feeds)
            try:
                session.move(
                    rng.choice(program.graph.get_operations()), f"/cpu:{rng.randrange(DEVICES)}"
                )
            except fs.errors.InvalidArgumentError:
                continue
            plan = session.plan(program.fetches, feeds)
            with fs.Session(graph=program.graph, config=config(mode)) as anew:
                assert told(plan) == told(anew.plan(program.fetches, feeds))


def chain(length=12):
    x = fs.placeholder(fs.float32, [2000], name="x")
    values = [x]
    for i in range(length):
        with fs.device(f"/cpu:{i % DEVICES}"):
            values.append(fs.tanh(values[-1] + values[i // 2], name=f"y{i}"))
    return x, values[-1]


def test_a_moved_chain_is_planned_from_the_plan_before_and_gives_the_same_bits(session):
    x, y = chain()
    fed = {x: np.linspace(-2, 2, 2000, dtype=np.float32)}
    before, first = session.plan(y, [x]), session.run(y, fed)
    rng = random.Random(1)
    for _ in range(5):
        session.move(f"y{rng.randrange(12)}", f"/cpu:{rng.randrange(DEVICES)}")
        plan = session.plan(y, [x])
        assert is_made_of(plan, before)
        assert plan.text("code") == before.text("code")  # devices of one host are in no code
        np.testing.assert_array_equal(session.run(y, fed), first)
        with fs.Session(graph=session.graph, config=config()) as anew:
            assert told(plan) == told(anew.plan(y, [x]))


def test_code_that_is_the_same_has_its_own_lines_and_names(session):
    x, y = chain()
    before = session.plan(y, [x])
    session.move("y7", "/cpu:2")
    plan = session.plan(y, [x])
    code, old = plan.executable.code, before.executable.code
    assert code.source == old.source and code.filename != old.filename
    assert code.function.__code__.co_filename == code.filename
    with pytest.raises(Exception) as caught:
        code.function(session.gate, None, (np.zeros(3, object),), ())
    failed = plan.executable.failed(caught.value)
    assert failed.node in set(plan.program.nodes) and before.executable.failed(caught.value) is None


def test_operations_that_become_equal_are_merged_and_others_are_parted(session):
    x = fs.placeholder(fs.float32, [4], name="x")
    with fs.device("/cpu:0"):
        a = fs.tanh(x, name="a")
    with fs.device("/cpu:1"):
        b = fs.tanh(x, name="b")
        y = fs.multiply(a, b, name="y")
    for device, count in (("/cpu:1", 1), ("/cpu:2", 2)):
        before = session.plan(y, [x])
        session.move(a.op, device)
        plan = session.plan(y, [x])
        assert not is_made_of(plan, before)
        assert sum(n.op.type == "Tanh" for n in plan.program.nodes) == count


def test_a_plan_is_made_anew_where_more_has_changed_than_devices(session):
    x, y = chain(4)
    before = session.plan(y, [x])
    session.move("y1", "/cpu:2")
    session.graph.edited(session.graph.get_operation_by_name("y2"))
    assert not is_made_of(session.plan(y, [x]), before)


def test_a_move_of_another_session_makes_a_plan_anew(session):
    x, y = chain(4)
    before = session.plan(y, [x])
    with fs.Session(graph=session.graph, config=config()) as other:
        other.plan(y, [x])
        other.move("y1", "/cpu:2")
    plan = session.plan(y, [x])
    assert not is_made_of(plan, before)
    assert plan.placed.nodes[-1].device.endswith("CPU:0")


def test_values_that_share_a_variable_are_freed_at_the_last_use_of_both(session):
    x = fs.placeholder(fs.float32, [2000], name="x")
    with fs.device("/cpu:0"):
        a = fs.tanh(x, name="a")
    with fs.device("/cpu:1"):
        b = fs.exp(a, name="b")
    with fs.device("/cpu:0"):
        c = fs.sin(a, name="c")
        y = fs.add(b, c, name="y")
    value = np.linspace(0, 1, 2000, dtype=np.float32)
    found = session.run([y, a], {x: value})
    t = np.tanh(value)
    np.testing.assert_array_equal(found[0], np.exp(t) + np.sin(t))
    np.testing.assert_array_equal(found[1], t)


def test_moving_a_parameter_is_refused(session):
    found = []
    fs.while_loop(lambda i: i < 3, lambda i: found.append(i) or i + 1, [0])
    with pytest.raises(fs.errors.InvalidArgumentError, match="a parameter of a body"):
        session.move(found[0].op, "/cpu:1")
