"""How families of element-wise ops are made from tables, one line each.

A line says type, docstring, expression and gradient. The kernel is compiled from the expression
that generated code inlines, so the two cannot differ. Dtype and shape rules are shared.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import numpy as np

from flowscope.errors import OpError
from flowscope.graph.op import Array, ArrayModule, Op, Spec
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import DType
from flowscope.graph.values.shapes import broadcast
from flowscope.graph.values.string_values import boxed  # noqa: F401  kernels made of expressions use it
from flowscope.ops.core.broadcasting import unbroadcast
from flowscope.ops.core.build import binary, unary
from flowscope.ops.core.shape_rules import check_kind, check_same

#: Constants of at most so many elements are computed while the graph is built: shapes and indices.
FOLD_SIZE = 16

_ONE = "Args:\n    {parameter}: A tensor.\n    name: Name of the operation."
_TWO = (
    "Args:\n    {first}: A tensor.\n"
    "    {second}: A tensor of the same dtype; the shapes are broadcast.\n"
    "    name: Name of the operation."
)


def orderable(xp: ArrayModule, x: Array) -> Array:
    """Returns numbers of the same order, NaN as the largest: bfloat16's own order has none for it.

    All that sorts or searches asks this first.
    """
    return x.astype(xp.float32) if x.dtype.kind == "V" else x


def folded(op: Op, spec: Spec, *inputs: Spec) -> Spec:
    """Returns `spec` with its value, where all inputs are small integer constants."""
    values = []
    for known in inputs:
        value = known.constant
        if value is None or known.dtype.kind not in "iu" or value.size > FOLD_SIZE:
            return spec
        values.append(value)
    try:
        with np.errstate(all="ignore"):
            value = op.kernel(np, *values)
    except OpError:
        return spec  # e.g. a division by zero in a branch that may never run
    return Spec(spec.dtype, value.shape, value)


class Unary(Op, abstract=True, memory_order="K"):
    """Base of element-wise ops of one input."""

    kinds: ClassVar[str] = "fc"
    out: ClassVar[DType | None] = None
    folds: ClassVar[bool] = False

    def infer(self, x: Spec) -> Spec:
        dtype = x.dtype
        if dtype.kind not in self.kinds:
            check_kind(dtype, self.kinds)
        spec = Spec(self.out or dtype, x.shape)
        return folded(self, spec, x) if self.folds and x.constant is not None else spec


def _is_all(constant: Any, number: int) -> bool:
    """Whether a known value is `number`, and not -0, throughout."""
    if constant is None or constant.size > FOLD_SIZE:
        return False
    return bool((constant == number).all() and not np.signbit(constant).any())


class Binary(Op, abstract=True, memory_order="K"):
    """Base of element-wise ops of two inputs of one dtype, which are broadcast together."""

    kinds: ClassVar[str] = "fiuc"
    out: ClassVar[DType | None] = None
    folds: ClassVar[bool] = False
    #: The number that as second input leaves the first one as it is, bit by bit.
    unit: ClassVar[int | None] = None

    def forwards(self, inputs: tuple[Spec, ...], output: Spec) -> int | None:
        if self.unit is None or output.dtype.kind not in "fiu" or not output.is_static:
            return None
        for mine, other in ((0, 1), (1, 0))[: 1 + self.commutes]:
            is_unit = _is_all(inputs[other].constant, self.unit)
            if is_unit and inputs[mine].shape == output.shape:
                return mine
        return None

    def infer(self, a: Spec, b: Spec) -> Spec:
        dtype = a.dtype
        if dtype is not b.dtype:
            check_same(a, b)
        if dtype.kind not in self.kinds:
            check_kind(dtype, self.kinds)
        spec = Spec(
            self.out or dtype, a.shape if a.shape == b.shape else broadcast(a.shape, b.shape)
        )
        if self.folds and a.constant is not None and b.constant is not None:
            return folded(self, spec, a, b)
        return spec


class UnaryFunction(Protocol):
    """An op function of one tensor."""

    def __call__(self, x: Any, name: str | None = None) -> Tensor:
        """Adds the operation and returns its output."""


class BinaryFunction(Protocol):
    """An op function of two tensors."""

    def __call__(self, x: Any, y: Any, name: str | None = None) -> Tensor:
        """Adds the operation and returns its output."""


UnaryGrad = Callable[[Tensor, Tensor, Tensor], Tensor | None]
BinaryGrad = Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor | None, Tensor | None]]


def unary_op(
    function: str,
    op_type: str,
    doc: str,
    template: str,
    kinds: str = "fc",
    grad: UnaryGrad | None = None,
    reads: str = "",
    scalar: str | None = None,
    out: DType | None = None,
    folds: bool = False,
    name: str | None = None,
    kernel: Callable[..., Any] | None = None,
    devices: tuple[str, ...] = ("CPU", "GPU"),
    parameter: str = "x",
    takes_sparse: bool = False,
    **facts: Any,
) -> UnaryFunction:
    """Defines an element-wise op of one input and returns its op function.

    Args:
        function: Name of the op function.
        op_type: Name of the op type.
        doc: Docstring of both.
        template: The expression over {0}; "" where only `kernel` says it.
        kinds: Kinds of dtypes that it takes.
        grad: The gradient (g, y, x) -> cotangent; None if nothing flows.
        reads: Letters among "x" and "y" (the output) whose values the gradient reads.
        scalar: The expression for NumPy scalars, if there is a better one.
        out: Dtype of the output; the input's if None.
        folds: Whether small integer constants are computed while the graph is built.
        name: Default name of an operation; the op type by default.
        kernel: The kernel (self, xp, x) in place of one from the template.
        devices: Device types with a kernel.
        parameter: Name of the op function's parameter.
        takes_sparse: Whether it takes a SparseTensor, too: 0 stays 0.
        facts: Other class attributes of `Op`, such as `work`.
    """
    namespace: dict[str, Any] = {
        "kinds": kinds,
        "out": out,
        "folds": folds,
        "kernel": kernel or _compiled(template, "x"),
        "devices": devices,
    }
    if grad is not None:
        namespace["grad"] = lambda self, g, y, x: (grad(g, y, x),)
    op = _define(
        op_type, doc, Unary, namespace, template or None, scalar, tuple(reads), grad is not None,
        facts,
    )  # fmt: skip
    default = None if name is None or name == op_type else name

    def call(x: Any, name: str | None = None) -> Any:
        if takes_sparse and type(x) is not Tensor and hasattr(x, "with_values"):
            return x.with_values(unary(op, x.values, name or default))
        return unary(op, x, name or default)

    if parameter != "x":
        call = eval(f"lambda {parameter}, name=None: call({parameter}, name)", {"call": call})  # noqa: S307
    result: UnaryFunction = _named(call, function, f"{doc}\n\n{_ONE.format(parameter=parameter)}")
    return result


def binary_op(
    function: str,
    op_type: str,
    doc: str,
    template: str,
    kinds: str = "fiuc",
    grad: BinaryGrad | None = None,
    reads: str = "",
    scalar: str | None = None,
    out: DType | None = None,
    folds: bool = False,
    kernel: Callable[..., Any] | None = None,
    name: str | None = None,
    unit: int | None = None,
    parameters: tuple[str, str] = ("x", "y"),
    **facts: Any,
) -> BinaryFunction:
    """Defines an element-wise op of two inputs and returns its op function.

    Args as in `unary_op`, but:
        template: The expression over {0} and {1}; "" where only `kernel` says it.
        grad: (g, y, a, b) -> a cotangent for each input, before the sum over broadcast axes.
        reads: Letters among "a", "b" and "y".
        kernel: The kernel (self, xp, a, b) in place of one from the template.
        unit: The number that as y leaves x as it is, bit by bit.
        parameters: Names of the op function's parameters; docstrings call them so, too.
        facts: Other class attributes of `Op`.
    """
    namespace: dict[str, Any] = {
        "kinds": kinds,
        "out": out,
        "folds": folds,
        "unit": unit,
        "kernel": kernel or _compiled(template, "a, b", takes_strings="s" in kinds),
    }
    if grad is not None:

        def backward(self: Op, g: Tensor, y: Tensor, a: Tensor, b: Tensor) -> Any:
            ga, gb = grad(g, y, a, b)
            return unbroadcast(ga, a, b), unbroadcast(gb, b, a)

        namespace["grad"] = backward
    op = _define(
        op_type, doc, Binary, namespace, template or None, scalar, tuple(reads), grad is not None,
        facts,
    )  # fmt: skip
    default = None if name is None or name == op_type else name

    def call(x: Any, y: Any, name: str | None = None) -> Tensor:
        return binary(op, x, y, name or default)

    first, second = parameters
    if parameters != ("x", "y"):
        text = f"lambda {first}, {second}, name=None: call({first}, {second}, name)"
        call = eval(text, {"call": call})  # noqa: S307
    arguments = _TWO.format(first=first, second=second)
    result: BinaryFunction = _named(call, function, f"{doc}\n\n{arguments}")
    return result


def _compiled(template: str, parameters: str, takes_strings: bool = False) -> Callable[..., Any]:
    values = parameters.split(", ")
    body = template.format(*[f"boxed({v})" if takes_strings else v for v in values])
    return eval(f"lambda self, xp, {parameters}: {body}")  # type: ignore[no-any-return]  # noqa: S307


def _define(
    op_type: str,
    doc: str,
    base: type[Op],
    namespace: dict[str, Any],
    template: str | None,
    scalar: str | None,
    reads: tuple[str, ...],
    differentiable: bool,
    facts: dict[str, Any],
) -> Op:
    module = sys._getframe(2).f_globals
    namespace |= {
        "__doc__": doc,
        "__module__": module["__name__"],
        "template": template,
        "scalar_template": scalar,
        "grad_reads": reads,
        "is_differentiable": differentiable,
    }
    cls: Any = type(op_type, (base,), namespace, **facts)
    module[op_type] = cls  # where pickle looks for it
    return cls()  # type: ignore[no-any-return]


def _named(call: Any, function: str, doc: str) -> Any:
    call.__name__ = call.__qualname__ = function
    call.__module__ = sys._getframe(2).f_globals["__name__"]
    call.__doc__ = doc
    return call


bool_ = dtypes.bool_
