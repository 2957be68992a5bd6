"""Functions: traced once, called often, differentiated, with variables and effects inside."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import flowscope as fs


def test_a_function_is_traced_once_per_signature(sess):
    traces = []

    @fs.function
    def double(x):
        traces.append(x.dtype)
        return x * 2

    a, b = double(fs.constant([1.0, 2.0])), double(fs.constant([3.0, 4.0]))
    c = double(fs.constant([5]))
    assert [v.tolist() for v in sess.run([a, b, c])] == [[2, 4], [6, 8], [10]]
    assert traces == [fs.float32, fs.int32]
    assert [op.type for op in sess.graph.get_operations()].count("Call") == 3


def test_structures_keywords_and_static_arguments(sess):
    @fs.function
    def f(pair, scale=2.0, *, negate):
        total = pair["a"] + pair["b"] * scale
        return {"sum": -total if negate else total, "parts": [pair["a"], None]}

    pair = {"a": fs.constant(1.0), "b": fs.constant(2.0)}
    assert sess.run(f(pair, negate=False)["sum"]) == 5
    out = f(pair, scale=3.0, negate=True)
    assert sess.run(out["sum"]) == -7
    assert out["parts"][1] is None
    with pytest.raises(TypeError, match='"f": missing a required'):
        f(pair)


def test_one_body_serves_all_shapes_of_an_input_signature(sess):
    traces = []

    @fs.function(input_signature=[fs.TensorSpec([None], fs.float32)], name="total")
    def f(x):
        traces.append(x)
        return fs.reduce_sum(x)

    a, b = f(fs.constant([1.0, 2.0])), f(fs.constant([1.0, 2.0, 3.0]))
    assert sess.run([a, b]) == [3, 6]
    assert len(traces) == 1
    with pytest.raises(ValueError, match="expected shape"):
        f(fs.constant([[1.0]]))
    with pytest.raises(TypeError, match="expected float32"):
        f(fs.constant([1]))


def test_tensors_and_variables_from_outside_may_be_used(sess):
    v = fs.Variable(3.0, name="v")
    c = fs.placeholder(fs.float32, [], name="c")

    @fs.function
    def f(x):
        return x * v + c

    y = f(f(fs.constant(1.0)))
    sess.run(v.initializer)
    assert sess.run(y, {c: 10.0}) == 49
    assert sess.run(y, {c: 10.0, v: 1.0}) == 21, "a fed variable is fed inside too"


def test_gradients_lead_through_calls_to_any_order(sess):
    w = fs.Variable([[2.0, 0.5], [0.1, 1.0]], name="w")
    c = fs.constant(1.5)

    def plain(x):
        return fs.tanh(fs.matmul(x, w)) * c

    x = fs.placeholder(fs.float32, [None, 2])
    layer = fs.function(plain)
    found = []
    for f in (plain, layer):
        loss = fs.reduce_sum(fs.square(f(f(x))))
        first = fs.gradients(loss, [x, w, c])
        second = fs.gradients(fs.reduce_sum(fs.square(first[0])), [x, w, c])
        third = fs.gradients(fs.reduce_sum(second[0]), [x, w])
        found.append([*first, *second, *third])
    sess.run(w.initializer)
    for a, b in zip(*sess.run(found, {x: [[0.3, -0.2], [1.0, 0.5]]}), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_only_used_results_are_computed_and_gradients_of_unused_ones_are_none(sess):
    @fs.function
    def f(x, y):
        return fs.exp(x), fs.log(y, name="unused")

    x, y = fs.constant(1.0), fs.constant(2.0)
    a, _ = f(x, y)
    assert "Log" not in sess.plan(a).text()
    assert fs.gradients(a, [x, y])[1] is None


def test_effects_of_a_body_fall_where_the_call_stands(sess):
    v = fs.Variable(1.0, name="v")

    @fs.function
    def add(x):
        v.assign_add(x)
        return v.read_value()

    before = v.read_value()
    first = add(fs.constant(2.0))
    between = v.read_value()
    v.assign(v * 10.0, name="times")
    second = add(fs.constant(3.0))
    sess.run(v.initializer)
    assert sess.run([before, first, between, second, "times:0"]) == [1, 3, 3, 33, 30]
    assert sess.run(v) == 33


def test_a_read_after_a_call_that_writes_is_a_new_read(sess):
    v = fs.Variable(1.0)
    add = fs.function(lambda x: v.assign_add(x), name="add")
    before = v + 0.0
    out = add(fs.constant(1.0))
    after = v + 0.0
    sess.run(v.initializer)
    assert sess.run([before, out, after]) == [1, 2, 2]


def test_control_dependencies_reach_into_and_wait_for_bodies(sess):
    v, w = fs.Variable(1.0), fs.Variable(0.0)
    copy = fs.function(lambda: w.assign(v.read_value()), name="copy")
    with fs.control_dependencies([v.assign_add(1.0)]):
        done = copy()
    with fs.control_dependencies([done]):
        seen = w.read_value()
    sess.run(fs.global_variables_initializer())
    assert sess.run(seen) == 2


def test_random_operations_draw_anew_in_every_call(sess):
    fs.set_random_seed(1)
    noise = fs.function(lambda: fs.random_uniform([4], seed=3), name="noise")
    a, b, c = noise(), noise(), fs.random_uniform([4], seed=3)
    x, y, z = sess.run([a, b, c])
    assert not (x == y).any() and not (x == z).any()


def test_both_modes_draw_the_same(graph):
    fs.set_random_seed(1)
    noise = fs.function(lambda: fs.random_uniform([4]), name="noise")
    fetches = [noise(), noise()]
    drawn = []
    for mode in ("compiled", "op"):
        with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
            drawn.append([v.tobytes() for v in sess.run(fetches)])
    assert drawn[0] == drawn[1]


def test_functions_call_functions(sess):
    inner = fs.function(lambda x: x * x, name="inner")

    @fs.function
    def outer(x):
        y = x + 1.0

        @fs.function
        def closure(z):
            return z * y

        return inner(closure(x))

    x = fs.constant(2.0)
    y = outer(x)
    assert sess.run([y, *fs.gradients(y, [x])]) == [36, 60]


def test_calls_are_inlined_and_simplified_with_their_surroundings(graph):
    f = fs.function(lambda x: fs.exp(x), name="f")
    x = fs.placeholder(fs.float32, [2], name="x")
    y = f(x) + f(x)
    with fs.Session() as sess:
        plan = sess.plan(y, [x])
    assert plan.text("prune").count("= Call(") == 2
    assert plan.text("inline").count("= Exp(") == 2
    assert plan.text("simplify").count("= Exp(") == 1


def test_an_error_in_a_body_names_the_operation_and_the_line(sess):
    @fs.function
    def f(x):
        return fs.reshape(x, [3])  # the line

    x = fs.placeholder(fs.float32, [None])
    with pytest.raises(fs.errors.InvalidArgumentError) as e:
        sess.run(f(x), {x: [1.0, 2.0]})
    assert "f_1/Reshape" in str(e.value)
    assert "# the line" in str(e.value)


def test_what_stands_in_a_body_stays_there(sess):
    kept = []
    f = fs.function(lambda x: kept.append(x * 2.0) or x, name="f")
    f(fs.constant(1.0))
    inside = kept[0]
    with pytest.raises(fs.errors.GraphError, match="return it from the function"):
        fs.exp(inside)
    with pytest.raises(ValueError, match="cannot be fetched"):
        sess.run(inside)
    with pytest.raises(ValueError, match="cannot be fed"):
        sess.run(fs.constant(1.0), {inside: 1.0})


def test_variables_made_inside_belong_to_the_graph(sess):
    made = []

    @fs.function
    def f(x):
        made.append(fs.Variable(5.0, name="inner"))
        return x * made[-1]

    y = f(fs.constant(2.0))
    sess.run(fs.global_variables_initializer())
    assert sess.run(y) == 10
    assert made[0].op.block is sess.graph.root


def test_a_trace_that_fails_leaves_no_function(graph):
    @fs.function
    def f(x):
        return fs.matmul(x, x)

    with pytest.raises(ValueError, match="rank 2"):
        f(fs.constant([1.0]))
    assert graph.functions == {}


def test_functions_are_found_by_name_and_called_with_tensors(sess):
    @fs.function
    def scale(x, y):
        return x * y

    concrete = scale.get_concrete_function(
        fs.TensorSpec([], fs.float32), fs.TensorSpec([], fs.float32)
    )
    assert fs.get_function("scale") is concrete
    assert repr(concrete) == (
        "<fs.Function 'scale' (float32[], float32[]) -> (float32[]), 3 operations>"
    )
    (y,) = concrete(fs.constant(2.0), fs.constant(3.0))
    assert sess.run(y) == 6
    with pytest.raises(ValueError, match="takes 2 tensors, got 1"):
        concrete(fs.constant(1.0))
    with pytest.raises(ValueError, match="no function is named 'other'; the graph has scale"):
        fs.get_function("other")


UNARY = [fs.tanh, fs.sin, lambda x: x * x, lambda x: x - 0.5]


@pytest.mark.slow
@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=6),
    st.integers(1, 3),
)
def test_random_bodies_equal_the_plain_code_bit_by_bit(steps, calls):
    def body(x):
        y = x
        for which, joins in steps:
            y = UNARY[which](y)
            y = y + x if joins else y
        return y

    with fs.Graph().as_default():
        x = fs.placeholder(fs.float64, [3])
        f = fs.function(body, name="f")
        outs = []
        for g in (body, f):
            y = x
            for _ in range(calls):
                y = g(y)
            outs.append(y)
        value = np.array([0.1, -0.7, 2.0])
        for mode in ("compiled", "op"):
            with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
                a, b = sess.run(outs, {x: value})
                assert a.tobytes() == b.tobytes()
                ga, gb = sess.run([fs.gradients(y, x)[0] for y in outs], {x: value})
                np.testing.assert_allclose(ga, gb, rtol=1e-9)


def test_functions_too_deep_to_be_traced_say_what_to_do(graph):
    def around(inner):
        @fs.function
        def outer(x):
            return inner(x) + 1.0

        return outer

    f = around(lambda x: x)
    for _ in range(sys.getrecursionlimit()):
        f = around(f)
    before = list(graph.functions)
    with pytest.raises(fs.errors.InvalidArgumentError, match="call the innermost ones first") as e:
        f(fs.constant(1.0))
    assert isinstance(e.value.__cause__, RecursionError | fs.errors.InvalidArgumentError)
    assert list(graph.functions) == before
