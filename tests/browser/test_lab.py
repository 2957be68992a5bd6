"""JupyterLab comes up with flowscope in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from jupyter_driver import Lab
from playwright.sync_api import expect


def test_notebook_runs(lab: Lab) -> None:
    """A plain notebook computes; an error in a cell is seen by `run`."""
    notebook = lab.open("1 + 1", "1 / 0", "import flowscope; flowscope.__name__")
    expect(notebook.run(0)).to_have_text("2")
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        notebook.run(1)
    expect(notebook.run(2)).to_have_text("'flowscope'")


def test_busy_cell_is_interrupted(lab: Lab) -> None:
    """The stop button ends a running cell, and the notebook goes on."""
    notebook = lab.open("print('started')\nwhile True: pass", "6 * 7")
    notebook.start(0)
    expect(notebook.output(0)).to_contain_text("started")
    notebook.expect_running(0)
    notebook.interrupt()
    notebook.expect_done(0)
    expect(notebook.output(0).last).to_contain_text("KeyboardInterrupt")
    expect(notebook.run(1)).to_have_text("42")


def test_extension_is_enabled(lab: Lab, root: Path) -> None:
    """JupyterLab lists the extension `flowscope` and has not disabled it."""
    if not (root / "widgets/flowscope_widgets/labextension/package.json").is_file():
        pytest.skip("needs the front end: make front-end")
    lab.open("1")
    config = lab.page_config()
    assert "flowscope" in [extension["name"] for extension in config["federated_extensions"]]
    disabled = [name for name in config.get("disabledExtensions", []) if "flowscope" in name]
    assert disabled == []
    plugins = lab.page.evaluate("() => window.jupyterapp.listPlugins()")
    ours = [name for name in plugins if re.match(r"flowscope\b", name)]
    assert ours != []
    assert all(lab.page.evaluate("p => window.jupyterapp.isPluginActivated(p)", p) for p in ours)
