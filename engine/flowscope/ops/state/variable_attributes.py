"""What is known of variables besides their operations: replicas, parts, their initial values."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.lazy import frozen
from flowscope.graph.values.expected import expected

if TYPE_CHECKING:
    from flowscope.graph.graph import Graph
    from flowscope.graph.operation import Tensor
    from flowscope.graph.values.dtypes import DType


class VariableSynchronization(enum.Enum):
    """When replicas' copies of a variable are brought together; one process has one copy."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class VariableAggregation(enum.Enum):
    """How replicas' copies of a variable are brought together; one process has one copy."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3


def initial_tensor(graph: Graph, name: str, value: Any, dtype: DType | None) -> Tensor:
    """Returns the initial value of a variable that will have a name; in the variable's scope.

    What a function makes is colocated with the variable, wherever a device function puts that, as
    in TensorFlow 1.
    """
    is_made = callable(value)
    with graph.colocate_with_name(name) if is_made else nullcontext():
        if is_made:
            with graph.name_scope(name + "/Initializer/"):
                value = value()
        return convert_to_tensor(value, dtype, name="initial_value")


@frozen
class SaveSliceInfo:
    """Which part of a larger tensor a variable is.

    Attributes:
        full_name: Name of the whole.
        full_shape: Its shape.
        var_offset: First position of the part, per axis.
        var_shape: The part's shape.
    """

    full_name: str
    full_shape: Sequence[int]
    var_offset: Sequence[int]
    var_shape: Sequence[int]

    @property
    def spec(self) -> str:
        """As text: the whole's shape, then per axis the part's first position and its length."""
        whole = " ".join(str(d) for d in self.full_shape)
        parts = zip(self.var_offset, self.var_shape, strict=True)
        return f"{whole} {':'.join(f'{start},{n}' for start, n in parts)}"

    @classmethod
    def from_spec(cls, spec: str, full_name: str = "") -> SaveSliceInfo:
        """The object that `spec` describes; raises InvalidArgumentError if it describes none."""
        try:
            *whole, parts = spec.split()
            pairs = [part.split(",") for part in parts.split(":")]
            starts, sizes = [int(p[0]) for p in pairs], [int(p[1]) for p in pairs]
            shape = [int(d) for d in whole]
        except (ValueError, IndexError):
            shape, starts, sizes = [], [0], []
        if not len(shape) == len(starts) == len(sizes):
            raise expected('text like "4 3 0,2:0,3"', repr(spec))
        return cls(full_name, shape, starts, sizes)
