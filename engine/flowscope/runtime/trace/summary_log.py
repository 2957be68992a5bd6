"""Summary logs: what writers of summaries were given, kept for views within a bound in bytes.

A series is what one run has under one tag: numbers, histograms, images or texts over steps. Where
the bound is reached the largest series loses its oldest eighth, so that one with images leaves the
curves of the others alone. What was dropped is counted.
"""

from __future__ import annotations

import itertools
import threading
from array import array
from typing import Any, Literal, NamedTuple

import numpy as np

from flowscope.graph.messages.event_messages import Summary
from flowscope.graph.messages.tensor_proto import TensorProto

Kind = Literal["scalar", "histogram", "image", "text"]
#: So much a log keeps.
MAX_BYTES = 32 << 20
#: What a point takes besides its value; what an object, and a series, take besides.
_POINT, _OBJECT, _SERIES = 24, 200, 1000


class Histogram(NamedTuple):
    """How numbers were distributed: bucket `i` lies between `limits[i - 1]` and `limits[i]`.

    Attributes:
        low, high: The least and the largest of them.
        limits, counts: The upper limits of the buckets, how many numbers lie in each.
    """

    low: float
    high: float
    limits: Any
    counts: Any


class LoggedImage(NamedTuple):
    """A picture as a file (PNG, unless the user's own summary holds another)."""

    width: int
    height: int
    data: bytes


class Series:
    """What a run has under a tag.

    Attributes:
        run: The writer's folder; "" for one without.
        tag: The tag.
        kind: What its values are.
        steps, times, values: One entry per point, as they came; times are seconds since 1970.
            Values are numbers, `Histogram`s, `LoggedImage`s, or tuples of texts.
        dropped: How many points newer ones took the place of.
    """

    def __init__(self, run: str, tag: str, kind: Kind) -> None:
        self.run = run
        self.tag = tag
        self.kind: Kind = kind
        self.steps = array("q")
        self.times = array("d")
        self.values: Any = array("d") if kind == "scalar" else []
        self.sizes = array("q")
        self.nbytes = _SERIES
        self.dropped = 0
        #: The number of the writer of the latest point.
        self.writer = 0

    def __len__(self) -> int:
        return len(self.steps)

    def add(self, step: int, time_s: float, value: Any, nbytes: int) -> None:
        """Adds a point."""
        self.steps.append(step)
        self.times.append(time_s)
        self.values.append(value)
        self.sizes.append(nbytes)
        self.nbytes += nbytes

    def drop(self) -> None:
        """Forgets the oldest eighth, one point at least."""
        count = max(1, len(self) // 8)
        self.nbytes -= sum(self.sizes[:count])
        self.dropped += count
        for column in (self.steps, self.times, self.values, self.sizes):
            del column[:count]

    def begin_again(self, step: int) -> None:
        """Forgets what an earlier writer of the run has told of a step and of those after it."""
        known = np.flatnonzero(np.array(self.steps) < step).tolist()
        if len(known) == len(self):
            return
        self.steps = array("q", [self.steps[i] for i in known])
        self.times = array("d", [self.times[i] for i in known])
        self.sizes = array("q", [self.sizes[i] for i in known])
        values = [self.values[i] for i in known]
        self.values = array("d", values) if self.kind == "scalar" else values
        self.nbytes = _SERIES + sum(self.sizes)


class SummaryLog:
    """The newest summaries of all runs. Several threads may add to it.

    Args:
        max_bytes: So much is kept.

    Attributes:
        version: Grows with everything that is added.
        dropped: How many points newer ones took the place of.
        lock: Held while it changes; readers of `series` hold it too.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self.max_bytes = max_bytes
        self.nbytes = 0
        self.version = 0
        self.dropped = 0
        self.lock = threading.Lock()
        self._series: dict[tuple[str, str, Kind], Series] = {}
        self._writers = itertools.count(1)

    def writer(self) -> int:
        """Returns a number for a new writer: what it tells of a step stands in the place of what an
        earlier one of the same run has told of it and of those after it.
        """
        return next(self._writers)

    def add(self, writer: int, run: str, step: int, time_s: float, summary: Summary) -> None:
        """Adds the values of a summary; those of a kind that views do not show are passed over.

        Args:
            writer: What `writer` has returned.
            run: The writer's folder; "" for one without.
            step: Number of the step of training.
            time_s: Seconds since 1970.
            summary: The summary.
        """
        told = [(one.tag, *found) for one in summary.value if (found := _value(one)) is not None]
        with self.lock:
            for tag, kind, value, nbytes in told:
                self._add(writer, (run, tag, kind), (step, time_s, value, nbytes + _POINT))
            self.version += bool(told)

    def _add(self, writer: int, key: tuple[str, str, Kind], point: tuple[Any, ...]) -> None:
        if point[-1] > self.max_bytes:
            self.dropped += 1
            return
        series = self._series.get(key)
        if series is None:
            series = self._series[key] = Series(*key)
            self.nbytes += series.nbytes
        before = series.nbytes
        if series.writer != writer:
            series.begin_again(point[0])
            series.writer = writer
        series.add(*point)
        self.nbytes += series.nbytes - before
        while self.nbytes > self.max_bytes and self._drop(series):
            pass

    def _drop(self, latest: Series) -> bool:
        """Makes the largest series smaller; returns whether there was more than the last point."""
        candidates = [s for s in self._series.values() if s is not latest or len(s) > 1]
        if not candidates:
            return False
        largest = max(candidates, key=lambda s: s.nbytes)
        before, dropped = largest.nbytes, largest.dropped
        largest.drop()
        self.dropped += largest.dropped - dropped
        if not len(largest):
            del self._series[largest.run, largest.tag, largest.kind]
            largest.nbytes = 0
        self.nbytes += largest.nbytes - before
        return True

    def series(self) -> list[Series]:
        """Returns all series, by tag and run. To be called, and looked at, while holding `lock`."""
        return sorted(self._series.values(), key=lambda s: (s.tag, s.run))

    def clear(self) -> None:
        """Forgets everything."""
        with self.lock:
            self._series.clear()
            self.nbytes = self.dropped = 0
            self.version += 1


def _value(one: Summary.Value) -> tuple[Kind, Any, int] | None:
    """Returns the kind of a value, the value as it is kept, and its bytes."""
    which = one.WhichOneof("value")
    if which == "simple_value":
        return "scalar", float(one.simple_value), 16
    if which == "histo":
        h = one.histo
        kept = Histogram(h.min, h.max, np.array(h.bucket_limit), np.array(h.bucket))
        return "histogram", kept, kept.limits.nbytes + kept.counts.nbytes + _OBJECT
    if which == "image":
        image = LoggedImage(one.image.width, one.image.height, one.image.encoded_image_string)
        return "image", image, len(image.data) + _OBJECT
    if which == "tensor" and one.metadata and one.metadata.plugin_data:
        if one.metadata.plugin_data.plugin_name == "text":
            texts = _texts(one.tensor)
            return "text", texts, sum(len(t) for t in texts) + _OBJECT
    return None


def _texts(tensor: TensorProto) -> tuple[str, ...]:
    return tuple([bytes(text).decode("utf-8", "replace") for text in tensor.string_val])


__all__ = ["MAX_BYTES", "Histogram", "LoggedImage", "Series", "SummaryLog"]
