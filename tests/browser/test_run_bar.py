"""What the bar above the graph says while a session runs, is stopped, or is another one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from jupyter_driver import Lab, Notebook
from playwright.sync_api import Locator, Page, expect

LOAD = "%load_ext flowscope\nimport flowscope as fs, numpy as np"
BUILD = """
x = fs.placeholder(fs.float32, [None, 64], name="x")
with fs.name_scope("layer"):
    y = fs.reduce_sum(fs.exp(x) * 2.0)
sess = fs.Session()
feed = {x: np.random.rand(32, 64)}
sess.run(y, feed)
fs.show();
"""
TRAIN = """
for step in fs.progress(range(100_000_000), "training for as long as it takes"):
    _ = sess.run(y, feed)
"""
OTHER = """
with fs.Graph().as_default():
    other = fs.Session()
    other.run(fs.exp(fs.constant(1.0)))
    fs.show(other);
"""
NEST = """
def layer(h, depth):
    with fs.name_scope(f"level{depth}"):
        for i in range(8):
            with fs.name_scope(f"part{i}"):
                for _ in range(6):
                    h = h + 1.0
        return h if depth == 3 else layer(h, depth + 1)
with fs.Graph().as_default() as g:
    z = layer(fs.placeholder(fs.float32, [], name="x"), 0)
from flowscope_widgets import GraphView
view = GraphView(g)
view.selection = "level0/level1/part3/add_2"
view
"""

#: Notes each text that the state shows.
NOTE_STATES = """element => {
    window.states = [element.textContent];
    new MutationObserver(() => window.states.push(element.textContent))
        .observe(element, {childList: true, characterData: true, subtree: true});
}"""
#: Null where all that is shown of the bar stands in it, on one line; else what does not fit.
UNFIT = """bar => {
    const box = bar.getBoundingClientRect();
    const shown = [...bar.children].map(c => c.getBoundingClientRect()).filter(r => r.width > 0);
    const out = shown.filter(r => r.right > box.right + 1 || r.bottom > box.bottom + 1)
        .map(r => r.toJSON());
    const isUnfit = box.height > 36 || bar.scrollWidth > bar.clientWidth || out.length > 0;
    return isUnfit ? [bar.scrollWidth, bar.innerText, box.toJSON(), out] : null;
}"""


def figure(output: Locator, name: str) -> Locator:
    return output.get_by_test_id(f"fs-{name}")


@pytest.fixture
def notebook(lab: Lab, page: Page) -> Notebook:
    """A notebook with a graph that is shown, in a window as small as many are."""
    page.set_viewport_size({"width": 1280, "height": 800})
    notebook = lab.open(LOAD, BUILD, TRAIN, OTHER, NEST)
    notebook.run(0)
    notebook.run(1)
    return notebook


def test_stop_says_stopped_at_once_and_stays(notebook: Notebook, page: Page) -> None:
    output = notebook.output(1)
    state = figure(output, "state")
    notebook.start(2)
    expect(state).to_have_text("running")
    expect(figure(output, "rate")).to_contain_text(re.compile(r"\d"))
    state.evaluate(NOTE_STATES)
    output.get_by_role("button", name="Stop", exact=True).click()
    notebook.expect_done(2)
    expect(state).to_have_text("stopped")
    expect(figure(output, "eta")).to_have_text("")
    page.wait_for_function("() => window.states.at(-1) === 'stopped'")
    states: list[Any] = page.evaluate("() => window.states")
    assert "running" not in states[1:], states
    notebook.run(1)
    expect(figure(notebook.output(1), "state")).not_to_have_text("stopped")


@pytest.mark.parametrize("width", [1280, 1400])
def test_the_bar_stays_one_line_while_a_session_runs(
    notebook: Notebook, page: Page, width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    output = notebook.output(1)
    notebook.start(2)
    expect(figure(output, "eta")).to_contain_text(re.compile(r"\d"))
    bar = output.locator(".fs-bar")
    for _ in range(3):
        before = figure(output, "progress").inner_text()
        expect(figure(output, "progress")).not_to_have_text(before)
        bar.scroll_into_view_if_needed()
        assert bar.evaluate(UNFIT) is None
    output.get_by_role("button", name="Stop", exact=True).click()
    notebook.expect_done(2)
    assert bar.evaluate(UNFIT) is None


def test_progress_of_another_graph_is_not_shown(notebook: Notebook) -> None:
    notebook.run(3)
    notebook.start(2)
    expect(figure(notebook.output(1), "progress")).to_be_visible()
    expect(figure(notebook.output(1), "progress")).to_contain_text("training")
    expect(figure(notebook.output(3), "progress")).to_be_hidden()
    notebook.output(1).get_by_role("button", name="Stop", exact=True).click()
    notebook.expect_done(2)


def test_a_view_opens_what_is_selected(notebook: Notebook) -> None:
    notebook.run(4)
    selected = notebook.output(4).get_by_role("treeitem", selected=True)
    expect(selected).to_have_accessible_name(re.compile(r"^add_2\b"))


def test_no_question_about_news_greets_a_workshop(lab: Lab, notebook: Notebook, root: Path) -> None:
    text = (root / "Makefile").read_text("utf-8")
    assert "JUPYTER_CONFIG_PATH=$(CURDIR)/tutorials/.jupyter" in text
    expect(lab.page.get_by_text(re.compile("official Jupyter news", re.I))).to_have_count(0)
