"""The variables of a graph with what a session keeps of them: a list, and numbers of their values.

Nothing is noted for it while steps run, but which run has written a variable last. A value that is
looked at is on lease: no step writes to it meanwhile, and none waits. Of a large one some elements
are looked at, so that a look costs the same whatever there is.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from flowscope.debug.statistics import Statistics, statistics
from flowscope.errors import FailedPreconditionError, OpError
from flowscope.graph.lazy import frozen
from flowscope.graph.operation import Operation
from flowscope.graph.summary import counted
from flowscope.graph.values.host_values import on_host
from flowscope.graph.values.shapes import Dims, text as shape_text
from flowscope.ops.state.graph_keys import GraphKeys
from flowscope.ops.state.variable_ops import VarHandleOp
from flowscope.runtime.session.session import Session
from flowscope.runtime.state.resources import VariableState

#: Elements of a value that are looked at, at most.
MOST_ELEMENTS = 1 << 18
#: Of a value in another process so many bytes are brought here at most.
MOST_BROUGHT_BYTES = 4 << 20


@frozen
class VariableInfo:
    """A variable, and what a session keeps of it.

    Attributes:
        op: The operation that makes its handle.
        dtype: Its dtype's name.
        shape: The shape of its value; the static one where that is not known.
        nbytes: Bytes of its value; 0 where it has none.
        device: The device that it lies on; "" before a plan has placed it.
        is_initialized: Whether it has a value; None where that is not known.
        is_trainable: Whether optimizers train it.
        writes: How often it was written.
        written_in: The number of the run that wrote it last; None where that was no run.
        primary: The operation of the variable that it accompanies, as an optimizer's running
            average does; None for none.
        statistics: Numbers of its elements, where they were asked for and are known: of a large
            value, of elements that lie evenly in it.
        why: Why something is not known; "" where all is.
    """

    op: Operation
    dtype: str
    shape: Dims
    nbytes: int
    device: str
    is_initialized: bool | None
    is_trainable: bool
    writes: int
    written_in: int | None
    primary: Operation | None
    statistics: Statistics | None = None
    why: str = ""

    @property
    def name(self) -> str:
        """Its name."""
        return self.op.name

    @property
    def scope(self) -> str:
        """The scope that it stands in; "" for none."""
        return self.name.rpartition("/")[0]


class Variables(tuple[VariableInfo, ...]):
    """Variables in program order, each followed by those that accompany it; its text is a table."""

    __slots__ = ()

    @property
    def nbytes(self) -> int:
        """Bytes of all their values."""
        return sum(one.nbytes for one in self)

    def __repr__(self) -> str:
        if not self:
            return "the graph has no variable"
        rows: list[tuple[str, ...]]
        rows = [("variable", "type", "bytes", "device", "written", "min", "mean", "max", "")]
        rows += map(_row, self)
        used = [i for i in range(len(rows[0])) if any(row[i] for row in rows[1:])]
        widths = {i: max(len(row[i]) for row in rows) for i in used}
        lines = ["  ".join(_cell(row[i], i, widths[i]) for i in used).rstrip() for row in rows]
        return "\n".join([*lines, f"{counted(len(self), 'variable')}, {self.nbytes:,} bytes"])


_NUMBERS = (2, 5, 6, 7)


def _cell(text: str, column: int, width: int) -> str:
    return text.rjust(width) if column in _NUMBERS else text.ljust(width)


def _row(one: VariableInfo) -> tuple[str, ...]:
    found = one.statistics
    numbers = (None,) * 3 if found is None else (found.min, found.mean, found.max)
    told = ["" if n is None else f"{n:.3g}" for n in numbers]
    wrong = "" if found is None or not found.nan + found.inf else f"{found.nan + found.inf} bad"
    device = one.device.rpartition("/device:")[2]
    name = one.name if one.primary is None else f"  {one.name}"
    type_text = f"{one.dtype}{shape_text(one.shape)}"
    return (name, type_text, f"{one.nbytes:,}", device, _written(one), *told, one.why or wrong)


def _written(one: VariableInfo) -> str:
    if one.is_initialized is None:
        return ""
    if not one.is_initialized:
        return "not initialised"
    return "outside of steps" if one.written_in is None else f"step {one.written_in}"


def variables(
    session: Session, scope: str | None = None, measured: Collection[str] | None = ()
) -> Variables:
    """Returns the variables of a session's graph.

    Args:
        session: The session.
        scope: A regular expression that names must match from their beginnings; None for all.
        measured: The names of those of whose values numbers are told; None for all.
    """
    pattern = re.compile(scope or "")
    handles = [op for op in session.graph.get_operations() if type(op.definition) is VarHandleOp]
    handles = [op for op in handles if op.stale is None and pattern.match(op.name)]
    known = _known(session, handles)
    trained = {v.op for v in _trained(session)}
    found = [_info(session, op, op in trained, *known[op]) for op in _grouped(handles)]
    return Variables(
        _measured(one, known[one.op][0]) if measured is None or one.name in measured else one
        for one in found
    )


def before(found: Variables, session: Session, step: int) -> Variables:
    """Variables with the values that they had before a recorded step.

    Args:
        found: The variables now; those with `statistics` are measured again.
        session: The session whose steps are recorded.
        step: The number of the step in its session.

    Raises:
        FailedPreconditionError: Nothing is recorded, or not this step.
    """
    history = session.debug.history if session.is_debugged else None
    if history is None:
        raise FailedPreconditionError("nothing is recorded: record steps, then go back to one")
    values = history.inputs.variables_before(step)
    return Variables(_before(one, step, values) for one in found)


def _before(one: VariableInfo, step: int, values: Mapping[str, Any]) -> VariableInfo:
    if one.name not in values:
        why = f"no recorded step from {step} on uses it: as it is now"
        return one if one.is_initialized is None else replace(one, why=one.why or why)
    value = values[one.name]
    if value is None:
        kept = replace(one, is_initialized=False, nbytes=0, written_in=None)
        return replace(kept, statistics=None, why="")
    earlier = None if (one.written_in or 0) >= step else one.written_in
    shape, nbytes = tuple(value.shape), int(value.nbytes)
    told = None if one.statistics is None else statistics(_some(value))
    if told is not None:
        told = replace(told, shape=shape, nbytes=nbytes)
    return replace(
        one, shape=shape, nbytes=nbytes, is_initialized=True, written_in=earlier, statistics=told,
        why="",
    )  # fmt: skip


def _trained(session: Session) -> list[Any]:
    listed = session.graph.get_collection(GraphKeys.TRAINABLE_VARIABLES)
    return [v for v in listed if hasattr(v, "handle")]


def _grouped(handles: Iterable[Operation]) -> list[Operation]:
    """Returns handles in their order, each followed by those that accompany it."""
    beside: dict[Operation | None, list[Operation]] = {}
    all_handles = set(handles := list(handles))
    for op in handles:
        primary = _primary(op)
        beside.setdefault(primary if primary in all_handles else None, []).append(op)
    found: list[Operation] = []
    waiting = beside.get(None, [])[::-1]
    while waiting:
        found.append(waiting.pop())
        waiting += beside.get(found[-1], [])[::-1]
    return found


def _primary(op: Operation) -> Operation | None:
    owner = op.graph.observer.owner(op)
    primary = getattr(owner, "_primary", None)
    return None if primary is None else primary.op


#: Where a variable's value is kept, and what is told of it: whether it has one, how often it was
#: written, bytes, in which run; or why that is not known.
_Known = tuple[Any, tuple[bool, int, int, int | None] | str]


def _known(session: Session, handles: Iterable[Operation]) -> dict[Operation, _Known]:
    found: dict[Operation, _Known] = {}
    remote: dict[Operation, Any] = {}
    for op in handles:
        try:
            state: Any = session.variable_state(op.outputs[0])
        except OpError as e:
            found[op] = None, e.message
            continue
        if isinstance(state, VariableState):
            nbytes = int(getattr(state.value, "nbytes", 0))
            found[op] = state, (state.is_initialized, state.writes, nbytes, state.written_in)
        else:
            remote[op] = state
    if remote and session.planner.remote is not None:
        told = session.planner.remote.facts(list(remote.values()))
        found |= {op: (remote[op], one) for op, one in zip(remote, told, strict=True)}
    return found


def _info(
    session: Session,
    op: Operation,
    is_trainable: bool,
    state: Any,
    told: tuple[bool, int, int, int | None] | str,
) -> VariableInfo:
    definition: Any = op.definition
    shape = getattr(getattr(state, "value", None), "shape", None) if _is_here(state) else None
    dims = definition.shape if shape is None else tuple(shape)
    device = session.planner.placements.get(op.id, "")
    why, facts = ("", told) if not isinstance(told, str) else (told, (None, 0, 0, None))
    has_value, writes, nbytes, run = facts
    return VariableInfo(
        op, definition.dtype.name, dims, nbytes, device, has_value, is_trainable, writes, run,
        _primary(op), None, why,
    )  # fmt: skip


def _is_here(state: Any) -> bool:
    return isinstance(state, VariableState)


def _measured(one: VariableInfo, state: Any) -> VariableInfo:
    """Returns a variable with numbers of its value, or why there are none."""
    if not one.is_initialized:
        return one
    if not _is_here(state) and one.nbytes > MOST_BROUGHT_BYTES:
        why = f"its value of {one.nbytes:,} bytes is on {state.task}: fetch what you want of it"
        return replace(one, why=why)
    try:
        value = state.current()
        found = statistics(_some(value))
    except FailedPreconditionError:
        return replace(one, is_initialized=False)
    except OpError as e:
        return replace(one, why=e.message)
    shape = tuple(getattr(value, "shape", ()))
    return replace(one, shape=shape, statistics=replace(found, shape=shape, nbytes=one.nbytes))


def _some(value: Any) -> Any:
    """Returns a value in the host's memory; of a large one elements that lie evenly in it."""
    size = getattr(value, "size", 1)
    if size > MOST_ELEMENTS:
        value = value.reshape(-1)[:: -(-size // MOST_ELEMENTS)]
    return on_host(value)


__all__ = ["MOST_ELEMENTS", "VariableInfo", "Variables", "before", "variables"]
