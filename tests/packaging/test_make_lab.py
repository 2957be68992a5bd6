"""`make lab` opens JupyterLab on the tutorials."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

TIMEOUT_S = 120
TOKEN = "make-lab"


@pytest.mark.slow
def test_make_lab(root: Path, tmp_path: Path) -> None:
    """The server comes up with the tutorials, and with the extension that pip has installed."""
    if Path(sys.prefix) != root / ".venv":
        pytest.skip("needs the environment that make sets up: run it by make test")
    if not (root / "tutorials").is_dir():
        pytest.skip("needs tutorials/")
    arguments = f"--no-browser --ServerApp.port=0 --IdentityProvider.token={TOKEN}"
    folders = {
        name: str(tmp_path / name)
        for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    }
    process = subprocess.Popen(
        ["make", "lab", f"LAB_ARGS={arguments}"],
        cwd=root,
        env={**os.environ, **folders},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    timer = threading.Timer(TIMEOUT_S, process.kill)
    timer.start()
    log: list[str] = []
    url = ""
    try:
        assert process.stdout is not None
        for line in process.stdout:
            log.append(line)
            if found := re.search(r"(http://[\w.]+:\d+)/", line):
                url = found[1]
                break
        assert url, "".join(log)
        _wait(url)
        names = {item["name"] for item in _get(f"{url}/api/contents")["content"]}
        notebooks = {path.name for path in (root / "tutorials").glob("*.ipynb")}
        assert notebooks <= names
        extensions = {item["name"] for item in _get(f"{url}/lab/api/extensions")}
        assert "flowscope" in extensions
    finally:
        timer.cancel()
        if url:
            _get(f"{url}/api/shutdown", "POST")
        else:
            process.kill()
        process.communicate(timeout=30)


def _wait(url: str) -> None:
    """Asks until the server answers: it prints its address a moment before it listens."""
    for _ in range(200):
        try:
            _get(f"{url}/api/status")
            return
        except urllib.error.URLError:
            time.sleep(0.1)
    raise AssertionError(f"{url} does not answer")


def _get(url: str, method: str = "GET") -> list[dict[str, str]] | dict[str, list[dict[str, str]]]:
    request = urllib.request.Request(
        url, headers={"Authorization": f"token {TOKEN}"}, method=method
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        body = response.read()
    return json.loads(body) if body else {}
