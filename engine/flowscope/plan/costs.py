"""Costs: an estimate of the seconds that one invocation of a node takes.

The contract: (node, device type, shapes) -> seconds.

- What was measured wins: a `CostTable` knows the seconds of invocations by op, input dtypes and
  shapes, and device type.
- Else the op's work, which follows from shapes, is divided by a rate of its family. Where shapes
  are not known statically, those count that follow from the fed arrays of the step for which the
  plan is made.
- Where shapes are not known even then, an invocation takes `UNKNOWN_S`.

A plan is made with the costs of that moment and keeps what it has decided by them: figures that are
measured later count for plans that are made later. So nothing moves while a model runs, and
results, which no decision changes by a bit, come in the same time.

The rates are constants: one core of a Xeon at 2.8 GHz, NumPy 2.4, measured op by op with
`flowscope.runtime.cost_learning` on the programs of `tests/plan/test_costs.py`, which compares the
orders of estimates and measurements. For decisions their ratios count, and these differ little
between processors.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flowscope.graph.dtypes import resource
from flowscope.graph.op import Spec
from flowscope.graph.shapes import Dims, is_known, size_of
from flowscope.plan.program import Node, Program, Value

#: Seconds of an invocation whose shapes are unknown.
UNKNOWN_S = 50e-6
#: Seconds of a call of NumPy's, and of a line of Python on a number.
CALL_S = 1e-6
SCALAR_S = 0.05e-6
#: Bytes that are read and written in a second.
BYTES_PER_S = 10e9
#: Multiplications and additions of float32 that a product does in a second; of float64 half.
PRODUCT_FLOPS_PER_S = 60e9
#: What other ops do in a second: they are bound by memory more often.
FLOPS_PER_S = 4e9

#: Calls of NumPy's that one invocation makes, where these are many.
_CALLS = {
    **dict.fromkeys(("SparseSoftmaxCrossEntropyWithLogits", "SoftmaxCrossEntropyWithLogits"), 20),
    **dict.fromkeys(("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"), 20),
    **dict.fromkeys(("MaxPool", "MaxPoolGrad", "AvgPool", "AvgPoolGrad", "FusedBatchNorm"), 20),
    **dict.fromkeys(("ApplyAdam", "ApplyRMSProp", "ApplyAdadelta", "ApplyFtrl"), 16),
    **dict.fromkeys(("ApplyGradientDescent", "ApplyMomentum", "ApplyAdagrad"), 6),
    **dict.fromkeys(("Mean", "Sum", "Softmax", "LogSoftmax", "ArgMax", "OneHot", "GatherGrad"), 5),
    "MatMul": 3,
}

_PRODUCTS = frozenset({
    "MatMul", "Einsum", "Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter", "Conv3D",
    "Conv3DBackpropInput", "Conv3DBackpropFilter",
})  # fmt: skip
#: Seconds per element of the output of element-wise ops that take more than an addition.
_PER_ELEMENT_S = {
    **dict.fromkeys(("Exp", "Expm1", "Log", "Log1p", "Sigmoid", "Tanh", "Softplus", "Rsqrt"), 1e-9),
    **dict.fromkeys(("Sin", "Cos", "Tan", "Atan", "Asin", "Acos", "Erf", "Elu", "Selu"), 5e-9),
    **dict.fromkeys(("Pow", "Lgamma", "Digamma", "Sinh", "Cosh", "Erfc", "Atan2"), 15e-9),
    **dict.fromkeys(("RandomNormal", "RandomUniform", "TruncatedNormal"), 8e-9),
    **dict.fromkeys(("Gather", "GatherNd", "GatherGrad", "ScatterNd", "OneHot"), 3e-9),
    **dict.fromkeys(("Where", "Unique", "StringJoin"), 10e-9),
}
#: Seconds per element and doubling of the sorted axis.
_PER_COMPARISON_S = {"Sort": 4e-9, "ArgSort": 6e-9, "TopK": 3e-9, "FFT": 0.6e-9, "RFFT": 0.6e-9}
#: Seconds per m * n * min(m, n) of each matrix that LAPACK takes apart.
_PER_CUBE_S = {
    "Cholesky": 0.1e-9, "Lu": 0.2e-9, "MatrixDeterminant": 0.2e-9, "LogMatrixDeterminant": 0.2e-9,
    "MatrixSolve": 0.2e-9, "MatrixTriangularSolve": 0.1e-9, "MatrixInverse": 0.4e-9, "Qr": 0.6e-9,
    "SelfAdjointEig": 2e-9, "Svd": 2e-9, "PseudoInverse": 3e-9, "Eig": 10e-9,
    "MatrixExponential": 2e-9, "MatrixSquareRoot": 10e-9, "MatrixLogarithm": 20e-9,
}  # fmt: skip


def estimate(node: Node, inputs: Sequence[Spec] = (), outputs: Sequence[Spec] = ()) -> float:
    """Returns the seconds of one invocation as they follow from shapes.

    Args:
        node: The node. One with blocks takes as long as one run of each of them.
        inputs, outputs: What is known of them; the node's own specs by default.
    """
    if node.blocks:
        return sum((estimate(n) for block in node.blocks for n in block.nodes), CALL_S)
    ins = tuple(inputs) or tuple([v.spec for v in node.inputs])
    outs = tuple(outputs) or tuple([v.spec for v in node.outputs])
    for spec in (*outs, *ins):
        if spec.shape != () or spec.dtype is resource:
            break
    else:
        return SCALAR_S if node.op.template else CALL_S
    calls = CALL_S * _CALLS.get(node.op.type, 1)
    if node.op.views or (node.op.reads_state and not node.op.writes_state):
        return calls  # nothing is copied
    found = _of_family(node.op.type, ins, outs)
    if found is not None:
        return calls + found
    cost = node.op.cost(ins, outs)
    if cost.flops is None or cost.nbytes is None:
        return UNKNOWN_S
    rate = FLOPS_PER_S
    if node.op.type in _PRODUCTS:
        rate = PRODUCT_FLOPS_PER_S / (2 if outs[0].dtype.size > 4 else 1)
    return calls + cost.flops / rate + cost.nbytes / BYTES_PER_S


def _of_family(op_type: str, inputs: tuple[Spec, ...], outputs: tuple[Spec, ...]) -> float | None:
    """Returns the seconds of the work of an op whose family has a rate of its own."""
    if (rate := _PER_ELEMENT_S.get(op_type)) is not None:
        size = size_of(outputs[0].shape)
        return UNKNOWN_S if size is None else rate * size
    if (rate := _PER_COMPARISON_S.get(op_type)) is not None:
        size, shape = size_of(inputs[0].shape), inputs[0].shape
        if size is None or not shape or shape[-1] is None:
            return UNKNOWN_S
        return rate * size * math.log2(max(2, shape[-1]))
    if (rate := _PER_CUBE_S.get(op_type)) is not None:
        size, shape = size_of(inputs[0].shape), inputs[0].shape
        if size is None or shape is None or len(shape) < 2:
            return UNKNOWN_S
        return rate * size * min(d or 0 for d in shape[-2:])
    return None


#: An op, the dtypes and shapes of its inputs, the type of its device.
_Key = tuple[Any, ...]


@dataclass
class _Measured:
    seconds: float
    count: int


class CostTable:
    """What was measured, of a session's graph.

    The quickest of several measurements counts: what others do on the machine adds to the rest.
    """

    def __init__(self) -> None:
        self._measured: dict[_Key, _Measured] = {}

    def learn(self, node: Node, inputs: Sequence[Any], seconds: float) -> None:
        """Notes what one invocation took.

        Args:
            node: The node.
            inputs: The arrays that it was given.
            seconds: What it took.
        """
        shapes = [tuple(getattr(x, "shape", ())) for x in inputs]
        key = _key(node, shapes)
        if key is None:
            return
        known = self._measured.get(key)
        if known is None:
            self._measured[key] = _Measured(seconds, 1)
        else:
            known.seconds, known.count = min(known.seconds, seconds), known.count + 1

    def find(self, node: Node, shapes: Sequence[Dims]) -> float | None:
        """Returns the seconds of invocations with inputs of these shapes; None if not measured."""
        if not self._measured or any(s is None or None in s for s in shapes):
            return None
        key = _key(node, shapes)
        found = None if key is None else self._measured.get(key)
        return None if found is None else found.seconds

    def __len__(self) -> int:
        return len(self._measured)


def _key(node: Node, shapes: Sequence[Any]) -> _Key | None:
    if node.blocks or node.op.is_handle or node.op.is_blocking:
        return None
    dtypes = tuple([v.spec.dtype for v in node.inputs])
    device = node.device.rpartition("device:")[2].partition(":")[0]
    return node.op, dtypes, tuple([tuple(s) for s in shapes]), device


class Costs:
    """The costs of one program, as they are while its plan is made.

    Args:
        table: What was measured.
        specs: What is known of values beyond their own specs; see `fed_specs`.
    """

    def __init__(
        self, table: CostTable | None = None, specs: Mapping[Value, Spec] | None = None
    ) -> None:
        self._table = table or CostTable()
        self._specs = specs or {}

    def seconds(self, node: Node) -> float:
        """Returns the seconds of one invocation of a node of the program."""
        known = self._specs
        if node.blocks:
            return sum((self.seconds(n) for b in node.blocks for n in b.nodes), CALL_S)
        inputs = [known.get(v, v.spec) for v in node.inputs]
        measured = self._table.find(node, [s.shape for s in inputs])
        if measured is not None:
            return measured
        return estimate(node, inputs, [known.get(v, v.spec) for v in node.outputs])


def fed_specs(program: Program, shapes: Iterable[Dims]) -> dict[Value, Spec]:
    """Returns what values are like in a step whose feeds have these shapes.

    Values in blocks are left as they are. Where the shapes fit no node that takes them, the step
    will fail there: nothing is known of it then.

    Args:
        program: The program, in order.
        shapes: One per feed.
    """
    found: dict[Value, Spec] = {}
    for value, shape in zip(program.feeds, shapes, strict=True):
        if shape is not None and not is_known(value.spec.shape):
            found[value] = Spec(value.spec.dtype, tuple(shape))
    for node in program.nodes if found else ():
        if node.blocks or not any(v in found for v in node.inputs):
            continue
        try:
            inferred = node.op.infer(*[found.get(v, v.spec) for v in node.inputs])
        except Exception:  # whatever is wrong with these shapes is told when the step runs
            return {}
        specs = (inferred,) if isinstance(inferred, Spec) else tuple(inferred)
        found.update(zip(node.outputs, specs, strict=False))
    return found


__all__ = ["CALL_S", "SCALAR_S", "UNKNOWN_S", "CostTable", "Costs", "estimate", "fed_specs"]
