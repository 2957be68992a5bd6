"""When hatch_build.py builds the front end, and when it leaves it."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


@pytest.fixture(scope="module")
def build(root: Path) -> ModuleType:
    """The module hatch_build.py."""
    spec = importlib.util.spec_from_file_location("hatch_build", root / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def front_end(build: ModuleType, tmp_path: Path) -> Any:
    """A front end that is built and current."""
    source = tmp_path / "labextension"
    (source / "src").mkdir(parents=True)
    (source / "package.json").write_text("{}")
    (source / "src" / "index.ts").write_text("export {};")
    made = build.FrontEnd(tmp_path)
    names = ("loader.js", "graph_view.js", "picture.js", "page.js")
    scripts = [made.static / name for name in names]
    for path in (*scripts, made.labextension / "package.json"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    (made.static / build.STAMP).write_text(json.dumps({"sources": made.digest()}))
    return made


def test_current_outputs_need_nothing(front_end: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With current outputs (an sdist's, for one) neither node nor a package is asked for."""
    monkeypatch.setenv("PATH", "")
    assert front_end.is_current()
    assert front_end.needs() == []
    front_end.build()


@pytest.mark.parametrize("name", ["src/index.ts", "src/new/part.ts", "package.json"])
def test_changed_sources_are_built_again(front_end: Any, name: str) -> None:
    """A source that is changed or added makes the outputs old; npm's packages do not."""
    other = front_end.source / "node_modules" / "x.ts"
    other.parent.mkdir()
    other.write_text("1")
    assert front_end.is_current()
    path = front_end.source / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("// changed")
    assert not front_end.is_current()
    assert front_end.is_built()


def test_missing_output_is_built_again(front_end: Any) -> None:
    """The stamp alone is not enough."""
    (front_end.labextension / "package.json").unlink()
    assert not front_end.is_current()


def test_node_is_asked_for_where_there_is_none(
    build: ModuleType, front_end: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without node on PATH and without the package, the package becomes a build dependency."""
    (front_end.source / "src" / "index.ts").write_text("// changed")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    assert build.NODE_PACKAGE in front_end.needs()
    with pytest.raises(build.FrontEndUnavailable, match="no node"):
        front_end.npm("--version")


def test_old_node_is_not_used(
    build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node of an old version on PATH counts as none."""
    for name in ("node", "npm"):
        script = tmp_path / name
        script.write_text("#!/bin/sh\necho v12.22.9\n")
        script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    assert build.find_node() is None
