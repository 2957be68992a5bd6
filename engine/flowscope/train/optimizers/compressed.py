"""`fs.experimental.compress_gradients`: gradients go to their variables as shorter codes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from flowscope.control.branches import cond
from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.indexed_slices import IndexedSlices
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.scopes import colocate_with, control_dependencies
from flowscope.graph.values.dtypes import bfloat16
from flowscope.graph.values.expected import expected
from flowscope.ops.array.arrays import zeros
from flowscope.ops.array.gathering import gather, scatter_nd
from flowscope.ops.array.shaping import expand_dims, reshape
from flowscope.ops.core.casting import cast
from flowscope.ops.core.flow import group, identity
from flowscope.ops.math.arithmetic import add_n
from flowscope.ops.math.elementwise import abs, add, divide, greater_equal, subtract
from flowscope.ops.nn.top_k import top_k
from flowscope.ops.state.variables import Variable
from flowscope.train.optimizers.groups import join_group
from flowscope.train.optimizers.optimizer import Optimizer

#: Makes a code of a gradient: a tensor, or a tuple of some.
Encode = Callable[[Tensor], Any]
#: Makes a gradient of the given shape of a code.
Decode = Callable[[Any, list[int]], Tensor]


class CompressedOptimizer(Optimizer):
    """Has another optimizer apply gradients that were encoded where they are, and decoded there.

    Args:
        optimizer: The other optimizer.
        encode: See `compress_gradients`.
        decode: See `compress_gradients`.
        has_feedback: Whether what a code has lost is added to the next gradient.
        first_step: From which step on codes go.
        global_step: Counts the steps.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        encode: Encode,
        decode: Decode,
        has_feedback: bool,
        first_step: int,
        global_step: Variable | None,
    ) -> None:
        super().__init__(False, f"compressed_{optimizer.get_name()}")
        self._optimizer = optimizer
        self._encode = encode
        self._decode = decode
        self._has_feedback = has_feedback
        self._first_step = first_step
        self._global_step = global_step
        self._residuals: dict[tuple[Variable, int], Variable] = {}

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """Returns (gradient, variable) pairs: those of the other optimizer."""
        return self._optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Any, Variable]],
        global_step: Variable | None = None,
        name: str | None = None,
    ) -> Operation:
        """Returns an operation that applies the gradients once, and keeps what codes have lost.

        Args:
            grads_and_vars: Pairs of a gradient, or a list with one for each rank, of which the mean
                is applied, and a variable.
            global_step: Variable to which each update adds one.
            name: Name of the operation.

        Raises:
            InvalidArgumentError: if there is no gradient at all, or a variable of an unknown shape.
        """
        pairs = [(_grads(g), v) for g, v in grads_and_vars if g is not None]
        if not pairs:
            raise InvalidArgumentError("no gradients were given for any variable")
        graph = pairs[0][1].graph
        before = len(graph)
        kept: list[Operation] = []
        with graph.name_scope(name or self._name) as scope:
            parts = []
            for grads, var in pairs:
                decoded = [self._through(g, var, i, kept) for i, g in enumerate(grads)]
                with colocate_with(var.op):
                    total = add_n(decoded) if len(decoded) > 1 else decoded[0]
                    mean = divide(total, float(len(decoded))) if len(decoded) > 1 else total
                parts.append((mean, var))
            updated = self._optimizer.apply_gradients(parts, global_step)
            train_op = group(updated, *kept, name=scope)
        join_group(graph.operations_since(before), scope.rstrip("/"))
        return train_op

    def _through(self, g: Tensor, var: Variable, rank: int, kept: list[Operation]) -> Tensor:
        """A gradient as it comes out of its code, on the variable's device."""
        if not var.shape.is_fully_defined():
            raise expected(f"a known shape of {var.name} to decode its gradient", str(var.shape))
        shape = [int(d or 0) for d in var.shape.as_list() or []]
        residual = self._residual(g, var, rank) if self._has_feedback else None
        with colocate_with(g.op):
            whole = g if residual is None else add(g, residual.value())
        if not self._first_step:
            found, *lost = self._coded(whole, var, shape)
        else:
            found, *lost = self._by_step(whole, var, shape)
        if residual is not None:
            with colocate_with(residual.op):
                kept.append(residual.assign(lost[0], read_value=False))
        return found

    def _coded(self, whole: Tensor, var: Variable, shape: list[int]) -> list[Tensor]:
        """What comes out of a code and, where that is kept, what the code has lost."""
        lost = []
        with colocate_with(whole.op):
            code = self._encode(whole)
            if self._has_feedback:
                lost.append(subtract(whole, self._decode(code, shape)))
        with colocate_with(var.op):
            found = convert_to_tensor(self._decode(code, shape))
        if found.dtype is not var.dtype:
            raise DTypeError(f"expected decode to return {var.dtype}, got {found.dtype}")
        return [found, *lost]

    def _by_step(self, whole: Tensor, var: Variable, shape: list[int]) -> list[Tensor]:
        """The gradient itself before the first step of codes, then what its code makes of it."""
        assert self._global_step is not None
        is_coded = greater_equal(self._global_step.value(), self._first_step)

        def dense() -> list[Tensor]:
            with colocate_with(var.op):
                found = [identity(whole)]
            if self._has_feedback:
                with colocate_with(whole.op):
                    found.append(zeros(shape, whole.dtype))
            return found

        def coded() -> list[Tensor]:
            return [identity(x) for x in self._coded(whole, var, shape)]

        found = cond(is_coded, coded, dense)
        return list(found) if isinstance(found, list | tuple) else [found]

    def _residual(self, g: Tensor, var: Variable, rank: int) -> Variable:
        """What codes have lost of a rank's gradients so far; it lies beside the gradient."""
        if (var, rank) not in self._residuals:
            with control_dependencies(None), colocate_with(g.op):
                self._residuals[var, rank] = Variable(
                    zeros(var.shape.as_list(), var.dtype),
                    trainable=False,
                    name=f"{var.op.name}/residual_{rank}",
                )
        return self._residuals[var, rank]


def _grads(g: Any) -> list[Tensor]:
    found = list(g) if isinstance(g, list | tuple) and not isinstance(g, IndexedSlices) else [g]
    return [convert_to_tensor(x) for x in found]


def compress_gradients(
    optimizer: Optimizer,
    encode: Encode,
    decode: Decode,
    error_feedback: bool = False,
    first_step: int = 0,
    global_step: Variable | None = None,
) -> Optimizer:
    """Has gradients go to their variables' devices as codes.

    A gradient is encoded on its device, and decoded on that of its variable: what goes from one to
    the other is the code. The other optimizer applies what was decoded.

    Args:
        optimizer: An optimizer.
        encode: Makes a code of a gradient: a tensor, or a tuple of some.
        decode: Makes a gradient of a code and a shape, a list of lengths.
        error_feedback: Whether what a code has lost of a gradient is added to the next one: what
            is not sent now is sent later.
        first_step: The step from which on codes go; gradients go as they are before it.
        global_step: Variable that counts the steps, needed for `first_step`.

    Raises:
        DTypeError: if that is no optimizer, or if codes are decoded to another dtype.
        InvalidArgumentError: if there is a first step without a variable that counts steps.

    Source: error feedback: Seide et al. 2014, "1-Bit Stochastic Gradient Descent"; a switch to
    codes in training: Abrahamyan et al. 2021, "Learned Gradient Compression for Distributed Deep
    Learning".

    Example:
        >>> w = fs.Variable([1.0, 2.0, 3.0])
        >>> codec = fs.experimental.top_k_codec(1)
        >>> optimizer = fs.train.GradientDescentOptimizer(1.0)
        >>> optimizer = fs.experimental.compress_gradients(optimizer, *codec)
        >>> train = optimizer.minimize(fs.reduce_sum(w * [1.0, 4.0, 2.0]))
        >>> sess = fs.Session()
        >>> sess.run(fs.global_variables_initializer())
        >>> sess.run(train)
        >>> sess.run(w)
        array([ 1., -2.,  3.], dtype=float32)
    """
    if not isinstance(optimizer, Optimizer):
        raise DTypeError(f"expected an optimizer, got {optimizer!r}")
    if first_step and global_step is None:
        raise InvalidArgumentError("expected a global_step that counts to first_step, got none")
    return CompressedOptimizer(optimizer, encode, decode, error_feedback, first_step, global_step)


def bfloat16_codec() -> tuple[Encode, Decode]:
    """Codes of 16 bits an element: encode rounds to bfloat16, decode casts to float32.

    Returns:
        The functions that `compress_gradients` takes.
    """

    def decode(code: Any, shape: list[int]) -> Tensor:
        return cast(code, "float32")

    return lambda g: cast(g, bfloat16), decode


def top_k_codec(k: int) -> tuple[Encode, Decode]:
    """Codes of the k elements that are largest by absolute value, and of their places.

    Args:
        k: How many elements go; all of a smaller gradient.

    Returns:
        The functions that `compress_gradients` takes.

    Raises:
        InvalidArgumentError: if k is below 1.
    """
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise expected("a number of elements of at least 1", repr(k))

    def encode(g: Tensor) -> tuple[Tensor, Tensor]:
        flat = reshape(g, [-1])
        size = flat.shape.num_elements()
        _, places = top_k(abs(flat), k if size is None else min(k, size))
        return gather(flat, places), places

    def decode(code: Any, shape: list[int]) -> Tensor:
        values, places = code
        size = 1
        for d in shape:
            size *= d
        return reshape(scatter_nd(expand_dims(places, 1), values, [size]), shape)

    return encode, decode


__all__ = ["CompressedOptimizer", "bfloat16_codec", "compress_gradients", "top_k_codec"]
