"""One contract for an invocation: each way to run a program tells a probe, and errors, the same."""

import numpy as np
import pytest
from direct_runs import in_step

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")
RUN = (7, 11, 3)
MODES = ("compiled", "op", "tokens")


def program(wait=False):
    x = fs.placeholder(fs.float32, [None])
    n = fs.placeholder(fs.int32, [])
    taken, queue = x, None
    if wait:
        queue = fs.FIFOQueue(9, [fs.float32])
        taken = x + queue.dequeue()

    def body(i, v):
        v = fs.cond(fs.equal(i % 2, 0), lambda: v * 2.0, lambda: v - 1.0)
        return i + 1, fs.reshape(v, [2], name="two")

    v = fs.while_loop(lambda i, v: i < n, body, [0, taken])[1]
    return v, queue, x, n


def told(mode, fetches, feeds, before=None):
    """The reports of a probe in a mode, by node and iterations, and the fetched values."""
    seen = {}

    def probe(node, iterations, outputs):
        if node.op.type in ("Add", "Sub", "Mul", "Reshape", "Dequeue", "FloorMod", "Equal"):
            outputs = [(np.asarray(o).dtype, np.asarray(o).tolist()) for o in outputs]
            seen[node.name, iterations] = outputs

    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        if before is not None:
            sess.run(before)
        call = sess._planner.call(object(), fetches, tuple(feeds), mode)
        arrays = tuple([c(v) for c, v in zip(call.converters, feeds.values(), strict=True)])
        function = call.plan.executable.probed(probe)
        with in_step(sess, call.plan):
            values = function(sess.gate, RUN, arrays, call.resources)
    return seen, [np.asarray(v) for v in values]


@pytest.mark.parametrize("wait", [False, True])
def test_probes_are_told_the_same_in_all_modes(wait):
    v, queue, x, n = program(wait)
    start = None if queue is None else queue.enqueue([[1.0, 2.0]])
    feeds = {x: [1.0, 2.0], n: 3}
    found = [told(mode, [v], feeds, start) for mode in MODES]
    (seen, values), *others = found
    assert {at for name, at in seen if "two" in name} == {(0,), (1,), (2,)}
    assert any("dequeue" in name.lower() for name, _ in seen) is wait
    for other, result in others:
        assert result[0].tobytes() == values[0].tobytes()
        assert {k: other[k] for k in seen} == seen


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("wait", [False, True])
def test_errors_tell_the_same_in_all_modes(mode, wait):
    v, queue, x, n = program(wait)
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        if queue is not None:
            sess.run(queue.enqueue([[1.0]]))
        with pytest.raises(fs.errors.InvalidArgumentError) as caught:
            sess.run(v, {x: [1.0, 2.0, 3.0], n: 3})
    error = caught.value
    assert error.op.name.endswith("two")
    assert [at for _, at in error.iterations] == [0]
    assert "float32[3]" in error.inputs[0]
