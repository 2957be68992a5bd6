"""The tool that runs tests many times beside busy processes finds one that fails now and then."""

from __future__ import annotations

from pathlib import Path

import pytest
from stress import stress

RARELY = """
import sys
import pytest
runs = []

@pytest.mark.parametrize("which", ["a", "b"])
def test_one(which):
    runs.append(which)
    assert sys.getswitchinterval() == pytest.approx(0.002)
    assert runs.count("b") != 3 or which == "a"
"""


@pytest.mark.slow
def test_a_rare_failure_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "test_rarely.py"
    path.write_text(RARELY)
    alone = ["-p", "no:cacheprovider", "-p", "no:xdist", "-c", "/dev/null"]
    found = stress([str(path)], 5, 1, 0.002, alone)
    capsys.readouterr()
    assert found.runs == 10
    assert [(name.partition("::")[2], n) for name, n in found.failures.items()] == [
        ("test_one[b]", 1)
    ]
