"""Feeds of several tensors at once: structures as keys of a feed_dict."""

import numpy as np
import pytest

import flowscope as fs


@pytest.fixture
def state(graph):
    """The state of two recurrent layers: ((c, h), (c, h))."""
    pair = fs.nn.rnn_cell.LSTMStateTuple
    return tuple(
        pair(
            fs.placeholder(fs.float32, [2], name=f"c{i}"),
            fs.placeholder(fs.float32, [2], name=f"h{i}"),
        )
        for i in range(2)
    )


VALUES = (([1.0, 2.0], [3.0, 4.0]), [[5.0, 6.0], [7.0, 8.0]])


def test_a_structure_of_tensors_takes_the_same_structure_of_values(state, graph):
    flat = [t for pair in state for t in pair]
    total = fs.add_n(flat)
    with fs.Session() as sess:
        for _ in range(2):  # planned, and found again
            np.testing.assert_array_equal(sess.run(total, {state: VALUES}), [16.0, 20.0])
        options = fs.RunOptions(timeout_in_ms=10_000)
        np.testing.assert_array_equal(sess.run(total, {state: VALUES}, options), [16.0, 20.0])
        np.testing.assert_array_equal(sess.run(state[1].h, {state[1]: VALUES[1]}), [7.0, 8.0])
        handle = sess.partial_run_setup([total], flat)
        np.testing.assert_array_equal(
            sess.partial_run(handle, total, {state: VALUES}), [16.0, 20.0]
        )


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (VALUES[:1], r"cannot feed the tuple of .*expected 2 values .*, got tuple of 1"),
        ((VALUES[0], np.ones([2, 2])), 'LSTMStateTuple of "c1:0", "h1:0": .*got ndarray'),
        ((VALUES[0], ([1.0], [2.0, 3.0])), r'cannot feed "c1:0": expected shape \[2\], got \[1\]'),
    ],
)
def test_a_value_of_another_structure(state, value, message):
    with fs.Session() as sess, pytest.raises(ValueError, match=message):
        sess.run(state[0].c, {state: value})


def test_a_part_is_fed_once(state):
    with fs.Session() as sess, pytest.raises(ValueError, match='"c0:0" is fed twice'):
        sess.run(state[0].c, {state: VALUES, state[0].c: [0.0, 0.0]})


def test_a_refused_feed_names_the_line_of_its_placeholder(graph):
    x = fs.placeholder(fs.int32, [None, 3], name="x")  # the line
    with fs.Session() as sess:
        for value, message in [
            (np.zeros([3, 2]), r'cannot feed "x:0": expected shape \[\?,3\], got \[3,2\]'),
            ([["x", "y", "z"]], 'cannot feed "x:0": expected int32'),
            (fs.zeros([1, 3]), 'cannot feed "x:0": the value fed is a tensor: run it first'),
        ]:
            with pytest.raises(fs.errors.OpError, match=message) as e:
                sess.run(x, {x: value})
            assert e.value.op_name == "x"
            assert "# the line" in str(e.value)
