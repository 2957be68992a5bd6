"""Reductions of tensors on several devices: what each of them gets, and what goes over."""

import numpy as np
import pytest

import flowscope as fs
from flowscope.ops.core.send_recv import Transfer

pytestmark = pytest.mark.usefixtures("graph")

build = fs.experimental.build_shuffle_all_reduce


def cpus(count):
    return [f"/device:CPU:{i}" for i in range(count)]


def session(count, **config):
    return fs.Session(config=fs.ConfigProto(device_count={"CPU": count}, **config))


def inputs(count, shape, dtype=np.float32):
    """Placeholders, one on each device, and what is fed."""
    draw = np.random.default_rng(count)
    tensors = []
    for place in cpus(count):
        with fs.device(place):
            tensors.append(fs.identity(fs.placeholder(dtype, shape)))
    values = [draw.standard_normal(shape).astype(dtype) for _ in tensors]
    feeds = {t.op.inputs[0]: v for t, v in zip(tensors, values, strict=True)}
    return tensors, values, feeds


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
@pytest.mark.parametrize("shape", [(), (0,), (2,), (5, 7), (2, 3, 4)])
@pytest.mark.parametrize("count", [1, 3, 4])
def test_each_device_gets_the_sum_to_the_bit(mode, shape, count):
    tensors, _, feeds = inputs(count, shape)
    results = build(tensors, cpus(count), fs.add_n)
    with session(count, mode=mode) as sess:
        found = sess.run(results, feeds)
        whole = sess.run(fs.add_n(tensors), feeds)
    for one in found:
        assert one.dtype == np.float32 and one.shape == shape
        assert one.tobytes() == whole.tobytes()
    assert [r.op.colocation_groups() for r in results] == [
        t.op.colocation_groups() for t in tensors
    ]


def test_partitions_that_run_apart_give_the_same():
    tensors, _, feeds = inputs(3, (1000,))
    results = build(tensors, cpus(3), fs.add_n)
    with session(3, split_partitions="always") as sess:
        found = sess.run(results, feeds)
    with session(3, split_partitions="never") as sess:
        for one, other in zip(found, sess.run(results, feeds), strict=True):
            assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("gather", [1, 2, 5])
def test_any_number_of_gather_devices_and_any_reduction(gather):
    tensors, values, feeds = inputs(3, (4, 2))
    largest = build(tensors, cpus(gather), lambda v: fs.reduce_max(fs.stack(v), 0))
    means = build(tensors, cpus(gather), fs.add_n, lambda x: x / 3.0)
    with session(5) as sess:
        for one in sess.run(largest, feeds):
            assert (one == np.max(values, 0)).all()
        for one in sess.run(means, feeds):
            np.testing.assert_allclose(one, np.mean(values, 0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("count", [2, 3, 5])
def test_a_device_sends_two_slices_to_each_other_one(count):
    """2K(N-1)/N bytes of K, and as many messages as other devices for each of the two phases."""
    tensors, _, _ = inputs(count, (60,))
    results = build(tensors, cpus(count), fs.add_n)
    feeds = [t.op.inputs[0] for t in tensors]
    with session(count) as sess:
        plan = sess.plan(results, feeds)
        sent = {}
        for node in plan.program.walk():
            if isinstance(node.op, Transfer):
                found = sent.setdefault(node.op.send_device, [])
                found.append(node.inputs[0].spec.nbytes)
    assert len(sent) == count
    for sizes in sent.values():
        assert sum(sizes) == 2 * 240 * (count - 1) // count and len(sizes) == 2 * (count - 1)


def test_it_has_gradients():
    tensors, values, feeds = inputs(2, (3,))
    a, b = build([fs.square(t) for t in tensors], cpus(2), fs.add_n)
    grads = fs.gradients(fs.reduce_sum(a) + 10.0 * fs.reduce_sum(b), tensors)
    with session(2) as sess:
        for value, grad in zip(values, sess.run(grads, feeds), strict=True):
            np.testing.assert_allclose(grad, 22 * value, rtol=1e-6)


@pytest.mark.parametrize(
    ("given", "devices", "message"),
    [
        ([], ["/cpu:0"], "expected at least one tensor"),
        ([[1.0]], [], "expected at least one gather device"),
        ([[1.0], [1.0, 2.0]], ["/cpu:0"], "expected tensors of one shape"),
        ([[1.0], [1]], ["/cpu:0"], "expected float32 as the first tensor's"),
    ],
)
def test_what_cannot_be_reduced_is_refused(given, devices, message):
    with pytest.raises(fs.errors.InvalidArgumentError, match=message):
        build([fs.constant(v) for v in given], devices, fs.add_n)


def test_shapes_have_to_be_known_and_functions_elementwise():
    with pytest.raises(fs.errors.InvalidArgumentError, match="known while the graph is built"):
        build([fs.placeholder(fs.float32, [None])], ["/cpu:0"], fs.add_n)
    with pytest.raises(fs.errors.InvalidArgumentError, match="work element by element"):
        build([fs.constant([1.0, 2.0])], ["/cpu:0"], lambda v: fs.reduce_sum(v[0]))
