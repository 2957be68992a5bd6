"""Optimizers against the same updates written by hand in NumPy."""

import tracemalloc

import numpy as np
import pytest

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")


@pytest.mark.parametrize("dtype", [fs.float32, fs.float64])
def test_gradient_descent(sess, dtype):
    w = fs.Variable(np.array([1.0, 2.0], dtype.as_numpy_dtype), name="w")
    rate = fs.placeholder(fs.float32, [])
    train = fs.train.GradientDescentOptimizer(rate).minimize(fs.reduce_sum(w * w))
    sess.run(fs.global_variables_initializer())
    sess.run(train, {rate: 0.25})
    np.testing.assert_allclose(sess.run(w), [0.5, 1.0])
    assert train.type == "NoOp" and train.name == "GradientDescent"


def test_adam_is_the_papers_algorithm(sess):
    start = np.array([[1.0, -2.0], [3.0, 0.5]], np.float32)
    w = fs.Variable(start, name="w")
    optimizer = fs.train.AdamOptimizer(0.1, beta1=0.8, beta2=0.9, epsilon=1e-4)
    train = optimizer.minimize(fs.reduce_sum(fs.square(w) * w))
    sess.run(fs.global_variables_initializer())
    x, m, v = start.astype(np.float64), 0.0, 0.0
    for t in range(1, 6):
        sess.run(train)
        g = 3 * x**2
        m, v = 0.8 * m + 0.2 * g, 0.9 * v + 0.1 * g * g
        rate = 0.1 * np.sqrt(1 - 0.9**t) / (1 - 0.8**t)
        x = x - rate * m / (np.sqrt(v) + 1e-4)
        np.testing.assert_allclose(sess.run(w), x, rtol=1e-5)
    assert optimizer.get_slot_names() == ["m", "v"]
    assert optimizer.get_slot(w, "m").op.name == "w/Adam"
    assert optimizer.get_slot(w, "v").op.name == "w/Adam_1"
    assert [x.op.name for x in optimizer.variables()] == [
        "beta1_power",
        "beta2_power",
        "w/Adam",
        "w/Adam_1",
    ]
    assert fs.trainable_variables() == [w]


def test_global_step_counts_updates(sess):
    w = fs.Variable(1.0)
    step = fs.train.get_or_create_global_step()
    assert fs.train.get_or_create_global_step() is step
    train = fs.train.AdamOptimizer().minimize(w * w, global_step=step)
    sess.run(fs.global_variables_initializer())
    for _ in range(3):
        sess.run(train)
    assert sess.run(step) == 3 and fs.train.global_step(sess, step) == 3


def test_compute_and_apply_gradients_with_changed_gradients(sess):
    a, b = fs.Variable(2.0, name="a"), fs.Variable(3.0, name="b")
    optimizer = fs.train.GradientDescentOptimizer(1.0)
    pairs = optimizer.compute_gradients(a * 5.0)
    assert pairs[1] == (None, b)
    train = optimizer.apply_gradients([(g if g is None else g * 0.1, v) for g, v in pairs])
    sess.run(fs.global_variables_initializer())
    sess.run(train)
    np.testing.assert_allclose(sess.run([a, b]), [1.5, 3.0])


def test_a_constraint_is_applied_after_the_update(sess):
    w = fs.Variable(1.0, constraint=lambda x: fs.maximum(x, 0.5))
    train = fs.train.GradientDescentOptimizer(10.0).minimize(w * w)
    sess.run(w.initializer)
    sess.run(train)
    assert sess.run(w) == 0.5


def test_clear_errors():
    loss = fs.constant(1.0)
    optimizer = fs.train.GradientDescentOptimizer(0.1)
    with pytest.raises(ValueError, match="no variables to train"):
        optimizer.minimize(loss)
    w = fs.Variable(1.0, name="w")
    with pytest.raises(ValueError, match="no variable has influence.*w:0"):
        optimizer.minimize(loss)
    with pytest.raises(ValueError, match="no gradients were given.*w:0"):
        optimizer.apply_gradients([(None, w)])


def test_training_a_small_network_lowers_its_loss(sess):
    rng = np.random.default_rng(0)
    xs = rng.normal(size=(64, 4)).astype(np.float32)
    ys = (xs @ rng.normal(size=(4, 3))).argmax(1).astype(np.int32)
    x, y = fs.placeholder(fs.float32, [None, 4]), fs.placeholder(fs.int32, [None])
    w = fs.Variable(fs.zeros([4, 3]))
    b = fs.Variable(fs.zeros([3]))
    logits = fs.matmul(x, w) + b
    loss = fs.reduce_mean(fs.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    train = fs.train.AdamOptimizer(0.1).minimize(loss)
    sess.run(fs.global_variables_initializer())
    first = sess.run(loss, {x: xs, y: ys})
    for _ in range(100):
        sess.run(train, {x: xs, y: ys})
    assert first == pytest.approx(np.log(3), rel=1e-5)
    assert sess.run(loss, {x: xs, y: ys}) < 0.2


def test_hyperparameters_are_numbers_tensors_variables_and_functions(sess):
    w = fs.Variable(1.0, name="w")
    rate = fs.Variable(1.0, trainable=False)
    fed = fs.placeholder(fs.float64, [])
    calls = []

    def half():
        calls.append(1)
        return 0.5

    trains = [
        fs.train.GradientDescentOptimizer(r).apply_gradients([(1.0, w)])
        for r in (0.25, rate, fs.constant(0.125), half, fed)
    ]
    sess.run(fs.global_variables_initializer())
    values = []
    for train in trains:
        sess.run(train, {fed: 2.0})
        values.append(float(sess.run(w)))
    assert values == [0.75, -0.25, -0.375, -0.875, -2.875]
    assert calls == [1]


def test_gates(sess):
    a, b = fs.Variable(2.0, name="a"), fs.Variable([1.0, 3.0], name="b")
    loss = a * fs.gather(b, 1)
    optimizer = fs.train.GradientDescentOptimizer(1.0)
    for gate in (optimizer.GATE_NONE, optimizer.GATE_OP):
        assert len(optimizer.compute_gradients(loss, gate_gradients=gate)) == 2
    (da, _), (db, _) = optimizer.compute_gradients(loss, gate_gradients=optimizer.GATE_GRAPH)
    assert isinstance(db, fs.IndexedSlices)
    assert da.op.control_inputs == db.values.op.control_inputs != []
    sess.run(fs.global_variables_initializer())
    assert sess.run([da, db.values]) == [3.0, [2.0]]
    with pytest.raises(ValueError, match="GATE_NONE, GATE_OP or GATE_GRAPH, got 7"):
        optimizer.compute_gradients(loss, gate_gradients=7)


def test_only_the_listed_variables_are_trained(sess):
    a, b = fs.Variable(2.0, name="a"), fs.Variable(3.0, name="b")
    train = fs.train.MomentumOptimizer(1.0, 0.5).minimize(a * b, var_list=[a])
    sess.run(fs.global_variables_initializer())
    sess.run(train)
    assert sess.run([a, b]) == [-1.0, 3.0]
    assert [v.op.name for v in fs.global_variables()] == ["a", "b", "a/Momentum"]


def test_a_variable_in_parts_is_trained_by_its_parts(sess):
    with fs.variable_scope("s", partitioner=fs.fixed_size_partitioner(2)):
        w = fs.get_variable("w", [4, 2], initializer=fs.ones_initializer())
    train = fs.train.AdagradOptimizer(1.0, 0.25).minimize(
        fs.reduce_sum(fs.convert_to_tensor(w)), var_list=w
    )
    sess.run(fs.global_variables_initializer())
    sess.run(train)
    np.testing.assert_allclose(sess.run(w.as_tensor()), 1 - 1 / np.sqrt(1.25), rtol=1e-6)


def test_gradients_of_lookups_stay_sparse_all_the_way(graph, sess):
    table = fs.Variable(fs.ones([1000, 2]), name="table")
    rows = fs.placeholder(fs.int32, [None])
    loss = fs.reduce_sum(fs.nn.embedding_lookup(table, rows) * [[1.0, 2.0]])
    optimizer = fs.train.MomentumOptimizer(0.5, 0.5)
    train = optimizer.minimize(loss)
    (update,) = [o for o in graph.get_operations() if o.type == "ApplyMomentum"]
    assert update.name == "Momentum/update_table/SparseApplyMomentum" and len(update.inputs) == 6
    sess.run(fs.global_variables_initializer())
    sess.run(train, {rows: [7, 3, 7]})
    sess.run(train, {rows: [3]})
    want = np.ones((1000, 2), np.float32)
    want[7] -= np.array([1, 2]) * 2 * 0.5
    want[3] -= np.array([1, 2]) * (1 + 1.5) * 0.5
    np.testing.assert_allclose(sess.run(table), want)
    sess.run(train, {rows: np.zeros(0, np.int32)})
    np.testing.assert_allclose(sess.run(table), want)


@pytest.mark.memory
def test_a_sparse_step_works_in_place_on_its_rows_alone(sess):
    """The buffers of the table and its slot stay where they are: nothing of their size is made."""
    table = fs.Variable(fs.ones([1000, 200]), name="table")
    rows = fs.placeholder(fs.int32, [None])
    optimizer = fs.train.AdagradOptimizer(0.5)
    train = optimizer.minimize(fs.reduce_sum(fs.gather(table, rows)))
    sess.run(fs.global_variables_initializer())
    feeds = {rows: [5, 9, 5]}
    sess.run(train, feeds)
    buffers = [sess.variable_state(v.handle) for v in fs.global_variables()]
    before = [b.value.ctypes.data for b in buffers]
    tracemalloc.start()
    try:
        sess.run(train, feeds)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [b.value.ctypes.data for b in buffers] == before
    assert peak < 100_000 < buffers[0].value.nbytes


def test_a_sparse_gradient_for_an_optimizer_without_sparse_updates_becomes_dense(sess):
    class Plain(fs.train.Optimizer):
        def _apply_dense(self, grad, var):
            return var.assign_sub(grad).op

    w = fs.Variable([1.0, 1.0, 1.0])
    train = Plain().minimize(fs.reduce_sum(fs.gather(w, [2, 0, 2])))
    sess.run(fs.global_variables_initializer())
    sess.run(train)
    np.testing.assert_array_equal(sess.run(w), [0, 1, -1])


def test_slots_follow_their_variables_device_and_shape(sess):
    with fs.device("/cpu:0"):
        w = fs.Variable([1.0, 2.0], name="w")
    v = fs.Variable(fs.placeholder_with_default([3.0], [None]), validate_shape=False, name="v")
    optimizer = fs.train.MomentumOptimizer(0.5, 0.5)
    train = optimizer.apply_gradients([([1.0, 1.0], w), ([1.0], v)])
    for x in (w, v):
        slot = optimizer.get_slot(x, "momentum")
        assert (
            slot.device == x.device and f"loc:@{x.op.name}".encode() in slot.op.colocation_groups()
        )
        assert slot.dtype is x.dtype
    assert optimizer.get_slot(w, "nothing") is None
    sess.run(fs.global_variables_initializer())
    sess.run(train)
    np.testing.assert_array_equal(sess.run(v), [2.5])


def test_slots_are_made_once_and_two_optimizers_have_their_own(sess):
    w = fs.Variable(1.0, name="w")
    one, two = (
        fs.train.AdamOptimizer(),
        fs.train.AdamOptimizer(use_own_namescope_for_non_slot_vars=True),
    )
    one.minimize(w * w)
    one.minimize(w * 2.0)
    two.minimize(w * w)
    assert [v.op.name for v in one.variables()] == [
        "beta1_power", "beta2_power", "w/Adam", "w/Adam_1",
    ]  # fmt: skip
    assert [v.op.name for v in two.variables()] == [
        "Adam/beta1_power", "Adam/beta2_power", "w/Adam_2", "w/Adam_3",
    ]  # fmt: skip


def test_names_of_what_an_update_adds(graph):
    w = fs.Variable(1.0, name="w")
    train = fs.train.MomentumOptimizer(0.1, 0.9).minimize(w * w, fs.train.create_global_step())
    assert train.name == "Momentum" and graph.get_collection("train_op") == [train]
    names = {o.name for o in graph.get_operations() if o.name.startswith("Momentum")}
    assert {
        "Momentum/learning_rate",
        "Momentum/momentum",
        "Momentum/update_w/ApplyMomentum",
        "Momentum/update",
    } <= names


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda t: t.AdagradOptimizer(0.1, 0.0), "initial_accumulator_value > 0, got 0.0"),
        (lambda t: t.FtrlOptimizer(0.1, initial_accumulator_value=-1.0), ">= 0, got -1.0"),
        (lambda t: t.FtrlOptimizer(0.1, 0.5), "-learning_rate_power >= 0, got -0.5"),
        (lambda t: t.ProximalAdagradOptimizer(0.1, 0.1, -1), "l1_regularization_strength >= 0"),
        (lambda t: t.GradientDescentOptimizer(0.1, name=""), "needs a name"),
    ],
)
def test_numbers_out_of_range(make, message):
    with pytest.raises(ValueError, match=message):
        make(fs.train)


def test_what_is_no_variable_is_refused():
    optimizer = fs.train.GradientDescentOptimizer(0.1)
    w = fs.Variable(1.0)
    for other in ("w", 1.0, ["w"]):
        with pytest.raises(TypeError, match="expected variables or tensors to train"):
            optimizer.compute_gradients(w * 1.0, var_list=other)
    with pytest.raises(NotImplementedError, match=r"expected \(gradient, variable\) pairs"):
        optimizer.apply_gradients([(1.0, fs.constant(1.0))])
    with pytest.raises(TypeError, match=r"expected \(gradient, variable\) pairs"):
        optimizer.apply_gradients([(1.0, 5)])
    with pytest.raises(TypeError, match='floating-point or complex "n/read:0", got int32'):
        optimizer.minimize(fs.Variable(1, name="n"))
    whole = fs.Variable(1)  # is trainable, and has no influence
    assert optimizer.compute_gradients(w * 1.0)[1:] == [
        (None, fs.trainable_variables()[1]),
        (None, whole),
    ]


def test_an_optimizer_tells_of_the_variables_of_the_default_graph():
    optimizer = fs.train.MomentumOptimizer(0.1, 0.9)
    for name in "ab":
        with fs.Graph().as_default():
            optimizer.minimize(fs.square(fs.Variable(1.0, name=name)))
            assert [v.op.name for v in optimizer.variables()] == [f"{name}/Momentum"]
    assert optimizer.variables() == []


def test_gradients_by_tensors_can_be_looked_at():
    x = fs.constant(3.0)
    ((gradient, same),) = fs.train.GradientDescentOptimizer(0.1).compute_gradients(x * x, [x])
    assert same is x
    with fs.Session() as sess:
        assert sess.run(gradient) == 6


def test_a_global_step_is_an_integer_scalar():
    other = fs.Graph()
    assert fs.train.create_global_step(other).graph is other  # an empty graph counts
    with fs.variable_scope("s"):
        assert fs.train.create_global_step().op.name == "s/global_step"
    for value in (0.0, [0]):
        with fs.Graph().as_default():
            fs.Variable(value, collections=["global_step"])
            with pytest.raises(TypeError, match="expected a"):
                fs.train.get_global_step()
    with fs.Graph().as_default():
        step = fs.Variable(3, name="global_step")
        assert fs.train.get_or_create_global_step() is step
    with pytest.raises(TypeError, match="expected a variable or a tensor"):
        fs.train.assert_global_step(5)
