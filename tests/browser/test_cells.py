"""A cell that is run again in a real JupyterLab: the view follows and marks what has changed."""

from __future__ import annotations

import re

from jupyter_driver import Lab, Notebook
from playwright.sync_api import Locator, expect

LOAD = "%load_ext flowscope\nimport flowscope as fs"
MODEL = """
x = fs.placeholder(fs.float32, [2], name="x")
y = fs.exp(x, name="y")
old = fs.constant(1.0, name="old")
"""
LATER = "z = fs.add(y, old, name='z')"
EDITED = """
x = fs.placeholder(fs.float32, [2], name="x")
y = fs.tanh(x, name="y")
new = fs.constant(1.0, name="new")
"""


def again(notebook: Notebook, index: int, number: int) -> Locator:
    """Runs a cell once more, which gets this number; returns its outputs."""
    notebook.start(index)
    expect(notebook.prompt(index)).to_have_text(f"[{number}]:")
    return notebook.output(index)


def test_a_view_marks_what_a_re_run_has_changed(lab: Lab) -> None:
    notebook = lab.open(LOAD, MODEL, LATER, "fs.show()")
    for index in range(4):
        notebook.run(index)
    view = notebook.output(3)

    def item(label: str) -> Locator:
        return view.get_by_role("treeitem", name=label, exact=True)

    # What a later cell has added is marked as what a re-run changes.
    for label in ("x, Placeholder", "y, Exp", "old, Const", "z, Add, changed"):
        expect(item(label)).to_be_attached()
    notebook.edit(1, EDITED)
    expect(again(notebook, 1, 5)).to_have_text(
        "cell 5 again: 1 operation kept, 1 changed, 1 new, 1 removed; stale: cell 3"
    )
    for label in ("x, Placeholder", "y, Tanh, changed", "new, Const, changed", "z, Add, stale"):
        expect(item(label)).to_be_attached()
    expect(item("old, Const")).to_have_count(0)
    item("z, Add, stale").focus()
    item("z, Add, stale").press("Enter")
    expect(view.get_by_test_id("fs-inspector")).to_contain_text("re-run cell 3")
    notebook.edit(2, "z = fs.add(y, new, name='z')")
    expect(again(notebook, 2, 6)).to_contain_text(re.compile(r"cell 6 again: .* 1 changed"))
    for label in ("y, Tanh", "new, Const", "z, Add, changed"):
        expect(item(label)).to_be_attached()
