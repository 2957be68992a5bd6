"""What is said where a program asks for a name that is not there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import flowscope as fs
from flowscope.api import absent, absent_names
from flowscope.api.absent_names import ABSENT

NAMES = absent.advice_by_name()


def owner(name: str) -> tuple[Any, str]:
    """Returns the module in which a name of the table would stand, and its last part."""
    *parts, last = name.split(".")
    module: Any = fs
    for part in parts:
        module = getattr(module, part)
    return module, last


@pytest.mark.parametrize("name", NAMES)
def test_names_of_tensorflow_that_are_not_here(name: str) -> None:
    module, last = owner(name)
    with pytest.raises(AttributeError) as e:
        getattr(module, last)
    assert str(e.value).endswith(f"has no attribute {last!r}: {NAMES[name]}")


def test_each_name_stands_in_the_table_once() -> None:
    names = [n for _, _, row in ABSENT for n in row.split()]
    assert len(names) == len(set(names)) > 200


def test_what_the_advice_names_is_there() -> None:
    """Advice such as "use fs.cast" names what exists."""
    for _, advice, _ in ABSENT:
        for word in (
            advice.replace(":", " ").replace("(", " ").replace(",", " ").replace(";", " ").split()
        ):
            if word.startswith("fs."):
                module, last = owner(word[3:].rstrip(".)"))
                assert hasattr(module, last), advice


@pytest.mark.parametrize(
    ("module", "name", "meant"),
    [
        (fs, "reduce_meen", "reduce_mean"),
        (fs, "Placeholder", "placeholder"),
        (fs, "placehodler", "placeholder"),
        (fs.nn, "soft_max", "softmax"),
        (fs.train, "AdamOptimiser", "AdamOptimizer"),
        (fs, "softmax_cross_entropy_with_logits", "fs.nn.softmax_cross_entropy_with_logits"),
        (fs, "AdamOptimizer", "fs.train.AdamOptimizer"),
        (fs.nn, "placeholder", "fs.placeholder"),
        (fs.layers, "max_pool", "fs.nn.max_pool"),
        (fs.raw_ops, "Matmul", "MatMul"),
        (fs.raw_ops, "SparseSplit", "fs.sparse_split"),
    ],
)
def test_a_name_that_is_nearly_right(module: Any, name: str, meant: str) -> None:
    with pytest.raises(AttributeError, match=f"no attribute '{name}': did you mean '{meant}'"):
        getattr(module, name)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (fs.nn, "quux"), (fs, "reduce_norm"), (fs, "local_step_initializer"), (fs, "add_m"),
        (fs.train, "NadamOptimizer"), (fs, "local_variance"), (fs.errors, "DeadlineError"),
    ],
)  # fmt: skip
def test_what_merely_resembles_another_name_gets_no_advice(module: Any, name: str) -> None:
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'$"):
        getattr(module, name)


def test_no_advice_is_a_name_of_another_concept() -> None:
    """No name of TensorFlow is answered with what is only spelled alike."""
    for name in NAMES:
        module, last = owner(name)
        for where in (module, fs, fs.nn, fs.train):
            if hasattr(where, last):
                continue
            with pytest.raises(AttributeError) as e:
                getattr(where, last)
            assert "did you mean" not in str(e.value), name
    with pytest.raises(AttributeError, match="write the records into files"):
        fs.LMDBReader  # noqa: B018


def test_private_names_get_no_advice() -> None:
    assert not hasattr(fs, "_repr_html_")
    with pytest.raises(AttributeError, match="has no attribute '_app'$"):
        fs._app  # noqa: B018


def test_the_page_has_the_table(root: Path) -> None:
    page = (root / absent_names.PAGE).read_text(encoding="utf-8")
    assert page == absent_names.written(page), "run `python -m flowscope.api.absent_names`"
