"""`static_rnn`: a cell along time, one copy of it per step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowscope import nest
from flowscope.control.branches import cond
from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.default import get_default_graph
from flowscope.graph.operation import Tensor
from flowscope.ops.array.joining import concat, stack, unstack
from flowscope.ops.array.moving import reverse_sequence
from flowscope.ops.core.flow import identity
from flowscope.ops.math.reductions import reduce_max
from flowscope.ops.state.variable_scope import variable_scope
from flowscope.rnn.cell import check_cell, tensors_of, zero_states
from flowscope.rnn.steps import (
    batch_size_of,
    check_structure,
    first_state,
    lengths_of,
    one_dtype,
    passed_through,
)

__all__ = ["static_bidirectional_rnn", "static_rnn", "static_state_saving_rnn"]


def static_rnn(
    cell: Any,
    inputs: Sequence[Any],
    initial_state: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """Runs a cell along a list of inputs, with operations of its own for each step.

    The graph grows with the number of steps; `dynamic_rnn` runs as quickly, with one copy.

    Args:
        cell: An `fs.nn.rnn_cell.RNNCell`.
        inputs: The inputs of each step: tensors [batch, ...], or nested structures of them.
        initial_state: The first state, in the structure of `cell.state_size`; zeros by default.
        dtype: Element type of state and outputs; needed where there is no initial state.
        sequence_length: Integers [batch]: after so many steps a row's outputs are zeros, and its
            state stays what it was. Steps after the last of all rows are not computed.
        scope: Name of the variable scope; "rnn" by default.

    Returns:
        The outputs of each step, and the last state.

    Raises:
        DTypeError: if `cell` is no cell, or `inputs` is no list.
        InvalidArgumentError: if there are no inputs, or sizes contradict.
    """
    __tracebackhide__ = True
    check_cell("cell", cell)
    steps = [tensors_of(x) for x in _checked(inputs)]
    with variable_scope(scope or "rnn") as opened:
        batch_size = batch_size_of(nest.flatten(steps), 0)
        state = first_state(cell, initial_state, batch_size, dtype)
        lengths = lengths_of(sequence_length, batch_size)
        if lengths is not None:
            longest = reduce_max(lengths)
            zero = zero_states(cell.output_size, batch_size, one_dtype(dtype, state))
        outputs = []
        for time, x in enumerate(steps):
            if time > 0:
                opened.reuse_variables()
            if lengths is None:
                output, state = cell(x, state)
            else:
                is_over, is_end = lengths <= time, longest <= time
                output, state = _masked(cell, x, state, zero, is_over, is_end)
            outputs.append(output)
    return outputs, state


def _checked(inputs: Any) -> Sequence[Any]:
    if not isinstance(inputs, list | tuple):
        raise DTypeError(
            f"expected a list with the inputs of each step, got {inputs!r}; fs.unstack(x, axis=1) "
            "makes one of a tensor [batch, time, depth], and fs.nn.dynamic_rnn takes it whole"
        )
    if not inputs:
        raise InvalidArgumentError("expected the inputs of one step at least, got none")
    return inputs


def _masked(cell: Any, x: Any, state: Any, zero: Any, is_over: Any, is_end: Any) -> Any:
    """Returns output and state of a step that is computed unless all rows are over."""

    def run() -> list[Tensor]:
        output, new = cell(x, state)
        check_structure("the cell's new state", state, new)
        check_structure("the cell's output", cell.output_size, output)
        return nest.flatten(passed_through(is_over, [zero, state], [output, new]))

    before = [*nest.flatten(zero), *nest.flatten(state)]
    found = cond(is_end, lambda: [identity(t) for t in before], run)
    for t, like in zip(found, before, strict=True):
        t.set_shape(like.shape)
    outputs = len(nest.flatten(zero))
    return (
        nest.pack_sequence_as(zero, found[:outputs]),
        nest.pack_sequence_as(state, found[outputs:]),
    )


def static_state_saving_rnn(
    cell: Any,
    inputs: Sequence[Any],
    state_saver: Any,
    state_name: Any,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """Runs `static_rnn` from a state that an object keeps between runs, and gives it back.

    Args:
        cell: An `fs.nn.rnn_cell.RNNCell`.
        inputs: As for `static_rnn`.
        state_saver: An object with methods `state(name)`, which returns a tensor, and
            `save_state(name, value)`, which returns an operation. Fetching the last output or the
            last state runs what it returned.
        state_name: Its name for the state: names in the structure of `cell.state_size`.
        sequence_length: As for `static_rnn`.
        scope: Name of the variable scope; "rnn" by default.

    Returns:
        The outputs of each step, and the last state.

    Raises:
        InvalidArgumentError: if the names do not fit the state.
    """
    __tracebackhide__ = True
    check_cell("cell", cell)
    sizes, names = cell.state_size, nest.flatten(state_name)
    same = nest.is_nested(sizes) == nest.is_nested(state_name)
    if not same or len(nest.flatten(sizes)) != len(names):
        raise InvalidArgumentError(
            f"expected state_name in the structure of the state_size {sizes}, got {state_name!r}"
        )
    first = nest.pack_sequence_as(sizes, [state_saver.state(name) for name in names])
    outputs, state = static_rnn(
        cell, inputs, initial_state=first, sequence_length=sequence_length, scope=scope
    )
    parts = zip(names, nest.flatten(state), strict=True)
    saved = [state_saver.save_state(name, part) for name, part in parts]
    with get_default_graph().control_dependencies(saved):
        outputs[-1] = nest.map_structure(identity, outputs[-1])
        return outputs, nest.map_structure(identity, state)


def static_bidirectional_rnn(
    cell_fw: Any,
    cell_bw: Any,
    inputs: Sequence[Any],
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any, Any]:
    """Runs one cell forwards and one backwards along a list of inputs, see `static_rnn`.

    Args:
        cell_fw: The cell that runs forwards.
        cell_bw: The cell that runs from a row's last step to its first.
        inputs: The inputs of each step.
        initial_state_fw: First state of the one.
        initial_state_bw: First state of the other.
        dtype: Element type of states and outputs; needed where there is no initial state.
        sequence_length: Integers [batch]; all steps by default.
        scope: Name of the variable scope; "bidirectional_rnn" by default.

    Returns:
        For each step both outputs, one behind the other along the second axis; and both last
        states.
    """
    __tracebackhide__ = True
    check_cell("cell_fw", cell_fw)
    check_cell("cell_bw", cell_bw)
    steps = [tensors_of(x) for x in _checked(inputs)]
    with variable_scope(scope or "bidirectional_rnn"):
        with variable_scope("fw") as fw:
            out_fw, last_fw = static_rnn(
                cell_fw, steps, initial_state_fw, dtype, sequence_length, scope=fw
            )
        with variable_scope("bw") as bw:
            back = _backwards(steps, sequence_length)
            found, last_bw = static_rnn(
                cell_bw, back, initial_state_bw, dtype, sequence_length, scope=bw
            )
            out_bw = _backwards(found, sequence_length)
        outputs = [
            nest.map_structure(lambda f, b: concat([f, b], 1), fw_t, bw_t)
            for fw_t, bw_t in zip(out_fw, out_bw, strict=True)
        ]
    return outputs, last_fw, last_bw


def _backwards(steps: Sequence[Any], lengths: Any) -> list[Any]:
    """Returns the steps from the last to the first, of each row as many as it has."""
    if lengths is None:
        return list(reversed(steps))
    rows = [nest.flatten(step) for step in steps]
    columns = [
        unstack(reverse_sequence(stack(column), lengths, 0, 1), num=len(steps))
        for column in zip(*rows, strict=True)
    ]
    return [
        nest.pack_sequence_as(step, list(row))
        for step, row in zip(steps, zip(*columns, strict=True), strict=True)
    ]
