"""What is shared: pictures as files, and a saved notebook that is explored without its kernel."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from jupyter_driver import Lab, Notebook
from playwright.sync_api import Page, expect

LOAD = "%load_ext flowscope\nimport flowscope as fs"
BUILD = """
x = fs.placeholder(fs.float32, [304, None, 64], name="x")
labels = fs.placeholder(fs.int64, [None], name="labels")
cell = fs.nn.rnn_cell.LSTMCell(64)
outputs, _ = fs.nn.static_rnn(cell, fs.unstack(x), dtype=fs.float32)
logits = fs.layers.dense(outputs[-1], 10, name="logits")
loss = fs.losses.sparse_softmax_cross_entropy(labels, logits)
fs.train.AdamOptimizer().minimize(loss)
fs.show();
"""
SMALL = "x = fs.placeholder(fs.float32, [2], name='x')\ny = fs.exp(x, name='y')\nfs.show();"
PNG = b"\x89PNG\r\n\x1a\n"


def test_a_saved_notebook_of_15_000_operations_is_explored_without_its_kernel(
    lab: Lab, page: Page, tmp_path: Path
) -> None:
    page.set_viewport_size({"width": 1280, "height": 800})
    notebook = lab.open(LOAD, BUILD)
    notebook.run(0)
    notebook.run(1, 120_000)
    nodes = notebook.output(1).get_by_test_id("fs-nodes")
    expect(nodes).to_have_text(re.compile(r"15\s\d\d\d\sops"))
    lab.command("docmanager:save")
    assert notebook.path.stat().st_size <= 400_000
    copy = tmp_path / "saved.ipynb"
    saved = nbformat.read(notebook.path, as_version=4)
    nbformat.write(saved, copy)
    other = lab.open(path=copy)
    output = other.output(1)
    expect(output.locator(".fs-view[data-ready]")).to_be_visible()
    expect(output.get_by_test_id("fs-state")).to_have_text("saved")
    item = output.get_by_role("treeitem", name=re.compile("^logits|^rnn")).first
    item.focus()
    item.press("Enter")
    inspector = output.get_by_test_id("fs-inspector")
    expect(inspector).to_contain_text(re.compile("ops|MatMul"))
    fetch = inspector.get_by_role("button", name="Fetch")
    expect(fetch).to_be_disabled()
    expect(fetch).to_have_attribute("title", re.compile("saved without its kernel"))
    output.get_by_test_id("fs-stage").press("/")
    output.get_by_role("searchbox", name="Search").fill("type:MatMul")
    expect(output.get_by_test_id("fs-found")).to_contain_text("found")


@pytest.fixture
def small(lab: Lab) -> Notebook:
    notebook = lab.open(LOAD, SMALL)
    notebook.run(0)
    notebook.run(1)
    return notebook


def test_a_picture_is_saved_as_svg_png_and_dot(small: Notebook, page: Page, tmp_path: Path) -> None:
    output = small.output(1)
    expect(output.locator(".fs-view[data-ready]")).to_be_visible()
    found = {}
    for name in ("SVG", "PNG", "DOT (Graphviz)"):
        output.get_by_role("button", name="More", exact=True).click()
        output.get_by_role("button", name="Save the picture").click()
        with page.expect_download() as download:
            output.get_by_role("button", name=f"Save as {name}").click()
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        found[path.suffix] = path.read_bytes()
        expect(output.get_by_test_id("fs-save")).to_be_hidden()
    assert found[".svg"].startswith(b"<svg") and b">y</text>" in found[".svg"]
    assert found[".png"].startswith(PNG) and len(found[".png"]) > 1000
    assert b"digraph" in found[".gv"] and b'label="y' in found[".gv"]
