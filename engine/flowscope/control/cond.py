"""Branches: an operation with two functions, of which a bool decides which one runs.

The gradient of a `Cond` is a `Cond` on the same bool, with the gradients of both branches. What
these read of the forward branches' tensors becomes a further output of both: a list of one element
from the branch that has it, an empty list from the other.
"""

from __future__ import annotations

from typing import Any, ClassVar

from flowscope.control.blocks import (
    Function,
    GradientBody,
    Parameter,
    settled,
    zeros_of,
)
from flowscope.control.lists import EmptyList, Head, ListOf, PackLists, UnpackList, element_spec
from flowscope.control.slices import (
    common_dtype,
    no_parts,
    parts_of,
    value_shape,
    with_indices,
)
from flowscope.control.specs import flows, outside
from flowscope.control.trampoline import Work
from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.constant import Const, convert_to_tensor
from flowscope.graph.indexed_slices import IndexedSlices
from flowscope.graph.op import Op, Spec, frozen
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values.dtypes import DType, bool_
from flowscope.graph.values.shapes import Dims

#: Op types that cost nothing, or not again, where a branch uses what they made outside of it.
FREE = frozenset({"Const", "Placeholder", "PlaceholderWithDefault", "ReadVariableOp", "Parameter"})


@frozen
class Cond(Op, host_inputs=(0,)):
    """Runs one of two branches: `then` where the first input is true, else the other one.

    Inputs: the bool scalar, what `then` captures, what `orelse` captures.
    """

    then: Function
    orelse: Function
    is_stateful: ClassVar[bool] = True

    @property
    def functions(self) -> tuple[Function, ...]:
        """Its blocks."""
        return self.then, self.orelse

    @property
    def writes_state(self) -> bool:  # type: ignore[override]
        """Whether a branch writes a variable."""
        return self.then.writes_state or self.orelse.writes_state

    @property
    def reads_state(self) -> bool:  # type: ignore[override]
        """Whether a branch reads a variable."""
        return self.then.reads_state or self.orelse.reads_state

    @property
    def has_effect(self) -> bool:
        """Whether a branch does something beyond its results."""
        return self.then.has_effect or self.orelse.has_effect

    def infer(self, pred: Spec, *captured: Spec) -> Any:
        if pred.dtype is not bool_:
            raise DTypeError(f"expected a bool as pred, got {pred}")
        if pred.shape not in (None, ()):
            raise InvalidArgumentError(f"expected a scalar as pred, got {pred}")
        for a, b in zip(self.then.outputs, self.orelse.outputs, strict=True):
            if a.spec.dtype is not b.spec.dtype:
                raise DTypeError(f"the branches return {a.spec.dtype} and {b.spec.dtype}")
        pairs = zip(self.then.outputs, self.orelse.outputs, strict=True)
        return tuple([_merged(a.spec, b.spec) for a, b in pairs])

    def grad(self, g: Any, y: Any, *inputs: Tensor) -> Any:
        op = y[0].op if isinstance(y, tuple) else y.op
        cotangents = g if isinstance(g, tuple) else (g,)
        given = {i: convert_to_tensor(c) for i, c in enumerate(cotangents) if c is not None}
        return (yield from _gradient(op, given))


def always_run(op: Operation) -> list[Operation]:
    """The operations computed for a Cond operation alone, whichever branch is taken.

    These are operations outside whose outputs nothing else takes; views mark them.
    """
    found: dict[Operation, None] = {}
    waiting = [t.op for t in op.inputs[1:]]
    while waiting:
        at = waiting.pop()
        if at in found or at.type in FREE or at.block is not op.block:
            continue
        users = {c for t in at.outputs for c in t.consumers()}
        if users <= {op, *found}:
            found[at] = None
            waiting += [t.op for t in at.inputs]
    return sorted(found, key=lambda one: one.order)


def _merged(a: Spec, b: Spec) -> Spec:
    variable = a.variable
    if variable is not None and b.variable is not None and a.dtype.kind == "v":
        variable = _merged(variable, b.variable)
    dims: Dims = None
    if a.dtype.is_integer and a.shape == b.shape and a.shape is not None and len(a.shape) == 1:
        dims = widened(a.shape_value(), b.shape_value())
    return Spec(a.dtype, widened(a.shape, b.shape), dims=dims, variable=variable)


def widened(a: Dims, b: Dims) -> Dims:
    """The shape of which two shapes are special cases."""
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple([x if x == y else None for x, y in zip(a, b, strict=True)])


class _BranchGradient(GradientBody):
    """The gradient of one branch; what it reads of the branch comes in a list of one element."""

    def __init__(self, forward: Function, other: Function) -> None:
        super().__init__(forward, f"{forward.name}_grad")
        self._other = other
        #: By tensor outside: its cotangent.
        self.found: dict[Tensor, Tensor | IndexedSlices | None] = {}

    def inside(self, tensor: Tensor) -> Tensor:
        if tensor in self._inside or tensor.op.block is not self.forward.block:
            return super().inside(tensor)
        if isinstance(tensor.op.definition, Const | Parameter):
            return super().inside(tensor)
        if _is_kept(tensor):
            _add_kept(self.forward, self._other, tensor)
            return self.bind(tensor)
        kept = _keep(self.forward, self._other, tensor)
        with self.graph.enter_block(self.block):
            found = self.graph.add(Head(), (self.bind(kept),), "kept").outputs[0]
        self._inside[tensor] = found
        return found


def _keep(function: Function, other: Function, tensor: Tensor) -> Tensor:
    """Makes a list with a tensor of one branch's block a result of both; returns it."""
    graph = function.graph
    for found in function.kept:
        if (
            isinstance(found.op.definition, ListOf)
            and found.op.inputs == (tensor,)
            and graph.observer.has(found.op)
        ):
            return found
    with graph.enter_block(function.block):
        kept = graph.add(ListOf(), (tensor,), "kept").outputs[0]
    _add_kept(function, other, kept)
    return kept


def _add_kept(function: Function, other: Function, kept: Tensor) -> None:
    """Makes a list of one branch's block a result of both, an empty one of the other's."""
    graph = function.graph
    for found, none in zip(function.kept, other.kept, strict=True):
        if found is kept and graph.observer.has(none.op):
            return
    with graph.enter_block(other.block):
        none = graph.add(EmptyList(element_spec(kept.spec)), (), "kept").outputs[0]
    if (kept, none) not in zip(function.kept, other.kept, strict=True):
        function.kept.append(kept)
        other.kept.append(none)


def _is_kept(tensor: Tensor) -> bool:
    """Whether a tensor is a list that a branch inside keeps: it need not be put into another."""
    cond = tensor.op.definition
    if isinstance(cond, PackLists):
        return True
    return isinstance(cond, Cond) and tensor.value_index >= len(cond.then.results)


def _packed(op: Operation, tensors: list[Tensor]) -> list[Tensor]:
    """The tensors that a gradient takes of a Cond in a branch: its lists, unpacked.

    Else each branch around would keep all lists of all branches inside of it, one by one.

    Args:
        op: The operation.
        tensors: What is read beside it, outputs of it among that.
    """
    around = op.graph.functions.get(op.graph.block.name)
    lists = [t for t in dict.fromkeys(tensors) if t.op is op and _is_kept(t)]
    if not isinstance(around, _BranchGradient) or len(lists) < 2:
        return tensors
    if op.block is not around.forward.block:
        return tensors
    pack = _pack(around.forward, lists)
    parts = {
        t: op.graph.add(UnpackList(i, len(lists), element_spec(t.spec)), (pack,), "kept").outputs[0]
        for i, t in enumerate(lists)
    }
    return [parts.get(t, t) for t in tensors]


def _pack(function: Function, lists: list[Tensor]) -> Tensor:
    """Returns lists of a branch's block as one; what was made for another gradient, if it fits."""
    graph, inputs = function.graph, tuple(lists)
    for found in function.kept:
        is_pack = isinstance(found.op.definition, PackLists) and found.op.inputs == inputs
        if is_pack and graph.observer.has(found.op):
            return found
    with graph.control_dependencies(None), graph.enter_block(function.block):
        return graph.add(PackLists(len(lists)), inputs, "kept").outputs[0]


def branch_list(op: Operation, function: Function, tensor: Tensor) -> Tensor:
    """Returns the list of the value that a tensor of a branch has, empty if that is not taken."""
    cond: Cond = op.definition  # type: ignore[assignment]
    other = cond.orelse if function is cond.then else cond.then
    return _at_op(op, function, 0, _keep(function, other, tensor))


def _gradient(op: Operation, given: dict[int, Tensor]) -> Work[list[Tensor | IndexedSlices | None]]:
    """Adds the gradient of a Cond operation; returns a cotangent per input."""
    cond: Cond = op.definition  # type: ignore[assignment]
    offsets = (1, 1 + len(cond.then.captures))
    reached: list[dict[Tensor, Tensor]] = []
    for function, offset in zip(cond.functions, offsets, strict=True):
        found = function.reach([function.outputs[i] for i in given])
        inputs = op.inputs[offset : offset + len(function.parameters)]
        pairs = zip(function.parameters, inputs, strict=False)
        reached.append({outer: p for p, outer in pairs if p in found and flows(p.spec)})
    outers = list(dict.fromkeys([*reached[0], *reached[1]]))
    out: list[Tensor | IndexedSlices | None] = [None] * len(op.inputs)
    if not outers:
        return out
    branches = [
        _BranchGradient(cond.then, cond.orelse),
        _BranchGradient(cond.orelse, cond.then),
    ]
    for branch, own in zip(branches, reached, strict=True):
        yield from _differentiate(branch, own, given)
    sliced = _sliced(branches, outers)
    for branch in branches:
        _return(branch, outers, sliced)
    _unify(branches)
    branches = settled(branches)
    captured = [_at_op(op, b.forward, o, t)
                for b, o in zip(branches, offsets, strict=True) for t in b.captures]  # fmt: skip
    captured = _packed(op, captured)
    made = op.graph.add(Cond(branches[0], branches[1]), (op.inputs[0], *captured), "cond_grad")
    results = iter(made.outputs)
    for outer in outers:
        i, g = op.inputs.index(outer), next(results)
        is_sliced = outer in sliced
        out[i] = IndexedSlices(g, next(results), value_shape(outer)) if is_sliced else g
    return out


def _differentiate(
    branch: _BranchGradient, own: dict[Tensor, Tensor], given: dict[int, Tensor]
) -> Work[None]:
    """Builds the gradient of one branch."""
    cotangents = [branch._inside.get(g) or branch.bind(g) for g in given.values()]
    graph = branch.graph
    with graph.enter_block(branch.block), graph.name_scope(branch.name + "/"):
        ys = [branch.forward.outputs[i] for i in given]
        found = yield from branch.differentiate(ys, list(own.values()), cotangents)
    branch.found = dict(zip(own, found, strict=True))


def _sliced(branches: list[_BranchGradient], outers: list[Tensor]) -> dict[Tensor, DType]:
    """The tensors that both branches only take slices of, with the dtype of the indices."""
    sliced = {}
    for outer in outers:
        found = [g for b in branches if (g := b.found.get(outer)) is not None]
        slices = [g for g in found if isinstance(g, IndexedSlices)]
        if slices and len(slices) == len(found):
            sliced[outer] = common_dtype(slices)
    return sliced


def _return(branch: _BranchGradient, outers: list[Tensor], sliced: dict[Tensor, DType]) -> None:
    """Makes the cotangents of `outers` results of a branch: of slices, values and indices."""
    graph = branch.graph
    with graph.enter_block(branch.block), graph.name_scope(branch.name + "/"):
        for outer in outers:
            g = branch.found.get(outer)
            if outer not in sliced:
                branch.results.append(branch.own(zeros_of(outer)) if g is None else branch.dense(g))
            elif isinstance(g, IndexedSlices):
                branch.results += parts_of(branch, with_indices(g, sliced[outer]))
            else:
                branch.results += [branch.own(t) for t in no_parts(outer, sliced[outer])]


def _unify(branches: list[_BranchGradient]) -> None:
    """Gives both branches' results one shape as far as is known."""
    for a, b in zip(branches[0].results, branches[1].results, strict=True):
        if a.spec.dtype is not b.spec.dtype:
            raise DTypeError(f"the gradients of the branches are {a.spec} and {b.spec}")


def _at_op(op: Operation, function: Function, offset: int, tensor: Tensor) -> Tensor:
    """Returns the tensor beside a Cond operation that has the value of a tensor of its branch."""
    if tensor.op.block is not function.block:
        return tensor
    if isinstance(tensor.op.definition, Parameter):
        return op.inputs[offset + tensor.op.definition.index]
    index = function.outputs.index(tensor)
    for missing in function.outputs[len(op.outputs) : index + 1]:
        op.add_output(outside(missing.spec))
    return op.outputs[index]


__all__ = ["FREE", "Cond", "always_run", "branch_list", "widened"]
