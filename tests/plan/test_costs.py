"""Costs: estimates follow shapes, what was measured wins, and both put nodes in the true order."""

import numpy as np
import pytest
from ranks import rank_correlation

import flowscope as fs
from flowscope.plan.analysis.costs import UNKNOWN_S, Costs, CostTable, estimate, fed_specs
from flowscope.plan.ir.program import Node
from flowscope.runtime.trace.cost_learning import learn_costs


def node_of(session: fs.Session, y: fs.Tensor, feeds: tuple[fs.Tensor, ...], kind: str) -> Node:
    return next(n for n in session.plan(y, feeds).program.nodes if n.op.type == kind)


def test_estimates_grow_with_the_work() -> None:
    with fs.Session() as session:
        small, large = (
            estimate(node_of(session, fs.matmul(fs.ones([n, n]) * 2.0, x), (x,), "MatMul"))
            for n in (64, 512)
            for x in [fs.placeholder(fs.float32, [n, n])]
        )
        x = fs.placeholder(fs.float32, [512, 512])
        svd = estimate(node_of(session, fs.svd(x)[0], (x,), "Svd"))
    assert 50 < large / small < 600
    assert svd > 10 * large


def test_unknown_shapes_cost_what_unknown_shapes_cost() -> None:
    x = fs.placeholder(fs.float32, [None, 512])
    with fs.Session() as session:
        node = node_of(session, fs.matmul(x, fs.ones([512, 512])), (x,), "MatMul")
    assert Costs().seconds(node) == UNKNOWN_S


def test_shapes_follow_from_those_of_the_feeds() -> None:
    x = fs.placeholder(fs.float32, [None, 512])
    y = fs.matmul(fs.tanh(x), fs.ones([512, 512]))
    with fs.Session() as session:
        program = session.plan(y, [x]).program
    product = program.nodes[-1]
    found = {}
    for rows in (10, 1000):
        specs = fed_specs(program, [(rows, 512)])
        assert specs[product.outputs[0]].shape == (rows, 512)
        found[rows] = Costs(None, specs).seconds(product)
    assert found[1000] > 10 * found[10]


def test_shapes_that_do_not_fit_are_left_to_the_step() -> None:
    x = fs.placeholder(fs.float32, [None, None])
    y = fs.matmul(x, fs.ones([512, 512]))
    with fs.Session() as session:
        program = session.plan(y, [x]).program
    assert fed_specs(program, [(3, 512)]) != {}
    assert fed_specs(program, [(3, 4)]) == {}
    assert fed_specs(program, [()]) == {}


def test_what_was_measured_wins_for_its_shapes() -> None:
    x = fs.placeholder(fs.float32, [None, 512])
    y = fs.matmul(x, fs.ones([512, 512]))
    table = CostTable()
    with fs.Session() as session:
        program = session.plan(y, [x]).program
    node = program.nodes[-1]
    inputs = [np.ones((10, 512)), np.ones((512, 512))]
    table.learn(node, inputs, 2.0)
    table.learn(node, inputs, 1.0)
    table.learn(node, inputs, 3.0)
    assert Costs(table, fed_specs(program, [(10, 512)])).seconds(node) == 1.0
    assert Costs(table, fed_specs(program, [(11, 512)])).seconds(node) < 0.1
    assert Costs(table).seconds(node) == UNKNOWN_S


def test_a_plan_is_made_with_the_shapes_of_its_first_step(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    plain = Costs.seconds
    monkeypatch.setattr(
        Costs, "seconds", lambda self, n: seen.append((n.op.type, plain(self, n))) or seen[-1][1]
    )
    x = fs.placeholder(fs.float32, [None, 512])
    y = fs.matmul(x, fs.ones([512, 512]))
    with fs.Session() as session:
        session.run(y, {x: np.ones((2000, 512), np.float32)})
    assert max(s for kind, s in seen if kind == "MatMul") > 1e-3


def digits(fs_batch: int) -> tuple[object, dict]:
    """The step of the first tutorial: a classifier of 8x8 pictures, with Adam."""
    x = fs.placeholder(fs.float32, [None, 64])
    labels = fs.placeholder(fs.int32, [None])
    hidden = fs.layers.dense(x, 48, activation=fs.nn.relu)
    logits = fs.layers.dense(hidden, 10)
    loss = fs.reduce_mean(
        fs.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    )
    train = fs.train.AdamOptimizer(0.01).minimize(loss)
    rng = np.random.default_rng(0)
    feed = {
        x: rng.random((fs_batch, 64)).astype(np.float32),
        labels: rng.integers(0, 10, fs_batch).astype(np.int32),
    }
    return [train, loss], feed


def large_work() -> tuple[object, dict]:
    """Nodes of all families, between a tenth of a millisecond and a few hundredths of a second."""
    x = fs.placeholder(fs.float32, [300, 300])
    rng = np.random.default_rng(0)
    fetches = [
        fs.matmul(x, x), fs.svd(x)[0], fs.exp(x), fs.sin(x), x + x, fs.cholesky(x), fs.sort(x),
        fs.linalg.inv(x), fs.qr(x)[0], fs.tile(x, [10, 10]), fs.reduce_sum(x),
        fs.nn.conv2d(fs.reshape(x, [10, 30, 30, 10]), fs.ones([3, 3, 10, 40]), [1] * 4, "SAME"),
    ]  # fmt: skip
    return fetches, {x: np.eye(300, dtype=np.float32) + rng.random((300, 300), np.float32) / 1e3}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "bar"), [(lambda: digits(64), 0.6), (lambda: digits(500), 0.6), (large_work, 0.8)]
)
def test_estimates_put_nodes_in_the_order_of_what_they_take(make, bar: float) -> None:
    fetches, feed = make()
    with fs.Session() as session:
        session.run(fs.global_variables_initializer())
        measured = learn_costs(session, fetches, feed, steps=10)
        program = session.plan(fetches, list(feed)).program
        table = session._planner.cost_table
    nodes = [n for n in measured if not n.op.is_handle and n.op.type != "Const"]
    specs = fed_specs(program, [v.shape for v in feed.values()])
    estimated = [Costs(None, specs).seconds(n) for n in nodes]
    assert rank_correlation(estimated, [measured[n] for n in nodes]) > bar
    # The table knows what an op took with these shapes, whichever node it was.
    learned = [Costs(table, specs).seconds(n) for n in nodes]
    assert rank_correlation(learned, [measured[n] for n in nodes]) > 0.85
