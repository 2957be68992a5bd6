"""The graph as written and the program as lowered in one view, told by a feed without a kernel."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

import flowscope as fs
from flowscope.live import bus
from flowscope.live.bus import Feed
from flowscope.live.wire import message_from, to_json

#: Longest wait for another thread; only a broken program waits that long.
PATIENCE_S = 30

START = """async source => {
    const url = URL.createObjectURL(new Blob([source], {type: "text/javascript"}));
    const widget = (await import(url)).default;
    const listeners = new Set();
    window.tell = message => listeners.forEach(listener => listener(message));
    const model = {
        on: (event, listener) => event === "msg:custom" && listeners.add(listener),
        off: (_, listener) => listeners.delete(listener),
        get: () => null,
        send: message => window.hear(message),
    };
    widget.render({model, el: document.body});
}"""


class View:
    """A view in an empty page, joined to a feed."""

    def __init__(self, page: Page, static: Path, feed: Feed) -> None:
        self.page = page
        self._feed = feed
        self._waiting: list[Any] = []
        page.goto("about:blank")
        page.expose_function("hear", lambda message: self._waiting.append(message))
        page.add_style_tag(content=(static / "graph_view.css").read_text("utf-8"))
        feed.subscribe(lambda message: page.evaluate("m => window.tell(m)", to_json(message)))
        page.evaluate(START, (static / "graph_view.js").read_text("utf-8"))
        self.carry()
        expect(page.locator(".fs-view[data-ready]")).to_be_visible()

    def carry(self) -> None:
        """Brings the feed what the view has sent."""
        self.page.wait_for_function("() => true")
        while self._waiting:
            self._feed.receive(message_from(self._waiting.pop(0)))

    def tick(self) -> None:
        """Lets the feed look once."""
        self._feed.tick(1.0)

    def press(self, name: str) -> None:
        """Presses a button, and brings the feed what that sends."""
        self.page.get_by_role("button", name=name, exact=True).click()
        self.carry()

    def item(self, label: str) -> Locator:
        return self.page.get_by_role("treeitem", name=label)

    def select(self, *path: str) -> None:
        """Selects the last of the labels in the outline, opening those before."""
        for label in path[:-1]:
            item = self.item(label)
            if item.get_attribute("aria-expanded") == "false":
                item.focus()
                item.press("ArrowRight")
        self.item(path[-1]).click()

    @property
    def inspector(self) -> Locator:
        return self.page.get_by_test_id("fs-inspector")


@pytest.fixture
def static(root: Path) -> Path:
    found = root / "widgets" / "flowscope_widgets" / "static"
    if not (found / "graph_view.js").is_file():
        pytest.skip("needs the front end: make front-end")
    return found


@pytest.fixture
def opened(page: Page, static: Path, graph: Any, monkeypatch: Any) -> Any:
    """Returns what opens the view of a graph."""
    monkeypatch.setattr(bus, "PERIOD_S", 1e6)
    return lambda: View(page, static, Feed(graph))


def test_a_loop_is_shown_as_its_primitives_which_lead_back_to_it(opened: Any) -> None:
    x = fs.placeholder(fs.float32, [], name="x")
    loop = fs.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), [0, x], name="loop")
    view = opened()
    lowered = view.page.get_by_role("button", name="Lowered")
    expect(lowered).to_have_attribute("aria-pressed", "false")
    view.press("Lowered")
    expect(view.page.get_by_test_id("fs-message")).to_contain_text("run something first")
    with fs.Session() as sess:
        sess.run(loop, {x: 2.0})
        view.press("Lowered")
        expect(lowered).to_have_attribute("aria-pressed", "true")
        expect(view.page.get_by_test_id("fs-message")).to_have_text("")
        view.press("Outline")
        view.select("loop, ", "NextIteration, ")
        expect(view.inspector).to_contain_text("In the graph as written")
        expect(view.inspector).to_contain_text("part of the loop")
        view.inspector.get_by_role("button", name="loop/Loop").click()
        view.carry()
        expect(lowered).to_have_attribute("aria-pressed", "false")
        expect(view.inspector.locator(".fs-kind")).to_have_text("Loop")


def test_what_always_runs_is_marked_and_a_queue_tells_what_is_in_it(opened: Any) -> None:
    x = fs.placeholder(fs.float32, [], name="x")
    squared = fs.square(x, name="squared")
    with pytest.warns(fs.errors.ControlFlowWarning, match="is used nowhere else"):
        fs.cond(x > 0.0, lambda: squared, lambda: x, name="choice")
    queue = fs.FIFOQueue(10, [fs.float32], shapes=[[]], name="orders")
    fill = queue.enqueue_many([[1.0, 2.0, 3.0]])
    view = opened()
    view.press("Outline")
    view.select("squared, Square, always runs")
    expect(view.inspector).to_contain_text("though only a branch needs it:")
    expect(view.inspector.get_by_role("button", name="choice/Cond").first).to_be_visible()
    view.select("orders, ")
    with fs.Session() as sess:
        sess.run(fill)
        view.tick()
        expect(view.inspector).to_contain_text("3 of 10")
        sess.run(fill)
        view.tick()
        expect(view.inspector).to_contain_text("6 of 10")


def test_a_running_loop_is_watched_at_either_level(opened: Any) -> None:
    x = fs.placeholder(fs.float32, [], name="x")
    _, y = fs.while_loop(lambda i, y: i < 9, lambda i, y: (i + 1, y * x), [0, x], name="loop")
    view = opened()
    errors: list[str] = []
    view.page.on("pageerror", lambda error: errors.append(str(error)))
    with fs.Session() as sess:
        sess.run(y, {x: 1.0})
        sess.pause()
        thread = threading.Thread(target=lambda: sess.run(y, {x: 1.0}))
        thread.start()
        try:
            assert sess.gate.wait_until_held(PATIENCE_S)
            sess.step_iteration()
            with sess.gate._changed:
                assert sess.gate._changed.wait_for(lambda: sess.gate.state == "paused", PATIENCE_S)
            view.tick()
            expect(view.page.get_by_test_id("fs-frames")).to_contain_text("loop")
            view.press("Lowered")
            expect(view.page.get_by_role("button", name="Lowered")).to_have_attribute(
                "aria-pressed", "true"
            )
            expect(view.page.get_by_test_id("fs-frames")).to_contain_text("loop")
            expect(view.page.get_by_test_id("fs-position")).to_contain_text("iteration 1")
            sess.step_op()
            with sess.gate._changed:
                assert sess.gate._changed.wait_for(lambda: sess.gate.state == "paused", PATIENCE_S)
            view.tick()
            expect(view.page.get_by_test_id("fs-position")).to_contain_text("stepped by operation")
        finally:
            sess.resume()
            thread.join(PATIENCE_S)
    assert not errors
