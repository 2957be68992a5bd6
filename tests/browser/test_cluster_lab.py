"""A cluster watched in JupyterLab: a loop over two workers runs on while the page is reloaded."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from jupyter_driver import Lab, Notebook
from playwright.sync_api import Locator, Page, expect

pytest.importorskip("distributed")

CONNECT = """%load_ext flowscope
from dask.distributed import LocalCluster
import flowscope as fs
machines = LocalCluster(
    n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50)
cluster = fs.cluster.connect(machines)
len(cluster.tasks)"""
#: A loop whose body is on two workers, and a run that ends when it is stopped.
BUILD = """def body(i, v, w):
    with fs.device("/job:worker/task:0"):
        v = fs.tanh(v, name="squashed")
    with fs.device("/job:worker/task:1"):
        return i + 1, v, fs.multiply(v, 1.5, name="stretched")

last = fs.placeholder(fs.int32, [], name="last")
begin = [fs.constant(0), fs.constant(0.1), fs.constant(0.1)]
_, _, w = fs.while_loop(lambda i, v, w: i < last, body, begin, name="loop")
session = fs.Session(cluster)
session.run(w, {last: 5})
fs.show();"""
RUN = "session.run(w, {last: 10**9})"
CLOSE = "session.close(); cluster.close(); machines.close(); 'closed'"
CONNECTED = """name => window.jupyterapp?.shell.currentWidget?.context?.path === name
    && document.querySelector(".fs-view[data-ready]") !== null"""


@pytest.fixture
def notebook(lab: Lab, page: Page) -> Notebook:
    """A notebook that is connected to a cluster of two workers and shows a loop over both."""
    page.set_viewport_size({"width": 1280, "height": 800})
    made = lab.open(CONNECT, BUILD, RUN, CLOSE)
    expect(made.run(0, timeout_ms=90_000)).to_have_text("2")
    made.run(1, timeout_ms=90_000)
    return made


def steps(row: Locator) -> Locator:
    return row.locator('td[data-head="steps"]')


@pytest.mark.own_page
def test_the_panel_and_the_step_come_back_when_the_page_is_reloaded(
    lab: Lab, notebook: Notebook, page: Page, tmp_path: Path
) -> None:
    view = notebook.output(1)
    view.get_by_test_id("fs-stage").press("C")
    panel = view.get_by_test_id("fs-cluster")
    rows = panel.locator("tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.nth(1)).to_contain_text("worker 0")
    expect(rows.nth(2)).to_contain_text("worker 1")
    expect(rows.nth(1).locator(".fs-transport")).to_have_text("sockets, no TLS")
    state = view.get_by_test_id("fs-state")
    lab.command("docmanager:save")
    notebook.start(2)
    expect(state).to_have_text(re.compile("running"))
    expect(steps(rows.nth(1))).to_contain_text("1 running")
    expect(steps(rows.nth(2))).to_contain_text("1 running")

    page.reload()
    page.wait_for_function(CONNECTED, arg=notebook.path.name)
    expect(state).to_have_text(re.compile("running"))
    expect(panel).to_be_visible()
    expect(rows).to_have_count(3)
    expect(steps(rows.nth(1))).to_contain_text("1 running")
    expect(steps(rows.nth(2))).to_contain_text("1 running")
    iteration = view.get_by_test_id("fs-iteration").first
    before = iteration.inner_text()
    expect(iteration).not_to_have_text(before)
    expect(view.get_by_test_id("fs-cluster-note")).to_have_text(re.compile(r"^2\s+workers$"))

    page.screenshot(path=tmp_path / "cluster-reloaded.png")
    view.get_by_role("button", name="Stop", exact=True).click()
    expect(state).to_have_text(re.compile("stopped"))
    # The widget has taken over from the view that asked the busy kernel directly.
    notebook.wait_for_kernel()
    expect(rows).to_have_count(3)
    expect(steps(rows.nth(1))).not_to_contain_text("running")
    expect(notebook.run(3)).to_have_text("'closed'")
