"""Updates of optimizers as TensorFlow's `raw_ops` name them: one line a rule, two forms of each.

`ApplyX` and `SparseApplyX` return the variable's new value, `ResourceApplyX` and
`ResourceSparseApplyX` the operation. The sparse forms take `indices`, the rows that the gradient
has; rows that are named twice add up first, as in the optimizers.

Source: names, arguments and meaning are TensorFlow's.
"""

from __future__ import annotations

import inspect
from typing import Any

from flowscope.graph.constant import constant, convert_to_tensor
from flowscope.graph.dtypes import int32
from flowscope.graph.unsupported import refuse
from flowscope.ops.core.build import apply
from flowscope.ops.state import training_ops, variable_ops as state
from flowscope.ops.state.raw_variables import handle_of

#: TensorFlow's names of slots that are called otherwise here.
_SLOTS = {"total": "gradient_accumulator", "squares": "gradient_squared_accumulator"}
#: What flags are by default.
_FLAGS = {"use_nesterov": False, "update_slots": True, "multiply_linear_by_lr": False}


class _Rule:
    """One form of a rule: a function of keyword arguments."""

    def __init__(self, name: str, op: type[training_ops.Apply], arguments: str) -> None:
        self.__name__ = self.__qualname__ = name
        self.__module__ = __name__
        self._op = op
        words = arguments.split()
        self._flags = [w[1:] for w in words if w[0] == "?"]
        self._values = [w for w in words if w[0] != "?"]
        self._returns_op = name.startswith("Resource")
        what = "an operation that does" if self._returns_op else "the variable's new value after"
        rule = (op.__doc__ or "").partition("\n")[0]
        self.__doc__ = f"Returns {what} one update: {rule}"

    @property
    def __signature__(self) -> inspect.Signature:
        """The keyword arguments."""
        kind = inspect.Parameter.KEYWORD_ONLY
        flags = {"use_locking": False, **{f: _FLAGS[f] for f in self._flags}, "name": None}
        needed = [inspect.Parameter(n, kind) for n in self._values]
        return inspect.Signature(
            [*needed, *[inspect.Parameter(n, kind, default=v) for n, v in flags.items()]]
        )

    def __call__(self, *args: Any, **given: Any) -> Any:
        """Adds the update; the arguments are those of the signature."""
        try:
            bound = self.__signature__.bind(*args, **given)
        except TypeError as e:
            raise TypeError(f"{self.__name__}() {e}") from None
        bound.apply_defaults()
        out = self._applied(**bound.arguments)
        return out.op if self._returns_op else out

    def _applied(self, use_locking: bool, name: str | None, **given: Any) -> Any:
        del use_locking  # updates are always atomic
        op = self._definition(given)
        var = handle_of(given["var"])
        dtype = state.variable_spec(var.spec).dtype
        slots = [handle_of(given[_SLOTS.get(s, s)]) for s in op.slots]
        numbers = [
            constant(0, dtype) if n not in given else convert_to_tensor(given[n], dtype)
            for n in op.numbers
        ]
        grad = [convert_to_tensor(given["grad" if "grad" in given else "delta"], dtype)]
        if "indices" in given:
            grad.append(convert_to_tensor(given["indices"], preferred_dtype=int32))
        return apply(op, var, *slots, *numbers, *grad, name=name or self.__name__)

    def _definition(self, given: dict[str, Any]) -> training_ops.Apply:
        if self._flags and self._op is not training_ops.ApplyMomentum:
            refuse(f"raw_ops.{self.__name__}", **{f: given[f] for f in self._flags})
        if self._op is training_ops.ApplyMomentum:
            return training_ops.ApplyMomentum(bool(given["use_nesterov"]))
        return self._op()

    def __repr__(self) -> str:
        return f"<function {self.__name__}>"


def _forms(name: str, op: type[training_ops.Apply], arguments: str) -> tuple[_Rule, _Rule]:
    """Returns the forms of a rule that take variables and that take handles.

    Args:
        name: TensorFlow's name of the first form.
        op: The op.
        arguments: TensorFlow's arguments, "?" in front of flags.
    """
    return _Rule(name, op, arguments), _Rule(f"Resource{name}", op, arguments)


ApplyGradientDescent, ResourceApplyGradientDescent = _forms(
    "ApplyGradientDescent", training_ops.ApplyGradientDescent, "var alpha delta"
)
ApplyMomentum, ResourceApplyMomentum = _forms(
    "ApplyMomentum", training_ops.ApplyMomentum, "var accum lr grad momentum ?use_nesterov"
)
SparseApplyMomentum, ResourceSparseApplyMomentum = _forms(
    "SparseApplyMomentum",
    training_ops.ApplyMomentum,
    "var accum lr grad indices momentum ?use_nesterov",
)
ApplyAdagrad, ResourceApplyAdagrad = _forms(
    "ApplyAdagrad", training_ops.ApplyAdagrad, "var accum lr grad ?update_slots"
)
SparseApplyAdagrad, ResourceSparseApplyAdagrad = _forms(
    "SparseApplyAdagrad", training_ops.ApplyAdagrad, "var accum lr grad indices ?update_slots"
)
ApplyAdagradDA, ResourceApplyAdagradDA = _forms(
    "ApplyAdagradDA",
    training_ops.ApplyAdagradDA,
    "var gradient_accumulator gradient_squared_accumulator grad lr l1 l2 global_step",
)
SparseApplyAdagradDA, ResourceSparseApplyAdagradDA = _forms(
    "SparseApplyAdagradDA",
    training_ops.ApplyAdagradDA,
    "var gradient_accumulator gradient_squared_accumulator grad indices lr l1 l2 global_step",
)
ApplyAdadelta, ResourceApplyAdadelta = _forms(
    "ApplyAdadelta", training_ops.ApplyAdadelta, "var accum accum_update lr rho epsilon grad"
)
SparseApplyAdadelta, ResourceSparseApplyAdadelta = _forms(
    "SparseApplyAdadelta",
    training_ops.ApplyAdadelta,
    "var accum accum_update lr rho epsilon grad indices",
)
ApplyAdam, ResourceApplyAdam = _forms(
    "ApplyAdam",
    training_ops.ApplyAdam,
    "var m v beta1_power beta2_power lr beta1 beta2 epsilon grad ?use_nesterov",
)
ApplyRMSProp, ResourceApplyRMSProp = _forms(
    "ApplyRMSProp", training_ops.ApplyRMSProp, "var ms mom lr rho momentum epsilon grad"
)
SparseApplyRMSProp, ResourceSparseApplyRMSProp = _forms(
    "SparseApplyRMSProp",
    training_ops.ApplyRMSProp,
    "var ms mom lr rho momentum epsilon grad indices",
)
ApplyCenteredRMSProp, ResourceApplyCenteredRMSProp = _forms(
    "ApplyCenteredRMSProp",
    training_ops.ApplyCenteredRMSProp,
    "var mg ms mom lr rho momentum epsilon grad",
)
SparseApplyCenteredRMSProp, ResourceSparseApplyCenteredRMSProp = _forms(
    "SparseApplyCenteredRMSProp",
    training_ops.ApplyCenteredRMSProp,
    "var mg ms mom lr rho momentum epsilon grad indices",
)
ApplyFtrl, ResourceApplyFtrl = _forms(
    "ApplyFtrl",
    training_ops.ApplyFtrl,
    "var accum linear grad lr l1 l2 lr_power ?multiply_linear_by_lr",
)
SparseApplyFtrl, ResourceSparseApplyFtrl = _forms(
    "SparseApplyFtrl",
    training_ops.ApplyFtrl,
    "var accum linear grad indices lr l1 l2 lr_power ?multiply_linear_by_lr",
)
ApplyFtrlV2, ResourceApplyFtrlV2 = _forms(
    "ApplyFtrlV2",
    training_ops.ApplyFtrl,
    "var accum linear grad lr l1 l2 l2_shrinkage lr_power ?multiply_linear_by_lr",
)
SparseApplyFtrlV2, ResourceSparseApplyFtrlV2 = _forms(
    "SparseApplyFtrlV2",
    training_ops.ApplyFtrl,
    "var accum linear grad indices lr l1 l2 l2_shrinkage lr_power ?multiply_linear_by_lr",
)
ApplyProximalGradientDescent, ResourceApplyProximalGradientDescent = _forms(
    "ApplyProximalGradientDescent",
    training_ops.ApplyProximalGradientDescent,
    "var alpha l1 l2 delta",
)
SparseApplyProximalGradientDescent, ResourceSparseApplyProximalGradientDescent = _forms(
    "SparseApplyProximalGradientDescent",
    training_ops.ApplyProximalGradientDescent,
    "var alpha l1 l2 grad indices",
)
ApplyProximalAdagrad, ResourceApplyProximalAdagrad = _forms(
    "ApplyProximalAdagrad", training_ops.ApplyProximalAdagrad, "var accum lr l1 l2 grad"
)
SparseApplyProximalAdagrad, ResourceSparseApplyProximalAdagrad = _forms(
    "SparseApplyProximalAdagrad",
    training_ops.ApplyProximalAdagrad,
    "var accum lr l1 l2 grad indices",
)
