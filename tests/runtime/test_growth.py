"""A graph that grows in a loop is warned about, once, at the line that makes it grow."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import flowscope as fs
from flowscope.runtime.planning.graph_growth import PATIENCE

pytestmark = pytest.mark.usefixtures("graph")


def test_slices_in_a_loop_are_warned_about_once(sess):
    a = fs.constant(np.arange(5.0))
    sess.run(a)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for i in range(3 * PATIENCE):
            sess.run(a[i % 5])
    (warning,) = caught
    assert warning.category is fs.GraphGrowthWarning
    text = str(warning.message)
    assert f"between {PATIENCE} runs" in text
    assert "StridedSlice" in text and "before the loop" in text and "sess.run(a[i % 5])" in text
    assert warning.filename == __file__
    assert "sess.run(a[i % 5])" in Path(__file__).read_text().splitlines()[warning.lineno - 1]


def test_assignments_in_a_loop_get_their_own_advice(sess):
    v = fs.Variable(0.0)
    sess.run(v.initializer)

    def train():
        for i in range(2 * PATIENCE):
            sess.run(v.assign(float(i)))

    with pytest.warns(fs.GraphGrowthWarning, match="with a placeholder for the value"):
        train()


def test_building_at_different_lines_or_before_the_first_run_is_no_growth(sess):
    def layer(x):
        return fs.tanh(x)

    x = fs.constant(1.0)
    for _ in range(2 * PATIENCE):
        x = layer(x)
    sess.run(x)
    for _ in range(PATIENCE - 1):
        sess.run(layer(x))
    sess.run(layer(x))


def test_sessions_that_are_made_in_the_loop_count_together():
    a = fs.constant(np.arange(5.0))

    def look():
        for i in range(2 * PATIENCE):
            with fs.Session() as sess:
                sess.run(a[i % 5])

    with pytest.warns(fs.GraphGrowthWarning, match="StridedSlice") as caught:
        look()
    assert len(caught) == 1


def test_a_cell_that_is_run_again_does_not_make_the_graph_grow(graph, sess):
    a = fs.constant(np.arange(5.0))
    sess.run(a)
    for _ in range(3):
        with graph.cell("loop"):
            for i in range(PATIENCE - 5):
                sess.run(a[i % 5])


def test_runs_that_have_their_plan_look_at_nothing(sess):
    x = fs.constant(1.0)
    sess.run(x)
    for _ in range(2 * PATIENCE):
        fs.negative(x)
        sess.run(x)


def test_a_finalized_graph_says_at_which_line_something_was_to_be_added(graph):
    graph.finalize()
    with pytest.raises(fs.errors.OpError, match=r"(?s)finalized.*test_growth.py, line \d+") as e:
        fs.constant(1.0, name="late")
    assert e.value.op_name == "late"
    assert 'fs.constant(1.0, name="late")' in e.value.source
