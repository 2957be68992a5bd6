"""`raw_rnn`: what the function decides, structures, gradients, errors."""

import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import InvalidArgumentError

cells = fs.nn.rnn_cell
X = np.random.RandomState(0).randn(3, 5, 2)
LENGTHS = [5, 1, 2]


def reader(cell, x, lengths, keep=None):
    """Returns the function that makes `raw_rnn` a `dynamic_rnn`; `keep` may add a loop state."""
    steps = fs.TensorArray(x.dtype, 5).unstack(fs.transpose(x, [1, 0, 2]))

    def loop_fn(time, output, state, own):
        is_over = time >= lengths
        return (
            is_over,
            fs.cond(
                fs.reduce_all(is_over),
                lambda: fs.zeros([3, 2], x.dtype),
                lambda: steps.read(time),
            ),
            cell.zero_state(3, x.dtype) if output is None else state,
            output,
            None if keep is None else keep(time, output, own),
        )

    return loop_fn


@pytest.mark.parametrize("build", [lambda: cells.GRUCell(4), lambda: cells.LSTMCell(4)])
def test_it_can_do_what_dynamic_rnn_does(sess, build):
    x = fs.constant(X)
    cell, same = build(), build()
    array, state, own = fs.nn.raw_rnn(cell, reader(cell, x, LENGTHS))
    assert own is None
    with fs.variable_scope("rnn", reuse=True):
        outputs, last = fs.nn.dynamic_rnn(
            same, x, LENGTHS, dtype=x.dtype, scope=fs.get_variable_scope()
        )
    assert cell.weights == same.weights
    found = fs.transpose(array.stack(), [1, 0, 2])
    assert found.shape.as_list() == [3, None, 4]
    by = [x, *cell.weights]
    sess.run(fs.global_variables_initializer())
    for a, b in (
        ([found, state], [outputs, last]),
        (
            fs.gradients(fs.reduce_sum(fs.sin(found)), by),
            fs.gradients(fs.reduce_sum(fs.sin(outputs)), by),
        ),
    ):
        flat = zip(fs.nest.flatten(sess.run(a)), fs.nest.flatten(sess.run(b)), strict=True)
        for one, other in flat:
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


def test_a_loop_state_of_tensors_and_arrays(sess):
    cell = cells.GRUCell(4)

    def keep(time, output, own):
        if own is None:
            return 0, fs.TensorArray(fs.int32, 0, dynamic_size=True, element_shape=[])
        count, times = own
        return count + 2, times.write(time - 1, time * 10)

    loop_fn = reader(cell, fs.constant(X), LENGTHS, keep)
    _, _, (count, times) = fs.nn.raw_rnn(cell, loop_fn)
    sess.run(fs.global_variables_initializer())
    count, times = sess.run([count, times.stack()])
    assert count == 10
    assert times.tolist() == [10, 20, 30, 40, 50]


def test_what_is_emitted_may_differ_from_the_output(sess):
    """A decoder: each row goes on until it emits something large, reading what it wrote."""

    class Doubles(cells.RNNCell):
        state_size = output_size = 1

        def call(self, inputs, state):
            return inputs * 2, state + 1

    def loop_fn(time, output, state, own):
        if output is None:
            emit = {"value": fs.zeros([], fs.int32), "pair": fs.zeros([2])}
            return [False, False], fs.constant([[1.0], [3.0]]), fs.zeros([2, 1]), emit, None
        pair = fs.concat([output, -output], 1)
        emit = {"value": fs.cast(output[:, 0], fs.int32), "pair": pair}
        return output[:, 0] > 10, output, state, emit, None

    arrays, state, _ = fs.nn.raw_rnn(Doubles(), loop_fn)
    value, pair, state = sess.run([arrays["value"].stack(), arrays["pair"].stack(), state])
    assert value.tolist() == [[2, 6], [4, 12], [8, 0], [16, 0]]
    assert pair[:, 1].tolist() == [[6, -6], [12, -12], [0, 0], [0, 0]]
    assert state.tolist() == [[4], [2]]


def test_errors_say_what_was_expected(graph):
    cell = cells.GRUCell(2)
    with pytest.raises(TypeError, match="function as loop_fn"):
        fs.nn.raw_rnn(cell, 3)
    with pytest.raises(TypeError, match="cell is not an RNNCell"):
        fs.nn.raw_rnn(3, lambda *_: None)
    with pytest.raises(InvalidArgumentError, match="expected loop_fn to return"):
        fs.nn.raw_rnn(cell, lambda *_: (1, 2))

    def changes(time, output, state, own):
        x = fs.ones([1, 2])
        if output is None:
            return [False], x, fs.zeros([1, 2]), None, None
        return [True], (x, x), state, output, None

    with pytest.raises(InvalidArgumentError, match="expected inputs of a batch"):
        fs.nn.raw_rnn(cell, lambda *_: (True, 1.0, fs.zeros([1, 2]), None, None))
    with pytest.raises(InvalidArgumentError, match="loop_fn's next_input in the structure"):
        fs.nn.raw_rnn(cell, changes)
