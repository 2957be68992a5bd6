"""Raw operations of variables, updates and queues; the numbers are TensorFlow 2.21's."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import flowscope as fs
from flowscope import raw_ops as raw
from flowscope.errors import (
    DTypeError,
    FailedPreconditionError,
    NotFoundError,
    OutOfRangeError,
    UnimplementedError,
)

VAR = np.array([1.0, -0.5, 0.25], "f")
GRAD = np.array([0.5, -1.0, 0.25], "f")
SLOTS = [np.array(v, "f") for v in ([0.5, 1.0, 0.25], [1.5, 0.75, 2.0], [1.25, 2.0, 0.5])]
NUMBERS = {
    "lr": 0.1, "alpha": 0.1, "momentum": 0.9, "rho": 0.8, "epsilon": 0.01, "l1": 0.05, "l2": 0.02,
    "l2_shrinkage": 0.03, "lr_power": -0.5, "beta1": 0.9, "beta2": 0.99, "beta1_power": 0.81,
    "beta2_power": 0.98, "global_step": 3,
}  # fmt: skip
#: What TensorFlow makes of VAR; the sparse ones get GRAD[:2] for rows 2 and 0.
UPDATES = {
    "ApplyAdadelta": [0.90941, -0.41325, 0.17486],
    "ApplyAdagrad": [0.94226, -0.42929, 0.20528],
    "ApplyAdagradDA": [-0.06396, -0.0, -0.02427],
    "ApplyAdam": [0.96973, -0.56786, 0.23687],
    "ApplyCenteredRMSProp": [-0.17475, -2.15093, -0.22002],
    "ApplyFtrl": [-0.04147, -0.12488, -0.36455],
    "ApplyFtrlV2": [-0.04837, -0.12276, -0.36721],
    "ApplyGradientDescent": [0.95, -0.4, 0.225],
    "ApplyMomentum": [0.905, -0.49, 0.2025],
    "ApplyProximalAdagrad": [0.93433, -0.42515, 0.19563],
    "ApplyProximalGradientDescent": [0.94311, -0.39421, 0.21956],
    "ApplyRMSProp": [-0.42372, -1.0755, -1.603],
    "SparseApplyAdadelta": [1.15733, -0.5, 0.11098],
    "SparseApplyAdagrad": [1.08165, -0.5, 0.17929],
    "SparseApplyAdagradDA": [0.02205, -0.5, -0.03984],
    "SparseApplyCenteredRMSProp": [-0.03956, -0.5, -0.2399],
    "SparseApplyFtrl": [0.37651, -0.5, -0.27172],
    "SparseApplyFtrlV2": [0.37163, -0.5, -0.27383],
    "SparseApplyMomentum": [1.055, -0.5, 0.1775],
    "SparseApplyProximalAdagrad": [1.07581, -0.5, 0.17173],
    "SparseApplyProximalGradientDescent": [1.09281, -0.5, 0.19461],
    "SparseApplyRMSProp": [-0.22196, -0.5, -1.64806],
}


@pytest.fixture(autouse=True)
def _graph(graph):
    """A graph for each test."""


def update(name, convert):
    """Returns a raw update of fresh variables, and the updated one."""
    function, slots = getattr(raw, name), iter(SLOTS)
    given, var = {}, fs.Variable(VAR)
    parameters = inspect.signature(function).parameters
    is_sparse = "indices" in parameters
    for p in parameters.values():
        if p.name in NUMBERS:
            given[p.name] = NUMBERS[p.name]
        elif p.name in ("grad", "delta"):
            given[p.name] = GRAD[:2] if is_sparse else GRAD
        elif p.default is p.empty and p.name not in ("var", "indices"):
            given[p.name] = convert(fs.Variable(next(slots)))
    if is_sparse:
        given["indices"] = [2, 0]
    return function(var=convert(var), **given), var


@pytest.mark.parametrize("name", UPDATES)
def test_updates(sess, name):
    value, _ = update(name, lambda v: v)
    op, var = update(f"Resource{name}", lambda v: v.handle)
    assert isinstance(op, fs.Operation)
    assert value.op.name == name
    sess.run(fs.global_variables_initializer())
    np.testing.assert_allclose(sess.run(value), UPDATES[name], atol=2e-5)
    assert sess.run(op) is None
    np.testing.assert_allclose(sess.run(var), UPDATES[name], atol=2e-5)


def test_flags_of_updates(sess):
    v, accum = fs.Variable(VAR), fs.Variable(SLOTS[0])
    given = {"var": v, "accum": accum, "lr": 0.1, "grad": GRAD}
    new = raw.ApplyMomentum(momentum=0.9, use_nesterov=True, **given)
    sess.run(fs.global_variables_initializer())
    np.testing.assert_allclose(sess.run(new), VAR - 0.1 * (GRAD + 0.9 * (0.9 * SLOTS[0] + GRAD)))
    with pytest.raises(UnimplementedError, match="ApplyAdagrad: update_slots=False is not"):
        raw.ApplyAdagrad(update_slots=False, **given)
    with pytest.raises(TypeError, match=r"ApplyAdagrad\(\) missing a required argument: 'grad'"):
        raw.ApplyAdagrad(var=v, accum=accum, lr=0.1)
    with pytest.raises(TypeError, match="too many positional arguments"):
        raw.ApplyGradientDescent(v, 0.1, GRAD)
    with pytest.raises(DTypeError, match="expected a variable or its handle, got"):
        raw.ApplyGradientDescent(var=fs.constant(VAR), alpha=0.1, delta=GRAD)


def test_handles_of_one_name_stand_for_one_variable(sess):
    h, same = [raw.VarHandleOp(dtype=fs.float32, shape=[3], shared_name="w") for _ in range(2)]
    read = raw.ReadVariableOp(resource=same, dtype=fs.float32)
    is_set = raw.VarIsInitializedOp(resource=h)
    with pytest.raises(FailedPreconditionError, match="w"):
        sess.run(read)
    assert not sess.run(is_set)
    for op, value in [
        (raw.AssignVariableOp, [1.0, 2.0, 3.0]),
        (raw.AssignAddVariableOp, [1.0, 1.0, 1.0]),
        (raw.AssignSubVariableOp, [0.0, 1.0, 0.0]),
    ]:
        assert sess.run(op(resource=h, value=value)) is None
    assert sess.run(read).tolist() == [2, 2, 4]
    assert sess.run(raw.VariableShape(input=h)).tolist() == [3]
    gathered = raw.ResourceGather(resource=h, indices=[2, 0], dtype=fs.float32)
    at = raw.ResourceGatherNd(resource=h, indices=[[1]], dtype=fs.float32)
    assert [v.tolist() for v in sess.run([gathered, at])] == [[4, 2], [2]]
    sess.run(raw.DestroyResourceOp(resource=h))
    assert not sess.run(is_set)
    sess.run(raw.DestroyResourceOp(resource=h))
    with pytest.raises(NotFoundError, match='"w" has no value to destroy'):
        sess.run(raw.DestroyResourceOp(resource=h, ignore_lookup_error=False))
    with pytest.raises(DTypeError, match="expected the variable's dtype float32, got int32"):
        raw.ReadVariableOp(resource=h, dtype=fs.int32)
    with pytest.raises(UnimplementedError, match="allowed_devices="):
        raw.VarHandleOp(dtype=fs.float32, shape=[], allowed_devices=["/cpu:0"])


def test_variables_by_reference(sess):
    v = raw.VariableV2(shape=[2, 2], dtype=fs.float32, name="w")
    assert (v.name, fs.global_variables()) == ("w:0", [])
    assert not sess.run(raw.IsVariableInitialized(ref=v))
    assert sess.run(raw.Assign(ref=v, value=np.eye(2))).tolist() == [[1, 0], [0, 1]]
    assert sess.run(raw.AssignAdd(ref=v, value=np.ones([2, 2]))).tolist() == [[2, 1], [1, 2]]
    assert sess.run(raw.AssignSub(ref=v, value=np.eye(2))).tolist() == [[1, 1], [1, 1]]
    assert sess.run(v + 1.0).tolist() == [[2, 2], [2, 2]]
    row = {"begin": [1, 0], "end": [0, 0], "strides": [1, 1], "end_mask": 2, "shrink_axis_mask": 1}
    assert sess.run(raw.StridedSliceAssign(ref=v, value=[5.0, 6.0], **row))[1].tolist() == [5, 6]
    assert sess.run(raw.ResourceStridedSliceAssign(ref=v.handle, value=0.0, **row)) is None
    assert sess.run(v)[1].tolist() == [0, 0]
    count = raw.VariableV2(shape=[], dtype=fs.int32)
    sess.run(raw.Assign(ref=count, value=0))
    up = raw.CountUpTo(ref=count, limit=1)
    assert sess.run(up) == 0
    with pytest.raises(OutOfRangeError):
        sess.run(up)
    assert sess.run(raw.Assign(ref=v, value=1.0, validate_shape=False)) == 1
    assert sess.run(v + 1.0) == 2


@pytest.mark.parametrize(
    ("how", "wanted"),
    [("Update", 2), ("Add", 6), ("Sub", 2), ("Mul", 8), ("Div", 2), ("Min", 2), ("Max", 4)],
)
def test_scatters(sess, how, wanted):
    v = fs.Variable([4.0, 4.0])
    sess.run(v.initializer)
    value = getattr(raw, f"Scatter{how}")(ref=v, indices=[1], updates=[2.0])
    assert sess.run(value).tolist() == [4, wanted]
    sess.run(v.initializer)
    sess.run(getattr(raw, f"ResourceScatter{how}")(resource=v.handle, indices=[1], updates=[2.0]))
    assert sess.run(v).tolist() == [4, wanted]
    if how not in ("Mul", "Div"):
        sess.run(v.initializer)
        places = {"indices": [[1]], "updates": [2.0]}
        assert sess.run(getattr(raw, f"ScatterNd{how}")(ref=v, **places))[1] == wanted
        sess.run(v.initializer)
        sess.run(getattr(raw, f"ResourceScatterNd{how}")(ref=v.handle, **places))
        assert sess.run(v).tolist() == [4, wanted]
        with pytest.raises(UnimplementedError, match="an index out of range is an error"):
            getattr(raw, f"ScatterNd{how}")(ref=v, bad_indices_policy="IGNORE", **places)


def test_queues(sess):
    kinds = [fs.int32, fs.string]
    q = raw.FIFOQueueV2(component_types=kinds, shapes=[[], [2]], capacity=9)
    sess.run(raw.QueueEnqueueV2(handle=q, components=[1, ["a", "b\0"]]))
    sess.run(raw.QueueEnqueueManyV2(handle=q, components=[[2, 3, 4], [["c", "d"]] * 3]))
    assert sess.run(raw.QueueSizeV2(handle=q)) == 4
    number, text = sess.run(raw.QueueDequeueV2(handle=q, component_types=kinds))
    assert (number, text.tolist()) == (1, [b"a", b"b\0"])
    many = raw.QueueDequeueManyV2(handle=q, n=2, component_types=kinds)
    assert sess.run(many)[0].tolist() == [2, 3]
    sess.run(raw.QueueCloseV2(handle=q))
    assert sess.run(raw.QueueIsClosedV2(handle=q))
    rest = raw.QueueDequeueUpToV2(handle=q, n=5, component_types=kinds)
    assert sess.run(rest)[0].tolist() == [4]
    with pytest.raises(OutOfRangeError):
        sess.run(rest)
    one = fs.FIFOQueue(3, [fs.int32])
    sess.run(raw.QueueEnqueueV2(handle=one, components=[[1, 2]]))
    (got,) = sess.run(raw.QueueDequeueV2(handle=one, component_types=[fs.int32]))
    assert got.tolist() == [1, 2]
    with pytest.raises(DTypeError, match="expected component_types"):
        raw.QueueDequeueV2(handle=q, component_types=[fs.int32])
    with pytest.raises(UnimplementedError, match=r"fs\.RunOptions"):
        raw.QueueDequeueV2(handle=q, component_types=kinds, timeout_ms=5)
    with pytest.raises(DTypeError, match="expected the handle of a queue"):
        raw.QueueSizeV2(handle=fs.Variable(1.0).handle)


def test_all_take_keyword_arguments_only():
    for name in dir(raw):
        if name[0].isupper():
            kinds = {p.kind for p in inspect.signature(getattr(raw, name)).parameters.values()}
            assert kinds == {inspect.Parameter.KEYWORD_ONLY}, name
            assert getattr(raw, name).__doc__, name
