"""`raw_rnn`: a cell in a loop whose inputs and end a function of the user's decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowscope import nest
from flowscope.control.arrays.tensor_array import TensorArray
from flowscope.control.while_loop import while_loop
from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.constant import constant, convert_to_tensor
from flowscope.graph.values.dtypes import int32
from flowscope.ops.array.arrays import shape, zeros
from flowscope.ops.array.joining import concat
from flowscope.ops.math.elementwise import logical_not, logical_or
from flowscope.ops.math.reductions import reduce_all
from flowscope.ops.state.variable_scope import variable_scope
from flowscope.rnn.cell import check_cell, tensors_of, zero_states
from flowscope.rnn.steps import batch_size_of, check_structure, passed_through

__all__ = ["raw_rnn"]


def raw_rnn(
    cell: Any,
    loop_fn: Callable[..., Any],
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    scope: Any = None,
) -> tuple[Any, Any, Any]:
    """Runs a cell in a loop; a function says what it reads, what is kept and when it ends.

    In short:

        finished, x, state, emit, loop_state = loop_fn(0, None, None, None)
        while not all(finished):
            output, new = cell(x, state)
            is_over, x, new, out, loop_state = loop_fn(time + 1, output, new, loop_state)
            state = where(finished, state, new)
            array = array.write(time, where(finished, zeros, out))
            finished = finished or is_over
            time = time + 1

    Args:
        cell: An `fs.nn.rnn_cell.RNNCell`.
        loop_fn: A function of `(time, cell_output, cell_state, loop_state)`, an int32 scalar and
            what the cell and the last call returned. It returns `(finished, next_input,
            next_cell_state, emit_output, next_loop_state)`: bools [batch], inputs, state, what is
            written to the array, and anything of its own. The first call, for time 0, gets None for
            the other three. The state that it returns is the first one; its `emit_output` says
            shapes (without the batch) and dtypes of what later calls emit, None that these are the
            cell's outputs; a `next_loop_state` of None stands for the one before.
        parallel_iterations: How many steps may overlap where operations wait; 32 by default.
        swap_memory: Whether kept values may move to the host's memory.
        scope: Name of the variable scope; "rnn" by default.

    Returns:
        A `TensorArray` of what was emitted (in the structure of `emit_output`), the last state, and
        the last loop state.

    Raises:
        DTypeError: if `cell` is no cell or `loop_fn` no function.
        InvalidArgumentError: if structures change from one call to the next.
    """
    __tracebackhide__ = True
    check_cell("cell", cell)
    if not callable(loop_fn):
        raise DTypeError(f"expected a function as loop_fn, got {loop_fn!r}")
    with variable_scope(scope or "rnn"):
        finished, x, state, emit, own = _called(loop_fn, constant(0, int32), None, None, None)
        check_structure("the first state", cell.state_size, state)
        finished, (x, state) = convert_to_tensor(finished), tensors_of([x, state])
        batch_size = batch_size_of(nest.flatten(x), 0)
        arrays, zero = _emitted(cell, emit, nest.flatten(state)[0].dtype, batch_size)

        def body(time: Any, finished: Any, x: Any, arrays: Any, state: Any, own: Any) -> Any:
            output, new = cell(x, state)
            check_structure("the cell's new state", state, new)
            check_structure("the cell's output", cell.output_size, output)
            is_over, next_x, new, out, next_own = _called(
                loop_fn, time + 1, output, new, own[0] if own else None
            )
            check_structure("loop_fn's next_input", x, next_x)
            check_structure("loop_fn's next_cell_state", state, new)
            check_structure("loop_fn's emit_output", zero, out)
            out, new = tensors_of([out, new])
            out, new = passed_through(finished, [zero, state], [out, new])
            written = nest.map_structure(lambda a, t: a.write(time, t), arrays, out)
            kept = own if next_own is None else [next_own]
            return time + 1, logical_or(finished, is_over), next_x, written, new, kept

        _, _, _, arrays, state, found = while_loop(
            lambda _, finished, *rest: logical_not(reduce_all(finished)),
            body,
            [0, finished, x, arrays, state, [] if own is None else [tensors_of(own)]],
            parallel_iterations=parallel_iterations or 32,
            swap_memory=swap_memory,
        )
        return arrays, state, found[0] if found else None


def _called(loop_fn: Callable[..., Any], *arguments: Any) -> Any:
    found = loop_fn(*arguments)
    if not isinstance(found, list | tuple) or len(found) != 5:
        raise InvalidArgumentError(
            "expected loop_fn to return (finished, next_input, next_cell_state, emit_output, "
            f"next_loop_state), got {found!r}"
        )
    return found


def _emitted(cell: Any, emit: Any, dtype: Any, batch_size: Any) -> tuple[Any, Any]:
    """Returns empty arrays for what is emitted, and zeros [batch, ...] of it, in its structure."""
    if emit is None:
        zero = zero_states(cell.output_size, batch_size, dtype)
    else:
        zero = nest.map_structure(
            lambda t: zeros(concat([[batch_size], shape(t)], 0), t.dtype), tensors_of(emit)
        )
    arrays = [
        TensorArray(t.dtype, 0, dynamic_size=True, element_shape=t.shape, name=f"rnn_output_{i}")
        for i, t in enumerate(nest.flatten(zero))
    ]
    return nest.pack_sequence_as(zero, arrays), zero
