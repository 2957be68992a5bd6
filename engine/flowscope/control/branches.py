"""`cond`, `case` and `switch_case`: of several functions of no arguments one runs."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flowscope import nest
from flowscope.control.blocks import Function, free_name, settled
from flowscope.control.cond import FREE, Cond
from flowscope.control.tracing import (
    Composite,
    building,
    call,
    from_tensors,
    kind,
    matched,
    parts,
    results,
    scalar,
    waits_outside,
)
from flowscope.errors import (
    ControlFlowWarning,
    DTypeError,
    InvalidArgumentError,
)
from flowscope.graph.constant import Convertible, constant, convert_to_tensor
from flowscope.graph.default import get_default_graph
from flowscope.graph.graph import Graph
from flowscope.graph.indexed_slices import IndexedSlices
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.origins.origin import capture, stacklevel
from flowscope.graph.values.dtypes import bool_, int32
from flowscope.ops.array.joining import stack
from flowscope.ops.core.flow import identity
from flowscope.ops.host.checks import Assert
from flowscope.ops.math.elementwise import equal
from flowscope.ops.math.reductions import reduce_sum

__all__ = ["case", "cond", "switch_case"]


def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    strict: bool = False,
    name: str | None = None,
    fn1: Callable[[], Any] | None = None,
    fn2: Callable[[], Any] | None = None,
) -> Any:
    """The result of `true_fn` where `pred` is true, else that of `false_fn`.

    Both functions are called once, while the graph is built. What is made inside them runs only if
    the branch is taken; what they use from outside has run already. Effects inside, such as
    assignments, run with their branch. Gradients lead through.

    Args:
        pred: A bool scalar tensor.
        true_fn: Returns tensors (or what can be converted, or operations) in any nested structure.
        false_fn: Returns the same structure, with the same dtypes.
        strict: Whether a list of one result stays a list; if not, it is that result.
        name: Name scope of the operations.
        fn1, fn2: Old names of `true_fn` and `false_fn`.

    Raises:
        DTypeError: if `pred` is no bool tensor, or the branches' dtypes differ.
        InvalidArgumentError: if the branches return other structures.

    Example:
        >>> x = fs.placeholder(fs.float32, [])
        >>> y = fs.cond(x > 0.0, lambda: fs.sqrt(x), lambda: -x)
        >>> sess = fs.Session()
        >>> sess.run(y, {x: 9.0}), sess.run(y, {x: -2.0})
        (np.float32(3.0), np.float32(2.0))
    """
    __tracebackhide__ = True
    then, orelse = _either(true_fn, fn1, "true_fn"), _either(false_fn, fn2, "false_fn")
    if isinstance(pred, bool):
        raise DTypeError("expected a bool tensor as pred, got a Python bool: use `if`")
    graph = get_default_graph()
    with graph.name_scope(name or "cond") as scope:
        pred = scalar(convert_to_tensor(pred))
        branches = [
            _Branch(graph, scope + "then", then, "true_fn", True, strict),
            _Branch(graph, scope + "else", orelse, "false_fn", False, strict),
        ]
        try:
            tensors = _joined(graph, pred, branches)
        except BaseException:
            for branch in branches:
                graph.functions.pop(branch.function.name, None)
            raise
    return _unpacked(from_tensors(_common(branches), tensors), strict)


def _unpacked(value: Any, strict: bool) -> Any:
    """Returns the one element of a list, if lists need not stay lists."""
    is_one = not strict and isinstance(value, list | tuple) and len(value) == 1
    return value[0] if is_one else value


def _either(new: Any, old: Any, name: str) -> Any:
    if new is not None and old is not None:
        raise DTypeError(f"{name} was given twice, by its new and its old name")
    if not callable(old if new is None else new):
        raise DTypeError(f"expected a function as {name}, got {new!r}")
    return old if new is None else new


class _Branch:
    """One branch: the block, and the structure of what its function returned."""

    def __init__(
        self, graph: Graph, name: str, fn: Any, what: str, value: bool, strict: bool
    ) -> None:
        self.what = what
        self.value = value
        self._scope = free_name(graph, name)
        self.function = Function(graph, self._scope, graph.block, "a branch of a cond")
        with building(self.function, self._scope + "/"):
            self.structure = _unpacked(call(fn, what), strict)

    def finish(self, other: _Branch) -> None:
        """Turns what the function returned into tensors, alike in both branches."""
        pairs = zip(nest.flatten(self.structure), nest.flatten(other.structure), strict=True)
        with building(self.function, self._scope + "/"):
            leaves = [_alike(mine, its, i) for i, (mine, its) in enumerate(pairs)]
            ran = constant(self.value) if any(isinstance(v, Operation) for v in leaves) else None
            flat = [t for v in leaves for t in results(v, self.what, ran)]
            self._warn(flat)
            self.function.results = [self.function.own(t) for t in flat]
        self.structure = nest.pack_sequence_as(self.structure, leaves)

    def _warn(self, results: list[Tensor]) -> None:
        """Warns of what is computed in any case though a branch alone returns it (D4).

        It does so once for each of the user's lines.
        """
        block, graph = self.function.block, self.function.graph
        for t in results:
            if t.op.block is block or t.op.type in FREE or t.consumers():
                continue
            place, seen = capture().place, graph.extras.setdefault("warned of branches", set())
            if place in seen:
                continue
            seen.add(place)
            warnings.warn(
                f'{self.what} returns "{t.name}", which was made outside and is used nowhere else: '
                "it is computed whichever branch is taken; call what makes it inside "
                f"{self.what} to compute it only there",
                ControlFlowWarning,
                stacklevel=stacklevel(),
            )


def _alike(mine: Any, its: Any, i: int) -> Any:
    """Returns one branch's result in the form of the other's: dense where one is dense."""
    if isinstance(mine, Operation) or isinstance(its, Operation):
        return mine
    try:
        is_other = isinstance(its, IndexedSlices) and not isinstance(mine, IndexedSlices)
        return mine if is_other else matched(mine, its)
    except DTypeError:
        raise DTypeError(
            f"the branches return {kind(mine)} and {kind(its)} as result {i}"
        ) from None


def _common(branches: list[_Branch]) -> Any:
    """Returns the structure of the results, of which holds what holds of both branches'."""
    first, second = (nest.flatten(b.structure) for b in branches)
    leaves = [a.common(b) if isinstance(a, Composite) else a for a, b in zip(first, second)]
    return nest.pack_sequence_as(branches[0].structure, leaves)


def _joined(graph: Graph, pred: Tensor, branches: list[_Branch]) -> tuple[Tensor, ...]:
    """Adds the operation; returns its outputs."""
    first, second = branches
    try:
        nest.assert_same_structure(first.structure, second.structure)
    except InvalidArgumentError as e:
        raise type(e)(f"the branches return different structures: {e.message}") from None
    first.finish(second)
    second.finish(first)
    pairs = zip(first.function.results, second.function.results, strict=True)
    for i, (a, b) in enumerate(pairs):
        if a.spec.dtype is not b.spec.dtype:
            raise DTypeError(
                f"the branches must return the same dtypes: result {i} is {a.spec} from true_fn "
                f'("{a.name}") and {b.spec} from false_fn ("{b.name}"): use fs.cast'
            )
    functions = settled([b.function for b in branches])
    captured = [t for f in functions for t in f.captures]
    with graph.control_dependencies(waits_outside(graph, functions)):
        op = graph.add(Cond(*functions), (pred, *captured), "Cond")
    return tuple(op.outputs[: len(functions[0].results)])


def case(
    pred_fn_pairs: Any,
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> Any:
    """The result of the function of the first true predicate.

    Args:
        pred_fn_pairs: (bool scalar tensor, function) pairs, or a dict of them.
        default: The function where no predicate is true; without it that is an error at run time.
        exclusive: Whether two true predicates are an error at run time.
        strict: As in `cond`.
        name: Name scope of the operations.

    Raises:
        DTypeError: if something is no pair, no tensor or no function.

    Example:
        >>> x = fs.constant(5)
        >>> small = (x < 3, lambda: fs.constant("small"))
        >>> large = (x > 4, lambda: fs.constant("large"))
        >>> fs.Session().run(fs.case([small, large], default=lambda: fs.constant("medium")))
        b'large'
    """
    pairs = _pairs(pred_fn_pairs)
    graph = get_default_graph()
    with graph.name_scope(name):
        preds = [convert_to_tensor(p) for p, _ in pairs]
        waits = [] if not exclusive else [_exclusive(preds)]
        with graph.control_dependencies(waits):
            if waits:
                preds = [identity(p) for p in preds]
            functions = [_returning(f, "a function of case", strict) for _, f in pairs]
            if default is None:
                default = _last_one(preds, functions[-1])
                preds, functions = preds[:-1], functions[:-1]
            else:
                default = _returning(default, "default", strict)
            return _unpacked(_chained(preds, functions, default), strict)


def _returning(function: Any, what: str, strict: bool) -> Callable[[], Any]:
    if not callable(function):
        raise DTypeError(f"expected a function as {what}, got {function!r}")
    return lambda: _unpacked(function(), strict)


def _pairs(given: Any) -> list[tuple[Any, Callable[[], Any]]]:
    if not isinstance(given, Mapping | list | tuple):
        raise DTypeError(f"expected a list of pairs, or a dict, as pred_fn_pairs, got {given!r}")
    pairs = list(given.items()) if isinstance(given, Mapping) else list(given)
    if not pairs:
        raise InvalidArgumentError("expected one pair of predicate and function at least, got none")
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2 or not callable(pair[1]):
            raise DTypeError(f"expected pairs of a bool tensor and a function, got {pair!r}")
        if not isinstance(pair[0], Tensor) and not hasattr(pair[0], "_as_tensor"):
            raise DTypeError(f"expected bool tensors as predicates, got {pair[0]!r}")
        if convert_to_tensor(pair[0]).dtype is not bool_:
            raise DTypeError(f"expected bool tensors as predicates, got {pair[0]!r}")
    return [(p, f) for p, f in pairs]


def _exclusive(preds: list[Tensor]) -> Operation:
    from flowscope.ops.core.casting import cast

    count = reduce_sum(cast(stack(preds), int32))
    message = "expected at most one true predicate in an exclusive case, got"
    return Assert(count < 2, [message, *preds])


def _last_one(preds: list[Tensor], function: Callable[[], Any]) -> Callable[[], Any]:
    """Returns the last function, which checks that its predicate is true."""

    def last() -> Any:
        check = Assert(preds[-1], ["expected a true predicate in a case without default, got none"])
        with get_default_graph().control_dependencies([check]):
            return nest.map_structure(_after(check), function())

    return last


def _after(check: Operation) -> Callable[[Any], Any]:
    def after(value: Any) -> Any:
        if isinstance(value, Operation):
            return value
        with get_default_graph().control_dependencies([check]):
            return from_tensors(value, [identity(t) for t in parts(value)])

    return after


def _chained(
    preds: Sequence[Tensor], functions: Sequence[Callable[[], Any]], default: Callable[[], Any]
) -> Any:
    if not preds:
        return default()
    rest = functools.partial(_chained, preds[1:], functions[1:], default)
    return cond(preds[0], functions[0], rest, strict=True, name="cond")


def switch_case(
    branch_index: Any,
    branch_fns: Any,
    default: Callable[[], Any] | None = None,
    name: str = "switch_case",
) -> Any:
    """The result of the function with the number `branch_index`.

    Args:
        branch_index: An int32 scalar tensor.
        branch_fns: A list of functions; a list of (number, function) pairs, or a dict of them.
        default: The function for all other numbers; by default the one with the largest number.
        name: Name scope of the operations.

    Raises:
        DTypeError: if something is no function, or the index is no int32 tensor.
        InvalidArgumentError: if the numbers are not 0, 1, ... up to how many there are.

    Example:
        >>> branches = [lambda: fs.constant(10), lambda: fs.constant(20)]
        >>> fs.Session().run(fs.switch_case(fs.constant(1), branches))
        np.int32(20)
    """
    if not isinstance(branch_index, Tensor | Convertible):
        raise DTypeError(
            f"expected a tensor as branch_index, got {branch_index!r}: use Python's own `if`"
        )
    functions = _numbered(branch_fns)
    if default is not None and not callable(default):
        raise DTypeError(f"expected a function as default, got {default!r}")
    graph = get_default_graph()
    with graph.name_scope(name):
        index = convert_to_tensor(branch_index)
        if index.dtype is not int32:
            raise DTypeError(f"expected an int32 scalar as branch_index, got {index.spec}")
        if default is None:
            default = functions.pop(max(functions))
        return _searched(index, sorted(functions.items()), default)


def _numbered(given: Any) -> dict[int, Callable[[], Any]]:
    if not isinstance(given, Mapping | list | tuple):
        raise DTypeError(f"expected a list or a dict as branch_fns, got {given!r}")
    pairs = list(given.items() if isinstance(given, Mapping) else given)
    if not pairs:
        raise InvalidArgumentError("expected one function at least as branch_fns, got none")
    if all(callable(f) for f in pairs):
        pairs = list(enumerate(pairs))
    for pair in pairs:
        good = isinstance(pair, tuple | list) and len(pair) == 2 and callable(pair[1])
        if not good or not isinstance(pair[0], int):
            raise DTypeError(f"expected functions, or pairs of a number and one, got {pair!r}")
    found = dict(pairs)
    if len(found) < len(pairs):
        raise InvalidArgumentError(f"two functions have one number: {[i for i, _ in pairs]}")
    if sorted(found) != list(range(len(found))):
        raise InvalidArgumentError(
            f"expected the numbers 0 to {len(found) - 1} for {len(found)} functions, "
            f"got {sorted(found)}"
        )
    return found


def _searched(
    index: Tensor, functions: list[tuple[int, Callable[[], Any]]], default: Callable[[], Any]
) -> Any:
    """Returns a binary search by nested conds: few comparisons, however many branches there are."""
    if not functions:
        return call(default, "default")
    if len(functions) == 1:
        ((number, function),) = functions
        return cond(equal(index, number), function, default, strict=True)
    middle = len(functions) // 2
    low, high = functions[:middle], functions[middle:]
    return cond(
        index < high[0][0],
        lambda: _searched(index, low, default),
        lambda: _searched(index, high, default),
        strict=True,
    )
