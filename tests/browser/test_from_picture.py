"""Running from the picture in JupyterLab: fetches are chosen, feeds are typed, values are seen."""

from __future__ import annotations

import re

import pytest
from jupyter_driver import Lab, Notebook
from playwright.sync_api import Locator, Page, expect

LOAD = "%load_ext flowscope\nimport flowscope as fs, numpy as np, time"
BUILD = """
x = fs.placeholder(fs.float32, [None, 4], name="x")
labels = fs.placeholder(fs.int64, [None], name="labels")
with fs.variable_scope("model"):
    hidden = fs.layers.dense(x, 8, fs.nn.relu, name="hidden")
    logits = fs.layers.dense(hidden, 3, name="logits")
loss = fs.losses.sparse_softmax_cross_entropy(labels, logits)
train = fs.train.GradientDescentOptimizer(0.5).minimize(loss, name="train")
total = fs.reduce_sum(x, name="total")
sess = fs.Session()
sess.run(fs.global_variables_initializer())
batch = np.arange(8, dtype=np.float32).reshape(2, 4)
wrong = np.zeros((2, 3))
view = fs.show()
"""
#: A cell that is busy until something is sought in the view.
BUSY = """
end = time.time() + 40
while time.time() < end and not view.find:
    time.sleep(0.05)
"""
FAILING = """
view.find = ""
view.fetches = fs.check_numerics(fs.log(-total), "bad", name="check")
"""


class Running:
    """The view in an output, with what runs from it."""

    def __init__(self, output: Locator) -> None:
        self.output = output
        self.stage = output.get_by_test_id("fs-stage")
        self.panel = output.get_by_test_id("fs-run")
        self.status = output.get_by_test_id("fs-run-status")
        self.button = self.panel.get_by_role("button", name="Run", exact=True)
        self.results = output.get_by_test_id("fs-results").get_by_role("listitem")

    def select(self, label: str) -> None:
        """Selects an operation by keyboard, in the outline."""
        item = self.output.get_by_role("treeitem", name=re.compile(rf"^{re.escape(label)}\b"))
        item.first.focus()
        item.first.press("Enter")

    def feed(self, name: str, text: str) -> None:
        self.output.get_by_role("combobox", name=f"Value of {name}").fill(text)

    def need(self, name: str) -> Locator:
        needs = self.output.get_by_test_id("fs-needs").get_by_role("listitem")
        return needs.filter(has=self.output.page.get_by_role("button", name=name, exact=True))


@pytest.fixture
def notebook(lab: Lab, page: Page) -> Notebook:
    page.set_viewport_size({"width": 1280, "height": 800})
    notebook = lab.open(LOAD, BUILD, BUSY, "")
    notebook.run(0)
    notebook.run(1)
    return notebook


@pytest.fixture
def running(notebook: Notebook) -> Running:
    running = Running(notebook.output(1))
    expect(running.stage).to_be_visible()
    expect(running.output.locator(".fs-view[data-ready]")).to_be_visible()
    return running


def test_choose_fetch_run_see_compare(notebook: Notebook, running: Running) -> None:
    expect(running.panel).to_be_hidden()
    running.select("total")
    running.output.get_by_test_id("fs-inspector").get_by_role("button", name="Fetch").click()
    expect(running.panel).to_be_visible()
    expect(running.button).to_be_disabled()
    expect(running.status).to_have_text("Give a value for x")
    expect(running.need("x")).to_contain_text("float32[?,4]")
    expect(running.stage).to_have_attribute("data-lit", "2")
    running.feed("x", "wrong")
    expect(running.need("x")).to_contain_text("expected shape")
    running.feed("x", "batch.sum()")
    expect(running.need("x")).to_contain_text("in a cell write value = batch.sum()")
    running.feed("x", "batch")
    expect(running.need("x")).to_contain_text("float32[2,4]")
    running.button.click()
    expect(running.results).to_contain_text("28")
    expect(running.status).to_contain_text("Run 1")
    running.feed("x", "[[1, 2, 3, 4.5]]")
    running.output.get_by_role("combobox", name="Value of x").press("Enter")
    expect(running.results).to_contain_text("10.5")
    expect(running.results).to_contain_text("differs by up to 17.5")
    running.stage.press("x")
    expect(running.results).to_contain_text("equal bits")
    running.output.get_by_test_id("fs-baseline").select_option("1")
    expect(running.results).to_contain_text("differs by up to 17.5")
    notebook.edit(3, "print(view.fetches, view.runs[-1].values, view.baseline, sess.steps)")
    expect(notebook.run(3)).to_have_text("['total:0'] {'total:0': np.float32(10.5)} 1 4")


def test_python_chooses_and_the_picture_shows_it(notebook: Notebook, running: Running) -> None:
    source = "view.fetches = [logits, loss]; view.feeds = {x: batch, labels: [0, 2]}; view.run()"
    notebook.edit(3, source + "; None")
    notebook.run(3)
    expect(running.results).to_have_count(2)
    expect(running.need("labels")).to_contain_text("from Python")
    running.output.get_by_role("button", name="Do not fetch model/logits").first.click()
    expect(running.output.get_by_test_id("fs-fetches").get_by_role("button")).to_have_count(2)


def test_a_run_waits_for_the_running_cell_and_an_error_marks_its_operation(
    notebook: Notebook, running: Running
) -> None:
    running.select("total")
    running.stage.press("v")
    running.feed("x", "batch")
    expect(running.button).to_be_enabled()
    notebook.start(2)
    running.button.click()
    expect(running.status).to_have_text("waits for the running cell to end")
    notebook.expect_running(2)
    running.stage.press("/")
    running.output.get_by_role("searchbox", name="Search").fill("total")
    notebook.expect_done(2)
    expect(running.results).to_contain_text("28")
    notebook.edit(3, FAILING)
    notebook.run(3)
    running.button.click()
    expect(running.status).to_contain_text("Run 2 failed: InvalidArgumentError")
    expect(running.stage).not_to_have_attribute("data-failed", "")


def test_the_docked_panel_runs_what_is_chosen_and_both_views_show_it(
    notebook: Notebook, running: Running, page: Page
) -> None:
    running.output.get_by_role("button", name="Open in a panel").click()
    docked = Running(page.locator(".fs-instrument"))
    expect(docked.output.locator(".fs-view[data-ready]")).to_be_visible()
    docked.stage.press("o")
    docked.select("total")
    docked.stage.press("v")
    expect(docked.panel).to_be_visible()
    docked.feed("x", "batch")
    expect(docked.need("x")).to_contain_text("float32[2,4]")
    expect(docked.button).to_be_enabled()
    docked.stage.press("x")
    expect(docked.results).to_contain_text("28")
    expect(docked.status).to_contain_text("Run 1")
    expect(running.results).to_contain_text("28")
    expect(running.status).to_contain_text("Run 1")
