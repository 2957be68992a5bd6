"""Cells that are run again and hold Python functions: kept where these do the same."""

import numpy as np
import pytest

import flowscope as fs

KINDS = {
    "py_func": lambda f, x, name: fs.py_func(f, [x], fs.float64, name=name),
    "stateless": lambda f, x, name: fs.py_func(f, [x], fs.float64, stateful=False, name=name),
    "py_function": lambda f, x, name: fs.py_function(f, [x], fs.float64, name=name),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_function_that_does_the_same_keeps_its_operation(graph, sess, kind):
    calls = []

    def build(factor):
        def f(a):
            calls.append(factor)
            return a * factor

        return KINDS[kind](f, fs.constant(3.0, fs.float64), "p")

    def run(factor):
        with graph.cell("a") as run:
            p = build(np.float64(factor))
        return p, run.report

    p, _ = run(2.0)
    with graph.cell("b"):
        y = p + 1.0
    assert sess.run(y) == 7.0
    if kind == "stateless":
        calls.clear()  # planning may have called it: what it encloses counts by value
    plan, op = sess.plan(y), p.op
    again, report = run(2.0)
    assert again is p and again.op is op
    assert (report.changed, report.new) == (0, 0)
    assert sess.plan(y) is plan
    again, report = run(5.0)
    assert again is p and report.changed == 1
    assert sess.run(y) == 16.0
    assert sess.plan(y) is not plan


def test_the_function_of_the_latest_run_is_called_though_the_operation_is_kept(graph, sess):
    """The user's names stand for what the new function encloses."""

    def run():
        seen = []

        def f(a):
            seen.append(float(a))
            return a

        with graph.cell("a") as run:
            p = fs.py_func(f, [fs.constant(2.0)], fs.float32, name="p")
        return seen, p, run.report

    first, p, _ = run()
    call = sess.make_callable(p)
    call()
    second, _, report = run()
    assert report.changed == 0
    misses = sess.plan_cache.misses
    call()
    assert (first, second) == ([2.0], [2.0])
    assert sess.plan_cache.misses == misses


def test_a_run_that_fails_gives_the_earlier_function_back(graph, sess):
    seen = []

    def build(log):
        return fs.py_func(lambda a: (log.append(1), a)[1], [fs.constant(2.0)], fs.float32, name="p")

    with graph.cell("a"):
        p = build(seen)
    failed = []

    def fail():
        with graph.cell("a"):
            build(failed)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    sess.run(p)
    assert (seen, failed) == ([1], [])


@pytest.mark.parametrize("how", ["code", "closure", "array", "default"])
def test_a_gradient_of_ones_own_that_was_edited_makes_gradients_stale(graph, sess, how):
    def build(k):
        held = np.full(2, k, np.float32)

        @fs.custom_gradient
        def f(x):
            e = fs.exp(x)
            grads = {
                "code": (lambda dy: dy * e) if k == 1 else (lambda dy: dy - e),
                "closure": lambda dy: dy * k * e,
                "array": lambda dy: dy * held * e,
                "default": lambda dy, by=k: dy * by * e,
            }
            return fs.log(1 + e), grads[how]

        x = fs.constant([1.0, 2.0], name="x")
        return x, f(x)

    with graph.cell("f"):
        x, y = build(1.0)
    with graph.cell("g"):
        (g,) = fs.gradients(y, x)
    before = sess.run(g)
    with graph.cell("f") as run:
        build(1.0)
    assert (run.report.changed, run.report.stale) == (0, ())
    np.testing.assert_array_equal(sess.run(g), before)
    with graph.cell("f") as run:
        build(2.0)
    assert run.report.changed == 1 and run.report.stale == ("g",)
    with pytest.raises(fs.errors.StaleError, match="GradientHub"):
        sess.run(g)
    with graph.cell("g"):
        (g,) = fs.gradients(y, x)
    assert not np.array_equal(sess.run(g), before)


def in_loop(f):
    return fs.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, f(a)), [0, fs.constant(0.5)])[1]


def in_branch(f):
    a = fs.constant(0.5)
    return fs.cond(fs.constant(True), lambda: f(a), lambda: a)


@pytest.mark.parametrize("inside", [in_loop, in_branch])
def test_gradients_of_ones_own_in_bodies(graph, inside):
    def build(k):
        @fs.custom_gradient
        def f(x):
            e = fs.exp(x)
            return e, lambda dy: dy * k * e

        v = fs.get_variable("v", [], initializer=fs.ones_initializer())
        return v, inside(lambda a: f(a * v))

    def run(k):
        with graph.cell("f") as run:
            v, y = build(k)
        return v, y, run.report

    v, y, _ = run(2.0)
    with graph.cell("g"):
        (g,) = fs.gradients(y, v)
    with fs.Session() as sess:
        sess.run(fs.global_variables_initializer())
        before = sess.run(g)
        plan = sess.plan(g)
        _, _, report = run(2.0)
        assert (report.changed, report.new, report.removed, report.stale) == (0, 0, 0, ())
        assert sess.plan(g) is plan
        # The function that stays holds the tensors that stay.
        assert sess.run(fs.gradients(y, v)[0]) == before
        _, _, report = run(3.0)
        assert report.stale[:1] == ("g",)
        assert sess.run(fs.gradients(y, v)[0]) != before


@pytest.mark.parametrize("inside", [in_loop, in_branch])
def test_python_functions_in_bodies(graph, inside):
    def run(k):
        log = []

        def f(a):
            log.append(k)
            return a * k

        def call(a):
            b = fs.py_func(f, [a], fs.float32)
            b.set_shape([])
            return b

        with graph.cell("f") as run:
            y = inside(call)
        return log, y, run.report

    with fs.Session() as sess:
        first, y, _ = run(np.float32(2))
        value = sess.run(y)
        assert first and set(first) == {2}
        count = len(first)
        second, _, report = run(np.float32(2))
        assert not report.is_news
        assert sess.run(y) == value and len(first) == len(second) == count
        third, y, report = run(np.float32(3))
        assert report.changed
        assert sess.run(y) != value and set(third) == {3}


def test_what_recomputes_is_kept(graph, sess):
    def build():
        x = fs.constant([1.0, 2.0], name="x")
        return x, fs.recompute_grad(lambda a: fs.tanh(fs.exp(a)) * 2.0)(x)

    with graph.cell("f"):
        x, y = build()
    with graph.cell("g"):
        (g,) = fs.gradients(y, x)
    before = sess.run(g)
    with graph.cell("f") as run:
        build()
    assert not run.report.is_news
    np.testing.assert_array_equal(sess.run(g), before)


def test_outside_cells_nothing_is_taken_down(graph):
    def f(a):
        return a

    op = fs.py_func(f, [1.0], fs.float32).op
    held = op.definition.held
    assert held.function is f
    assert held.compared(held, lambda t: t) is None


def registered(name, k):
    @fs.RegisterGradient(name)
    def _gradient(op, g):
        return g * k


@pytest.mark.parametrize("where", ["root", "loop"])
def test_a_cell_may_register_its_gradients_again(graph, sess, where):
    name = f"Registered_{where}_{sess.config.mode}"

    def register(k):
        with graph.cell("r") as run:
            registered(name, k)
        return run.report

    def differentiate():
        with graph.cell("g"):
            (g,) = fs.gradients(y, x)
            (other,) = fs.gradients(z, x)
        return g, other

    register(2.0)
    with graph.cell("f"):
        x = fs.constant(1.0, name="x")
        z = fs.sin(x)
        with graph.gradient_override_map({"Exp": name}):
            y = fs.exp(x) if where == "root" else in_loop(lambda a: fs.exp(a * x))
    g, other = differentiate()
    before = sess.run([g, other])
    assert not register(2.0).is_news
    assert sess.run([g, other]) == before
    assert register(3.0).stale == ("g",)
    with pytest.raises(fs.errors.StaleError, match="re-run cell g"):
        sess.run(g)
    assert sess.run(other) == before[1]
    g, other = differentiate()
    assert sess.run(g) != before[0]


def test_a_cell_that_fails_and_is_taken_back_has_registered_nothing(graph, sess):
    name = f"Registered_by_failure_{sess.config.mode}"

    def register(k, fails):
        with graph.cell("r"):
            fs.constant(1.0, name="of_the_cell")
            registered(name, k)
            if fails:
                raise ZeroDivisionError

    register(2.0, fails=False)
    x = fs.constant(1.0)
    with graph.gradient_override_map({"Exp": name}):
        y = fs.exp(x)
    with pytest.raises(ZeroDivisionError):
        register(3.0, fails=True)
    assert sess.run(fs.gradients(y, x)[0]) == 2.0


def test_who_registers_one_name_twice_is_told(graph):
    def register_twice():
        with graph.cell("r"):
            registered("Registered_twice", 1.0)
            registered("Registered_twice", 1.0)

    for _ in range(2):
        with pytest.raises(KeyError, match="there is a gradient named 'Registered_twice' already"):
            register_twice()
    with pytest.raises(KeyError, match="already"):
        registered("Registered_twice", 1.0)
    registered("Registered_outside", 1.0)

    def register_again():
        with graph.cell("s"):
            registered("Registered_outside", 1.0)

    with pytest.raises(KeyError, match="already"):
        register_again()
