"""Queues, and the panel Input: how full they are, who waits, what runners and hooks wait for."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live_host import LiveHost
from playwright.sync_api import Page, expect

import flowscope as fs
from flowscope.runtime.session.engine import Engine

train = fs.train


class Pipeline:
    """Names, which a function makes numbers of, which a queue shuffles."""

    def __init__(self) -> None:
        self.goes_on, self.breaks = threading.Event(), threading.Event()
        names = train.string_input_producer(["a", "bb", "ccc"], shuffle=False, name="names")
        with fs.name_scope("parse"):
            value = fs.py_func(self._parsed, [names.dequeue()], fs.float32, name="parsed")
            value.set_shape([])
        self.batch = train.shuffle_batch([value], 4, 40, 10, seed=1, name="shuffled")
        squares = fs.data.Dataset.range(1000).map(lambda i: i * i).prefetch(8)
        with fs.name_scope("squares"):
            self.square = fs.data.make_one_shot_iterator(squares).get_next()
        train.get_or_create_global_step()
        hook = train.LoggingTensorHook({"batch": self.batch}, every_n_iter=1000)
        self.monitored = train.SingularMonitoredSession([hook])

    def _parsed(self, name: bytes) -> np.float32:
        if self.breaks.is_set():
            raise ValueError(f"{name!r} is no number")
        self.goes_on.wait(60)
        return np.float32(len(name))

    def take(self) -> None:
        """Takes a batch; the pipeline is broken on purpose."""
        with contextlib.suppress(fs.errors.OpError):
            self.monitored.run([self.batch, self.square])


@pytest.fixture
def pipeline(graph: Any) -> Iterator[Pipeline]:
    with Engine().as_default():
        made = Pipeline()
        yield made
        made.goes_on.set()
        with pytest.raises(fs.errors.OpError, match="is no number"):
            made.monitored.close()


@pytest.fixture
def session(pipeline: Pipeline) -> fs.Session:
    return pipeline.monitored.raw_session()


def test_a_pipeline_that_starves_works_and_breaks_is_seen(
    open_host: Callable[..., LiveHost], page: Page, pipeline: Pipeline, tmp_path: Path
) -> None:
    host = open_host(1280, "light", fills=True)
    page.get_by_test_id("fs-stage").press("q")
    panel = page.get_by_test_id("fs-input")
    queues = panel.get_by_role("list", name="Queues").locator("li")
    helpers = panel.get_by_role("list", name="Runners, coordinators and hooks").locator("li")
    shuffled = queues.filter(has_text="shuffled")

    def told(pattern: str) -> bool:
        return shuffled.count() > 0 and bool(re.search(pattern, shuffled.inner_text()))

    # It starves: the consumer and the runner's function wait, the queue of names is full.
    taker = threading.Thread(target=pipeline.take)
    taker.start()
    host.pump(lambda: told(r"waits for elements, [1-9]\d* s"))
    expect(shuffled).to_contain_text("0 of 40, 10 stay in")
    expect(queues.filter(has_text="names")).to_contain_text("waits for space")
    expect(helpers.filter(has_text="hook")).to_contain_text("LoggingTensorHook")
    expect(helpers.filter(has_text="threads")).to_contain_text("waits for")
    expect(helpers.filter(has_text="waits for space in").first).to_be_visible()
    page.screenshot(path=tmp_path / "starved.png")
    # It works.
    pipeline.goes_on.set()
    taker.join()
    host.pump(lambda: told("40 of 40"))
    for _ in range(30):
        pipeline.take()
    host.pump(lambda: told("elements/s"))
    expect(queues.filter(has_text="squares")).to_contain_text("of 8 ready")
    page.screenshot(path=tmp_path / "works.png")
    # It breaks: the queue says so, and the runner leads to its box.
    pipeline.breaks.set()
    for _ in range(20):
        pipeline.take()
    host.pump(lambda: told("A producer failed"))
    expect(shuffled).to_contain_text("is no number")
    broken = helpers.filter(has_text="is no number").filter(has=page.get_by_role("button"))
    broken.first.get_by_role("button").click()
    expect(page.get_by_test_id("fs-inspector")).to_contain_text("Enqueue")
    page.screenshot(path=tmp_path / "broken.png")
