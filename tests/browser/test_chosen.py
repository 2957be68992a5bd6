"""What is chosen in a view, from Python and back and over reloads; who watches. In JupyterLab."""

from __future__ import annotations

import re
import time
from typing import Any

import nbformat
import pytest
from jupyter_driver import Lab, Notebook
from playwright.sync_api import Locator, Page, expect

LOAD = "%load_ext flowscope\nimport flowscope as fs, threading"
BUILD = """
x = fs.placeholder(fs.float32, [], name="x")
def body(i, y):
    return i + 1, fs.tanh(y) * 0.5 + 1.0
i, y = fs.while_loop(lambda i, y: i < 2_000_000_000, body, [0, x], name="loop")
sess = fs.Session()
view = fs.show()
"""
#: A cell that is busy until what is chosen in the view says that it may end.
WATCH = """
sess.pause()
step = threading.Thread(target=lambda: sess.run(y, {x: 3.0}), daemon=True)
step.start()
sess.step_iteration()
changed = threading.Condition()
def note(change):
    with changed:
        changed.notify_all()
view.observe(note, ["selection", "iteration"])
def wait(holds):
    with changed:
        assert changed.wait_for(holds, 40)
view.selection = y.op
wait(lambda: view.selection == "x")
print("selected", view.selection)
wait(lambda: view.iteration is not None)
print("chosen", view.iteration.frame, view.iteration.number)
view.iteration = None
wait(lambda: view.selection is None)
view.iteration = "loop", sess.frames()[0].iteration
wait(lambda: view.selection == "x")
"""


class View:
    """The view in an output."""

    def __init__(self, output: Locator) -> None:
        self.output = output
        self.stage = output.get_by_test_id("fs-stage")
        self.frames = output.get_by_test_id("fs-frames")

    def item(self, label: str) -> Locator:
        return self.output.get_by_role("treeitem", name=re.compile(rf"^{re.escape(label)}\b"))

    def select(self, label: str) -> None:
        """Selects an operation by keyboard, in the outline."""
        item = self.item(label).first
        item.focus()
        item.press("Enter")

    @property
    def cell(self) -> Locator:
        """The first iteration in the panel."""
        return self.frames.get_by_role("button", name=re.compile("^iteration")).first


@pytest.fixture
def notebook(lab: Lab) -> Notebook:
    notebook = lab.open(LOAD, BUILD, WATCH, "print(view.selection, view.open_views)", "")
    notebook.run(0)
    notebook.run(1)
    return notebook


@pytest.fixture
def view(notebook: Notebook) -> View:
    view = View(notebook.output(1))
    expect(view.item("loop")).to_be_attached()
    return view


def test_a_choice_goes_both_ways_while_a_cell_is_busy(notebook: Notebook, view: View) -> None:
    notebook.start(2)
    expect(view.item("loop").first).to_have_attribute("aria-selected", "true")
    expect(view.item("x").first).to_have_attribute("aria-selected", "false")
    view.select("x")
    expect(notebook.output(2)).to_contain_text("selected x")
    notebook.expect_running(2)
    view.cell.click()
    expect(notebook.output(2)).to_contain_text(re.compile(r"chosen loop \d+"))
    expect(view.cell).to_have_attribute("aria-pressed", "false")
    view.stage.press("Escape")
    expect(view.output.get_by_role("treeitem", selected=True)).to_have_count(0)
    expect(view.cell).to_have_attribute("aria-pressed", "true")
    notebook.expect_running(2)
    view.select("x")
    notebook.expect_done(2)


@pytest.mark.own_page
def test_what_is_open_and_selected_outlives_a_reload(
    lab: Lab, notebook: Notebook, view: View, page: Page
) -> None:
    loop = view.item("loop").first
    for key, is_open in (("ArrowRight", "true"), ("ArrowLeft", "false")):  # the last is a choice
        loop.focus()
        loop.press(key)
        expect(loop).to_have_attribute("aria-expanded", is_open)
    view.select("x")
    expect(notebook.run(3)).to_have_text("x 1")
    lab.command("docmanager:save")
    page.reload()
    notebook.wait_for_kernel()
    expect(view.item("x").first).to_have_attribute("aria-selected", "true")
    expect(view.item("loop").first).to_have_attribute("aria-expanded", "false")
    expect(notebook.run(3)).to_have_text("x 1")


@pytest.mark.own_page
def test_a_page_that_goes_without_a_word_is_told_nothing_more_after_a_while(
    lab: Lab, notebook: Notebook, view: View, page: Page
) -> None:
    lab.command("docmanager:save")
    notebook.edit(4, "view._feed.audience.silence_s = 3\nprint('open', view.open_views)")
    expect(notebook.run(4)).to_have_text("open 1")
    # As if it had crashed: the view does not get to hear that the page is left.
    page.evaluate("addEventListener('pagehide', e => e.stopImmediatePropagation(), true)")
    page.reload()
    notebook.wait_for_kernel()
    expect(view.item("loop").first).to_be_attached()
    notebook.edit(4, "print('open', view.open_views)")
    end_s = time.monotonic() + 40
    while "open 1" not in notebook.run(4).inner_text():
        assert time.monotonic() < end_s


def saved_output(lab: Lab, notebook: Notebook) -> Any:
    """Saves the notebook; returns the output that has the picture."""
    lab.command("docmanager:save")
    saved = nbformat.read(notebook.path, as_version=4)
    (output,) = [o for o in saved.cells[1].outputs if "image/svg+xml" in o.get("data", {})]
    return output


def test_the_saved_picture_follows_the_graph(lab: Lab, notebook: Notebook, view: View) -> None:
    view.output.locator(".fs-view").evaluate("view => { view.dataset.mark = 'same'; }")
    notebook.edit(4, "later = fs.exp(x, name='much_later')")
    notebook.run(4)
    expect(view.item("much_later")).to_be_attached()
    expect(view.output.locator(".fs-view")).to_have_attribute("data-mark", "same")
    end_s = time.monotonic() + 40
    while "much_later" not in (output := saved_output(lab, notebook))["data"]["text/plain"]:
        assert time.monotonic() < end_s, "the saved picture is still the old one"
    assert "much_later" in output["data"]["image/svg+xml"]
