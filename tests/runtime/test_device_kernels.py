"""Every op's kernel on the fake GPU: it uses its array module and the device's arrays alone."""

import numpy as np
import pytest
from op_rows import ROWS
from row_tools import one_per_call

import flowscope as fs
from flowscope.plan.interpret import Interpreter
from flowscope.plan.modules import Modules
from flowscope.plan.passes.regions import regions
from flowscope.plan.placement.choices import is_plain
from flowscope.runtime.gate import Gate
from flowscope.runtime.random_generators import generator

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
        all_values_lie_on_the_device(gpu, outputs, feeds)


def all_values_lie_on_the_device(gpu, outputs, feeds):
    plan = gpu.plan(outputs, feeds)
    device = gpu.list_devices()[1]
    if plan.program.device != device.name:
        nodes = plan.program.nodes
        assert not nodes or not all("GPU" in n.op.devices and is_plain(n) for n in nodes)
        return
    run = Interpreter(regions(plan.program)[0], Modules(device.xp), generator, frozenset())
    stray = []

    def probe(node, iterations, values):
        stray.extend(node.name for v in values if not device.holds(v))

    fed = tuple([device.put(v) for v in feeds.values()])
    with np.errstate(all="ignore"):
        run(Gate(), (1, 2, 3), fed, (), probe)
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
