"""Functions of matrices: exponential, logarithm, square root.

The derivative of f at x in the direction e is the upper right block of f([[x, e], [0, x]])
(Higham 2008, "Functions of Matrices", theorem 3.6), and the gradient is the derivative at the
adjoint of x in the direction of the cotangent. So each of these ops is its own gradient op, of a
matrix twice as large, in any order.
"""

from __future__ import annotations

from typing import Any, ClassVar

from flowscope.errors import InvalidArgumentError
from flowscope.graph.op import Array, ArrayModule, Op, Spec
from flowscope.graph.operation import Tensor
from flowscope.graph.values.expected import expected_dtype
from flowscope.graph.values.host_values import on_host
from flowscope.graph.values.work import per_cube
from flowscope.ops.array.arrays import zeros_like
from flowscope.ops.array.joining import concat
from flowscope.ops.array.shaping import shape_of
from flowscope.ops.core.build import apply, unary
from flowscope.ops.kernels.scipy_modules import scipy_of
from flowscope.ops.linalg.matrix_tools import adjoint_of, check_square, each, square_dims

__all__ = ["matrix_square_root"]


class _MatrixFunction(Op, abstract=True, grad_reads=("x",), uses_blas=True):
    """Base of functions of square matrices."""

    routine: ClassVar[str]

    def infer(self, x: Spec) -> Spec:
        return Spec(x.dtype, square_dims(x))

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        back = adjoint_of(x)
        top, bottom = concat([back, g], -1), concat([zeros_like(back), back], -1)
        whole = apply(self, concat([top, bottom], -2))
        n = shape_of(x)[-1]
        return (_like(whole[..., :n, n:], x),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        check_square(x.shape)
        if not x.size:
            return xp.zeros(x.shape, x.dtype)
        compute = getattr(scipy_of(xp, "linalg"), self.routine)

        def of_one(m: Array) -> Array:
            if not on_host(xp.isfinite(m).all()):
                return xp.full(m.shape, xp.nan, x.dtype)
            return self._kept(compute(self._wide(xp, m)), x.dtype)

        return each(xp, of_one, x)

    def _wide(self, xp: ArrayModule, x: Array) -> Array:
        return x

    def _kept(self, found: Array, dtype: Any) -> Array:
        if found.dtype.kind == "c" and dtype.kind != "c":
            raise InvalidArgumentError(
                f"expected matrices whose {self.type} is real: cast them to a complex dtype first"
            )
        return found.astype(dtype, copy=False)


def _like(part: Tensor, x: Tensor) -> Tensor:
    part.set_shape(x.shape)
    return part


class MatrixExponential(_MatrixFunction, routine="expm", work=per_cube(2e-9)):
    """The exponential: 1 + x + x @ x / 2 + ..."""


class MatrixSquareRoot(_MatrixFunction, routine="sqrtm", devices=("CPU",), work=per_cube(10e-9)):
    """The principal square root: y @ y = x.

    Raises: InvalidArgumentError if real matrices have none that is real.
    """


class MatrixLogarithm(_MatrixFunction, routine="logm", devices=("CPU",), work=per_cube(20e-9)):
    """The principal logarithm of complex matrices, whose exponential is x."""

    def infer(self, x: Spec) -> Spec:
        if not x.dtype.is_complex:
            raise expected_dtype("complex64 or complex128", f"{x.dtype}: use fs.cast")
        return super().infer(x)

    def _wide(self, xp: ArrayModule, x: Array) -> Array:
        return x.astype(xp.complex128)  # SciPy checks its result as if it were


def matrix_exponential(input: Any, name: str | None = None) -> Tensor:
    """Returns the exponentials of square matrices.

    Args:
        input: Matrices [..., n, n].
        name: Name of the operation.
    """
    return unary(MatrixExponential(), input, name)


def matrix_logarithm(input: Any, name: str | None = None) -> Tensor:
    """Returns the principal logarithms of complex square matrices."""
    return unary(MatrixLogarithm(), input, name)


def matrix_square_root(input: Any, name: str | None = None) -> Tensor:
    """Returns the principal square roots of square matrices."""
    return unary(MatrixSquareRoot(), input, name)
