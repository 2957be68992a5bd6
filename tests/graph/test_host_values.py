"""What lies in the host's memory: declared per op, and how a value gets there."""

import numpy as np
import pytest

import flowscope as fs
from flowscope.graph.op import FROM_1, Op, all_ops, kernel_of, op_class
from flowscope.graph.values.host_values import on_host
from flowscope.runtime.devices.fake import FakeDevice


def test_values_of_any_memory_are_brought_to_the_host():
    device = FakeDevice(0)
    got = on_host(device.put(np.arange(3)))
    assert type(got) is np.ndarray and got.tolist() == [0, 1, 2]
    assert type(on_host(device.put(np.float32(2)))) is np.float32
    assert on_host(np.int32(7)) == 7


def test_inputs_that_steer_are_declared():
    assert op_class("Reshape")().inputs_on_host(2) == {1}
    assert op_class("StridedSlice").host_inputs == FROM_1
    assert op_class("Shape")().outputs_on_host(1) == {0}
    assert op_class("Cond").host_inputs == op_class("LoopCond").host_inputs == (0,)


def test_any_number_of_inputs_may_steer():
    class Steered(Op, abstract=True, host_inputs=FROM_1):
        """Takes any number of shapes."""

    assert Steered().inputs_on_host(4) == {1, 2, 3}
    assert Steered().inputs_on_host(1) == set()


def test_positions_that_an_op_declares_exist():
    for cls in all_ops().values():
        for positions in (cls.host_inputs, cls.host_outputs):
            assert isinstance(positions, property) or all(i >= 0 for i in positions[:4])


def test_a_kernel_gets_what_steers_it_as_numpy_values():
    device = FakeDevice(0)
    reshape = kernel_of(op_class("Reshape")(), "GPU")
    x = device.put(np.arange(6))
    got = reshape(device.xp, x, np.array([2, 3]))
    assert device.holds(got) and got.shape == (2, 3)
    with pytest.raises(TypeError, match="only `get` may"):
        reshape(device.xp, x, device.put(np.array([2, 3])))
    shape = kernel_of(op_class("Shape")(fs.int32), "GPU")(device.xp, x)
    assert type(shape) is np.ndarray and shape.tolist() == [6]
