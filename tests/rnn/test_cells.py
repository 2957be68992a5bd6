"""Cells: values, variables, sizes, errors."""

import numpy as np
import pytest
import rnn_reference as reference

import flowscope as fs
from flowscope.errors import InvalidArgumentError

cells = fs.nn.rnn_cell
X = np.random.RandomState(0).randn(2, 3)
H = np.random.RandomState(1).randn(2, 4)
C = np.random.RandomState(2).randn(2, 4)


def values(sess, *tensors):
    sess.run(fs.global_variables_initializer())
    return sess.run(list(tensors))


def names(cell):
    return [v.name for v in cell.variables]


def test_basic_rnn_cell(sess):
    cell = cells.BasicRNNCell(4)
    out, new = cell(fs.constant(X), fs.constant(H))
    out, new, kernel, bias = values(sess, out, new, *cell.weights)
    np.testing.assert_allclose(out, reference.basic_rnn(X, H, kernel, bias)[0])
    np.testing.assert_array_equal(out, new)
    assert names(cell) == ["basic_rnn_cell/kernel:0", "basic_rnn_cell/bias:0"]
    assert cell.state_size == cell.output_size == 4


def test_gru_cell(sess):
    cell = cells.GRUCell(4)
    out, new = cell(fs.constant(X), fs.constant(H))
    out, new, *weights = values(sess, out, new, *cell.weights)
    np.testing.assert_allclose(out, reference.gru(X, H, *weights)[0])
    np.testing.assert_array_equal(out, new)
    np.testing.assert_array_equal(weights[1], 1.0)
    assert names(cell) == [
        "gru_cell/gates/kernel:0",
        "gru_cell/gates/bias:0",
        "gru_cell/candidate/kernel:0",
        "gru_cell/candidate/bias:0",
    ]


@pytest.mark.parametrize("kind", [cells.BasicLSTMCell, cells.LSTMCell])
def test_lstm_cells(sess, kind):
    cell = kind(4)
    out, new = cell(fs.constant(X), cells.LSTMStateTuple(fs.constant(C), fs.constant(H)))
    assert isinstance(new, cells.LSTMStateTuple)
    out, c, h, kernel, bias = values(sess, out, new.c, new.h, *cell.weights)
    expected, (memory, _) = reference.lstm(X, (C, H), kernel, bias)
    np.testing.assert_allclose(out, expected)
    np.testing.assert_allclose(c, memory)
    np.testing.assert_array_equal(h, out)
    scope = "basic_lstm_cell" if kind is cells.BasicLSTMCell else "lstm_cell"
    assert names(cell) == [f"{scope}/kernel:0", f"{scope}/bias:0"]
    assert cell.state_size == cells.LSTMStateTuple(4, 4)
    assert new.dtype is fs.float64


def test_lstm_with_peepholes_projection_and_clips(sess):
    cell = cells.LSTMCell(
        4,
        use_peepholes=True,
        cell_clip=0.3,
        num_proj=2,
        proj_clip=0.02,
        initializer=fs.random_normal_initializer(seed=3),
    )
    out, new = cell(fs.constant(X), (fs.constant(C), fs.constant(H[:, :2])))
    out, c, *weights = values(sess, out, new.c, *cell.weights)
    kernel, bias, *peepholes, projection = weights
    expected, (memory, _) = reference.lstm(
        X, (C, H[:, :2]), kernel, bias, peepholes, projection, clip=0.3, proj_clip=0.02
    )
    np.testing.assert_allclose(out, expected)
    np.testing.assert_allclose(c, memory)
    assert np.abs(memory).max() == 0.3
    assert np.abs(expected).max() == 0.02
    assert cell.state_size == (4, 2)
    assert cell.output_size == 2
    assert [name.removeprefix("lstm_cell/") for name in names(cell)] == [
        "kernel:0",
        "bias:0",
        "w_f_diag:0",
        "w_i_diag:0",
        "w_o_diag:0",
        "projection/kernel:0",
    ]


def test_a_state_that_is_one_tensor(sess):
    together = cells.LSTMCell(4, num_proj=2, state_is_tuple=False, name="a")
    assert together.state_size == 6
    out, new = together(fs.constant(X), fs.constant(np.hstack([C, H[:, :2]])))
    out, new, kernel, bias, projection = values(sess, out, new, *together.weights)
    expected, (c, h) = reference.lstm(X, (C, H[:, :2]), kernel, bias, projection=projection)
    np.testing.assert_allclose(out, expected)
    np.testing.assert_allclose(new, np.hstack([c, h]))


def test_a_kernel_in_parts(sess):
    cell = cells.LSTMCell(4, num_unit_shards=2, num_proj=2, num_proj_shards=2)
    out, _ = cell(fs.constant(X), cell.zero_state(2, fs.float64))
    found = values(sess, out, *fs.global_variables())
    out, k0, k1, bias, p0, p1 = found
    zero = np.zeros((2, 4)), np.zeros((2, 2))
    kernel, projection = np.vstack([k0, k1]), np.vstack([p0, p1])
    expected, _ = reference.lstm(X, zero, kernel, bias, projection=projection)
    np.testing.assert_allclose(out, expected)


def test_activations_by_name_and_by_function(sess):
    by_name = cells.BasicRNNCell(4, activation="relu", name="a")
    by_function = cells.BasicRNNCell(4, activation=fs.nn.relu, name="b")
    one, _ = by_name(fs.constant(X), fs.constant(H))
    other, _ = by_function(fs.constant(X), fs.constant(H))
    copied = [fs.assign(b, a) for a, b in zip(by_name.weights, by_function.weights, strict=True)]
    sess.run(fs.global_variables_initializer())
    sess.run(copied)
    found = sess.run([one, other])
    np.testing.assert_array_equal(*found)
    assert found[0].min() >= 0


def test_multi_rnn_cell(sess):
    cell = cells.MultiRNNCell([cells.BasicRNNCell(4), cells.LSTMCell(5)])
    state = (
        fs.constant(H),
        cells.LSTMStateTuple(fs.zeros([2, 5], "float64"), fs.zeros([2, 5], "float64")),
    )
    out, new = cell(fs.constant(X), state)
    out, first, k0, b0, k1, b1 = values(sess, out, new[0], *cell.weights)
    below, _ = reference.basic_rnn(X, H, k0, b0)
    expected, _ = reference.lstm(below, (np.zeros((2, 5)), np.zeros((2, 5))), k1, b1)
    np.testing.assert_allclose(first, below)
    np.testing.assert_allclose(out, expected)
    assert cell.state_size == (4, (5, 5))
    assert cell.output_size == 5
    assert names(cell) == [
        "multi_rnn_cell/cell_0/basic_rnn_cell/kernel:0",
        "multi_rnn_cell/cell_0/basic_rnn_cell/bias:0",
        "multi_rnn_cell/cell_1/lstm_cell/kernel:0",
        "multi_rnn_cell/cell_1/lstm_cell/bias:0",
    ]


def test_multi_rnn_cell_with_one_tensor_as_state(sess):
    cell = cells.MultiRNNCell([cells.GRUCell(4), cells.GRUCell(3)], state_is_tuple=False)
    assert cell.state_size == 7
    out, new = cell(fs.constant(X), cell.zero_state(2, fs.float64))
    out, new = values(sess, out, new)
    np.testing.assert_array_equal(new[:, 4:], out)


def test_dropout_keeps_the_mean_and_leaves_the_memory(sess):
    cell = cells.DropoutWrapper(
        cells.LSTMCell(50), state_keep_prob=0.5, output_keep_prob=0.5, seed=4
    )
    ones = fs.ones([20, 30])
    out, new = cell(ones, cell.zero_state(20, fs.float32))
    plain, (c, h) = cell.wrapped_cell(ones, cell.zero_state(20, fs.float32))
    out, new_c, new_h, plain, c, h = values(sess, out, new.c, new.h, plain, c, h)
    for dropped, whole in ((out, plain), (new_h, h)):
        kept = dropped != 0
        assert 0.45 < kept.mean() < 0.55
        np.testing.assert_allclose(dropped[kept], 2 * whole[kept], rtol=1e-6)
    np.testing.assert_array_equal(new_c, c)
    assert (out != new_h).any()


def test_dropout_of_inputs_is_drawn_anew_in_each_run(sess):
    cell = cells.DropoutWrapper(_Pass(), input_keep_prob=fs.placeholder_with_default(0.5, []))
    out, _ = cell(fs.ones([10, 10]), fs.zeros([10, 1]))
    first, second = sess.run(out), sess.run(out)
    assert set(np.unique(first)) == {0.0, 2.0}
    assert (first != second).any()


def test_variational_dropout_is_the_same_at_all_steps(sess):
    cell = cells.DropoutWrapper(
        _Pass(),
        input_keep_prob=0.5,
        variational_recurrent=True,
        input_size=fs.TensorShape([10]),
        dtype=fs.float32,
        seed=1,
    )
    out, _ = fs.nn.dynamic_rnn(cell, fs.ones([4, 6, 10]), dtype=fs.float32)
    first, second = sess.run(out), sess.run(out)
    assert set(np.unique(first)) == {0.0, 2.0}
    np.testing.assert_array_equal(first, np.broadcast_to(first[0, 0], first.shape))
    assert (first != second).any()


def test_the_filter_of_dropout_chooses_parts_of_the_state(sess):
    inner = cells.MultiRNNCell([_Pass(), _Pass()])
    cell = cells.DropoutWrapper(
        inner,
        state_keep_prob=1e-9,
        dropout_state_filter_visitor=lambda s: (False, True) if isinstance(s, tuple) else True,
    )
    _, new = cell(fs.ones([2, 3]), (fs.ones([2, 1]), fs.ones([2, 1])))
    first, second = sess.run(new)
    assert (first == 2).all()
    assert (second == 0).all()


def test_residual_wrapper(sess):
    cell = cells.ResidualWrapper(cells.GRUCell(3))
    x, h = fs.constant(X), fs.constant(H[:, :3])
    out, new = cell(x, h)
    other = cells.ResidualWrapper(cell.wrapped_cell, residual_fn=lambda i, o: i * o)
    out, new, product = values(sess, out, new, other(x, h)[0])
    np.testing.assert_allclose(out, new + X)
    np.testing.assert_allclose(product, new * X)


def test_device_wrapper(graph):
    cell = cells.DeviceWrapper(cells.GRUCell(3), "/device:CPU:0")
    out, _ = cell(fs.constant(X), cell.zero_state(2, fs.float64))
    assert out.device.endswith("CPU:0")
    assert names(cell) == names(cell.wrapped_cell)


class _Pass(cells.RNNCell):
    """Returns its inputs, and counts in its state."""

    state_size = 1
    output_size = 10

    def call(self, inputs, state):
        return inputs, state + 1.0


class _OwnVariables(cells.RNNCell):
    """A user's cell with `get_variable` in `call`; it does not call RNNCell.__init__."""

    def __init__(self, n):
        self.n = n

    @property
    def state_size(self):
        return self.n

    @property
    def output_size(self):
        return fs.TensorShape([self.n])

    def call(self, inputs, state):
        w = fs.get_variable("w", [inputs.shape[1], self.n])
        out = fs.tanh(fs.matmul(inputs, w) + state)
        return out, out


def test_a_cell_of_ones_own(sess):
    cell = _OwnVariables(4)
    first, state = cell(fs.constant(X, "float32"), fs.zeros([2, 4]))
    second, _ = cell(fs.constant(X, "float32"), state)
    first, second, w = values(sess, first, second, *cell.variables)
    np.testing.assert_allclose(first, np.tanh(X @ w), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(second, np.tanh(X @ w + first), rtol=1e-5, atol=1e-6)
    assert names(cell) == ["private__own_variables/w:0"]


def test_build_is_called_once(graph):
    class Counted(cells.RNNCell):
        state_size = output_size = 3
        shapes = ()

        def build(self, inputs_shape):
            self.shapes += (inputs_shape.as_list(),)
            self.w = self.add_weight("w", [inputs_shape[1], 3], trainable=False)

        def call(self, inputs, state):
            return fs.matmul(inputs, self.w), state

    cell = Counted()
    for _ in range(2):
        cell(fs.ones([2, 5]), fs.ones([2, 3]))
    assert cell.shapes == ([2, 5],)
    assert (len(cell.trainable_weights), len(cell.non_trainable_weights)) == (0, 1)
    assert fs.trainable_variables() == []


def test_variables_are_shared_by_calls_and_not_by_cells(graph):
    one, other = cells.GRUCell(4), cells.GRUCell(4)
    for cell in (one, other, one):
        cell(fs.constant(X), fs.constant(H))
    assert one.scope_name == "gru_cell"
    assert other.scope_name == "gru_cell_1"
    assert len(fs.global_variables()) == 8


def test_reuse(graph):
    with fs.variable_scope("a"):
        cell = cells.GRUCell(4)
        cell(fs.constant(X), fs.constant(H))
    with fs.variable_scope("a"):
        again = cells.GRUCell(4, reuse=True)
        again(fs.constant(X), fs.constant(H))
    with fs.variable_scope("a", reuse=fs.AUTO_REUSE):
        third = cells.GRUCell(4)
        third(fs.constant(X), fs.constant(H))
    assert again.weights == cell.weights == third.weights
    with fs.variable_scope("a"), pytest.raises(InvalidArgumentError, match="exists"):
        cells.GRUCell(4)(fs.constant(X), fs.constant(H))


def test_a_scope_of_ones_own(graph):
    cell = cells.BasicRNNCell(4)
    cell(fs.constant(X), fs.constant(H), scope="mine")
    assert names(cell) == ["mine/kernel:0", "mine/bias:0"]


def test_building_before_the_first_call(graph):
    cell = cells.LSTMCell(4, dtype=fs.float64, trainable=False)
    cell.build(fs.TensorShape([None, 3]))
    assert names(cell) == ["lstm_cell/kernel:0", "lstm_cell/bias:0"]
    before = cell.variables
    cell(fs.constant(X), cell.zero_state(2, fs.float64))
    assert cell.variables == before == cell.non_trainable_variables
    assert cell.trainable_variables == fs.trainable_variables() == []


def test_a_cell_is_a_layer(graph):
    cell = cells.MultiRNNCell([cells.GRUCell(4), cells.LSTMCell(2, trainable=False)])
    assert isinstance(cell, fs.layers.Layer)
    cell(fs.constant(X), cell.zero_state(2, fs.float64))
    assert cell.count_params() == 7 * 8 + 8 + 7 * 4 + 4 + 6 * 8 + 8
    assert (len(cell.trainable_variables), len(cell.non_trainable_variables)) == (4, 2)
    with fs.Graph().as_default(), pytest.raises(InvalidArgumentError, match="another graph"):
        cell(fs.constant(X), cell.zero_state(2, fs.float64))


def test_a_regularizer_of_a_weight_adds_a_loss(graph):
    class Decays(cells.RNNCell):
        state_size = output_size = 3

        def build(self, inputs_shape):
            self.w = self.add_weight("w", [3], fs.float64, regularizer=fs.nn.l2_loss)

        def call(self, inputs, state):
            return inputs * self.w, state

    cell = Decays()
    cell(fs.constant(X), cell.zero_state(2, fs.float64))
    assert cell.losses == fs.get_collection(fs.GraphKeys.REGULARIZATION_LOSSES)
    assert len(cell.losses) == 1


def test_first_states(sess):
    cell = cells.LSTMCell(3, num_proj=2)
    batch = fs.placeholder(fs.int32, [])
    c, h = cell.zero_state(batch, fs.float64)
    assert [c.shape.as_list(), h.shape.as_list()] == [[None, 3], [None, 2]]
    assert sess.run(c, {batch: 5}).shape == (5, 3)
    state = cell.get_initial_state(inputs=fs.ones([7, 2], "float64"))
    assert state.h.shape == [7, 2]
    assert state.dtype is fs.float64
    with pytest.raises(InvalidArgumentError, match="batch_size and dtype"):
        cell.get_initial_state(batch_size=3)
    with pytest.raises(InvalidArgumentError, match="batch_size is 3"):
        cell.get_initial_state(inputs=fs.ones([7, 2]), batch_size=3)
    with pytest.raises(TypeError, match="float64"):
        cell.get_initial_state(inputs=fs.ones([7, 2]), dtype=fs.float64)


@pytest.mark.parametrize(
    "cell",
    [
        cells.BasicRNNCell(4, activation="relu"),
        cells.GRUCell(4, bias_initializer=fs.zeros_initializer()),
        cells.LSTMCell(4, use_peepholes=True, num_proj=2, forget_bias=0.5, name="mine"),
        cells.BasicLSTMCell(4, forget_bias=0.0),
        cells.MultiRNNCell([cells.GRUCell(2)]),
        cells.ResidualWrapper(cells.GRUCell(4)),
        cells.DropoutWrapper(cells.GRUCell(4), input_keep_prob=0.5, seed=2),
        cells.DeviceWrapper(cells.GRUCell(4), "/cpu:0"),
    ],
    ids=lambda c: type(c).__name__,
)
def test_configurations_come_back(cell):
    again = type(cell).from_config(cell.get_config())
    assert type(again) is type(cell)
    assert again.get_config() == cell.get_config()
    assert again.state_size == cell.state_size


def test_errors_say_what_was_expected(graph):
    x, h = fs.constant(X), fs.constant(H)
    with pytest.raises(TypeError, match="floating-point"):
        cells.GRUCell(4)(fs.ones([2, 3], "int32"), h)
    with pytest.raises(InvalidArgumentError, match="known depth"):
        cells.GRUCell(4)(fs.placeholder(fs.float64, [2, None]), h)
    with pytest.raises(InvalidArgumentError, match=r"LSTMStateTuple.*zero_state"):
        cells.LSTMCell(4)(x, h)
    with pytest.raises(InvalidArgumentError, match="num_units of 1"):
        cells.GRUCell(0)
    with pytest.raises(InvalidArgumentError, match="function or the name"):
        cells.GRUCell(4, activation="no such")
    with pytest.raises(InvalidArgumentError, match="one cell at least"):
        cells.MultiRNNCell([])
    with pytest.raises(TypeError, match=r"cells\[1\] is not an RNNCell"):
        cells.MultiRNNCell([cells.GRUCell(2), "gru"])
    with pytest.raises(InvalidArgumentError, match="state_is_tuple=True"):
        cells.MultiRNNCell([cells.LSTMCell(2)], state_is_tuple=False)
    with pytest.raises(InvalidArgumentError, match="each of the 2 cells"):
        cells.MultiRNNCell([cells.GRUCell(4), cells.GRUCell(4)])(x, (h,))
    with pytest.raises(InvalidArgumentError, match="from 0 to 1"):
        cells.DropoutWrapper(cells.GRUCell(2), input_keep_prob=1.5)
    with pytest.raises(InvalidArgumentError, match="needs a dtype"):
        cells.DropoutWrapper(cells.GRUCell(2), variational_recurrent=True)
    with pytest.raises(InvalidArgumentError, match="input_size"):
        cells.DropoutWrapper(cells.GRUCell(2), 0.5, variational_recurrent=True, dtype=fs.float32)
    with pytest.raises(InvalidArgumentError, match="inputs' shape"):
        cells.ResidualWrapper(cells.GRUCell(4))(x, h)
    with pytest.raises(TypeError, match="no argument 'units'"):
        cells.GRUCell(4, units=3)


@pytest.mark.parametrize("kind", ["DropoutWrapper", "ResidualWrapper", "DeviceWrapper"])
def test_a_wrapper_is_made_again_with_a_new_cell(graph, kind):
    cells = fs.nn.rnn_cell
    more = {"device": "/cpu:0"} if kind == "DeviceWrapper" else {}
    wrapper = getattr(cells, kind)(cells.GRUCell(3), **more)
    config = wrapper.get_config()
    assert config["cell"]["class_name"] == "GRUCell"
    again = type(wrapper).from_config(config)
    assert again.wrapped_cell is not wrapper.wrapped_cell and again.get_config() == config
    own = cells.GRUCell(4)
    assert type(wrapper).from_config({**config, "cell": own}).wrapped_cell is own


def test_a_wrapper_of_a_class_of_ones_own(graph):
    class Mine(fs.nn.rnn_cell.GRUCell):
        pass

    outer = fs.nn.rnn_cell.ResidualWrapper(fs.nn.rnn_cell.DropoutWrapper(Mine(3)))
    config = outer.get_config()
    with pytest.raises(ValueError, match="no cell of the class 'Mine' is known"):
        type(outer).from_config(config)
    again = type(outer).from_config(config, custom_objects={"Mine": Mine})
    assert type(again.wrapped_cell.wrapped_cell) is Mine


def test_a_probability_may_be_a_variable(graph):
    keep = fs.get_variable("keep", initializer=1e-9)
    x = fs.ones([2, 3])
    cell = fs.nn.rnn_cell.DropoutWrapper(fs.nn.rnn_cell.GRUCell(3), output_keep_prob=keep)
    output, _ = cell(x, fs.zeros([2, 3]))
    with fs.Session() as sess:
        sess.run(fs.global_variables_initializer())
        assert not sess.run(output).any()
    with pytest.raises(ValueError, match="expected input_keep_prob from 0 to 1, got 1.5"):
        fs.nn.rnn_cell.DropoutWrapper(fs.nn.rnn_cell.GRUCell(3), fs.constant(1.5))


def test_the_batch_size_of_an_initial_state_is_the_inputs_own(graph):
    cell, x = fs.nn.rnn_cell.BasicRNNCell(5), fs.placeholder(fs.float32, [None, 4])
    with pytest.raises(ValueError, match="batch_size is 1, and .* not known before the run"):
        cell.get_initial_state(inputs=x, batch_size=1)
    size = fs.placeholder(fs.int32, [])
    assert cell.get_initial_state(inputs=x, batch_size=size).shape.as_list() == [None, 5]
    assert cell.get_initial_state(inputs=fs.ones([3, 4]), batch_size=3).shape == [3, 5]


def test_the_text_of_a_cell_says_its_sizes(graph):
    cell = fs.nn.rnn_cell.LSTMCell(5, num_proj=2)
    want = "<fs.nn.rnn_cell.LSTMCell 'lstm_cell', state LSTMStateTuple(c=5, h=2), output 2>"
    assert repr(cell) == want
    assert repr(fs.nn.rnn_cell.RNNCell(name="none")) == "<fs.nn.rnn_cell.RNNCell 'none'>"
