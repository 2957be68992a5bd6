"""What is too large, empty, no number, or cut off is told, and does not hold anybody up."""

import tracemalloc

import numpy as np
import pytest
from live_views import View

import flowscope as fs
from flowscope.debug.statistics import CHUNK, picture, statistics
from flowscope.live.protocol import schema
from flowscope.live.watchers.bus import LiveChannel

pytestmark = pytest.mark.usefixtures("graph")


def told_at_a_stop(array, dtype):
    """The message of a fed value at a stop."""
    x = fs.placeholder(dtype, None, name="x")
    y = fs.identity(x, name="y")
    found = []
    with fs.Session(config=fs.ConfigProto(mode="op")) as sess:
        view = View(LiveChannel(x.graph, sess))
        sess.debug.break_after(y)

        def look(stop):
            asked = {"stop": stop.id, "tensors": ["y"], "at": []}
            found.append(view.ask("ask_values", schema.Values, **asked))

        sess.debug.on_stop(look)
        sess.run(y, {x: array})
        view.feed.leave(view.send)
    [answer] = found
    assert answer.error == ""
    return answer.values[0]


@pytest.mark.memory
def test_a_value_of_a_hundred_million_elements_takes_no_copy():
    large = np.broadcast_to(np.float32(2.5), (10**4, 10**4))
    tracemalloc.start()
    try:
        found, drawn = statistics(large), picture(large)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (found.finite, found.min, found.max, found.mean) == (10**8, 2.5, 2.5, 2.5)
    assert (drawn.width, drawn.height) == (64, 64) and peak < 32 * CHUNK


def test_parts_of_a_large_value_add_up():
    rng = np.random.default_rng(0)
    large = rng.normal(3.0, 2.0, (3, CHUNK)).astype(np.float32)
    large[0, 5], large[1, 7], large[2, 9] = np.nan, np.inf, -np.inf
    found = statistics(large)
    finite = large[np.isfinite(large)].astype(np.float64)
    assert (found.finite, found.nan, found.inf) == (finite.size, 1, 2)
    assert (found.min, found.max) == (finite.min(), finite.max())
    assert found.mean == pytest.approx(finite.mean(), rel=1e-9)
    whole = np.histogram(finite, 32, (finite.min(), finite.max()))[0] / finite.size
    some = np.array(found.histogram) / sum(found.histogram)
    assert np.abs(whole - some).max() < 0.01


def test_a_value_of_no_elements_is_told():
    told = told_at_a_stop(np.zeros((0, 3), np.float32), fs.float32)
    assert (told.state, told.shape, told.finite, told.min) == ("alive", (0, 3), 0, None)


def test_strings_are_told():
    told = told_at_a_stop(np.array([b"a", b"bc"], object), fs.string)
    assert (told.state, told.shape, told.min, told.height) == ("alive", (2,), None, 0)


def test_a_value_that_is_all_nan_is_told():
    told = told_at_a_stop(np.full((4, 4), np.nan, np.float32), fs.float32)
    assert (told.finite, told.nan, told.min, told.mean, told.height) == (0, 16, None, None, 4)


def test_a_recording_that_is_cut_off_is_told_wherever_it_is_cut(tmp_path):
    y = fs.exp(fs.constant(1.0, name="one"), name="y")
    with fs.Session() as sess, fs.profile() as recorded:
        sess.run(y)
    recorded.save(tmp_path / "whole")
    data = (tmp_path / "whole").read_bytes()
    expected = (fs.errors.DataLossError, fs.errors.InvalidArgumentError)
    for end in {0, 3, 9, len(data) // 4, len(data) // 2, len(data) - 5, len(data) - 1}:
        (tmp_path / "cut").write_bytes(data[:end])
        with pytest.raises(expected, match="is damaged|expected a recording"):
            fs.tracing.load(tmp_path / "cut")


def test_names_of_three_hundred_characters_are_told_whole(graph):
    name = "long" * 75
    fs.constant(1.0, name=name)
    with fs.name_scope(name + "s"):
        fs.constant(2.0, name="inner")
    view = View(LiveChannel(graph))
    [snapshot] = [m for m in view.got if isinstance(m, schema.Snapshot)]
    assert [n.name for n in snapshot.graph.added] == [name, f"{name}s/inner"]
    view.feed.leave(view.send)
