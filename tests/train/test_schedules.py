"""Schedules against their formulas, for steps of whole numbers and of floats."""

import math

import numpy as np
import pytest

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")

T = fs.train
STEPS = [0, 1, 3, 4, 9, 10, 11, 12, 13, 20, 25, 35, 70]


def half_wave(done):
    return 0.5 * (1 + math.cos(math.pi * done))


def polynomial_cycle(n):
    cycles = max(1, math.ceil(n / 10))
    return 0.09 * (1 - n / (10 * cycles)) ** 2 + 0.01


def restarts(n, growth, height):
    length, start, times = 10, 0, 0
    while n - start >= length:
        start, length, times = start + length, length * growth, times + 1
    return 0.1 * (0.9 * height**times * half_wave((n - start) / length) + 0.1)


def linear_cosine(n):
    done = min(n, 10) / 10
    return 0.1 * ((0.1 + 1 - done) * half_wave(2 * 0.5 * done) + 0.01)


CASES = {
    "exponential": (
        lambda n: T.exponential_decay(0.1, n, 10, 0.5),
        lambda n: 0.1 * 0.5 ** (n / 10),
    ),
    "exponential_stairs": (
        lambda n: T.exponential_decay(0.1, n, 10, 0.5, staircase=True),
        lambda n: 0.1 * 0.5 ** (n // 10),
    ),
    "natural": (
        lambda n: T.natural_exp_decay(0.1, n, 10, 0.5),
        lambda n: 0.1 * math.exp(-0.5 * n / 10),
    ),
    "natural_stairs": (
        lambda n: T.natural_exp_decay(0.1, n, 10, 0.5, staircase=True),
        lambda n: 0.1 * math.exp(-0.5 * (n // 10)),
    ),
    "inverse": (
        lambda n: T.inverse_time_decay(0.1, n, 10, 0.5),
        lambda n: 0.1 / (1 + 0.5 * n / 10),
    ),
    "inverse_stairs": (
        lambda n: T.inverse_time_decay(0.1, n, 10, 0.5, staircase=True),
        lambda n: 0.1 / (1 + 0.5 * (n // 10)),
    ),
    "polynomial": (
        lambda n: T.polynomial_decay(0.1, n, 10, 0.01, power=0.5),
        lambda n: 0.09 * (1 - min(n, 10) / 10) ** 0.5 + 0.01,
    ),
    "polynomial_cycle": (
        lambda n: T.polynomial_decay(0.1, n, 10, 0.01, power=2.0, cycle=True),
        polynomial_cycle,
    ),
    "cosine": (
        lambda n: T.cosine_decay(0.1, n, 10, alpha=0.1),
        lambda n: 0.1 * (0.9 * half_wave(min(n, 10) / 10) + 0.1),
    ),
    "restarts": (
        lambda n: T.cosine_decay_restarts(0.1, n, 10, t_mul=2.0, m_mul=0.5, alpha=0.1),
        lambda n: restarts(n, 2, 0.5),
    ),
    "restarts_even": (
        lambda n: T.cosine_decay_restarts(0.1, n, 10, t_mul=1.0, m_mul=0.5, alpha=0.1),
        lambda n: restarts(n, 1, 0.5),
    ),
    "linear_cosine": (
        lambda n: T.linear_cosine_decay(0.1, n, 10, alpha=0.1, beta=0.01),
        linear_cosine,
    ),
    "noisy_linear_cosine": (
        lambda n: T.noisy_linear_cosine_decay(0.1, n, 10, initial_variance=0.0, alpha=0.1,
                                              beta=0.01),
        linear_cosine,
    ),
    "piecewise": (
        lambda n: T.piecewise_constant(n, [3, 12], [1.0, 0.5, 0.25]),
        lambda n: 1.0 if n <= 3 else 0.5 if n <= 12 else 0.25,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [fs.int32, fs.int64, fs.float32])
def test_values(sess, name, dtype):
    make, formula = CASES[name]
    step = fs.placeholder(dtype, [])
    rate = make(step)
    assert rate.dtype == fs.float32 and rate.shape.as_list() == []
    got = [sess.run(rate, {step: n}) for n in STEPS]
    np.testing.assert_allclose(got, [formula(n) for n in STEPS], rtol=1e-5, atol=1e-7)


def test_a_rate_of_float64_and_numbers_that_are_tensors(sess):
    rate = T.exponential_decay(
        fs.constant(0.1, fs.float64), 5, fs.constant(10), fs.constant(0.5), name="rate"
    )
    assert rate.dtype == fs.float64 and rate.op.name == "rate"
    np.testing.assert_allclose(sess.run(rate), 0.1 * 0.5**0.5, rtol=1e-12)


def test_noise_has_its_variance_and_falls(sess):
    step = fs.placeholder(fs.int32, [])
    noisy = T.noisy_linear_cosine_decay(1.0, step, 1000, initial_variance=1.0, beta=0.0)
    early = [float(sess.run(noisy, {step: 0})) for _ in range(400)]
    late = [float(sess.run(noisy, {step: 500})) for _ in range(400)]
    assert np.std(early) == pytest.approx(1.0, rel=0.15)
    assert np.std(late) == pytest.approx(0.5 * 501 ** (-0.55 / 2), rel=0.15)


def test_an_optimizer_follows_a_schedule(sess):
    w = fs.Variable(1.0)
    step = fs.train.get_or_create_global_step()
    rate = T.piecewise_constant(step, [1], [1.0, 0.5])
    train = T.GradientDescentOptimizer(rate).minimize(fs.identity(w), global_step=step)
    sess.run(fs.global_variables_initializer())
    values = []
    for _ in range(4):
        sess.run(train)
        values.append(float(sess.run(w)))
    assert values == [0.0, -1.0, -1.5, -2.0]


def test_clear_errors():
    with pytest.raises(ValueError, match="ExponentialDecay needs a global_step"):
        T.exponential_decay(0.1, None, 10, 0.5)
    with pytest.raises(ValueError, match="2 values and 2 boundaries"):
        T.piecewise_constant(fs.constant(1), [1, 2], [0.1, 0.2])
    with pytest.raises(TypeError, match="boundaries of dtype int32"):
        T.piecewise_constant(fs.constant(1), [1.0], [0.1, 0.2])
    with pytest.raises(TypeError, match="values of one dtype"):
        T.piecewise_constant(fs.constant(1), [1], [0.1, 2])
    with pytest.raises(TypeError, match="learning rate of floats"):
        T.cosine_decay(1, 1, 10)
