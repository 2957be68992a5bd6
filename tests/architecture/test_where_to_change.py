"""The page that leads newcomers answers where to change what, with files that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Where the files of the table may lie.
FOLDERS = ("engine/flowscope", "", "widgets", "kernel_ext")
PAGE = (ROOT / "ARCHITECTURE.md").read_text()
TABLE = PAGE.partition("## Where would you change")[2].partition("\n## ")[0]
ROWS = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", TABLE, re.M))

#: What a newcomer asks, and a word of the file that answers.
QUESTIONS = {
    "an op": "ops/",
    "an optimizer": "train/",
    "Send and Recv": "send_recv",
    "stamps in code": "stamps",
    "a breakpoint": "predicates",
    "a panel": "labextension/src/view/",
    "a message": "schema",
    "cell that is run again": "reconcile",
    "a device kind": "devices",
    "a pass": "passes",
    "a loop's gradient": "loop_gradient",
    "a remote variable": "device_variable",
}


@pytest.mark.parametrize(("question", "file"), QUESTIONS.items())
def test_the_table_answers(question: str, file: str) -> None:
    found = [row for row in ROWS.items() if question in " ".join(row)]
    assert found, f"no row of ARCHITECTURE.md says where to change {question}"
    assert any(file in answer for _, answer in found)


def test_the_files_that_answer_are_there() -> None:
    named = {p for answer in ROWS.values() for p in re.findall(r"`([\w./]+/[\w./]*)`", answer)}
    missing = [p for p in named if not any((ROOT / f / p).exists() for f in FOLDERS)]
    assert len(named) > 20
    assert not missing
