"""What a run needs is what the planner's first pass keeps, and what must be fed for it."""

import itertools

import pytest

import flowscope as fs
from flowscope.live.graphs.needs import fed_for, rows_of, unfed_placeholders, would_run

pytestmark = pytest.mark.usefixtures("graph")


@pytest.fixture
def model():
    """A model with a branch, a loop and an optimizer."""
    x = fs.placeholder(fs.float32, [None, 3], name="x")
    rate = fs.placeholder(fs.float32, [], name="rate")
    training = fs.placeholder_with_default(False, [], name="training")
    h = fs.layers.dense(x, 4, fs.nn.relu, name="hidden")
    h = fs.identity(fs.cond(training, lambda: h * 0.5, lambda: h + 1.0), name="h")
    _, y = fs.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, fs.tanh(y) * rate), [0, h])
    loss = fs.reduce_mean(y, name="loss")
    train = fs.train.GradientDescentOptimizer(0.1).minimize(loss, name="train")
    return x, rate, h, loss, train


def names(needed):
    return {op.name for op in needed}


def test_it_is_what_the_planner_keeps(graph, model):
    x, rate, h, loss, train = model
    with fs.Session() as sess:
        for fetch, k in itertools.product((loss, h, train), range(4)):
            feeds = [x, rate, h][:k]
            flat = ([], [fetch]) if fetch is train else ([fetch], [])
            needed = would_run(graph, *flat, feeds)
            kept = dict(sess.plan(fetch, feeds).sources)["prune"].nodes
            assert {op.name for op in needed if op.block is graph.root} == {n.name for n in kept}


def test_feeds_cut_and_bodies_belong_to_it(graph, model):
    _, _, h, loss, train = model
    whole, cut = would_run(graph, [loss], [], []), would_run(graph, [loss], [], [h])
    assert {"x", "rate", "hidden/MatMul"} <= names(whole) and "train" not in names(whole)
    assert not {"x", "hidden/MatMul"} & names(cut) and "rate" in names(cut)
    assert any(op.type == "Tanh" and op.block is not graph.root for op in cut)
    assert names(would_run(graph, [h], [], [h])) == set()
    assert "train" in names(would_run(graph, [], [train], []))


def test_what_must_be_fed(graph, model):
    x, rate, h, loss, _ = model
    needed = would_run(graph, [loss], [], [])
    assert unfed_placeholders(needed, []) == [x, rate], "a default need not be fed"
    assert unfed_placeholders(needed, [x]) == [rate]
    cut = would_run(graph, [loss], [], [h, x])
    assert fed_for(cut, [loss], [h, x]) == [h], "nothing takes x any more"
    assert fed_for([], [], [x]) == [] and fed_for([], [x], [x]) == [x]


def test_a_fed_variable_is_not_read(graph):
    w = fs.Variable([1.0, 2.0], name="w")
    y = fs.exp(w, name="y")
    needed = would_run(graph, [y], [], [w.handle])
    assert "y" in names(needed) and "w" not in names(needed)


def test_rows_of_numbers(graph, model):
    needed = would_run(graph, [model[3]], [], [])
    told = {i for first, last in rows_of(needed) for i in range(first, last + 1)}
    assert told == {op.id for op in needed}
    assert len(rows_of(graph.get_operations())) == 1
