"""Every op's kernel on the fake GPU: it uses its array module and the device's arrays alone."""

import numpy as np
import pytest
from direct_runs import in_step
from op_oracle import noted
from op_rows import ROWS
from row_tools import for_each, with_own_calls

import flowscope as fs
from flowscope.graph.op import has_kernel, kernel_of
from flowscope.graph.values.dtypes import SMALL, string, variant
from flowscope.graph.values.host_values import on_host
from flowscope.plan.analysis.value_locations import ValueLocations
from flowscope.plan.executables.interpret import Interpreter
from flowscope.plan.ir.kernels import counter
from flowscope.plan.ir.modules import Modules
from flowscope.plan.passes.regions import whole_region
from flowscope.plan.placement.choices import is_plain
from flowscope.runtime.devices.fake import FakeDevice
from flowscope.runtime.state.random_generators import generator
from flowscope.runtime.waits.gate import Gate

CPU_ONLY = SMALL | {string}
FAKE = fs.ConfigProto(fake_devices={"GPU": 1})
QUICK = with_own_calls(ROWS)
OTHERS = [row for row in ROWS if not any(row is quick for quick in QUICK)]


def built(row, dtype):
    rng = np.random.default_rng(7)
    arrays = [i.make(rng, dtype) for i in row.inputs]
    xs = [fs.placeholder(fs.as_dtype(a.dtype), np.shape(a)) for a in arrays]
    out = row.call(*xs)
    outputs = list(out) if isinstance(out, list | tuple) else [out]
    return outputs, dict(zip(xs, arrays, strict=True))


def same_on_the_fake_gpu(row):
    outputs, feeds = built(row, row.dtypes[0])
    with fs.Session() as cpu, fs.Session(config=FAKE) as gpu:
        want = cpu.run(outputs, feeds)
        for mode in ("compiled", "op"):
            got = gpu.run(outputs, feeds, fs.RunOptions(mode=mode))
            for g, w in zip(got, want, strict=True):
                assert type(g) is type(w) and g.dtype == w.dtype
                np.testing.assert_array_equal(g, w)
        values_lie_where_the_plan_says(gpu, outputs, feeds)


@for_each(QUICK)
def test_a_program_on_the_fake_gpu_gives_what_the_cpu_gives(row):
    same_on_the_fake_gpu(row)


@pytest.mark.slow
@for_each(OTHERS)
def test_so_does_one_of_other_numbers(row):
    same_on_the_fake_gpu(row)


def values_lie_where_the_plan_says(gpu, outputs, feeds):
    """Checks each value of a run, one operation at a time, by the device that holds it."""
    plan = gpu.plan(outputs, feeds)
    device = gpu.list_devices()[1]
    for node in plan.program.walk():
        is_elsewhere = (
            node.op.type in ("Transfer", "Const") or node.blocks or "steers" in node.reason
        )
        has_kernel = "GPU" in node.op.devices and is_plain(node)
        assert node.device == device.name or is_elsewhere or not has_kernel
    locations = ValueLocations(plan.program)
    stray = []

    def probe(node, iterations, values):
        for v, value in zip(node.outputs, values, strict=True):
            where = locations.of(v)
            if where is not None and v.spec.dtype is not variant:
                is_there = where.device == device.name and not where.in_host
                stray.extend([node.name] * (device.holds(value) is not is_there))

    fed = tuple([on_host(np.asarray(v)) for v in feeds.values()])
    with np.errstate(all="ignore"), in_step(gpu, plan):
        plan.executable.probed(probe)(Gate(), (1, 2, 3), fed, ())
    assert not stray


def node_values(program, feeds):
    """Runs a program on the CPU; returns its nodes, and the arrays of all values."""
    values = dict(zip(program.feeds, feeds, strict=True))
    nodes = []

    def probe(node, iterations, outputs):
        nodes.append(node)
        values.update(zip(node.outputs, outputs, strict=True))

    run = Interpreter(whole_region(program), Modules(np), generator, frozenset())
    with np.errstate(all="ignore"):
        run(Gate(), (1, 2, 3), tuple(feeds), (), probe)
    return nodes, values


def on_fake(device, value, lies_on_host):
    if lies_on_host or not hasattr(value, "dtype"):
        return value
    return device.put(value)


def kernels_are_strict(row, dtype):
    """Runs each kernel of a row on a strict device: what steers it is on the host, no more."""
    outputs, feeds = built(row, dtype)
    with fs.Session() as sess:
        program = sess.plan(outputs, feeds).program
        if any(n.blocks or n.handles for n in program.walk()):
            return
        nodes, values = node_values(program, list(feeds.values()))
    device = FakeDevice(0)
    for node in nodes:
        known = [v.spec.dtype for v in (*node.inputs, *node.outputs)]
        if not has_kernel(node.op, "GPU") or any(d in CPU_ONLY for d in known):
            continue
        specs = [v.spec for v in node.inputs], [v.spec for v in node.outputs]
        steering = node.op.inputs_on_host(len(node.inputs))
        given = [on_fake(device, values[v], i in steering) for i, v in enumerate(node.inputs)]
        leading = [generator((1, 2, 3), *counter(node))] if node.op.is_random else []
        with np.errstate(all="ignore"):
            found = kernel_of(node.op, "GPU", *specs)(device.xp, *leading, *given)
        for i, (got, out) in enumerate(zip(as_tuple(found), node.outputs, strict=True)):
            lies_on_host = i in node.op.outputs_on_host(len(node.outputs))
            assert device.holds(got) != lies_on_host, node.op
            same_values(on_host(got), values[out], node)


def as_tuple(found):
    return found if isinstance(found, tuple) else () if found is None else (found,)


def same_values(got, want, node):
    assert got.dtype == want.dtype and np.shape(got) == np.shape(want), node.op
    if node.op.accumulates:
        np.testing.assert_allclose(got, want, 1e-4, 1e-5, err_msg=str(node.op))
    else:
        np.testing.assert_array_equal(got, want, str(node.op))


@for_each(QUICK)
def test_kernels_read_no_array_of_the_device(row):
    kernels_are_strict(row, row.dtypes[0])


@pytest.mark.slow
@for_each(ROWS)
def test_kernels_of_all_dtypes_read_no_array_of_the_device(row):
    for dtype in row.dtypes[any(row is quick for quick in QUICK) :]:  # the first comes above
        with noted(dtype):
            kernels_are_strict(row, dtype)


@pytest.mark.slow
@for_each(r for r in ROWS if r.order and "float32" in r.dtypes)
def test_gradients_on_the_fake_gpu_are_those_of_the_cpu(row):
    outputs, feeds = built(row, "float32")
    ys = [fs.reduce_sum(fs.square(y)) for y in outputs if y.dtype.is_floating]
    xs = [x for x in feeds if x.dtype.is_floating]
    grads = [g for g in fs.gradients(ys, xs) if g is not None]
    with fs.Session() as cpu, fs.Session(config=FAKE) as gpu:
        if grads:
            for g, w in zip(gpu.run(grads, feeds), cpu.run(grads, feeds), strict=True):
                np.testing.assert_array_equal(getattr(g, "values", g), getattr(w, "values", w))
