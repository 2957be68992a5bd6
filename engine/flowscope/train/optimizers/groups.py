"""Update groups: writes that become visible together."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from flowscope.graph.operation import Operation


def join_group(operations: Iterable[Operation], name: str) -> None:
    """Makes the writes among operations that were just added members of the update group `name`.

    Those that are in a group already stay in theirs. A write belongs to a group by its attribute
    `group`, whoever added it: an optimizer of the user's, a constraint, an assignment.
    """
    for operation in operations:
        definition = operation.definition
        if definition.writes_state and getattr(definition, "group", None) == "":
            changes: dict[str, Any] = {"group": name}
            operation.definition = dataclasses.replace(definition, **changes)


def regroup(operations: Iterable[Operation], old: str, name: str) -> None:
    """Makes the writes among operations members of the group `name`, those of group `old` too."""
    operations = list(operations)
    for operation in operations:
        definition = operation.definition
        if definition.writes_state and getattr(definition, "group", None) == old:
            changes: dict[str, Any] = {"group": name}
            operation.definition = dataclasses.replace(definition, **changes)
    join_group(operations, name)


__all__ = ["join_group", "regroup"]
