"""Exceptions that flowscope uses for itself: each is known, and none reaches a user."""

from __future__ import annotations

import ast
import builtins
import importlib
import pickle
from pathlib import Path

import pytest

import flowscope as fs
from flowscope import errors

ROOT = Path(fs.__file__).parent

#: Classes that are not in `flowscope.errors`, and where they end.
INTERNAL = {
    "cluster.shipping.sent_objects.LackError": "`shipping.failures` tells it as its public base",
    "cluster.transport.connector._UnreachableError": "`Connector.connect_all` hands out its base",
    "cluster.transport.runs.LateAnswerError": "those who ask catch it, or hand out its base",
    "cluster.transport.steps._Ended": "what is left of a step that has ended; nobody is told",
    "ops.host.py_functions._NotAnArray": "caught where it is raised",
    "ops.kernels.onednn.RefusedByOneDnn": "caught by the kernels, which do without oneDNN then",
    "plan.ir.invocation.InvocationError": "the session, or the host, makes an `OpError` of it",
    "plan.passes.lift._OtherFormError": "caught by the pass",
    "runtime.datasets.dataset_pipelines.EndOfDataset": "pipelines catch it, an iterator tells it",
    "runtime.threads.host_calls._LeftAloneError": "ends a function that nobody waits for",
    "runtime.threads.interrupt.HandlerError": "the session raises what it carries",
    "runtime.waits.rendezvous.EndedWait": "the partition tells what it carries",
    "runtime.step.split.DerivedError": "the session raises the cause, or its public base",
}


def _classes():
    """The exception classes of the engine by dotted names: also those of exceptions of ours."""
    bases = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                names = [ast.unparse(b).rpartition(".")[2] for b in node.bases]
                bases[".".join([*parts, node.name])] = names
    is_exception = {
        name
        for name, value in vars(builtins).items()
        if isinstance(value, type) and issubclass(value, BaseException)
    }
    while True:
        more = {
            name.rpartition(".")[2]
            for name, above in bases.items()
            if not is_exception.isdisjoint(above)
        } - is_exception
        if not more:
            return {n for n, above in bases.items() if not is_exception.isdisjoint(above)}
        is_exception |= more


def test_exceptions_are_public_or_known_to_end_inside():
    elsewhere = {name for name in _classes() if not name.startswith("errors.")}
    shown = {name for name in elsewhere if hasattr(fs.train, name.rpartition(".")[2])}
    assert shown == {"train.session.hooks.ending.NanLossDuringTrainingError"}
    assert elsewhere - shown == INTERNAL.keys()


@pytest.mark.parametrize("name", INTERNAL)
def test_an_internal_error_of_an_operation_has_a_public_one_in_its_place(name):
    module, _, last = name.rpartition(".")
    cls = getattr(importlib.import_module(f"flowscope.{module}"), last)
    assert last not in vars(fs.errors)
    if not issubclass(cls, errors.OpError):
        return
    error = cls("what was expected", op="x", device="/job:a/task:0", origin="line 3")
    error.__cause__ = ValueError("why")
    found = error.as_public()
    assert type(found).__module__ == "flowscope.errors"
    assert type(found) in cls.__mro__
    assert found.facts() == error.facts() and found.message == error.message
    assert found.__cause__ is error.__cause__
    assert type(pickle.loads(pickle.dumps(found))) is type(found)


def test_a_public_error_is_its_own():
    for cls in [errors.OpError, *errors.OpError.__subclasses__()]:
        error = cls("said") if cls.__module__ == "flowscope.errors" else None
        assert error is None or error.as_public() is error


class OfTheUser(errors.InvalidArgumentError):
    def __init__(self, number, *, unit):
        super().__init__(f"{number} {unit}")


def test_an_error_class_of_the_users_may_ask_for_other_arguments(graph):
    """What is known of the operation is added all the same, and pickle brings it back."""
    error = OfTheUser(3, unit="kg")
    for found in (error.located(op="x"), pickle.loads(pickle.dumps(error)), error.reworded("3 kg")):
        assert isinstance(found, errors.InvalidArgumentError)
        assert "OfTheUser: 3 kg" in str(found)

    def f(x):
        raise OfTheUser(3, unit="kg")

    y = fs.py_func(f, [1.0], fs.float32)
    with fs.Session() as sess, pytest.raises(errors.InvalidArgumentError, match="3 kg"):
        sess.run(y)
