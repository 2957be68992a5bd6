"""A graph that is slow for no good reason: found in the view, and mended there by hand."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bare_host import NOTE_TEXTS
from device_legend import device, drag, stage
from live_host import LiveHost
from playwright.sync_api import Locator, Page, expect

import flowscope as fs

FEED = {"x:0": np.full((64, 256), 1e-3, np.float32)}
MILLISECONDS = {"s": 1e3, "ms": 1.0, "\u00b5s": 1e-3, "\u03bcs": 1e-3, "us": 1e-3, "ns": 1e-6}


@pytest.fixture
def go_on() -> threading.Event:
    """What the step that fetches "head/late" waits for."""
    return threading.Event()


@pytest.fixture
def session(graph: Any, go_on: threading.Event) -> Iterator[fs.Session]:
    """Three layers on simulated accelerators; the one in the middle stands apart."""
    h = fs.placeholder(fs.float32, [64, 256], name="x")
    # Scopes that are alike in make are folded into one box: the one in the middle is another.
    for name, place in (("encoder", "GPU:0"), ("middle", "GPU:1"), ("decoder", "GPU:0")):
        with fs.device(f"/device:{place}"), fs.variable_scope(name):
            w = fs.get_variable("w", [256, 256], initializer=fs.ones_initializer())
            h = fs.matmul(fs.nn.relu(h) if name == "middle" else h, w, name="y")
    with fs.name_scope("steer"), fs.device("/device:CPU:0"):
        wait = fs.py_func(lambda: np.float32(go_on.wait(60)), [], fs.float32, name="wait")
    with fs.name_scope("head"), fs.control_dependencies([wait]):
        fs.identity(h, name="late")
    with fs.Session(config=fs.ConfigProto(fake_devices={"GPU": 2})) as session:
        session.run(fs.global_variables_initializer())
        yield session


@pytest.fixture
def open_host(open_host: Callable[..., LiveHost], page: Page) -> Callable[..., LiveHost]:
    def opened(width: int = 1280) -> LiveHost:
        host = open_host(width)
        page.evaluate(NOTE_TEXTS)
        stage(page).press("d")
        host.pump(lambda: device(page, "GPU:0").count() > 0)
        host.pump(lambda: page.evaluate("() => window.texts.some(t => t[0] === 'middle')"))
        return host

    return opened


def times_ms(text: str) -> list[float]:
    """Returns the times that a line names, in milliseconds."""
    found = re.findall(r"([\d.]+)\s*(s|ms|\u00b5s|\u03bcs|us|ns)\b", text)
    return [float(number) * MILLISECONDS[unit] for number, unit in found]


def offered(host: LiveHost, page: Page, scope: str, place: str) -> Locator:
    """Drags a scope to a device; returns the card once it has the answer."""
    drag(page, scope, device(page, place))
    card = page.get_by_test_id("fs-move")
    host.pump(lambda: re.search("predicted|cannot be", card.inner_text()) is not None)
    return card


def run_seen(host: LiveHost, page: Page, session: fs.Session) -> Any:
    """Runs three steps, each seen by the view; returns what the last one gives."""
    for _ in range(3):
        found = session.run("decoder/y:0", FEED)
        told = re.compile(rf"\b{session.steps}\s+steps")
        host.pump(lambda told=told: told.search(page.get_by_test_id("fs-steps").text_content()))
    return found


@pytest.mark.parametrize("width", [1280, 600])
def test_a_layer_that_makes_values_cross_is_found_and_dragged_to_its_neighbours(
    open_host: Callable[..., LiveHost], page: Page, session: fs.Session, width: int, tmp_path: Path
) -> None:
    session.run("decoder/y:0", FEED)
    host = open_host(width)
    before = run_seen(host, page, session)
    device(page, "GPU:1").click()
    expect(stage(page)).to_have_attribute("data-lit", re.compile(r"^[1-9]"))
    device(page, "GPU:1").click()
    page.screenshot(path=tmp_path / f"found-{width}.png")
    stage(page).press("L")
    inspector = page.get_by_test_id("fs-inspector")
    for sent, source in (("encoder/y/to_GPU:1", "GPU:0"), ("middle/y/to_GPU:0", "GPU:1")):
        page.evaluate("name => window.choose('selection', name)", sent)
        host.pump(lambda: "each time" in (inspector.text_content() or ""))
        host.pump(
            lambda at=source: (
                re.search(rf"from\s*{at}", (inspector.text_content() or "")) is not None
            )
        )
        expect(inspector).to_contain_text(re.compile(r"6[45](\.\d+)?\s*[kK]i?B"))
    page.screenshot(path=tmp_path / f"cut-{width}.png")
    stage(page).press("L")
    page.evaluate("() => window.choose('selection', '')")
    written = re.compile("^Graph")
    host.pump(lambda: written.match(stage(page).get_attribute("aria-label") or "") is not None)
    host.pump(lambda: page.evaluate("() => window.texts.some(t => t[0] === 'middle')"))
    card = offered(host, page, "middle", "GPU:0")
    page.screenshot(path=tmp_path / f"offered-{width}.png")
    card.get_by_role("button", name="Move", exact=True).click()
    host.pump(lambda: "middle/ moved to GPU:0" in card.inner_text())
    after = run_seen(host, page, session)
    measured = re.compile("measured: .*")
    host.pump(lambda: len(times_ms("".join(measured.findall(card.inner_text())))) == 2)
    page.screenshot(path=tmp_path / f"mended-{width}.png")
    was, now = times_ms("".join(measured.findall(card.inner_text())))
    assert now < 0.9 * was
    np.testing.assert_array_equal(before, after)


def test_a_move_that_cannot_be_says_which_constraint_forbids_it(
    open_host: Callable[..., LiveHost], page: Page, session: fs.Session
) -> None:
    session.run("decoder/y:0", FEED)
    host = open_host()
    card = offered(host, page, "steer", "GPU:0")
    expect(card).to_contain_text("It cannot be")
    expect(card).to_contain_text(re.compile("steer/wait.*has no kernel for GPU"))
    expect(card.get_by_role("button", name="Move", exact=True)).to_have_count(0)
    card.get_by_role("button", name="Close").click()
    expect(card).to_be_hidden()
    assert not session.graph.get_operation_by_name("steer/wait").device.endswith("GPU:0")


def test_a_layer_is_moved_while_a_step_runs(
    open_host: Callable[..., LiveHost], page: Page, session: fs.Session, go_on: threading.Event
) -> None:
    want = session.run("decoder/y:0", FEED)
    host = open_host()
    got: list[Any] = []
    step = threading.Thread(target=lambda: got.append(session.run("head/late:0", FEED)))
    step.start()
    try:
        host.pump(lambda: bool(session.running))
        card = offered(host, page, "middle", "GPU:0")
        card.get_by_role("button", name="Move", exact=True).click()
        host.pump(lambda: "middle/ moved to GPU:0" in card.inner_text())
        expect(card).to_contain_text("after the next step")
        assert step.is_alive()
    finally:
        go_on.set()
        step.join()
    np.testing.assert_array_equal(got[0], want)
    np.testing.assert_array_equal(run_seen(host, page, session), want)
    product = session.graph.get_operation_by_name("middle/y").id
    assert session.placements[product].endswith("GPU:0")
    host.pump(lambda: re.search(r"measured: .*a step", card.inner_text()) is not None)
