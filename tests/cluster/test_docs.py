"""The programs of docs/cluster.md run as scripts."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tls_files import CERT, KEY

PAGE = Path(__file__).parents[2] / "docs" / "cluster.md"


def programs() -> list[str]:
    """Returns the blocks of the page that are whole programs."""
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return [block for block in blocks if "__main__" in block]


def test_both_programs_are_found() -> None:
    assert ["security" in p for p in programs()] == [False, True]


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1])
def test_programs_run_as_scripts(number: int, tmp_path: Path, source_env: dict[str, str]) -> None:
    for path in (CERT, KEY):
        (tmp_path / Path(path).name).write_text(Path(path).read_text())
    script = tmp_path / "program.py"
    script.write_text(programs()[number])
    ran = subprocess.run(
        [sys.executable, script.name],
        cwd=tmp_path,
        env=source_env,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    assert re.fullmatch((r"\[\[11\.\]\]", r"tls://127\.0\.0\.1:\d+")[number], ran.stdout.strip())
