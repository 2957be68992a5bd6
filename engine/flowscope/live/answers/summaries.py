"""Summaries for views: what the log of an engine keeps, within a budget of bytes per answer."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from flowscope.live.answers.asking import Asked, Send, answers, refusals
from flowscope.live.protocol.summary_schema import (
    AskSummaries,
    HistogramSeries,
    ImageSeries,
    ScalarSeries,
    Summaries,
    SummaryState,
    TextSeries,
)
from flowscope.live.protocol.tables import Numbers
from flowscope.runtime.session.engine import Engine
from flowscope.runtime.session.session import Session
from flowscope.runtime.trace.summary_log import Histogram, LoggedImage, Series

#: Bytes of an answer at most, about: a half for curves, a quarter for histograms, one for pictures.
BUDGET_BYTES = 1 << 19
#: Series of an answer at most.
MOST_SERIES = 300
#: Points of a curve at most, and at least.
MOST_POINTS, LEAST_POINTS = 1000, 40
#: Histograms of a series at most, and their bins.
MOST_HISTOGRAMS, BINS = 60, 40
#: Characters of a series' texts.
MOST_CHARS = 4000
_ROW_BYTES = 20


def summary_state(owner: Engine) -> SummaryState | None:
    """The message of an engine's log; None where nothing was written."""
    log = owner.summaries
    if log is None or not log.version:
        return None
    return SummaryState(log.version, log.nbytes, log.max_bytes, log.dropped)


def summaries(session: Session | None, asked: AskSummaries) -> Summaries:
    """Returns the answer to a question for summaries."""
    log = session.engine.summaries if session is not None else None
    if log is None:
        return refused(asked, "no summary was written")
    with log.lock:
        version, found = log.version, log.series()
        shown = found[:MOST_SERIES]
        told = _Told(shown, asked.step)
    return Summaries(
        asked.request_id, "", version, told.scalars, told.histograms, told.images, told.texts,
        len(found) - len(shown), told.steps, asked.view,
    )  # fmt: skip


@refusals(AskSummaries)
def refused(asked: AskSummaries, why: str) -> Summaries:
    """Returns an answer without summaries."""
    return Summaries(asked.request_id, why, 0, (), (), (), (), 0, Numbers({}), asked.view)


class _Told:
    """What is told of some series; the log does not change meanwhile."""

    def __init__(self, series: Sequence[Series], step: int | None) -> None:
        kinds = {k: [s for s in series if s.kind == k] for k in ("scalar", "histogram", "image")}
        texts = [s for s in series if s.kind == "text"]
        curves, spreads = kinds["scalar"], kinds["histogram"]
        most = BUDGET_BYTES // 2 // _ROW_BYTES // max(1, len(curves))
        starts: dict[str, float] = {}
        for one in series:
            starts[one.run] = min(one.times[0], starts.get(one.run, math.inf))
        points = min(MOST_POINTS, max(LEAST_POINTS, most))
        self.scalars = tuple([_scalars(s, points, starts[s.run]) for s in curves])
        most = BUDGET_BYTES // 4 // (8 * BINS) // max(1, len(spreads))
        columns = min(MOST_HISTOGRAMS, max(4, most))
        self.histograms = tuple([_histograms(s, columns) for s in spreads])
        self._room = BUDGET_BYTES // 4
        self.images = tuple([self._image(s, step) for s in kinds["image"]])
        self.texts = tuple([_texts(s, step) for s in texts])
        steps = sorted({n for s in (*kinds["image"], *texts) for n in s.steps})
        self.steps = Numbers({"step": np.array(_some(steps, MOST_POINTS), np.float64)})

    def _image(self, series: Series, step: int | None) -> ImageSeries:
        at = _row(series, step)
        image: LoggedImage = series.values[at]
        size = len(image.data) * 4 // 3
        has_room = size <= self._room
        self._room -= size if has_room else 0
        data = base64.b64encode(image.data).decode() if has_room else ""
        return ImageSeries(
            series.run, series.tag, len(series), series.dropped, series.steps[at],
            image.width, image.height, data, len(image.data),
        )  # fmt: skip


def _row(series: Series, step: int | None) -> int:
    """Returns the row of a step, or of the last one before it; the first where there is none."""
    if step is None:
        return len(series) - 1
    steps = np.array(series.steps)
    before = np.flatnonzero(steps <= step)
    if not before.size:
        return int(steps.argmin())
    latest = before[steps[before] == steps[before].max()]
    return int(latest[-1])


def _some(values: list[int], most: int) -> list[int]:
    """Returns some values, evenly chosen, the first and the last among them."""
    if len(values) <= most:
        return values
    return [values[i] for i in np.linspace(0, len(values) - 1, most).round().astype(int)]


def _scalars(series: Series, most: int, start_s: float) -> ScalarSeries:
    steps, times, values = [np.array(c) for c in (series.steps, series.times, series.values)]
    order = np.argsort(steps, kind="stable")
    rows = order[_extremes(values[order], most)]
    told = {"step": steps[rows].astype(np.float64), "time": times[rows] - start_s}
    told["value"] = values[rows]
    return ScalarSeries(series.run, series.tag, len(series), series.dropped, Numbers(told))


def _extremes(values: Any, most: int) -> Any:
    """Returns the rows of the least and the largest of each part, the first and the last row, and
    those that are not finite as far as there is room.
    """
    count = len(values)
    if count <= most:
        return np.arange(count)
    parts = max(1, most // 3)
    size = -(-count // parts)
    is_finite = np.isfinite(values)
    found = [np.array([0, count - 1])]
    for filler, pick in ((np.inf, np.argmin), (-np.inf, np.argmax)):
        padded = np.full(parts * size, filler)
        padded[:count] = np.where(is_finite, values, filler)
        found.append(pick(padded.reshape(parts, size), axis=1) + size * np.arange(parts))
    wrong = np.flatnonzero(~is_finite)
    found.append(wrong[:: max(1, -(-len(wrong) // parts))])
    rows = np.unique(np.concatenate(found))
    return rows[rows < count]


def _histograms(series: Series, most: int) -> HistogramSeries:
    order = np.argsort(np.array(series.steps), kind="stable").tolist()
    rows = _some(order, most)
    shown: list[Histogram] = [series.values[i] for i in rows]
    filled = [h for h in shown if h.counts.sum() > 0 and math.isfinite(h.high - h.low)]
    low = min((h.low for h in filled), default=0.0)
    high = max((h.high for h in filled), default=0.0)
    if not math.isfinite(high - low):
        low, high = 0.0, 0.0
    if high <= low:  # all numbers are one
        wide = max(0.5, abs(low) * 1e-6)
        low, high = low - wide, high + wide
    edges = np.linspace(low, high, BINS + 1)
    shares = [_shares(h, edges) for h in shown]
    told = {"step": np.array([series.steps[i] for i in rows], np.float64)}
    told |= {"min": np.array([h.low for h in shown]), "max": np.array([h.high for h in shown])}
    return HistogramSeries(
        series.run, series.tag, len(series), series.dropped, float(low), float(high), BINS,
        Numbers(told), Numbers({"share": np.concatenate(shares)}),
    )  # fmt: skip


def _shares(histogram: Histogram, edges: Any) -> Any:
    """Returns which share of the numbers lies between each two edges; in a bucket they are even."""
    total = histogram.counts.sum()
    if total <= 0 or not math.isfinite(histogram.high - histogram.low):
        return np.zeros(len(edges) - 1)
    limits = np.clip(histogram.limits, histogram.low, histogram.high)
    if histogram.high <= histogram.low:  # all of them are one number
        counts, _ = np.histogram([histogram.low], edges)
        return counts.astype(np.float64)
    ends = np.concatenate([[histogram.low], limits])
    below = np.concatenate([[0.0], np.cumsum(histogram.counts)]) / total
    return np.diff(np.interp(edges, ends, below))


def _texts(series: Series, step: int | None) -> TextSeries:
    at = _row(series, step)
    room, told, left_out = MOST_CHARS, [], 0
    for text in series.values[at]:
        told += [text[:room]] if room else []
        left_out += len(text) - min(len(text), room)
        room -= min(room, len(text))
    return TextSeries(
        series.run, series.tag, len(series), series.dropped, series.steps[at], tuple(told), left_out
    )


@answers(AskSummaries)
def _live(channel: Asked, asked: AskSummaries, send: Send) -> None:
    send(summaries(channel.session, asked))


__all__ = ["BUDGET_BYTES", "refused", "summaries", "summary_state"]
