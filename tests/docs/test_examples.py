"""The examples in docstrings of public names run, and give what they show."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowscope as fs
from flowscope.ops import reference

#: Public names that have an example, at least.
ENOUGH = 100


def documented() -> Iterator[tuple[str, Any]]:
    """Yields the public functions and classes, and the methods of the classes."""
    seen = set()
    for name, value in reference.public_names():
        if callable(value) and id(value) not in seen:
            seen.add(id(value))
            yield name, value
            members = vars(value).items() if isinstance(value, type) else ()
            for member, method in members:
                if not member.startswith("_") and callable(getattr(method, "__func__", method)):
                    yield f"{name}.{member}", getattr(value, member)


@pytest.mark.slow
def test_examples_in_docstrings_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    parser, said = doctest.DocTestParser(), []
    runner = doctest.DocTestRunner(verbose=False)
    examples = 0
    for name, value in documented():
        doc = inspect.getdoc(value) or ""
        if ">>>" in doc:
            fs.reset_default_graph()
            names = {"fs": fs, "np": np}
            runner.run(parser.get_doctest(doc, names, name, None, 0), out=said.append)
            examples += 1
    fs.reset_default_graph()
    assert not said, "".join(said)
    assert examples >= ENOUGH
