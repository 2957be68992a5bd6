"""A running loop in a real JupyterLab: watched, paused, stepped, slowed down and stopped."""

from __future__ import annotations

import re

from jupyter_driver import Lab, Notebook
from playwright.sync_api import Locator, expect

LOAD = "%load_ext flowscope\nimport flowscope as fs"
BUILD = """
x = fs.placeholder(fs.float32, [], name="x")
def body(i, y):
    return i + 1, fs.tanh(y) * 0.5 + 1.0
i, y = fs.while_loop(lambda i, y: i < 2_000_000_000, body, [0, x], name="loop")
sess = fs.Session()
fs.show()
"""
RUN = "sess.run(y, {x: 3.0})"


class Watched:
    """The view of a loop that runs in a busy cell."""

    def __init__(self, lab: Lab) -> None:
        self.notebook: Notebook = lab.open(LOAD, BUILD, RUN)
        self.notebook.run(0)
        self.notebook.run(1)
        self.view = self.notebook.output(1)
        self.stage = self.view.get_by_test_id("fs-stage")
        self.state = self.view.get_by_test_id("fs-state")
        self.frames = self.view.get_by_test_id("fs-frames")
        self.iteration = self.frames.get_by_test_id("fs-iteration")
        self.position = self.view.get_by_test_id("fs-position")

    def item(self, label: str) -> Locator:
        return self.view.get_by_role("treeitem", name=re.compile(rf"^{label}, "))

    def button(self, label: str) -> Locator:
        return self.view.get_by_role("button", name=label)

    def count(self) -> int:
        return int(re.sub(r"\D", "", self.iteration.inner_text().split("/")[0]))

    def expect_growth(self) -> None:
        before = self.iteration.inner_text()
        expect(self.iteration).not_to_have_text(before)
        assert self.count() > 0

    def open(self, *labels: str) -> None:
        for label in labels:
            item = self.item(label)
            if item.get_attribute("aria-expanded") == "false":
                item.focus()
                item.press("ArrowRight")
            expect(item).to_have_attribute("aria-expanded", "true")


def test_a_loop_is_a_frame_with_its_bodies_inside(lab: Lab) -> None:
    watched = Watched(lab)
    watched.open("loop", "cond", "body")
    expect(watched.item("Loop")).to_have_accessible_name("Loop, while true")
    expect(watched.item("y").last).to_have_accessible_name("y, variable")
    inspector = watched.view.get_by_test_id("fs-inspector")
    watched.item("Loop").click()
    expect(inspector).to_contain_text("Variables")
    expect(inspector).to_contain_text("then loop/body/")
    expect(watched.frames).to_be_hidden()


def test_a_loop_is_watched_paused_stepped_and_stopped(lab: Lab) -> None:
    watched = Watched(lab)
    watched.open("loop", "body")
    watched.notebook.start(2)
    expect(watched.state).to_have_text("running")
    expect(watched.frames).to_contain_text("loop")
    watched.expect_growth()
    watched.expect_growth()

    watched.button("Pause").click()
    expect(watched.state).to_have_text("paused")
    expect(watched.position).to_be_visible()
    held = watched.count()
    watched.button("Step one iteration").click()
    expect(watched.iteration).to_have_text(re.compile(_spaced(held + 1)))
    watched.stage.press(">")
    expect(watched.iteration).to_have_text(re.compile(_spaced(held + 2)))

    places = set()
    for _ in range(3):
        place = watched.position.inner_text()
        places.add(place)
        watched.button("Step one operation").click()
        expect(watched.position).not_to_have_text(place)
    assert len(places) == 3
    watched.position.click()
    expect(watched.stage).to_have_attribute("data-held", re.compile(r"^o\d+$"))
    expect(watched.view.get_by_role("treeitem", selected=True)).to_have_count(1)

    watched.view.get_by_label("Slow motion").select_option("0.05")
    watched.button("Continue").click()
    expect(watched.state).to_have_text("running")
    expect(watched.stage).to_have_attribute("data-tokens", re.compile(r"^[1-9]"))
    watched.expect_growth()
    watched.view.get_by_label("Slow motion").select_option("0")
    expect(watched.stage).to_have_attribute("data-tokens", "0")
    watched.expect_growth()

    watched.button("Stop").click()
    watched.notebook.expect_done(2)
    expect(watched.frames).to_be_hidden()
    expect(watched.state).to_have_text("stopped")


def _spaced(number: int) -> str:
    """A count as the panel writes it, digits grouped."""
    return "^" + f"{number:,}".replace(",", r"\s") + r"(\s|$)"
