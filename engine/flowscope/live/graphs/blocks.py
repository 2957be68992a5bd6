"""What views know of the bodies that an operation runs: what enters and what comes back."""

from __future__ import annotations

from typing import TypedDict

from flowscope.control.blocks import Function
from flowscope.control.calls import Call
from flowscope.control.cond import Cond, always_run
from flowscope.control.loop import Loop
from flowscope.graph.operation import Operation
from flowscope.live.protocol.schema import Carried


class Blocks(TypedDict, total=False):
    """The fields of a `Node` that tell of the bodies it runs."""

    runs: tuple[str, ...]
    roles: tuple[str, ...]
    predicate: tuple[int, int] | None
    carried: tuple[Carried, ...]
    enters: tuple[tuple[int, int], ...]
    leaves: tuple[tuple[int, int, int], ...]
    always_runs: tuple[int, ...]


def blocks_of(op: Operation) -> Blocks:
    """The bodies of an operation for its `Node`; empty for one without bodies."""
    definition = op.definition
    if isinstance(definition, Loop):
        return _loop(op, definition)
    if isinstance(definition, Cond):
        return _cond(op, definition)
    if isinstance(definition, Call):
        return Blocks(enters=_enters(definition.function, 0, 0))
    return Blocks()


def _cond(op: Operation, cond: Cond) -> Blocks:
    first = 1 + len(cond.then.parameters)
    pred = op.inputs[0]
    return Blocks(
        runs=(cond.then.name, cond.orelse.name),
        roles=("then", "else"),
        predicate=(pred.op.id, pred.value_index),
        enters=_enters(cond.then, 0, 1) + _enters(cond.orelse, 0, first),
        leaves=_leaves(cond.then, 0, 0) + _leaves(cond.orelse, 0, 0),
        always_runs=tuple([one.id for one in always_run(op)]),
    )


def _loop(op: Operation, loop: Loop) -> Blocks:
    start, n = loop.first, loop.variables
    body, test = loop.body, loop.cond
    tests = 0 if test is None else len(test.parameters) - n
    behind = start + loop.carried + tests
    enters = _enters(body, n, start + n, loop.lists) + _enters(body, loop.carried, behind)
    if test is not None:
        enters = _enters(test, n, start + loop.carried) + enters
    results = [(t.op.id, t.value_index) for t in body.results[:n]]
    return Blocks(
        runs=(body.name,) if test is None else (body.name, test.name),
        roles=("body",) if test is None else ("body", "cond"),
        predicate=None if test is None else (test.results[0].op.id, test.results[0].value_index),
        carried=tuple(
            Carried(
                input=start + i,
                parameter=body.parameters[i].op.id,
                test=None if test is None else test.parameters[i].op.id,
                result=results[i],
                output=i,
            )
            for i in range(n)
        ),
        enters=enters,
        # The number of iterations stands between the variables and what is kept.
        leaves=_leaves(body, n, n + 1),
    )


def _enters(
    function: Function, parameter: int, position: int, count: int | None = None
) -> tuple[tuple[int, int], ...]:
    """Pairs the parameters from `parameter` on with the inputs from `position` on."""
    stop = None if count is None else parameter + count
    parameters = function.parameters[parameter:stop]
    return tuple((t.op.id, position + i) for i, t in enumerate(parameters))


def _leaves(function: Function, first: int, position: int) -> tuple[tuple[int, int, int], ...]:
    """Pairs the function's outputs from `first` on with the operation's from `position` on."""
    outputs = function.outputs[first:]
    return tuple((t.op.id, t.value_index, position + i) for i, t in enumerate(outputs))
