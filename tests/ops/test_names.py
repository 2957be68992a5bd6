"""The names that TensorFlow 1 programs use are there: data/tensorflow_names.txt lists them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import flowscope as fs

LIST = Path(__file__).parent / "data" / "tensorflow_names.txt"


def sections() -> dict[str, list[str]]:
    """Returns, per module, the names that must be there: those before "without"."""
    found: dict[str, list[str]] = {}
    for line in LIST.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            words = found.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            words += line.split()
    return {module: _wanted(words) for module, words in found.items()}


def _wanted(words: list[str]) -> list[str]:
    return words[: words.index("without,")] if "without," in words else words


@pytest.mark.parametrize("module", sections())
def test_names_of_tensorflow(module: str) -> None:
    names = sections()[module]
    where: Any = fs if module == "fs" else getattr(fs, module)
    assert len(names) == len(set(names)) > 0
    assert [n for n in names if not hasattr(where, n)] == []


def test_the_list_is_of_all_modules() -> None:
    found = sections()
    assert sum(map(len, found.values())) > 1100
    assert {"fs", "math", "nn", "linalg", "layers", "losses", "metrics", "strings"} <= found.keys()
