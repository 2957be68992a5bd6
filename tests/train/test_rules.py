"""Every update rule against the same rule written down in NumPy, dense and sparse."""

import numpy as np
import pytest

import flowscope as fs
from flowscope.ops.state import training_ops
from flowscope.train.optimizers.rules import RuleOptimizer

pytestmark = pytest.mark.usefixtures("graph")

STEPS = 4
START = [[1.0, -2.0], [0.05, 4.0], [-0.3, 0.2]]


def descent(x, s, g, k):
    return x - 0.1 * g


def momentum(x, s, g, k):
    s["momentum"] = 0.9 * s["momentum"] + g
    return x - 0.1 * s["momentum"]


def nesterov(x, s, g, k):
    s["momentum"] = 0.9 * s["momentum"] + g
    return x - 0.1 * (g + 0.9 * s["momentum"])


def adagrad(x, s, g, k):
    s["accumulator"] = s["accumulator"] + g * g
    return x - 0.1 * g / np.sqrt(s["accumulator"])


def toward_zero(x, by):
    return np.sign(x) * np.maximum(np.abs(x) - by, 0)


def dual_averaging(x, s, g, k):
    s["gradient_accumulator"] = s["gradient_accumulator"] + g
    s["gradient_squared_accumulator"] = s["gradient_squared_accumulator"] + g * g
    top = -0.5 * toward_zero(s["gradient_accumulator"], 0.05 * (k + 1))
    return top / (0.02 * (k + 1) * 0.5 + np.sqrt(s["gradient_squared_accumulator"]))


def adadelta(x, s, g, k):
    s["accum"] = 0.9 * s["accum"] + 0.1 * g * g
    step = np.sqrt(s["accum_update"] + 1e-3) / np.sqrt(s["accum"] + 1e-3) * g
    s["accum_update"] = 0.9 * s["accum_update"] + 0.1 * step * step
    return x - 0.5 * step


def rms(x, s, g, k):
    s["rms"] = 0.9 * s["rms"] + 0.1 * g * g
    s["momentum"] = 0.5 * s["momentum"] + 0.1 * g / np.sqrt(s["rms"] + 1e-3)
    return x - s["momentum"]


def centered_rms(x, s, g, k):
    s["rms"] = 0.9 * s["rms"] + 0.1 * g * g
    s["mg"] = 0.9 * s["mg"] + 0.1 * g
    spread = s["rms"] - s["mg"] ** 2
    s["momentum"] = 0.5 * s["momentum"] + 0.1 * g / np.sqrt(spread + 1e-3)
    return x - s["momentum"]


def ftrl(x, s, g, k, power=0.5, l2=0.02):
    before, s["accum"] = s["accum"], s["accum"] + g * g
    pull = (s["accum"] ** power - before**power) / 0.5
    s["linear"] = s["linear"] + g + 2 * 0.03 * x - pull * x
    return -toward_zero(s["linear"], 0.05) / (s["accum"] ** power / 0.5 + 2 * l2)


def ftrl_power(x, s, g, k):
    return ftrl(x, s, g, k, 0.3, 0.02 + 0.3 / (2 * 0.5))


def proximal_descent(x, s, g, k):
    return toward_zero(x - 0.1 * g, 0.1 * 0.5) / (1 + 0.2 * 0.1)


def proximal_adagrad(x, s, g, k):
    s["accumulator"] = s["accumulator"] + g * g
    rate = 0.5 / np.sqrt(s["accumulator"])
    return toward_zero(x - rate * g, rate * 0.3) / (1 + 0.1 * rate)


def adam(x, s, g, k):
    s["m"] = 0.8 * s["m"] + 0.2 * g
    s["v"] = 0.9 * s["v"] + 0.1 * g * g
    rate = 0.1 * np.sqrt(1 - 0.9 ** (k + 1)) / (1 - 0.8 ** (k + 1))
    return x - rate * s["m"] / (np.sqrt(s["v"]) + 1e-3)


def step():
    return fs.train.get_or_create_global_step()


T = fs.train
#: Name, how it is made, the rule, the slots' first numbers, and the names of the slots' variables.
CASES = [
    ("descent", lambda: T.GradientDescentOptimizer(0.1), descent, {}, []),
    ("momentum", lambda: T.MomentumOptimizer(0.1, 0.9), momentum, {"momentum": 0},
     ["w/Momentum"]),
    ("nesterov", lambda: T.MomentumOptimizer(0.1, 0.9, use_nesterov=True), nesterov,
     {"momentum": 0}, ["w/Momentum"]),
    ("adagrad", lambda: T.AdagradOptimizer(0.1), adagrad, {"accumulator": 0.1}, ["w/Adagrad"]),
    ("dual_averaging", lambda: T.AdagradDAOptimizer(0.5, step(), 0.2, 0.05, 0.02), dual_averaging,
     {"gradient_accumulator": 0, "gradient_squared_accumulator": 0.2},
     ["w/AdagradDA", "w/AdagradDA_1"]),
    ("adadelta", lambda: T.AdadeltaOptimizer(0.5, 0.9, 1e-3), adadelta,
     {"accum": 0, "accum_update": 0}, ["w/Adadelta", "w/Adadelta_1"]),
    ("rms", lambda: T.RMSPropOptimizer(0.1, 0.9, 0.5, 1e-3), rms, {"rms": 1, "momentum": 0},
     ["w/RMSProp", "w/RMSProp_1"]),
    ("centered_rms", lambda: T.RMSPropOptimizer(0.1, 0.9, 0.5, 1e-3, centered=True), centered_rms,
     {"rms": 1, "mg": 0, "momentum": 0}, ["w/RMSProp", "w/RMSProp_1", "w/RMSProp_2"]),
    ("ftrl", lambda: T.FtrlOptimizer(0.5, -0.5, 0.2, 0.05, 0.02,
                                     l2_shrinkage_regularization_strength=0.03), ftrl,
     {"accum": 0.2, "linear": 0}, ["w/Ftrl", "w/Ftrl_1"]),
    ("ftrl_power", lambda: T.FtrlOptimizer(0.5, -0.3, 0.2, 0.05, 0.02, beta=0.3, accum_name="A",
                                           l2_shrinkage_regularization_strength=0.03),
     ftrl_power, {"accum": 0.2, "linear": 0}, ["w/A", "w/Ftrl"]),
    ("proximal_descent", lambda: T.ProximalGradientDescentOptimizer(0.1, 0.5, 0.2),
     proximal_descent, {}, []),
    ("proximal_adagrad", lambda: T.ProximalAdagradOptimizer(0.5, 0.2, 0.3, 0.1), proximal_adagrad,
     {"accumulator": 0.2}, ["w/ProximalAdagrad"]),
    ("adam", lambda: T.AdamOptimizer(0.1, 0.8, 0.9, 1e-3), adam, {"m": 0, "v": 0},
     ["beta1_power", "beta2_power", "w/Adam", "w/Adam_1"]),
]  # fmt: skip
RULES = [pytest.param(*case[1:], id=case[0]) for case in CASES]


def slots_of(first, shape):
    return {name: np.full(shape, float(number)) for name, number in first.items()}


def check(sess, optimizer, w, x, slots):
    np.testing.assert_allclose(sess.run(w), x, rtol=2e-5, atol=1e-6)
    for name, value in slots.items():
        got = sess.run(optimizer.get_slot(w, name))
        np.testing.assert_allclose(got, value, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize(("make", "rule", "first", "names"), RULES)
def test_dense_updates(sess, make, rule, first, names):
    w = fs.Variable(np.array(START, np.float32), name="w")
    optimizer = make()
    g = fs.placeholder(fs.float32, [3, 2])
    train = optimizer.apply_gradients([(g, w)], step())
    sess.run(fs.global_variables_initializer())
    x, slots = np.array(START), slots_of(first, (3, 2))
    rng = np.random.default_rng(3)
    for k in range(STEPS):
        grad = rng.normal(size=(3, 2)).astype(np.float32)
        sess.run(train, {g: grad})
        x = rule(x, slots, grad.astype(float), k)
        check(sess, optimizer, w, x, slots)
    assert optimizer.get_slot_names() == sorted(first)
    assert [v.op.name for v in optimizer.variables()] == names
    assert fs.trainable_variables() == [w]


@pytest.mark.parametrize(("make", "rule", "first", "names"), RULES)
def test_sparse_updates_touch_their_rows_and_repeats_add_up(sess, make, rule, first, names):
    w = fs.Variable(np.array(START, np.float32), name="w")
    optimizer = make()
    values = fs.placeholder(fs.float32, [None, 2])
    rows = fs.placeholder(fs.int64, [None])
    train = optimizer.apply_gradients([(fs.IndexedSlices(values, rows), w)], step())
    sess.run(fs.global_variables_initializer())
    x, slots = np.array(START), slots_of(first, (3, 2))
    rng = np.random.default_rng(3)
    for k, places in enumerate([[2, 0, 2], [1], [0, 1], [2, 2, 2]]):
        grad = rng.normal(size=(len(places), 2)).astype(np.float32)
        sess.run(train, {values: grad, rows: places})
        whole = np.zeros((3, 2))
        np.add.at(whole, places, grad.astype(float))
        # Adam's moments decay everywhere, so every row moves.
        touched = [0, 1, 2] if rule is adam else sorted(set(places))
        some = {name: s[touched] for name, s in slots.items()}
        x[touched] = rule(x[touched], some, whole[touched], k)
        for name, s in some.items():
            slots[name][touched] = s
        check(sess, optimizer, w, x, slots)


def test_every_rule_is_in_the_table():
    tested = {type(make()._op) for _, make, *_ in CASES}
    assert tested == set(training_ops.Apply.__subclasses__())
    assert {type(make()) for _, make, *_ in CASES} == set(RuleOptimizer.__subclasses__())


@pytest.mark.parametrize(("make", "rule", "first", "names"), RULES)
@pytest.mark.parametrize("is_leased", [False, True])
def test_large_arrays_go_by_stretches(sess, make, rule, first, names, is_leased):
    """More than a stretch, not a multiple of one; with a reader of the old values, or without."""
    rng = np.random.default_rng(1)
    start = rng.normal(size=(181, 401)).astype(np.float32)
    grad = rng.normal(size=start.shape).astype(np.float32)
    w = fs.Variable(start, name="w")
    optimizer = make()
    # A gradient that does not lie row by row in memory.
    g = fs.transpose(fs.placeholder(fs.float32, [401, 181], name="g"))
    train = optimizer.apply_gradients([(g, w)], step())
    sess.run(fs.global_variables_initializer())
    held = [sess.variable_state(v.handle).read() for v in fs.global_variables() if is_leased]
    copies = [np.copy(a) for a in held]
    sess.run(train, {"g:0": np.ascontiguousarray(grad.T)})
    slots = slots_of(first, start.shape)
    x = rule(start.astype(float), slots, grad.astype(float), 0)
    np.testing.assert_allclose(sess.run(w), x, rtol=2e-4, atol=2e-5)
    for name, value in slots.items():
        got = sess.run(optimizer.get_slot(w, name))
        np.testing.assert_allclose(got, value, rtol=2e-4, atol=2e-5)
    for array, copy in zip(held, copies, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize(("make", "rule", "first", "names"), RULES)
@pytest.mark.parametrize("dtype", [fs.float16, fs.bfloat16, fs.float64])
def test_other_dtypes_and_scalars(sess, make, rule, first, names, dtype):
    w = fs.Variable(fs.cast(fs.constant(START), dtype), name="w")
    v = fs.Variable(fs.cast(fs.constant(2.0), dtype), name="v")
    optimizer = make()
    grads = [(fs.ones_like(w), w), (fs.ones_like(v), v)]
    train = optimizer.apply_gradients(grads, step())
    sess.run(fs.global_variables_initializer())
    sess.run(train)
    tolerance = {fs.float16: 5e-3, fs.bfloat16: 5e-2, fs.float64: 1e-6}[dtype]
    for variable, start in ((w, START), (v, 2.0)):
        x = rule(np.array(start), slots_of(first, np.shape(start)), np.ones(np.shape(start)), 0)
        got = sess.run(variable)
        assert got.dtype == dtype.as_numpy_dtype and got.shape == np.shape(start)
        np.testing.assert_allclose(got.astype(float), x, rtol=tolerance, atol=tolerance)


#: Rules in which the rate divides, or the weights do not follow from the weights before.
NO_ZERO_RATE = {"dual_averaging", "ftrl", "ftrl_power"}


@pytest.mark.parametrize("make", [pytest.param(c[1], id=c[0]) for c in CASES
                                  if c[0] not in NO_ZERO_RATE])  # fmt: skip
def test_a_rate_of_zero_changes_no_variable(sess, make):
    """What a comparison run does: the whole step, and the model stays as it is."""
    optimizer = make()
    optimizer._hyper[next(iter(optimizer._hyper))] = 0.0
    w = fs.Variable(np.array(START, np.float32), name="w")
    train = optimizer.apply_gradients([(fs.ones([3, 2]), w)])
    sess.run(fs.global_variables_initializer())
    sess.run(train)
    np.testing.assert_array_equal(sess.run(w), np.array(START, np.float32))


def test_rows_out_of_range_and_wrong_shapes_are_refused_before_anything_changes(sess):
    w = fs.Variable(np.array(START, np.float32), name="w")
    values, rows = fs.placeholder(fs.float32), fs.placeholder(fs.int32, [None])
    optimizer = fs.train.MomentumOptimizer(0.1, 0.9)
    train = optimizer.apply_gradients([(fs.IndexedSlices(values, rows), w)])
    dense = optimizer.apply_gradients([(values, w)])
    sess.run(fs.global_variables_initializer())
    with pytest.raises(
        fs.errors.InvalidArgumentError, match=r"expected indices in \[0, 3\), got 3"
    ):
        sess.run(train, {values: np.ones((2, 2)), rows: [0, 3]})
    with pytest.raises(fs.errors.InvalidArgumentError, match=r"shape \[2,3\] does not fit"):
        sess.run(train, {values: np.ones((2, 3)), rows: [0, 1]})
    with pytest.raises(fs.errors.InvalidArgumentError, match=r"shape \[2,3\] does not fit"):
        sess.run(dense, {values: np.ones((2, 3))})
    np.testing.assert_array_equal(sess.run(w), np.array(START, np.float32))
    assert not sess.run(optimizer.get_slot(w, "momentum")).any()


def test_gradients_that_cannot_fit_are_refused_while_building():
    w = fs.Variable(np.array(START, np.float32), name="w")
    optimizer = fs.train.GradientDescentOptimizer(0.1)
    with pytest.raises(ValueError, match=r"expected a gradient of shape \[3,2\].*got \[2,3\]"):
        optimizer.apply_gradients([(fs.ones([2, 3]), w)])
    with pytest.raises(ValueError, match=r"expected a gradient of shape \[1,2\].*got \[1,3\]"):
        optimizer.apply_gradients([(fs.IndexedSlices(fs.ones([1, 3]), [0]), w)])
    with pytest.raises(TypeError, match="expected float32, got float64"):
        optimizer.apply_gradients([(fs.ones([3, 2], fs.float64), w)])
    with pytest.raises(ValueError, match="expected alpha as a scalar of dtype float32"):
        fs.train.GradientDescentOptimizer([0.1, 0.2]).apply_gradients([(fs.ones([3, 2]), w)])


def test_slots_without_values_are_all_named(sess):
    w = fs.Variable([1.0], name="w")
    train = fs.train.AdamOptimizer().minimize(w * w)
    sess.run(w.initializer)
    with pytest.raises(fs.errors.FailedPreconditionError, match='"w/Adam", "w/Adam_1"'):
        sess.run(train)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        lambda: fs.train.GradientDescentOptimizer(0.5),
        lambda: fs.train.MomentumOptimizer(0.5, 0.5, use_nesterov=True),
        lambda: fs.train.AdagradOptimizer(0.5),
        lambda: fs.train.AdadeltaOptimizer(0.5, 0.75, 2.0**-7),
        lambda: fs.train.RMSPropOptimizer(0.5, 0.75, centered=True, epsilon=2.0**-7),
        lambda: fs.train.AdamOptimizer(0.5, 0.5, 0.75, 2.0**-7),
        lambda: fs.train.FtrlOptimizer(3.0, -0.5, 0.125, 2.0**-7),
        lambda: fs.train.ProximalAdagradOptimizer(0.125, 0.125, 2.0**-7, 0.25),
    ],
)
def test_short_numbers_are_updated_in_float32_and_rounded_once(sess, make, is_sparse, dtype):
    rng = np.random.default_rng(0)
    short = fs.as_dtype(dtype).np_dtype
    first, slope = rng.uniform(0.5, 1.5, (2, 3, 2)).astype(short)
    found = []
    for kind in (short, np.float64):
        v = fs.Variable(first.astype(kind))
        grad = fs.constant(slope.astype(kind))
        given = fs.IndexedSlices(grad, fs.constant([0, 1, 1]), fs.constant([3, 2]))
        update = make().apply_gradients([(given if is_sparse else grad, v)])
        sess.run(fs.global_variables_initializer())
        sess.run(update)
        found.append(sess.run(v).astype(np.float64))
    ulp = np.exp2(np.floor(np.log2(np.abs(found[1]))) - (10 if dtype == "float16" else 7))
    assert np.max(np.abs(found[0] - found[1]) / ulp) < 1
