"""Gradients that users register: by op type, by a name that takes another's place, or for one use.

Which function is an operation's gradient: the one given by `custom_gradient`, else the one
registered under the name that `Graph.gradient_override_map` gave it, else the one registered for
its op type, else its op's own `grad`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from flowscope.cells import Run, notebook
from flowscope.cells.lookup import run_of
from flowscope.cells.user_functions import Held, held_by
from flowscope.errors import DTypeError, RegistrationError, UnsupportedGradientError
from flowscope.graph.default import get_default_graph
from flowscope.graph.op import Op, find_op_class, is_arriving
from flowscope.graph.operation import Operation

#: `(op, *cotangents of its outputs)` -> a cotangent (or None) per input, or the only one.
GradientFunction = Callable[..., Any]
_Function = TypeVar("_Function", bound=GradientFunction)

#: By op type or name; None for what is not differentiable.
_registered: dict[str, GradientFunction | None] = {}
#: Op types for which TensorFlow registers no gradient, not even that there is none: asking for the
#: gradient of what one returns is an error there, where it is None for others.
_UNREGISTERED = frozenset(
    [
        "All",
        "AllCandidateSampler",
        "Any",
        "Bincount",
        "Bitcast",
        "BroadcastArgs",
        "ComputeAccidentalHits",
        "DecodeCSV",
        "Dequantize",
        "Fingerprint",
        "FixedUnigramCandidateSampler",
        "HistogramFixedWidth",
        "IgammaGradA",
        "InTopK",
        "IsFinite",
        "IsInf",
        "IsNan",
        "LearnedUnigramCandidateSampler",
        "ListDiff",
        "LogUniformCandidateSampler",
        "QuantizeV2",
        "QuantizedAvgPool",
        "QuantizedConv2D",
        "QuantizedMatMul",
        "QuantizedMaxPool",
        "QuantizedReluX",
        "RandomPoisson",
        "RandomUniformInt",
        "RegexFullMatch",
        "SparseReshape",
        "StringFormat",
        "StringLength",
        "StringStrip",
        "Substr",
        "UnicodeTranscode",
        "UniformCandidateSampler",
        "Unique",
        "UniqueWithCounts",
        "UnravelIndex",
        "UnsortedSegmentJoin",
        "Where",
    ]
)
#: Of names that cells have registered: the run of the cell, and the function with what it does.
_by_cells: dict[str, tuple[weakref.ref[Run], Held]] = {}


class RegisterGradient:
    """Decorator: registers the gradient of an op type, or one for `gradient_override_map`.

        @fs.RegisterGradient("Straight")
        def _straight(op, g):
            return g

    The function gets the operation (`op.inputs`, `op.outputs`, `op.get_attr`) and a cotangent per
    output, and returns a cotangent or None per input: a list, or a tensor where there is one input.

    Args:
        op_type: The op type, or another name.

    Raises:
        RegistrationError: if there is a gradient of this name, or the op type has its own.
    """

    def __init__(self, op_type: str) -> None:
        if not isinstance(op_type, str):
            raise DTypeError(f"expected the name of an op type, got {op_type!r}")
        self._name = op_type

    def __call__(self, f: _Function) -> _Function:
        """Registers `f` and returns it."""
        _register(self._name, f)
        return f


def no_gradient(op_type: str) -> None:
    """Declares that ops of this type have no gradient: nothing flows through.

    Raises:
        RegistrationError: if there is a gradient of this name, or the op type has its own.
    """
    if not isinstance(op_type, str):
        raise DTypeError(f"expected the name of an op type, got {op_type!r}")
    _register(op_type, None)


NoGradient = NotDifferentiable = no_gradient


def _register(name: str, function: GradientFunction | None) -> None:
    known = find_op_class(name)
    has_own = known is not None and (known.grad is not Op.grad or not known.is_differentiable)
    graph = get_default_graph()
    run = run_of(graph)
    if is_arriving() and has_own:
        return
    is_free = name not in _registered or is_arriving() or _may_replace(name, run)
    if has_own or not is_free:
        raise RegistrationError(
            f"there is a gradient named {name!r} already: register yours under another name and "
            "use Graph.gradient_override_map"
        )
    if run is not None:
        _note(name, run, Held(graph, function))
    _registered[name] = function


def _may_replace(name: str, run: Run | None) -> bool:
    """Whether a cell that runs now may register a name anew: one that a run before has registered.

    A cell that is run again does so, and so does one into which code was moved.
    """
    earlier = _by_cells.get(name)
    return run is not None and earlier is not None and earlier[0]() is not run


def _note(name: str, run: Run, held: Held) -> None:
    """Notes what a cell registers; gradients that an earlier function has made may be stale."""
    earlier, before = _by_cells.get(name), _registered.get(name)
    _by_cells[name] = weakref.ref(run), held
    if earlier is None:
        return

    def undo() -> None:
        _by_cells[name], _registered[name] = earlier, before

    run.on_undo(undo)
    found = held.compared(earlier[1], lambda thing: thing)
    if found is None or not found.is_same:
        notebook.renew_gradient(name, run)


def is_differentiable(op: Operation) -> bool:
    """Whether cotangents can flow through an operation."""
    name = op.gradient or op.type
    if name in _registered:
        return _registered[name] is not None
    return bool(op.gradient) or op.definition.is_differentiable


def is_unregistered(op: Operation) -> bool:
    """Whether asking for the gradient of what an operation returns is an error."""
    return op.type in _UNREGISTERED and op.type not in _registered and not op.gradient


def function_of(op: Operation) -> GradientFunction | None:
    """Returns the function in place of the op's own gradient, None if there is none.

    Raises:
        UnsupportedGradientError: if the operation asks for a name that is not registered.
    """
    held = held_by(op.definition) if op.definition.has_own_gradient else None
    if held is not None:
        own: GradientFunction | None = held.function
        return own
    if op.gradient and op.gradient not in _registered:
        raise UnsupportedGradientError(
            f'no gradient is registered under the name "{op.gradient}": '
            f'decorate a function with @fs.RegisterGradient("{op.gradient}")'
        )
    return _registered.get(op.gradient or op.type)


__all__ = [
    "NoGradient",
    "NotDifferentiable",
    "RegisterGradient",
    "no_gradient",
]
