"""The graph as written and the program as lowered in one view, told by a feed without a kernel."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

import flowscope as fs
from flowscope.live.protocol.schema import Command, Connect
from flowscope.live.watchers import bus
from flowscope.live.watchers.bus import LiveChannel
from flowscope.live.watchers.wire import message_from, to_json

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

    def __init__(self, page: Page, static: Path, feed: LiveChannel) -> None:
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
            message = message_from(self._waiting.pop(0))
            if isinstance(message, Connect | Command):
                self._feed.receive(message)

    def tick(self) -> None:
        """Lets the feed look once."""
        self._feed.tick(1.0)

    def press(self, name: str) -> None:
        """Presses a button, and brings the feed what that sends."""
        self.page.get_by_role("button", name=name, exact=True).click()
        self.carry()

    def open_tab(self, name: str) -> None:
        """Opens a tab, which has its buttons."""
        self.page.get_by_role("tab", name=name, exact=True).click()
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
    """A function that opens the view of a graph."""
    monkeypatch.setattr(bus, "PERIOD_S", 1e6)
    return lambda: View(page, static, LiveChannel(graph))


def test_a_loop_is_shown_as_its_primitives_which_lead_back_to_it(opened: Any) -> None:
    x = fs.placeholder(fs.float32, [], name="x")
    loop = fs.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), [0, x], name="loop")
    view = opened()
    view.open_tab("Run")
    lowered = view.page.get_by_role("button", name="Lowered")
    expect(lowered).to_have_attribute("aria-pressed", "false")
    view.press("Lowered")
    expect(view.page.get_by_test_id("fs-message")).to_contain_text("run something first")
    with fs.Session() as sess:
        sess.run(loop, {x: 2.0})
        view.press("Lowered")
        expect(lowered).to_have_attribute("aria-pressed", "true")
        expect(view.page.get_by_test_id("fs-message")).to_have_text("")
        view.press("More")
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
    view.press("More")
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
            view.open_tab("Run")
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


def test_the_program_that_is_shown_follows_what_is_run(opened: Any) -> None:
    x = fs.placeholder(fs.float32, [], name="x")
    y = fs.exp(x, name="y")
    z = fs.sin(y, name="z")
    view = opened()
    crumbs = view.page.get_by_role("navigation", name="Breadcrumb")
    with fs.Session() as sess:
        sess.run(y, {x: 2.0})
        view.open_tab("Run")
        view.press("Lowered")
        expect(crumbs).to_have_text("program of y")
        view.press("More")
        view.press("Outline")
        view.select("y, Exp")
        sess.run(z, {x: 2.0})
        view.tick()
        view.tick()
        expect(crumbs).to_have_text("program of z / y")
        expect(view.item("z, Sin")).to_be_visible()
        expect(view.item("y, Exp")).to_have_attribute("aria-selected", "true")
        view.press("Lowered")
        expect(crumbs).to_have_text("graph / y")
        expect(view.item("y, Exp")).to_have_attribute("aria-selected", "true")


def test_a_loop_made_by_hand_is_a_frame(opened: Any) -> None:
    def enter(value: Any, **attributes: Any) -> Any:
        return fs.raw_ops.Enter(data=value, frame_name="count", **attributes)

    start = enter(fs.constant(0, name="start"), name="begin")
    limit = enter(fs.constant(5, name="limit"), is_constant=True, name="to")
    i, _ = fs.raw_ops.Merge(inputs=[start, start], name="i")
    test = fs.raw_ops.LoopCond(input=fs.less(i, limit, name="test"))
    stop, go = fs.raw_ops.Switch(data=i, pred=test)
    step = fs.add(go, enter(fs.constant(1), is_constant=True), name="step")
    i.op._update_input(1, fs.raw_ops.NextIteration(data=step))
    end = fs.raw_ops.Exit(data=stop)
    view = opened()
    view.press("More")
    view.press("Outline")
    view.select("count, loop", "i, Merge")
    view.item("count, loop").locator(".fs-item").first.click()
    expect(view.inspector).to_contain_text("loop, made by hand")
    with fs.Session() as sess:
        sess.pause()
        thread = threading.Thread(target=lambda: sess.run(end))
        thread.start()
        try:
            assert sess.gate.wait_until_held(PATIENCE_S)
            sess.step_iteration()
            with sess.gate._changed:
                assert sess.gate._changed.wait_for(lambda: sess.gate.state == "paused", PATIENCE_S)
            view.tick()
            view.tick()
            frames = view.page.get_by_test_id("fs-frames")
            expect(frames).to_contain_text("count")
            frames.get_by_role("button", name="iteration 1").click()
            expect(view.page.get_by_test_id("fs-inspector-run")).to_contain_text("1 of count")
        finally:
            sess.resume()
            thread.join(PATIENCE_S)
