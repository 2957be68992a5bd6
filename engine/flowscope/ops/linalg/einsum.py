"""Einstein sums: one op for one or two operands, and its adjoint; the rest is made of them.

The function `einsum` brings a sum into a normal form: each operand is first reduced by itself
(diagonals taken, labels summed that no one else has, the ellipsis moved to the front), then the
operands are contracted two at a time. In that form a contraction is a batched matrix product, and
so is its gradient: BLAS does the work. The labels of the pair (a, b -> out) fall into four groups:

    batch       in a, b and out
    left        in a and out
    right       in b and out
    contracted  in a and b

Source: the grouping is that of opt_einsum (Smith and Gray 2018); the order of contractions is
greedy.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Cost, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values.expected import expected
from flowscope.graph.values.shapes import Dims, broadcast, merge_dim, size_of, text
from flowscope.graph.values.work import PRODUCT
from flowscope.ops.array.shaping import shape_of
from flowscope.ops.core.broadcasting import as_sizes, sum_to
from flowscope.ops.core.build import apply
from flowscope.ops.core.casting import conj
from flowscope.ops.core.shape_rules import check_kind, check_same
from flowscope.ops.kernels.sharing import matrix_product

__all__ = ["einsum"]

#: Stands for the ellipsis in split subscripts.
_REST = "."


def _split(subscripts: str) -> str:
    """Returns subscripts with one character per label, "." for the ellipsis."""
    return subscripts.replace("...", _REST)


@functools.lru_cache(maxsize=1024)
def _parsed(equation: str) -> tuple[tuple[str, ...], str]:
    left, _, right = equation.partition("->")
    return tuple(_split(s) for s in left.split(",")), _split(right)


def _sizes(labels: str, dims: tuple[Any, ...], found: dict[str, Any]) -> None:
    """Notes in `found` how long each label's axis is, and the ellipsis' axes."""
    extra = len(dims) - len(labels.replace(_REST, ""))
    if extra < 0 or (extra and _REST not in labels):
        raise InvalidArgumentError(
            f'expected a tensor of rank {len(labels)} for "{labels.replace(_REST, "...")}", '
            f"got {text(dims)}"
        )
    at = 0
    for label in labels:
        if label == _REST:
            rest = dims[at : at + extra]
            found[_REST] = broadcast(found.get(_REST, ()), rest)
            at += extra
            continue
        try:
            found[label] = merge_dim(found.get(label), dims[at])
        except InvalidArgumentError:
            raise expected(
                f'axes of one length for the label "{label}"', found[label], dims[at]
            ) from None
        at += 1


def _shape(labels: str, found: dict[str, Any]) -> Dims:
    rest = found.get(_REST, ()) if _REST in labels else ()
    if rest is None:
        return None
    out: list[Any] = []
    for label in labels:
        out += rest if label == _REST else [found.get(label)]
    return tuple(out)


@frozen
class Einsum(Op, grad_reads=("operands",), accumulates=True, uses_blas=True, work=PRODUCT):
    """The sum over products of elements that an equation names, for one or two operands.

    Two operands have each label once, the ellipsis first, and share or hand on every label.

    Shapes: as the equation says, e.g. "ij,jk->ik"; the axes of "..." are broadcast
    Raises: InvalidArgumentError if a rank is not the number of labels, or lengths contradict.
    """

    equation: str

    def infer(self, *operands: Spec) -> Spec:
        inputs, output = _parsed(self.equation)
        check_kind(operands[0].dtype, "fiuc")
        found: dict[str, Any] = {}
        for labels, s in zip(inputs, operands, strict=True):
            check_same(operands[0], s)
            if s.shape is not None:
                _sizes(labels, s.shape, found)
        known = [s.shape is not None for s, labels in zip(operands, inputs) if _REST in labels]
        if not all(known):
            found[_REST] = None
        return Spec(operands[0].dtype, _shape(output, found))

    def grad(self, g: Tensor, y: Tensor, *operands: Tensor) -> Any:
        inputs, output = _parsed(self.equation)
        if len(operands) == 1:
            back = EinsumSpread(_joined((output,), inputs[0]))
            return (apply(back, g, shape_of(operands[0])),)
        a, b = operands
        return (
            _operand_grad(g, conj(b), output, inputs[1], inputs[0], a),
            _operand_grad(g, conj(a), output, inputs[0], inputs[1], b),
        )

    def kernel(self, xp: ArrayModule, *operands: Array) -> Array:
        inputs, output = _parsed(self.equation)
        found: dict[str, Any] = {}
        for labels, x in zip(inputs, operands, strict=True):
            _sizes(labels, x.shape, found)
        if len(operands) == 1:
            return _reduced(xp, operands[0], inputs[0], output)
        a, b = operands
        return _contracted(xp, a, b, inputs[0], inputs[1], output)

    def cost(self, inputs: tuple[Spec, ...], outputs: tuple[Spec, ...]) -> Cost:
        found: dict[str, Any] = {}
        for labels, s in zip(_parsed(self.equation)[0], inputs):
            if s.shape is not None:
                _sizes(labels, s.shape, found)
        n = size_of((*(found.pop(_REST, ()) or ()), *found.values()))
        return Cost(None if n is None else 2.0 * n, super().cost(inputs, outputs).nbytes)


def _operand_grad(g: Tensor, other: Tensor, out: str, theirs: str, mine: str, x: Tensor) -> Tensor:
    """Returns the cotangent of an operand x; what was broadcast in its ellipsis is summed."""
    has_rest = _REST in out or _REST in theirs
    wanted = _REST + mine.replace(_REST, "") if has_rest else mine
    got = apply(Einsum(_joined((out, theirs), wanted)), g, other, name="Einsum")
    if not has_rest or (x.spec.is_static and got.spec.shape == x.spec.shape):
        return got
    return sum_to(got, shape_of(x))


def _joined(inputs: tuple[str, ...], output: str) -> str:
    return f"{','.join(inputs)}->{output}".replace(_REST, "...")


@frozen
class EinsumSpread(Op, host_inputs=(1,)):
    """The adjoint of an Einsum of one operand: elements put back where they were summed from.

    The equation is turned round: "i->ii" writes a diagonal, "i->ij" repeats along a new axis.

    Shapes: g, shape [n] -> shape
    """

    equation: str

    def infer(self, g: Spec, shape: Spec) -> Spec:
        return Spec(g.dtype, shape.shape_value())

    def grad(self, g: Tensor, y: Tensor, x: Tensor, shape: Tensor) -> Any:
        (given,), whole = _parsed(self.equation)
        return apply(Einsum(_joined((whole,), given)), g), None

    def kernel(self, xp: ArrayModule, g: Array, shape: Array) -> Array:
        (given,), whole = _parsed(self.equation)
        found: dict[str, Any] = {}
        out = xp.zeros(as_sizes(shape), g.dtype)
        _sizes(whole, out.shape, found)
        order, view = _diagonals(xp, out, whole, len(found.get(_REST, ())))
        places = _numbered(given, g.ndim)
        g = g.transpose([places[label] for label in order if label in places])
        view[...] = g[tuple([slice(None) if label in places else None for label in order])]
        return out[()]


def _numbered(labels: str, rank: int) -> dict[str, int]:
    """Returns the axis of each label; the ellipsis' axes have the labels "0", "1", ..."""
    rest = [str(i) for i in range(rank - len(labels.replace(_REST, "")))]
    names: list[str] = []
    for label in labels:
        names += rest if label == _REST else [label]
    return {label: i for i, label in enumerate(names)}


def _diagonals(xp: ArrayModule, x: Array, labels: str, extra: int) -> tuple[list[str], Array]:
    """Returns the labels, each once, and a view of x with one axis for each."""
    names: list[str] = []
    for label in labels:
        names += [str(i) for i in range(extra)] if label == _REST else [label]
    strides: dict[str, int] = {}
    lengths: dict[str, int] = {}
    for name, length, stride in zip(names, x.shape, x.strides):
        strides[name] = strides.get(name, 0) + stride
        lengths[name] = length
    order = list(strides)
    if len(order) == len(names):
        return order, x
    as_strided = xp.lib.stride_tricks.as_strided
    return order, as_strided(x, tuple(lengths.values()), tuple(strides.values()))


def _reduced(xp: ArrayModule, x: Array, labels: str, output: str) -> Array:
    """Returns x with diagonals taken, what is not asked for summed, and the rest in order."""
    extra = x.ndim - len(labels.replace(_REST, ""))
    order, view = _diagonals(xp, x, labels, extra)
    places = _numbered(output, len(output.replace(_REST, "")) + (extra if _REST in output else 0))
    gone = tuple(i for i, label in enumerate(order) if label not in places)
    left = [label for label in order if label in places]
    out = view.sum(axis=gone, dtype=x.dtype) if gone else view
    out = out.transpose([left.index(label) for label in places]) if left else out
    return out[()] if gone else out.copy()[()]


def _contracted(xp: ArrayModule, a: Array, b: Array, ours: str, theirs: str, output: str) -> Array:
    """Returns the contraction of two operands in normal form, as a batched matrix product."""
    plan = _groups(ours, theirs, output)
    x, left = _block(a, ours, plan.batch, plan.left, plan.contracted)
    y, right = _block(b, theirs, plan.batch, plan.right, plan.contracted)
    y = y.swapaxes(-1, -2)
    found = matrix_product(xp, x, y) if plan.contracted else x * y
    found = found.reshape((*found.shape[:-2], *left, *right))
    labels = plan.batch + plan.left + plan.right
    have = [*map(str, range(found.ndim - len(labels))), *labels]
    return found.transpose([have.index(c) for c in _numbered(output, found.ndim)])[()]


class _Plan(NamedTuple):
    """The labels of two operands and their result by group."""

    batch: str
    left: str
    right: str
    contracted: str


@functools.lru_cache(maxsize=1024)
def _groups(ours: str, theirs: str, output: str) -> _Plan:
    a, b = ours.replace(_REST, ""), theirs.replace(_REST, "")
    return _Plan(
        "".join([c for c in a if c in b and c in output]),
        "".join([c for c in a if c not in b]),
        "".join([c for c in b if c not in a]),
        "".join([c for c in a if c in b and c not in output]),
    )


def _block(x: Array, labels: str, batch: str, rows: str, columns: str) -> tuple[Array, Any]:
    """Returns x as [ellipsis, batch, rows, columns], and the lengths of the rows' axes."""
    places = _numbered(labels, x.ndim)
    front = len(places) - len(labels.replace(_REST, ""))
    x = x.transpose([places[c] for c in (*map(str, range(front)), *batch, *rows, *columns)])
    first = front + len(batch)
    last = first + len(rows)
    lengths = x.shape[first:last]
    return x.reshape((*x.shape[:first], math.prod(lengths), math.prod(x.shape[last:]))), lengths


# -- the function ---------------------------------------------------------------------------------


def einsum(equation: str, *inputs: Any, name: str | None = None, optimize: str = "greedy",
           ) -> Tensor:  # fmt: skip
    """Returns the sum over products of elements that `equation` names.

    Args:
        equation: A letter per axis of each operand, e.g. "ij,jk->ik". Axes of one letter share an
            index; letters that the result lacks are summed; "..." stands for any axes, which are
            broadcast. Without "->" the result has the letters that occur once, sorted.
        inputs: Tensors of one dtype.
        name: Name scope of the operations.
        optimize: A hint: the pair with the smallest product is always contracted first.

    Raises:
        InvalidArgumentError: if the equation makes no sense or does not fit the tensors.

    Example:
        >>> a = fs.constant([[1.0, 2.0], [3.0, 4.0]])
        >>> fs.Session().run(fs.einsum("ij,kj->ik", a, a))
        array([[ 5., 11.],
               [11., 25.]], dtype=float32)
    """
    del optimize
    if not inputs:
        raise expected(f'a tensor for each operand of "{equation}"', "none")
    tensors = [convert_to_tensor(inputs[0])]
    tensors += [convert_to_tensor(x, tensors[0].dtype) for x in inputs[1:]]
    operands, output = _checked(equation, len(tensors))
    with tensors[0].graph.name_scope(name or "einsum"):
        pool = list(zip(tensors, operands, strict=True))
        pool = [_alone(x, labels, _others(pool, i) + output) for i, (x, labels) in enumerate(pool)]
        while len(pool) > 1:
            i, j = _cheapest(pool, output)
            second, first = pool.pop(j), pool.pop(i)
            pool.append(_pair(first, second, [labels for _, labels in pool], output))
        return _ordered(*pool[0], output)


def _others(pool: list[tuple[Tensor, str]], i: int) -> str:
    return "".join([labels for j, (_, labels) in enumerate(pool) if j != i])


def _checked(equation: str, count: int) -> tuple[list[str], str]:
    """Returns the operands' labels and the result's, the ellipsis as "."."""
    text_ = equation.replace(" ", "")
    left, arrow, right = text_.partition("->")
    operands = [_labels(s, equation) for s in left.split(",")]
    if len(operands) != count:
        raise expected(f'{len(operands)} tensors for "{equation}"', count)
    together = "".join(operands)
    if not arrow:
        once = sorted(c for c in set(together) - {_REST} if together.count(c) == 1)
        return operands, (_REST if _REST in together else "") + "".join(once)
    output = _labels(right, equation)
    if len(set(output)) != len(output) or not set(output) - {_REST} <= set(together):
        raise expected("each label of the result once, and among the operands'", f'"{equation}"')
    if (_REST in together) != (_REST in output):
        raise expected(
            '"..." both among the operands and in the result, or in neither', f'"{equation}"'
        )
    return operands, output


def _labels(subscripts: str, equation: str) -> str:
    labels = _split(subscripts)
    if not all((c.isalpha() and c.isascii()) or c == _REST for c in labels) or (
        labels.count(_REST) > 1
    ):
        raise expected('letters, and "..." once at most, per operand', f'"{equation}"')
    return labels


def _alone(x: Tensor, labels: str, needed: str) -> tuple[Tensor, str]:
    """Returns an operand in normal form: each label once and needed, the ellipsis first."""
    kept = "".join(dict.fromkeys(c for c in labels if c in needed and c != _REST))
    wanted = (_REST if _REST in labels else "") + kept
    return _ordered(x, labels, wanted), wanted


def _ordered(x: Tensor, labels: str, wanted: str) -> Tensor:
    if labels == wanted:
        if x.spec.shape is not None:
            _sizes(labels, x.spec.shape, {})
        return x
    return apply(Einsum(_joined((labels,), wanted)), x, name="Einsum")


def _pair(
    a: tuple[Tensor, str], b: tuple[Tensor, str], others: list[str], output: str
) -> tuple[Tensor, str]:
    """Returns the product of two operands, summed over what nobody else needs."""
    together = dict.fromkeys(a[1] + b[1])
    needed = "".join(others) + output
    labels = "".join([c for c in together if c in needed and c != _REST])
    labels = (_REST if _REST in together else "") + labels
    if not others and _REST not in output[1:]:
        labels = output  # the last pair gives the result's order at once
    return apply(Einsum(_joined((a[1], b[1]), labels)), a[0], b[0], name="Einsum"), labels


def _cheapest(pool: list[tuple[Tensor, str]], output: str) -> tuple[int, int]:
    """Returns which two operands to contract next: those whose product is smallest."""
    if len(pool) == 2:
        return 0, 1
    sizes: dict[str, Any] = {}
    for x, labels in pool:
        if x.spec.shape is not None:
            _sizes(labels, x.spec.shape, sizes)
    best, choice = float("inf"), (0, 1)
    for j in range(1, len(pool)):
        for i in range(j):
            rest = "".join([s for k, (_, s) in enumerate(pool) if k not in (i, j)]) + output
            kept = [c for c in set(pool[i][1] + pool[j][1]) if c in rest and c != _REST]
            size = math.prod([sizes.get(c) or 64 for c in kept])
            if size < best:
                best, choice = size, (i, j)
    return choice
