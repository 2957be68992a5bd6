"""Values of open dimensions: they cost, and take, what was measured last."""

import numpy as np
import pytest

import flowscope as fs
from flowscope.graph.op import Spec
from flowscope.plan.analysis.costs import UNKNOWN_BYTES, Costs
from flowscope.runtime.trace.cost_learning import learn_costs


def costs_of(sess, fetch, feeds=()):
    program = sess.plan(fetch, list(feeds)).program
    return sess.planner.costs(list(feeds), program), program


def of_type(program, kind):
    return next(n for n in program.walk() if n.op.type == kind)


def test_bytes_and_seconds_follow_the_shapes_that_were_measured(graph):
    x = fs.placeholder(fs.float32, [None], name="x")
    found = fs.where(x > 0.0, name="found")
    y = fs.cast(found, fs.float64) * 2.0
    feed = {x: np.ones(1 << 16, np.float32)}
    with fs.Session() as sess:
        sess.run(y, feed)
        costs, program = costs_of(sess, y, [x])
        (rows,), cast = of_type(program, "Where").outputs, of_type(program, "Cast")
        assert costs.nbytes(rows) == UNKNOWN_BYTES and not costs.has_known_bytes(rows)
        guessed = costs.seconds(cast)
        learn_costs(sess, y, feed, 1)
        costs, _ = costs_of(sess, y, [x])
        assert costs.nbytes(rows) == (1 << 16) * 8
        assert costs.has_known_bytes(rows) and costs.is_size_measured(rows)
        assert costs.seconds(cast) != guessed
        learn_costs(sess, y, {x: np.ones(16, np.float32)}, 1)
        assert costs_of(sess, y, [x])[0].nbytes(rows) == 16 * 8, "the newest shapes count"


def test_what_was_fed_comes_before_what_was_measured(graph):
    x = fs.placeholder(fs.float32, [None, 4], name="x")
    y = fs.exp(x)
    with fs.Session() as sess:
        learn_costs(sess, y, {x: np.ones((8, 4), np.float32)}, 1)
        sess.run(y, {x: np.ones((32, 4), np.float32)})
        program = sess.plan(y, [x]).program
        costs = Costs(sess.planner.cost_table, {program.fetches[0]: Spec(fs.float32, (32, 4))})
        assert costs.nbytes(program.fetches[0]) == 32 * 4 * 4
        assert not costs.is_size_measured(program.fetches[0])


def test_an_unknown_value_has_the_bytes_of_its_known_dimensions_at_least(graph):
    x = fs.placeholder(fs.float32, [None, 1 << 20])
    y = fs.exp(x)
    with fs.Session() as sess:
        (value,) = sess.plan(y, [x]).program.fetches
        assert Costs().nbytes(value) == 4 << 20 and not Costs().has_known_bytes(value)


@pytest.mark.parametrize("limit", [3, 5])
def test_a_loop_of_the_same_name_that_a_cell_has_changed_has_counts_of_its_own(graph, limit):
    def cell(step):
        with graph.cell("loop"):
            n = fs.placeholder(fs.int32, [], name="n")
            i = fs.while_loop(lambda i: i < n, lambda i: i + step, [fs.constant(0)], name="loop")
            return n, fs.identity(i, name="y")

    def trips(n, y):
        costs, program = costs_of(sess, y, [n])
        return costs.trips(next(node for node in program.nodes if node.blocks))

    with fs.Session() as sess:
        n, y = cell(1)
        unknown = trips(n, y)
        learn_costs(sess, y, {n: limit}, 1)
        assert trips(n, y) == limit != unknown
        assert trips(*cell(1)) == limit, "nothing was changed"
        assert trips(*cell(2)) == unknown, "another loop of the same name"
