"""Executes every notebook in tutorials/, cell by cell, in a real ipykernel.

A cell may fail only where its metadata carries the tag `raises-exception`; and there it must.
"""

from __future__ import annotations

import asyncio
import re
import warnings
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

TUTORIALS = Path(__file__).resolve().parents[2] / "tutorials"
NOTEBOOKS = sorted(p for p in TUTORIALS.rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)
CELL_TIMEOUT_S = 120


def execute(notebook: Any, folder: Path) -> None:
    """Executes the notebook in place, in the given working directory.

    Raises:
        AssertionError: A cell failed that may not, or one did not that should.
    """
    client = NotebookClient(
        notebook,
        timeout=CELL_TIMEOUT_S,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    )
    with warnings.catch_warnings():
        # zmq and jupyter_client close their sockets late; that is not what is tested here.
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            asyncio.run(client.async_execute())
        except CellExecutionError as error:
            raise AssertionError(_plain(str(error))) from None
    silent = [
        cell.source
        for cell in notebook.cells
        if "raises-exception" in cell.metadata.get("tags", []) and not _errors(cell)
    ]
    assert silent == [], "cells tagged raises-exception that raised nothing"


def _errors(cell: Any) -> list[Any]:
    return [out for out in cell.get("outputs", []) if out.output_type == "error"]


def _plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_tutorial(path: Path, source_kernel: Path) -> None:
    """The notebook runs from its first cell to its last."""
    folder = source_kernel / path.relative_to(TUTORIALS).parent
    execute(nbformat.read(path, as_version=4), folder)


@pytest.mark.slow
def test_runner_sees_failures(source_kernel: Path) -> None:
    """The runner itself: an error fails, a tagged error passes, a tag without an error fails."""

    def run(*sources: str, tag: bool = False) -> None:
        cells = [nbformat.v4.new_code_cell(source) for source in sources]
        cells[-1].metadata["tags"] = ["raises-exception"] if tag else []
        execute(nbformat.v4.new_notebook(cells=cells), source_kernel)

    run("1 + 1", "1 / 0", tag=True)
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        run("1 / 0", "2")
    with pytest.raises(AssertionError, match="raised nothing"):
        run("1 + 1", tag=True)
