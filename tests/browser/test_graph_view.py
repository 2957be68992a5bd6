"""The graph view in a real JupyterLab: seen, live, controlled, reloaded, saved."""

from __future__ import annotations

import re
import time

import nbformat
import pytest
from jupyter_driver import Lab, Notebook
from playwright.sync_api import Locator, Page, expect

LOAD = "%load_ext flowscope\nimport flowscope as fs, numpy as np"
BUILD = """
x = fs.placeholder(fs.float32, [None, 64], name="x")
y = fs.placeholder(fs.int32, [None], name="y")
def dense(h, n_in, n_out):
    w = fs.Variable(fs.random_normal([n_in, n_out], stddev=0.1), name="w")
    b = fs.Variable(fs.zeros([n_out]), name="b")
    return fs.matmul(h, w) + b
with fs.name_scope("hidden"):
    hidden = fs.nn.relu(dense(x, 64, 32))
with fs.name_scope("output"):
    logits = dense(hidden, 32, 10)
with fs.name_scope("loss"):
    loss = fs.reduce_mean(fs.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
with fs.name_scope("train"):
    train = fs.train.AdamOptimizer(0.01).minimize(loss)
sess = fs.Session()
sess.run(fs.global_variables_initializer())
feed = {x: np.random.rand(32, 64), y: np.zeros(32, np.int32)}
fs.show()
"""
#: Far more steps than a test waits for: the loop ends because somebody stops it.
TRAIN = """
for step in fs.progress(range(100_000_000), "training"):
    _ = sess.run(train, feed)
"""
#: Whether the page has a connection to the notebook's kernel, which may be busy.
CONNECTED = """name => {
    const context = window.jupyterapp?.shell.currentWidget?.context;
    const kernel = context?.sessionContext.session?.kernel;
    return context?.path === name && kernel?.connectionStatus === "connected";
}"""
AFTER = "print('still usable', float(sess.run(loss, feed)) < 10)"


class View:
    """The graph view in an output."""

    def __init__(self, output: Locator) -> None:
        self.output = output

    def figure(self, name: str) -> Locator:
        """Returns the element that shows a figure."""
        return self.output.get_by_test_id(f"fs-{name}")

    def press(self, name: str) -> None:
        """Presses a button of the view."""
        self.output.get_by_role("button", name=name, exact=True).click()

    def scope(self, name: str) -> Locator:
        """Returns a scope or operation in the tree that screen readers see."""
        return self.output.get_by_role("treeitem", name=re.compile(rf"^{re.escape(name)}\b"))

    def steps(self) -> int:
        """Returns the number of steps shown."""
        return int(re.sub(r"\D", "", self.figure("steps").inner_text()))


@pytest.fixture
def notebook(lab: Lab) -> Notebook:
    """A notebook with a graph that is shown."""
    notebook = lab.open(LOAD, BUILD, TRAIN, AFTER)
    notebook.run(0)
    notebook.run(1)
    return notebook


@pytest.fixture
def view(notebook: Notebook) -> View:
    """The view that the notebook's second cell shows."""
    view = View(notebook.output(1))
    expect(view.figure("nodes")).to_contain_text(re.compile(r"\d"))
    # Scopes that were opened by themselves are closed again where they do not fit.
    expect(view.output.locator(".fs-view")).to_have_attribute("data-ready", "true")
    return view


def test_the_graph_is_seen_and_scopes_open_and_close(view: View) -> None:
    for scope in ("hidden", "output", "train"):
        expect(view.scope(scope)).to_have_attribute("aria-expanded", "false")
    # Where there is room for the two operations of the loss they are shown at first.
    expect(view.scope("loss").first).to_have_attribute("aria-expanded", re.compile("true|false"))
    expect(view.scope("MatMul")).to_have_count(0)
    hidden = view.scope("hidden").first  # an operation in it is called so, too
    hidden.focus()
    hidden.press("Enter")
    expect(hidden).to_have_attribute("aria-expanded", "true")
    product = view.scope("MatMul").first
    expect(product).to_be_attached()
    product.focus()
    product.press("Enter")
    inspector = view.figure("inspector")
    expect(inspector).to_contain_text("MatMul")
    expect(inspector).to_contain_text("float32")
    expect(inspector).to_contain_text("return fs.matmul(h, w) + b")
    expect(inspector).to_contain_text(re.compile(r"cell \d+, line \d+", re.I))


def test_the_canvas_is_painted(view: View) -> None:
    canvas = view.output.locator("canvas").first
    expect(canvas).to_be_visible()
    view.output.page.wait_for_function(
        """canvas => {
            if (canvas.width === 0 || canvas.height === 0) return false;
            const c = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
            const seen = new Set();
            for (let i = 0; i < c.length; i += 4) seen.add((c[i] << 16) | (c[i + 1] << 8) | c[i +
            2]); return seen.size > 10;
        }""",
        arg=canvas.element_handle(),
    )


def test_a_busy_cell_is_watched_paused_continued_and_stopped(
    notebook: Notebook, view: View
) -> None:
    notebook.start(2)
    notebook.expect_running(2)
    expect(view.figure("state")).to_contain_text(re.compile("running", re.I))
    expect(view.figure("rate")).to_contain_text(re.compile(r"\d.*steps/s"))
    expect(view.figure("progress")).to_contain_text("training")
    expect(view.figure("eta")).to_contain_text(re.compile(r"\d"))
    first = view.steps()
    expect(view.figure("steps")).not_to_have_text(view.figure("steps").inner_text())
    assert view.steps() > first
    notebook.expect_running(2)

    view.press("Pause")
    expect(view.figure("state")).to_contain_text(re.compile("paused", re.I))
    held = view.figure("steps").inner_text()
    expect(view.figure("rate")).not_to_contain_text(re.compile(r"\d"))
    assert view.figure("steps").inner_text() == held
    notebook.expect_running(2)

    view.press("Continue")
    expect(view.figure("state")).to_contain_text(re.compile("running", re.I))
    expect(view.figure("steps")).not_to_have_text(held)

    view.press("Stop")
    notebook.expect_done(2)
    expect(notebook.output(2).last).to_contain_text("CancelledError")
    expect(view.figure("state")).to_contain_text(re.compile("stopped", re.I))
    expect(notebook.run(3)).to_have_text("still usable True")


def test_jupyters_stop_button_ends_the_step_and_the_session_goes_on(
    notebook: Notebook, view: View
) -> None:
    notebook.start(2)
    expect(view.figure("state")).to_contain_text(re.compile("running", re.I))
    notebook.interrupt()
    notebook.expect_done(2)
    expect(notebook.output(2).last).to_contain_text("KeyboardInterrupt")
    expect(notebook.run(3)).to_have_text("still usable True")


def test_a_graph_that_grows_is_seen_to_grow(notebook: Notebook, view: View) -> None:
    before = view.figure("nodes").inner_text()
    notebook.edit(3, "with fs.name_scope('later'):\n    z = fs.exp(loss)")
    notebook.run(3)
    expect(view.scope("later")).to_be_attached()
    expect(view.figure("nodes")).not_to_have_text(before)


@pytest.mark.own_page
def test_after_a_reload_the_view_lives_on(
    lab: Lab, notebook: Notebook, view: View, page: Page
) -> None:
    lab.command("docmanager:save")
    page.reload()
    notebook.wait_for_kernel()
    expect(view.figure("nodes")).to_contain_text(re.compile(r"\d"))
    notebook.start(2)
    expect(view.figure("state")).to_contain_text(re.compile("running", re.I))
    view.press("Stop")
    notebook.expect_done(2)


@pytest.mark.own_page
def test_without_a_kernel_the_saved_notebook_shows_the_picture(
    lab: Lab, notebook: Notebook, view: View, page: Page
) -> None:
    lab.command("docmanager:save")
    saved = nbformat.read(notebook.path, as_version=4)
    (output,) = [o for o in saved.cells[1].outputs if "image/svg+xml" in o.get("data", {})]
    assert "hidden" in output["data"]["text/plain"]
    lab.server.shut_down_kernels()
    page.reload()
    shown = notebook.output(1)
    expect(shown.get_by_text(re.compile("saved picture", re.I))).to_be_visible()
    expect(shown).not_to_contain_text("Error displaying widget")


def test_a_kernel_of_another_version_is_told_apart(lab: Lab) -> None:
    notebook = lab.open(LOAD, "from flowscope.live.watchers import bus\nbus.PROTOCOL = 1", BUILD)
    notebook.run(0)
    notebook.run(1)
    view = View(notebook.run(2).last)
    message = re.compile("messages are of version 1, .*restart the kernel, reload the page")
    expect(view.output.get_by_text(message)).to_be_visible()


@pytest.mark.own_page
def test_a_page_that_is_reloaded_while_a_cell_runs_is_live_again(
    lab: Lab, notebook: Notebook, view: View, page: Page
) -> None:
    lab.command("docmanager:save")
    notebook.start(2)
    expect(view.figure("state")).to_contain_text(re.compile("running", re.I))
    page.reload()
    page.wait_for_function(CONNECTED, arg=notebook.path.name)
    start_s = time.monotonic()
    expect(view.figure("state")).to_contain_text(re.compile("running", re.I))
    took_s = time.monotonic() - start_s
    before = view.figure("steps").inner_text()
    expect(view.figure("steps")).not_to_have_text(before)
    assert took_s < 10.0, f"{took_s} s: 2 s on a machine that has nothing else to do"
    view.press("Pause")
    expect(view.figure("state")).to_contain_text(re.compile("paused", re.I))
    view.press("Continue")
    expect(view.figure("state")).to_contain_text(re.compile("running", re.I))
    view.press("Stop")
    expect(view.figure("state")).to_contain_text(re.compile("stopped", re.I))
    notebook.wait_for_kernel()
    # The widget has taken over from here on.
    notebook.start(2)
    expect(view.figure("state")).to_contain_text(re.compile("running", re.I))
    view.press("Stop")
    expect(view.figure("state")).to_contain_text(re.compile("stopped", re.I))
