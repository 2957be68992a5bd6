"""Variables: values between steps, program order, leases, parts, errors."""

import threading

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
    assert v.initial_value.name == "v/Initializer/ones:0"


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


# -- leases ---------------------------------------------------------------------------------------


def in_threads(*functions):
    """Runs functions side by side; raises what one of them raised."""
    failed = []

    def guarded(function):
        try:
            function()
        except Exception as e:
            failed.append(e)

    threads = [threading.Thread(target=guarded, args=(f,)) for f in functions]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if failed:
        raise failed[0]


@pytest.mark.parametrize("shape", [(), (64,)])
def test_no_addition_of_two_threads_is_lost(graph, shape):
    v = fs.Variable(np.zeros(shape, np.int64))
    up = v.assign_add(np.ones(shape, np.int64))
    with fs.Session() as sess:
        sess.run(v.initializer)
        in_threads(*[lambda: [sess.run(up.op) for _ in range(2000)]] * 2)
        np.testing.assert_array_equal(sess.run(v), np.full(shape, 4000))


def test_no_scatter_of_two_sessions_is_lost(graph):
    with fs.container("scattered"):
        v = fs.Variable(np.zeros((8, 2), np.int64))
    up = v.scatter_add(fs.IndexedSlices(np.ones((3, 2), np.int64), [1, 1, 5]))
    with fs.Session() as one, fs.Session() as two:
        one.run(v.initializer)
        in_threads(*[lambda s=s: [s.run(up.op) for _ in range(1000)] for s in (one, two)])
        assert two.run(v)[:, 0].tolist() == [0, 4000, 0, 0, 0, 2000, 0, 0]
        fs.Session.reset("", ["scattered"])


def test_a_read_is_whole_while_another_thread_writes(graph):
    v = fs.Variable(np.zeros(5000, np.int64))
    up = v.assign_add(np.ones(5000, np.int64))
    with fs.Session() as sess:
        sess.run(v.initializer)
        seen = []
        in_threads(
            lambda: [sess.run(up.op) for _ in range(500)],
            lambda: seen.extend(sess.run(v) for _ in range(500)),
        )
    assert all((array == array[0]).all() for array in seen)
    assert all((b[0] >= a[0]) for a, b in zip(seen, seen[1:]))


def test_an_adopted_array_is_the_value_itself(graph):
    v = fs.Variable(np.zeros((2, 3), np.float32))
    with fs.Session() as sess:
        state = sess.variable_state(v.handle)
        fresh = np.ones((2, 3), np.float32)
        address = fresh.ctypes.data
        assert state.adopt(fresh) is fresh
        assert state.writes == 1
        del fresh
        sess.run(v.assign_add(np.ones((2, 3), np.float32)).op)
        assert state.value.ctypes.data == address
        np.testing.assert_array_equal(sess.run(v), 2)
        with pytest.raises(ValueError, match=r"expected a value of shape \[2,3\], got \[3\]"):
            state.adopt(np.ones(3, np.float32))


@pytest.mark.parametrize(
    "array",
    [
        np.ones((3, 2), np.float32).T,
        np.ones((2, 6), np.float32)[:, ::2],
        np.ones((4, 3), np.float32)[:2],
        np.broadcast_to(np.float32(1), (2, 3)),
    ],
    ids=["transposed", "strided", "part", "read-only"],
)
def test_what_is_not_whole_is_copied_instead_of_adopted(graph, array):
    v = fs.Variable(np.zeros((2, 3), np.float32))
    with fs.Session() as sess:
        state = sess.variable_state(v.handle)
        new = state.adopt(array)
        assert not np.shares_memory(new, array)
        assert new is state.value
        np.testing.assert_array_equal(sess.run(v), 1)


def test_a_scalar_is_adopted(graph):
    v = fs.Variable(0.0)
    with fs.Session() as sess:
        value = np.float32(3)
        assert sess.variable_state(v.handle).adopt(value) is value
        assert sess.run(v) == 3


# -- parts ----------------------------------------------------------------------------------------


def table(name="v"):
    return fs.Variable(np.arange(12, dtype=np.float32).reshape(3, 4), name=name)


@pytest.mark.parametrize(
    "key",
    [
        0,
        -1,
        (1, 2),
        slice(1, 3),
        (slice(1, 3), slice(None, None, 2)),
        (slice(None, None, -1), 0),
        (Ellipsis, 1),
        slice(3, 3),
    ],
    ids=str,
)
def test_a_part_is_assigned(sess, key):
    v = table()
    want = np.arange(12, dtype=np.float32).reshape(3, 4)
    value = -np.arange(1, want[key].size + 1, dtype=np.float32).reshape(want[key].shape)
    write = v[key].assign(value)
    sess.run(v.initializer)
    before = sess.run(v)
    want[key] = value
    np.testing.assert_array_equal(sess.run(write), want)
    np.testing.assert_array_equal(sess.run(v), want)
    np.testing.assert_array_equal(before, np.arange(12).reshape(3, 4))


def test_a_part_is_assigned_a_scalar_at_a_place_that_is_fed(sess):
    v, i = table(), fs.placeholder(fs.int32, [])
    write = v[i, 1:i].assign(0.0)
    sess.run(v.initializer)
    assert sess.run(write, {i: 2})[2].tolist() == [8, 0, 10, 11]
    with pytest.raises(ValueError, match=r"expected an index in \[-3, 3\), got 3"):
        sess.run(write.op, {i: 3})
    assert sess.run(v)[2].tolist() == [8, 0, 10, 11]


def test_a_value_broadcasts_to_a_part(sess):
    v = table()
    row, column = v[1:].assign([1.0, 2.0, 3.0, 4.0]), v[:2, :2].assign([[5.0], [6.0]])
    sess.run(v.initializer)
    assert sess.run(row).tolist() == [[0, 1, 2, 3], [1, 2, 3, 4], [1, 2, 3, 4]]
    assert sess.run(column).tolist() == [[5, 5, 2, 3], [6, 6, 3, 4], [1, 2, 3, 4]]


def test_a_scalar_variable_is_assigned_as_a_whole_part(sess):
    v = fs.Variable(1.0)
    write = v[...].assign(5.0)
    sess.run(v.initializer)
    assert sess.run(write) == 5


def test_wrong_parts_are_refused_while_building():
    v = table()
    with pytest.raises(ValueError, match=r"expected a value of shape \[4\], the part's, got \[3\]"):
        v[0].assign([1.0, 2.0, 3.0])
    with pytest.raises(TypeError, match="expected float32, got int32"):
        v[0].assign(fs.constant([1, 2, 3, 4]))
    assert not hasattr(v[fs.newaxis], "assign")
    assert not hasattr(v[v > 3.0], "assign")


def test_a_part_that_does_not_fit_when_it_runs_changes_nothing(sess):
    v, x = table(), fs.placeholder(fs.float32)
    write = v[1:].assign(x)
    sess.run(v.initializer)
    with pytest.raises(
        ValueError, match=r"expected a value of shape \[2,4\], the part's, got \[3\]"
    ):
        sess.run(write.op, {x: np.ones(3)})
    np.testing.assert_array_equal(sess.run(v), np.arange(12).reshape(3, 4))


def test_a_part_of_a_variable_is_a_tensor_like_any_other(sess):
    v = table()
    sess.run(v.initializer)
    one_less = 1 - v[0]
    assert one_less.dtype == fs.float32
    values = sess.run([one_less, v[0] + v[1], fs.gradients(v[0] * v[0], v)[0][0]])
    assert [list(a) for a in values] == [[1, 0, -1, -2], [4, 6, 8, 10], [0, 2, 4, 6]]


SCATTERS = {
    "update": lambda old, new: new,
    "add": lambda old, new: old + new,
    "sub": lambda old, new: old - new,
    "mul": lambda old, new: old * new,
    "div": lambda old, new: old / new,
    "min": min,
    "max": max,
}


@pytest.mark.parametrize("how", SCATTERS)
def test_scatters_change_slices_in_the_order_of_the_indices(sess, how):
    v = fs.Variable([[1.0], [2.0], [4.0]])
    places, updates = [2, 0, 2], np.array([[8.0], [0.5], [2.0]], np.float32)
    write = getattr(v, f"scatter_{how}")(fs.IndexedSlices(updates, places))
    same = getattr(fs, f"scatter_{how}")(v, places, updates)
    want = [[1.0], [2.0], [4.0]]
    for i, u in zip(places, updates[:, 0]):
        want[i][0] = SCATTERS[how](want[i][0], u)
    sess.run(v.initializer)
    np.testing.assert_allclose(sess.run(write), want)
    sess.run(v.initializer)
    np.testing.assert_allclose(sess.run(same), want)


@pytest.mark.parametrize("how", ["update", "add", "sub", "min", "max"])
def test_scatters_by_positions(sess, how):
    v = table()
    positions, updates = [[2, 3], [0, 0]], [5.0, 7.0]
    write = getattr(v, f"scatter_nd_{how}")(positions, updates)
    want = np.arange(12, dtype=np.float32).reshape(3, 4)
    for p, u in zip(positions, updates):
        want[tuple(p)] = SCATTERS[how](want[tuple(p)], u)
    sess.run(v.initializer)
    np.testing.assert_array_equal(sess.run(write), want)


@pytest.mark.parametrize("shape", [(2, 1), (None, None)])
def test_batch_scatter_update(sess, shape):
    v = fs.Variable(np.zeros((2, 3, 2), np.float32))
    places = fs.placeholder(fs.int32, shape)
    write = fs.batch_scatter_update(v, places, np.ones((2, 1, 2), np.float32))
    sess.run(v.initializer)
    got = sess.run(write, {places: [[0], [2]]})
    assert got[..., 0].tolist() == [[1, 0, 0], [0, 0, 1]]
    sliced = fs.IndexedSlicesValue(np.full((2, 1, 2), 5.0, np.float32), [[1], [1]])
    got = sess.run(v.batch_scatter_update(sliced))
    assert got[..., 1].tolist() == [[1, 5, 0], [0, 5, 1]]
    with pytest.raises(ValueError, match="expected indices of a known rank"):
        fs.batch_scatter_update(v, fs.placeholder(fs.int32), 1.0)


def test_a_scatter_that_does_not_fit_changes_nothing(sess):
    v = table()
    i, x = fs.placeholder(fs.int32, [None]), fs.placeholder(fs.float32)
    write = fs.scatter_add(v, i, x)
    sess.run(v.initializer)
    with pytest.raises(ValueError, match=r"expected indices in \[0, 3\), got 3"):
        sess.run(write.op, {i: [0, 3], x: np.ones((2, 4))})
    # NumPy would stretch these.
    with pytest.raises(ValueError, match=r"expected updates of shape \[2,4\], got \[1,4\]"):
        sess.run(write.op, {i: [0, 1], x: np.ones((1, 4))})
    np.testing.assert_array_equal(sess.run(v), np.arange(12).reshape(3, 4))
    with pytest.raises(TypeError, match="fs.IndexedSlices"):
        v.scatter_add([0, 1])


# -- uninitialised --------------------------------------------------------------------------------


def test_a_partial_write_of_a_variable_without_a_value_is_refused_before_the_step(sess):
    a, b, c, d = (table(n) for n in "abcd")
    n = fs.Variable(0, name="n")
    up = n.assign_add(1)
    with fs.control_dependencies([up]):
        writes = [
            a[0].assign(1.0),
            b.scatter_add(fs.IndexedSlices(np.ones((1, 4), np.float32), [0])),
            c.scatter_nd_update([[0, 0]], [1.0]),
            d.assign_sub(np.ones((3, 4), np.float32)),
        ]
    sess.run(n.initializer)
    with pytest.raises(fs.errors.FailedPreconditionError, match='"a", "b", "c", "d"'):
        sess.run([w.op for w in writes])
    assert sess.run(n) == 0


def test_an_assignment_behind_a_read_does_not_initialise_it(sess):
    v = table()
    read = v + 1.0
    write = v.assign(np.zeros((3, 4), np.float32))
    with pytest.raises(fs.errors.FailedPreconditionError, match='"v"'):
        sess.run([read, write])


def test_a_partial_write_behind_an_assignment_runs(sess):
    v = table()
    with fs.control_dependencies([v.initializer]):
        write = v[0].assign(1.0)
    assert sess.run(write)[0].tolist() == [1, 1, 1, 1]


def test_assert_variables_initialized_names_all(sess):
    assert fs.assert_variables_initialized() is None
    v, _ = fs.Variable(1.0, name="v"), fs.Variable(2.0, name="w")
    check = fs.assert_variables_initialized()
    with pytest.raises(fs.errors.FailedPreconditionError, match='"v", "w"'):
        sess.run(check)
    sess.run(v.initializer)
    assert sess.run(fs.assert_variables_initialized([v])) == 0  # the rank


def test_set_shape_adds_what_is_known():
    v = fs.Variable(fs.placeholder(fs.float32), validate_shape=False)
    v.set_shape([None, 3])
    assert v.shape.as_list() == [None, 3]
    assert fs.identity(v).shape.as_list() == [None, 3]
    with pytest.raises(ValueError, match="3"):
        v.set_shape([4])


def test_slice_info_as_text():
    info = fs.Variable.SaveSliceInfo("w", [4, 3], [2, 0], [2, 3])
    assert info.spec == "4 3 2,2:0,3"
    assert fs.Variable.SaveSliceInfo.from_spec(info.spec, "w") == info
    for bad in ("", "4 3", "4 3 1,2", "4 x 1,2:3,4"):
        with pytest.raises(ValueError, match="expected text like"):
            fs.Variable.SaveSliceInfo.from_spec(bad)


def test_op_types_are_tensorflows(graph):
    v = fs.Variable(1.0, name="v")
    assert (v.op.type, v.initializer.type) == ("VarHandleOp", "AssignVariableOp")
    assert v.value().op.type == "ReadVariableOp"
    assert v.assign_add(1.0).op.type == "AssignAddVariableOp"
    assert v.assign_sub(1.0).op.type == "AssignSubVariableOp"
    assert fs.is_variable_initialized(v).op.type == "VarIsInitializedOp"
