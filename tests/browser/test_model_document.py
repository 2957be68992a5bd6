"""Files of models in JupyterLab's file browser: a double click shows the view as a document."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from jupyter_driver import JupyterServer, Lab
from onnx_models import transformer
from playwright.sync_api import expect


@pytest.fixture
def opened(lab: Lab, jupyter_server: JupyterServer, root: Path) -> Lab:
    """JupyterLab with models in its folder."""
    if not (root / "widgets/flowscope_widgets/labextension/package.json").is_file():
        pytest.skip("needs the front end: make front-end")
    onnx.save(transformer(3, 16), jupyter_server.notebooks / "words.onnx")
    (jupyter_server.notebooks / "cut.onnx").write_bytes(b"no model")
    with np.load(root / "tests" / "tensorflow" / "data" / "convolutions.npz") as file:
        (jupyter_server.notebooks / "frozen.pb").write_bytes(file["graph"].tobytes())
    lab.open("1")
    lab.command("filebrowser:activate")
    lab.command("filebrowser:refresh")
    return lab


@pytest.mark.own_page
def test_a_double_click_shows_a_model_and_a_button_makes_a_notebook(opened: Lab) -> None:
    page = opened.page
    for name in ("words.onnx", "frozen.pb"):
        page.locator(".jp-DirListing-item", has_text=name).dblclick()
        view = page.locator(".fs-document:visible .fs-view[data-ready]")
        expect(view).to_be_visible()
        expect(view.get_by_test_id("fs-stage")).to_have_attribute("data-heat", "weights")
    said = page.locator(".fs-document:visible").get_by_text(re.compile("nothing runs"))
    expect(said.first).to_be_visible()
    page.get_by_role("tab", name="words.onnx").click()
    page.locator(".jp-Document:visible").get_by_text("New notebook with this model").click()
    cell = page.locator(".jp-Notebook:visible .jp-CodeCell").first
    expect(cell).to_contain_text('fs.onnx.load("words.onnx")')
    made = page.get_by_role("tab", name=re.compile(r"Untitled\d*\.ipynb"))
    expect(made.last).to_be_visible()


@pytest.mark.own_page
def test_a_file_that_is_no_model_says_why(opened: Lab) -> None:
    page = opened.page
    page.locator(".jp-DirListing-item", has_text="cut.onnx").dblclick()
    note = page.locator(".fs-document:visible").get_by_test_id("fs-document-note")
    expect(note).to_contain_text("expected a model in ONNX's form")
