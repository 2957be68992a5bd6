"""A stopped step leaves every update whole, whoever wrote its parts."""

import numpy as np
import pytest
from stopping import StopAt

import flowscope as fs
from flowscope.plan.codegen import function as code

pytestmark = pytest.mark.usefixtures("graph")

T = fs.train


def outcomes(sess, step, groups):
    """Stops the same step at each of its safepoints; returns which groups moved, each time.

    Asserts that of each group (lists of variables) all moved or none.
    """
    state = [v for group in groups for v in group]
    start = sess.run(state)
    normal, seen = sess.gate, []
    for count in range(2000):
        sess.gate = StopAt(count)
        try:
            sess.run(step)
        except fs.errors.CancelledError:
            sess.gate = normal
            seen.append(_moved(groups, dict(zip(state, start)), dict(zip(state, sess.run(state)))))
            for v, value in zip(state, start, strict=True):
                v.load(value, sess)
        else:
            break
        finally:
            sess.gate = normal
    assert all(_moved(groups, dict(zip(state, start)), dict(zip(state, sess.run(state)))))
    return seen


def _moved(groups, before, after):
    moved = []
    for group in groups:
        each = {v.name: not np.array_equal(before[v], after[v]) for v in group}
        assert len(set(each.values())) == 1, each
        moved.append(each.popitem()[1])
    return tuple(moved)


def network(count=3):
    w = [fs.Variable(np.full((3, 3), i + 1.0, np.float32) + np.eye(3, dtype="f4"))
         for i in range(count)]  # fmt: skip
    product = w[0]
    for v in w[1:]:
        product = fs.matmul(product, v)
    return w, fs.reduce_sum(product) * 1e-2


OPTIMIZERS = {
    "momentum": lambda: T.MomentumOptimizer(0.1, 0.9),
    "adagrad": lambda: T.AdagradOptimizer(0.1),
    "adadelta": lambda: T.AdadeltaOptimizer(0.1, epsilon=1e-3),
    "rms": lambda: T.RMSPropOptimizer(0.1, centered=True, momentum=0.5),
    "ftrl": lambda: T.FtrlOptimizer(0.1),
    "proximal": lambda: T.ProximalAdagradOptimizer(0.1),
    "lbfgs": lambda: T.LBFGSOptimizer(0.1, 3),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_update_is_whole_at_every_safepoint(sess, name, monkeypatch):
    monkeypatch.setattr(code, "STRETCH_S", 0.0)
    w, loss = network()
    step = T.get_or_create_global_step()
    optimizer = OPTIMIZERS[name]()
    train = optimizer.minimize(loss, global_step=step)
    sess.run(fs.global_variables_initializer())
    sess.run(train)
    # L-BFGS keeps pairs in rings, of which a row may get the value that it had.
    slots = [v for v in optimizer.variables() if "LBFGS/" not in v.name]
    seen = outcomes(sess, train, [[*w, step, *slots]])
    assert len(seen) > 5 and (False,) in seen


def test_several_optimizers_in_one_step(sess, monkeypatch):
    """Each update is whole; they need not be whole together."""
    monkeypatch.setattr(code, "STRETCH_S", 0.0)
    w, loss = network(6)
    adam, momentum = T.AdamOptimizer(0.1), T.MomentumOptimizer(0.1, 0.9)
    first = adam.minimize(loss, var_list=w[:3])
    second = momentum.minimize(loss, var_list=w[3:])
    ema = T.ExponentialMovingAverage(0.5)
    with fs.control_dependencies([first, second]):
        slow = ema.apply(w)
    sess.run(fs.global_variables_initializer())
    groups = [
        [*w[:3], *adam.variables()],
        [*w[3:], *momentum.variables()],
        [ema.average(v) for v in w],
    ]
    seen = set(outcomes(sess, [first, second, slow], groups))
    assert (False, False, False) in seen
    assert (True, True, False) in seen
    assert (True, False, False) in seen or (False, True, False) in seen


class ByHand(T.Optimizer):
    """An optimizer as a user writes one: of assignments, sparse ones too."""

    def __init__(self):
        super().__init__(False, "ByHand")

    def _create_slots(self, var_list):
        for v in var_list:
            self._zeros_slot(v, "count", "Count")

    def _prepare(self):
        self._rate = fs.constant(0.1, name="rate")

    def _apply_dense(self, grad, var):
        count = self.get_slot(var, "count").assign_add(fs.ones(var.shape.as_list()))
        return fs.group(count, var.assign_sub(self._rate * grad))

    def _apply_sparse(self, grad, var):
        count = fs.scatter_add(self.get_slot(var, "count"), grad.indices, 1.0)
        return fs.group(count, fs.scatter_sub(var, grad.indices, self._rate * grad.values))


def test_an_optimizer_of_the_users_with_a_constraint(sess, monkeypatch):
    monkeypatch.setattr(code, "STRETCH_S", 0.0)
    table = fs.Variable(np.ones((4, 2), np.float32), name="table")
    w = fs.Variable(np.ones((2, 2), np.float32), name="w", constraint=lambda x: fs.minimum(x, 0.9))
    loss = fs.reduce_sum(fs.matmul(fs.gather(table, [1, 3, 1]), w))
    optimizer = ByHand()
    train = optimizer.minimize(loss)
    sess.run(fs.global_variables_initializer())
    seen = outcomes(sess, train, [[table, w, *optimizer.variables()]])
    assert (False,) in seen
    np.testing.assert_allclose(sess.run(table)[:, 0], [1, 0.6, 1, 0.8], rtol=1e-6)
    np.testing.assert_allclose(sess.run(w), np.full((2, 2), 0.7), rtol=1e-6)
    np.testing.assert_array_equal(sess.run(optimizer.get_slot(table, "count"))[:, 0], [0, 2, 0, 1])


def test_writes_join_the_group_of_their_update(graph):
    w, loss = network()
    T.AdamOptimizer(name="first").minimize(loss)
    ByHand().minimize(loss, name="second")
    free = w[0].assign_add(fs.ones([3, 3]))
    groups = {
        op.name: getattr(op.definition, "group", None)
        for op in graph.get_operations()
        if op.definition.writes_state and not op.name.endswith("/Assign")
    }
    assert groups.pop(free.op.name) == ""
    assert set(groups.values()) == {"first", "second"}
    assert all(name.startswith(group + "/") for name, group in groups.items())
