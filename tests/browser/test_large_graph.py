"""A graph of 15 000 operations in a real browser: it opens, and grows while a cell builds."""

from __future__ import annotations

import re

import pytest
from jupyter_driver import Lab, Notebook
from playwright.sync_api import Page, expect

LOAD = "%load_ext flowscope\nimport flowscope as fs, time"
BUILD = """
x = fs.placeholder(fs.float32, [4], name="x")
y = x
for i in range(25):
    with fs.name_scope(f"block{i}"), fs.name_scope("unit"):
        for _ in range(200):
            y = fs.tanh(y * x + x)
fs.show();
"""
GROW = """
for k in range(30):
    with fs.name_scope("later"):
        for _ in range(100):
            y = y + x
    time.sleep(0.1)
"""
#: Notes when the number of operations that is shown changes.
NOTE_CHANGES = """element => {
    window.seen = [];
    new MutationObserver(() => window.seen.push([performance.now(), element.textContent]))
        .observe(element, {childList: true, characterData: true, subtree: true});
}"""


@pytest.fixture
def notebook(lab: Lab) -> Notebook:
    """A notebook with a large graph that is shown."""
    notebook = lab.open(LOAD, BUILD, GROW)
    notebook.run(0)
    notebook.run(1, 120_000)
    return notebook


def test_a_large_graph_is_shown_and_grows_while_a_cell_builds(
    notebook: Notebook, page: Page
) -> None:
    output = notebook.output(1)
    nodes = output.get_by_test_id("fs-nodes")
    expect(nodes).to_have_text(re.compile(r"15\s001\sops"))
    nodes.evaluate(NOTE_CHANGES)
    notebook.start(2)
    expect(output.get_by_role("treeitem", name=re.compile("^later")).first).to_be_attached()
    notebook.expect_running(2)
    notebook.expect_done(2)
    expect(nodes).to_have_text(re.compile(r"18\s001\sops"))
    times = [at for at, _ in page.evaluate("() => window.seen")]
    assert len(times) >= 8, "boxes appear again and again while the cell builds"
