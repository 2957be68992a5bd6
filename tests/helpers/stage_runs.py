"""Runs the program after each pass, one operation at a time: what no pass may change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import flowscope as fs
from flowscope.plan.executables.interpret import Interpreter
from flowscope.plan.ir.modules import Modules
from flowscope.plan.ir.program import Program
from flowscope.plan.passes.regions import whole_region
from flowscope.runtime.state.random_generators import generator
from flowscope.runtime.state.resources import VariableState
from flowscope.runtime.waits.gate import Gate


def stage_values(
    fetches: Sequence[Any], feeds: Mapping[Any, Any], variables: Mapping[str, Any]
) -> dict[str, list[Any]]:
    """Returns, per pass from `order` on, the fetched values and the variables' after the step.

    Args:
        fetches: What a session would fetch.
        feeds: Arrays by tensor.
        variables: Values before the step, by variable.
    """
    with fs.Session() as session:
        plan = session.plan(list(fetches), list(feeds))
    found = {}
    for name, program in plan.stages():
        if name not in ("prune", "inline"):
            found[name] = program_values(program, tuple(feeds.values()), variables)
    return found


def program_values(program: Program, feeds: Any, variables: Mapping[str, Any]) -> list[Any]:
    """Returns the fetched values and the variables' after the step, run op by op."""
    region = whole_region(program)
    states = []
    for handle in region.handles:
        states.append(VariableState(handle.name))
        if handle.name in variables:
            states[-1].assign(np.array(variables[handle.name])[()])
    run = Interpreter(region, Modules(np), generator, frozenset())
    with np.errstate(all="ignore"):
        values = run(Gate(), (1, 2, 3), feeds, tuple(states))
    return [*map(np.copy, values), *[np.copy(s.value) for s in states if s.value is not None]]
