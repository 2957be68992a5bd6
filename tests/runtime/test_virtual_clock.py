"""Simulated devices: what they do when, and how full they are."""

import numpy as np
import pytest

import flowscope as fs
from flowscope.plan.analysis.device_profile import DeviceProfile, Link
from flowscope.runtime.devices.fake import FakeDevice
from flowscope.runtime.devices.virtual_clock import Stream, VirtualClock

#: A kernel on a million float64 moves 16 MB at 10 GB/s and adds 1e6 times at 4e9 1/s: 1.85 ms.
SLOW = DeviceProfile(speed=1.0, call_s=1e-6, link=Link(1e9, 1e-5))
MILLION = np.ones(1_000_000)
ADDED_S = 16e6 / 10e9 + 1e6 / 4e9


def test_a_stream_does_one_piece_after_the_other():
    clock = VirtualClock()
    stream = Stream("s", clock)
    assert stream.run("a", 2.0) == 2
    assert stream.run("b", 1.0) == 3
    assert stream.run("c", 1.0, after_s=5.0) == 6
    assert stream.busy_s == 4 and clock.now_s == 0
    clock.wait(6.0)
    clock.work(1.0)
    assert clock.now_s == 7 and clock.waited_s == 6
    assert stream.run("d", 1.0) == 8


def test_the_host_goes_on_while_a_device_computes_and_waits_where_it_reads():
    device = FakeDevice(0, SLOW)
    a = device.put(MILLION)
    crossed = 1e-5 + 8e6 / 1e9
    assert device.clock.now_s == 0
    b = -a
    c = -b
    assert device.clock.now_s == pytest.approx(2e-6)
    assert device.usage().kernels == 2
    assert device.usage().busy_s == pytest.approx(2 * ADDED_S)
    device.synchronize()
    assert device.clock.now_s == pytest.approx(crossed + 2 * ADDED_S)
    device.get(c)
    assert device.clock.now_s == pytest.approx(2 * crossed + 2 * ADDED_S)
    assert device.usage().copied_out_s == pytest.approx(crossed)


def test_devices_work_at_the_same_time():
    clock = VirtualClock()
    devices = [FakeDevice(i, SLOW, clock) for i in range(2)]
    values = [d.put(MILLION) for d in devices]
    for d, v in zip(devices, values, strict=True):
        with d.active():
            assert len(-v)
    for d in devices:
        d.synchronize()
    assert clock.now_s < 8e6 / 1e9 + 1e-5 + 1.1 * ADDED_S


def test_values_cross_from_one_device_to_another_without_the_host():
    clock = VirtualClock()
    one, two = (FakeDevice(i, SLOW, clock) for i in range(2))
    a = one.put(MILLION)
    b = two.put(a)
    assert clock.now_s == 0 and clock.waited_s == 0
    two.synchronize()
    assert clock.now_s == pytest.approx(3 * (1e-5 + 8e6 / 1e9))
    assert two.get(b).sum() == 1_000_000


def test_views_cost_nothing_and_products_their_flops():
    device = FakeDevice(0, DeviceProfile(speed=10.0, call_s=0.0, link=Link(1e12, 0.0)))
    a = device.put(np.ones((100, 100), np.float32))
    a.T, a[1:], a.reshape(-1)
    assert device.usage().kernels == 0
    device.xp.matmul(a, a)
    assert device.usage().busy_s == pytest.approx((120e3 / 10e9 + 2e6 / 60e9) / 10)


def test_memory_is_counted_and_limited():
    device = FakeDevice(0, DeviceProfile(memory_bytes=1000, link=Link()))
    a = device.put(np.ones(100))
    assert device.memory().used_bytes == 800 and device.memory_limit_bytes == 1000
    view = a[10:]
    assert device.memory().used_bytes == 800
    with pytest.raises(fs.errors.ResourceExhaustedError, match="out of memory: 800 bytes wanted"):
        a + 1
    del a
    assert device.memory().used_bytes == 800
    del view
    assert device.memory() == type(device.memory())(0, 1000, 800)


def test_what_streams_did_can_be_recorded():
    device = FakeDevice(0, SLOW)
    with device.clock.recording() as spans:
        device.get(device.put(np.ones(3)) + 1)
    assert [(s.stream, s.name, s.nbytes) for s in spans] == [
        ("GPU:0 in", "put", 24),
        ("GPU:0 compute", "__add__", 0),
        ("GPU:0 out", "get", 24),
    ]
    assert spans[0].end_s == spans[1].start_s
    assert device.clock.spans is None


def test_a_step_of_a_session_moves_the_clock(graph):
    profile = DeviceProfile(speed=2.0, call_s=1e-6, link=Link(1e9, 1e-5))
    config = fs.ConfigProto(fake_devices={"GPU": [profile, profile]})
    x = fs.placeholder(fs.float64, [1_000_000])
    with fs.device("/gpu:1"):
        y = fs.negative(fs.negative(x) + 1.0)
    with fs.Session(config=config) as sess:
        one, two = sess.list_devices()[1:]
        assert one.clock is two.clock and two.profile is profile
        sess.run(y, {x: MILLION})
        assert two.usage().busy_s == pytest.approx(3 * ADDED_S / 2, rel=0.1)
        assert one.usage().busy_s == 0
        assert one.clock.now_s > 2 * 8e6 / 1e9
