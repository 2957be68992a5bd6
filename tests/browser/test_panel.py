"""The docked panel: live beside a busy cell, reloaded, arranged; commands in JupyterLab."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
from jupyter_driver import WORKSHOP, Lab, Notebook
from playwright.sync_api import Locator, Page, expect

#: Panels are arranged, and the layout is kept over reloads.
pytestmark = pytest.mark.own_page

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
BUSY = "while True:\n    sess.run(y, feed)"
CONNECTED = """() => window.jupyterapp?.shell.currentWidget
    && document.querySelector(".fs-instrument") !== null"""

#: Has no kernel connection of the page make a subshell.
WITHOUT_SUBSHELLS = """() => {
    const { kernel } = window.jupyterapp.shell.currentWidget.context.sessionContext.session;
    const kind = Object.getPrototypeOf(kernel);
    const send = kind.sendControlMessage;
    kind.sendControlMessage = function (message, ...more) {
        const isSubshell = message.header.msg_type.includes("subshell");
        return isSubshell ? null : send.call(this, message, ...more);
    };
}"""
RESTART = """async () => {
    for (const widget of window.jupyterapp.shell.widgets("main")) {
        await widget.context?.sessionContext.restartKernel();
    }
}"""


@pytest.fixture
def notebook(lab: Lab, page: Page) -> Notebook:
    """A notebook with a graph that is shown, and a cell that runs until it is stopped."""
    page.set_viewport_size({"width": 1280, "height": 800})
    notebook = lab.open(LOAD, BUILD, BUSY, "%flowscope")
    notebook.run(0)
    notebook.run(1)
    return notebook


@pytest.fixture
def panel(page: Page) -> Locator:
    return page.locator(".fs-instrument")


def test_the_panel_lives_beside_a_busy_cell_and_over_a_reload(
    lab: Lab, notebook: Notebook, panel: Locator, page: Page
) -> None:
    notebook.output(1).get_by_role("button", name="Open in a panel").click()
    state = panel.get_by_test_id("fs-state")
    expect(state).to_have_text("idle")
    notebook.start(2)
    expect(state).to_have_text("running")
    expect(page.get_by_role("button", name=re.compile("^flowscope: running"))).to_be_visible()
    lab.command("docmanager:save")
    # The layout with the panel is saved a moment after it has changed.
    page.wait_for_timeout(1500)
    page.reload()
    page.wait_for_function(CONNECTED)
    start_s = time.monotonic()
    expect(state).to_have_text("running")
    took_s = time.monotonic() - start_s
    assert took_s < 10.0, f"{took_s} s: 2 s on a machine that has nothing else to do"
    panel.get_by_role("button", name="Pause").click()
    expect(state).to_have_text("paused")
    panel.get_by_role("button", name="Stop", exact=True).click()
    expect(state).to_have_text("stopped")


def test_sections_open_close_and_are_remembered(
    notebook: Notebook, panel: Locator, page: Page
) -> None:
    notebook.run(3)  # %flowscope
    inspector = panel.get_by_role("button", name="Inspector", exact=True)
    expect(inspector).to_be_visible()
    panel.get_by_role("button", name="Close Inspector").click()
    expect(inspector).to_be_hidden()
    panel.get_by_role("tab", name="Values").click()
    edge = panel.get_by_role("separator")
    edge.press("ArrowUp")
    size = edge.get_attribute("aria-valuenow") or ""
    page.locator(".lm-DockPanel-tabBar [data-id=flowscope-panel] .lm-TabBar-tabCloseIcon").click()
    expect(panel).to_have_count(0)
    notebook.panel.locator(".jp-Toolbar [data-jp-item-name=flowscope] button").click()
    expect(panel.get_by_test_id("fs-variables")).to_be_visible()
    expect(edge).to_have_attribute("aria-valuenow", size)
    expect(inspector).to_be_hidden()
    panel.get_by_test_id("fs-stage").press("i")
    expect(inspector).to_be_visible()
    page.set_viewport_size({"width": 600, "height": 800})
    expect(panel.get_by_test_id("fs-state")).to_be_visible()


def test_commands_stand_in_the_palette_with_their_keys(
    lab: Lab, notebook: Notebook, page: Page
) -> None:
    output = notebook.output(1)
    stage = output.get_by_test_id("fs-stage")
    expect(output.locator(".fs-view")).to_have_attribute("data-ready", "true")
    page.wait_for_function("() => window.jupyterapp.commands.hasCommand('flowscope:view-fit')")
    keys = page.evaluate(
        "() => Object.fromEntries(window.jupyterapp.commands.keyBindings"
        ".filter(b => b.command.startsWith('flowscope:')).map(b => [b.command, b.keys[0]]))"
    )
    assert keys["flowscope:view-fit"] == "F" and keys["flowscope:view-find"] == "/"
    took_ms = page.evaluate(
        "() => performance.getEntriesByType('measure')"
        ".filter(m => m.name.startsWith('activate flowscope')).map(m => m.duration)"
    )
    assert len(took_ms) == 6 and sum(took_ms) < 60.0, took_ms  # 20 ms on a machine at rest
    stage.focus()
    before = stage.get_attribute("data-zoom")
    lab.command("flowscope:view-zoom-in")
    expect(stage).not_to_have_attribute("data-zoom", before or "")
    lab.command("apputils:activate-command-palette")
    page.keyboard.type("flowscope search")
    expect(page.locator(".lm-CommandPalette-item").filter(has_text="Search").first).to_be_visible()


def test_what_is_sought_stands_out_and_is_walked_through(notebook: Notebook) -> None:
    output = notebook.output(1)
    stage = output.get_by_test_id("fs-stage")
    expect(output.locator(".fs-view")).to_have_attribute("data-ready", "true")
    stage.press("/")
    field = output.get_by_role("searchbox", name="Search")
    expect(field).to_be_focused()
    field.fill("type:/exp|sum/")
    expect(output.get_by_test_id("fs-found")).to_have_text("2 found")
    expect(stage).to_have_attribute("data-lit", re.compile("[12]"))
    field.press("Enter")
    expect(output.get_by_test_id("fs-found")).to_have_text("1 of 2")
    expect(output.get_by_test_id("fs-inspector")).to_contain_text("layer/Exp")
    stage.focus()
    stage.press("n")
    expect(output.get_by_test_id("fs-found")).to_have_text("2 of 2")
    expect(output.get_by_test_id("fs-inspector")).to_contain_text("layer/Sum")
    expect(output.get_by_test_id("fs-speech")).to_contain_text("float32")
    stage.press("]")
    expect(output.get_by_test_id("fs-found")).to_have_text(re.compile("of [45]"))
    stage.press("Escape")
    expect(stage).to_have_attribute("data-lit", "")


def test_what_the_docked_stage_refers_to_is_in_the_page(
    notebook: Notebook, panel: Locator, page: Page
) -> None:
    notebook.output(1).get_by_role("button", name="Open in a panel").click()
    stage = panel.get_by_test_id("fs-stage")
    expect(panel.locator(".fs-view")).to_have_attribute("data-ready", "true")

    def referred(name: str) -> Locator:
        return page.locator(f"#{stage.get_attribute(name)}")

    outline = panel.get_by_role("button", name="Outline", exact=True)
    expect(outline).to_be_hidden()
    stage.press("ArrowDown")
    expect(stage).to_have_attribute("aria-activedescendant", re.compile("."))
    expect(referred("aria-owns")).to_have_role("tree")
    expect(referred("aria-activedescendant")).to_have_role("treeitem")
    stage.press("o")
    expect(outline).to_be_visible()
    expect(referred("aria-owns")).to_be_in_viewport()
    stage.press("o")
    expect(outline).to_be_hidden()
    expect(referred("aria-activedescendant")).to_have_role("treeitem")


def test_views_say_that_the_kernel_was_restarted_and_are_live_again(
    notebook: Notebook, panel: Locator, page: Page
) -> None:
    notebook.output(1).get_by_role("button", name="Open in a panel").click()
    state = panel.get_by_test_id("fs-state")
    notebook.start(2)
    expect(state).to_have_text("running")
    status = page.locator(".fs-status")
    expect(status).to_be_visible()
    page.evaluate(RESTART)
    expect(panel.get_by_test_id("fs-waiting")).to_contain_text("The kernel was restarted")
    expect(status).to_be_hidden()
    output = notebook.output(1)
    expect(output.get_by_test_id("fs-message")).to_contain_text("run the cell for the live view")
    expect(output.get_by_test_id("fs-state")).to_have_text("saved")
    notebook.wait_for_kernel()
    notebook.run(0)
    notebook.run(1)
    expect(state).to_have_text("idle")
    expect(output.get_by_test_id("fs-state")).to_have_text("idle")
    notebook.start(2)
    expect(state).to_have_text("running")
    panel.get_by_role("button", name="Stop", exact=True).click()
    expect(state).to_have_text("stopped")


def test_the_panel_opens_beside_the_first_lesson_where_the_workshop_says_so(
    lab: Lab, panel: Locator, root: Path
) -> None:
    told = json.loads((WORKSHOP / "labconfig" / "default_setting_overrides.json").read_text())
    settings = lab.server.notebooks.parent / "settings" / "flowscope" / "panel.jupyterlab-settings"
    before = settings.read_text()
    settings.write_text(json.dumps(told["flowscope:panel"]))
    try:
        # The kernel is the one that it names, and the notebook stays the one that is worked with.
        lab.open(path=root / "tutorials" / "01_build_run_watch.ipynb")
        expect(panel.get_by_test_id("fs-waiting")).to_contain_text("%load_ext flowscope")
        expect(lab.page.get_by_text("Python 3 (flowscope)").first).to_be_visible()
    finally:
        settings.write_text(before)


def test_the_launcher_opens_a_notebook_with_the_flowscope_kernel(lab: Lab, page: Page) -> None:
    lab.open("1")
    before = {session["path"] for session in lab.server.request("/api/sessions")}
    lab.command("launcher:create")
    card = page.locator(".jp-LauncherCard[data-category='Notebook']")
    card.filter(has_text="Python 3 (flowscope)").click()
    new = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
    expect(new).to_contain_text("Python 3 (flowscope)")
    page.wait_for_function(
        "() => window.jupyterapp.shell.currentWidget?.context?.sessionContext.session?.kernel"
        "?.name === 'flowscope'"
    )
    made = [s for s in lab.server.request("/api/sessions") if s["path"] not in before]
    assert [s["kernel"]["name"] for s in made] == ["flowscope"]


def test_a_panel_that_a_busy_kernel_does_not_answer_says_so(lab: Lab, page: Page) -> None:
    # Without subshells what is asked of a kernel waits for the cell that it runs.
    busy = "while True: pass"
    notebook = lab.open(busy)
    page.evaluate(WITHOUT_SUBSHELLS)
    notebook.start(0)
    notebook.expect_running(0)
    lab.command("flowscope:open")
    waiting = page.get_by_test_id("fs-waiting")
    expect(waiting).to_contain_text("The kernel is running a cell")
    expect(waiting).to_contain_text("Change Kernel")
    page.screenshot(path=Path(__file__).parent / "output" / "panel-busy.png")
    notebook.interrupt()
    expect(waiting).to_contain_text("%load_ext flowscope")
