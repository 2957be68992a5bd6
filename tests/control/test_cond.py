"""Branches: one of two functions runs; case and switch_case; errors; gradients; effects."""

import numpy as np
import pytest

import flowscope as fs


def test_only_the_branch_that_is_taken_runs(sess):
    v = fs.Variable(0.0)
    p = fs.placeholder(fs.bool, [])
    y = fs.cond(p, lambda: v.assign_add(1.0), lambda: v.assign_add(10.0))
    sess.run(v.initializer)
    assert [sess.run(y, {p: True}), sess.run(y, {p: False}), sess.run(v)] == [1, 11, 11]


def test_effects_in_a_branch_run_though_nothing_returns_them(sess):
    v = fs.Variable(0.0)
    p = fs.placeholder(fs.bool, [])

    def then():
        v.assign_add(1.0)
        return fs.constant(1)

    y = fs.cond(p, then, lambda: fs.constant(2))
    after = v.read_value()
    sess.run(v.initializer)
    assert sess.run([y, after], {p: True}) == [1, 1]
    assert sess.run([y, after], {p: False}) == [2, 1]


def test_an_operation_as_a_result_runs(sess):
    v = fs.Variable(1.0)
    p = fs.placeholder(fs.bool, [])
    done = fs.cond(p, lambda: v.assign(5.0).op, lambda: fs.no_op())
    sess.run(v.initializer)
    sess.run(done, {p: False})
    assert sess.run(v) == 1
    assert sess.run(done, {p: True})
    assert sess.run(v) == 5


def test_what_fails_in_the_other_branch_does_not_matter(sess):
    x = fs.placeholder(fs.int32, [])
    y = fs.cond(fs.equal(x, 0), lambda: fs.constant(0), lambda: fs.floordiv(10, x))
    assert sess.run(y, {x: 0}) == 0
    assert sess.run(y, {x: 3}) == 3


def test_structures_and_python_values(sess):
    p = fs.placeholder(fs.bool, [])
    y = fs.cond(p, lambda: {"a": 1.0, "b": [fs.constant(2)]}, lambda: {"a": 3.0, "b": [4]})
    assert sess.run(y, {p: True}) == {"a": 1, "b": [2]}
    assert sess.run(y, {p: False}) == {"a": 3, "b": [4]}
    assert isinstance(fs.cond(p, lambda: [1.0], lambda: [2.0]), fs.Tensor)
    assert isinstance(fs.cond(p, lambda: [1.0], lambda: [2.0], strict=True), list)


def test_old_argument_names(sess):
    p = fs.constant(True)
    assert sess.run(fs.cond(p, fn1=lambda: 1, fn2=lambda: 2)) == 1
    with pytest.raises(TypeError, match="true_fn was given twice"):
        fs.cond(p, lambda: 1, lambda: 2, fn1=lambda: 1)


def test_shapes_are_what_both_branches_have_in_common(graph):
    p = fs.placeholder(fs.bool, [])
    y = fs.cond(p, lambda: fs.zeros([2, 3]), lambda: fs.zeros([2, 4]))
    assert y.shape.as_list() == [2, None]
    assert fs.cond(p, lambda: fs.zeros([2]), lambda: fs.zeros([])).shape.ndims is None


@pytest.mark.parametrize(
    ("then", "orelse", "error", "match"),
    [
        (lambda: 1, lambda: 1.0, TypeError, "result 0 is int32"),
        (lambda: [1, 2], lambda: [1], ValueError, "different structures"),
        (lambda: None, lambda: 1, ValueError, "true_fn returned None"),
        (3, lambda: 1, TypeError, "expected a function as true_fn"),
    ],
)
def test_branches_that_do_not_fit_are_refused(graph, then, orelse, error, match):
    with pytest.raises(error, match=match):
        fs.cond(fs.constant(True), then, orelse)
    assert graph.functions == {}


def test_preds_that_are_no_bool_tensors_are_refused(graph):
    with pytest.raises(TypeError, match="use `if`"):
        fs.cond(True, lambda: 1, lambda: 2)
    with pytest.raises(TypeError, match="expected a bool as pred, got int32"):
        fs.cond(fs.constant(1), lambda: 1, lambda: 2)
    with pytest.raises(ValueError, match="expected a scalar as pred"):
        fs.cond(fs.constant([True]), lambda: 1, lambda: 2)


def test_a_tensor_of_a_branch_stays_there(sess):
    kept = []
    p = fs.constant(True)
    fs.cond(p, lambda: kept.append(fs.constant(1.0) * 2.0) or kept[0], lambda: 1.0)
    with pytest.raises(fs.errors.GraphError, match="stands inside a branch of a cond") as e:
        fs.exp(kept[0])  # the line
    assert "# the line" in str(e.value)
    with pytest.raises(fs.errors.GraphError, match="stands inside a branch"):
        fs.cond(p, lambda: kept[0] + 1.0, lambda: 1.0)
    with pytest.raises(ValueError, match="cannot be fetched"):
        sess.run(kept[0])


def test_a_result_made_outside_is_warned_of(graph):
    p = fs.placeholder(fs.bool, [])
    x = fs.placeholder(fs.float32, [])
    wasted = fs.exp(x)
    with pytest.warns(fs.ControlFlowWarning, match='true_fn returns "Exp:0"') as found:
        fs.cond(p, lambda: wasted, lambda: x)
    assert found[0].filename == __file__


def test_gradients_of_both_branches(sess):
    p = fs.placeholder(fs.bool, [])
    x, w = fs.placeholder(fs.float32, [None]), fs.Variable([2.0, 3.0])
    y = fs.cond(p, lambda: fs.reduce_sum(x * x * w), lambda: fs.reduce_sum(fs.sin(x)))
    gx, gw = fs.gradients(y, [x, w])
    (second,) = fs.gradients(fs.reduce_sum(gx), [x])
    sess.run(w.initializer)
    v = np.array([0.5, 1.0], "f")
    a = sess.run([gx, gw, second], {p: True, x: v})
    for got, want in zip(a, ([2, 6], [0.25, 1], [4, 6]), strict=True):
        np.testing.assert_allclose(got, want)
    b = sess.run([gx, gw, second], {p: False, x: v})
    for got, want in zip(b, (np.cos(v), [0, 0], -np.sin(v)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_a_gradient_does_not_run_the_other_branch(sess):
    x = fs.placeholder(fs.float32, [])
    y = fs.cond(x > 0.0, lambda: fs.sqrt(x), lambda: x * 0.0)
    (g,) = fs.gradients(y, x)
    assert sess.run(g, {x: 4.0}) == 0.25
    assert sess.run(g, {x: 0.0}) == 0


def test_conds_in_conds(sess):
    a, b = fs.placeholder(fs.bool, []), fs.placeholder(fs.bool, [])
    x = fs.placeholder(fs.float64, [])
    y = fs.cond(
        a,
        lambda: fs.cond(b, lambda: x * x, lambda: x * 3.0) + 1.0,
        lambda: fs.cond(b, lambda: fs.exp(x), lambda: -x),
    )
    (g,) = fs.gradients(y, x)
    (h,) = fs.gradients(g, x)
    wanted = {
        (1, 1): (5, 4, 2), (1, 0): (7, 3, 0), (0, 1): (np.exp(2),) * 3, (0, 0): (-2, -1, 0),
    }  # fmt: skip
    for (p, q), want in wanted.items():
        np.testing.assert_allclose(sess.run([y, g, h], {a: p == 1, b: q == 1, x: 2.0}), want)


def test_reads_in_a_branch_need_no_value_unless_they_run(sess):
    v = fs.Variable(1.0, name="v")
    p = fs.placeholder(fs.bool, [])
    y = fs.cond(p, lambda: v + 1.0, lambda: 0.0)
    assert sess.run(y, {p: False}) == 0
    with pytest.raises(fs.errors.FailedPreconditionError, match="uninitialized"):
        sess.run(y, {p: True})


def test_writes_in_branches_keep_program_order(sess):
    v = fs.Variable(1.0)
    p = fs.placeholder(fs.bool, [])
    before = v.read_value()
    fs.cond(p, lambda: v.assign(v * 10.0), lambda: v.read_value())
    after = v.read_value()
    v.assign_add(1.0, name="more")
    sess.run(v.initializer)
    assert sess.run([before, after], {p: True}) == [1, 1], "the cond is not asked for"
    y = fs.cond(p, lambda: v.assign(v * 10.0), lambda: v.read_value())
    last = v.read_value()
    assert sess.run([before, y, last], {p: True}) == [1, 10, 10]
    assert sess.run([before, y, last], {p: False}) == [10, 10, 10]


def test_control_dependencies_on_what_is_outside(sess):
    v = fs.Variable(1.0)
    p = fs.constant(True)
    add = v.assign_add(1.0)

    def then():
        with fs.control_dependencies([add]):
            return fs.constant(7.0) * 1.0

    y = fs.cond(p, then, lambda: 0.0)
    sess.run(v.initializer)
    assert sess.run(y) == 7
    assert sess.run(v) == 2


def test_variables_made_in_a_branch_belong_to_the_graph(sess):
    p = fs.placeholder(fs.bool, [])
    y = fs.cond(p, lambda: fs.Variable(5.0) + 1.0, lambda: 0.0)
    sess.run(fs.global_variables_initializer())
    assert sess.run(y, {p: True}) == 6


def test_fed_variables_are_fed_inside(sess):
    v = fs.Variable(1.0)
    y = fs.cond(fs.constant(True), lambda: v * 2.0, lambda: v * 3.0)
    assert sess.run(y, {v: 4.0}) == 8


def test_an_error_in_a_branch_names_the_operation_and_the_line(sess):
    x = fs.placeholder(fs.float32, [None])
    y = fs.cond(fs.constant(True), lambda: fs.reshape(x, [3]), lambda: x)  # the line
    with pytest.raises(fs.errors.InvalidArgumentError) as e:
        sess.run(y, {x: [1.0]})
    assert "cond/then/Reshape" in str(e.value)
    assert "# the line" in str(e.value)


def test_case(sess):
    x = fs.placeholder(fs.int32, [])
    y = fs.case([(x < 1, lambda: 10), (x < 5, lambda: 20)], default=lambda: 30)
    assert [sess.run(y, {x: k}) for k in (0, 3, 9)] == [10, 20, 30]
    z = fs.case([(x < 1, lambda: 10), (x < 5, lambda: 20)])
    assert sess.run(z, {x: 3}) == 20
    with pytest.raises(fs.errors.InvalidArgumentError, match="a true predicate"):
        sess.run(z, {x: 9})


def test_exclusive_case(sess):
    x = fs.placeholder(fs.int32, [])
    y = fs.case({x < 1: lambda: 10, x < 5: lambda: 20}, lambda: 30, exclusive=True)
    assert [sess.run(y, {x: k}) for k in (3, 9)] == [20, 30]
    with pytest.raises(fs.errors.InvalidArgumentError, match="at most one true predicate"):
        sess.run(y, {x: 0})
    with pytest.raises(TypeError, match="expected bool tensors"):
        fs.case([(True, lambda: 1)])


def test_switch_case(sess):
    x = fs.placeholder(fs.int32, [])
    y = fs.switch_case(x, [lambda: 10, lambda: 11, lambda: 12])
    assert [sess.run(y, {x: k}) for k in (0, 1, 2, 3, -1)] == [10, 11, 12, 12, 12]
    z = fs.switch_case(x, {1: lambda: 30, 0: lambda: 70}, default=lambda: 0)
    assert [sess.run(z, {x: k}) for k in (1, 0, 5, -1)] == [30, 70, 0, 0]


def test_switch_case_checks_its_arguments(graph):
    x, fns = fs.placeholder(fs.int32, []), [lambda: 1, lambda: 2]
    with pytest.raises(ValueError, match="two functions have one number"):
        fs.switch_case(x, [(1, fns[0]), (1, fns[1])])
    with pytest.raises(ValueError, match=r"the numbers 0 to 1 for 2 functions, got \[0, 2\]"):
        fs.switch_case(x, {0: fns[0], 2: fns[1]}, default=fns[0])
    with pytest.raises(TypeError, match="expected a tensor as branch_index, got 1"):
        fs.switch_case(1, fns)
    with pytest.raises(TypeError, match="expected a function as default, got 3"):
        fs.switch_case(x, fns, default=3)
    with pytest.raises(TypeError, match="expected a list or a dict as branch_fns, got 3"):
        fs.switch_case(x, 3)


def test_a_list_of_one_is_its_element_unless_lists_are_kept(sess):
    p, one, many = fs.constant(True), lambda: fs.constant(1), lambda: [fs.constant(2)]
    assert sess.run(fs.cond(p, one, many)) == 1
    assert sess.run(fs.cond(p, lambda: [[1]], lambda: [[2]])) == 1
    assert sess.run(fs.cond(p, lambda: [1], lambda: [2], strict=True)) == [1]
    with pytest.raises(ValueError, match="different structures"):
        fs.cond(p, one, many, strict=True)
    assert sess.run(fs.case([(p, one)], default=many)) == 1
    assert sess.run(fs.case([(p, lambda: [1])], default=many, strict=True)) == [1]
    assert sess.run(fs.case([(p, many), (p, one)])) == 2


def test_sparse_results_have_the_shape_that_both_branches_know(graph):
    p = fs.placeholder(fs.bool, [])

    def sparse(*shape):
        return lambda: fs.SparseTensor([[0, 0], [1, 2]], [1, 2], shape)

    assert fs.cond(p, sparse(3, 4), sparse(3, 4)).shape == [3, 4]
    assert fs.cond(p, sparse(3, 4), sparse(3, 5)).shape.as_list() == [3, None]


def test_a_cond_in_a_function(sess):
    @fs.function
    def f(x):
        return fs.cond(x > 0.0, lambda: x * x, lambda: -x)

    x = fs.placeholder(fs.float32, [])
    y = f(x) + f(x * 2.0)
    (g,) = fs.gradients(y, x)
    assert sess.run([y, g], {x: 3.0}) == [45, 30]
    assert sess.run([y, g], {x: -3.0}) == [9, -3]


def test_a_predicate_that_is_fed_is_a_scalar(sess):
    p = fs.placeholder(fs.bool)
    y = fs.cond(p, lambda: fs.constant(1), lambda: fs.constant(2))
    assert sess.run(y, {p: False}) == 2
    with pytest.raises(ValueError, match=r"expected shape \[\], got \[1\]"):
        sess.run(y, {p: [True]})
