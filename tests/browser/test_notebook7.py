"""Notebook 7 shows the views too, with their buttons, and the panel at its side."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from jupyter_driver import KERNEL_IS_READY, TOKEN, JupyterServer
from playwright.sync_api import Page, expect

if importlib.util.find_spec("notebook") is None:
    pytest.skip("needs Notebook 7: pip install notebook", allow_module_level=True)

CELLS = (
    "%load_ext flowscope\nimport flowscope as fs",
    """
x = fs.placeholder(fs.float32, [], name="x")
y = fs.square(x, name="y")
sess = fs.Session()
sess.run(y, {x: 3.0})
fs.show();
""",
    "while True:\n    sess.run(y, {x: 2.0})",
)


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, root: Path, source_env: dict[str, str]
) -> Iterator[JupyterServer]:
    """A server of Notebook 7 with flowscope's extension."""
    extension = root / "widgets" / "flowscope_widgets" / "labextension"
    server = JupyterServer(tmp_path_factory.mktemp("nb7"), source_env, extension, "notebook")
    server.start()
    yield server
    server.shut_down_kernels()
    server.stop()


def test_a_view_is_live_in_notebook_7_and_opens_the_panel(
    page: Page, server: JupyterServer
) -> None:
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    node = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    nbformat.write(node, server.notebooks / "seven.ipynb")
    page.goto(f"{server.url}/notebooks/seven.ipynb?token={TOKEN}")
    prompts = page.locator(".jp-Cell .jp-InputPrompt")
    expect(prompts).to_have_count(3)
    page.wait_for_function(KERNEL_IS_READY, arg="seven.ipynb")
    page.locator(".cm-content").first.click()
    for number in (1, 2):
        page.keyboard.press("Shift+Enter")
        expect(prompts.nth(number - 1)).to_have_text(f"[{number}]:")
    view = page.locator(".jp-OutputArea .fs-view")
    expect(view).to_have_attribute("data-ready", "true")
    page.keyboard.press("Shift+Enter")
    state = view.get_by_test_id("fs-state")
    expect(state).to_have_text("running")
    view.get_by_role("button", name="Open in a panel").click()
    panel = page.locator(".fs-instrument")
    expect(panel.get_by_test_id("fs-state")).to_have_text("running")
    panel.get_by_role("button", name="Stop", exact=True).click()
    expect(state).to_have_text("stopped")
