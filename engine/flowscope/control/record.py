"""`record`: the values that a tensor of a body has had, when its loop has ended.

A loop keeps the tensor's values as it keeps what its gradient reads: as a list, which is an output
of the loop. A branch keeps a list of one value, or an empty one. So a record costs the bytes of its
values and nothing else, and nothing at all in plans that do not read it.

With a limit, a list of the last values is a further variable of the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from flowscope.control.blocks import Function
from flowscope.control.cond import Cond, branch_list
from flowscope.control.lists import EmptyList, element_spec, list_spec
from flowscope.control.loop import Loop
from flowscope.control.loop_gradient import kept
from flowscope.control.specs import outside
from flowscope.errors import DTypeError, GraphError, InvalidArgumentError, UnsupportedGradientError
from flowscope.graph.block import Block
from flowscope.graph.constant import Convertible, convert_to_tensor
from flowscope.graph.default import get_default_graph
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Operation, Tensor, where
from flowscope.graph.values.dtypes import DType, resource, variant
from flowscope.graph.values.shapes import Dims, is_known, text
from flowscope.graph.values.string_values import zeros
from flowscope.ops.core.build import apply
from flowscope.ops.core.flow import identity

__all__ = ["record"]


def record(t: Any, name: str | None = None, limit: int | None = None) -> Record:
    """Keeps the values that a tensor of a body has, for use outside when the loop has ended.

    To be called in the body of a `while_loop`, `map_fn`, `scan`, ..., or in a `cond` in one. What
    it returns stands for a tensor outside: the values behind each other along a new first axis, in
    the order of time. In nested loops these are the values of all iterations of all of them, in a
    branch those of the iterations that took it.

        _, x = fs.while_loop(cond, body, [0, x])   # the body does: losses = fs.record(loss)
        sess.run(losses)

    Gradients lead through, unless there is a limit. Where the body is called a second time because
    shapes change, the last call's record counts.

    Args:
        t: A tensor. All its values must have one shape.
        name: Name of the operations.
        limit: Keeps the last so many values alone, so that memory stays constant. For tensors of a
            loop's body itself, not of a branch or a loop in it.

    Raises:
        GraphError: if it is called outside of the body of a loop.
        InvalidArgumentError: if the limit is less than 1.
    """
    tensor = convert_to_tensor(t)
    if tensor.spec.dtype in (variant, resource):
        raise DTypeError(f'"{tensor.name}" has no array as its value: nothing can be recorded')
    graph = get_default_graph()
    if graph.block is graph.root:
        raise GraphError(
            f'"{tensor.name}" can be recorded in the body of a loop only: here it has one value, '
            "which can be fetched"
        ).located(op=tensor.op, **where(tensor.op))
    tensor = identity(tensor, name=name or "record")
    body = graph.functions.get(graph.block.name)
    made = Record(tensor, name, limit)
    if limit is None:
        if body is not None:
            body.records.append(made)
        return made
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise InvalidArgumentError(f"expected a limit of 1 at least, got {limit!r}")
    if body is None or body.block.what != "the body of a while_loop":
        raise GraphError(
            f'a record with a limit belongs into the body of a loop itself, "{tensor.name}" stands '
            f"in {graph.block.what}: leave the limit away"
        )
    body.records.append(made)
    return made


class Record(Convertible):
    """The values that a tensor of a body has had: a tensor outside of the loop.

    Attributes:
        tensor: The tensor of the body.
        limit: How many values are kept at most, None for all.
        last: For a record with a limit: the list of the last values, an output of the loop.
    """

    def __init__(self, tensor: Tensor, name: str | None, limit: int | None = None) -> None:
        self.tensor = tensor
        self.limit = limit
        self.last: Tensor | None = None
        self._name = name
        self._values: dict[Block, Tensor] = {}

    @property
    def dtype(self) -> DType:
        """Element type of the values."""
        return self.tensor.dtype

    def _as_tensor(self) -> Tensor:
        block = self.tensor.graph.block
        found = self._values.get(block)
        if found is None:
            values, depth = self._list(block)
            name = self._name or "record"
            op = StackOfList(self.dtype, depth, self.tensor.spec.shape)
            found = self._values[block] = apply(op, values, name=name)
        return found

    _as_graph_element = _as_tensor

    def _list(self, block: Block) -> tuple[Tensor, int]:
        """Returns a list of lists ... of the values outside of the loops, and how deep it is."""
        at, depth = self.tensor, 0
        if self.limit is not None:
            if self.last is None:
                raise self._too_early()
            graph = self.tensor.graph
            with graph.enter_block(self.last.op.block):
                at, depth = apply(ListOfLast(self.limit), self.last), 1
        while not at.op.block.encloses(block):
            at, depth = self._outside(at), depth + 1
        if not depth:
            raise self._too_early()
        return at, depth

    def _outside(self, at: Tensor) -> Tensor:
        inner = at.op.block
        if inner.what == "a function":
            raise GraphError(
                f'the values of "{self.tensor.name}" belong to a call of "{inner.name}": use the '
                "record in that function, and return it from there"
            )
        owner = next((op for op in at.graph.get_operations() if _owns(op, inner)), None)
        if owner is None:
            raise self._too_early()
        definition: Any = owner.definition
        if isinstance(definition, Loop) and definition.body.block is inner:
            return kept(owner, definition, at)
        if isinstance(definition, Cond):
            function = next(f for f in definition.functions if f.block is inner)
            return branch_list(owner, function, at)
        raise GraphError(
            f'"{at.name}" stands inside {inner.what}: its values cannot be recorded for use outside'
        )

    def _too_early(self) -> GraphError:
        error = GraphError(
            f'the values of "{self.tensor.name}" are there when its loop has ended: use the record '
            "outside of it"
        )
        return error.located(op=self.tensor.op, **where(self.tensor.op))

    def __repr__(self) -> str:
        most = "" if self.limit is None else f", the last {self.limit}"
        return f'<fs.record of "{self.tensor.name}", {self.tensor.spec} each{most}>'


def _owns(op: Operation, block: Block) -> bool:
    return any(f.block is block for f in getattr(op.definition, "functions", ()))


def add_records(functions: Sequence[Function], records: list[Record], variables: int) -> None:
    """Makes the records with a limit variables of a loop, behind its others.

    Args:
        functions: The loop's condition and body, which have their captures already.
        records: Those of the body.
        variables: How many variables the loop has without them.
    """
    for function in functions:
        before = list(function.parameters)
        added = [function.add_parameter(list_spec(r.tensor.spec), "last") for r in records]
        function.arrange([*before[:variables], *added, *before[variables:]], function.captures)
    body = functions[-1]
    with body.graph.enter_block(body.block), body.graph.name_scope(body.name + "/"):
        for r, last in zip(records, body.parameters[variables:], strict=False):
            body.results.append(apply(AddToLast(r.limit or 1), last, r.tensor))


def no_records(records: list[Record]) -> list[Tensor]:
    """Returns the values of these variables at the start of the loop."""
    graph = get_default_graph()
    specs = [outside(r.tensor.spec) for r in records]
    return [graph.add(EmptyList(spec), (), "last").outputs[0] for spec in specs]


class Last:
    """The last values of something: immutable, and it forgets.

    Two lists, of which the older one is dropped when the newer one has `limit` values: between
    `limit` and twice as many are held, and adding one costs the same however many there are.
    """

    __slots__ = ("_count", "_newer", "_older")

    def __init__(self, newer: Any = None, count: int = 0, older: Any = None) -> None:
        self._newer, self._count, self._older = newer, count, older

    def put(self, value: Any, limit: int) -> Last:
        """A list with one value more."""
        if self._count < limit:
            return Last((value, self._newer), self._count + 1, self._older)
        return Last((value, None), 1, self._newer)

    def values(self, limit: int) -> list[Any]:
        """Returns the last values, the newest first."""
        return [*flat(self._newer, 1), *flat(self._older, 1)][:limit]


def flat(value: Any, depth: int) -> list[Any]:
    """Returns the elements of a list of lists ... of this depth, the newest first."""
    found = []
    while value is not None:
        found += [value[0]] if depth == 1 else flat(value[0], depth - 1)
        value = value[1]
    return found


@frozen
class AddToLast(Op):
    """The last values of something, with one value more."""

    limit: int
    views: ClassVar[Any] = (0, 1)

    def infer(self, values: Spec, x: Spec) -> Spec:
        element_spec(values)
        return list_spec(x)

    def grad(self, g: Tensor, y: Tensor, values: Tensor, x: Tensor) -> Any:
        raise UnsupportedGradientError(
            "a record with a limit has no gradient: leave the limit away, or mark the path by "
            "fs.stop_gradient"
        )

    def kernel(self, xp: ArrayModule, values: Any, x: Array) -> Any:
        return (Last() if values is None else values).put(x, self.limit)


@frozen
class ListOfLast(Op):
    """The last `limit` values of something as a list."""

    limit: int
    views: ClassVar[Any] = (0,)

    def infer(self, values: Spec) -> Spec:
        return list_spec(element_spec(values))

    def grad(self, g: Tensor, y: Tensor, values: Tensor) -> Any:
        return (g,)

    def kernel(self, xp: ArrayModule, values: Any) -> Any:
        made: Any = None
        for one in reversed([] if values is None else values.values(self.limit)):
            made = (one, made)
        return made


@frozen
class StackOfList(Op):
    """The elements of a list of lists ..., the oldest first, along a new first axis.

    Raises: InvalidArgumentError if their shapes differ, or there is none and their shape is not
        known.
    """

    dtype: DType
    depth: int
    element_shape: Dims

    def infer(self, values: Spec) -> Spec:
        dims = self.element_shape
        return Spec(self.dtype, None if dims is None else (None, *dims))

    def grad(self, g: Tensor, y: Tensor, values: Tensor) -> Any:
        return (apply(UnstackToList(self.depth, self.element_shape), g, values),)

    def kernel(self, xp: ArrayModule, values: Any) -> Array:
        found = [xp.asarray(v, self.dtype.np_dtype) for v in reversed(flat(values, self.depth))]
        shapes = dict.fromkeys(v.shape for v in found)
        if len(shapes) > 1:
            got = ", ".join(text(dims) for dims in [*shapes][:6])
            raise InvalidArgumentError(f"recorded values must have one shape, got {got}")
        if found:
            return xp.stack(found)
        dims = self.element_shape
        if dims is None or not is_known(dims):
            raise InvalidArgumentError(
                "nothing was recorded, and what is known of the values' shape is "
                f"{text(self.element_shape)}"
            )
        return zeros(xp, (0, *dims), self.dtype.np_dtype)


@frozen
class UnstackToList(Op):
    """A list of lists ... like the one that comes second, of the parts of a tensor."""

    depth: int
    element_shape: Dims
    views: ClassVar[Any] = (0,)

    def infer(self, x: Spec, like: Spec) -> Spec:
        return list_spec(element_spec(like))

    def grad(self, g: Tensor, y: Tensor, x: Tensor, like: Tensor) -> Any:
        return apply(StackOfList(x.dtype, self.depth, self.element_shape), g), None

    def kernel(self, xp: ArrayModule, x: Array, like: Any) -> Any:
        return _unstacked(iter(x[::-1]), like, self.depth)


def _unstacked(parts: Any, like: Any, depth: int) -> Any:
    found = []
    while like is not None:
        found.append(next(parts) if depth == 1 else _unstacked(parts, like[0], depth - 1))
        like = like[1]
    made: Any = None
    for one in reversed(found):
        made = (one, made)
    return made
