"""What a re-run makes stale, and runs that fail: SPEC D18, DESIGN section 3."""

import numpy as np
import pytest
from cells import model, names, training

import flowscope as fs
from flowscope.cells import notebook

ROW = np.array([[1.0, 2.0, 3.0]], np.float32)


# -- what others hold -----------------------------------------------------------------------------


def test_what_later_cells_hold_goes_on_working(graph, sess):
    with graph.cell("a"):
        x = fs.placeholder(fs.float32, [None], name="x")
        y = fs.multiply(x, 2.0, name="y")
    held = [y]
    with graph.cell("b"):
        z = fs.add_n([*held, x])
    with graph.cell("a"):
        fs.placeholder(fs.float32, [3], name="x")
        fs.multiply(fs.get_default_graph().get_tensor_by_name("x:0"), 10.0, name="y")
    assert sess.run(z, {x: [1.0, 1.0, 1.0]}).tolist() == [11.0] * 3
    assert sess.run(held[0] + 1.0, {x: [0.0, 0.0, 1.0]}).tolist() == [1.0, 1.0, 11.0]
    assert sess.run("y:0", {"x:0": [0.0, 0.0, 1.0]}).tolist() == [0.0, 0.0, 10.0]


@pytest.fixture
def stale(graph):
    """A graph whose cells "5" and "7" follow from a tensor of cell "3" that has another dtype."""
    with graph.cell("3"):
        x = fs.placeholder(fs.float32, [2], name="x")
    with graph.cell("5"):
        y = fs.multiply(x, 2.0, name="y")
    with graph.cell("7"):
        z = fs.add(y, 1.0, name="z")
    with graph.cell("3") as run:
        fs.placeholder(fs.int32, [2], name="x")
    assert run.report.stale == ("5", "7")
    assert str(run.report) == "cell 3 again: 0 operations kept, 1 changed; stale: cells 5, 7"
    return x, y, z


def test_what_cannot_be_rebound_is_stale(graph, sess, stale):
    x, y, z = stale
    for use in (
        lambda: sess.run(z),
        lambda: sess.run("z:0"),
        lambda: sess.run([z.op]),
        lambda: z + 1.0,
        lambda: fs.gradients(z, y),
        lambda: graph.get_tensor_by_name("z:0"),
        lambda: sess.run(sess.graph.get_tensor_by_name("x:0"), {z: [1.0, 2.0]}),
        lambda: fs.control_dependencies([z]).__enter__(),
    ):
        with pytest.raises(fs.errors.StaleError, match="re-run cells 5, 7") as e:
            use()
        assert 'takes "x:0", which cell 3 now makes as int32[2], not float32[2]' in str(e.value)
    with pytest.raises(fs.errors.StaleError, match="(?m)re-run cell 5$") as e:
        x + 1.0
    assert e.value.op_name == "x"


def test_running_the_stale_cells_again_makes_them_fresh(graph, sess, stale):
    _, _, z = stale
    with graph.cell("5") as run:
        y = fs.multiply(fs.cast(graph.get_tensor_by_name("x:0"), fs.float32), 2.0, name="y")
    assert run.report.stale == ()
    assert sess.run(z, {"x:0": [1, 2]}).tolist() == [3.0, 5.0], "cell 7 fits as it is"
    with graph.cell("7"):
        z = fs.add(y, 2.0, name="z")
    assert sess.run(z, {"x:0": [1, 2]}).tolist() == [4.0, 6.0]


def test_what_is_gone_makes_stale_too(graph, sess):
    with graph.cell("3"):
        x = fs.constant(1.0, name="x")
        step = fs.no_op(name="step")
    with graph.cell("5"):
        y = fs.identity(x, name="y")
    with graph.cell("6"), fs.control_dependencies([step]):
        w = fs.constant(2.0, name="w")
    with graph.cell("3") as run:
        fs.constant(1.0, name="other")
    assert (run.report.new, run.report.removed, run.report.stale) == (1, 2, ("5", "6"))
    assert "x" not in names(graph)
    with pytest.raises(fs.errors.StaleError, match='takes "x:0", which cell 3 does not make any'):
        sess.run(y)
    with pytest.raises(fs.errors.StaleError, match='waits for "step"'):
        sess.run(w)
    with pytest.raises(fs.errors.NotFoundError):
        graph.get_tensor_by_name("x:0")


def test_a_tensor_that_nobody_took_says_what_became_of_it(graph):
    with graph.cell("3"):
        x = fs.constant(1.0, name="x")
    with graph.cell("3"):
        fs.constant([1, 2], name="x")
    with pytest.raises(fs.errors.StaleError, match=r'now makes as int32\[2\].*take the new "x"'):
        x + 1.0


def test_code_outside_cells_is_named_as_such(graph, sess):
    with graph.cell("3"):
        x = fs.constant(1.0, name="x")
    y = x + 1.0
    with graph.cell("3") as run:
        fs.constant(1, name="x")
    assert str(run.report).endswith("stale: code outside cells")
    with pytest.raises(fs.errors.StaleError, match="re-run code outside cells"):
        sess.run(y)


def test_less_known_of_a_shape_makes_consumers_stale_and_more_does_not(graph, sess):
    def build(shape):
        return fs.placeholder(fs.float32, shape, name="x")

    with graph.cell("3"):
        x = build([None, 3])
    with graph.cell("5"):
        y = fs.multiply(x, 2.0, name="y")
    with graph.cell("3") as run:
        build([5, 3])
    assert run.report.stale == ()
    assert y.shape.as_list() == [5, 3]
    with graph.cell("3") as run:
        build([None, 3])
    assert run.report.stale == ("5",)
    with pytest.raises(fs.errors.StaleError, match="of which less is known"):
        sess.run(y)


def test_what_is_fed_has_the_shape_of_the_latest_run(graph, sess):
    def build(shape):
        x = fs.placeholder(fs.float32, shape, name="x")
        return x, fs.reduce_sum(x, name="y")

    with graph.cell("3"):
        x, y = build([None])
    with graph.cell("5"):
        z = fs.reduce_sum(x, name="z")
    assert sess.run([y, z], {x: [1.0]}) == [1.0, 1.0]
    assert sess.run(y, {x: [1.0]}) == sess.run(z, {x: [1.0]}) == 1.0
    with graph.cell("3") as run:
        build([2])
    assert run.report.stale == ()
    for fetch in (y, z, [y, z]):
        with pytest.raises(fs.errors.InvalidArgumentError, match=r"expected shape \[2\]"):
            sess.run(fetch, {x: [1.0]})


def test_shapes_set_by_hand_do_not_count_as_changes(graph):
    def build():
        x = fs.placeholder(fs.float32, name="x")
        x.set_shape([2, 3])
        return x

    with graph.cell("3"):
        x = build()
    with graph.cell("5"):
        y = x + 1.0
    with graph.cell("3") as run:
        build()
    assert not run.report.is_news
    assert y.shape.as_list() == [2, 3]


def test_what_follows_from_a_constant_is_inferred_anew(graph, sess):
    def build(n, name="n"):
        return fs.constant([n, 2], name=name)

    with graph.cell("3"):
        shape = build(3)
        factor = fs.constant(2.0, name="factor")
    with graph.cell("5"):
        zeros = fs.zeros(shape)
        z = fs.multiply(factor, 3.0, name="z")
    with graph.cell("3") as run:
        build(3)
        fs.constant(4.0, name="factor")
    assert run.report.stale == ()
    assert sess.run(z) == 12.0
    with graph.cell("3") as run:
        build(4)
        fs.constant(4.0, name="factor")
    assert run.report.stale == ("5",)
    with pytest.raises(fs.errors.StaleError, match=r"\[4,2\] with its new inputs.*\[3,2\]"):
        sess.run(zeros)
    assert sess.run(z) == 12.0


def test_a_value_that_code_has_read_makes_what_it_built_stale(graph, sess):
    with graph.cell("3"):
        axis = fs.constant(0, name="axis")
    with graph.cell("5"):
        before = fs.constant(1.0) + 1.0
        total = fs.reduce_sum(fs.ones([2, 3]), axis)
    with graph.cell("3") as run:
        fs.constant(1, name="axis")
    assert run.report.stale == ("5",)
    with pytest.raises(fs.errors.StaleError, match='built with the value of "axis:0"'):
        sess.run(total)
    assert sess.run(before) == 2.0


def test_names_that_moved_on_make_stale_what_had_taken_them(graph, sess):
    """A line put before others shifts the names that operations get by themselves."""
    names = {}
    with graph.cell("3", names=lambda: names):
        names["a"] = fs.constant(1.0) + 1.0
        names["parts"] = [names["a"] * 2.0]
    with graph.cell("5", names=lambda: names):
        names["b"] = fs.negative(names["a"])
        names["c"] = fs.negative(names["parts"][0])
    with graph.cell("3", names=lambda: names) as run:
        names["new"] = fs.constant(5.0) + 5.0
        names["a"] = fs.constant(1.0) + 1.0
        names["parts"] = [names["a"] * 2.0]
    assert run.report.stale == ("5",)
    assert sess.run(names["c"]) == -4.0
    with pytest.raises(
        fs.errors.StaleError, match='takes "add:0", which is not the value of a any'
    ):
        sess.run(names["b"])
    with graph.cell("5", names=lambda: names):
        names["b"] = fs.negative(names["a"])
        names["c"] = fs.negative(names["parts"][0])
    assert sess.run([names["b"], names["c"]]) == [-2.0, -4.0]


# -- gradients ------------------------------------------------------------------------------------


def test_gradients_made_elsewhere_are_stale(graph, sess):
    with graph.cell("3"):
        x, y = model()
    with graph.cell("6"):
        loss, train = training(y)
    with graph.cell("7"):
        logged = fs.identity(loss, name="logged")
    sess.run(fs.global_variables_initializer())
    with graph.cell("3") as run:
        model(fs.tanh)
    assert run.report.stale == ("6",)
    assert sess.run(logged, {x: ROW}) == pytest.approx(4.0, rel=1e-3)
    with pytest.raises(fs.errors.StaleError, match='a gradient through "act", which cell 3 has'):
        sess.run(train, {x: ROW})
    with graph.cell("6"):
        _, train = training(y)
    sess.run(train, {x: ROW})


def test_gradients_are_stale_where_a_new_path_has_come(graph, sess):
    def build(factor_follows):
        x = fs.placeholder(fs.float32, [], name="x")
        c = fs.identity(x if factor_follows else 3.0, name="c")
        return x, fs.multiply(x, c, name="y")

    with graph.cell("3"):
        x, y = build(False)
    with graph.cell("6"):
        (g,) = fs.gradients(y, x)
    assert sess.run(g, {x: 5.0}) == 3.0
    with graph.cell("3"):
        build(True)
    with pytest.raises(fs.errors.StaleError, match="re-run cell 6"):
        sess.run(g, {x: 5.0})
    with graph.cell("6"):
        (g,) = fs.gradients(y, x)
    assert sess.run(g, {x: 5.0}) == 10.0


def test_gradients_made_outside_cells_are_stale_too(graph, sess):
    with graph.cell("3"):
        x, y = model()
    (g,) = fs.gradients(y, x)
    with graph.cell("3"):
        model(fs.tanh)
    with pytest.raises(fs.errors.StaleError, match="gradient through"):
        sess.run(g, {x: ROW})


def test_gradients_do_not_mind_what_they_do_not_follow_from(graph, sess):
    with graph.cell("3"):
        rate = fs.constant(0.5, name="rate")
    with graph.cell("4"):
        v = fs.Variable(1.0, name="v")
        train = fs.train.GradientDescentOptimizer(rate).minimize(v * 1.0)
    sess.run(v.initializer)
    with graph.cell("3") as run:
        fs.constant(0.25, name="rate")
    assert run.report.stale == ()
    sess.run(train)
    assert sess.run(v) == 0.75


# -- failures -------------------------------------------------------------------------------------


def test_a_run_that_fails_is_taken_back(graph, sess):
    with graph.cell("3"):
        x, y = model()
    with graph.cell("5"):
        z = fs.identity(y, name="z")
    sess.run(fs.global_variables_initializer())
    before = names(graph), fs.global_variables(), sess.run(z, {x: ROW}).tolist()
    with pytest.raises(ValueError, match="broadcast"), graph.cell("3") as run:  # noqa: PT012
        x, y = model(fs.tanh, units=3)
        extra = fs.constant(1.0, name="extra")
        fs.add_to_collection("mine", extra)
        fs.constant([1.0, 2.0]) + fs.constant([1.0, 2.0, 3.0])
    assert str(run.report) == "cell 3 failed: what its earlier run built stands"
    assert (names(graph), fs.global_variables(), sess.run(z, {"x:0": ROW}).tolist()) == before
    assert fs.get_collection("mine") == []
    with pytest.raises(fs.errors.StaleError, match="made that failed"):
        extra + 1.0
    with graph.cell("3") as run:
        model()
    assert not run.report.is_news
    assert fs.constant(0.0, name="extra").op.name == "extra"


def test_a_first_run_that_fails_is_replaced_by_the_next(graph):
    with pytest.raises(ZeroDivisionError), graph.cell("3"):  # noqa: PT012
        fs.constant(1.0, name="x")
        raise ZeroDivisionError
    assert names(graph) == ["x"]
    with graph.cell("3"):
        fs.constant(1.0, name="x")
        fs.constant(2.0, name="y")
    assert names(graph) == ["x", "y"]


def test_a_run_that_breaks_off_after_steps_stands(graph, sess):
    """The user's names stand for the new operations: giving them back the old ones would lie."""
    notebook.begin("3")
    x, y = model()
    tail = fs.identity(y, name="tail")
    notebook.end()
    sess.run(fs.global_variables_initializer())
    notebook.begin("3")
    x, y = model(fs.tanh)
    sess.run(y, {x: ROW})
    notebook.end(KeyboardInterrupt())
    assert sess.run(y, {x: ROW}) == pytest.approx(2.0, abs=1e-3)
    assert sess.run(tail, {x: ROW}) == pytest.approx(2.0, abs=1e-3)
    notebook.begin("3")
    model(fs.tanh)
    (report,) = notebook.end()
    assert report.removed == 1


def test_without_steps_it_is_taken_back_whatever_broke_it_off(graph, sess):
    notebook.begin("3")
    x, y = model()
    notebook.end()
    sess.run(fs.global_variables_initializer())
    notebook.begin("3")
    model(fs.tanh)
    (report,) = notebook.end(KeyboardInterrupt())
    assert report.failed
    assert sess.run(y, {x: ROW}).tolist() == [[12.0, 12.0]]


def test_steps_of_sessions_that_were_closed_meanwhile_count(graph):
    notebook.begin("3")
    y = fs.constant(1.0, name="y")
    notebook.end()
    notebook.begin("3")
    y = fs.constant(2.0, name="y")
    with fs.Session(graph=graph) as s:
        s.run(y)
    notebook.end(KeyboardInterrupt())
    with fs.Session(graph=graph) as s:
        assert s.run(y) == 2.0
