"""Gradients that go as codes: what is applied, what is kept for later, and how many bytes go."""

from __future__ import annotations

import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import DTypeError, InvalidArgumentError

MODES = ("compiled", "op", "tokens")
START = np.array([[1.0, -2.0], [0.5, 4.0]], "f4")
SLOPES = np.array([[1.0, -4.0], [2.25, 0.7]], "f4")


def trained(mode, steps, codec, **options):
    """The variable after each step of gradient descent by slopes."""
    with fs.Graph().as_default():
        v = fs.Variable(START)
        step = fs.train.get_or_create_global_step()
        if "first_step" in options:
            options["global_step"] = step
        optimizer = fs.train.GradientDescentOptimizer(1.0)
        if codec is not None:
            optimizer = fs.experimental.compress_gradients(optimizer, *codec, **options)
        train = optimizer.minimize(fs.reduce_sum(v * SLOPES), step)
        found = []
        with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
            sess.run(fs.global_variables_initializer())
            for _ in range(steps):
                sess.run(train)
                found.append(sess.run(v))
        return found


@pytest.mark.parametrize("mode", MODES)
def test_a_codec_that_loses_nothing_gives_the_same_bits(mode):
    same = (lambda g: g, lambda code, shape: code)
    expected = trained(mode, 3, None)
    for options in ({}, {"error_feedback": True}, {"first_step": 2}):
        for a, b in zip(trained(mode, 3, same, **options), expected, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("mode", MODES)
def test_the_largest_elements_go_and_the_others_go_later(mode):
    codec = fs.experimental.top_k_codec(1)
    plain = trained(mode, 2, codec)
    np.testing.assert_array_equal(plain[1], START - 2 * np.where(SLOPES == -4, SLOPES, 0))
    left, value = np.zeros_like(SLOPES), START.copy()
    for found in trained(mode, 5, codec, error_feedback=True):
        left = left + SLOPES
        sent = np.where(np.abs(left) == np.abs(left).max(), left, np.float32(0))
        value, left = value - sent, left - sent
        np.testing.assert_allclose(found, value, rtol=1e-6)


@pytest.mark.parametrize("mode", MODES)
def test_codes_go_from_a_step_on_in_the_same_graph(mode):
    codec = fs.experimental.top_k_codec(1)
    first, second, third = trained(mode, 3, codec, first_step=2)
    np.testing.assert_array_equal(second, START - 2 * SLOPES)
    np.testing.assert_array_equal(third, second - np.where(SLOPES == -4, SLOPES, 0))
    np.testing.assert_array_equal(first, START - SLOPES)


@pytest.mark.parametrize("mode", MODES)
def test_16_bits_of_each_element_go(mode):
    (found,) = trained(mode, 1, fs.experimental.bfloat16_codec())
    rounded = SLOPES.astype(fs.bfloat16.np_dtype).astype("f4")
    np.testing.assert_array_equal(found, START - rounded)


def test_what_goes_to_the_variables_device_is_the_code(graph):
    """Bytes of values that cross, by the plan's transfers."""
    gs = []
    with fs.device("/cpu:0"):
        v = fs.Variable(fs.zeros([100]))
    for r in (1, 2):
        with fs.device(f"/cpu:{r}"):
            gs.append(fs.identity(fs.constant(np.arange(100, dtype="f4") * r)))
    crossing = {}
    codecs = {"whole": None, "half": fs.experimental.bfloat16_codec()}
    codecs["few"] = fs.experimental.top_k_codec(5)
    for name, codec in codecs.items():
        optimizer = fs.train.GradientDescentOptimizer(1.0)
        if codec is None:
            train = optimizer.apply_gradients([(fs.add_n(gs) / 2.0, v)])
        else:
            optimizer = fs.experimental.compress_gradients(optimizer, *codec)
            train = optimizer.apply_gradients([(gs, v)])
        with fs.Session(config=fs.ConfigProto(device_count={"CPU": 3})) as sess:
            sess.run(fs.global_variables_initializer())
            nodes = sess.plan(train).program.walk()
            sizes = [n.inputs[0].spec.nbytes for n in nodes if n.op.type == "Transfer" and n.inputs]
            crossing[name] = sum(sizes)
            if name == "few":
                sess.run(train)
                assert sess.run(v).tolist() == [0.0] * 95 + [-1.5 * i for i in range(95, 100)]
    assert crossing["half"] * 2 == crossing["whole"] or crossing["whole"] == 0
    assert crossing["few"] <= 2 * 5 * 8


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda c: c("sgd", None, None), DTypeError, "expected an optimizer"),
        (
            lambda c: c(fs.train.AdamOptimizer(), None, None, first_step=3),
            InvalidArgumentError,
            "expected a global_step",
        ),
        (lambda c: fs.experimental.top_k_codec(0), InvalidArgumentError, "at least 1"),
        (
            lambda c: c(fs.train.AdamOptimizer(), None, None).apply_gradients([(None, 1)]),
            InvalidArgumentError,
            "no gradients were given",
        ),
        (
            lambda c: c(
                fs.train.AdamOptimizer(), lambda g: g, lambda code, shape: fs.cast(code, "float64")
            ).apply_gradients([(fs.ones([2]), fs.Variable([1.0, 2.0]))]),
            DTypeError,
            "expected decode to return",
        ),
    ],
)
def test_what_does_not_fit_is_refused(graph, make, error, text):
    with pytest.raises(error) as caught:
        make(fs.experimental.compress_gradients)
    assert text in str(caught.value)
