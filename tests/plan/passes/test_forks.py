"""Sections of random programs: what may be computed before its turn, and where it pays."""

import numpy as np
import pytest
from random_programs import Program as RandomProgram

import flowscope as fs
from flowscope.graph.constant import Const
from flowscope.plan.passes.forks import WORTH_S, find_forks

SEEDS = [*range(10), *[pytest.param(i, marks=pytest.mark.slow) for i in range(10, 100)]]


def blocks(program):
    yield program
    for node in program.nodes:
        for block in node.blocks:
            yield from blocks(block)


def check(program, forks):
    """Asserts that sections are runs of nodes without effects that have their inputs by then."""
    at = {v: i for i, n in enumerate(program.nodes) for v in n.outputs}
    ends = [0]
    for fork in forks:
        assert fork.ready < fork.start < fork.end
        assert fork.start >= ends[-1]
        ends.append(fork.end)
        nodes = [n for n in program.nodes[fork.start : fork.end] if not isinstance(n.op, Const)]
        own = {v for n in nodes for v in n.outputs}
        for node in nodes:
            assert not node.has_effect
            assert not node.op.is_random
            assert not node.blocks
            for v in node.inputs:
                is_constant = v.node is not None and isinstance(v.node.op, Const)
                assert v in own or is_constant or at.get(v, -1) < fork.ready
        if any(n.reads_state for n in nodes):
            last = max(i for i, n in enumerate(program.nodes) if n in nodes and n.reads_state)
            assert not any(n.writes_state for n in program.nodes[fork.ready : last])


@pytest.mark.filterwarnings("ignore::flowscope.errors.ControlFlowWarning")
@pytest.mark.parametrize("seed", SEEDS)
def test_sections_have_their_inputs_and_no_effects(seed):
    program = RandomProgram(seed)
    with program.graph.as_default(), fs.Session(graph=program.graph) as sess:
        plan = sess.plan(program.fetches, [t for t, _ in program.feeds])
    for block in blocks(plan.program):
        check(block, find_forks(block, lambda n: 1.0))


def program_of(build):
    x = fs.placeholder(fs.float32, [8, 8], name="x")
    y = fs.placeholder(fs.float32, [8, 8], name="y")
    with fs.Session() as sess:
        return sess.plan(build(x, y), [x, y]).program


def branch(x):
    return fs.tanh(fs.matmul(fs.exp(x), x))


def costs(**seconds):
    return lambda node: seconds.get(node.op.type, 1e-6)


def test_one_of_two_branches_is_a_section():
    program = program_of(lambda x, y: branch(x) + branch(y))
    (fork,) = find_forks(program, costs(MatMul=1e-3))
    assert fork.ready == 0
    assert [n.op.type for n in program.nodes[fork.start : fork.end]] == ["Exp", "MatMul", "Tanh"]


def test_large_constants_are_no_work_to_overlap_with():
    def build(x, y):
        w = fs.constant(np.ones((8, 8), "f"))
        return branch(x @ w) + branch(y @ w)

    program = program_of(build)
    (fork,) = find_forks(program, costs(MatMul=1e-3, Const=1e-3))
    inside = [n.op.type for n in program.nodes[fork.start : fork.end] if n.op.type != "Const"]
    assert inside == ["MatMul", "Exp", "MatMul", "Tanh"]


def test_a_chain_has_no_section():
    assert find_forks(program_of(lambda x, y: branch(branch(x))), costs(MatMul=1.0)) == ()


def test_what_saves_less_than_a_few_hand_overs_is_left_alone():
    program = program_of(lambda x, y: branch(x) + branch(y))
    assert find_forks(program, costs(MatMul=WORTH_S / 2)) == ()
    assert find_forks(program, costs(MatMul=WORTH_S)) != ()


def test_one_large_branch_beside_small_ones_is_left_alone():
    program = program_of(lambda x, y: branch(x) + fs.tanh(y) + fs.exp(y))
    assert find_forks(program, costs(MatMul=1.0)) == ()


def test_work_counts_once():
    program = program_of(lambda x, y: fs.matmul(x, y) + fs.matmul(y, x) + fs.matmul(x, x))
    forks = find_forks(program, costs(MatMul=1e-3))
    assert len(forks) == 1  # there is one other core to fill


def test_the_gradients_of_two_towers_overlap():
    def build(x, y):
        ys = [branch(branch(v)) for v in (x, y)]
        return fs.gradients(ys[0] + ys[1], [x, y])

    program = program_of(build)
    forks = find_forks(program, costs(MatMul=1e-3))
    products = [n for f in forks for n in program.nodes[f.start : f.end] if n.op.type == "MatMul"]
    assert len(products) >= 3


def test_a_read_moves_over_no_write():
    v = fs.Variable(np.ones((8, 8), np.float32), use_resource=True)
    x = fs.placeholder(fs.float32, [8, 8])
    a = fs.matmul(x, x)
    with fs.control_dependencies([a]):
        write = fs.assign(v, a)
    with fs.control_dependencies([write]):
        b = fs.matmul(fs.identity(v.read_value()), x)
    with fs.Session() as sess:
        program = sess.plan([a, b], [x]).program
    for fork in find_forks(program, costs(MatMul=1e-3)):
        assert not any(n.reads_state for n in program.nodes[fork.start : fork.end])


def test_what_an_accelerator_computes_is_no_section():
    x = fs.placeholder(fs.float32, [8, 8], name="x")
    with fs.device("/gpu:0"):
        y = branch(x) + branch(x + 1.0)
    with fs.Session(config=fs.ConfigProto(fake_devices={"GPU": 1})) as sess:
        program = sess.plan(y, [x]).program
    assert any(n.device.endswith("GPU:0") for n in program.nodes)
    assert find_forks(program, lambda n: 1.0) == ()
