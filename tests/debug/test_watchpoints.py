"""Watchpoints: what is not finite, and which operation has made it, in all modes."""

import numpy as np
import pytest

import flowscope as fs
from flowscope.debug.watchpoints import is_finite

pytestmark = pytest.mark.usefixtures("graph")
REFUSED = fs.errors.InvalidArgumentError


@pytest.fixture(params=["compiled", "op", "tokens"])
def sess(request):
    with fs.Session(config=fs.ConfigProto(mode=request.param)) as made:
        yield made


def test_the_operation_that_makes_the_first_one_is_named(sess):
    x = fs.placeholder(fs.float32, [3], name="x")
    a = fs.log(x, name="a")
    b = fs.nn.relu(fs.multiply(a, 2.0, name="b"))
    y = fs.reduce_sum(fs.exp(b, name="c"), name="y")
    watch = sess.debug.watch()
    assert sess.run(y, {x: [1.0, 2.0, 3.0]}) > 0 and watch.hits == 0
    with pytest.raises(
        REFUSED, match=r'not finite: inf in the output of "a" \(Log\) of "x:0"'
    ) as e:
        sess.run(y, {x: [1.0, 0.0, 3.0]})
    assert e.value.op is a.op and "there before" not in str(e.value)
    with pytest.raises(REFUSED, match='nan in the output of "a"'):
        sess.run(y, {x: [1.0, -1.0, 3.0]})
    assert watch.hits == 2 and watch.found.op is a.op
    watch.remove()
    sess.run(y, {x: [1.0, 0.0, 3.0]})


def test_the_iteration_is_named(sess):
    x = fs.placeholder(fs.float64, [2], name="x")

    def body(i, v):
        return i + 1, fs.multiply(v, v, name="square")

    y = fs.while_loop(lambda i, v: i < 20, body, [0, x], name="loop")[1]
    watch = sess.debug.watch()
    with pytest.raises(REFUSED, match='"loop/body/square" .* in iteration 8, step 0'):
        sess.run(y, {x: [1.0, 10.0]})
    assert watch.found.iterations == (8,)


def test_what_held_one_before_is_named_as_such(sess):
    x = fs.placeholder(fs.float32, [2], name="x")
    v = fs.Variable([1.0, 2.0], name="v")
    mask = fs.constant([[0.0, -np.inf]], name="mask")
    y = fs.add(x * v, 1.0, name="y")
    z = fs.matmul(mask, fs.expand_dims(v, 1), name="z")
    sess.run(fs.global_variables_initializer())
    sess.debug.watch()
    with pytest.raises(REFUSED, match='there before in "x:0", which is fed'):
        sess.run(y, {x: [np.nan, 1.0]})
    with pytest.raises(REFUSED, match='there before in "mask:0", a constant'):
        sess.run(z)
    v.load([np.inf, 1.0], sess)
    with pytest.raises(REFUSED, match='there before in "v", a variable'):
        sess.run(y, {x: [1.0, 1.0]})


def test_some_are_watched_with_exceptions_and_a_step_can_be_held(sess):
    x = fs.placeholder(fs.float32, [2], name="x")
    with fs.name_scope("masked"):
        a = fs.log(x, name="a")
    y = fs.reciprocal(a, name="y")
    sess.debug.watch(exceptions=["masked"])
    assert sess.run(y, {x: [0.0, 2.0]})[0] == 0
    sess.debug.clear()
    watch = sess.debug.watch(op_type="Log", raises=False)
    stops = []
    sess.debug.on_stop(lambda stop: stops.append((stop.breakpoint, stop.value(a))))
    sess.run(y, {x: [0.0, 2.0]})
    [(point, value)] = stops
    assert point is watch and np.isinf(value[0]) and "Log" in repr(watch)
    with pytest.raises(REFUSED, match="expected a list of names"):
        sess.debug.watch(exceptions="masked")


def test_training_that_diverges_is_caught_where_it_begins(sess):
    x = fs.placeholder(fs.float32, [None, 2], name="x")
    w = fs.Variable([[1.0], [1.0]], name="w")
    loss = fs.reduce_mean(fs.square(fs.matmul(x, w, name="product")), name="loss")
    train = fs.train.GradientDescentOptimizer(1e12).minimize(loss)
    sess.run(fs.global_variables_initializer())
    sess.debug.watch()

    def fit():
        for _ in range(10):
            sess.run([train, loss], {x: np.ones((4, 2), "f")})

    with pytest.raises(REFUSED, match="not finite: inf") as e:
        fit()
    assert e.value.op is not None
    assert np.isfinite(sess.run(w)).all(), "the update that would have spoilt it is not made"


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.full(5, 3e38, "f"), True),
        (np.array([1.0, np.nan]), False),
        (np.array([[1.0, np.inf]]).T, False),
        (np.ones((4, 4), "f")[::2, ::2], True),
        (np.array([1, 2]), True),
        (np.float32(np.inf), False),
        (np.float64(2.0), True),
        (np.array([1e4, np.inf], np.float16), False),
        (np.array([1 + 1j, complex(0, np.nan)]), False),
        (np.zeros(0), True),
        (None, True),
    ],
)
def test_what_is_finite(array, expected):
    with np.errstate(all="ignore"):
        assert is_finite(array) is expected


@pytest.mark.parametrize(
    ("when", "op", "iterations"),
    [
        ("max > 8", "square", (2,)),
        (lambda v: v.ndim == 1 and v[0] > 100, "square", (4,)),
        ("rank > 0 and shape != (2,) or value == 4", "add", (3,)),
        ("iteration == 2 and max > 1", "add", (2,)),
    ],
)
def test_a_value_out_of_its_range_or_shape_is_caught_where_it_is_made(sess, when, op, iterations):
    x = fs.placeholder(fs.float64, [2], name="x")

    def body(i, v):
        return fs.add(i, 1, name="add"), fs.multiply(v, v, name="square")

    y = fs.while_loop(lambda i, v: i < 20, body, [0, x], name="loop")[1]
    watch = sess.debug.watch(scope="loop/body", when=when)
    with pytest.raises(REFUSED, match="watchpoint: .* in the output of") as e:
        sess.run(y, {x: np.array([1.2, 1.3])})
    assert watch.found.op.name == f"loop/body/{op}" and watch.found.iterations == iterations
    assert e.value.op is watch.found.op


def test_a_watched_value_may_hold_the_step_be_excepted_or_be_fed(sess):
    x = fs.placeholder(fs.float32, [3], name="x")
    a = fs.multiply(x, 2.0, name="a")
    y = fs.reduce_sum(fs.add(a, 1.0, name="b"), name="y")
    watch = sess.debug.watch(when="max > 5", exceptions=["y", "a"], raises=False)
    seen = []
    sess.debug.on_stop(lambda stop: seen.append((stop.breakpoint, watch.found.op.name)))
    assert sess.run(y, {x: [1, 2, 3]}) == 15 and seen == [(watch, "b")]
    assert "max > 5" in repr(watch)
    seen.clear()
    sess.run(y, {x: [6, 0, 0]})
    assert seen[0] == (watch, "x")
    watch.remove()
    wrong = sess.debug.watch(a, when=lambda v: v.no_such)
    seen.clear()
    with pytest.warns(RuntimeWarning, match="watchpoint 2 .*no_such"):
        sess.run(y, {x: [1, 2, 3]})
    assert seen == [] and wrong.hits == 0 and isinstance(wrong.error, AttributeError)
    wrong.remove()
    wrong = sess.debug.watch(a, when="(1, 2) == rank")
    with pytest.warns(RuntimeWarning, match="a shape beside a shape"):
        sess.run(y, {x: [1, 2, 3]})
    assert seen == [] and isinstance(wrong.error, REFUSED)


def test_one_that_is_refused_takes_no_number(sess):
    fs.constant(1.0, name="c")
    for bad in ({"when": "import os"}, {"when": 3}):
        with pytest.raises(REFUSED):
            sess.debug.break_before("c", **bad)
        with pytest.raises(REFUSED):
            sess.debug.watch("c", **bad)
    with pytest.raises(REFUSED):
        sess.debug.break_before("c", hits=-1)
    assert sess.debug.break_before("c").number == 1


MAKERS = (
    lambda v, w: v @ w,
    lambda v, w: v * v,
    lambda v, w: v + w,
    lambda v, w: fs.exp(v),
    lambda v, w: fs.add_n([v, w]),
    lambda v, w: v - fs.reduce_sum(v, 0),
    lambda v, w: v / w,
    lambda v, w: fs.sqrt(v),
    lambda v, w: fs.tanh(v) * 30.0,
    lambda v, w: fs.transpose(v) - 1.0,
    lambda v, w: fs.concat([v[1:], v[:1]], 0),
)


def named(seed, mode, watch):
    """Returns which operation of a random chain is held for what is not finite, and where."""
    random = np.random.default_rng(seed)
    with fs.Graph().as_default():
        w = fs.placeholder(fs.float32, [8, 8])
        chosen = random.choice(len(MAKERS), 12)

        def body(i, v):
            for k in chosen[4:]:
                v = MAKERS[k](v, w)
            return i + 1, v

        v = w
        for k in chosen[:4]:
            v = MAKERS[k](v, w)
        y = fs.while_loop(lambda i, v: i < 6, body, [0, v])[1]
        fed = (random.standard_normal((8, 8)) * 10 + 2).astype("f")
        found = None
        with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
            point = watch(sess)
            try:
                sess.run(y, {w: fed})
            except REFUSED:
                found = point.found.op.name, point.found.iterations
    return found


@pytest.mark.parametrize("seed", [pytest.param(i, marks=pytest.mark.slow) for i in range(40)])
@pytest.mark.filterwarnings("ignore::flowscope.errors.ControlFlowWarning")
def test_the_first_that_made_one_is_named_in_every_mode(seed):
    def all_values(sess):
        return sess.debug.watch(when=lambda value: not np.isfinite(value).all())

    first = named(seed, "op", all_values)
    for mode in ("compiled", "op", "tokens"):
        assert named(seed, mode, lambda sess: sess.debug.watch()) == first


@pytest.mark.parametrize("is_traced", [False, True])
def test_a_traced_step_names_the_operation_that_numpy_has_flagged(sess, is_traced):
    x = fs.placeholder(fs.float32, [4], name="x")
    e = fs.identity(fs.exp(x, name="e"))
    q = fs.divide(fs.subtract(e, e * 2.0, name="d"), x, name="q")
    y = fs.reduce_sum(fs.tanh(q, name="t"), name="y")
    sess.debug.watch()
    options = fs.RunOptions(trace_level=fs.RunOptions.FULL_TRACE if is_traced else 0)
    with pytest.raises(REFUSED, match='inf in the output of "e"'):
        sess.run(y, {x: [100.0, 1.0, 1.0, 1.0]}, options=options)
    with pytest.raises(REFUSED, match='inf in the output of "q"'):
        sess.run(y, {x: [0.0, 1.0, 1.0, 1.0]}, options=options)
    with pytest.raises(REFUSED, match='there before in "x:0", which is fed|"x:0", which is fed'):
        sess.run(y, {x: [np.nan, 1.0, 1.0, 1.0]}, options=options)
    assert np.isfinite(sess.run(y, {x: [1.0, 1.0, 2.0, 3.0]}, options=options))
