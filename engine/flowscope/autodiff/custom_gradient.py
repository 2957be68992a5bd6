"""Functions with gradients of their own: `custom_gradient` and `grad_pass_through`.

A call of such a function adds two kinds of operations behind the function's own. A `GradientHub`
takes the arguments; its outputs have cotangents, one per result, of which the user's function makes
those of the arguments, but no values. A `WithGradient` per result has the result's value and sends
its cotangent to the hub. Plans run the results alone: the hub and what only it needs are left out.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from flowscope import nest
from flowscope.autodiff.registry import is_differentiable
from flowscope.autodiff.sweep import ancestors
from flowscope.cells.user_functions import Held
from flowscope.control.blocks import Parameter
from flowscope.errors import DTypeError, InvalidArgumentError, UnsupportedGradientError
from flowscope.graph.constant import convert_to_tensor, holds_tensor
from flowscope.graph.default import get_default_graph
from flowscope.graph.graph import Graph
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.order import in_order
from flowscope.graph.values.dtypes import DType, resource
from flowscope.graph.values.shapes import Dims
from flowscope.ops.core.build import apply
from flowscope.ops.core.flow import identity
from flowscope.ops.state.variables import Variable

__all__ = ["custom_gradient", "grad_pass_through"]


@frozen
class GradientHub(Op):
    """Where the cotangents of a function's results meet; its outputs have no values.

    Attributes:
        function: Name of the function.
        dtypes, shapes: Of its results.

    Shapes: the function's arguments and the handles of its variables -> its results
    """

    function: str
    dtypes: tuple[DType, ...]
    shapes: tuple[Dims, ...]
    kernel_inputs: ClassVar[int | None] = 0
    has_own_gradient: ClassVar[bool] = True
    held: ClassVar[Held | None] = None

    def infer(self, *inputs: Spec) -> tuple[Spec, ...]:
        return tuple([Spec(d, s) for d, s in zip(self.dtypes, self.shapes, strict=True)])

    def grad(self, g: Any, y: Any, *inputs: Tensor) -> Any:
        raise UnsupportedGradientError(
            f"the gradient of {self.function} is a Python function, which a written graph does not "
            "hold: build this part of the graph anew"
        )

    def kernel(self, xp: ArrayModule) -> Any:
        return None if len(self.dtypes) == 1 else (None,) * len(self.dtypes)


@frozen
class WithGradient(Op):
    """The first input as it is; its cotangent goes to the second, a `GradientHub`'s output."""

    has_own_gradient: ClassVar[bool] = True
    views: ClassVar[Any] = (0,)
    template: ClassVar[str | None] = "{0}"
    kernel_inputs: ClassVar[int | None] = 1
    passes_slices: ClassVar[bool] = True

    def infer(self, x: Spec, hub: Spec) -> Spec:
        return x

    def grad(self, g: Tensor, y: Tensor, x: Tensor, hub: Tensor) -> Any:
        return None, g

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        return x


def custom_gradient(f: Callable[..., Any] | None = None) -> Any:
    """Decorator: gives a function a gradient of its own.

        @fs.custom_gradient
        def log1pexp(x):
            e = fs.exp(x)
            return fs.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))

    Args:
        f: Function or method of tensors that returns its results (a tensor or a nested structure)
            and `grad_fn`. `grad_fn(*dys)` takes a cotangent per result and returns one (or None)
            per argument. Where the results depend on variables, it must take `variables=` too, a
            list, and return two things: the arguments' cotangents, and a list of the variables'.

    Returns:
        A function of tensors; keyword arguments, which are no tensors, are handed on to `f`. It
        may be used inside other such functions, and differentiated as often as `grad_fn` can be.

    Example:
        >>> @fs.custom_gradient
        ... def rounded(v):
        ...     return fs.round(v), lambda dy: dy
        >>> x = fs.constant([0.2, 1.7])
        >>> fs.Session().run([rounded(x), fs.gradients(rounded(x), x)[0]])
        [array([0., 2.], dtype=float32), array([1., 1.], dtype=float32)]
    """
    if f is None:
        return custom_gradient

    return WithOwnGradient(f, f, custom_gradient)


class WithOwnGradient:
    """A function with a gradient of its own; in a class, a method.

    Args:
        function: Takes tensors, returns results and a gradient function.
        wrapped: What users have written.
        decorator: What has made a function with a gradient of that.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        wrapped: Callable[..., Any],
        decorator: Callable[[Callable[..., Any]], Any],
    ) -> None:
        functools.update_wrapper(self, wrapped)
        self._function, self._wrapped, self._decorator = function, wrapped, decorator

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Returns the method of an instance."""
        if instance is None:
            return self
        return self._decorator(self._wrapped.__get__(instance, owner))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the function's results, with its gradient."""
        __tracebackhide__ = True
        f = self._function
        _check_keywords(f, kwargs)
        inputs = [identity(convert_to_tensor(a)) for a in nest.flatten(list(args))]
        results, grad_fn = _results(f, f(*nest.pack_sequence_as(list(args), inputs), **kwargs))
        ys = [convert_to_tensor(y) for y in nest.flatten(results)]
        return nest.pack_sequence_as(results, attach(f, ys, inputs, grad_fn))


def grad_pass_through(f: Callable[..., Any]) -> Any:
    """Returns `f` with the identity's gradient: the results' cotangents become the arguments'.

    Args:
        f: Function of tensors with as many results as arguments.

    Variables inside get no gradient.
    """

    @custom_gradient
    @functools.wraps(f)
    def passing(*args: Any, **kwargs: Any) -> Any:
        def grad(*dys: Tensor, variables: Sequence[Any] = ()) -> Any:
            return (list(dys), [None] * len(variables)) if variables else list(dys)

        return f(*args, **kwargs), grad

    return passing


def attach(
    f: Callable[..., Any],
    ys: Sequence[Tensor],
    inputs: Sequence[Tensor],
    grad_fn: Callable[..., Any],
) -> list[Tensor]:
    """Returns `ys` with the gradient `grad_fn` with respect to `inputs` and to their variables."""
    graph = ys[0].graph if ys else get_default_graph()
    handles = handles_behind(ys, inputs)
    variables = _variables(graph, handles)
    if variables and not _takes_variables(grad_fn):
        names = ", ".join(v.name for v in variables)
        raise DTypeError(
            f"{_name(f)} uses variables ({names}): its grad_fn must take the keyword argument "
            "variables, and return their cotangents as a list behind those of the arguments"
        )
    definition = GradientHub(
        _name(f), tuple([y.spec.dtype for y in ys]), tuple([y.spec.shape for y in ys])
    )
    hold(graph, definition, HubGradient(_name(f), grad_fn, variables))
    hub = graph.add(definition, (*inputs, *handles), "GradientHub")
    return [apply(WithGradient(), y, h) for y, h in zip(ys, hub.outputs, strict=True)]


class HubGradient:
    """The gradient of a hub: calls the user's function and checks what it returns.

    Attributes:
        function: The user's `grad_fn`.
    """

    def __init__(
        self, name: str, function: Callable[..., Any], variables: Sequence[Variable]
    ) -> None:
        self.function = function
        self._name = name
        self._variables = list(variables)

    def __call__(self, op: Operation, *dys: Any) -> list[Any]:
        """Returns a cotangent per input of the hub: arguments, then variables."""
        dys = tuple([None if g is None else convert_to_tensor(g) for g in dys])
        count = len(op.inputs) - len(self._variables)
        if not self._variables:
            return self._counted(self.function(*dys), count, "arguments")
        out = self.function(*dys, variables=list(self._variables))
        if not isinstance(out, list | tuple) or len(out) != 2:
            raise InvalidArgumentError(
                f"the grad_fn of {self._name} must return two things, the cotangents of the "
                "arguments and a list of those of the variables"
            )
        return [
            *self._counted(out[0], count, "arguments"),
            *self._counted(out[1], len(self._variables), "variables"),
        ]

    def with_function(self, function: Callable[..., Any]) -> HubGradient:
        """Returns the same with another `grad_fn`."""
        return HubGradient(self._name, function, self._variables)

    def _counted(self, cotangents: Any, count: int, what: str) -> list[Any]:
        found = nest.flatten(cotangents)
        if len(found) != count:
            raise InvalidArgumentError(
                f"the grad_fn of {self._name} gave {len(found)} cotangents for {count} {what}"
            )
        return found


def hold(graph: Graph, definition: GradientHub, gradient: HubGradient) -> None:
    """Gives a hub its gradient: no attribute, for a function is neither written nor compared."""
    object.__setattr__(definition, "held", Held(graph, gradient, says=gradient.function))


def _check_keywords(f: Callable[..., Any], kwargs: dict[str, Any]) -> None:
    found = [k for k, v in kwargs.items() if holds_tensor([v])]
    if found:
        raise DTypeError(
            f"{_name(f)} has a gradient of its own: pass tensors by position, got {found[0]}="
        )


def _results(f: Callable[..., Any], out: Any) -> tuple[Any, Callable[..., Any]]:
    if isinstance(out, tuple) and len(out) == 2 and callable(out[1]):
        return out
    raise DTypeError(
        f"expected {_name(f)} to return its results and a function grad_fn, got {out!r}"
    )


def _name(f: Callable[..., Any]) -> str:
    return getattr(f, "__name__", type(f).__name__)


def _takes_variables(grad_fn: Callable[..., Any]) -> bool:
    parameters = inspect.signature(grad_fn).parameters
    named = parameters.get("variables")
    if named is not None and named.kind is not named.VAR_POSITIONAL:
        return True
    return any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def handles_behind(ys: Sequence[Tensor], inputs: Sequence[Tensor]) -> list[Tensor]:
    """Returns the handles of the variables on which ys depend, by other ways than the inputs."""
    ends = {t.op for t in inputs}
    found = ancestors(ys, lambda op: op not in ends and is_differentiable(op))
    reads = in_order(found)
    handles = [t for op in reads for t in op.inputs if t.spec.dtype is resource]
    return [t for t in dict.fromkeys(handles) if _is_smooth(t)]


def _is_smooth(handle: Tensor) -> bool:
    return handle.spec.variable is not None and handle.spec.variable.dtype.is_differentiable


def _variables(graph: Graph, handles: Sequence[Tensor]) -> list[Variable]:
    listed = [v for key in graph.collections for v in graph.get_collection(key)]
    by_handle = {v.handle: v for v in listed if isinstance(v, Variable)}
    own = [_outside(h) for h in handles]
    missing = [h.op.name for h in own if h not in by_handle]
    if missing:
        raise InvalidArgumentError(
            "a function with a gradient of its own uses variables that are in no collection: "
            + ", ".join(missing)
        )
    return [by_handle[h] for h in own]


def _outside(handle: Tensor) -> Tensor:
    """Returns a variable's own handle for what stands for it in a function's block."""
    while isinstance(handle.op.definition, Parameter):
        functions = handle.graph.functions.values()
        owner = next(f for f in functions if f.block is handle.op.block)
        handle = owner.captures[handle.op.definition.index - len(owner.inputs)]
    return handle
