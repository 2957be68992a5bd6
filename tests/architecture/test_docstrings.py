"""Docstrings say the thing: "The seconds of a step", not "Returns what a step takes"."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

FIRST_WORDS = re.compile(r'"""(Returns what|Who)\b|: Returns what\b')


def found(root: Path) -> Counter[str]:
    """The docstrings that begin so, by folder: those of the engine, then the other packages."""
    counts: Counter[str] = Counter()
    for top in ("engine/flowscope", "kernel_ext", "widgets", "tests"):
        for path in (root / top).rglob("*.py"):
            if path != Path(__file__):
                folder = path.relative_to(root / top).parts[0]
                counts[folder] += len(FIRST_WORDS.findall(path.read_text("utf-8")))
    return +counts


def test_docstrings_say_the_thing_and_not_what_is_returned(root: Path) -> None:
    assert found(root) == {}, "say the thing: its shapes, dtypes, units, errors"


def test_a_docstring_that_begins_so_is_counted() -> None:
    text = 'def f():\n    """Returns what is there."""\n    """Returns whatever."""\n'
    assert len(FIRST_WORDS.findall(text)) == 1
    text = '#: Returns what is there.\n    """Who is there."""\n    """Whole."""\n'
    assert len(FIRST_WORDS.findall(text)) == 2
