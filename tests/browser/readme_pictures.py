"""The README's pictures, made anew in a real browser: `make pictures`.

What they show are cells of the tutorials: the first one's graph while its training cell runs, and
the third one's loop of 100 layers, in slow motion.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
from jupyter_driver import TIMEOUT_MS, JupyterServer, Lab, Notebook, launch
from playwright.sync_api import Locator, Page, expect, sync_playwright

ROOT = Path(__file__).parents[2]
SIZE = {"width": 1260, "height": 860}
#: Pixels of the file for each of the page: small letters stay sharp.
SCALE = 2
PACE_S = "0.25"
IN_TOKENS = """
fs.reset_default_graph()
session = fs.Session(config=fs.ConfigProto(mode="tokens"))
"""


def cells(name: str) -> list[str]:
    """Returns the sources of a tutorial's cells of code."""
    node = nbformat.read(ROOT / "tutorials" / f"{name}.ipynb", as_version=4)
    return [cell.source for cell in node.cells if cell.cell_type == "code"]


def with_text(sources: list[str], text: str) -> int:
    """Returns the place of the first cell that has a text."""
    return next(k for k, source in enumerate(sources) if text in source)


def opened(lab: Lab, sources: list[str]) -> Notebook:
    """Opens a notebook with these cells, and nothing beside it."""
    notebook = lab.open(*sources)
    lab.command("application:toggle-left-area")
    return notebook


def view_of(notebook: Notebook, index: int) -> Locator:
    """Returns the view in the output of a cell, once it shows its graph."""
    view = notebook.output(index).locator(".fs-view")
    expect(view).to_have_attribute("data-ready", "true")
    return view


def training(lab: Lab) -> Locator:
    """Runs the first tutorial up to its training cell; returns the view meanwhile."""
    sources = cells("01_build_run_watch")
    train = with_text(sources, "fs.progress(")
    notebook = opened(lab, sources[: train + 1])
    for index in range(train):
        notebook.run(index)
    view = view_of(notebook, with_text(sources, "fs.show()"))
    notebook.start(train)
    select(view, "hidden")
    view.scroll_into_view_if_needed()
    # The rate and the time left are known, and some of the way is done.
    expect(view.get_by_test_id("fs-eta")).to_contain_text("ETA")
    lab.page.wait_for_timeout(4000)
    return view


def loop(lab: Lab) -> Locator:
    """Runs the loop of 100 layers of the third tutorial in slow motion; returns the view."""
    sources = cells("03_loops_and_gradients")
    build = IN_TOKENS + sources[with_text(sources, 'name="deep"')]
    run = "session.run(fs.global_variables_initializer())\n"
    run += "session.run(slope, {x: np.ones([8, 64], np.float32)});"
    notebook = opened(lab, [sources[0], build, "fs.show()", run])
    for index in range(3):
        notebook.run(index)
    view = view_of(notebook, 2)
    view.get_by_role("combobox", name="Slow motion").select_option(PACE_S)
    stage = view.get_by_test_id("fs-stage")
    for name in ("deep", "deep/body"):
        select(view, name)
        stage.press("Enter")
    select(view, "deep")
    stage.press("f")
    notebook.start(3)
    view.scroll_into_view_if_needed()
    expect(view.get_by_test_id("fs-position")).to_contain_text("deep/body/Tanh")
    expect(stage).not_to_have_attribute("data-tokens", "0")
    return view


def select(view: Locator, name: str) -> None:
    """Selects a box by its name in the outline."""
    item = view.locator(f".fs-outline [data-box$='{name}']").first
    item.evaluate("item => item.click()")
    expect(item).to_have_attribute("aria-selected", "true")
    view.get_by_test_id("fs-stage").focus()


PICTURES = {"view": training, "loops": loop}


@contextmanager
def a_lab() -> Iterator[Lab]:
    """JupyterLab in a browser's page."""
    extension = ROOT / "widgets" / "flowscope_widgets" / "labextension"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(source_roots())}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        server = JupyterServer(Path(folder), env, extension)
        server.start()
        browser = launch(driver)
        if browser is None:
            raise SystemExit("no browser: apt install chromium")
        try:
            page: Page = browser.new_page(viewport=SIZE, device_scale_factor=SCALE)
            page.set_default_timeout(TIMEOUT_MS)
            expect.set_options(timeout=TIMEOUT_MS)
            yield Lab(page, server)
        finally:
            browser.close()
            server.stop()


def source_roots() -> list[str]:
    """Returns the folders that hold the packages."""
    return [str(ROOT / name) for name in ("engine", "kernel_ext", "widgets")]


def main(names: list[str]) -> None:
    """Makes the pictures of these names; all if none."""
    for name in names or PICTURES:
        with a_lab() as lab:
            PICTURES[name](lab).screenshot(path=ROOT / "docs" / f"{name}.png")
            lab.server.shut_down_kernels()


if __name__ == "__main__":
    main(sys.argv[1:])
