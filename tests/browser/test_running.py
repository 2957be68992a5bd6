"""The view of a running loop, with a run that the test tells: no kernel, no notebook."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from flowscope.live.protocol.schema import (
    Delta,
    FrameState,
    FromKernel,
    Iteration,
    Position,
    RunState,
    SessionState,
    Snapshot,
    Token,
)
from flowscope.live.watchers.bus import LiveChannel
from flowscope.live.watchers.wire import to_json

FRAME = FrameState(
    id="loop",
    loop=0,
    name="loop/Loop",
    parent=None,
    parent_iteration=None,
    mode="tokens",
    iteration=12,
    limit=1000,
    iterations_per_s=1234.5,
    parallel_iterations=4,
    window=(
        Iteration(10, "done", 3, 3),
        Iteration(11, "running", 2, 3),
        Iteration(12, "running", 1, 3),
        Iteration(13, "waiting", 0, 3),
    ),
    held='waits for "loop/body/mul" -> "loop/Loop"',
    kept_bytes=1_500_000,
    kept_estimate_bytes=None,
)

START = """async source => {
    const url = URL.createObjectURL(new Blob([source], {type: "text/javascript"}));
    const widget = (await import(url)).default;
    const listeners = new Set();
    window.sent = [];
    window.tell = message => listeners.forEach(listener => listener(message));
    const model = {
        on: (event, listener) => event === "msg:custom" && listeners.add(listener),
        off: (_, listener) => listeners.delete(listener),
        get: () => null,
        send: message => window.sent.push(message),
    };
    widget.render({model, el: document.body});
}"""


class Told:
    """A view in an empty page, and what the test tells it."""

    def __init__(self, page: Page, static: Path, snapshot: Snapshot) -> None:
        self.page = page
        self.ids = {node.name: node.id for node in snapshot.graph.added}
        self._seq = snapshot.seq
        page.goto("about:blank")
        page.add_style_tag(content=(static / "graph_view.css").read_text("utf-8"))
        page.evaluate(START, (static / "graph_view.js").read_text("utf-8"))
        self._send(snapshot)
        expect(page.locator(".fs-view[data-ready]")).to_be_visible()

    def _send(self, message: FromKernel) -> None:
        self.page.evaluate("message => window.tell(message)", to_json(message))

    def tell(self, run: RunState | None, state: Any = "running") -> None:
        """Tells what runs, and what the session does."""
        self._seq += 1
        session = SessionState(state, 3, None, None, None)
        self._send(Delta(self._seq, None, session, run))

    def frame(self, **changes: Any) -> FrameState:
        """Returns the loop's frame, with changes."""
        return replace(FRAME, loop=self.ids["loop/Loop"], **changes)

    def run(self, *frames: FrameState, **changes: Any) -> RunState:
        """Returns a run of these frames, or of the loop's."""
        return replace(RunState(frames or (self.frame(),), None, (), 0.0), **changes)

    def sent(self) -> list[tuple[str, Any]]:
        """Returns the commands that the view has sent, with their values."""
        messages = self.page.evaluate("() => window.sent")
        return [(m["name"], m["value"]) for m in messages if m["kind"] == "command"]

    def find(self, name: str) -> Locator:
        """Returns the element with a test id."""
        return self.page.get_by_test_id(f"fs-{name}")


@pytest.fixture
def told(page: Page, root: Path, graph: Any) -> Told:
    """A view of a loop of two variables, that is told of a session that runs."""
    import flowscope as fs

    static = root / "widgets" / "flowscope_widgets" / "static"
    if not (static / "graph_view.js").is_file():
        pytest.skip("needs the front end: make front-end")
    x = fs.placeholder(fs.float32, [], name="x")
    fs.while_loop(lambda i, v: i < 9, lambda i, v: (i + 1, v * x), [0, x], name="loop")
    page.clock.install()
    return Told(
        page, static, replace(LiveChannel(graph).snapshot(time.monotonic()), control="live")
    )


def _cells(told: Told) -> list[str]:
    cells = told.find("frames").get_by_role("group", name="Iterations in flight")
    return [cell.get_attribute("aria-label") or "" for cell in cells.get_by_role("button").all()]


def test_a_frames_figures_and_iterations_are_read(told: Told) -> None:
    expect(told.find("frames")).to_be_hidden()
    told.tell(told.run())
    row = told.find("frames").get_by_role("listitem")
    expect(row).to_have_count(1)
    for text in (
        "loop",
        "tokens",
        "12",
        "1\\s000",
        "1\\s230\\sit/s",
        "1.50\\sMB kept",
        "waits for",
    ):
        expect(row).to_contain_text(re.compile(text))
    expect(row.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "1")
    assert [cell.replace("\u00a0", " ") for cell in _cells(told)] == [
        "iteration 10: done",
        "iteration 11: running, 2 of 3 ops",
        "iteration 12: running, 1 of 3 ops",
        "iteration 13: waiting",
    ]


def test_an_iteration_is_chosen_everywhere(told: Told) -> None:
    inner = told.frame(id="loop:11/in", name="in", parent="loop", parent_iteration=11)
    other = told.frame(id="loop:12/in", name="in", parent="loop", parent_iteration=12)
    told.tell(told.run(told.frame(), inner, other))
    cell = told.page.get_by_role("button", name="iteration 11").first
    cell.click()
    expect(cell).to_have_attribute("aria-pressed", "true")
    rows = told.find("frames").get_by_role("listitem")
    expect(rows.nth(1)).not_to_have_class(re.compile("fs-other"))
    expect(rows.nth(2)).to_have_class(re.compile("fs-other"))
    expect(told.page.get_by_role("treeitem", selected=True)).to_have_accessible_name(
        re.compile("^loop, loop")
    )
    told.tell(told.run(told.frame(iteration=13), inner))
    expect(cell).to_have_attribute("aria-pressed", "true")
    cell.click()
    expect(cell).to_have_attribute("aria-pressed", "false")


def test_the_inspector_tells_of_the_chosen_iteration_until_escape(told: Told) -> None:
    told.tell(told.run())
    cell = told.page.get_by_role("button", name="iteration 11").first
    cell.click()
    now = told.find("inspector-run")
    expect(now).to_contain_text(re.compile(r"11 of loop, running, 2\sof\s3\sops"))
    told.find("stage").press("Escape")
    expect(cell).to_have_attribute("aria-pressed", "false")
    expect(now).not_to_contain_text("11 of loop")
    cell.click()
    expect(cell).to_have_attribute("aria-pressed", "true")
    cell.press("Escape")
    expect(cell).to_have_attribute("aria-pressed", "false")


def test_of_many_frames_some_are_listed_and_keys_lead_through(told: Told) -> None:
    inner = [
        told.frame(id=f"loop:{k}/in", name="in", parent="loop", parent_iteration=k)
        for k in range(19)
    ]
    told.tell(told.run(told.frame(), *inner))
    frames = told.find("frames")
    expect(frames.get_by_role("listitem")).to_have_count(8)
    expect(told.find("more")).to_have_text(re.compile(r"^and 12\smore frames$"))
    outer = frames.get_by_role("button", name="loop", exact=True)
    outer.press("ArrowRight")
    expect(frames.get_by_role("button", name="iteration 10").first).to_be_focused()
    outer.press("ArrowDown")
    first = frames.get_by_role("button", name="in, in iteration 0 of loop")
    expect(first).to_be_focused()
    first.press("ArrowUp")
    expect(outer).to_be_focused()
    told.tell(told.run(told.frame(iterations_per_s=0.0), *inner[:3]))
    expect(told.find("more")).to_be_hidden()
    expect(frames.get_by_role("listitem").first).not_to_contain_text("it/s")


def test_the_view_stays_as_high_as_it_is_whatever_is_opened_and_runs(told: Told) -> None:
    view = told.page.locator(".fs-view")

    def height() -> int:
        return int(view.evaluate("view => view.clientHeight"))

    def open_scopes(*names: str) -> None:
        for name in names:
            item = told.page.get_by_role("treeitem", name=re.compile(f"^{name}, ")).first
            if item.get_attribute("aria-expanded") == "false":
                item.focus()
                item.press("ArrowRight")
            expect(item).to_have_attribute("aria-expanded", "true")

    before = height()
    page_height = told.page.evaluate("document.documentElement.scrollHeight")
    told.tell(told.run())
    expect(told.find("frames")).to_be_visible()
    told.page.clock.run_for(1000)
    open_scopes("loop", "cond", "body")
    for key in "DyCuwHEtTo":
        told.find("stage").press(key)
        told.page.clock.run_for(300)
        assert height() == before, key
    assert told.page.evaluate("document.documentElement.scrollHeight") == page_height
    view.evaluate("view => (view.style.height = '300px')")
    dragged = height()
    body = told.page.get_by_role("treeitem", name=re.compile("^body, ")).first
    body.press("ArrowLeft")
    expect(body).to_have_attribute("aria-expanded", "false")
    open_scopes("body")
    assert height() == dragged, "it stays as the user has dragged it"


def test_an_operation_that_is_stepped_to_comes_into_sight(told: Told) -> None:
    stage = told.find("stage")
    view = told.page.locator(".fs-view")
    view.evaluate("view => (view.style.height = '260px')")
    mul, test = told.ids["loop/body/mul"], told.ids["loop/cond/Less"]
    told.tell(told.run(position=Position(mul, "loop", (1,), "before mul")), "paused")
    told.find("position").click()
    expect(stage).to_have_attribute("data-held", f"o{mul}")
    expect(stage).to_have_attribute("data-in-sight", "true")
    told.tell(told.run(position=Position(test, "loop", (2,), "before Less")), "paused")
    expect(stage).to_have_attribute("data-held", f"o{test}")
    expect(stage).to_have_attribute("data-in-sight", "true")


def test_old_figures_are_told_apart_and_an_ended_loop_leaves(told: Told) -> None:
    frames = told.find("frames")
    told.tell(told.run())
    expect(frames).to_have_attribute("data-state", "running")
    told.page.clock.run_for(2500)
    expect(frames).to_have_attribute("data-state", "stale")
    told.tell(told.run())
    expect(frames).to_have_attribute("data-state", "running")
    told.tell(told.run(), "paused")
    expect(frames).to_have_attribute("data-state", "held")
    told.page.clock.run_for(10_000)
    expect(frames).to_have_attribute("data-state", "held")
    told.tell(replace(told.run(), frames=()), "idle")
    expect(frames).to_have_attribute("data-state", "ended")
    expect(frames).to_be_visible()
    told.page.clock.run_for(2000)
    expect(frames).to_be_hidden()


def test_steps_and_paces_are_sent_by_button_and_by_key(told: Told) -> None:
    op = told.page.get_by_role("button", name="Step one operation")
    expect(op).to_be_disabled()
    told.tell(told.run(), "paused")
    op.click()
    told.page.get_by_role("button", name="Step one iteration").click()
    told.find("stage").press(".")
    told.find("stage").press(">")
    pace = told.page.get_by_label("Slow motion")
    pace.select_option("0.25")
    assert told.sent() == [
        ("step_op", None),
        ("step_iteration", None),
        ("step_op", None),
        ("step_iteration", None),
        ("pace", 0.25),
    ]
    told.find("stage").focus()
    told.tell(told.run(pace_s=2.0), "paused")
    expect(pace).to_have_value("2")


def test_the_held_operation_is_marked_and_found(told: Told) -> None:
    held = told.ids["loop/body/mul"]
    position = Position(held, "loop", (12,), "before loop/body/mul, iteration 12 of loop")
    told.tell(told.run(position=position), "paused")
    expect(told.find("position")).to_have_text(position.what)
    told.find("position").click()
    expect(told.find("stage")).to_have_attribute("data-held", f"o{held}")
    item = told.page.get_by_role("treeitem", name=re.compile("^mul, "))
    expect(item).to_have_attribute("aria-selected", "true")
    expect(told.find("position")).to_have_attribute("aria-pressed", "true")
    test = told.ids["loop/cond/Less"]
    told.tell(told.run(position=replace(position, op=test)), "paused")
    expect(told.find("stage")).to_have_attribute("data-held", f"o{test}")
    followed = told.page.get_by_role("treeitem", name=re.compile("^Less, Less"))
    expect(followed).to_have_attribute("aria-selected", "true")
    told.tell(told.run())
    expect(told.find("position")).to_be_hidden()
    expect(told.find("stage")).to_have_attribute("data-held", "")


def test_values_travel_and_leave_at_full_speed(told: Told) -> None:
    token = Token(told.ids["x"], 0, told.ids["loop/Loop"], "loop", (12,), False)
    told.tell(told.run(tokens=(token, token), pace_s=0.25))
    stage = told.find("stage")
    expect(stage).to_have_attribute("data-tokens", "2")
    told.tell(told.run(pace_s=0.25))
    expect(stage).to_have_attribute("data-tokens", "2")
    told.tell(told.run())
    expect(stage).to_have_attribute("data-tokens", "0")
