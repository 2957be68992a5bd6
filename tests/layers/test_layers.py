"""Layers: variables and their names, values by the functions they stand on, sharing, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import DTypeError, InvalidArgumentError, UnimplementedError

pytestmark = pytest.mark.usefixtures("graph")

RNG = np.random.default_rng(5)


def started() -> fs.Session:
    session = fs.Session()
    session.run(fs.global_variables_initializer())
    return session


def names() -> list[str]:
    return [v.name for v in fs.global_variables()]


def values(tensor: Any, x: Any = None, feed: Any = None) -> Any:
    with started() as session:
        return session.run(tensor, None if x is None else {x: feed})


# -- dense ----------------------------------------------------------------------------------------


def test_dense() -> None:
    x = fs.placeholder(fs.float32, [None, 3])
    layer = fs.layers.Dense(2, activation=fs.nn.relu, bias_initializer=fs.ones_initializer())
    y = layer(x)
    assert y.shape.as_list() == [None, 2]
    assert [v.name for v in layer.trainable_variables] == ["dense/kernel:0", "dense/bias:0"]
    assert (layer.name, layer.scope_name, layer.count_params()) == ("dense", "dense", 8)
    feed = RNG.normal(size=(4, 3)).astype("f4")
    with started() as session:
        got, kernel, bias = session.run([y, layer.kernel, layer.bias], {x: feed})
    np.testing.assert_allclose(got, np.maximum(feed @ kernel + bias, 0), rtol=1e-5, atol=1e-6)


def test_dense_of_more_axes() -> None:
    x = fs.constant(RNG.normal(size=(2, 4, 3)))
    layer = fs.layers.Dense(5, use_bias=False)
    y = layer(x)
    assert layer.kernel.dtype.base_dtype is fs.float64
    with started() as session:
        got, kernel, fed = session.run([y, layer.kernel, x])
    np.testing.assert_allclose(got, fed @ kernel, rtol=1e-12)


def test_scopes_are_named_once() -> None:
    x = fs.ones([1, 2])
    for _ in range(2):
        fs.layers.dense(x, 1)
    with fs.variable_scope("tower"):
        y = fs.layers.dense(x, 1, name="out")
    assert names()[::2] == ["dense/kernel:0", "dense_1/kernel:0", "tower/out/kernel:0"]
    assert y.op.name == "tower/out/BiasAdd"


def test_variables_are_shared_by_name() -> None:
    x = fs.ones([1, 2])
    first = fs.layers.dense(x, 3, name="fc", kernel_initializer=fs.random_normal_initializer())
    again = fs.layers.dense(x, 3, name="fc", reuse=True)
    with fs.variable_scope("", reuse=fs.AUTO_REUSE):
        third = fs.layers.dense(x, 3, name="fc")
    assert names() == ["fc/kernel:0", "fc/bias:0"]
    a, b, c = values([first, again, third])
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(a, c)


def test_a_layer_called_twice_has_one_set_of_variables() -> None:
    layer = fs.layers.Dense(3)
    a, b = layer(fs.ones([1, 2])), layer.apply(fs.ones([5, 2]))
    assert len(fs.global_variables()) == 2
    np.testing.assert_array_equal(*[v[0] for v in values([a, b])])


def test_losses_and_frozen_layers() -> None:
    def penalty(v: Any) -> Any:
        return fs.reduce_sum(fs.square(v))

    layer = fs.layers.Dense(
        2,
        kernel_initializer=fs.ones_initializer(),
        kernel_regularizer=penalty,
        activity_regularizer=fs.reduce_sum,
        trainable=False,
    )
    layer(fs.ones([1, 3]))
    assert fs.trainable_variables() == [] == layer.trainable_weights
    assert len(layer.non_trainable_variables) == 2
    assert values(layer.losses) == [6.0, 6.0]
    assert fs.losses.get_regularization_losses() == layer.losses


def test_a_layer_of_ones_own() -> None:
    class Scale(fs.layers.Layer):
        def build(self, input_shape: Any) -> None:
            self.factor = self.add_weight(
                "factor", input_shape[-1:], initializer=fs.ones_initializer
            )
            self.count = self.add_variable("count", [], fs.int32, trainable=False)

        def call(self, inputs: Any, power: int = 1) -> Any:
            self.add_update(self.count.assign_add(1).op)
            return inputs * self.factor**power

    layer = Scale(name="mine")
    y = layer(fs.constant([[1.0, 2.0]]), power=2)
    assert names() == ["mine/factor:0", "mine/count:0"]
    assert [v.op.name for v in layer.trainable_variables] == ["mine/factor"]
    assert fs.get_collection(fs.GraphKeys.UPDATE_OPS) == layer.updates
    np.testing.assert_array_equal(values(y), [[1, 2]])
    assert layer.compute_output_shape([7, 3]).as_list() == [7, 3]
    assert len(fs.global_variables()) == 2


# -- convolutions and pools -----------------------------------------------------------------------

IMAGES = RNG.normal(size=(2, 6, 5, 3)).astype("f4")


def first(x: Any) -> Any:
    """Channels first."""
    return np.moveaxis(x, -1, 1)


@pytest.mark.parametrize("padding", ["valid", "same"])
@pytest.mark.parametrize(("strides", "rate"), [(1, 1), ((2, 1), 1), (1, (1, 2))])
def test_conv2d(padding: str, strides: Any, rate: Any) -> None:
    x = fs.placeholder(fs.float32, [None, None, None, 3])
    layer = fs.layers.Conv2D(4, (3, 2), strides, padding, dilation_rate=rate)
    y = layer(x)
    assert [v.op.name for v in layer.weights] == ["conv2d/kernel", "conv2d/bias"]
    pair = [strides] * 2 if isinstance(strides, int) else strides
    rates = [rate] * 2 if isinstance(rate, int) else rate
    want = fs.nn.conv2d(x, layer.kernel, pair, padding.upper(), dilations=rates)
    got, wanted = values([y, want], x, IMAGES)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_channels_first() -> None:
    last = fs.layers.Conv2D(4, 3, name="a")
    turned = fs.layers.Conv2D(4, 3, data_format="channels_first", name="a", _reuse=True)
    a, b = last(fs.constant(IMAGES)), turned(fs.constant(first(IMAGES)))
    pooled = [
        fs.layers.max_pooling2d(a, 2, 2),
        fs.layers.max_pooling2d(b, 2, 2, data_format="channels_first"),
    ]
    flat = [
        fs.layers.flatten(pooled[0]),
        fs.layers.flatten(pooled[1], data_format="channels_first"),
    ]
    a, b, c, d = values([*pooled, *flat])
    np.testing.assert_allclose(first(a), b, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(c, d, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("function", "window", "rank"),
    [("conv1d", 3, 3), ("conv3d", (1, 2, 2), 5), ("conv2d_transpose", 3, 4),
     ("conv3d_transpose", 2, 5), ("separable_conv1d", 2, 3), ("separable_conv2d", 2, 4)],
)  # fmt: skip
@pytest.mark.parametrize("form", ["channels_last", "channels_first"])
def test_other_convolutions(function: str, window: Any, rank: int, form: str) -> None:
    if function == "conv3d_transpose" and form == "channels_first":
        form = "channels_last"
    dims = [2, *range(4, 2 + rank), 3]
    array = RNG.normal(size=dims).astype("f4")
    array = first(array) if form == "channels_first" else array
    call = getattr(fs.layers, function)
    known = call(fs.constant(array), 4, window, 2, "same", form, name="one")
    x = fs.placeholder(fs.float32, [d if d == 3 else None for d in array.shape])
    unknown = call(x, 4, window, 2, "same", form, name="one", reuse=True)
    a, b = values([known, unknown], x, array)
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert known.shape.as_list() == list(a.shape)
    channels = a.shape[1 if form == "channels_first" else -1]
    assert channels == 4
    factor = 2 if "transpose" in function else 0.5
    spatial = list(a.shape[2:] if form == "channels_first" else a.shape[1:-1])
    assert spatial == [int(np.ceil(d * factor)) for d in dims[1:-1]]


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize(("kind", "reduce"), [("max", np.max), ("average", np.mean)])
def test_pools(n: int, kind: str, reduce: Any) -> None:
    array = RNG.normal(size=(2, *[4] * n, 3))
    y = getattr(fs.layers, f"{kind}_pooling{n}d")(fs.constant(array), 4, 1)
    assert y.op.name.startswith(f"{kind}_pooling{n}d")
    axes = tuple(range(1, n + 1))
    np.testing.assert_allclose(values(y), reduce(array, axis=axes, keepdims=True), rtol=1e-12)


@pytest.mark.parametrize("shape", [[None, 2, 3], [2, None, 3], [None, 0], [4], None])
def test_flatten(shape: Any) -> None:
    x = fs.placeholder(fs.float32, shape)
    array = np.zeros([2 if d is None else d for d in shape or [2, 2, 3]], "f4")
    y = fs.layers.flatten(x)
    got = values(y, x, array)
    assert got.shape == (len(array), int(np.prod(array.shape[1:])))
    assert y.shape.is_compatible_with(got.shape)


# -- dropout and batch normalization --------------------------------------------------------------


def test_dropout_in_training_only() -> None:
    x, flag = fs.ones([1000]), fs.placeholder(fs.bool, [])
    always, never = fs.layers.dropout(x, 0.25, training=True), fs.layers.dropout(x, 0.25)
    asked = fs.layers.dropout(x, 0.25, training=flag)
    with fs.Session() as session:
        a, b, c = session.run([always, never, asked], {flag: True})
        d = session.run(asked, {flag: False})
    for thinned in (a, c):
        assert set(np.unique(thinned)) == {0, np.float32(1 / 0.75)}
        assert 650 < np.count_nonzero(thinned) < 850
    assert (b == 1).all()
    assert (d == 1).all()


@pytest.mark.parametrize(
    ("shape", "axis", "fused"),
    [([8, 3], -1, None), ([4, 5, 3], 1, None), ([4, 3, 5, 2], 1, False), ([4, 3, 5, 2], 1, True),
     ([4, 3, 5, 2], -1, None), ([4, 3, 2], [1, 2], None)],
)  # fmt: skip
def test_batch_normalization(shape: list[int], axis: Any, fused: bool | None) -> None:
    array = RNG.normal(2, 3, shape)
    x, flag = fs.placeholder(fs.float64, [None, *shape[1:]]), fs.placeholder(fs.bool, [])
    layer = fs.layers.BatchNormalization(
        axis, momentum=0.9, beta_initializer=fs.ones_initializer(), fused=fused
    )
    y = layer(x, training=flag)
    axes = [a % len(shape) for a in (axis if isinstance(axis, list) else [axis])]
    others = tuple(i for i in range(len(shape)) if i not in axes)
    mean, variance = (f(array, axis=others, keepdims=True) for f in (np.mean, np.var))
    sample = 1.0
    if layer.fused:
        n = array.size // shape[axes[0]]
        sample = n / (n - 1)
    with started() as session:
        got, *_ = session.run([y, *layer.updates], {x: array, flag: True})
        want = (array - mean) / np.sqrt(variance + 1e-3) + 1
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-9)
        averages = session.run([layer.moving_mean, layer.moving_variance])
        wanted = [0.1 * mean, 0.9 + 0.1 * sample * variance]
        for a, w in zip(averages, wanted):
            np.testing.assert_allclose(a.reshape(w.shape), w, rtol=1e-6)
        got, *_ = session.run([y, *layer.updates], {x: array, flag: False})
        want = (array - wanted[0]) / np.sqrt(wanted[1] + 1e-3) + 1
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-9)
        for a, b in zip(averages, session.run([layer.moving_mean, layer.moving_variance])):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "argument",
    [{"renorm": True}, {"renorm_clipping": {"rmax": 2}}, {"virtual_batch_size": 2},
     {"adjustment": print}],
)  # fmt: skip
def test_batch_normalization_that_there_is_not(argument: dict[str, Any]) -> None:
    x = fs.placeholder(fs.float32, [4, 3])
    with pytest.raises(UnimplementedError, match=f"no {next(iter(argument))}, got"):
        fs.layers.batch_normalization(x, **argument)


def test_batch_normalization_without_training() -> None:
    x = fs.constant(IMAGES)
    y = fs.layers.batch_normalization(x, center=False, scale=False)
    assert names() == ["batch_normalization/moving_mean:0", "batch_normalization/moving_variance:0"]
    assert fs.get_collection(fs.GraphKeys.UPDATE_OPS) == []
    assert fs.trainable_variables() == []
    np.testing.assert_allclose(values(y), IMAGES / np.sqrt(1.001), rtol=1e-5, atol=1e-6)


def test_a_model_of_layers_is_trained() -> None:
    points = RNG.normal(size=(64, 2)).astype("f4")
    classes = (points[:, 0] * points[:, 1] > 0).astype("i4")
    x, training = fs.constant(points), fs.placeholder_with_default(False, [])
    h = fs.layers.dense(x, 16, use_bias=False)
    h = fs.nn.relu(fs.layers.batch_normalization(h, training=training))
    loss = fs.losses.sparse_softmax_cross_entropy(classes, fs.layers.dense(h, 2))
    with fs.control_dependencies(fs.get_collection(fs.GraphKeys.UPDATE_OPS)):
        step = fs.train.AdamOptimizer(0.05).minimize(loss)
    with started() as session:
        before = session.run(loss, {training: True})
        for _ in range(60):
            session.run(step, {training: True})
        assert session.run(loss, {training: True}) < 0.3 * before


# -- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fs.layers.dense(fs.ones([3]), 2), "rank 2 at least"),
        (lambda: fs.layers.dense(fs.placeholder(fs.float32, [2, None]), 2), "known number"),
        (lambda: fs.layers.dense(fs.ones([1, 3]), 0), "1 unit"),
        (lambda: fs.layers.conv2d(fs.ones([2, 3, 4]), 2, 1), "rank 4"),
        (lambda: fs.layers.conv2d(fs.ones([1, 2, 3, 4]), 2, (1, 2, 3)), "kernel_size"),
        (lambda: fs.layers.conv2d(fs.ones([1, 2, 3, 4]), 2, 1, padding="full"), "padding"),
        (lambda: fs.layers.Conv2D(2, 1, strides=2, dilation_rate=2), "dilation"),
        (lambda: fs.layers.max_pooling2d(fs.ones([1, 2, 2, 1]), 0, 1), "pool_size"),
        (lambda: fs.layers.batch_normalization(fs.ones([2, 3]), axis=2), "axes of rank 2"),
        (lambda: fs.layers.batch_normalization(fs.ones([2, 3]), fused=True), "fused"),
        (lambda: fs.layers.Dense(1).count_params(), "before its first call"),
    ],
)
def test_errors(make: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        make()


def test_an_input_that_does_not_fit_the_variables() -> None:
    layer = fs.layers.Dense(2)
    layer(fs.ones([1, 3]))
    with pytest.raises(InvalidArgumentError, match="3 elements along axis -1"):
        layer(fs.ones([1, 4]))
    with fs.Graph().as_default(), pytest.raises(InvalidArgumentError, match="another graph"):
        layer(fs.ones([1, 3]))


def test_integers_are_refused() -> None:
    with pytest.raises(DTypeError, match="floating-point"):
        fs.layers.dense(fs.ones([1, 3], fs.int32), 2)


def test_unknown_arguments_are_refused() -> None:
    with pytest.raises(TypeError, match="unitz"):
        fs.layers.dense(fs.ones([1, 3]), 2, unitz=2)


def test_activations_by_name(sess):
    x = fs.constant([[-1.0, 2.0]])
    y = fs.layers.dense(x, 2, activation="relu", kernel_initializer=fs.ones_initializer())
    assert y.op.type == "Relu"
    image = fs.ones([1, 3, 3, 1])
    assert fs.layers.conv2d(image, 2, 2, activation="tanh").op.type == "Tanh"
    with pytest.raises(ValueError, match="name of one in fs.nn as activation, got 'softly'"):
        fs.layers.dense(x, 2, activation="softly")


def test_what_a_layer_does_unless_its_class_says_otherwise(graph):
    x = fs.ones([2, 3])
    assert fs.layers.Layer()(x) is x
    assert repr(fs.layers.InputSpec(ndim=2, axes={-1: 3})) == "InputSpec(ndim=2, axes={-1: 3})"


def test_flatten_of_an_unknown_rank(graph):
    x = fs.placeholder(fs.float32)
    assert fs.layers.flatten(x).shape.as_list() == [None, None]
    with pytest.raises(ValueError, match="known rank"):
        fs.layers.flatten(x, data_format="channels_first")
