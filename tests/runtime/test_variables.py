"""Variables: values between steps, program order, leases, errors."""

import numpy as np
import pytest

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")


def test_a_value_survives_between_runs(sess):
    v = fs.Variable([1.0, 2.0], name="v")
    assert (v.name, v.dtype, v.shape.as_list()) == ("v:0", fs.float32, [2])
    sess.run(fs.global_variables_initializer())
    np.testing.assert_array_equal(sess.run(v.assign_add([1.0, 1.0])), [2, 3])
    np.testing.assert_array_equal(sess.run(v), [2, 3])
    np.testing.assert_array_equal(sess.run("v:0"), [2, 3])
    np.testing.assert_array_equal(v.eval(sess), [2, 3])


def test_sessions_do_not_share_values_but_named_containers_do(graph):
    v = fs.Variable(1.0)
    with fs.container("shared"):
        w = fs.Variable(1.0)
    with fs.Session() as one, fs.Session() as two:
        one.run([v.initializer, w.initializer])
        one.run([v.assign(5.0), w.assign(5.0)])
        two.run(v.initializer)
        assert two.run([v, w]) == [1.0, 5.0]
        fs.Session.reset("", ["shared"])
        with fs.Session() as three, pytest.raises(fs.errors.FailedPreconditionError):
            three.run(w)


def test_reads_and_writes_run_in_program_order(sess):
    v = fs.Variable(1.0)
    before = v + 0.0
    write = v.assign(10.0)
    between = v + 0.0
    more = v.assign_add(5.0)
    after = v + 0.0
    sess.run(v.initializer)
    assert sess.run([after, more, between, write, before]) == [15.0, 15.0, 10.0, 10.0, 1.0]


def test_a_read_is_shared_until_something_is_written(graph):
    v = fs.Variable(1.0, name="v")
    a, b = fs.identity(v), fs.identity(v)
    assert a.op.inputs[0] is b.op.inputs[0]
    v.assign(2.0)
    assert fs.identity(v).op.inputs[0] is not a.op.inputs[0]
    with fs.control_dependencies([fs.no_op()]):
        assert fs.identity(v).op.inputs[0].op.control_inputs


def test_uninitialised_reads_are_refused_before_the_step_with_all_names(sess):
    v, w, n = fs.Variable(1.0, name="v"), fs.Variable(1.0, name="w"), fs.Variable(0, name="n")
    up = n.assign_add(1)
    sess.run(n.initializer)
    with fs.control_dependencies([up]):
        total = v + w
    with pytest.raises(fs.errors.FailedPreconditionError, match='"v", "w"'):
        sess.run([total, up])
    assert sess.run(n) == 0


def test_an_assignment_earlier_in_the_step_initialises(sess):
    v = fs.Variable(1.0)
    write = v.assign(3.0)
    with fs.control_dependencies([write]):
        read = v.read_value()
    assert sess.run(read) == 3.0


def test_fetched_arrays_never_change_and_belong_to_the_user(sess):
    v = fs.Variable(np.zeros(4, np.float32))
    up = v.assign_add(np.ones(4, np.float32))
    sess.run(v.initializer)
    first = sess.run(v)
    from_write = sess.run(up)
    view = sess.run(fs.reshape(v, [2, 2]))
    sess.run(up.op)
    np.testing.assert_array_equal(first, 0)
    np.testing.assert_array_equal(from_write, 1)
    np.testing.assert_array_equal(view, 1)
    for array in (first, from_write, view):
        array += 100
    np.testing.assert_array_equal(sess.run(v), 2)


def test_assigned_feeds_are_copied(sess):
    v = fs.Variable(np.zeros(2, np.float32))
    x = fs.placeholder(fs.float32, [2])
    write = v.assign(x)
    mine = np.ones(2, np.float32)
    sess.run(write.op, {x: mine})
    mine[:] = 7
    np.testing.assert_array_equal(sess.run(v), 1)


def test_a_write_is_in_place_only_while_no_lease_is_out(graph):
    v = fs.Variable(np.zeros(1000, np.float32), name="v")
    up = v.assign_add(np.ones(1000, np.float32))
    with fs.Session() as sess:
        sess.run(v.initializer)
        state = sess.variable_state(v.handle)
        address = state.value.ctypes.data
        sess.run(up.op)
        assert state.value.ctypes.data == address
        lease = state.read()[10:20]
        sess.run(up.op)
        assert state.value.ctypes.data != address
        np.testing.assert_array_equal(lease, 1)
        address = state.value.ctypes.data
        sess.run(up.op)
        assert state.value.ctypes.data == address
        # A read inside the step that is used after the write is a lease too.
        old = v.read_value()
        write = v.assign_add(np.ones(1000, np.float32))
        with fs.control_dependencies([write]):
            kept = fs.identity(old)
        np.testing.assert_array_equal(sess.run([kept, write])[0], 3)


def test_feeding_a_variable_feeds_all_its_reads(sess):
    v = fs.Variable(1.0)
    y = v * 2.0
    assert sess.run([y, v], {v: 5.0}) == [10.0, 5.0]
    with pytest.raises(ValueError, match="that is fed cannot be written"):
        sess.run(v.assign_add(1.0), {v: 5.0})


def test_bad_writes_are_refused_while_building():
    v = fs.Variable([1.0, 2.0], name="v")
    with pytest.raises(
        ValueError, match=r"expected a value of shape \[2\], the variable's, got \[3\]"
    ):
        v.assign([1.0, 2.0, 3.0])
    with pytest.raises(TypeError, match="float32"):
        v.assign(fs.constant([1, 2]))
    with pytest.raises(ValueError, match="initial_value"):
        fs.Variable()
    with pytest.raises(ValueError, match="shape must be known"):
        fs.Variable(fs.placeholder(fs.float32, [None]))


def test_initialisation_reports(sess):
    v, w = fs.Variable(1.0, name="v"), fs.Variable(2.0, name="w")
    assert not sess.run(fs.is_variable_initialized(v))
    assert list(sess.run(fs.report_uninitialized_variables())) == [b"v", b"w"]
    assert sess.run(v.initialized_value() + 1.0) == 2.0
    sess.run(v.initializer)
    assert sess.run(fs.is_variable_initialized(v))
    assert list(sess.run(fs.report_uninitialized_variables([v, w]))) == [b"w"]


def test_a_variable_is_four_operations_and_its_uses_share_a_read(graph):
    v = fs.Variable(1.0, name="v")
    assert [op.name for op in graph.get_operations()] == [
        "v/initial_value",
        "v",
        "v/Assign",
        "v/read",
    ]
    assert (v + 1.0).op.inputs[0].op.name == "v/read"
    with fs.Session() as sess:
        assert sess.run([v, v.initializer]) == [1.0, None]


def test_load_and_callable_initial_values(sess):
    v = fs.Variable(lambda: fs.ones([2]), name="v")
    v.load([5.0, 6.0], sess)
    np.testing.assert_array_equal(sess.run(v), [5, 6])
    assert v.initial_value.name == "v/ones:0"


def test_operators_and_conversion():
    v = fs.Variable([1.0, 2.0])
    with fs.Session() as sess:
        sess.run(v.initializer)
        a, b, c, d = sess.run([v + 1.0, 1.0 - v, v[0], -v])
    np.testing.assert_array_equal(a, [2, 3])
    np.testing.assert_array_equal(b, [0, -1])
    assert c == 1.0
    np.testing.assert_array_equal(d, [-1, -2])


def test_get_variable_and_scopes(sess):
    with fs.variable_scope("layer") as scope:
        w = fs.get_variable("w", [2, 3], initializer=fs.constant_initializer(0.5))
        with pytest.raises(
            ValueError, match="layer/w already exists, made in test_variables.py, line"
        ):
            fs.get_variable("w", [2, 3])
    with fs.variable_scope(scope, reuse=True):
        assert fs.get_variable("w") is w
        with pytest.raises(ValueError, match="does not exist"):
            fs.get_variable("missing", [1])
    with fs.variable_scope("layer", reuse=fs.AUTO_REUSE):
        assert fs.get_variable("w", [2, 3]) is w
        b = fs.get_variable("b", [3], fs.int32)
        with pytest.raises(ValueError, match=r"has shape \[2,3\], asked for \[3,2\]"):
            fs.get_variable("w", [3, 2])
    assert (w.name, b.name) == ("layer/w:0", "layer/b:0")
    assert b.dtype == fs.int32
    sess.run(fs.global_variables_initializer())
    np.testing.assert_array_equal(sess.run(w), np.full((2, 3), 0.5, np.float32))
    assert scope.trainable_variables() == [w, b]
