"""How long a thread looks for bytes before it sleeps: by a clock that the test moves."""

import socket

import pytest

from flowscope.cluster.transport import spinning
from flowscope.cluster.transport.spinning import Spin


class Line:
    """A connection on which bytes come at a time; each look takes as long as it is told."""

    def __init__(self, monkeypatch):
        self.now = 100.0
        self.comes_at = 0.0
        self.look_s = 2e-6
        self.looks = self.sleeps = 0
        monkeypatch.setattr(spinning.time, "perf_counter", lambda: self.now)
        monkeypatch.setattr(spinning.os, "sched_yield", lambda: None)

    def read(self, flags=0):
        if not flags:
            self.sleeps += 1
            self.now = max(self.now, self.comes_at)
            return b"x"
        assert flags == socket.MSG_DONTWAIT
        self.looks += 1
        self.now += self.look_s
        return b"x" if self.now >= self.comes_at else b""

    def after(self, spin, seconds):
        """Reads what comes so much later; returns how often it looked, and slept."""
        before = self.looks, self.sleeps
        self.comes_at = self.now + seconds
        assert spin.read(self) == b"x"
        return self.looks - before[0], self.sleeps - before[1]


@pytest.fixture
def line(monkeypatch):
    return Line(monkeypatch)


def test_what_comes_soon_is_seen_without_a_sleep(line):
    spin = Spin()
    for _ in range(100):
        looks, sleeps = line.after(spin, 50e-6)
        assert looks > 10
        assert sleeps == 0


def test_what_comes_late_is_slept_for(line):
    spin = Spin()
    looks, sleeps = line.after(spin, 0.01)
    assert 10 < looks < 100
    assert sleeps == 1


def test_where_nothing_comes_soon_it_is_not_looked_for_each_time(line):
    spin = Spin()
    looks = [line.after(spin, 0.0002)[0] for _ in range(100)]
    assert all(looks[:4])
    assert sum(map(bool, looks)) < 40


def test_where_another_process_takes_the_core_it_sleeps_at_once_for_longer_and_longer(line):
    spin = Spin()
    line.look_s = 0.004  # somebody else has computed meanwhile
    spans = []
    for _ in range(10):
        since = line.now
        while not line.after(spin, 0.02)[0]:
            pass
        spans.append(line.now - since)
    assert spans[-1] > 0.9
    assert spans[-1] <= 1.1
    line.look_s = 2e-6
    line.now += 2.0
    for _ in range(200):
        line.after(spin, 50e-6)
    line.look_s = 0.004
    line.after(spin, 0.02)
    line.look_s = 2e-6
    line.now += 0.006
    assert line.after(spin, 50e-6)[0] > 10  # it rests for as long as at first
