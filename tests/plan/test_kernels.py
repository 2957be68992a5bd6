"""One contract runs a node alone, whoever asks: one value per output, draws by iteration."""

import numpy as np
import pytest

import flowscope as fs
from flowscope.plan.ir.invocation import Invoker
from flowscope.plan.ir.modules import Modules

pytestmark = pytest.mark.usefixtures("graph")


def node_of(fetch, kind):
    """Returns the first node of a kind in the plan of a fetch."""
    with fs.Session(config=fs.ConfigProto(mode="op")) as sess:
        return next(n for n in sess.plan(fetch).program.walk() if n.op.type == kind)


def test_a_node_gives_one_value_per_output():
    x = fs.placeholder(fs.float32, [2])
    split = Invoker(node_of(fs.split(x, 2), "SplitEven"), Modules(np))
    assert [a.tolist() for a in split(None, (), [np.float32([3, 4])])] == [[3.0], [4.0]]
    tanh = Invoker(node_of(fs.tanh(x), "Tanh"), Modules(np))
    (y,) = tanh(None, (2, 5), [np.float32([0, 0])])
    assert y.tolist() == [0.0, 0.0]


def test_a_random_node_draws_by_its_seed_and_the_iterations_around():
    drawn = []

    def draw(*counts):
        drawn.append(counts)
        return np.random.default_rng(0)

    noise = Invoker(node_of(fs.random_normal([2], seed=7), "RandomNormal"), Modules(np))
    shape = [np.int32([2])] * len(noise.node.inputs)
    (a,), (b,) = noise(draw, (), shape), noise(draw, (1, 4), shape)
    assert a.shape == b.shape == (2,)
    assert [c[1:] for c in drawn] == [(), (0, 1, 4)]
    assert drawn[0][0] == drawn[1][0]


def test_a_failed_invocation_tells_its_node_inputs_and_loops():
    add = Invoker(node_of(fs.placeholder_with_default([1.0], [None]) + 1.0, "Add"), Modules(np))
    cause = ValueError("no")
    error = add.failed([1, 2], cause, (("loop", 3),))
    failed = error.invocation
    assert (failed.node, failed.inputs, error.kernel_error) == (add.node, (1, 2), cause)
    assert failed.iterations == (("loop", 3),)
    assert failed.inside((("outer", 1),)).iterations == (("outer", 1), ("loop", 3))
