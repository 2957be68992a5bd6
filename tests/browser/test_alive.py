"""Stop at first NaN, why it is slow, and numbers that steps fetch: each by one button, or none."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bare_host import NOTE_TEXTS
from device_legend import stage
from live_host import LiveHost
from playwright.sync_api import Page

import flowscope as fs


@pytest.fixture
def session(graph: Any) -> Iterator[fs.Session]:
    """A model whose loss is the logarithm of what may be 0."""
    x = fs.placeholder(fs.float32, [None, 8], name="x")
    h = x
    for i in range(3):
        h = fs.layers.dense(h, 32, fs.nn.relu, name=f"fc{i}")
    with fs.name_scope("head"):
        big = fs.placeholder(fs.float32, [500, 500], name="big")
        weight = fs.reduce_mean(fs.matmul(big, big, name="product"), name="weight")
        rate = fs.reduce_mean(fs.abs(x), name="rate")
        loss = fs.log(rate, name="loss")
        fs.add(loss * weight, fs.reduce_mean(h), name="total")
    with fs.Session() as session:
        session.run(fs.global_variables_initializer())
        yield session
        session.gate.request("resume")


#: Where pictures of what is tested are kept, to be looked at.
OUTPUT = Path(__file__).parent / "output"
BIG = np.ones((500, 500), np.float32)


@pytest.fixture(autouse=True)
def output() -> None:
    """The folder of pictures is there."""
    OUTPUT.mkdir(exist_ok=True)


def step(session: fs.Session, value: float) -> None:
    feeds = {"x:0": np.full((2, 8), value, np.float32), "head/big:0": BIG}
    session.run(["head/total:0", "head/loss:0"], feeds)


def test_the_first_nan_is_held_framed_and_explained(
    open_host: Callable[..., LiveHost], page: Page, session: fs.Session
) -> None:
    step(session, 1.0)
    host = open_host()
    page.evaluate(NOTE_TEXTS)
    page.get_by_role("tab", name="Run").click()
    button = page.get_by_role("button", name="Stop at first NaN").first
    button.click()
    host.pump(lambda: button.get_attribute("aria-pressed") == "true")
    running = threading.Thread(target=step, args=(session, 0.0))
    running.start()
    told = page.get_by_test_id("fs-nan-told")
    host.pump(lambda: "made by" in told.inner_text())
    text = told.inner_text()
    assert "inf made by head/loss (Log), step 2" in text and "loss = fs.log(rate" in text
    assert "Takes" in text and "rate" in text
    assert page.get_by_test_id("fs-state").inner_text() == "held after loss"
    host.pump(lambda: page.evaluate("() => window.texts.some(t => t[0] === 'NaN')"))
    page.screenshot(path=OUTPUT / "alive-nan.png")
    page.get_by_role("button", name="Compute again from step 2, up to head/loss").click()
    host.pump(lambda: "past: step 2" in page.get_by_test_id("fs-state").inner_text())
    assert [str(s.op.name) for s in session.debug.stops if s.is_past] == ["head/loss"]
    stage(page).press("!")
    host.pump(lambda: button.get_attribute("aria-pressed") == "false")
    session.gate.request("resume")
    running.join(30)
    assert not running.is_alive() and session.debug.breakpoints == ()


def test_why_it_is_slow_leads_to_the_box(
    open_host: Callable[..., LiveHost], page: Page, session: fs.Session
) -> None:
    step(session, 1.0)
    host = open_host()
    page.get_by_role("tab", name="Time").click()
    page.get_by_role("button", name="Why is it slow?").first.click()
    findings = page.get_by_test_id("fs-findings")

    is_over = threading.Event()

    def train() -> None:
        while not is_over.is_set():
            step(session, 1.0)

    running = threading.Thread(target=train)
    running.start()
    try:
        host.pump(lambda: "product" in findings.inner_text())
    finally:
        is_over.set()
        running.join()
    assert "(MatMul) takes" in findings.inner_text()
    page.screenshot(path=OUTPUT / "alive-slow.png")
    findings.get_by_role("button", name="One operation").click()
    host.pump(lambda: "product" in page.get_by_test_id("fs-inspector").inner_text())


def test_a_fetched_number_has_its_curve_in_the_header_and_on_its_box(
    open_host: Callable[..., LiveHost], page: Page, session: fs.Session
) -> None:
    step(session, 1.0)
    host = open_host()
    page.evaluate(NOTE_TEXTS)
    scalar = page.get_by_test_id("fs-scalar")
    values = iter(np.linspace(1.0, 4.0, 400))

    def is_drawn() -> bool:
        step(session, float(next(values)))
        path = scalar.locator("path").get_attribute("d") or ""
        return "loss" in scalar.inner_text() and path.count("L") > 3

    host.pump(is_drawn)
    stage(page).press("f")
    page.screenshot(path=OUTPUT / "alive-curve.png")
