"""Where the notebooks run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def source_kernel(
    tmp_path: Path, root: Path, source_env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A copy of tutorials/ to run in; ipykernels started now import the packages of this tree."""
    folder = tmp_path / "tutorials"
    hidden = shutil.ignore_patterns(".*")
    if (root / "tutorials").is_dir():
        shutil.copytree(root / "tutorials", folder, ignore=hidden)
    folder.mkdir(exist_ok=True)
    monkeypatch.setenv("PYTHONPATH", source_env["PYTHONPATH"])
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    return folder
