"""The names that TensorFlow 1 programs use are there: data/tensorflow_names.txt lists them."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

import flowscope as fs
from flowscope.api.absent import advice_by_name

DATA = Path(__file__).parent / "data"


def lines_of(name: str) -> dict[str, list[str]]:
    """Returns the lines of a file of `data`, per module."""
    found: dict[str, list[str]] = {}
    for line in (DATA / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            lines = found.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            lines.append(line)
    return found


def sections() -> dict[str, list[str]]:
    """Returns, per module, the names that must be there."""
    found = lines_of("tensorflow_names.txt")
    return {module: " ".join(lines).split() for module, lines in found.items()}


def module_of(name: str) -> Any:
    return fs if name == "fs" else getattr(fs, name)


@pytest.mark.parametrize("module", sections())
def test_names_of_tensorflow(module: str) -> None:
    names = sections()[module]
    where = module_of(module)
    prefix = "" if module == "fs" else f"{module}."
    assert [n for n in names if f"{prefix}{n}" in advice_by_name()] == []
    assert len(names) == len(set(names)) > 0
    assert [n for n in names if not hasattr(where, n)] == []


def test_the_list_is_of_all_modules() -> None:
    found = sections()
    assert sum(map(len, found.values())) > 1100
    assert {"fs", "math", "nn", "linalg", "layers", "losses", "metrics", "strings"} <= found.keys()


ARGUMENTS = lines_of("tensorflow_arguments.txt")


@pytest.mark.parametrize("module", ARGUMENTS)
def test_arguments_of_tensorflow(module: str) -> None:
    """A function takes the arguments that it takes in TensorFlow, by name and in that order."""
    wrong = []
    for line in ARGUMENTS[module]:
        name, _, arguments = line.rstrip(")").partition("(")
        wanted = [a for a in arguments.split(", ") if a]
        signature = inspect.signature(getattr(module_of(module), name))
        ours = {n: p.kind is not p.KEYWORD_ONLY for n, p in signature.parameters.items()}
        ours.pop("_sentinel", None)
        plain = [n for n in wanted if ours.get(n)]
        if not ours.keys() >= set(wanted) or list(ours)[: len(plain)] != plain:
            wrong.append(f"{line}: got {signature}")
    assert wrong == []


def test_arguments_by_their_later_names(graph: Any) -> None:
    assert fs.convert_to_tensor([1, 2], dtype_hint=fs.float64).dtype is fs.float64
    assert fs.convert_to_tensor([1.5], dtype_hint=fs.int32).dtype is fs.float32
    assert fs.convert_to_tensor([1], fs.int64, dtype_hint=fs.float64).dtype is fs.int64
    sizes = fs.shape(fs.placeholder(fs.float32, [None, 3]))
    assert fs.get_static_value(sizes) is None
    assert fs.get_static_value(sizes, partial=True).tolist() == [None, 3]


def test_a_number_that_is_divided_stands_in_the_scope_of_its_division():
    with fs.Graph().as_default() as graph:
        x = fs.placeholder(fs.float32, [2], name="x")
        _ = x / 2.0, x / 2.0
        with fs.name_scope("s"):
            _ = 3.0 / x, fs.div(x, 2.0)
        fs.truediv(x, 2.0, name="half")
        names = [op.name for op in graph.get_operations()][1:]
    assert names == [
        *("truediv/y", "truediv", "truediv_1/y", "truediv_1"),
        *("s/truediv/x", "s/truediv", "s/div/y", "s/div", "half/y", "half"),
    ]
