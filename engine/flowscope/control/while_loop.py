"""`while_loop`: a body that is run as long as a condition holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowscope import nest
from flowscope.control.blocks import Function, free_name, settled
from flowscope.control.cond import widened
from flowscope.control.loop import Loop
from flowscope.control.naming import variable_names
from flowscope.control.record import add_records, no_records
from flowscope.control.tracing import (
    Composite,
    building,
    call,
    from_tensors,
    matched,
    parts,
    results,
    scalar,
    waits_outside,
)
from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.block import discard
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.default import get_default_graph
from flowscope.graph.graph import Graph
from flowscope.graph.indexed_slices import IndexedSlices
from flowscope.graph.op import Spec
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values.dtypes import bool_, resource
from flowscope.graph.values.shapes import Dims, TensorShape, as_dims, text
from flowscope.ops.sparse.sparse_tensor import SparseTensor

__all__ = ["while_loop"]


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    maximum_iterations: Any = None,
    return_same_structure: bool = False,
    recompute: bool = False,
) -> Any:
    """Runs `body` as long as `cond` is true; returns the loop variables at the end, in its form.

    Both functions are called while the graph is built, once: a second time only where a variable's
    shape changes from one iteration to the next and no invariant says so. What they use from
    outside is computed before the loop. Gradients of any order lead through. The graph calls a
    loop variable as `body` calls its argument.

    Args:
        cond: Takes the loop variables, returns a bool scalar.
        body: Takes the loop variables, returns their next values.
        loop_vars: A list or tuple of the values at the start: tensors, numbers, arrays, nested
            structures of them.
        shape_invariants: A shape per variable that holds in all iterations, in the structure of
            `loop_vars`; None for the shape at the start. Without, it is what the values at the
            start and after an iteration have in common.
        parallel_iterations: How many iterations may overlap where operations wait.
        back_prop: Whether gradients flow through the loop; if not, they are None.
        swap_memory: Whether kept values may move to the host's memory; where the loop runs on the
            host nothing moves.
        name: Name scope of the operations.
        maximum_iterations: The loop ends after so many at the latest: an integer scalar.
        return_same_structure: Whether a list of one variable stays a list.
        recompute: Whether gradients run the body again, where they can, and keep the loop variables
            of each iteration in place of all that they read: more time, less memory. Results are
            the same.

    Raises:
        DTypeError: if a dtype changes from one iteration to the next, or `cond` is no bool.
        InvalidArgumentError: if the structure changes, or a shape changes against its invariant.

    Example:
        >>> i, total = fs.while_loop(lambda i, s: i < 5, lambda i, s: (i + 1, s + i), [0, 0])
        >>> fs.Session().run([i, total])
        [np.int32(5), np.int32(10)]
    """
    __tracebackhide__ = True
    _check(cond, body, loop_vars, parallel_iterations)
    graph = get_default_graph()
    with graph.name_scope(name or "while") as scope:
        loop_vars = nest.map_structure(_start, loop_vars)
        start = [t for v in nest.flatten(loop_vars) for t in parts(v)]
        count = [] if maximum_iterations is None else [_count(maximum_iterations)]
        names = variable_names((body, cond), list(loop_vars))
        shapes = [t.spec.shape for t in start]
        fixed = [False] * len(start)
        if shape_invariants is not None:
            shapes = _invariants(loop_vars, shape_invariants, start, names)
            fixed = [True] * len(start)
        built = _settled(graph, scope, cond, body, loop_vars, start, shapes, fixed, names)
        records = [r for r in built.body.records if r.limit is not None]
        last = no_records(records)
        add_records((built.cond, built.body), records, len(start))
        run, turn = settled([built.cond, built.body])
        definition = Loop(
            turn,
            run,
            variables=len(start) + len(last),
            lists=0,
            has_count=bool(count),
            back_prop=bool(back_prop),
            parallel_iterations=int(parallel_iterations),
            swap_memory=bool(swap_memory),
            recompute=bool(recompute),
        )
        captured = (*run.captures, *turn.captures)
        with graph.control_dependencies(waits_outside(graph, [run, turn])):
            op = graph.add(definition, (*count, *start, *last, *captured), "Loop")
    for made, output in zip(records, op.outputs[len(start) :], strict=False):
        made.last = output
    found = from_tensors(built.structure, tuple(op.outputs[: len(start)]))
    _set_wholes(found, built.wholes)
    # As in TensorFlow, one tensor comes alone; with a count one variable does.
    is_alone = len(found) == 1 if count else len(start) == 1
    return found[0] if is_alone and not return_same_structure else found


def _check(cond: Any, body: Any, loop_vars: Any, parallel_iterations: Any) -> None:
    if not callable(cond) or not callable(body):
        raise DTypeError(f"expected functions as cond and body, got {cond!r} and {body!r}")
    if not isinstance(loop_vars, list | tuple):
        raise DTypeError(f"expected a list or tuple of loop_vars, got {loop_vars!r}")
    if not loop_vars:
        raise InvalidArgumentError("expected one loop variable at least, got none")
    is_integer = isinstance(parallel_iterations, int) and not isinstance(parallel_iterations, bool)
    if not is_integer or parallel_iterations <= 0:
        raise DTypeError(
            f"expected an integer of 1 at least as parallel_iterations, got {parallel_iterations!r}"
        )


def _start(value: Any) -> Any:
    """Returns the value of a loop variable at the start: a tensor or a composite."""
    if isinstance(value, Composite | IndexedSlices | SparseTensor):
        return value
    tensor = convert_to_tensor(value)
    if tensor.spec.dtype is resource:
        raise DTypeError(f'a handle cannot be a loop variable: use "{tensor.name}" in the body')
    return tensor


def _count(value: Any) -> Tensor:
    count = convert_to_tensor(value)
    if not count.spec.dtype.is_integer or count.spec.shape not in (None, ()):
        raise DTypeError(f"expected an integer scalar as maximum_iterations, got {count.spec}")
    return count


def _invariants(loop_vars: Any, given: Any, start: list[Tensor], names: list[str]) -> list[Dims]:
    flat = _flat_shapes(loop_vars, given)
    for name, t, dims in zip(names, start, flat, strict=True):
        if not TensorShape(t.spec.shape).is_subtype_of(TensorShape(dims)):
            raise InvalidArgumentError(
                f'loop variable {name} ("{t.name}") is {t.spec} at the start, and its shape '
                f"invariant is {text(dims)}"
            )
    return flat


def _flat_shapes(structure: Any, given: Any) -> list[Dims]:
    """Returns the shapes of `given`, a structure of them like `structure`, one after the other."""
    if not nest.is_nested(structure) and given is None:
        return [t.spec.shape for t in parts(structure)]
    if not nest.is_nested(structure):
        return _leaf_shapes(structure, as_dims(getattr(given, "shape", given)))
    is_shape = isinstance(given, TensorShape) or not nest.is_nested(given)
    children = structure.values() if hasattr(structure, "values") else structure
    if is_shape or len(given) != len(list(children)):
        raise InvalidArgumentError(
            f"expected shape_invariants in the structure of loop_vars, got {given!r}"
        )
    if hasattr(structure, "keys"):
        return [d for k in sorted(structure) for d in _flat_shapes(structure[k], given[k])]
    return [d for s, g in zip(structure, given, strict=True) for d in _flat_shapes(s, g)]


def _leaf_shapes(leaf: Any, dims: Dims) -> list[Dims]:
    """Returns the shapes of the tensors of one loop variable.

    As in TensorFlow, `dims` is the shape of slices' values, and that of a sparse tensor's whole.
    """
    if isinstance(leaf, SparseTensor):
        if not TensorShape(leaf.shape).is_subtype_of(TensorShape(dims)):
            raise InvalidArgumentError(
                f"a sparse tensor of shape {text(as_dims(leaf.shape))} is a loop variable, and its "
                f"shape invariant is {text(dims)}"
            )
        rank = None if dims is None else len(dims)
        return [(None,), (None, rank), (rank,)]
    if isinstance(leaf, IndexedSlices):
        rest = [t.spec.shape for t in parts(leaf)[2:]]
        return [dims, None if dims is None else dims[:1], *rest]
    return [() if isinstance(leaf, Composite) else dims]


class _Built:
    """The two functions of a loop, and the structure of what the body returned."""

    def __init__(
        self, graph: Graph, scope: str, specs: list[Spec], names: list[str], wholes: list[Dims]
    ) -> None:
        self._names = dict(graph._names)
        self.cond = Function(
            graph, free_name(graph, scope + "cond"), graph.block, "the condition of a while_loop"
        )
        self.body = Function(
            graph, free_name(graph, scope + "body"), graph.block, "the body of a while_loop"
        )
        self.structure: Any = None
        #: The shapes of the sparse variables, of the whole.
        self.wholes = wholes
        for function in (self.cond, self.body):
            for spec, name in zip(specs, names, strict=True):
                function.add_parameter(spec, name)

    def trace(self, cond: Any, body: Any, loop_vars: Any) -> None:
        """Calls the user's functions."""
        with building(self.cond, self.cond.name + "/"):
            found = call(cond, "cond", *self._arguments(loop_vars, self.cond))
            self.cond.results = [self.cond.own(_pred(found))]
        with building(self.body, self.body.name + "/"):
            found = call(body, "body", *self._arguments(loop_vars, self.body))
            found = found if isinstance(found, list | tuple) else [found]
            _check_structure(loop_vars, list(found))
            self.structure = _alike(found, list(loop_vars))
            flat = [t for v in nest.flatten(self.structure) for t in results(v, "body", None)]
            self.body.results = [self.body.own(t) for t in flat]

    def _arguments(self, loop_vars: Any, function: Function) -> list[Any]:
        found = list(from_tensors(list(loop_vars), function.inputs))
        _set_wholes(found, self.wholes)
        return found

    def drop(self) -> None:
        """Takes the functions back."""
        for function in (self.body, self.cond):
            function.graph.functions.pop(function.name, None)
            discard(function.graph, function.block, self._names)


def _check_structure(loop_vars: Any, found: list[Any]) -> None:
    try:
        nest.assert_same_structure(list(loop_vars), found)
    except InvalidArgumentError as e:
        raise InvalidArgumentError(
            f"body must return the structure of loop_vars, with {len(loop_vars)} variables: "
            f"{e.message}"
        ) from None


def _alike(found: Any, loop_vars: list[Any]) -> Any:
    """The body's results in the form of the loop variables: slices may become dense."""
    leaves = []
    for i, (v, like) in enumerate(zip(nest.flatten(found), nest.flatten(loop_vars), strict=True)):
        try:
            is_value = v is None or isinstance(v, Operation)
            leaves.append(v if is_value else matched(v, like))
        except DTypeError as e:
            raise DTypeError(f"body returned another kind of variable {i}: {e.message}") from None
    return nest.pack_sequence_as(found, leaves)


def _sparse_in(structure: Any) -> list[SparseTensor]:
    return [v for v in nest.flatten(structure) if isinstance(v, SparseTensor)]


def _set_wholes(structure: Any, wholes: list[Dims]) -> None:
    """Gives the sparse tensors of a structure their static shapes."""
    for v, dims in zip(_sparse_in(structure), wholes, strict=True):
        v.set_shape(TensorShape(dims))


def _pred(value: Any) -> Tensor:
    if isinstance(value, list | tuple) and len(value) == 1:
        (value,) = value
    (pred, *_) = results(value, "cond", None)
    if pred.spec.dtype is not bool_ or pred.spec.shape not in (None, ()):
        raise DTypeError(f'cond must return a bool scalar, got {pred.spec} ("{pred.name}")')
    return scalar(pred)


def _settled(
    graph: Graph,
    scope: str,
    cond: Any,
    body: Any,
    loop_vars: Any,
    start: list[Tensor],
    shapes: list[Dims],
    fixed: list[bool],
    names: list[str],
) -> _Built:
    """Returns the functions for shapes that hold in all iterations: a fixpoint (D10)."""
    wholes = [as_dims(v.shape) for v in _sparse_in(loop_vars)]
    while True:
        specs = [Spec(t.spec.dtype, d, variable=t.spec.variable) for t, d in zip(start, shapes)]
        built = _Built(graph, scope, specs, names, wholes)
        try:
            built.trace(cond, body, loop_vars)
            wide = [
                _next_shape(name, t, d, after, is_fixed)
                for name, t, d, after, is_fixed in zip(
                    names, start, shapes, built.body.results, fixed, strict=True
                )
            ]
        except BaseException:
            built.drop()
            raise
        lasting = _lasting(loop_vars, built.structure)
        after = [as_dims(v.shape) for v in _sparse_in(built.structure)]
        common = [widened(a, b) for a, b in zip(wholes, after, strict=True)]
        if wide == shapes and common == wholes and lasting is None:
            return built
        built.drop()
        shapes, wholes = wide, common
        loop_vars = loop_vars if lasting is None else lasting


def _lasting(loop_vars: Any, after: Any) -> Any:
    """Returns the variables with what holds of them in all iterations; None where nothing changed.

    That is about composites; shapes are dealt with by `_next_shape`.
    """
    before, after = nest.flatten(loop_vars), nest.flatten(after)
    kept = [a.lasting(b) if isinstance(a, Composite) else a for a, b in zip(before, after)]
    is_same = all(a is b for a, b in zip(before, kept, strict=True))
    return None if is_same else nest.pack_sequence_as(loop_vars, kept)


def _next_shape(name: str, start: Tensor, dims: Dims, after: Tensor, is_fixed: bool) -> Dims:
    """Returns a shape that a variable has before and after an iteration.

    Raises:
        DTypeError: if the dtype changes.
        InvalidArgumentError: if the shape changes against an invariant.
    """
    if after.spec.dtype is not start.spec.dtype:
        raise DTypeError(
            f'loop variable {name} ("{start.name}") is {start.spec} at the start and {after.spec} '
            f'after one iteration ("{after.name}"{_place(after)}): its dtype must stay; use fs.cast'
        )
    if TensorShape(after.spec.shape).is_subtype_of(TensorShape(dims)):
        return dims
    if is_fixed:
        wider = text(widened(dims, after.spec.shape)).replace("?", "None").replace("[...]", "None")
        raise InvalidArgumentError(
            f'loop variable {name} ("{start.name}") has the shape invariant {text(dims)}, and is '
            f'{after.spec} after one iteration ("{after.name}"{_place(after)}): give it a wider '
            f"one in shape_invariants (fs.TensorShape({wider})), or none at all"
        )
    return widened(dims, after.spec.shape)


def _place(tensor: Tensor) -> str:
    place = tensor.op.origin.place
    return f", made in {place}" if place else ""
