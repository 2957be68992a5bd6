"""The wheel, built once, and an environment that has nothing of flowscope but the wheel."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Installed:
    """A Python environment in which the wheel is installed."""

    python: Path
    prefix: Path

    def run(self, code: str) -> str:
        """Runs a program where PATH is empty (no node, dot, browser); returns what it prints."""
        run = subprocess.run(
            [self.python, "-W", "error", "-c", code],
            cwd=self.prefix,
            env={"PATH": "", "HOME": str(self.prefix)},
            capture_output=True,
            text=True,
        )
        assert run.returncode == 0, run.stderr
        return run.stdout


@pytest.fixture(scope="session")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this source tree, built with the tools that are installed here."""
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    run = subprocess.run([*build, str(root)], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel in a fresh environment, which finds the other packages in the running one."""
    prefix = tmp_path_factory.mktemp("installed") / "venv"
    venv.create(prefix, with_pip=False, symlinks=os.name != "nt")
    python = prefix / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    options = ["--no-deps", "--no-index", "--disable-pip-version-check"]
    run = subprocess.run([*pip, *options, str(wheel)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    # The dependencies are in the running environment; a plain path in a .pth file does not run the
    # .pth files there, so its editable flowscope stays out.
    (site,) = prefix.glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return Installed(python, prefix)
