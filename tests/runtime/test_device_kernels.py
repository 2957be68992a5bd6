"""Every op's kernel on the fake GPU: it uses its array module and the device's arrays alone."""

import numpy as np
import pytest
from direct_runs import in_step
from op_rows import ROWS
from row_tools import one_per_call

import flowscope as fs
from flowscope.graph.dtypes import variant
from flowscope.graph.host_values import on_host
from flowscope.plan.placement.choices import is_plain
from flowscope.plan.value_locations import ValueLocations
from flowscope.runtime.gate import Gate

FAKE = fs.ConfigProto(fake_devices={"GPU": 1})


def built(row, dtype):
    rng = np.random.default_rng(7)
    arrays = [i.make(rng, dtype) for i in row.inputs]
    xs = [fs.placeholder(fs.as_dtype(a.dtype), np.shape(a)) for a in arrays]
    out = row.call(*xs)
    outputs = list(out) if isinstance(out, list | tuple) else [out]
    return outputs, dict(zip(xs, arrays, strict=True))


@pytest.mark.parametrize("row", one_per_call(ROWS))
def test_a_program_on_the_fake_gpu_gives_what_the_cpu_gives(graph, row):
    outputs, feeds = built(row, row.dtypes[0])
    with fs.Session() as cpu, fs.Session(config=FAKE) as gpu:
        want = cpu.run(outputs, feeds)
        for mode in ("compiled", "op"):
            got = gpu.run(outputs, feeds, fs.RunOptions(mode=mode))
            for g, w in zip(got, want, strict=True):
                assert type(g) is type(w) and g.dtype == w.dtype
                np.testing.assert_array_equal(g, w)
        values_lie_where_the_plan_says(gpu, outputs, feeds)


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


SMOOTH = [pytest.param(r, id=r.name) for r in ROWS if r.order and "float32" in r.dtypes]


@pytest.mark.slow
@pytest.mark.parametrize("row", SMOOTH)
def test_gradients_on_the_fake_gpu_are_those_of_the_cpu(graph, row):
    outputs, feeds = built(row, "float32")
    ys = [fs.reduce_sum(fs.square(y)) for y in outputs if y.dtype.is_floating]
    xs = [x for x in feeds if x.dtype.is_floating]
    grads = [g for g in fs.gradients(ys, xs) if g is not None]
    with fs.Session() as cpu, fs.Session(config=FAKE) as gpu:
        if grads:
            for g, w in zip(gpu.run(grads, feeds), cpu.run(grads, feeds), strict=True):
                np.testing.assert_array_equal(getattr(g, "values", g), getattr(w, "values", w))
