"""`dynamic_rnn`: a cell along time, as one loop."""

from __future__ import annotations

from typing import Any

from flowscope import nest
from flowscope.control.arrays.array_ops import GatherOrZeros
from flowscope.control.arrays.tensor_array import TensorArray
from flowscope.control.while_loop import while_loop
from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.operation import Tensor
from flowscope.graph.values.dtypes import DType
from flowscope.graph.values.shapes import as_dims
from flowscope.ops.array.arrays import range as range_of, shape
from flowscope.ops.array.joining import stack
from flowscope.ops.array.moving import reverse, reverse_sequence
from flowscope.ops.array.shaping import transpose
from flowscope.ops.core.build import apply
from flowscope.ops.math.elementwise import maximum, minimum
from flowscope.ops.math.reductions import reduce_max
from flowscope.ops.state.variable_scope import variable_scope
from flowscope.rnn.cell import check_cell, full_size, tensors_of, zero_states
from flowscope.rnn.steps import (
    batch_size_of,
    check_structure,
    first_state,
    lengths_of,
    one_dtype,
    passed_through,
)

__all__ = ["bidirectional_dynamic_rnn", "dynamic_rnn"]


def dynamic_rnn(
    cell: Any,
    inputs: Any,
    sequence_length: Any = None,
    initial_state: Any = None,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[Any, Any]:
    """Runs a cell along time, by a loop; returns all its outputs and its last state.

    Batch size and number of steps need not be known before the graph runs.

    Args:
        cell: An `fs.nn.rnn_cell.RNNCell`.
        inputs: A tensor [batch, time, ...], or a nested structure of such tensors.
        sequence_length: Integers [batch]: after so many steps a row's outputs are zeros, and its
            state stays what it was. All steps by default.
        initial_state: The first state, in the structure of `cell.state_size`; zeros by default.
        dtype: Element type of state and outputs; needed where there is no initial state.
        parallel_iterations: How many steps may overlap where operations wait; 32 by default.
        swap_memory: Whether kept values may move to the host's memory.
        time_major: Whether inputs and outputs are [time, batch, ...].
        scope: Name of the variable scope; "rnn" by default.

    Returns:
        The outputs [batch, time, ...], in the structure of `cell.output_size`, and the last state.

    Raises:
        DTypeError: if `cell` is no cell.
        InvalidArgumentError: if the inputs' rank is below 3 or their depth is not known, or sizes
            contradict.

    Example:
        >>> x = fs.placeholder(fs.float32, [None, 5, 3])
        >>> outputs, state = fs.nn.dynamic_rnn(fs.nn.rnn_cell.GRUCell(4), x, dtype=fs.float32)
        >>> outputs.shape.as_list(), state.shape.as_list()
        ([None, 5, 4], [None, 4])
    """
    __tracebackhide__ = True
    check_cell("cell", cell)
    with variable_scope(scope or "rnn"):
        flat = [_by_time(t, time_major) for t in nest.flatten(tensors_of(inputs))]
        batch_size = batch_size_of(flat, 1)
        steps = _steps_of(flat)
        lengths = lengths_of(sequence_length, batch_size)
        state = first_state(cell, initial_state, batch_size, dtype)
        run = _Run(cell, inputs, flat, batch_size, steps, lengths, one_dtype(dtype, state))
        arrays, state = run.loop(state, parallel_iterations or 32, swap_memory)
        outputs = [run.outputs(*pair) for pair in zip(arrays, run.sizes, strict=True)]
        if not time_major:
            outputs = [_swapped(t) for t in outputs]
        return nest.pack_sequence_as(cell.output_size, outputs), state


def _by_time(t: Tensor, time_major: bool) -> Tensor:
    """Returns inputs as [time, batch, ...].

    Raises:
        InvalidArgumentError: if the rank is below 3, or the size of a step is not known.
    """
    dims = t.spec.shape
    if dims is None or len(dims) < 3 or None in dims[2:]:
        form = "[time, batch, depth]" if time_major else "[batch, time, depth]"
        kind = DTypeError if dims is None else InvalidArgumentError
        raise kind(f'expected inputs of shape {form} with a known depth, got {t.spec} ("{t.name}")')
    return t if time_major else _swapped(t)


def _swapped(t: Tensor) -> Tensor:
    """Returns the tensor with its first two axes swapped."""
    dims = t.spec.shape
    assert dims is not None
    return transpose(t, [1, 0, *range(2, len(dims))])


def _steps_of(flat: list[Tensor]) -> Any:
    """Returns the number of steps: an integer where one tensor knows it, else a tensor."""
    known = {t.name: t.spec.shape[0] for t in flat if t.spec.shape}
    sizes = {n for n in known.values() if n is not None}
    if len(sizes) > 1:
        raise InvalidArgumentError(f"expected inputs of one number of steps, got {known}")
    return sizes.pop() if sizes else shape(flat[0])[0]


class _Run:
    """One cell along one batch of inputs.

    Attributes:
        sizes: Sizes of the outputs, without the batch.
    """

    def __init__(
        self,
        cell: Any,
        structure: Any,
        flat: list[Tensor],
        batch_size: Any,
        steps: Any,
        lengths: Tensor | None,
        dtype: DType,
    ) -> None:
        self._cell, self._structure, self._dtype = cell, structure, dtype
        self._batch_size, self._steps, self._lengths = batch_size, steps, lengths
        self.sizes = nest.flatten(cell.output_size)
        self._inputs = [
            TensorArray(
                t.dtype,
                steps,
                clear_after_read=False,
                element_shape=t.shape[1:],
                name=f"input_{i}",
            ).unstack(t)
            for i, t in enumerate(flat)
        ]
        if lengths is not None:
            self._zeros = zero_states(cell.output_size, batch_size, dtype)

    def loop(
        self, state: Any, parallel_iterations: int, swap_memory: bool
    ) -> tuple[list[TensorArray], Any]:
        """Returns the arrays of outputs and the last state."""
        static = self._batch_size if isinstance(self._batch_size, int) else None
        arrays = [
            TensorArray(
                self._dtype,
                self._steps,
                clear_after_read=False,
                element_shape=[static, *(as_dims(size) or ())],
                name=f"output_{i}",
            )
            for i, size in enumerate(self.sizes)
        ]
        last = self._steps
        if self._lengths is not None:
            last = minimum(last, maximum(1, reduce_max(self._lengths)))
        _, arrays, state = while_loop(
            lambda time, *_: time < last,
            self._step,
            [0, arrays, state],
            parallel_iterations=parallel_iterations,
            swap_memory=swap_memory,
        )
        return arrays, state

    def _step(self, time: Any, arrays: list[TensorArray], state: Any) -> tuple[Any, Any, Any]:
        parts = nest.pack_sequence_as(self._structure, [a.read(time) for a in self._inputs])
        output, new = self._cell(parts, state)
        check_structure("the cell's new state", state, new)
        check_structure("the cell's output", self._cell.output_size, output)
        if self._lengths is not None:
            is_over = time >= self._lengths
            output = passed_through(is_over, self._zeros, output)
            new = passed_through(is_over, state, new)
        written = zip(arrays, nest.flatten(output), strict=True)
        return time + 1, [a.write(time, t) for a, t in written], new

    def outputs(self, array: TensorArray, size: Any) -> Tensor:
        """Returns the outputs of all steps, zeros for those that no row took."""
        dims = stack([self._steps, *full_size(self._batch_size, size)])
        found = apply(GatherOrZeros(self._dtype), array.flow, range_of(self._steps), dims)
        static = [n if isinstance(n, int) else None for n in (self._steps, self._batch_size)]
        found.set_shape([*static, *(as_dims(size) or ())])
        return found


def bidirectional_dynamic_rnn(
    cell_fw: Any,
    cell_bw: Any,
    inputs: Any,
    sequence_length: Any = None,
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Runs one cell forwards and one backwards in time, see `dynamic_rnn`.

    Args:
        cell_fw: The cell that runs forwards.
        cell_bw: The cell that runs from a row's last step to its first.
        inputs: A tensor [batch, time, ...], or a nested structure of such tensors.
        sequence_length: Integers [batch]; all steps by default.
        initial_state_fw: First state of the one.
        initial_state_bw: First state of the other.
        dtype: Element type of states and outputs; needed where there is no initial state.
        parallel_iterations: How many steps may overlap where operations wait.
        swap_memory: Whether kept values may move to the host's memory.
        time_major: Whether inputs and outputs are [time, batch, ...].
        scope: Name of the variable scope; "bidirectional_rnn" by default.

    Returns:
        A pair of outputs and a pair of last states. Both outputs stand at their own step in time.
    """
    __tracebackhide__ = True
    check_cell("cell_fw", cell_fw)
    check_cell("cell_bw", cell_bw)
    options = (dtype, parallel_iterations, swap_memory, time_major)

    def backwards(structure: Any) -> Any:
        def one(t: Any) -> Tensor:
            time, batch = (0, 1) if time_major else (1, 0)
            if sequence_length is None:
                return reverse(t, [time])
            return reverse_sequence(t, sequence_length, time, batch)

        return nest.map_structure(one, tensors_of(structure))

    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as fw:
            out_fw, last_fw = dynamic_rnn(
                cell_fw, inputs, sequence_length, initial_state_fw, *options, scope=fw
            )
        with variable_scope("bw") as bw:
            out_bw, last_bw = dynamic_rnn(
                cell_bw, backwards(inputs), sequence_length, initial_state_bw, *options, scope=bw
            )
            return (out_fw, backwards(out_bw)), (last_fw, last_bw)
