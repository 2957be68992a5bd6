"""`fs.function`: a Python function of tensors becomes a block, traced once and called often."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from flowscope import nest
from flowscope.control.blocks import Function, free_name, settled
from flowscope.control.specs import outside
from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.constant import Convertible, convert_to_tensor
from flowscope.graph.default import get_default_graph
from flowscope.graph.graph import Graph
from flowscope.graph.op import Spec
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.specs import TensorSpec

__all__ = ["function", "get_function"]


def function(
    func: Callable[..., Any] | None = None,
    input_signature: Sequence[Any] | None = None,
    name: str | None = None,
) -> Any:
    """Makes a Python function of tensors a sub-graph that is built once and called often.

        @fs.function
        def layer(x, w):
            return fs.nn.relu(fs.matmul(x, w))

        y = layer(layer(x, w1), w2)

    `func` runs when the function is called with dtypes and shapes that it was not called with
    before; each call is then one operation. Variables and tensors from outside may be used inside.
    Random operations inside draw other numbers in every call. Gradients lead through calls, to any
    order. Plans inline them, so a call costs nothing when it runs.

    Args:
        func: Takes tensors (and nested structures of them); anything else among its arguments must
            be hashable and belongs to the signature. Returns a tensor or a nested structure.
        input_signature: Specs (`fs.TensorSpec`) of the tensors: one body serves all calls.
        name: Name of the body's scope and of the calls; `func`'s own by default.

    Returns:
        A callable with the arguments of `func`; as a decorator with arguments, a decorator.

    Example:
        >>> @fs.function
        ... def square(x):
        ...     return x * x
        >>> fs.Session().run(square(fs.constant(3.0)) + square(fs.constant(4.0)))
        np.float32(25.0)
    """
    if func is None:
        return functools.partial(function, input_signature=input_signature, name=name)
    return TracedFunction(func, input_signature, name)


def get_function(name: str, graph: Graph | None = None) -> Function:
    """Returns the function `name` of a graph, ready to be called with tensors.

    Raises:
        InvalidArgumentError: if there is none of this name.
    """
    graph = get_default_graph() if graph is None else graph
    if name not in graph.functions:
        known = ", ".join(graph.functions) or "none"
        raise InvalidArgumentError(f"no function is named {name!r}; the graph has {known}")
    return graph.functions[name]  # type: ignore[no-any-return]


class TracedFunction:
    """What `fs.function` returns: finds or builds the body for the arguments, and calls it."""

    def __init__(
        self,
        func: Callable[..., Any],
        input_signature: Sequence[Any] | None,
        name: str | None,
    ) -> None:
        functools.update_wrapper(self, func)
        self._func = func
        self._signature = inspect.signature(func)
        self._specs = None if input_signature is None else list(input_signature)
        self._name = name or func.__name__.strip("<>")
        self._bodies: dict[Graph, dict[Hashable, tuple[Function, Any]]] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Adds a call and returns what the Python function returns, with the call's tensors."""
        __tracebackhide__ = True
        arguments = _Arguments(self._bound(args, kwargs))
        body, structure = self._body(arguments)
        return nest.pack_sequence_as(structure, _results(structure, body(*arguments.tensors)))

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> Function:
        """Returns the body for arguments like these (tensors or `fs.TensorSpec`s), built if new."""
        return self._body(_Arguments(self._bound(args, kwargs)))[0]

    def _bound(self, args: Any, kwargs: Any) -> dict[str, Any]:
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as e:
            raise DTypeError(f'"{self._name}": {e}') from None
        bound.apply_defaults()
        return dict(bound.arguments)

    def _body(self, arguments: _Arguments) -> tuple[Function, Any]:
        graph = get_default_graph()
        bodies = self._bodies.setdefault(graph, {})
        specs = self._specs_of(arguments)
        key = (arguments.static, tuple([(s.dtype, s.shape) for s in specs]))
        try:
            found = bodies.get(key)
        except TypeError:
            raise DTypeError(
                f'"{self._name}" takes tensors and hashable values, got {arguments.static!r}'
            ) from None
        if found is None or not found[0].is_listed:
            found = bodies[key] = self._trace(graph, arguments, specs)
        body, structure = found
        return graph.functions[body.name], structure

    def _specs_of(self, arguments: _Arguments) -> list[Spec]:
        given = [t.spec for t in arguments.tensors]
        if self._specs is None:
            return given
        if len(given) != len(self._specs):
            raise InvalidArgumentError(
                f'"{self._name}" has {len(self._specs)} specs in its input_signature, '
                f"got {len(given)} tensors"
            )
        return [s.spec for s in self._specs]

    def _trace(
        self, graph: Graph, arguments: _Arguments, specs: list[Spec]
    ) -> tuple[Function, Any]:
        body = Function(graph, free_name(graph, self._name), graph.block)
        names = [t.name or "x" for t in arguments.tensors]
        inside = [
            body.add_parameter(outside(s), n.rpartition("/")[2].partition(":")[0])
            for s, n in zip(specs, names, strict=True)
        ]
        values = arguments.with_tensors(inside)
        try:
            with graph.enter_block(body.block), graph.name_scope(body.name + "/"):
                out = _call(self._func, self._signature, values)
                flat = [_result(t) for t in nest.flatten(out)]
                body.results = [body.inside(t) if t is not None and t.op.block is not body.block
                                else t for t in flat if t is not None]  # fmt: skip
        except RecursionError as e:
            del graph.functions[body.name]
            raise InvalidArgumentError(
                f'the functions that "{self._name}" calls, one in the other, are too deep to be '
                "traced from here, for Python's recursion limit: call the innermost ones first, "
                "or raise the limit by sys.setrecursionlimit"
            ) from e
        except BaseException:
            del graph.functions[body.name]
            raise
        (body,) = settled([body])
        shape = [None if t is None else True for t in flat]
        return body, nest.pack_sequence_as(out, shape)

    def __repr__(self) -> str:
        count = sum(len(b) for b in self._bodies.values())
        return f"<fs.function '{self._name}', {count} bodies>"


class _Arguments:
    """The arguments of one call: tensors, and all else as a hashable key."""

    def __init__(self, bound: dict[str, Any]) -> None:
        self._bound = bound
        flat = nest.flatten(bound)
        self.tensors: list[Any] = [_argument(v) for v in flat if _is_tensor(v)]
        form = str(nest.map_structure(lambda _: 0, bound))
        self.static: Hashable = (form, *("<tensor>" if _is_tensor(v) else v for v in flat))

    def with_tensors(self, tensors: list[Tensor]) -> dict[str, Any]:
        """Returns the arguments with other tensors in the place of its own."""
        left = iter(tensors)
        values: dict[str, Any] = nest.map_structure(
            lambda v: next(left) if _is_tensor(v) else v, self._bound
        )
        return values


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor | Convertible | TensorSpec) or hasattr(value, "__array__")


def _argument(value: Any) -> Any:
    return value if isinstance(value, TensorSpec) else convert_to_tensor(value)


def _call(func: Callable[..., Any], signature: inspect.Signature, values: dict[str, Any]) -> Any:
    bound = inspect.BoundArguments(signature, values)
    return func(*bound.args, **bound.kwargs)


def _result(value: Any) -> Tensor | None:
    """Returns a result as a tensor; None for an operation (it runs with the call) and for None."""
    return None if value is None or isinstance(value, Operation) else convert_to_tensor(value)


def _results(structure: Any, tensors: tuple[Tensor, ...]) -> list[Any]:
    left = iter(tensors)
    return [None if s is None else next(left) for s in nest.flatten(structure)]
