"""Summaries for views: what writers are given is told within bounds, as it is asked for."""

import base64
import json

import numpy as np
import pytest

import flowscope as fs
from flowscope.live.answers import summaries
from flowscope.live.answers.asking import NOTHING_RUNS
from flowscope.live.protocol import schema
from flowscope.live.protocol.tables import columns_of
from flowscope.live.watchers.bus import LiveChannel
from flowscope.live.watchers.recorded import RecordedFeed
from flowscope.live.watchers.wire import message_from, to_wire
from flowscope.runtime.session.engine import Engine

pytestmark = pytest.mark.usefixtures("graph")


@pytest.fixture
def owner():
    found = Engine()
    with found.as_default():
        yield found


@pytest.fixture
def session(owner):
    with fs.Session() as sess:
        yield sess


def told(session, step=None):
    """The answer, and its tables as a view reads them."""
    heard = []
    message = {"kind": "ask_summaries", "view": 7, "request_id": 3, "step": step}
    LiveChannel(session.graph, session).hear(message_from(message), heard.append)
    answer = next(m for m in heard if isinstance(m, schema.Summaries))
    data, buffers = to_wire(answer)
    json.dumps(data, allow_nan=False)

    def columns(table):
        kinds = tuple(map(tuple, table["columns"]))
        return columns_of(schema.Table(table["rows"], 0, kinds), buffers[table["buffer"]])

    return answer, data, columns


def scalar(tag, value):
    return fs.Summary(value=[fs.Summary.Value(tag=tag, simple_value=value)])


def test_curves_of_all_runs_are_told_by_step(session, tmp_path):
    x = fs.placeholder(fs.float32, [], name="x")
    fs.summary.scalar("loss", x)
    merged = fs.summary.merge_all()
    assert LiveChannel(session.graph, session).describe().session.summaries is None
    for run in ("a", "b"):
        with fs.summary.FileWriter(tmp_path / run) as writer:
            for step in (0, 10, 5):
                writer.add_summary(session.run(merged, {x: step + ord(run)}), step)
    state = LiveChannel(session.graph, session).describe().session.summaries
    assert (state.version, state.dropped) == (6, 0) and 0 < state.nbytes < state.max_bytes
    answer, data, columns = told(session)
    assert (answer.request_id, answer.view, answer.error, answer.version) == (3, 7, "", 6)
    names = [(s.run, s.tag, s.points) for s in answer.scalars]
    assert names == [(str(tmp_path / "a"), "loss", 3), (str(tmp_path / "b"), "loss", 3)]
    values = columns(data["scalars"][1]["values"])
    assert values["step"].tolist() == [0, 5, 10]
    assert values["value"].tolist() == [98.0, 103.0, 108.0]
    assert values["time"][0] == 0 and (values["time"] >= 0).all()


def test_a_writer_without_a_folder_tells_views_alone(session, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with fs.summary.FileWriter(None, session.graph) as writer:
        writer.add_summary(scalar("loss", 2.0), 1)
        writer.flush()
        assert writer.get_logdir() is None
    assert list(tmp_path.iterdir()) == []
    assert [(s.run, s.tag) for s in told(session)[0].scalars] == [("", "loss")]
    with pytest.raises(fs.errors.FailedPreconditionError, match="closed"):
        writer.add_summary(scalar("loss", 2.0), 2)


def test_engines_do_not_share_summaries(session):
    with Engine().as_default():
        fs.summary.FileWriter(None).add_summary(scalar("elsewhere", 1.0))
    answer, *_ = told(session)
    assert (answer.error, answer.scalars) == ("no summary was written", ())


def test_a_writer_that_begins_anew_takes_the_place_of_what_it_writes_again(session):
    for first, value in ((0, 1.0), (3, 2.0)):
        writer = fs.summary.FileWriter(None)
        for step in range(first, 6):
            writer.add_summary(scalar("loss", value), step)
    _, data, columns = told(session)
    values = columns(data["scalars"][0]["values"])
    assert values["step"].tolist() == [0, 1, 2, 3, 4, 5]
    assert values["value"].tolist() == [1, 1, 1, 2, 2, 2]


def test_a_long_curve_keeps_its_extremes_and_what_is_not_finite(session):
    count = 30_000
    values = np.sin(np.arange(count) / 500)
    values[[7_001, 12_345, 20_002]] = 50.0, -50.0, np.nan
    writer = fs.summary.FileWriter(None)
    for step, value in enumerate(values.tolist()):
        writer.add_summary(scalar("wave", value), step)
    answer, data, columns = told(session)
    shown = columns(data["scalars"][0]["values"])
    assert answer.scalars[0].points == count and len(shown["step"]) <= summaries.MOST_POINTS + 3
    assert (np.diff(shown["step"]) > 0).all()
    assert {0, 7_001, 12_345, 20_002, count - 1} <= set(shown["step"].astype(int))
    assert np.nanmax(shown["value"]) == 50 and np.isnan(shown["value"]).sum() == 1


def test_histograms_over_steps_share_their_bins(session):
    x = fs.placeholder(fs.float32, [None], name="x")
    fs.summary.histogram("w", x)
    merged = fs.summary.merge_all()
    writer = fs.summary.FileWriter(None)
    rng = np.random.default_rng(0)
    for step in range(80):
        writer.add_summary(session.run(merged, {x: rng.normal(step / 10, 1, 500)}), step)
    writer.add_summary(session.run(merged, {x: []}), 80)
    answer, data, columns = told(session)
    (one,) = answer.histograms
    values, shares = (
        columns(data["histograms"][0]["values"]),
        columns(data["histograms"][0]["shares"])["share"].reshape(-1, one.bins),
    )
    assert one.points == 81 and len(values["step"]) == summaries.MOST_HISTOGRAMS
    assert (values["step"][0], values["step"][-1]) == (0, 80)
    np.testing.assert_allclose(shares.sum(1)[:-1], 1.0, rtol=1e-6)
    assert shares[-1].sum() == 0
    centres = np.linspace(one.low, one.high, one.bins + 1)[:-1] + (one.high - one.low) / 80
    np.testing.assert_allclose(shares[-2] @ centres, values["step"][-2] / 10, atol=0.3)


@pytest.mark.parametrize("values", [[3.0, 3.0], [0.0], [-1e300, 1e300]])
def test_histograms_of_any_numbers_are_told(session, values):
    x = fs.placeholder(fs.float64, [None], name="x")
    fs.summary.histogram("w", x)
    writer = fs.summary.FileWriter(None)
    writer.add_summary(session.run(fs.summary.merge_all(), {x: values}), 0)
    answer, data, columns = told(session)
    (one,) = answer.histograms
    assert one.low < one.high
    assert columns(data["histograms"][0]["shares"])["share"].sum() == pytest.approx(1.0)


def test_pictures_and_texts_are_those_of_a_step(session):
    x = fs.placeholder(fs.uint8, [1, 2, 3, 1], name="x")
    note = fs.placeholder(fs.string, [], name="note")
    fs.summary.image("picture", x, max_outputs=1)
    fs.summary.text("note", note)
    merged = fs.summary.merge_all()
    writer = fs.summary.FileWriter(None)
    for step in (0, 5, 10):
        fed = {x: np.full((1, 2, 3, 1), step, np.uint8), note: f"**step** {step} <b>"}
        writer.add_summary(session.run(merged, fed), step)
    answer, data, columns = told(session)
    assert columns(data["steps"])["step"].tolist() == [0, 5, 10]
    (image,), (text,) = answer.images, answer.texts
    assert (image.tag, image.step, image.width, image.height) == ("picture/image", 10, 3, 2)
    assert base64.b64decode(image.data).startswith(b"\x89PNG")
    assert (text.step, text.texts, text.left_out) == (10, ("**step** 10 <b>",), 0)
    answer, *_ = told(session, 7)
    assert [answer.images[0].step, answer.texts[0].texts] == [5, ("**step** 5 <b>",)]
    assert told(session, -4)[0].images[0].step == 0


def test_an_answer_keeps_to_its_budget(session):
    writer = fs.summary.FileWriter(None)
    for k in range(summaries.MOST_SERIES):
        for step in range(60):
            writer.add_summary(scalar(f"s{k:03}", 1.0), step)
    noise = np.random.default_rng(0).integers(0, 256, (1, 600, 600, 1)).astype(np.uint8)
    fs.summary.image("a/big", noise, max_outputs=1)
    fs.summary.text("b/long", ["x" * 5000, "y" * 9])
    writer.add_summary(session.run(fs.summary.merge_all()), 3)
    answer, data, _ = told(session)
    (image,), (text,) = answer.images, answer.texts
    assert image.data == "" and image.nbytes > 300_000
    assert (len(text.texts[0]), len(text.texts), text.left_out) == (4000, 1, 1009)
    assert answer.left_out == 2  # series: pictures and texts come first by their tags here
    size = len(json.dumps(data)) + sum(len(b) for b in to_wire(answer)[1])
    assert size < 2 * summaries.BUDGET_BYTES


def test_the_oldest_of_the_largest_series_is_dropped_and_counted(owner, session):
    log = owner.summary_log
    log.max_bytes = 20_000
    writer = fs.summary.FileWriter(None)
    writer.add_summary(scalar("few", 1.0), 0)
    for step in range(5000):
        writer.add_summary(scalar("many", float(step)), step)
    assert log.nbytes <= log.max_bytes
    state = LiveChannel(session.graph, session).describe().session.summaries
    few, many = told(session)[0].scalars
    assert (few.points, few.dropped) == (1, 0)
    assert many.dropped == state.dropped and many.points + many.dropped == 5000
    # Tags that are all new stay within the bound too, and one that is larger is not kept at all.
    for k in range(200):
        writer.add_summary(scalar(f"tag{k}", 1.0), 0)
        assert log.nbytes <= log.max_bytes
    before = log.dropped
    value = fs.Summary.Image(height=1, width=1, encoded_image_string=bytes(30_000))
    writer.add_summary(fs.Summary(value=[fs.Summary.Value(tag="huge", image=value)]), 0)
    assert log.dropped == before + 1 and log.nbytes <= log.max_bytes


def test_values_that_views_do_not_show_are_passed_over(session, tmp_path):
    fs.summary.tensor_summary("t", fs.constant([1.0, 2.0]))
    with fs.summary.FileWriter(tmp_path) as writer:
        writer.add_summary(session.run(fs.summary.merge_all()), 0)
    assert LiveChannel(session.graph, session).describe().session.summaries is None


def test_a_recording_has_no_summaries(session):
    y = fs.constant(1.0, name="y")
    with fs.profile(session) as profiled:
        session.run(y)
    heard = []
    RecordedFeed(profiled.recording).hear(schema.AskSummaries(7, 1, None), heard.append)
    assert heard[0].error == NOTHING_RUNS


def test_other_questions_are_refused():
    for step in ("now", True, 1.5):
        with pytest.raises(ValueError, match="not a message"):
            message_from({"kind": "ask_summaries", "view": 7, "request_id": 1, "step": step})
