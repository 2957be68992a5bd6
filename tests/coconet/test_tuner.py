"""Costs that are predicted, and the tuner that measures those that promise most."""

from __future__ import annotations

import numpy as np
import pytest

import flowscope as fs
from flowscope.coconet.tuner import derived
from flowscope.errors import InvalidArgumentError

cc = fs.coconet
SIZES = {"N": 1200}
LINKED = cc.RankMachine(link_bytes_per_s=1e8)


def test_bytes_that_are_sent_are_those_of_the_collectives():
    """2K(n-1)/n of an all-reduce, and of what it falls into; a part of what is sent."""
    known = cc.library.known_schedules(cc.library.sgd())
    for one in known.values():
        assert one.predicted(SIZES, 4, LINKED).sent_bytes == 2 * 4800 * 3 / 4
        assert one.predicted(SIZES, 4).sent_bytes == 0
    here, there = cc.Group("here"), cc.Group("there")
    known = cc.library.known_schedules(cc.library.pipeline_stage(here, there))
    sizes = {"T": 8, "M": 5}
    sent = [one.predicted(sizes, 4, LINKED).sent_bytes for one in known.values()]
    assert sent == [160 * 1.5 + 160, *[160 * 1.5 + 160 / 4] * 2]


@pytest.mark.parametrize("machine", [cc.RankMachine(), LINKED])
@pytest.mark.parametrize("name", ["sgd", "adam", "lamb"])
def test_slices_promise_less_and_fused_slices_least(name, machine):
    known = cc.library.known_schedules(getattr(cc.library, name)())
    costs = [one.predicted({"N": 1 << 20}, 3, machine) for one in known.values()]
    assert costs[0].seconds > costs[1].seconds > costs[2].seconds
    assert costs[1].memory_bytes > costs[2].memory_bytes


def test_an_overlap_promises_something_on_a_link_and_nothing_in_a_process():
    known = cc.library.known_schedules(cc.library.projection())
    sizes = {"T": 512, "K": 512, "M": 512}
    fused, chained = known["MM-fuse(RS-C-AG)"], known["ol(MM,fuse(RS-C-AG))"]
    quick, slow = [one.predicted(sizes, 4, LINKED).seconds for one in (chained, fused)]
    assert quick < slow
    assert chained.predicted(sizes, 4).seconds >= fused.predicted(sizes, 4).seconds


def test_a_length_that_is_missing_is_refused():
    schedule = cc.schedule(cc.library.sgd())
    with pytest.raises(InvalidArgumentError, match="expected a length for the size N"):
        schedule.predicted({}, 2)


@pytest.mark.parametrize("name", ["sgd", "adam", "lamb"])
def test_the_search_finds_the_schedules_that_are_known(name):
    pipeline = getattr(cc.library, name)()
    known = cc.library.known_schedules(pipeline)["fuse(RS-C-AG)"].predicted(SIZES, 3, LINKED)
    found = [one.predicted(SIZES, 3, LINKED).seconds for one in derived(cc.schedule(pipeline))]
    assert min(found) <= known.seconds * 1.001


def test_the_tuner_measures_some_tells_why_and_keeps_what_it_found(tmp_path):
    lines: list[str] = []
    path = tmp_path / "tuned.json"
    given = {"lengths": SIZES, "ranks": 3, "measured": 2, "rounds": 2, "progress": lines.append}
    pipeline = cc.library.adam()
    found = cc.Tuner(path).tune(pipeline, **given)
    measured = [row for row in found.table if row.seconds is not None]
    assert [row.seconds for row in measured] == sorted(row.seconds for row in measured)
    assert found.best is measured[0].schedule
    assert any(not row.schedule.steps for row in measured)
    assert "derived and predicted" in lines[0] and lines[-1] == "round 2 of 2"
    assert found.text().splitlines()[0].split() == [
        "measured", "predicted", "sent", "memory", "schedule",
    ]  # fmt: skip
    assert found.why()
    again = cc.Tuner(path).tune(cc.library.adam(), **given)
    assert again.is_kept and again.best.text() == found.best.text()
    other = cc.Tuner(path).tune(pipeline, **{**given, "lengths": {"N": 6}})
    assert not other.is_kept


def test_what_the_tuner_finds_computes_the_same():
    pipeline = cc.library.sgd()
    best = cc.Tuner().tune(pipeline, {"N": 30}, 2, measured=1, rounds=1).best
    xs = [np.arange(30, dtype=np.float32) + i for i in range(2)]
    values = {"g": xs, "p": [np.ones(30, np.float32)] * 2, "lr": [0.5]}
    expected = cc.schedule(pipeline).evaluate(values, 2)[0]["new_p"][0]
    np.testing.assert_array_equal(best.evaluate(values, 2)[0]["new_p"][1], expected)
