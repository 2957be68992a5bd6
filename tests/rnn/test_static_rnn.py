"""`static_rnn`, its kin with two directions, and the one that keeps its state between runs."""

import numpy as np
import pytest
import rnn_reference as reference

import flowscope as fs
from flowscope.errors import InvalidArgumentError

cells = fs.nn.rnn_cell
X = np.random.RandomState(0).randn(3, 5, 2)
LENGTHS = [4, 0, 2]


def steps():
    return fs.unstack(fs.constant(X), axis=1)


def lstm_of(sess, cell):
    kernel, bias = sess.run(cell.weights)
    return lambda x, state: reference.lstm(x, state, kernel, bias)


@pytest.mark.parametrize("lengths", [None, LENGTHS, [0, 0, 0]])
def test_an_lstm(sess, lengths):
    cell = cells.LSTMCell(4)
    outputs, state = fs.nn.static_rnn(cell, steps(), dtype=fs.float64, sequence_length=lengths)
    assert [t.shape.as_list() for t in outputs] == [[3, 4]] * 5
    assert len(fs.global_variables()) == 2
    sess.run(fs.global_variables_initializer())
    found, state = sess.run([fs.stack(outputs, axis=1), state])
    zero = np.zeros((3, 4)), np.zeros((3, 4))
    expected, last = reference.run(lstm_of(sess, cell), X, zero, lengths)
    np.testing.assert_allclose(found, expected)
    np.testing.assert_allclose(state, last)


def test_the_variables_are_those_of_dynamic_rnn(graph):
    cell = cells.GRUCell(4)
    fs.nn.static_rnn(cell, steps(), dtype=fs.float64)
    names = [v.name for v in cell.variables]
    with fs.Graph().as_default():
        other = cells.GRUCell(4)
        fs.nn.dynamic_rnn(other, fs.constant(X), dtype=fs.float64)
        assert [v.name for v in other.variables] == names
    assert names[0] == "rnn/gru_cell/gates/kernel:0"


def test_a_cell_that_makes_its_variables_as_it_is_called(sess):
    class Plain:
        """No RNNCell: it has what a cell needs."""

        state_size = output_size = 2

        def zero_state(self, batch_size, dtype):
            return fs.zeros([batch_size, 2], dtype)

        def __call__(self, inputs, state, scope=None):
            with fs.variable_scope(scope or "plain"):
                w = fs.get_variable("w", [2, 2], fs.float64)
            new = fs.tanh(fs.matmul(inputs, w) + state)
            return new, new

    outputs, _ = fs.nn.static_rnn(Plain(), steps(), dtype=fs.float64)
    (w,) = fs.global_variables()
    assert w.name == "rnn/plain/w:0"
    sess.run(fs.global_variables_initializer())
    found, w = sess.run([outputs, w])
    expected, _ = reference.run(lambda x, h: 2 * (np.tanh(x @ w + h),), X, np.zeros((3, 2)))
    np.testing.assert_allclose(np.stack(found, axis=1), expected)


def test_steps_behind_the_longest_row_are_not_computed(sess):
    count = fs.get_variable("count", initializer=0)

    class Counts(cells.RNNCell):
        state_size = output_size = 2

        def call(self, inputs, state):
            with fs.control_dependencies([fs.assign_add(count, 1)]):
                return fs.identity(inputs), state

    outputs, _ = fs.nn.static_rnn(Counts(), steps(), dtype=fs.float64, sequence_length=[1, 0, 3])
    sess.run(fs.global_variables_initializer())
    sess.run(outputs)
    assert sess.run(count) == 3


@pytest.mark.slow
@pytest.mark.parametrize("lengths", [None, LENGTHS])
def test_both_directions(sess, lengths):
    forward, backward = cells.LSTMCell(3), cells.LSTMCell(4)
    outputs, last_fw, last_bw = fs.nn.static_bidirectional_rnn(
        forward, backward, steps(), dtype=fs.float64, sequence_length=lengths
    )
    with fs.variable_scope("bidirectional_rnn", reuse=True) as scope:
        pair, last = fs.nn.bidirectional_dynamic_rnn(
            cells.LSTMCell(3),
            cells.LSTMCell(4),
            fs.constant(X),
            lengths,
            dtype=fs.float64,
            scope=scope,
        )
    sess.run(fs.global_variables_initializer())
    found, expected = sess.run([fs.stack(outputs, axis=1), fs.concat(pair, 2)])
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert found.shape == (3, 5, 7)
    found, expected = sess.run([(last_fw, last_bw), last])
    for a, b in zip(fs.nest.flatten(found), fs.nest.flatten(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


class Keeper:
    """Keeps states in variables."""

    def __init__(self, **sizes):
        self.kept = {
            name: fs.get_variable(name, [3, n], fs.float64, fs.zeros_initializer(), trainable=False)
            for name, n in sizes.items()
        }

    def state(self, name):
        return self.kept[name].read_value()

    def save_state(self, name, value):
        return fs.assign(self.kept[name], value).op


@pytest.mark.parametrize("fetched", ["output", "state"])
def test_a_state_that_is_kept_between_runs(sess, fetched):
    cell = cells.LSTMCell(4)
    outputs, state = fs.nn.static_state_saving_rnn(
        cell, steps(), Keeper(c=4, h=4), cells.LSTMStateTuple("c", "h")
    )
    fetch = outputs[-1] if fetched == "output" else state.h
    sess.run(fs.global_variables_initializer())
    first, second = sess.run(fetch), sess.run(fetch)
    zero = np.zeros((3, 4)), np.zeros((3, 4))
    _, state = reference.run(lstm_of(sess, cell), X, zero)
    np.testing.assert_allclose(first, state[1])
    _, state = reference.run(lstm_of(sess, cell), X, state)
    np.testing.assert_allclose(second, state[1])


def test_one_name_for_a_state_of_one_tensor(sess):
    outputs, state = fs.nn.static_state_saving_rnn(
        cells.GRUCell(4), steps(), Keeper(h=4), "h", LENGTHS
    )
    sess.run(fs.global_variables_initializer())
    found, last, kept = sess.run([outputs[3], state, outputs[-1]])
    np.testing.assert_array_equal(found[0], last[0])
    assert (kept == 0).all()


def test_errors_say_what_was_expected(graph):
    cell = cells.GRUCell(4)
    with pytest.raises(TypeError, match=r"list with the inputs.*dynamic_rnn"):
        fs.nn.static_rnn(cell, fs.constant(X), dtype=fs.float64)
    with pytest.raises(InvalidArgumentError, match="one step at least"):
        fs.nn.static_rnn(cell, [], dtype=fs.float64)
    with pytest.raises(InvalidArgumentError, match="initial_state, or a dtype"):
        fs.nn.static_rnn(cell, steps())
    with pytest.raises(TypeError, match="cell_bw is not an RNNCell"):
        fs.nn.static_bidirectional_rnn(cell, None, steps(), dtype=fs.float64)
    with pytest.raises(InvalidArgumentError, match="state_name in the structure"):
        fs.nn.static_state_saving_rnn(cell, steps(), Keeper(h=4), ("h", "c"))
