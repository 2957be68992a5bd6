"""The folders of the engine: no room is too full, and each says who enters it by which door."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import flowscope
from flowscope.api.exports import PARTS

ROOT = Path(flowscope.__file__).parent
PACKAGES = sorted(path.parent for path in ROOT.rglob("__init__.py"))
#: Modules that a folder may have.
MOST = 24


def title(package: Path) -> str:
    """The first line of a package's docstring."""
    doc = ast.get_docstring(ast.parse((package / "__init__.py").read_text("utf-8")))
    return (doc or "").partition("\n")[0]


def name(package: Path) -> str:
    return package.relative_to(ROOT.parent).as_posix()


@pytest.mark.parametrize("package", PACKAGES, ids=name)
def test_a_folder_holds_few_modules(package: Path) -> None:
    found = {path.stem for path in package.glob("*.py")}
    if package == ROOT:  # Python and type checkers look for `flowscope.nn` there
        assert found == {"__init__", "__main__", "errors"} | (found & set(PARTS))
    else:
        assert len(found) <= MOST


def test_all_modules_lie_in_packages() -> None:
    assert {path.parent for path in ROOT.rglob("*.py")} == set(PACKAGES)


@pytest.mark.parametrize("package", PACKAGES, ids=name)
def test_the_first_line_says_who_enters_by_which_door(package: Path) -> None:
    line = title(package)
    assert re.search(r"\. .+ enters? (by|here)\b", line), line
    for door in re.findall(r"`([\w.]+)`", line.partition(" enter")[2]):
        if not door.startswith("fs"):
            path = package / door.replace(".", "/")
            assert path.exists() or path.with_suffix(".py").exists(), f"{line}: no {door}"
