"""Where operations stand: colours and a legend that counts and filters; moves by hand."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from bare_host import NOTE_TEXTS
from device_legend import device, drag, stage
from live_host import LiveHost
from playwright.sync_api import Page, expect

import flowscope as fs


@pytest.fixture
def session(graph: Any) -> fs.Session:
    """A session on four CPUs, which has run a model whose layers stand on three of them."""
    x = fs.placeholder(fs.float32, [None, 16], name="x")
    with fs.device("/device:CPU:1"):
        h = fs.layers.dense(x, 16, fs.nn.relu, name="encoder")
    with fs.device("/device:CPU:2"):
        h = fs.layers.dense(h, 16, fs.nn.relu, name="decoder")
    with fs.name_scope("head"):
        y = fs.reduce_sum(h, name="y")
    fs.negative(y, name="never")
    session = fs.Session(config=fs.ConfigProto(device_count={"CPU": 4}))
    session.run(fs.global_variables_initializer())
    session.run(y, {x: np.ones((2, 16), np.float32)})
    return session


@pytest.mark.parametrize("width", [1280, 600])
def test_the_legend_counts_and_filters(
    open_host: Callable[..., LiveHost], page: Page, session: fs.Session, width: int
) -> None:
    host = open_host(width)
    stage(page).press("d")
    host.pump(lambda: stage(page).get_attribute("data-heat") == "device")
    placed = list(session.placements.values())
    for name in ("CPU:0", "CPU:1", "CPU:2"):
        count = sum(p.endswith(name) for p in placed)
        expect(device(page, name)).to_have_accessible_name(f"{name}, {count} ops")
    expect(page.get_by_test_id("fs-devices-note")).to_have_text(re.compile(r"\d+\sops? in no step"))
    device(page, "CPU:1").click()
    expect(device(page, "CPU:1")).to_have_attribute("aria-pressed", "true")
    expect(stage(page)).to_have_attribute("data-lit", re.compile(r"^[1-9]"))
    device(page, "CPU:1").click()
    expect(stage(page)).to_have_attribute("data-lit", "")
    shown, legend = stage(page).bounding_box(), page.get_by_test_id("fs-devices").bounding_box()
    assert shown is not None and legend is not None
    assert legend["y"] + legend["height"] <= shown["y"], "the legend covers nothing of the picture"
    stage(page).press("d")
    expect(page.get_by_test_id("fs-devices")).to_be_hidden()


def test_the_inspector_says_why_an_operation_stands_where_it_does(
    open_host: Callable[..., LiveHost], page: Page
) -> None:
    host = open_host()
    page.evaluate("() => window.choose('selection', 'encoder/MatMul')")
    inspector = page.get_by_test_id("fs-inspector")
    host.pump(lambda: "because" in inspector.inner_text())
    text = inspector.inner_text()
    assert re.search(r"asked for\s+/device:CPU:1", text)
    assert re.search(r"placed on\s+CPU:1\b", text)


def test_a_scope_is_dragged_to_a_device_once_it_is_known_what_that_changes(
    open_host: Callable[..., LiveHost], page: Page, session: fs.Session
) -> None:
    host = open_host()
    page.evaluate(NOTE_TEXTS)
    stage(page).press("d")
    host.pump(lambda: device(page, "CPU:3").count() > 0)
    host.pump(lambda: page.evaluate("() => window.texts.some(t => t[0] === 'encoder')"))
    drag(page, "encoder", device(page, "CPU:3"))
    card = page.get_by_test_id("fs-move")
    host.pump(lambda: "predicted" in card.inner_text())
    expect(card).to_contain_text("Move encoder/ to CPU:3?")
    expect(card).to_contain_text("variables go along")
    weight = session.graph.get_operation_by_name("encoder/MatMul").id
    assert session.placements[weight].endswith("CPU:1")
    card.get_by_role("button", name="Move", exact=True).click()
    host.pump(lambda: "encoder/ moved to CPU:3" in card.inner_text())
    expect(card).to_contain_text("after the next step")
    session.run("head/y:0", {"x:0": np.ones((2, 16), np.float32)})
    assert session.placements[weight].endswith("CPU:3")
    host.pump(lambda: re.search(r"measured: .*a step", card.inner_text()) is not None)
    count = sum(p.endswith("CPU:3") for p in session.placements.values())
    host.pump(lambda: device(page, "CPU:3").locator("b").inner_text() == str(count))


def test_an_operation_is_moved_by_keys(
    open_host: Callable[..., LiveHost], page: Page, session: fs.Session
) -> None:
    with session.graph.as_default(), fs.device("/device:CPU:1"):
        y = fs.add(1.0, fs.placeholder(fs.float32, [], name="p"), name="bound")
    session.run(y, {"p:0": 1.0})
    host = open_host()
    page.evaluate("() => window.choose('selection', 'bound')")
    stage(page).press("m")
    here = page.get_by_role("button", name="Move bound to CPU:2…", exact=True)
    host.pump(lambda: here.count() > 0)
    here.press("Enter")
    card = page.get_by_test_id("fs-move")
    host.pump(lambda: card.get_by_role("button", name="Move", exact=True).count() > 0)
    expect(card.get_by_role("button", name="Move", exact=True)).to_be_focused()
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()


def test_the_program_is_seen_as_cut_and_a_send_leads_to_its_recv(
    open_host: Callable[..., LiveHost], page: Page
) -> None:
    host = open_host()
    stage(page).press("L")
    lanes = [page.get_by_role("treeitem", name=re.compile(f"^CPU:{i}")) for i in range(3)]
    host.pump(lambda: all(lane.count() > 0 for lane in lanes))
    expect(stage(page)).to_have_attribute("aria-label", re.compile("^Cut partitions of"))
    name = "encoder/Relu/to_CPU:2"
    page.evaluate("name => window.choose('selection', name)", name)
    inspector = page.get_by_test_id("fs-inspector")
    host.pump(lambda: "each time" in inspector.inner_text())
    expect(inspector).to_contain_text(re.compile(r"from\s*CPU:1"))
    inspector.get_by_role("button", name=re.compile("from_CPU:1")).first.click()
    host.pump(lambda: host.chosen.get("selection", "").endswith("from_CPU:1"))
    stage(page).press("L")
    host.pump(lambda: lanes[1].count() == 0)
