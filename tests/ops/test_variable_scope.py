"""Variable scopes: defaults, sharing, getters, regularizers, templates, local variables."""

import numpy as np
import pytest

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")


def losses():
    return fs.get_collection(fs.GraphKeys.REGULARIZATION_LOSSES)


def test_regularizers_are_called_once_per_variable(sess):
    def half_square(v):
        return fs.reduce_sum(fs.square(v)) / 2.0

    with fs.variable_scope("layer", regularizer=half_square):
        fs.get_variable("w", initializer=[1.0, 2.0])
        fs.get_variable("b", initializer=[3.0], regularizer=fs.no_regularizer)
    with fs.variable_scope("layer", reuse=True, regularizer=half_square):
        fs.get_variable("w")
    assert [t.op.name.rpartition("/")[0] for t in losses()] == ["layer/w/Regularizer"]
    sess.run(fs.global_variables_initializer())
    assert sess.run(losses()) == [2.5]


def test_constraints_and_initializers_come_from_the_scope():
    def clip(v):
        return fs.clip_by_value(v, 0.0, 1.0)

    with fs.variable_scope("a", constraint=clip, initializer=fs.ones_initializer()) as scope:
        with fs.variable_scope("b"):
            v = fs.get_variable("v", [2])
        scope.set_initializer(fs.zeros_initializer())
        scope.set_dtype(fs.float64)
        w = fs.get_variable("w", [2])
    assert v.constraint is clip
    assert (v.initial_value.op.type, w.dtype) == ("Const", fs.float64)
    with fs.Session() as sess:
        sess.run(fs.global_variables_initializer())
        assert [list(a) for a in sess.run([v, w])] == [[1, 1], [0, 0]]


def test_custom_getters_nest_from_inside_out():
    calls = []

    def getter(label):
        def get(true_getter, name, **kwargs):
            calls.append((label, name, kwargs["trainable"]))
            return true_getter(name, **{**kwargs, "trainable": False})

        return get

    with fs.variable_scope("a", custom_getter=getter("outer")):
        with fs.variable_scope("b", custom_getter=getter("inner")):
            v = fs.get_variable("v", [1], custom_getter=getter("own"))
    assert not v.trainable
    assert calls == [("own", "a/b/v", None), ("inner", "a/b/v", False), ("outer", "a/b/v", False)]


def test_a_custom_getter_may_return_something_else(sess):
    with fs.variable_scope("a", custom_getter=lambda get, *a, **k: fs.identity(get(*a, **k)) * 2.0):
        double = fs.get_variable("v", initializer=3.0)
    sess.run(fs.global_variables_initializer())
    assert sess.run(double) == 6.0
    assert [v.name for v in fs.trainable_variables()] == ["a/v:0"]


def test_local_variables_are_neither_trained_nor_global(sess):
    v = fs.get_local_variable("v", [2], initializer=fs.ones_initializer())
    w = fs.get_local_variable("w", [], collections=["mine"])
    assert fs.local_variables() == [v, w]
    assert fs.get_collection("mine") == [w]
    assert not fs.global_variables()
    assert not fs.trainable_variables()
    sess.run(fs.global_variables_initializer())
    with pytest.raises(fs.errors.FailedPreconditionError):
        sess.run(v)
    sess.run(fs.local_variables_initializer())
    assert list(sess.run(v)) == [1, 1]


def test_a_scope_that_is_opened_again_keeps_its_first_name_scope():
    with fs.variable_scope("q") as q:
        pass
    with fs.variable_scope(q) as again:
        assert fs.no_op("n").name == "q_1/n"
        assert again.original_name_scope == "q/"
        assert fs.get_variable("v", []).name == "q/v:0"
    with fs.variable_scope(q, auxiliary_name_scope=False):
        assert fs.no_op("n").name == "n"
    with pytest.raises(ValueError, match="reuse needs the name of a scope"):
        with fs.variable_scope(None, "d", reuse=True):
            pass


def test_collections_of_a_scope_are_its_own():
    with fs.variable_scope("a.b") as scope:
        v = fs.get_variable("v", [])
    with fs.variable_scope("aXb"):
        fs.get_variable("v", [])
    assert scope.global_variables() == [v]
    assert scope.get_collection(fs.GraphKeys.TRAINABLE_VARIABLES) == [v]
    assert scope.get_variable("w", []).name == "a.b/w:0"


# -- templates ------------------------------------------------------------------------------------


def scaled(x, start=2.0):
    return x * fs.get_variable("k", initializer=start)


def test_a_template_makes_its_variables_once(sess):
    scale = fs.make_template("scale", scaled)
    assert (scale.variable_scope, scale.variable_scope_name, scale.variables) == (None, None, [])
    a, b = scale(fs.constant(1.0)), scale(fs.constant(10.0))
    other = fs.make_template("scale", scaled, start=5.0)
    c = other(fs.constant(1.0))
    sess.run(fs.global_variables_initializer())
    assert sess.run([a, b, c]) == [2.0, 20.0, 5.0]
    assert [v.name for v in scale.trainable_variables] == ["scale/k:0"]
    assert (scale.variable_scope_name, other.variable_scope_name) == ("scale/", "scale_1/")
    assert (scale.name, scale.func) == ("scale", scaled)
    assert scale.variables == scale.global_variables
    assert not scale.local_variables
    assert not scale.non_trainable_variables


def test_a_template_keeps_its_scope_wherever_it_is_called():
    first = fs.make_template("t", scaled, create_scope_now_=True)
    with fs.variable_scope("elsewhere"):
        first(fs.constant(1.0))
    assert [v.name for v in fs.global_variables()] == ["t/k:0"]


def test_a_template_that_makes_variables_again_is_refused():
    names = iter(["k", "l"])
    new_each = fs.make_template("a", lambda x: x * fs.get_variable(next(names), []))
    plain = fs.make_template("b", lambda x: x * fs.Variable(1.0))
    for template, message in ((new_each, "does not exist"), (plain, "use fs.get_variable")):
        template(fs.constant(1.0))
        with pytest.raises(ValueError, match=message):
            template(fs.constant(1.0))


def test_a_unique_name_is_taken_once():
    fs.make_template("n", scaled, unique_name_="only")(fs.constant(1.0))
    again = fs.make_template("n", scaled, unique_name_="only")
    with pytest.raises(ValueError, match="only/k already exists"):
        again(fs.constant(1.0))
    with pytest.raises(ValueError, match="expected a function"):
        fs.make_template("n", 3)


# -- partitions -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("partitioner", "want"),
    [
        (fs.fixed_size_partitioner(4), [4, 1]),
        (fs.fixed_size_partitioner(100, axis=1), [1, 8]),
        (fs.variable_axis_size_partitioner(100), [22, 1]),
        (fs.variable_axis_size_partitioner(1024, axis=1), [1, 2]),
        (fs.variable_axis_size_partitioner(65, max_shards=3), [3, 1]),
        (fs.variable_axis_size_partitioner(1 << 20), [1, 1]),
        (fs.min_max_variable_partitioner(4, min_slice_size=64), [4, 1]),
        (fs.min_max_variable_partitioner(100, min_slice_size=64), [32, 1]),
        (fs.min_max_variable_partitioner(3, axis=1, min_slice_size=1), [1, 3]),
        (fs.min_max_variable_partitioner(5, min_slice_size=1 << 20), [1, 1]),
    ],
)
def test_partitioners(partitioner, want):
    assert partitioner(shape=fs.TensorShape([64, 8]), dtype=fs.float32) == want


def test_partitioners_guess_the_size_of_strings():
    shape = fs.TensorShape([64])
    assert fs.variable_axis_size_partitioner(64)(shape=shape, dtype=fs.string) == [16]
    bytewise = fs.min_max_variable_partitioner(99, min_slice_size=64, bytes_per_string_element=4)
    assert bytewise(shape=shape, dtype=fs.string) == [4]


def test_bad_bounds_of_partitioners_are_refused():
    with pytest.raises(ValueError, match="max_shard_bytes of at least 1, got 0"):
        fs.variable_axis_size_partitioner(0)
    with pytest.raises(ValueError, match="max_partitions of at least 1, got 0"):
        fs.min_max_variable_partitioner(0)
    with pytest.raises(ValueError, match=r"cannot cut axis 2 of shape \[4\]"):
        fs.fixed_size_partitioner(2, axis=2)(shape=[4], dtype=fs.float32)


def test_a_variable_in_parts_reads_and_writes_like_one(sess):
    with fs.variable_scope("s", partitioner=fs.fixed_size_partitioner(3)):
        w = fs.get_variable("w", [7, 2], initializer=fs.zeros_initializer())
    assert isinstance(w, fs.PartitionedVariable)
    assert (w.name, w.dtype, w.shape.as_list(), len(w)) == ("s/w", fs.float32, [7, 2], 3)
    assert [v.name for v in w] == [f"s/w/part_{i}:0" for i in range(3)]
    assert [v.shape.as_list() for v in w] == [[3, 2], [2, 2], [2, 2]]
    assert [v._save_slice_info.spec for v in w] == ["7 2 0,3:0,2", "7 2 3,2:0,2", "7 2 5,2:0,2"]
    assert fs.trainable_variables() == list(w)
    assert w.as_tensor().name == "s/w:0"
    value = np.arange(14, dtype=np.float32).reshape(7, 2)
    sess.run(w.initializer)
    before = sess.run(w)
    sess.run(w.assign(value))
    sess.run(w.assign_add(np.ones((7, 2))))
    sess.run(w.assign_sub([[0.5, 0.5]] * 7, read_value=False))
    np.testing.assert_array_equal(sess.run(w), value + 0.5)
    np.testing.assert_array_equal(before, 0)
    np.testing.assert_array_equal(sess.run(fs.matmul(fs.ones([1, 7]), w))[0], [45.5, 52.5])


def test_parts_are_assigned_from_parts(sess):
    a = fs.get_variable("a", [4], partitioner=fs.fixed_size_partitioner(2))
    b = fs.get_variable("b", [4], partitioner=fs.fixed_size_partitioner(2))
    sess.run([a.initializer, b.assign([fs.constant([1.0, 2.0]), fs.constant([3.0, 4.0])])])
    sess.run(a.assign(b))
    assert list(sess.run(a)) == [1, 2, 3, 4]
    with pytest.raises(ValueError, match="expected 2 parts, got 1"):
        a.assign([fs.constant([1.0, 2.0])])


def test_a_read_of_parts_is_shared_until_something_is_written():
    w = fs.get_variable("w", [4], partitioner=fs.fixed_size_partitioner(2))
    first = w.as_tensor()
    assert w.as_tensor() is first
    next(iter(w)).assign([0.0, 0.0])
    assert w.as_tensor() is not first


def test_gradients_reach_the_parts_and_the_whole(sess):
    w = fs.get_variable(
        "w", [5], initializer=fs.ones_initializer(), partitioner=fs.fixed_size_partitioner(2)
    )
    y = fs.reduce_sum(w * w * [1.0, 2.0, 3.0, 4.0, 5.0])
    sess.run(w.initializer)
    parts, (whole,) = sess.run([fs.gradients(y, list(w)), fs.gradients(y, w)])
    assert [list(p) for p in parts] == [[2, 4, 6], [8, 10]]
    assert list(whole) == [2, 4, 6, 8, 10]
    train = fs.train.GradientDescentOptimizer(0.1).minimize(y)
    sess.run(train)
    np.testing.assert_allclose(sess.run(w), [0.8, 0.6, 0.4, 0.2, 0.0], atol=1e-6)


def test_initial_values_are_cut(sess):
    halves = fs.fixed_size_partitioner(2, axis=1)
    value = np.arange(8.0).reshape(2, 4)
    seen = []

    def position(shape, dtype=None, partition_info=None):
        seen.append((shape, partition_info.single_offset(shape), partition_info.full_shape))
        return fs.fill(shape, fs.cast(partition_info.var_offset[1], dtype))

    made = [
        fs.get_variable("value", initializer=value, partitioner=halves),
        fs.get_variable(
            "constant", [2, 4], initializer=fs.constant_initializer(value), partitioner=halves
        ),
        fs.get_variable("function", [2, 4], initializer=position, partitioner=halves),
        fs.get_variable("plain", [2, 4], initializer=fs.zeros, partitioner=halves),
    ]
    sess.run(fs.global_variables_initializer())
    a, b, c, d = sess.run(made)
    np.testing.assert_array_equal(a, value)
    np.testing.assert_array_equal(b, value)
    np.testing.assert_array_equal(c, [[0, 0, 2, 2]] * 2)
    np.testing.assert_array_equal(d, 0)
    assert made[0].dtype == fs.float64
    assert seen == [([2, 2], 0, [2, 4]), ([2, 2], 2, [2, 4])]


def test_random_parts_are_scaled_as_the_whole_and_differ(sess):
    w = fs.get_variable("w", [2, 600], partitioner=fs.fixed_size_partitioner(2, axis=1))
    sess.run(w.initializer)
    value = sess.run(w)
    assert 0.9 < np.abs(value).max() / np.sqrt(6 / 602) <= 1
    assert not np.array_equal(value[:, :300], value[:, 300:])


def test_variables_in_parts_are_shared_as_they_were_made():
    halves = fs.fixed_size_partitioner(2)
    with fs.variable_scope("s"):
        w = fs.get_variable("w", [4], partitioner=halves)
        whole = fs.get_variable("whole", [4])
        with pytest.raises(ValueError, match="s/w already exists, made in test_variable_scope"):
            fs.get_variable("w", [4], partitioner=halves)
        scalar = fs.get_variable("scalar", [], partitioner=halves)
    assert isinstance(scalar, fs.Variable)
    with fs.variable_scope("s", reuse=True):
        assert fs.get_variable("w", [4], partitioner=halves) is w
        assert fs.get_variable("w") is w
        with pytest.raises(ValueError, match=r"has \[2\] parts along its axes, asked for \[4\]"):
            fs.get_variable("w", partitioner=fs.fixed_size_partitioner(4))
        with pytest.raises(ValueError, match=r"has shape \[4\], asked for \[5\]"):
            fs.get_variable("w", [5], partitioner=halves)
        with pytest.raises(ValueError, match="exists in one part, asked for several"):
            fs.get_variable("whole", [4], partitioner=halves)
    assert whole.shape.as_list() == [4]


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ([1], r"for each axis of shape \[4,6\], got \[1\]"),
        ([0, 1], "from one part to one per slice"),
        ([5, 1], "from one part to one per slice"),
        ([2, 3], "one axis at most"),
        (3, "got 3"),
    ],
)
def test_what_partitioners_return_is_checked(wanted, message):
    with pytest.raises(ValueError, match=message):
        fs.get_variable("w", [4, 6], partitioner=lambda **_: wanted)


def test_a_partitioner_that_is_no_function_is_refused():
    with pytest.raises(ValueError, match="expected a function as partitioner, got 2"):
        fs.get_variable("w", [4], partitioner=2)
    with pytest.raises(ValueError, match="needs a shape, got none"):
        fs.get_variable("w", partitioner=fs.fixed_size_partitioner(2))


def test_create_partitioned_variables(sess):
    parts = fs.create_partitioned_variables([4, 6], [1, 4], fs.ones_initializer())
    assert [v.name for v in parts] == [f"PartitionedVariable/part_{i}:0" for i in range(4)]
    assert [v.shape.as_list() for v in parts] == [[4, 2], [4, 2], [4, 1], [4, 1]]
    named = fs.create_partitioned_variables(
        [4], [2], fs.zeros_initializer(), fs.int32, False, ["mine"], "mine"
    )
    assert [v.name for v in named] == ["mine/part_0:0", "mine/part_1:0"]
    assert fs.get_collection("mine") == named
    assert named[0].dtype == fs.int32
    assert not named[0].trainable
    again = fs.create_partitioned_variables(
        [4], [2], fs.zeros_initializer(), fs.int32, name="mine", reuse=True
    )
    assert again == named
    sess.run(fs.global_variables_initializer())
    assert sess.run(fs.add_n([fs.reduce_sum(v) for v in parts])) == 24


# -- embeddings -----------------------------------------------------------------------------------


def tables():
    rows = np.arange(16, dtype=np.float64).reshape(8, 2)
    mod = [rows[i::3] for i in range(3)]
    div = [rows[:3], rows[3:6], rows[6:]]
    return rows, {"mod": mod, "div": div}


@pytest.mark.parametrize("shape", [(2, 3), (None, None)])
@pytest.mark.parametrize("strategy", ["mod", "div"])
def test_a_lookup_in_parts_is_one_in_the_whole(sess, strategy, shape):
    rows, parts = tables()
    ids = fs.placeholder(fs.int64, shape)
    found = fs.nn.embedding_lookup(parts[strategy], ids, strategy)
    assert found.shape.as_list() == [*shape, 2]
    places = [[0, 7, 3], [3, 5, 2]]
    np.testing.assert_array_equal(sess.run(found, {ids: places}), rows[places])
    assert sess.run(found, {ids: np.zeros((0, 3)) if shape[0] is None else places}).shape[1:] == (
        3,
        2,
    )
    with pytest.raises(ValueError, match="expected"):
        sess.run(found, {ids: [[0, 9, 0], [0, 0, 0]]})


def test_rows_are_clipped_to_a_norm(sess):
    table = [[[3.0, 4.0], [0.3, 0.4]], [[0.0, 0.0], [6.0, 8.0]]]
    clipped = fs.nn.embedding_lookup([fs.constant(t) for t in table], [0, 1, 2, 3], max_norm=1.0)
    want = [[0.6, 0.8], [0, 0], [0.3, 0.4], [0.6, 0.8]]
    np.testing.assert_allclose(sess.run(clipped), want, rtol=1e-6)
    deep = fs.nn.embedding_lookup(fs.constant([[[3.0], [4.0]]]), [0], max_norm=1.0)
    np.testing.assert_allclose(sess.run(deep), [[[0.6], [0.8]]], rtol=1e-6)


@pytest.mark.parametrize("strategy", ["mod", "div"])
def test_the_gradient_of_a_lookup_names_rows_of_each_part_alone(sess, strategy):
    rows, parts = tables()
    variables = [fs.Variable(p) for p in parts[strategy]]
    ids = [0, 7, 7, 2]
    found = fs.nn.embedding_lookup(variables, ids, strategy)
    grads = fs.gradients(found * [[1.0, 2.0]], variables)
    assert all(isinstance(g, fs.IndexedSlices) for g in grads)
    sess.run(fs.global_variables_initializer())
    touched = sum(len(g.indices) for g in sess.run(grads))
    assert touched == len(ids)
    dense = sess.run([fs.convert_to_tensor(g) for g in grads])
    whole = np.zeros_like(rows)
    np.add.at(whole, ids, [1.0, 2.0])
    cut = [whole[i::3] for i in range(3)] if strategy == "mod" else np.split(whole, [3, 6])
    for got, expected in zip(dense, cut, strict=True):
        np.testing.assert_array_equal(got, expected)


def test_a_lookup_in_a_partitioned_variable(sess):
    table = fs.get_variable(
        "t", initializer=np.arange(7.0), partitioner=fs.fixed_size_partitioner(3)
    )
    found = fs.nn.embedding_lookup(table, [6, 0, 3], "div")
    sess.run(table.initializer)
    assert list(sess.run(found)) == [6, 0, 3]


def test_bad_lookups_are_refused():
    with pytest.raises(ValueError, match="one part of a table at least"):
        fs.nn.embedding_lookup([], [0])
    with pytest.raises(ValueError, match='"mod" or "div", got \'best\''):
        fs.nn.embedding_lookup([fs.ones([2]), fs.ones([2])], [0], "best")


def test_default_names_start_anew_where_a_scope_is_opened_again(graph):
    def name(default):
        with fs.variable_scope(None, default) as scope:
            return scope.name

    for _ in range(2):
        with fs.variable_scope("outer") as outer:
            assert [name("cell"), name("cell")] == ["outer/cell", "outer/cell_1"]
    with fs.variable_scope(outer):
        assert name("cell") == "outer/cell"
    with fs.variable_scope("outer"):
        with fs.variable_scope("cell"):
            pass
        assert name("cell") == "outer/cell_1"
    assert [name("outer"), name("other"), name("other")] == ["outer_1", "other", "other_1"]
