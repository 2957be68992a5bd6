"""Updates of optimizers as TensorFlow's `raw_ops` name them: one line a rule, up to four forms.

`ApplyX` and `SparseApplyX` return the variable's new value, `ResourceApplyX` and
`ResourceSparseApplyX` the operation. The sparse forms take `indices`, the rows that the gradient
has; rows that are named twice add up first, as in the optimizers.

Source: names, arguments and meaning are TensorFlow's.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from flowscope.graph.constant import constant, convert_to_tensor
from flowscope.graph.unsupported import refuse
from flowscope.graph.values.dtypes import int32
from flowscope.ops.core.build import apply
from flowscope.ops.state import training_ops, variable_ops as state
from flowscope.ops.state.raw.raw_variables import handle_of

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


#: Each rule's arguments in TensorFlow's order, "?" in front of flags.
_ARGUMENTS = {
    "GradientDescent": "var alpha delta",
    "Momentum": "var accum lr grad momentum ?use_nesterov",
    "Adagrad": "var accum lr grad ?update_slots",
    "AdagradDA": (
        "var gradient_accumulator gradient_squared_accumulator grad lr l1 l2 global_step"
    ),
    "Adadelta": "var accum accum_update lr rho epsilon grad",
    "Adam": "var m v beta1_power beta2_power lr beta1 beta2 epsilon grad ?use_nesterov",
    "RMSProp": "var ms mom lr rho momentum epsilon grad",
    "CenteredRMSProp": "var mg ms mom lr rho momentum epsilon grad",
    "Ftrl": "var accum linear grad lr l1 l2 lr_power ?multiply_linear_by_lr",
    "FtrlV2": "var accum linear grad lr l1 l2 l2_shrinkage lr_power ?multiply_linear_by_lr",
    "ProximalGradientDescent": "var alpha l1 l2 delta",
    "ProximalAdagrad": "var accum lr l1 l2 grad",
}
#: Rules whose gradient has all rows.
_DENSE_ONLY = ("GradientDescent", "Adam")


def _rules() -> Iterator[_Rule]:
    """Yields the forms of each rule: by variables and by handles, for all rows and for some."""
    for name, dense in _ARGUMENTS.items():
        op = getattr(training_ops, f"Apply{name.removesuffix('V2')}")
        words = [{"grad": "grad indices", "delta": "grad indices"}.get(w, w) for w in dense.split()]
        forms = {f"Apply{name}": dense, f"SparseApply{name}": " ".join(words)}
        for form, arguments in list(forms.items())[: 1 if name in _DENSE_ONLY else 2]:
            yield _Rule(form, op, arguments)
            yield _Rule(f"Resource{form}", op, arguments)


#: All of them by name.
RULES = {rule.__name__: rule for rule in _rules()}
