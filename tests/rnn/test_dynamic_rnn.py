"""`dynamic_rnn` and `bidirectional_dynamic_rnn`: values, gradients, shapes, errors."""

import numpy as np
import pytest
import rnn_reference as reference

import flowscope as fs
from flowscope.errors import InvalidArgumentError

cells = fs.nn.rnn_cell
X = np.random.RandomState(0).randn(3, 5, 2)
LENGTHS = [5, 0, 2]


def start(sess):
    sess.run(fs.global_variables_initializer())


def lstm_of(sess, cell):
    kernel, bias = sess.run(cell.weights)
    return lambda x, state: reference.lstm(x, state, kernel, bias)


def zeros(n, units):
    return np.zeros((n, units))


@pytest.mark.parametrize("lengths", [None, LENGTHS, [3, 1, 2], [0, 0, 0], [5, 5, 5]])
@pytest.mark.parametrize("time_major", [False, True])
def test_an_lstm(sess, lengths, time_major):
    x = fs.placeholder(fs.float64, [None, None, 2])
    cell = cells.LSTMCell(4)
    outputs, state = fs.nn.dynamic_rnn(cell, x, lengths, dtype=fs.float64, time_major=time_major)
    assert outputs.shape.as_list() == [None, None, 4]
    assert isinstance(state, cells.LSTMStateTuple)
    assert [v.name for v in cell.weights] == ["rnn/lstm_cell/kernel:0", "rnn/lstm_cell/bias:0"]
    start(sess)
    given = X.swapaxes(0, 1) if time_major else X
    found, (c, h) = sess.run([outputs, state], {x: given})
    zero = zeros(3, 4), zeros(3, 4)
    expected, (memory, last) = reference.run(lstm_of(sess, cell), X, zero, lengths)
    np.testing.assert_allclose(found.swapaxes(0, 1) if time_major else found, expected)
    np.testing.assert_allclose(c, memory)
    np.testing.assert_allclose(h, last)


def test_fixed_sizes_are_known(sess):
    outputs, state = fs.nn.dynamic_rnn(cells.GRUCell(4), fs.constant(X), dtype=fs.float64)
    assert outputs.shape == [3, 5, 4]
    assert state.shape == [3, 4]
    start(sess)
    found, last = sess.run([outputs, state])
    np.testing.assert_array_equal(found[:, -1], last)


def test_a_first_state_and_several_layers(sess):
    cell = cells.MultiRNNCell([cells.GRUCell(3), cells.LSTMCell(4)])
    first = np.random.RandomState(1).randn(3, 3)
    zero = fs.zeros([3, 4], fs.float64)
    outputs, state = fs.nn.dynamic_rnn(
        cell, fs.constant(X), LENGTHS, initial_state=(fs.constant(first), (zero, zero))
    )
    start(sess)
    found, (h0, (_, h1)) = sess.run([outputs, state])
    gru = sess.run(cell.weights[:4])
    kernel, bias = sess.run(cell.weights[4:])
    below, last = reference.run(lambda x, h: reference.gru(x, h, *gru), X, first, LENGTHS)
    # Above, rows end as they do below: what the layer below would still give does not count.
    above, (_, top) = reference.run(
        lambda x, s: reference.lstm(x, s, kernel, bias), below, (zeros(3, 4), zeros(3, 4)), LENGTHS
    )
    np.testing.assert_allclose(found, above)
    np.testing.assert_allclose(h0, last)
    np.testing.assert_allclose(h1, top)


class Pair(cells.RNNCell):
    """Takes and returns structures; its state is a matrix per row."""

    state_size = fs.TensorShape([2, 2])
    output_size = (2, {"sum": 1})

    def call(self, inputs, state):
        a, b = inputs["a"], inputs["b"]
        new = state + fs.expand_dims(a, 2) * fs.expand_dims(b, 1)
        total = fs.reduce_sum(new, axis=[1, 2], keepdims=True)[:, 0]
        return (a + b, {"sum": total}), new


def test_nested_inputs_and_outputs(sess):
    inputs = {"a": fs.constant(X), "b": fs.constant(X[..., ::-1].copy())}
    (total, found), state = fs.nn.dynamic_rnn(Pair(), inputs, LENGTHS, dtype=fs.float64)
    total, sums, state = sess.run([total, found["sum"], state])
    mask = np.arange(5) < np.array(LENGTHS)[:, None]
    products = np.einsum("bti,btj->btij", X, X[..., ::-1]) * mask[:, :, None, None]
    np.testing.assert_allclose(total, (X + X[..., ::-1]) * mask[:, :, None])
    np.testing.assert_allclose(state, products.sum(1))
    expected = products.cumsum(1).sum((2, 3)) * mask
    np.testing.assert_allclose(sums[..., 0], expected)


def test_no_steps(sess):
    x = fs.placeholder(fs.float64, [None, None, 2])
    outputs, state = fs.nn.dynamic_rnn(cells.GRUCell(4), x, dtype=fs.float64)
    start(sess)
    found, last = sess.run([outputs, state], {x: X[:, :0]})
    assert found.shape == (3, 0, 4)
    np.testing.assert_array_equal(last, zeros(3, 4))


def test_steps_behind_the_longest_row_are_not_computed(sess):
    count = fs.get_variable("count", initializer=0)

    class Counts(cells.RNNCell):
        state_size = output_size = 2

        def call(self, inputs, state):
            with fs.control_dependencies([fs.assign_add(count, 1)]):
                return fs.identity(inputs), state

    x = fs.placeholder(fs.float64, [3, None, 2])
    outputs, _ = fs.nn.dynamic_rnn(Counts(), x, [1, 0, 3], dtype=fs.float64)
    start(sess)
    sess.run(outputs, {x: X})
    assert sess.run(count) == 3


def pair_of_networks(build):
    """Returns (tensors to differentiate by, loss) of a network run by a loop, and of one unrolled.

    `build(cell, x)` returns outputs [batch, time, n] and state.
    """
    x = fs.constant(X)
    made = []
    for reuse, run in ((False, fs.nn.dynamic_rnn), (True, unrolled)):
        with fs.variable_scope("net", reuse=reuse):
            cell = build()
            outputs, state = run(cell, x, LENGTHS, dtype=fs.float64, scope="rnn")
        weights = fs.random_normal(outputs.shape, dtype=fs.float64, seed=5)
        loss = fs.reduce_sum(fs.sin(outputs) * weights)
        loss += sum(fs.reduce_sum(t**3.0) for t in fs.nest.flatten(state))
        made.append(([x, *cell.trainable_variables], loss))
    return made


def unrolled(cell, x, lengths, dtype, scope):
    steps = fs.unstack(x, axis=1)
    outputs, state = fs.nn.static_rnn(
        cell, steps, sequence_length=lengths, dtype=dtype, scope=scope
    )
    return fs.stack(outputs, axis=1), state


BUILDERS = {
    "basic": lambda: cells.BasicRNNCell(3),
    "gru": lambda: cells.GRUCell(3),
    "lstm": lambda: cells.LSTMCell(3, use_peepholes=True, num_proj=2),
    "two layers": lambda: cells.MultiRNNCell([cells.LSTMCell(3), cells.GRUCell(2)]),
}


@pytest.mark.slow
@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
def test_gradients_are_those_of_the_unrolled_network(sess, build):
    (by, loss), (same, unrolled_loss) = pair_of_networks(build)
    grads, others = fs.gradients(loss, by), fs.gradients(unrolled_loss, same)
    start(sess)
    found, expected = sess.run([[loss, *grads], [unrolled_loss, *others]])
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("build", [BUILDERS["gru"], BUILDERS["lstm"]], ids=["gru", "lstm"])
def test_second_gradients_are_those_of_the_unrolled_network(sess, build):
    both = []
    for by, loss in pair_of_networks(build):
        grads = fs.gradients(loss, by)
        size = fs.add_n([fs.reduce_sum(fs.square(g)) for g in grads])
        both.append(fs.gradients(size, by))
    start(sess)
    for a, b in zip(*sess.run(both), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_gradients_are_the_slopes(sess):
    x = fs.placeholder(fs.float64, [None, None, 2])
    cell = cells.LSTMCell(3)
    outputs, _ = fs.nn.dynamic_rnn(cell, x, LENGTHS, dtype=fs.float64)
    loss = fs.reduce_sum(fs.square(outputs))
    (slope,) = fs.gradients(loss, [x])
    start(sess)
    found = sess.run(slope, {x: X})
    for at in [(0, 0, 1), (0, 4, 0), (2, 1, 1), (2, 3, 0), (1, 0, 0)]:
        high, low = X.copy(), X.copy()
        high[at] += 1e-5
        low[at] -= 1e-5
        difference = (sess.run(loss, {x: high}) - sess.run(loss, {x: low})) / 2e-5
        np.testing.assert_allclose(found[at], difference, rtol=1e-6, atol=1e-9)
    assert (found[1] == 0).all()
    assert (found[2, 2:] == 0).all()


def test_all_ways_to_run_give_equal_bits(graph):
    cell = cells.LSTMCell(4)
    x = fs.placeholder(fs.float32, [None, None, 2])
    outputs, state = fs.nn.dynamic_rnn(cell, x, LENGTHS, dtype=fs.float32)
    wanted = [outputs, state, *fs.gradients(fs.reduce_sum(outputs), [x, *cell.weights])]
    kernel = np.random.RandomState(3).randn(6, 16).astype(np.float32)
    found = []
    for mode in ("compiled", "op", "tokens"):
        with fs.Session(graph=graph, config=fs.ConfigProto(mode=mode)) as sess:
            start(sess)
            cell.weights[0].load(kernel, sess)
            found.append(fs.nest.flatten(sess.run(wanted, {x: X})))
    for a, b, c in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)


@pytest.mark.parametrize("lengths", [None, LENGTHS])
@pytest.mark.parametrize("time_major", [False, True])
def test_both_directions(sess, lengths, time_major):
    forward, backward = cells.LSTMCell(3), cells.LSTMCell(4)
    x = fs.constant(X.swapaxes(0, 1) if time_major else X)
    outputs, states = fs.nn.bidirectional_dynamic_rnn(
        forward, backward, x, lengths, dtype=fs.float64, time_major=time_major
    )
    start(sess)
    (out_fw, out_bw), (last_fw, last_bw) = sess.run([outputs, states])
    if time_major:
        out_fw, out_bw = out_fw.swapaxes(0, 1), out_bw.swapaxes(0, 1)
    expected, state = reference.run(lstm_of(sess, forward), X, (zeros(3, 3), zeros(3, 3)), lengths)
    np.testing.assert_allclose(out_fw, expected)
    np.testing.assert_allclose(last_fw, state)
    turned = turn(X, lengths)
    expected, state = reference.run(
        lstm_of(sess, backward), turned, (zeros(3, 4), zeros(3, 4)), lengths
    )
    np.testing.assert_allclose(out_bw, turn(expected, lengths))
    np.testing.assert_allclose(last_bw, state)
    assert backward.weights[0].name == "bidirectional_rnn/bw/lstm_cell/kernel:0"


def turn(x, lengths):
    found = x.copy()
    for b, n in enumerate([x.shape[1]] * len(x) if lengths is None else lengths):
        found[b, :n] = x[b, :n][::-1]
    return found


@pytest.mark.slow
def test_a_network_learns_in_one_run(sess):
    """Which of the steps had the largest input? The whole training is a loop in the graph."""
    fs.set_random_seed(0)
    optimizer = fs.train.AdamOptimizer(0.02)

    def body(i, first, last):
        x = fs.random_uniform([64, 6, 1])
        outputs, _ = fs.nn.dynamic_rnn(cells.GRUCell(16), x, dtype=fs.float32)
        logits = fs.matmul(outputs[:, -1], fs.get_variable("out", [16, 6]))
        loss = fs.reduce_mean(
            fs.nn.sparse_softmax_cross_entropy_with_logits(
                labels=fs.argmax(x[:, :, 0], axis=1), logits=logits
            )
        )
        with fs.control_dependencies([optimizer.minimize(loss)]):
            return i + 1, fs.where(i < 1, loss, first), fs.identity(loss)

    _, first, last = fs.while_loop(lambda i, *_: i < 150, body, [0, 0.0, 0.0])
    start(sess)
    before, after = sess.run([first, last])
    assert before > 1.7
    assert after < 1.0


def test_a_cell_that_changes_shapes_is_traced_again(sess):
    """The first state has a known batch size, the inputs have not."""
    x = fs.placeholder(fs.float64, [None, None, 2])
    cell = cells.GRUCell(4)
    outputs, state = fs.nn.dynamic_rnn(cell, x, initial_state=fs.zeros([3, 4], fs.float64))
    assert len(fs.global_variables()) == 4
    start(sess)
    found, last = sess.run([outputs, state], {x: X})
    np.testing.assert_array_equal(found[:, -1], last)


def test_a_cell_that_runs_twice_has_one_set_of_variables(sess):
    cell = cells.GRUCell(4)
    x = fs.constant(X)
    first, state = fs.nn.dynamic_rnn(cell, x[:, :2], dtype=fs.float64)
    second, _ = fs.nn.dynamic_rnn(cell, x[:, 2:], initial_state=state)
    whole, _ = fs.nn.dynamic_rnn(cell, x, dtype=fs.float64)
    assert len(fs.global_variables()) == 4
    start(sess)
    found, expected = sess.run([fs.concat([first, second], 1), whole])
    np.testing.assert_array_equal(found, expected)


def test_variables_stay_where_a_notebooks_cell_is_run_again(graph, sess):
    def network(scale):
        with graph.cell("network"):
            x = fs.constant(X * scale)
            outputs, _ = fs.nn.dynamic_rnn(cell, x, dtype=fs.float64)
            return outputs, fs.global_variables_initializer()

    def rnn_cell():
        with graph.cell("cell"):
            return cells.LSTMCell(4)

    cell = rnn_cell()
    outputs, init = network(1.0)
    sess.run(init)
    before, names = sess.run(outputs), [v.name for v in fs.global_variables()]
    for _ in range(2):
        outputs, _ = network(1.0)
        np.testing.assert_array_equal(sess.run(outputs), before)
        assert [v.name for v in fs.global_variables()] == names
        changed, _ = network(2.0)
        assert (sess.run(changed) != before).any()
        cell = rnn_cell()


def test_errors_say_what_was_expected(graph):
    cell, x = cells.LSTMCell(4), fs.constant(X)
    rnn = fs.nn.dynamic_rnn
    with pytest.raises(TypeError, match=r"cell is not an RNNCell.*no output_size"):
        rnn("lstm", x, dtype=fs.float64)
    with pytest.raises(InvalidArgumentError, match="initial_state, or a dtype"):
        rnn(cell, x)
    with pytest.raises(InvalidArgumentError, match=r"\[batch, time, depth\]"):
        rnn(cell, x[0], dtype=fs.float64)
    with pytest.raises(InvalidArgumentError, match="known depth"):
        rnn(cell, fs.placeholder(fs.float64, [3, 5, None]), dtype=fs.float64)
    with pytest.raises(InvalidArgumentError, match=r"vector \[batch\] as sequence_length"):
        rnn(cell, x, [[1, 2, 3]], dtype=fs.float64)
    with pytest.raises(InvalidArgumentError, match="each of the 3 rows, got 2"):
        rnn(cell, x, [1, 2], dtype=fs.float64)
    with pytest.raises(InvalidArgumentError, match="structure of LSTMStateTuple"):
        rnn(cell, x, initial_state=fs.zeros([3, 4], fs.float64))
    with pytest.raises(InvalidArgumentError, match="one batch size"):
        rnn(Pair(), {"a": x, "b": x[:2]}, dtype=fs.float64)
    with pytest.raises(InvalidArgumentError, match="one number of steps"):
        rnn(Pair(), {"a": x, "b": x[:, :2]}, dtype=fs.float64)

    class Wrong(cells.RNNCell):
        state_size = (2, 2)
        output_size = 2

        def call(self, inputs, state):
            return inputs, state[0]

    with pytest.raises(InvalidArgumentError, match="the cell's new state in the structure"):
        rnn(Wrong(), x, dtype=fs.float64)


def test_a_wrong_number_of_lengths_is_found_when_the_graph_runs(sess):
    lengths = fs.placeholder(fs.int64, [None])
    x = fs.placeholder(fs.float64, [None, None, 2])
    outputs, _ = fs.nn.dynamic_rnn(cells.GRUCell(4), x, lengths, dtype=fs.float64)
    start(sess)
    assert sess.run(outputs, {x: X, lengths: LENGTHS}).shape == (3, 5, 4)
    with pytest.raises(InvalidArgumentError, match="sequence_length for each row"):
        sess.run(outputs, {x: X, lengths: [1, 2]})
