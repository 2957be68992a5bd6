"""Variables in a graph's file: written as data, and made again of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowscope.errors import InvalidArgumentError
from flowscope.graph.default import get_default_graph
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.serialization.meta import CollectionKind
from flowscope.graph.values.expected import expected_dtype
from flowscope.ops.state.variable_def import VariableDef
from flowscope.ops.state.variables import (
    SaveSliceInfo,
    Variable,
    VariableAggregation,
    VariableSynchronization,
)


def variable_def(variable: Variable) -> dict[str, Any]:
    """The attributes of a variable besides its operations."""
    facts: dict[str, Any] = {
        "handle": variable.handle.name,
        "initial_value": variable.initial_value.name,
        "initializer": variable.initializer.name,
        "snapshot": variable._snapshot.name,
        "trainable": variable.trainable,
        "synchronization": variable.synchronization.name,
        "aggregation": variable.aggregation.name,
    }
    part = variable._save_slice_info
    if part is not None:
        facts["part"] = [part.full_name, part.spec]
    if variable.constraint is not None:
        facts["skipped"] = [f'the constraint of "{variable.op.name}": it is a Python function']
    return facts


def variable_of(facts: dict[str, Any], find: Callable[[str], Any]) -> Variable:
    """Returns the variable of operations that exist already.

    Args:
        facts: What `variable_def` returned.
        find: Returns an operation or tensor by its name in `facts`.

    Raises:
        InvalidArgumentError: if a fact is missing or of the wrong kind.
    """
    variable = Variable.__new__(Variable)
    _fill(variable, facts, find)
    return variable


def _fill(variable: Variable, facts: dict[str, Any], find: Callable[[str], Any]) -> None:
    variable.handle = _found(facts, "handle", find, Tensor)
    variable.initial_value = _found(facts, "initial_value", find, Tensor)
    variable.initializer = _found(facts, "initializer", find, Operation)
    variable._snapshot = _found(facts, "snapshot", find, Tensor)
    if variable.handle.spec.variable is None:
        raise InvalidArgumentError(f"expected a variable's handle, got {facts['handle']!r}")
    variable._reads = {}
    variable.trainable = facts.get("trainable") is True
    variable.constraint = None
    variable.synchronization = _member(VariableSynchronization, facts, "synchronization")
    variable.aggregation = _member(VariableAggregation, facts, "aggregation")
    if "part" in facts:
        variable._save_slice_info = _part(variable, facts)
    variable.graph.observer.note_owner(variable.op, variable)


def message_of(variable: Variable, export_scope: str | None) -> VariableDef | None:
    """Returns a variable's message, see `Variable.to_proto`."""
    scope = export_scope.rstrip("/") + "/" if export_scope else ""
    if not variable.name.startswith(scope):
        return None
    facts = variable_def(variable)
    return VariableDef(
        facts["handle"].removeprefix(scope),
        facts["initial_value"].removeprefix(scope),
        facts["initializer"].removeprefix(scope),
        facts["snapshot"].removeprefix(scope),
        variable.trainable,
        facts["synchronization"],
        facts["aggregation"],
        facts.get("part"),
    )


def fill_from(variable: Variable, message: Any, import_scope: str | None) -> None:
    """Makes a new object the variable that a message tells about, see `Variable.from_proto`."""
    if not isinstance(message, VariableDef):
        raise expected_dtype("a VariableDef", repr(message))
    scope = import_scope.rstrip("/") + "/" if import_scope else ""
    facts = {
        "handle": message.variable_name,
        "initial_value": message.initial_value_name,
        "initializer": message.initializer_name,
        "snapshot": message.snapshot_name,
        "trainable": message.trainable,
        "synchronization": message.synchronization,
        "aggregation": message.aggregation,
    }
    if message.save_slice_info_def is not None:
        facts["part"] = list(message.save_slice_info_def)
    graph = get_default_graph()
    _fill(variable, facts, lambda name: graph.as_graph_element(scope + name))


def _part(variable: Variable, facts: dict[str, Any]) -> SaveSliceInfo:
    """Returns which part of a whole a variable is; the whole's name follows the variable's."""
    match facts["part"]:
        case [str(full_name), str(spec)]:
            prefix = variable.handle.name.removesuffix(facts["handle"])
            return SaveSliceInfo.from_spec(spec, prefix + full_name)
    raise InvalidArgumentError(
        f"expected [name, slice] as a variable's part, got {facts['part']!r}"
    )


def _found(facts: dict[str, Any], key: str, find: Callable[[str], Any], kind: type) -> Any:
    name = facts.get(key)
    found = find(name) if isinstance(name, str) else None
    if isinstance(found, kind):
        return found
    raise InvalidArgumentError(f"a variable's {key} must name a {kind.__name__}, got {name!r}")


def _member(members: Any, facts: dict[str, Any], key: str) -> Any:
    name = facts.get(key)
    if isinstance(name, str) and name in members.__members__:
        return members[name]
    known = ", ".join(members.__members__)
    raise InvalidArgumentError(f"a variable's {key} is one of {known}, got {name!r}")


#: How variables stand in collections that are written.
VARIABLES = CollectionKind("variable", Variable, variable_def, variable_of)
