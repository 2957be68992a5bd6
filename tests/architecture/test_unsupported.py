"""No argument is accepted and passed over: it is used, or one table says why it need not be."""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import flowscope as fs
from flowscope.graph.unsupported import KEPT, REFUSED, as_markdown, kept

#: Methods that subclasses replace: their arguments are theirs to use.
HOOKS = {"Op.attempt", "Op.expand", "Op.facts", "Op.forwards", "Op.failed", "layers.Layer.call"}
#: Classes whose methods are called with all that any subclass may want to know.
INTERFACES = (fs.train.SessionRunHook, fs.train.CheckpointSaverListener)

#: Parameters that a decorator reads in place of the function's body.
READ_BY = {
    "op_function": "name",
    "metric": "metrics_collections updates_collections name",
    "weighted_loss": "weights scope loss_collection reduction",
}


def public() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yields the public functions and methods by the names that users call them by."""
    done: set[int] = set()
    modules = [
        (f"{name}.", module)
        for name, module in [(name, getattr(fs, name)) for name in fs.__all__]
        if isinstance(module, types.ModuleType)
    ]
    for prefix, namespace in [("", fs), *modules]:
        for name in dir(namespace):
            thing = getattr(namespace, name)
            if name.startswith("_") or id(thing) in done:
                continue
            done.add(id(thing))
            if isinstance(thing, types.FunctionType):
                yield prefix + name, thing
            elif isinstance(thing, type) and thing.__module__.startswith("flowscope"):
                yield from methods(prefix + name, thing)


def methods(owner: str, cls: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    given = {name for one in INTERFACES if issubclass(cls, one) for name in vars(one)}
    for name, value in vars(cls).items():
        if name in given and name != "__init__":
            continue
        function = getattr(value, "__func__", value)
        if isinstance(function, types.FunctionType) and (
            not name.startswith("_") or name in ("__init__", "__call__")
        ):
            yield f"{owner}.{name}", function


def passed_over(function: Callable[..., Any]) -> list[str]:
    """Returns the parameters that a function's body never reads."""
    try:
        source = textwrap.dedent(inspect.getsource(inspect.unwrap(function)))
        (tree,) = ast.parse(source).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return []
    if not isinstance(tree, ast.FunctionDef):
        return []
    body = [s for s in tree.body if not isinstance(getattr(s, "value", None), ast.Constant)]
    if not body or isinstance(body[0], ast.Raise):
        return []
    read = {
        node.id
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    for call in tree.decorator_list:
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
            is_used = call.func.id != "op_function" or any(k.arg == "scope" for k in call.keywords)
            read |= set(READ_BY.get(call.func.id, "").split()) if is_used else set()
    args = tree.args
    named = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    return [a.arg for a in named if a and a.arg not in {*read, "self", "cls", "_"}]


@pytest.mark.slow
def test_each_argument_is_used_or_its_promise_is_kept() -> None:
    found = [
        f"{owner}: {name}"
        for owner, function in public()
        if owner not in HOOKS
        for name in passed_over(function)
        if kept(owner, name) is None
    ]
    assert found == []


def test_no_docstring_says_that_an_argument_is_not_used(root: Path) -> None:
    sources = (root / "engine").rglob("*.py")
    assert [p.name for p in sources if ": Not used" in p.read_text("utf-8")] == []


def test_what_is_refused_exists() -> None:
    """The table names arguments and fields that are there: a line that is lifted goes."""
    for owner, names in REFUSED.items():
        thing: Any = fs
        for part in owner.split("."):
            thing = getattr(thing, part)
        has = getattr(thing, "_defaults", None) or inspect.signature(thing).parameters
        assert set(names) <= set(has), owner
    assert all(why for owners in KEPT.values() for why in owners.values())


def test_the_page_is_what_the_table_says(root: Path) -> None:
    assert (root / "docs" / "unsupported.md").read_text("utf-8") == as_markdown()


def test_a_refused_argument_says_what_to_do() -> None:
    with pytest.raises(NotImplementedError, match=r"strided_slice: var=3 is not supported: var"):
        fs.strided_slice([1.0], [0], [1], var=3)
    with pytest.raises(NotImplementedError, match="one generator"):
        fs.random.stateless_uniform([1], [1, 2], alg="philox")
    with pytest.raises(NotImplementedError, match=r"op types are registered by fs\.Op"):
        fs.import_graph_def(fs.Graph().as_graph_def(), op_dict={"a": 1})
