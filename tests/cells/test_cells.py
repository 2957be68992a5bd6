"""Cells that are built again: SPEC D18, row by row of DESIGN section 3."""

import gc
import threading
import weakref

import numpy as np
import pytest
from cells import model, names, training

import flowscope as fs
from flowscope.cells import CellReport, Restart, notebook

ROW = np.array([[1.0, 2.0, 3.0]], np.float32)


# -- the same again -------------------------------------------------------------------------------


def test_the_same_code_makes_the_same_operations(graph):
    with graph.cell("a"):
        x, y = model()
    with graph.cell("b"):
        loss, train = training(y)
        init = fs.global_variables_initializer()
    before = [(op, op.id, op.name, op.definition) for op in graph.get_operations()]
    for cell in ("a", "b", "a"):
        with graph.cell(cell) as run:
            if cell == "a":
                again = model()
                assert again[0] is x
                assert again[1] is y
            else:
                assert training(y) == (loss, train)
                assert fs.global_variables_initializer() is init
        assert not run.report.is_news
    assert [(op, op.id, op.name, op.definition) for op in graph.get_operations()] == before


def test_plans_stay_where_nothing_changed_and_go_where_something_did(graph, sess):
    with graph.cell("a"):
        x, y = model()
        other = fs.constant(1.0, name="other") + 1.0
    sess.run(fs.global_variables_initializer())
    used, unused = sess.plan(y, [x]), sess.plan(other)
    with graph.cell("a"):
        model()
        fs.constant(1.0, name="other") + 1.0
    assert sess.plan(y, [x]) is used
    with graph.cell("a"):
        model(fs.tanh)
        fs.constant(1.0, name="other") + 1.0
    assert sess.plan(y, [x]) is not used
    assert sess.plan(other) is unused


def test_a_callable_follows(graph, sess):
    with graph.cell("a"):
        y = fs.constant(2.0, name="c") * 3.0
    with graph.cell("b"):
        z = y + 1.0
    f = sess.make_callable(z)
    assert f() == 7.0
    with graph.cell("a"):
        fs.constant(5.0, name="c") * 3.0
    assert f() == 16.0


def test_edited_code_takes_over_the_names_that_stay(graph, sess):
    with graph.cell("a"):
        x, y = model()
    with graph.cell("b"):
        z = fs.identity(y, name="z")
    sess.run(fs.global_variables_initializer())
    assert sess.run(z, {x: ROW}).tolist() == [[12.0, 12.0]]
    with graph.cell("a") as run:
        model(fs.tanh, factor=1.0)
        fs.constant(0.0, name="more")
    assert sess.run(z, {x: ROW}) == pytest.approx(1.0, abs=1e-4)
    assert run.report.new == 1
    assert run.report.changed == 2
    assert str(run.report).startswith("cell a again: ")
    assert "2 changed, 1 new" in str(run.report)


def test_names_are_given_back_and_those_of_later_cells_respected(graph):
    with graph.cell("a"):
        fs.constant(1.0)
    with graph.cell("b"):
        fs.constant(2.0)
    with graph.cell("c"):
        fs.constant(3.0)
    assert names(graph) == ["Const", "Const_1", "Const_2"]
    with graph.cell("b"):
        fs.constant(2.0)
        fs.constant(2.5)
    assert names(graph) == ["Const", "Const_1", "Const_3", "Const_2"]
    with graph.cell("b"):
        fs.constant(2.0)
    assert fs.constant(4.0).op.name in ("Const_3", "Const_4")
    with graph.cell("a"):
        fs.constant(9.0, name="other")
    assert names(graph)[0] == "other"


def test_scopes_and_unique_scope_names_are_given_back(graph):
    def build():
        with fs.name_scope("layer"), fs.variable_scope(None, "dense"):
            return fs.get_variable("w", [1]).op.name, fs.constant(0.0).op.name

    with graph.cell("a"):
        first = build()
    with graph.cell("b"):
        second = build()
    assert first != second
    with graph.cell("a"):
        assert build() == first
    with graph.cell("b"):
        assert build() == second


# -- program order --------------------------------------------------------------------------------


def test_program_order_is_that_of_the_cells_first_runs(graph, sess):
    with graph.cell("v"):
        v = fs.Variable(1.0, name="v")
    with graph.cell("set"):
        put = v.assign(5.0)
    with graph.cell("read"):
        after = v + 0.0
    with graph.cell("set"):
        put = v.assign(7.0)
    sess.run(v.initializer)
    assert sess.run([put, after]) == [7.0, 7.0]
    with graph.cell("v"):
        fs.Variable(1.0, name="v")
        early = v + 0.0
    sess.run(v.initializer)
    assert sess.run([early, put, after]) == [1.0, 7.0, 7.0]
    assert [o.order for o in graph.get_operations()] == sorted(
        o.order for o in graph.get_operations()
    )


def test_a_write_that_comes_into_an_earlier_cell_is_seen_by_later_ones(graph, sess):
    with graph.cell("v"):
        v = fs.Variable(1.0, name="v")
    with graph.cell("set"):
        fs.no_op()
    with graph.cell("read"):
        after = v + 0.0
    with graph.cell("set"):
        put = v.assign_add(1.0)
    sess.run(v.initializer)
    assert sess.run([after, put]) == [2.0, 2.0]


def test_gradients_where_a_cell_takes_what_a_later_one_made(graph, sess):
    with graph.cell("a"):
        x = fs.placeholder(fs.float32, [], name="x")
        y = fs.multiply(x, 2.0, name="y")
    with graph.cell("b"):
        z = fs.multiply(y, y, name="z")
    with graph.cell("a"):
        x = fs.placeholder(fs.float32, [], name="x")
        y = fs.multiply(x, 2.0, name="y")
        u = fs.exp(z, name="u")
        (g,) = fs.gradients(u * y, x)
    value = sess.run(g, {x: 0.5})
    assert value == pytest.approx((8 * 0.5**2 + 1) * 2 * np.exp(4 * 0.5**2))


def test_gradients_through_operations_that_are_newer_than_their_consumers(graph, sess):
    with graph.cell("a"):
        x = fs.placeholder(fs.float32, [], name="x")
        y = fs.identity(x, name="y")
    with graph.cell("b"):
        z = y * 3.0
    with graph.cell("a"):
        x = fs.placeholder(fs.float32, [], name="x")
        y = fs.identity(fs.square(x), name="y")
    assert sess.run(fs.gradients(z, x), {x: 5.0}) == [30.0]


# -- variables ------------------------------------------------------------------------------------


def test_a_variable_keeps_its_value(graph, sess):
    with graph.cell("a"):
        v = fs.get_variable("v", [2], initializer=fs.zeros_initializer())
    sess.run(v.initializer)
    sess.run(v.assign([1.0, 2.0]))
    with graph.cell("a") as run:
        again = fs.get_variable("v", [2], initializer=fs.ones_initializer())
    assert sess.run(again).tolist() == [1.0, 2.0]
    assert sess.run(v).tolist() == [1.0, 2.0]
    assert not run.report.restarts
    sess.run(v.initializer)
    assert sess.run(again).tolist() == [1.0, 1.0], "the earlier object is the later one"


@pytest.mark.parametrize(
    ("shape", "dtype", "text"),
    [([3], fs.float32, "float32[2] -> float32[3]"), ([2], fs.float64, "float32[2] -> float64[2]")],
)
def test_a_variable_of_another_shape_or_dtype_starts_anew(graph, sess, shape, dtype, text):
    other = fs.Session(graph=graph)
    fresh = fs.Session(graph=graph)
    with graph.cell("a"):
        v = fs.get_variable("v", [2], initializer=fs.zeros_initializer())
    for s in (sess, other):
        s.run(v.initializer)
    with graph.cell("a") as run:
        v = fs.get_variable("v", shape, dtype, initializer=fs.ones_initializer())
    assert str(run.report.restarts[0]) == f"variable v re-initialised ({text})"
    for s in (sess, other):
        assert s.run(v).tolist() == [1.0] * shape[0]
        assert s.run(v).dtype == dtype.as_numpy_dtype
    with pytest.raises(fs.errors.FailedPreconditionError, match='"v"'):
        fresh.run(v)


def test_a_variable_of_another_shape_can_be_initialised_as_ever(graph, sess):
    with graph.cell("a"):
        v = fs.Variable([1.0], name="v")
    sess.run(v.initializer)
    with graph.cell("a"):
        v = fs.Variable([1.0, 2.0], name="v")
        sess.run(v.initializer)
        sess.run(v.assign_add([1.0, 1.0]))
    assert sess.run(v).tolist() == [2.0, 3.0]


def test_a_re_run_cell_may_make_its_variables_again_and_others_may_not(graph):
    with graph.cell("a"):
        fs.get_variable("v", [2])
    with graph.cell("a"):
        fs.get_variable("v", [2])
    with pytest.raises(fs.errors.InvalidArgumentError, match="already exists"), graph.cell("b"):
        fs.get_variable("v", [2])


def test_reuse_set_for_the_whole_graph_is_rewound(graph):
    with graph.cell("first"):
        fs.get_variable("u", [1])
    for _ in range(2):
        with graph.cell("a"):
            v = fs.get_variable("v", [2])
            fs.get_variable_scope().reuse_variables()
            assert fs.get_variable("v", [2]) is v


def test_slots_follow_their_variables(graph, sess):
    with graph.cell("a"):
        x, y = model()
    with graph.cell("b"):
        _, train = training(y)
    sess.run(fs.global_variables_initializer())
    for _ in range(3):
        sess.run(train, {x: ROW})
    slots = [v for v in fs.global_variables() if "Adam" in v.op.name]
    values = [sess.run(v) for v in slots]
    with graph.cell("b") as run:
        _, train = training(y)
    assert not run.report.is_news
    assert [v.op.name for v in fs.global_variables() if "Adam" in v.op.name] == [
        v.op.name for v in slots
    ]
    for v, value in zip(slots, values, strict=True):
        np.testing.assert_array_equal(sess.run(v), value)
    sess.run(train, {x: ROW})
    with graph.cell("a"):
        x, y = model(units=4)
    with graph.cell("b") as run:
        _, train = training(y)
    assert {r.name for r in run.report.restarts} == {"w/Adam", "w/Adam_1"}
    sess.run(train, {x: ROW})


def test_an_optimizer_finds_its_slots_by_the_variable_not_the_object(graph, sess):
    optimizer = fs.train.MomentumOptimizer(0.1, 0.9)
    with graph.cell("a"):
        v = fs.Variable(1.0, name="v")
    with graph.cell("b"):
        optimizer.minimize(fs.square(v))
    with graph.cell("a"):
        again = fs.Variable(1.0, name="v")
    assert again == v
    assert {v: 1}[again] == 1
    assert again != fs.Variable(1.0)
    assert optimizer.get_slot(again, "momentum") is optimizer.get_slot(v, "momentum") is not None
    with graph.cell("c"):
        train = optimizer.minimize(fs.square(again))
    assert [u.op.name for u in fs.global_variables()] == ["v", "v/Momentum", "Variable"]
    sess.run(fs.global_variables_initializer())
    sess.run(train)
    assert sess.run(v) == pytest.approx(0.8)


def test_an_update_stays_one_group(graph):
    def groups():
        return {op.name: getattr(op.definition, "group", None) for op in graph.get_operations()}

    with graph.cell("a"):
        _, y = model()
        training(y)
    before = groups()
    with graph.cell("a"):
        _, y = model()
        training(y)
    assert groups() == before


def test_collections_hold_what_there_is_in_its_order(graph):
    with graph.cell("a"):
        a = fs.Variable(1.0, name="a")
        fs.add_to_collection("mine", "text")
    with graph.cell("b"):
        b = fs.Variable(2.0, name="b")
        fs.get_collection_ref("mine").append("later")
    with graph.cell("a"):
        again = fs.Variable(1.0, name="a")
        new = fs.Variable(1.0, name="new")
        fs.add_to_collection("mine", "text")
        assert fs.trainable_variables() == [again, new, b]
    assert fs.global_variables() == [again, new, b]
    assert fs.get_collection("mine") == ["text", "later"]
    with graph.cell("a"):
        pass
    assert fs.global_variables() == [b]
    assert fs.get_collection("mine") == ["later"]
    assert a.handle.op.stale is not None


# -- what a cell keeps ----------------------------------------------------------------------------


class Layer:
    """Makes its variable on first use, as layers do."""

    w = None

    def __call__(self, x):
        if self.w is None:
            self.w = fs.get_variable("w", [3, 2], initializer=fs.ones_initializer())
        return fs.matmul(x, self.w)


def test_what_a_cell_uses_again_without_making_it_stays(graph, sess):
    layer, optimizer = Layer(), fs.train.AdamOptimizer(0.1)
    for i in range(3):
        with graph.cell("3") as run:
            x = fs.placeholder(fs.float32, [None, 3], name="x")
            y = layer(x)
            train = optimizer.minimize(fs.reduce_sum(y))
        assert run.report.removed == 0
        if i == 0:
            sess.run(fs.global_variables_initializer())
            size = len(graph)
        sess.run(train, {x: ROW})
        assert layer.w in fs.trainable_variables()
    assert len(graph) == size
    with fs.variable_scope("", reuse=True):
        assert fs.get_variable("w") is layer.w
    sess.run(layer.w.initializer)
    assert sess.run(y, {x: ROW}).tolist() == [[6.0, 6.0]]


def test_building_on_its_own_earlier_result_is_an_error(graph, sess):
    with graph.cell("3"):
        h = fs.constant(1.0, name="h")
    with graph.cell("4"):
        h = fs.add(h, 1.0, name="next")
    with (
        pytest.raises(fs.errors.GraphError, match='build "next" on itself') as e,
        graph.cell("4"),
    ):
        h = fs.add(h, 1.0, name="next")
    assert e.value.origin is not None
    assert sess.run(h) == 2.0


def test_a_function_that_reads_a_variable_is_no_variable(graph):
    def build(size):
        v = fs.get_variable("v", [size])
        fs.function(lambda x: x + v, name="f")(fs.constant(1.0))

    for size in (2, 3):
        with graph.cell("a") as run:
            build(size)
    assert [r.name for r in run.report.restarts] == ["v"]


def test_functions_are_made_again_with_their_cell(graph, sess):
    def define(k):
        @fs.function
        def f(a):
            return a * k

        return f

    with graph.cell("3"):
        f = define(2.0)
        y = f(fs.constant(3.0, name="c"))
    with graph.cell("5"):
        z = y + 1.0
    with graph.cell("3") as run:
        f = define(2.0)
        f(fs.constant(3.0, name="c"))
    assert sess.run(z) == 7.0
    assert run.report.stale == ()
    with graph.cell("3") as run:
        f = define(5.0)
        f(fs.constant(3.0, name="c"))
    assert run.report.stale == ()
    assert sess.run(z) == 16.0


# -- graphs and cells -----------------------------------------------------------------------------


def test_deleting_and_forgetting_a_cell(graph, sess):
    with graph.cell("id-1", "33"):
        x = fs.constant(1.0, name="x")
    with graph.cell("id-2", "4"):
        y = x + 1.0
    assert sess.run(y) == 2.0
    (report,) = fs.forget_cell(33)
    assert (report.removed, report.stale) == (1, ("4",))
    assert names(graph) == ["add/y", "add"]
    assert fs.forget_cell(33) == []
    with graph.cell("id-1", "9") as run:
        fs.constant(1.0, name="x")
    assert not run.is_again


def test_forgetting_waits_until_the_running_cell_has_ended(graph):
    with graph.cell("id-5", "3"):
        fs.constant(1.0, name="x")
    notebook.begin("id-6")
    assert fs.forget_cell("id-5") == []
    assert names(graph) == ["x"]
    (report,) = notebook.end()
    assert report.cell == "3"
    assert names(graph) == []


def test_a_reset_starts_anew_and_leaves_the_old_graph_alone():
    try:
        fs.reset_default_graph()
        notebook.begin("1")
        old = fs.constant(1.0, name="x")
        notebook.end()
        notebook.begin("2")
        fs.identity(old, name="y")
        notebook.end()
        for _ in range(2):
            notebook.begin("1")
            fs.reset_default_graph()
            new = fs.constant(1.0, name="x")
            assert notebook.end() == []
            assert names(new.graph) == ["x"]
        assert names(old.graph) == ["x", "y"]
        assert new.graph is not old.graph
        assert fs.Session(graph=old.graph).run("y:0") == 1.0
    finally:
        fs.reset_default_graph()


def test_the_first_graph_of_the_process_belongs_to_the_cell_that_first_builds():
    try:
        fs.reset_default_graph()
        for value in (1.0, 2.0):
            notebook.begin("1")
            x = fs.constant(value, name="x")
            notebook.end()
        assert names(x.graph) == ["x"]
        assert fs.Session(graph=x.graph).run(x) == 2.0
    finally:
        fs.reset_default_graph()


def test_a_graph_that_a_cell_makes_is_another_one_each_time():
    made = []
    for _ in range(2):
        notebook.begin("1")
        with fs.Graph().as_default() as g:
            fs.constant(1.0, name="x")
        made.append(g)
        assert notebook.end() == []
    assert [names(g) for g in made] == [["x"], ["x"]]


def test_graphs_that_nobody_holds_are_let_go(graph):
    notebook.begin("1")
    other = weakref.ref(fs.Graph())
    notebook.end()
    gc.collect()
    assert other() is None


def test_a_finalized_graph_takes_no_part(graph):
    with graph.cell("1"):
        fs.constant(1.0, name="x")
    graph.finalize()
    notebook.begin("1")
    assert notebook.end() == []
    assert names(graph) == ["x"]


def test_cells_do_not_nest(graph):
    with graph.cell("1"), pytest.raises(fs.errors.GraphError, match="cell 1 is being built"):
        graph.cell("2").__enter__()


def test_all_sessions_follow(graph):
    with graph.cell("1"):
        fs.constant(1.0, name="x")
    with graph.cell("2"):
        y = graph.get_tensor_by_name("x:0") + 1.0
    sessions = [fs.Session(graph=graph) for _ in range(2)]
    assert [s.run(y) for s in sessions] == [2.0, 2.0]
    with graph.cell("1"):
        fs.constant(2.0, name="x")
    assert [s.run(y) for s in sessions] == [3.0, 3.0]


def test_a_running_step_finishes_on_its_plan(graph):
    with graph.cell("1"):
        y = fs.identity(fs.constant(1.0, name="c"), name="y")
    s = fs.Session(graph=graph)
    s.pause()
    values = []
    thread = threading.Thread(target=lambda: values.append(s.run(y)))
    thread.start()
    while s.gate.state != "paused":
        assert thread.is_alive()
    with graph.cell("1"):
        fs.identity(fs.constant(2.0, name="c"), name="y")
    s.resume()
    thread.join()
    assert [*values, s.run(y)] == [1.0, 2.0]


@pytest.mark.parametrize("value", ["text", ["a", "bc"], b"\x00", 1.5, [[True]]])
def test_constants_of_all_kinds_are_compared(graph, value):
    def run(value):
        with graph.cell("a") as run:
            fs.identity(fs.constant(value, name="c"))
        return run.report

    run(value)
    assert not run(value).is_news
    assert run([value, value]).changed == 2


def test_only_variables_are_said_to_lose_their_values(graph):
    """Lists and arrays of tensors have a dtype and shape of their elements, and no value."""

    def run(units):
        with graph.cell("a") as run:
            array = fs.TensorArray(fs.float32, 2, element_shape=[units])
            array.write(0, fs.zeros([units])).stack()
            fs.get_variable("v", [units])
        return run.report

    run(2)
    assert [r.name for r in run(3).restarts] == ["v"]
    assert set(graph.observer.restarts) == {"v"}


def test_a_report_says_what_happened():
    assert str(CellReport("3", kept=1)) == "cell 3 again: 1 operation kept"
    assert not CellReport("3", kept=1).is_news
    report = CellReport("3", 12, 0, 2, 1, stale=("5", "7", None))
    assert str(report) == (
        "cell 3 again: 12 operations kept, 2 new, 1 removed; "
        "stale: cells 5, 7 and code outside cells"
    )
    restarts = (Restart("v", "int32[1]", "int32[2]"), Restart("w", "int32[3]", "int32[4]"))
    assert str(CellReport("3", 12, 1, restarts=restarts, stale=("5",))) == (
        "cell 3 again: 12 operations kept, 1 changed\n"
        "  variable v re-initialised (int32[1] -> int32[2])\n"
        "  variable w re-initialised (int32[3] -> int32[4])\n"
        "  stale: cell 5"
    )
