"""Clocks of workers from round trips: the true offset lies within the bound that is told."""

from __future__ import annotations

import random

import pytest

from flowscope.cluster.watch.clocks import DRIFT, ClockOffset, ClockSample


def test_the_true_offset_lies_within_the_bound():
    draws = random.Random(3)
    for _ in range(200):
        ahead = draws.uniform(-1e6, 1e6)
        clock = ClockOffset()
        now = 0.0
        for _ in range(10):
            there, back = draws.expovariate(1e3), draws.expovariate(1e3)
            clock.add(ClockSample(now, now + there + ahead, now + there + back))
            now += there + back + draws.random()
        told, error = clock.best(now) or (0.0, 0.0)
        assert abs(told - ahead) <= error + 1e-9


def test_the_quickest_round_trip_is_believed():
    clock = ClockOffset()
    clock.add(ClockSample(0.0, 100.010, 0.020))
    clock.add(ClockSample(1.0, 101.002, 1.002))
    ahead, error = clock.best(1.002) or (0.0, 0.0)
    assert ahead == pytest.approx(100.001)
    assert error == pytest.approx(0.001)


def test_an_old_round_trip_is_believed_less():
    clock = ClockOffset()
    clock.add(ClockSample(0.0, 5.0, 0.001))
    assert (clock.best(100.0) or (0, 0))[1] == pytest.approx(0.0005 + 99.999 * DRIFT)
    clock.add(ClockSample(100.0, 105.0, 100.002))
    assert (clock.best(100.002) or (0, 0))[1] == pytest.approx(0.001)


def test_nothing_is_told_before_a_round_trip():
    assert ClockOffset().best(0.0) is None
