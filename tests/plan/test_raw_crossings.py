"""Loops and branches made by hand on several devices: together they run, apart on one device.

In compiled mode loops by hand are lifted, and may be anywhere: see `passes/test_lift.py`.
"""

import numpy as np
import pytest
from direct_runs import in_step
from several_devices import by_letter, device, plan_on, short

import flowscope as fs
from flowscope import raw_ops
from flowscope.plan.verify import verify

pytestmark = pytest.mark.usefixtures("graph")


def counting(step, x):
    """Returns 2 ** n * x after n rounds of `step`, from a loop by hand."""
    name = {"frame_name": "count"}
    start = raw_ops.Enter(data=x, **name)
    v, _ = raw_ops.Merge(inputs=[start, start])
    limit = raw_ops.Enter(data=fs.constant(100.0), is_constant=True, **name)
    stop, inside = raw_ops.Switch(data=v, pred=raw_ops.LoopCond(input=fs.less(v, limit)))
    v.op._update_input(1, raw_ops.NextIteration(data=step(inside)))
    return raw_ops.Exit(data=stop)


def test_in_one_process_a_loop_by_hand_may_be_on_several_devices():
    x = fs.placeholder(fs.float32, [], name="x")
    y = counting(lambda v: fs.add(v, v, name="B1"), fs.multiply(x, 1.5, name="A1"))
    with fs.Session(config=fs.ConfigProto(mode="tokens")) as sess:
        plan = plan_on(sess, [y], [x], by_letter)
        verify(plan.program)
        assert {n.device for n in plan.program.nodes} == {device(0), device(1)}
        with in_step(sess, plan):
            found = plan.executable.function(sess.gate, (1, 2, 3), (np.float32(2),), ())
        assert found[0] == 192.0
        with pytest.raises(fs.errors.UnimplementedError, match="made by hand stays on one") as e:
            _ = plan.partitions
    assert "test_raw_crossings.py" in str(e.value)


def test_one_side_of_a_switch_goes_to_no_other_partition():
    x = fs.placeholder(fs.float32, [], name="x")
    _, taken = raw_ops.Switch(data=fs.tanh(x, name="A1"), pred=x > 0.0)
    y = fs.exp(taken, name="B1")
    merged, _ = raw_ops.Merge(inputs=[y, fs.constant(1.0)])
    with fs.Session() as sess:
        plan = plan_on(sess, [merged], [x], by_letter)
        with pytest.raises(fs.errors.UnimplementedError, match="on .*CPU:0 is used on .*CPU:1"):
            _ = plan.partitions


def test_a_loop_by_hand_on_one_device_takes_and_gives_values_of_others():
    x = fs.placeholder(fs.float32, [], name="x")
    with fs.name_scope("B1"):
        y = counting(lambda v: v + v, fs.multiply(x, 1.5, name="A1"))
    z = fs.add(y, 1.0, name="A2")
    with fs.Session(config=fs.ConfigProto(mode="tokens")) as sess:
        plan = plan_on(sess, [z], [x], by_letter)
        parts = plan.partitions
    for part in parts:
        verify(part.program)
    assert short(parts[0].program).splitlines() == [
        "B1/A1 = Mul(feed0, B1/A1/y) A",
        "B1/A1/to_CPU:1 = Send(B1/A1) A",
        "B1/Exit/from_CPU:1 = Recv() A",
        "A2 = Add(B1/Exit/from_CPU:1, A2/y) A",
    ]
    nodes = {n.name: n for n in parts[1].program.nodes}
    assert nodes["B1/Enter"].inputs == nodes["B1/A1/from_CPU:0"].outputs
    assert nodes["B1/Merge"].inputs[1].node is nodes["B1/NextIteration"]
