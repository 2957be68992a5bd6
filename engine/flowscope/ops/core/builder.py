"""What gradients build with: functions of any family, found when they are first called.

A gradient may need what stands on its own family - the gradient of a sum gathers, that of a product
transposes. It calls `builder.gather(...)`, so that no family imports a later one.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flowscope.ops.array.arrays import (
        ones_like as ones_like,
        range as range,
        rank as rank,
        shape as shape,
        size as size,
        zeros_like as zeros_like,
    )
    from flowscope.ops.array.batch_gathering import BatchGather as BatchGather
    from flowscope.ops.array.gathering import gather as gather
    from flowscope.ops.array.joining import concat as concat, stack as stack
    from flowscope.ops.array.selection import where as where
    from flowscope.ops.array.shaping import (
        expand_axes as expand_axes,
        expand_dims as expand_dims,
        invert_permutation as invert_permutation,
        reshape as reshape,
        shape_of as shape_of,
        squeeze_axes as squeeze_axes,
        transpose as transpose,
    )
    from flowscope.ops.array.tensor_scatters import tensor_scatter_update as tensor_scatter_update
    from flowscope.ops.array.uniques import setdiff1d as setdiff1d
    from flowscope.ops.host.checks import assert_greater_equal as assert_greater_equal
    from flowscope.ops.linalg.factors import cholesky as cholesky
    from flowscope.ops.linalg.spectra import pinv as pinv
    from flowscope.ops.math.elementwise import (
        maximum as maximum,
        minimum as minimum,
        multiply as multiply,
        sign as sign,
    )
    from flowscope.ops.math.reductions import reduce_prod as reduce_prod, reduce_sum as reduce_sum
    from flowscope.ops.objectives.l2_loss import l2_loss as l2_loss
    from flowscope.ops.state.variable_serialization import (
        fill_from as fill_from,
        message_of as message_of,
    )
    from flowscope.ops.state.variables import Variable as Variable

#: Which module has which function.
_MODULES = {
    "array.arrays": "ones_like range rank shape size zeros_like",
    "array.batch_gathering": "BatchGather",
    "array.gathering": "gather",
    "array.joining": "concat stack",
    "array.selection": "where",
    "array.shaping": (
        "expand_axes expand_dims invert_permutation reshape shape_of squeeze_axes transpose"
    ),
    "array.tensor_scatters": "tensor_scatter_update",
    "array.uniques": "setdiff1d",
    "host.checks": "assert_greater_equal",
    "linalg.factors": "cholesky",
    "linalg.spectra": "pinv",
    "math.elementwise": "maximum minimum multiply sign",
    "math.reductions": "reduce_prod reduce_sum",
    "objectives.l2_loss": "l2_loss",
    "state.variables": "Variable",
    "state.variable_serialization": "fill_from message_of",
}
_HOME = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Returns a function, and keeps it as an attribute."""
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"flowscope.ops.{home}"), name)
    globals()[name] = found
    return found
