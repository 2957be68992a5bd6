"""A schedule: lanes work one after the other, values cross once, so do links."""

import pytest

from flowscope.graph.op import Spec
from flowscope.graph.values.dtypes import float32
from flowscope.plan.analysis.device_profile import DeviceProfile, Link
from flowscope.plan.ir.program import Value
from flowscope.plan.placement.machine import PlacementMachine
from flowscope.plan.placement.schedule import HAND_OVER_S, SimulatedSchedule

PREFIX = "/job:localhost/replica:0/task:0/device:"
LINK = Link(bytes_per_s=1e6, latency_s=1e-3)
FAST = DeviceProfile(speed=10.0, call_s=1e-5, link=LINK, memory_bytes=1000)


def machine(names, cores=1):
    profiles = [DeviceProfile() if n.startswith("CPU") else FAST for n in names]
    return PlacementMachine([PREFIX + n for n in names], profiles, cores)


def value():
    return Value(None, 0, Spec(float32, (2,)))


def test_cpus_share_cores_and_memory_and_accelerators_have_their_own():
    found = machine(["GPU:0", "GPU:1", "CPU:0", "CPU:1", "CPU:2"], cores=2)
    assert found.memories == (1, 2, 0, 0, 0)
    assert found.lanes == (2, 3, 0, 1, 0)
    assert found.limits == [0, 1000, 1000]


def test_between_two_accelerators_bytes_cross_the_host():
    found = machine(["GPU:0", "GPU:1", "CPU:0"])
    assert found.crossing_s(1000, 1, 0) == pytest.approx(2e-3)
    assert found.crossing_s(1000, 1, 2) == pytest.approx(4e-3)
    assert found.crossing_s(1000, 1, 1) == 0.0


def test_between_processes_bytes_take_the_link_between_their_hosts():
    names = [f"/job:{j}/replica:0/task:0/device:{d}" for j, d in
             [("client", "CPU:0"), ("a", "CPU:0"), ("a", "GPU:0"), ("b", "CPU:0")]]  # fmt: skip
    hosts = {("client", "a"): 1.0, ("client", "b"): 2.0, ("a", "b"): 0.5}

    def link_of(one, other):
        ends = [name.split("/")[1].removeprefix("job:") for name in (one, other)]
        key = tuple(ends) if tuple(ends) in hosts else tuple(ends[::-1])
        return Link(bytes_per_s=1000.0, latency_s=hosts[key])

    profiles = [FAST if "GPU" in n else DeviceProfile() for n in names]
    found = PlacementMachine(names, profiles, 1, link_of)
    client, a, gpu, b = found.memories
    assert len({client, a, gpu, b}) == 4
    assert found.crossing_s(1000, client, b) == pytest.approx(3.0)
    assert found.crossing_s(1000, b, a) == pytest.approx(1.5), "workers send to each other directly"
    assert found.crossing_s(1000, a, gpu) == pytest.approx(2e-3), "within a process"
    assert found.crossing_s(1000, gpu, b) == pytest.approx(1.502)
    schedule = SimulatedSchedule(found)
    x = value()
    schedule.ready[x] = (0.0, gpu, 0)
    assert schedule.starts([x], [(b, found.lanes[3])], [1.0], [1000], 0.0) == [pytest.approx(1.502)]


def test_a_value_crosses_once_and_a_link_brings_one_after_the_other():
    schedule = SimulatedSchedule(machine(["GPU:0", "CPU:0"]))
    a, b = value(), value()
    schedule.ready.update({a: (0.0, 0, 0), b: (0.0, 0, 0)})
    assert schedule.bring(a, 1, 1, 2.0, 10) == 2.0
    assert schedule.bring(a, 1, 1, 2.0, 10) == 2.0
    assert schedule.bring(b, 1, 1, 2.0, 10) == 4.0
    assert schedule.moved_bytes == 20


def test_a_lane_does_one_thing_after_the_other():
    schedule = SimulatedSchedule(machine(["CPU:0", "CPU:1"], cores=2))
    assert schedule.run(0, [], 1.0) == 1.0
    assert schedule.run(0, [], 1.0) == 2.0
    assert schedule.run(1, [0.5], 1.0) == 1.5
    assert schedule.end_s == 2.0 and schedule.busy == [2.0, 1.0]


def test_threads_hand_values_over_and_one_thread_does_not():
    a = value()
    for is_one, expected in ((False, 1.0 + HAND_OVER_S), (True, 1.0)):
        schedule = SimulatedSchedule(machine(["CPU:0", "CPU:1"], cores=2), is_one)
        schedule.ready[a] = 1.0, 0, 0
        assert schedule.bring(a, 0, 1, 0.0, 0) == pytest.approx(expected)


def test_one_thread_waits_where_it_reads_what_an_accelerator_makes():
    schedule = SimulatedSchedule(machine(["GPU:0", "CPU:0"]), is_one_thread=True)
    a = value()
    schedule.ready[a] = schedule.run(1, [], 5.0), 1, 1
    assert schedule.bring(a, 0, 0, 1.0, 8) == 6.0
    assert schedule.run(1, [], 1.0) == 7.0, "the host could give it work only then"
