"""`VariableDef`: what a variable is, as data; what `to_proto` returns and `from_proto` takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowscope.graph.lazy import mutable
from flowscope.graph.values.expected import expected
from flowscope.ops.core import builder


@mutable
class VariableDef:
    """What a variable is besides its operations, by names: as data.

    Attributes:
        variable_name: The handle's name.
        initial_value_name: Name of the tensor of the initial value.
        initializer_name: Name of the operation that sets it.
        snapshot_name: Name of a read.
        trainable: Whether optimizers train it.
        synchronization, aggregation: Names of the members of those enums.
        save_slice_info_def: Of a part: (name of the whole, which part); None for a whole.
        is_resource: True: it has a handle.
    """

    variable_name: str = ""
    initial_value_name: str = ""
    initializer_name: str = ""
    snapshot_name: str = ""
    trainable: bool = True
    synchronization: str = "AUTO"
    aggregation: str = "NONE"
    save_slice_info_def: Sequence[str] | None = None
    is_resource: bool = True


class ToAndFromProto:
    """The methods of `Variable` that write a VariableDef and read one."""

    def _take(self, variable_def: Any, initial_value: Any, import_scope: str | None) -> None:
        """Becomes the variable that `variable_def` tells about."""
        if initial_value is not None:
            raise expected("initial_value or variable_def", "both")
        builder.fill_from(self, variable_def, import_scope)  # type: ignore[arg-type]

    def to_proto(self, export_scope: str | None = None) -> VariableDef | None:
        """Returns the names of the variable's operations, and its facts, as data.

        Args:
            export_scope: A name scope, which is taken off the names. None is returned where the
                variable lies outside.
        """
        return builder.message_of(self, export_scope)  # type: ignore[arg-type]

    @staticmethod
    def from_proto(variable_def: VariableDef, import_scope: str | None = None) -> builder.Variable:
        """Returns the variable of operations that the default graph has; it joins no collections.

        Args:
            variable_def: What `to_proto` returned.
            import_scope: The name scope into which the graph was imported since.
        """
        return builder.Variable(variable_def=variable_def, import_scope=import_scope)
