"""What every back end promises: NumPy, the fake GPU and, where there is one, a real GPU."""

import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import UnavailableError
from flowscope.runtime.devices.cpu import Cpu
from flowscope.runtime.devices.cupy import gpus
from flowscope.runtime.devices.fake import FakeDevice
from flowscope.runtime.devices.virtual_clock import VirtualClock


def real_gpus():
    try:
        return gpus()
    except UnavailableError as e:
        print(f"the device contract is not tested on a real GPU: {e.message}")
        return []


BACK_ENDS = [Cpu(0), Cpu(1), FakeDevice(0), FakeDevice(1), *real_gpus()]
ARRAYS = [
    np.arange(6, dtype=np.float32).reshape(2, 3),
    np.arange(6, dtype=np.int64).reshape(2, 3).T,
    np.zeros((0, 3), np.float64),
    np.array([True, False]),
    np.float32(2.5),
    np.array(7),
    np.array([1 + 2j], np.complex64),
]


@pytest.fixture(params=BACK_ENDS, ids=lambda d: f"{type(d).__name__}{d.index}")
def device(request):
    return request.param


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype}{a.shape}")
def test_what_is_put_is_held_and_comes_back(device, array):
    with device.active():
        value = device.put(array)
        assert device.holds(value)
        assert value.dtype == array.dtype and value.shape == array.shape
        assert device.put(value) is value
        back = device.get(value)
    assert isinstance(back, np.ndarray if array.ndim else np.generic)
    np.testing.assert_array_equal(back, array)
    assert back.dtype == array.dtype


def test_names_and_kinds(device):
    assert (
        device.name == f"/job:localhost/replica:0/task:0/device:{device.device_type}:{device.index}"
    )
    assert device.spec.device_type == device.device_type
    assert device.memory_limit_bytes >= 0
    assert len({d.incarnation for d in BACK_ENDS}) == len(BACK_ENDS)


def test_memory_is_told_or_none(device):
    memory = device.memory()
    assert memory is None or 0 <= memory.used_bytes <= memory.total_bytes
    device.synchronize()


def test_the_array_module_computes_on_the_device(device):
    xp = device.xp
    with device.active():
        a, b = (device.put(np.arange(6, dtype=np.float32).reshape(2, 3)) for _ in range(2))
        values = [
            a + b,
            2.0 * a,
            -a,
            a > 1,
            xp.matmul(a, b.T),
            xp.exp(a),
            a.sum(axis=0),
            a[0, 1:],
            xp.where(a > 2, a, b),
            xp.concatenate([a, b]),
            xp.zeros((2, 2), np.float32),
            xp.asarray(np.ones(3)),
            a.reshape(-1).astype(np.int32),
        ]
        assert all(device.holds(v) for v in values)
        np.testing.assert_array_equal(device.get(values[4]), [[5, 14], [14, 50]])
        a[0] = 9
        a += b
        np.testing.assert_array_equal(device.get(a), [[9, 10, 11], [6, 8, 10]])
        assert float(device.get(a.sum())) == 54
        assert int(device.get(a[0, 0])) == 9


def test_what_is_got_is_no_view_of_the_device(device):
    if device.device_type == "CPU":
        return
    with device.active():
        value = device.put(np.zeros(3))
        back = device.get(value)
        back[:] = 1
        np.testing.assert_array_equal(device.get(value), np.zeros(3))


def test_a_gpu_refuses_arrays_of_others(device):
    if device.device_type == "CPU":
        return
    with device.active():
        mine, host = device.put(np.ones(3)), np.ones(3)
        for wrong in (
            lambda: device.xp.add(mine, host),
            lambda: mine + host,
            lambda: host + mine,
            lambda: np.asarray(mine),
            lambda: device.xp.concatenate([mine, host]),
        ):
            with pytest.raises(TypeError):
                wrong()
        assert not device.holds(host)


def test_fake_devices_refuse_each_others_arrays():
    clock = VirtualClock()
    one, two = FakeDevice(0, clock=clock), FakeDevice(1, clock=clock)
    a, b = one.put(np.ones(3)), two.put(np.ones(3))
    for wrong in (
        lambda: a + b,
        lambda: one.xp.add(a, b),
        lambda: two.xp.exp(a),
        lambda: np.exp(a),
    ):
        with pytest.raises(TypeError, match="GPU:[01]|does not support ufuncs"):
            wrong()
    moved = two.put(a)
    assert two.holds(moved) and not one.holds(moved)
    with two.active():
        np.testing.assert_array_equal(two.get(moved + b), [2, 2, 2])


def test_kernels_want_their_device_to_be_current():
    clock = VirtualClock()
    one, two = FakeDevice(0, clock=clock), FakeDevice(1, clock=clock)
    a, b = one.put(np.ones(3)), two.put(np.ones(3))
    assert one.get(a + a).tolist() == [2, 2, 2]
    for wrong in (lambda: b + b, lambda: two.xp.exp(b), lambda: b[0], lambda: b.sum()):
        with one.active(), pytest.raises(ValueError, match="GPU:1 while .*GPU:0 is current"):
            wrong()
        with pytest.raises(ValueError, match="GPU:1 while another one is current"):
            wrong()
    with two.active():
        assert two.get(b + b).tolist() == [2, 2, 2]
        with pytest.raises(ValueError, match="GPU:0 while .*GPU:1 is current"):
            one.xp.exp(a)
    with one.active():
        assert one.holds(b.copy()) and two.holds(b)
    assert clock.current is None


def test_asking_for_gpus_where_there_are_none_says_why(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(UnavailableError, match="GPUs need CuPy, which is not installed.*pip"):
        gpus()
    config = fs.ConfigProto(device_count={"GPU": 1})
    with pytest.warns(fs.DeviceWarning, match="asked for 1 GPU and has none: GPUs need CuPy"):
        session = fs.Session(graph=fs.Graph(), config=config)
    assert [d.device_type for d in session.list_devices()] == ["CPU"]


@pytest.mark.parametrize("count", [{"TPU": 1}, {"GPU": -1}, {"CPU": "two"}])
def test_counts_of_devices_are_checked(count):
    with pytest.raises(ValueError, match="expected counts of"):
        fs.Session(graph=fs.Graph(), config=fs.ConfigProto(device_count=count))
