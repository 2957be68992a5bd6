"""Products of matrices and tensors."""

from __future__ import annotations

from typing import Any

from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import Convertible, convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Cost, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.overloads import operators
from flowscope.graph.values.dtypes import float32
from flowscope.graph.values.expected import expected
from flowscope.graph.values.shapes import broadcast, compatible, size_of
from flowscope.graph.values.work import PRODUCT
from flowscope.ops.array.arrays import rank, shape
from flowscope.ops.array.gathering import gather
from flowscope.ops.array.joining import concat, stack
from flowscope.ops.array.one_hot import eye
from flowscope.ops.array.shaping import expand_axes, reshape, shape_of, squeeze_axes, transpose
from flowscope.ops.core.axes import as_axes, positive_axis
from flowscope.ops.core.broadcasting import sum_to
from flowscope.ops.core.build import apply
from flowscope.ops.core.casting import cast, conj
from flowscope.ops.core.declare import op_function
from flowscope.ops.core.shape_rules import check_kind, check_same
from flowscope.ops.kernels.sharing import matrix_product
from flowscope.ops.math.elementwise import multiply
from flowscope.ops.math.reductions import reduce_prod, reduce_sum

__all__ = ["cross", "matmul", "matrix_transpose", "sparse_matmul", "tensordot", "trace"]


@frozen
class MatMul(
    Op,
    grad_reads=("a", "b"),
    memory_order="C2",
    accumulates=True,
    uses_blas=True,
    calls=3,
    work=PRODUCT,
):
    """Matrix product a @ b, of the transposes if asked for.

    Shapes: a [..., m, k], b [..., k, n] -> [..., m, n]   (after the transposes; ... is broadcast)
    Raises: InvalidArgumentError if the two k differ or a rank is below 2.
    Source: gradient: Giles 2008, matrix product.
    """

    transpose_a: bool = False
    transpose_b: bool = False

    def infer(self, a: Spec, b: Spec) -> Spec:
        if a.dtype is not b.dtype:
            check_same(a, b)
        check_kind(a.dtype, "fiuc")
        x, y = a.shape, b.shape
        for s in (x, y):
            if s is not None and len(s) < 2:
                raise expected("matrices, of rank 2 at least", s)
        if x is None or y is None:
            return Spec(a.dtype, None)
        m, k = (x[-1], x[-2]) if self.transpose_a else (x[-2], x[-1])
        j, n = (y[-1], y[-2]) if self.transpose_b else (y[-2], y[-1])
        if k != j and k is not None and j is not None:
            raise InvalidArgumentError(f"inner dimensions must agree: expected {k}, got {j}")
        batch = () if len(x) == 2 == len(y) else broadcast(x[:-2], y[:-2])
        return Spec(a.dtype, None if batch is None else (*batch, m, n))

    def grad(self, g: Tensor, y: Tensor, a: Tensor, b: Tensor) -> Any:
        ta, tb = self.transpose_a, self.transpose_b
        x, z = conj(a), conj(b)
        if not ta:
            ga = _product(g, z, False, not tb)
        else:
            ga = _product(z, g, tb, True)
        if not tb:
            gb = _product(x, g, not ta, False)
        else:
            gb = _product(g, x, True, ta)
        return unbatch(ga, a, b), unbatch(gb, b, a)

    def kernel(self, xp: ArrayModule, a: Array, b: Array) -> Array:
        if self.transpose_a:
            a = a.swapaxes(-1, -2)
        if self.transpose_b:
            b = b.swapaxes(-1, -2)
        if a.ndim < 2 or b.ndim < 2:
            raise expected("matrices, of rank 2 at least", a.shape, b.shape)
        if a.shape[-1] != b.shape[-2]:
            raise InvalidArgumentError(
                f"inner dimensions must agree: expected {a.shape[-1]}, got {b.shape[-2]}"
            )
        return matrix_product(xp, a, b)

    def cost(self, inputs: tuple[Spec, ...], outputs: tuple[Spec, ...]) -> Cost:
        a = inputs[0].shape
        k = None if a is None or len(a) < 2 else a[-2] if self.transpose_a else a[-1]
        n = size_of(outputs[0].shape)
        flops = None if k is None or n is None else 2.0 * k * n
        return Cost(flops, super().cost(inputs, outputs).nbytes)


_MATMULS = {(ta, tb): MatMul(ta, tb) for ta in (False, True) for tb in (False, True)}


def _product(a: Tensor, b: Tensor, transpose_a: bool, transpose_b: bool) -> Tensor:
    return apply(_MATMULS[transpose_a, transpose_b], a, b, name="MatMul")


def unbatch(g: Tensor, x: Tensor, other: Tensor) -> Tensor:
    """Returns the cotangent of x, summed over the batch axes that were broadcast."""
    mine, theirs = x.spec.shape, other.spec.shape
    if mine is not None and theirs is not None:
        if len(theirs) == 2 or (mine[:-2] == theirs[:-2] and None not in mine[:-2]):
            return g
    return sum_to(g, shape(x))


def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Returns the matrix product of `a` and `b`.

    Args:
        a: A tensor of rank 2 or higher; leading axes are a batch, broadcast with b's.
        b: A tensor of the same dtype.
        transpose_a: Whether a's last two axes are swapped first.
        transpose_b: Whether b's are.
        adjoint_a: Whether `a` is transposed and conjugated first.
        adjoint_b: Whether `b` is.
        a_is_sparse: True or False, a hint: a zero costs as much as any number.
        b_is_sparse: The same for `b`.
        name: Name of the operation.

    Raises:
        InvalidArgumentError: if the shapes do not fit.
        DTypeError: if the dtypes differ.

    Example:
        >>> a = fs.constant([[1.0, 2.0], [3.0, 4.0]])
        >>> fs.Session().run(fs.matmul(a, a, transpose_b=True))
        array([[ 5., 11.],
               [11., 25.]], dtype=float32)
    """
    if (transpose_a and adjoint_a) or (transpose_b and adjoint_b):
        raise expected("a transpose or an adjoint of a matrix", "both")
    if isinstance(a, Tensor | Convertible) or not isinstance(b, Tensor | Convertible):
        a = convert_to_tensor(a, name="MatMul/a")
        b = convert_to_tensor(
            b, None if isinstance(b, Tensor | Convertible) else a.dtype, "MatMul/b"
        )
    else:
        b = convert_to_tensor(b)
        a = convert_to_tensor(a, b.dtype, "MatMul/a")
    a, b = conj(a) if adjoint_a else a, conj(b) if adjoint_b else b
    op = _MATMULS[bool(transpose_a or adjoint_a), bool(transpose_b or adjoint_b)]
    return apply(op, a, b, name=name)


def matrix_transpose(
    a: Any, name: str | None = "matrix_transpose", conjugate: bool = False
) -> Tensor:
    """Returns `a` with its last two axes swapped; conjugated if asked for.

    Raises:
        InvalidArgumentError: if the rank is unknown or below 2.
    """
    a = convert_to_tensor(a)
    rank = a.spec.rank
    if rank is None or rank < 2:
        raise expected("a known rank of 2 at least", a.spec)
    return transpose(conj(a) if conjugate else a, [*range(rank - 2), rank - 1, rank - 2], name)


@op_function("a b=a", scope="MatVec")
def matvec(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Returns the products of matrices `a` and vectors `b`.

    Args:
        a: Matrices [..., m, n].
        b: Vectors [..., n] of the same dtype.
        transpose_a: Whether a's last two axes are swapped first.
        adjoint_a: Whether `a` is transposed and conjugated first.
        a_is_sparse: True or False, a hint: a zero costs as much as any number.
        b_is_sparse: The same for `b`.
    """
    del a_is_sparse, b_is_sparse
    out = matmul(a, expand_axes(b, (-1,)), transpose_a, adjoint_a=adjoint_a)
    return squeeze_axes(out, (-1,))


def sparse_matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Returns the product of float32 or bfloat16 matrices, as float32.

    For matrices that hold many zeros a `SparseTensor` and `sparse_tensor_dense_matmul` are quicker.
    """
    del a_is_sparse, b_is_sparse
    x, y = (cast(convert_to_tensor(t), float32) for t in (a, b))
    return matmul(x, y, transpose_a, transpose_b, name=name or "SparseMatMul")


def adjoint(matrix: Any, name: str | None = None) -> Tensor:
    """Returns matrices with their last two axes swapped, conjugated."""
    return matrix_transpose(matrix, name or "adjoint", conjugate=True)


@op_function("x", scope="Trace")
def trace(x: Any, name: str | None = None) -> Tensor:
    """Returns the sum along the diagonal of each matrix in the last two axes."""
    dims = x.spec.shape
    if dims is not None and len(dims) < 2:
        raise expected("matrices, of rank 2 at least", dims)
    known = dims is not None and None not in dims[-2:]
    sizes: Any = dims if known else shape_of(x)
    return reduce_sum(multiply(x, eye(sizes[-2], sizes[-1], dtype=x.dtype)), [-2, -1])


@op_function("a b=a", scope="Tensordot")
def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> Tensor:
    """Returns the sums of products over pairs of axes.

    Args:
        a: A tensor.
        b: A tensor of the same dtype.
        axes: n for a's last n axes with b's first n, or two lists of axes (for known ranks).

    Raises:
        InvalidArgumentError: if a rank is unknown or the axes do not pair up.

    Example:
        >>> fs.Session().run(fs.tensordot([1.0, 2.0], [[3.0], [4.0]], 1))
        array([11.], dtype=float32)
    """
    if a.spec.rank is None or b.spec.rank is None:
        return _last_with_first(a, b, axes)
    ours, theirs = _paired(axes, a.spec.rank, b.spec.rank)
    left, rows = _matrix(a, ours, last=True)
    right, columns = _matrix(b, theirs, last=False)
    return reshape(matmul(left, right), concat([rows, columns], 0))


def _last_with_first(a: Tensor, b: Tensor, axes: Any) -> Tensor:
    """Returns the product over a's last axes and b's first ones, whatever the ranks."""
    if not isinstance(axes, int) or axes < 0:
        raise expected("known ranks", a.spec, b.spec)
    sizes, others = shape_of(a), shape_of(b)
    rows, columns = sizes[: rank(a) - axes], others[axes:]
    inner = reduce_prod(others[:axes])
    left = reshape(a, [reduce_prod(rows), inner])
    right = reshape(b, [inner, reduce_prod(columns)])
    return reshape(matmul(left, right), concat([rows, columns], 0))


def _paired(axes: Any, m: int, n: int) -> tuple[list[int], list[int]]:
    if isinstance(axes, int):
        if not 0 <= axes <= min(m, n):
            raise expected(f"a number of axes in [0, {min(m, n)}]", axes)
        return list(range(m - axes, m)), list(range(axes))
    ours = [positive_axis(i, m) for i in as_axes(axes[0]) or ()]
    theirs = [positive_axis(i, n) for i in as_axes(axes[1]) or ()]
    if len(ours) != len(theirs):
        raise expected("as many axes of both", ours, theirs)
    return ours, theirs


def _matrix(x: Tensor, axes: list[int], last: bool) -> tuple[Tensor, Tensor]:
    """Returns x as a matrix, `axes` flattened to its last (or first) axis, and the other sizes."""
    free = [i for i in range(len(x.spec.shape or ())) if i not in axes]
    perm = [*free, *axes] if last else [*axes, *free]
    sizes = shape(x)
    kept = gather(sizes, convert_to_tensor(free, "int32"))
    inner = reduce_prod(gather(sizes, convert_to_tensor(axes, "int32")))
    outer = reduce_prod(kept)
    whole = stack([outer, inner] if last else [inner, outer])
    return reshape(transpose(x, perm), whole), kept


operators["__matmul__"] = lambda x, y: matmul(x, y, name="matmul")


class Cross(Op, grad_reads=("a", "b")):
    """The vector product of three-dimensional vectors along the last axis.

    Shapes: a [..., 3], b as a -> a
    """

    def infer(self, a: Spec, b: Spec) -> Spec:
        check_same(a, b)
        check_kind(a.dtype, "fiuc")
        for s in (a, b):
            if s.shape is not None and (not s.shape or s.shape[-1] not in (None, 3)):
                raise expected("a last axis of 3", s.shape)
        if not compatible(a.shape, b.shape):
            raise expected("both of one shape", a.shape, b.shape)
        return a.like()

    def grad(self, g: Tensor, y: Tensor, a: Tensor, b: Tensor) -> Any:
        return apply(self, b, g), apply(self, g, a)

    def kernel(self, xp: ArrayModule, a: Array, b: Array) -> Array:
        if a.shape != b.shape or a.shape[-1] != 3:
            raise expected("two of one shape [..., 3]", a.shape, b.shape)
        return xp.cross(a, b)


def cross(a: Any, b: Any, name: str | None = None) -> Tensor:
    """Returns the vector products of three-dimensional vectors along the last axis."""
    a = convert_to_tensor(a)
    return apply(Cross(), a, convert_to_tensor(b, a.dtype), name=name)
