"""Cells of recurrent networks in one call, as TensorFlow's `raw_ops` name them.

They are made of other operations, so gradients of any order lead through all their inputs.

Source: names, arguments and meaning are TensorFlow's; Hochreiter & Schmidhuber 1997 with peepholes
of Gers & Schmidhuber 2000; Cho et al. 2014.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from flowscope.control.arrays.tensor_array import TensorArray
from flowscope.control.while_loop import while_loop
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.default import get_default_graph
from flowscope.graph.operation import Tensor
from flowscope.ops.array.arrays import shape
from flowscope.ops.array.clipping import clip_by_value
from flowscope.ops.array.joining import concat, split
from flowscope.ops.array.padding import pad
from flowscope.ops.core.casting import cast
from flowscope.ops.core.flow import identity
from flowscope.ops.host.checks import assert_less_equal, assert_non_negative
from flowscope.ops.linalg.products import matmul
from flowscope.ops.math.elementwise import sigmoid, tanh
from flowscope.ops.nn.bias import bias_add
from flowscope.ops.nn.recurrent_inputs import GRU, LSTM, checked


class LSTMOutput(NamedTuple):
    """What the LSTM blocks return.

    Attributes:
        i, f, o: The input, forget and output gates.
        cs: The memory before the output gate.
        ci: What is new to the memory.
        co: The memory after tanh.
        h: The output.
    """

    i: Tensor
    cs: Tensor
    f: Tensor
    o: Tensor
    ci: Tensor
    co: Tensor
    h: Tensor


class GRUOutput(NamedTuple):
    """What GRUBlockCell returns: reset gate, update gate, candidate, new state."""

    r: Tensor
    u: Tensor
    c: Tensor
    h: Tensor


#: Where the parts of the gates stand in the kernel: in the first form, and in the second.
_ICFO, _IFCO = (0, 2, 1, 3), (0, 1, 2, 3)


def _step(
    x: Tensor,
    cs_prev: Tensor,
    h_prev: Tensor,
    w: Tensor,
    peepholes: tuple[Tensor, Tensor, Tensor] | None,
    b: Tensor,
    order: tuple[int, int, int, int],
    forget_bias: float,
    cell_clip: float,
) -> LSTMOutput:
    parts = split(bias_add(matmul(concat([x, h_prev], 1), w), b), 4, 1)
    i, f, ci, o = [parts[k] for k in order]
    f = f + forget_bias if forget_bias else f
    if peepholes is not None:
        i, f = i + cs_prev * peepholes[0], f + cs_prev * peepholes[1]
    i, f, ci = sigmoid(i), sigmoid(f), tanh(ci)
    cs = ci * i + cs_prev * f
    if cell_clip > 0:
        cs = clip_by_value(cs, -cell_clip, cell_clip)
    o = sigmoid(o + cs * peepholes[2] if peepholes is not None else o)
    co = tanh(cs)
    return LSTMOutput(i, cs, f, o, ci, co, co * o)


def LSTMBlockCell(
    *,
    x: Any,
    cs_prev: Any,
    h_prev: Any,
    w: Any,
    wci: Any,
    wcf: Any,
    wco: Any,
    b: Any,
    forget_bias: float = 1,
    cell_clip: float = 3,
    use_peephole: bool = False,
    name: str | None = None,
) -> LSTMOutput:
    """Returns one step of a long short-term memory.

    Args:
        x: Inputs, [batch, depth].
        cs_prev: Memory before, [batch, units].
        h_prev: Output before, [batch, units].
        w: Kernel of the gates i, ci, f, o, [depth + units, 4 * units].
        wci: Peephole of the input gate, [units]; the peepholes count if `use_peephole`.
        wcf: Peephole of the forget gate.
        wco: Peephole of the output gate.
        b: Bias, [4 * units].
        forget_bias: Added to the forget gate's sum.
        cell_clip: Limit of the memory; none if it is not above 0.
        use_peephole: Whether the gates see the memory.
        name: Name of the operations' scope.

    Shapes: all outputs [batch, units]
    """
    tensors = [convert_to_tensor(v) for v in (x, cs_prev, h_prev, w, wci, wcf, wco, b)]
    x, cs_prev, h_prev, w, *peepholes, b = tensors
    with x.graph.name_scope(name or "LSTMBlockCell"):
        own = (peepholes[0], peepholes[1], peepholes[2]) if use_peephole else None
        x = _checked_lstm(x, (cs_prev, h_prev), own, (w, b), "LSTMBlockCell")
        return _step(x, cs_prev, h_prev, w, own, b, _ICFO, forget_bias, cell_clip)


def BlockLSTM(
    *,
    seq_len_max: Any,
    x: Any,
    cs_prev: Any,
    h_prev: Any,
    w: Any,
    wci: Any,
    wcf: Any,
    wco: Any,
    b: Any,
    forget_bias: float = 1,
    cell_clip: float = 3,
    use_peephole: bool = False,
    name: str | None = None,
) -> LSTMOutput:
    """Returns a long short-term memory over all steps; see `LSTMBlockCell`.

    Args:
        seq_len_max: So many steps are computed, an integer scalar; outputs behind them are zeros.
        x: Inputs, [time, batch, depth].
        cs_prev: Memory before the first step.
        h_prev: Output before the first step.
        w: Kernel of the gates i, ci, f, o.
        wci: Peephole of the input gate.
        wcf: Peephole of the forget gate.
        wco: Peephole of the output gate.
        b: Bias.
        forget_bias: Added to the forget gate's sum.
        cell_clip: Limit of the memory; none if it is not above 0.
        use_peephole: Whether the gates see the memory.
        name: Name of the operations' scope.

    Shapes: all outputs [time, batch, units]
    """
    inputs = (x, cs_prev, h_prev, w, wci, wcf, wco, b)
    return _block(seq_len_max, inputs, _ICFO, forget_bias, cell_clip, use_peephole,
                  name or "BlockLSTM")  # fmt: skip


def BlockLSTMV2(
    *,
    seq_len_max: Any,
    x: Any,
    cs_prev: Any,
    h_prev: Any,
    w: Any,
    wci: Any,
    wcf: Any,
    wco: Any,
    b: Any,
    cell_clip: float = 0,
    use_peephole: bool = False,
    name: str | None = None,
) -> LSTMOutput:
    """Returns a long short-term memory over all steps, as `BlockLSTM`.

    The kernel's gates are i, f, ci, o, and nothing is added to the forget gate.
    """
    inputs = (x, cs_prev, h_prev, w, wci, wcf, wco, b)
    return _block(seq_len_max, inputs, _IFCO, 0.0, cell_clip, use_peephole, name or "BlockLSTMV2")


def _checked_lstm(
    x: Tensor,
    state: tuple[Tensor, Tensor],
    peepholes: tuple[Tensor, Tensor, Tensor] | None,
    weights: tuple[Tensor, Tensor],
    name: str,
    more: tuple[str, ...] = (),
) -> Tensor:
    """Returns x; raises if the inputs do not fit. `more` are the axes before the batch."""
    (_, axes), *others = LSTM
    given = [row for row in others if peepholes is not None or row[0] not in ("wci", "wcf", "wco")]
    inputs = (("x", (*more, *axes)), *given)
    return checked(inputs, (x, *state, *(peepholes or ()), *weights), name)


def _block(
    seq_len_max: Any,
    inputs: tuple[Any, ...],
    order: tuple[int, int, int, int],
    forget_bias: float,
    cell_clip: float,
    use_peephole: bool,
    name: str,
) -> LSTMOutput:
    with get_default_graph().name_scope(name):
        x, cs, h, w, wci, wcf, wco, b = [convert_to_tensor(v) for v in inputs]
        own = (wci, wcf, wco) if use_peephole else None
        x = _checked_lstm(x, (cs, h), own, (w, b), "BlockLSTM", ("time",))
        steps = _checked_steps(cast(convert_to_tensor(seq_len_max), "int32"), shape(x)[0])
        arrays = [TensorArray(x.dtype, steps, element_shape=cs.shape) for _ in LSTMOutput._fields]

        def body(t: Any, cs: Any, h: Any, arrays: Any) -> Any:
            out = _step(x[t], cs, h, w, own, b, order, forget_bias, cell_clip)
            written = [a.write(t, v) for a, v in zip(arrays, out, strict=True)]
            return t + 1, out.cs, out.h, written

        _, _, _, arrays = while_loop(lambda t, *_: t < steps, body, [0, cs, h, arrays])
        behind = shape(x)[0] - steps
        return LSTMOutput(*[pad(a.stack(), [[0, behind], [0, 0], [0, 0]]) for a in arrays])


def _checked_steps(steps: Tensor, times: Tensor) -> Tensor:
    """Returns the number of steps; raises unless it is from 0 to the length of the time axis."""
    text = "expected a seq_len_max from 0 to the length of the time axis of x"
    checks = [
        assert_non_negative(steps, message=text),
        assert_less_equal(steps, times, message=text),
    ]
    with steps.graph.control_dependencies(checks):
        return identity(steps)


def GRUBlockCell(
    *,
    x: Any,
    h_prev: Any,
    w_ru: Any,
    w_c: Any,
    b_ru: Any,
    b_c: Any,
    name: str | None = None,
) -> GRUOutput:
    """Returns one step of a gated recurrent unit.

    Args:
        x: Inputs, [batch, depth].
        h_prev: State before, [batch, units].
        w_ru: Kernel of the gates r, u, [depth + units, 2 * units].
        w_c: Kernel of the candidate, [depth + units, units].
        b_ru: Bias of the gates, [2 * units].
        b_c: Bias of the candidate, [units].
        name: Name of the operations' scope.

    Shapes: all outputs [batch, units]
    """
    x, h_prev, w_ru, w_c, b_ru, b_c = [
        convert_to_tensor(v) for v in (x, h_prev, w_ru, w_c, b_ru, b_c)
    ]
    with x.graph.name_scope(name or "GRUBlockCell"):
        x = checked(GRU, (x, h_prev, w_ru, w_c, b_ru, b_c), "GRUBlockCell")
        r, u = split(sigmoid(bias_add(matmul(concat([x, h_prev], 1), w_ru), b_ru)), 2, 1)
        c = tanh(bias_add(matmul(concat([x, r * h_prev], 1), w_c), b_c))
        return GRUOutput(r, u, c, u * h_prev + (1 - u) * c)
