"""The widget in a page that has nothing but anywidget's contract, as VS Code and Colab give it.

The page (`bare_host`) gives `get`, `set`, `save_changes`, `on`, `off` and `send` of a model, and
an element. Nothing comes from a network.
"""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bare_host import Host
from playwright.sync_api import Page, expect

import flowscope as fs
from flowscope.live.protocol.schema import Failure, SessionState, Snapshot
from flowscope.live.watchers.bus import LiveChannel


@pytest.fixture
def snapshot(graph: Any) -> Snapshot:
    """A perceptron of two layers; the latest step has failed at its loss."""
    x = fs.placeholder(fs.float32, [None, 784], name="x")
    labels = fs.placeholder(fs.int64, [None], name="labels")
    h = fs.layers.dense(x, 128, fs.nn.relu, name="hidden")
    logits = fs.layers.dense(h, 10, name="logits")
    loss = fs.losses.sparse_softmax_cross_entropy(labels, logits)
    fs.train.GradientDescentOptimizer(0.1).minimize(loss)
    told = LiveChannel(graph).snapshot(time.monotonic())
    failure = Failure(h.op.id, "InvalidArgumentError: inner dimensions must agree")
    state = SessionState("idle", 3, None, None, None, failure=failure)
    return replace(told, session=state, control="live")


@pytest.fixture
def host(page: Page, root: Path) -> Host:
    static = root / "widgets" / "flowscope_widgets" / "static"
    if not (static / "loader.js").is_file():
        pytest.skip("needs the front end: make front-end")
    return Host(page, static)


def test_an_item_of_the_outline_keeps_the_focus_when_the_picture_changes(
    host: Host, snapshot: Snapshot
) -> None:
    host.start(snapshot)
    loss = host.page.get_by_role("treeitem", name=re.compile("^sparse_softmax"))
    loss.evaluate("item => item.click()")
    expect(loss).to_have_attribute("aria-selected", "true")
    is_open = loss.get_attribute("aria-expanded") == "true"
    item = host.page.get_by_role("treeitem", name="labels, Placeholder")
    item.focus()
    host.stage.evaluate(
        "stage => stage.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', bubbles: true}))"
    )
    expect(loss).to_have_attribute("aria-expanded", "false" if is_open else "true")
    expect(item).to_be_focused()


def test_a_second_view_does_not_ask_for_the_script_again(host: Host, snapshot: Snapshot) -> None:
    host.start(snapshot)
    assert (host.count("core"), host.count("connect")) == (1, 1)
    host.page.evaluate(
        "async () => { const el = document.createElement('div'); document.body.append(el);"
        " window.ends.push(await window.show(el)); }"
    )
    expect(host.page.locator(".fs-view[data-ready]")).to_have_count(2)
    assert (host.count("core"), host.count("connect")) == (1, 2)
    host.page.evaluate("() => window.ends.forEach(end => end())")
    expect(host.page.locator(".fs-view")).to_have_count(0)
    assert host.count("disconnect") == 2
    assert [u for u in host.requests if not u.startswith(("blob:", "data:", "about:"))] == []


def test_everything_is_reached_with_keys_alone_and_said(host: Host, snapshot: Snapshot) -> None:
    host.page.set_viewport_size({"width": 600, "height": 800})
    host.start(snapshot)
    host.stage.focus()
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        host.stage.press(key)
    expect(host.find("speech")).not_to_have_text("")
    host.stage.press("/")
    host.page.keyboard.type("type:MatMul")
    expect(host.find("found")).to_contain_text("found")
    host.page.keyboard.press("Enter")
    expect(host.find("found")).to_contain_text("1 of")
    expect(host.find("speech")).to_contain_text("float32")
    host.page.keyboard.press("Escape")
    expect(host.find("find")).to_be_hidden()
    expect(host.stage).to_be_focused()
    host.stage.press("?")
    expect(host.find("keys")).to_contain_text("placeholder")
    host.stage.press("Escape")
    expect(host.find("keys")).to_be_hidden()


def test_the_operation_that_failed_is_marked_and_looked_at(host: Host, snapshot: Snapshot) -> None:
    host.start(snapshot)
    expect(host.find("position")).to_contain_text("inner dimensions must agree")
    expect(host.find("inspector")).to_contain_text("The latest step failed here")
    expect(host.stage).not_to_have_attribute("data-failed", "")
    host.find("position").click()
    expect(host.find("inspector")).to_contain_text("hidden/")


def test_a_box_alone_and_the_card_beside_the_pointer(host: Host, snapshot: Snapshot) -> None:
    host.start(snapshot)
    item = host.page.get_by_role("treeitem", name="x, Placeholder")
    item.focus()
    host.stage.press("a")
    expect(item).to_have_attribute("aria-posinset", "1")
    host.stage.press("Escape")
    box = host.stage.bounding_box()
    assert box is not None
    for share in (0.2, 0.35, 0.5, 0.65, 0.8):
        host.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] * share)
        if host.stage.get_attribute("data-hover"):
            break
    expect(host.find("card")).to_be_visible()


def test_what_is_fetched_and_fed_is_told(host: Host, snapshot: Snapshot) -> None:
    host.page.set_viewport_size({"width": 600, "height": 800})
    host.start(snapshot)
    item = host.page.get_by_role("treeitem", name="x, Placeholder")
    item.focus()
    item.press("Enter")
    host.stage.press("v")
    host.stage.press("V")
    sent = host.page.evaluate("() => window.sent.filter(m => m.kind === 'choose')")
    told = [(m["what"], m["value"]) for m in sent if m["what"] in ("fetches", "feed")]
    assert told == [("fetches", ["x:0"]), ("feed", ["x:0", ""])]
    host.stage.press("e")
    expect(host.find("run")).to_contain_text("Choose what to fetch")
    assert not host.count("command"), "nothing is chosen as far as the kernel has told"


@pytest.mark.parametrize("width", [600, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_narrow_and_dark_windows(
    host: Host, snapshot: Snapshot, width: int, scheme: Any, tmp_path: Path
) -> None:
    """For people to look at; the page must not be wider than the window."""
    host.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    host.page.set_viewport_size({"width": width, "height": 800})
    host.start(snapshot)
    host.stage.press("c")
    host.page.screenshot(path=tmp_path / f"{width}-{scheme}.png")
    assert host.page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")


def test_a_page_that_can_have_no_worker_lays_out_by_itself(host: Host, snapshot: Snapshot) -> None:
    host.page.add_init_script("window.Worker = class { constructor() { throw new Error('no'); } }")
    host.start(snapshot)
    host.settle()
    assert {"hidden", "logits"} <= {text for text, *_ in host.texts()}
