"""Devices of new types: registered, asked for, placed on, faked."""

import numpy as np
import pytest

import flowscope as fs
from flowscope.graph import op as ops
from flowscope.plan.analysis.device_profile import Link
from flowscope.runtime.devices import device_registry
from flowscope.runtime.devices.fake import FakeDevice


@pytest.fixture
def npus(monkeypatch):
    """Devices of the type NPU, for the time of a test."""
    monkeypatch.setattr(device_registry, "_makers", dict(device_registry._makers))
    monkeypatch.setattr(ops, "_families", dict(ops._families))

    @fs.register_device("NPU")
    def npus(request):
        return [FakeDevice(i, device_type="NPU") for i in range(min(request.count, 2))]


@pytest.mark.usefixtures("npus")
@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_devices_of_a_registered_type_run_programs(graph, mode):
    x = fs.placeholder(fs.float32, [2])
    with fs.device("/device:NPU:0"):
        y = fs.exp(x)
    z = fs.negative(x)
    config = fs.ConfigProto(device_count={"NPU": 1}, mode=mode)
    with fs.Session(config=config) as sess:
        assert [d.name[-5:] for d in sess.list_devices()] == ["CPU:0", "NPU:0"]
        got = sess.run([y, z], {x: [0, 1]})
        np.testing.assert_allclose(got[0], np.exp([0, 1]), 1e-6)
        assert got[1].tolist() == [0, -1]
        assert {n.device[-5:] for n in sess.plan([y, z], [x]).program.nodes} == {"NPU:0"}
        assert sess.list_devices()[1].usage().kernels == 2


@pytest.mark.usefixtures("npus")
def test_there_may_be_fewer_devices_than_asked_for_and_never_more(graph):
    for count, found in ((0, 0), (1, 1), (2, 2), (5, 2)):
        sess = fs.Session(config=fs.ConfigProto(device_count={"NPU": count}))
        assert len(sess.list_devices()) == 1 + found


@pytest.mark.usefixtures("npus")
def test_devices_of_a_registered_type_can_be_faked(graph):
    slow = fs.DeviceProfile(speed=0.5, link=fs.DeviceLink(1e9, 1e-3), memory_bytes=1 << 20)
    config = fs.ConfigProto(fake_devices={"NPU": [slow], "GPU": 1})
    with fs.Session(config=config) as sess:
        npu = next(d for d in sess.list_devices() if d.device_type == "NPU")
        assert npu.profile is slow and npu.memory_limit_bytes == 1 << 20
        with fs.device("/device:NPU:0"):
            big = fs.ones([1 << 20])
        with pytest.raises(fs.errors.ResourceExhaustedError, match="NPU:0 is out of memory"):
            sess.run(fs.reduce_sum(big))


@pytest.mark.usefixtures("npus")
def test_a_kernel_of_its_own_goes_before_those_of_its_kin(graph, monkeypatch):
    monkeypatch.setattr(ops, "_kernels", dict(ops._kernels))
    exp = ops.op_class("Exp")
    fs.register_kernel(exp, "NPU")(lambda op, xp, x: xp.zeros_like(x) + 7)
    with fs.device("/device:NPU:0"):
        y = fs.exp(x := fs.placeholder(fs.float32, [1]))
    with fs.Session(config=fs.ConfigProto(device_count={"NPU": 1})) as sess:
        assert sess.run(y, {x: [1.0]}).tolist() == [7]


@pytest.mark.usefixtures("npus")
def test_a_type_has_one_maker():
    with pytest.raises(fs.errors.AlreadyExistsError, match="devices of the type GPU already"):
        fs.register_device("GPU")(lambda request: [])
    with pytest.raises(ValueError, match="expected a device type in capital letters"):
        fs.register_device("my npu")


def test_a_type_that_is_not_registered_says_which_are(graph):
    with pytest.raises(ValueError, match='expected counts of "CPU" and "GPU".*got .TPU.: 1'):
        fs.Session(config=fs.ConfigProto(device_count={"TPU": 1}))
    for wrong in ({"CPU": 1}, {"TPU": 1}, {"GPU": -1}, {"GPU": ["fast"]}):
        with pytest.raises(ValueError, match="counts or profiles of fake accelerators"):
            fs.Session(config=fs.ConfigProto(fake_devices=wrong))


def test_links_and_profiles_are_public():
    assert fs.DeviceLink is Link
    assert issubclass(FakeDevice, fs.Device)
