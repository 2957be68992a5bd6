"""Checks while a step runs - and while the graph is built, where enough is known by then."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import Convertible, convert_to_tensor, get_static_value
from flowscope.graph.default import get_default_graph
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.host_values import on_host
from flowscope.graph.values.shapes import Dims, as_dims, compatible, merge_dims, text
from flowscope.ops.array.arrays import rank, shape
from flowscope.ops.array.joining import stack
from flowscope.ops.core.build import apply, apply_none
from flowscope.ops.core.flow import group, identity, no_op
from flowscope.ops.host.printing import Parts, bracketed, parts_of
from flowscope.ops.math.elementwise import (
    abs,
    add,
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    multiply,
    not_equal,
    subtract,
)
from flowscope.ops.math.reductions import reduce_all, reduce_any
from flowscope.ops.strings.formatting import summary

__all__ = [
    "Assert",
    "add_check_numerics_ops",
    "assert_equal",
    "assert_greater",
    "assert_greater_equal",
    "assert_less",
    "assert_less_equal",
    "assert_near",
    "assert_negative",
    "assert_non_negative",
    "assert_non_positive",
    "assert_none_equal",
    "assert_positive",
    "assert_rank",
    "assert_rank_at_least",
    "assert_rank_in",
    "assert_scalar",
    "check_numerics",
    "ensure_shape",
    "guarantee_const",
    "verify_tensor_all_finite",
    "with_dependencies",
]


@frozen
class AssertTrue(Op, is_stateful=True, is_differentiable=False, host_inputs=(0,)):
    """Nothing; an error if the condition does not hold.

    Attributes: `parts` of the message, a None for each further input; `summarize` elements of each.
    Shapes: condition, all of which must be true; then any
    Raises: InvalidArgumentError.
    """

    parts: Parts
    summarize: int

    def infer(self, condition: Spec, *data: Spec) -> Any:
        if condition.dtype is not dtypes.bool_:
            raise expected_dtype("a bool condition", condition.dtype)
        return ()

    def kernel(self, xp: ArrayModule, condition: Array, *data: Array) -> None:
        if not condition.all():
            said = " ".join(bracketed(self.parts, data, self.summarize))
            raise InvalidArgumentError(f"assertion failed: {said}")


@frozen
class CheckNumerics(Op, views=(0,)):
    """The input as it is; an error if an element is NaN or infinite.

    Raises: InvalidArgumentError.
    """

    message: str

    def infer(self, x: Spec) -> Spec:
        if not x.dtype.is_floating:
            raise expected_dtype("floating-point numbers", x.dtype)
        return x.like()

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        return (apply(CheckNumerics(f"gradient of: {self.message}"), g),)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        # A sum is finite only if all of its terms are, and needs no array.
        if not on_host(xp.isfinite(x.sum())) and not on_host(xp.isfinite(x).all()):
            kinds = [n for n, f in (("NaN", xp.isnan), ("Inf", xp.isinf)) if on_host(f(x).any())]
            raise InvalidArgumentError(f"{self.message} : the tensor has {' and '.join(kinds)}")
        return x


@frozen
class EnsureShape(Op, views=(0,)):
    """The input as it is; an error if its shape is not the one expected.

    Raises: InvalidArgumentError.
    """

    shape: Dims

    def infer(self, x: Spec) -> Spec:
        self._check(x.shape)
        return Spec(x.dtype, merge_dims(x.shape, self.shape), None, x.dims)

    def _check(self, dims: Dims) -> None:
        if not compatible(dims, self.shape):
            raise expected(f"shape {text(self.shape)}", dims)

    def grad(self, g: Tensor, y: Tensor, x: Tensor) -> Any:
        return (g,)

    def kernel(self, xp: ArrayModule, x: Array) -> Array:
        self._check(np.shape(x))
        return x


def ensure_shape(x: Any, shape: Any, name: str | None = None) -> Tensor:
    """Returns `x` with what is known of its shape, which is checked when it runs.

    Args:
        x: A tensor.
        shape: The shape expected, None for unknown dimensions.
        name: Name of the operation.
    """
    return apply(EnsureShape(as_dims(shape)), convert_to_tensor(x), name=name)


def guarantee_const(input: Any, name: str | None = None) -> Tensor:
    """Returns `input`: TensorFlow's promise that it never changes, which nothing here needs."""
    return identity(input, name or "GuaranteeConst")


def check_numerics(tensor: Any, message: str, name: str | None = None) -> Tensor:
    """Returns `tensor`; running it is an error if an element is NaN or infinite.

    Args:
        tensor: Floating-point numbers.
        message: Begins the error's text.
        name: Name of the operation.
    """
    return apply(CheckNumerics(str(message)), convert_to_tensor(tensor), name=name)


def verify_tensor_all_finite(
    t: Any = None, msg: str | None = None, name: str | None = None, x: Any = None,
    message: str | None = None,
) -> Tensor:  # fmt: skip
    """Returns `t`; running it is an error if an element is NaN or infinite.

    Args:
        t: Floating-point numbers.
        msg: Begins the error's text.
        name: Name of the operation.
        x: New name of `t`.
        message: New name of `msg`.
    """
    value, said = (x if t is None else t), (message if msg is None else msg)
    return check_numerics(value, said or "", name or "VerifyFinite")


assert_all_finite = verify_tensor_all_finite


def add_check_numerics_ops() -> Operation:
    """Returns an operation that checks all floating-point tensors of the default graph so far."""
    graph = get_default_graph()
    made: list[Operation] = []
    for op in graph.get_operations():
        if op.block is not graph.root:
            continue
        for i, t in enumerate(op.outputs):
            if t.dtype.is_floating:
                with graph.control_dependencies(made[-1:]):
                    made.append(check_numerics(t, f"{op.name}:{i}").op)
    return group(*made)


def with_dependencies(dependencies: Any, output_tensor: Any, name: str | None = None) -> Any:
    """Returns `output_tensor`'s value, once all dependencies have run.

    Args:
        dependencies: Operations and tensors.
        output_tensor: A tensor.
        name: Name of the operation.
    """
    graph = get_default_graph()
    with graph.control_dependencies(list(dependencies)):
        return identity(output_tensor, name or "control_dependency")


def Assert(
    condition: Any, data: Any, summarize: int | None = None, name: str | None = None
) -> Operation:
    """Returns an operation that is an error when it runs while the condition does not hold.

    Args:
        condition: Bools, all of which must be true.
        data: What the error's text shows: a list of tensors and texts.
        summarize: How many elements of each tensor, 3 by default; all if negative.
        name: Name of the operation.

    Have other operations wait for it: `with fs.control_dependencies([fs.Assert(...)]):`.

    Example:
        >>> check = fs.Assert(fs.constant(True), ["what is told where it is not true"])
        >>> with fs.control_dependencies([check]):
        ...     y = fs.identity(1.0)
        >>> fs.Session().run(y)
        np.float32(1.0)
    """
    parts, tensors = parts_of(data)
    op = AssertTrue(parts, 3 if summarize is None else summarize)
    return apply_none(op, convert_to_tensor(condition), *tensors, name=name or "Assert")


# -- comparisons ----------------------------------------------------------------------------------


def _label(t: Tensor, letter: str) -> str:
    return f"{letter} ({t.name}) = "


def _holds(condition: Tensor, known: Any, data: list[Any], summarize: int | None) -> Operation:
    """Checks at once what is known already, and leaves the rest to an operation."""
    if known is None:
        return Assert(condition, data, summarize)
    if bool(np.asarray(known).all()):
        return no_op("static_checks_determined_all_ok")
    shown = [
        summary(v.spec.constant, -1 if summarize is None else summarize)
        if isinstance(v, Tensor) and v.spec.constant is not None
        else str(v)
        for v in data
    ]
    raise InvalidArgumentError("\n".join(shown).strip())


def _compared(
    function: str, compare: Any, numpy: Any, sign: str, x: Any, y: Any, data: Any,
    summarize: int | None, message: str | None, name: str | None,
) -> Operation:  # fmt: skip
    graph = get_default_graph()
    with graph.name_scope(name or function):
        if isinstance(y, Tensor | Convertible) and not isinstance(x, Tensor | Convertible):
            y = convert_to_tensor(y)
            x = convert_to_tensor(x, y.dtype)
        x = convert_to_tensor(x)
        y = convert_to_tensor(y, None if isinstance(y, Tensor | Convertible) else x.dtype)
        if x is y and sign in ("==", "<=", ">="):
            return no_op("NoOp")
        if data is None:
            said = f"Condition x {sign} y did not hold element-wise:"
            data = [said, _label(x, "x"), x, _label(y, "y"), y]
        data = [message, *data] if message else list(data)
        a, b = x.spec.constant, y.spec.constant
        known = None if a is None or b is None else numpy(a, b)
        return _holds(reduce_all(compare(x, y)), known, data, summarize)


_COMPARE_ARGUMENTS = """

    Args:
        x: A tensor.
        y: A tensor of the same dtype; the shapes are broadcast.
        data: What the error's text shows: a list of tensors and texts; by default x and y.
        summarize: How many elements of each tensor.
        message: Begins the error's text.
        name: Name scope of the operations.

    Raises:
        InvalidArgumentError: at once, if both are known and it does not hold.
    """


def _comparison(
    function: str, compare: Any, numpy: Any, sign: str, what: str
) -> Callable[..., Any]:
    def check(
        x: Any, y: Any, data: Any = None, summarize: int | None = None, message: str | None = None,
        name: str | None = None,
    ) -> Operation:  # fmt: skip
        return _compared(function, compare, numpy, sign, x, y, data, summarize, message, name)

    check.__name__ = check.__qualname__ = function
    check.__doc__ = f"Returns an operation that is an error unless {what}.{_COMPARE_ARGUMENTS}"
    return check


assert_equal = _comparison("assert_equal", equal, np.equal, "==", "x == y throughout")
assert_none_equal = _comparison(
    "assert_none_equal", not_equal, np.not_equal, "!=", "x != y throughout"
)
assert_less = _comparison("assert_less", less, np.less, "<", "x < y throughout")
assert_less_equal = _comparison(
    "assert_less_equal", less_equal, np.less_equal, "<=", "x <= y throughout"
)
assert_greater = _comparison("assert_greater", greater, np.greater, ">", "x > y throughout")
assert_greater_equal = _comparison(
    "assert_greater_equal", greater_equal, np.greater_equal, ">=", "x >= y throughout"
)


def _signed(function: str, compare: Any, numpy: Any, sign: str, what: str) -> Callable[..., Any]:
    def check(
        x: Any, data: Any = None, summarize: int | None = None, message: str | None = None,
        name: str | None = None,
    ) -> Operation:  # fmt: skip
        x = convert_to_tensor(x)
        if data is None:
            data = [f"Condition x {sign} 0 did not hold element-wise:", _label(x, "x"), x]
        return _compared(function, compare, numpy, sign, x, 0, data, summarize, message, name)

    check.__name__ = check.__qualname__ = function
    check.__doc__ = f"""Returns an operation that is an error unless all of x is {what}.

    Args:
        x: A tensor of real numbers.
        data: What the error's text shows: a list of tensors and texts; by default x.
        summarize: How many elements of each tensor.
        message: Begins the error's text.
        name: Name scope of the operations.

    Raises:
        InvalidArgumentError: at once, if x is known and it does not hold.
    """
    return check


assert_positive = _signed("assert_positive", greater, np.greater, ">", "above 0")
assert_negative = _signed("assert_negative", less, np.less, "<", "below 0")
assert_non_negative = _signed(
    "assert_non_negative", greater_equal, np.greater_equal, ">=", "0 or above"
)
assert_non_positive = _signed("assert_non_positive", less_equal, np.less_equal, "<=", "0 or below")


def assert_near(
    x: Any,
    y: Any,
    rtol: Any = None,
    atol: Any = None,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Returns an operation that is an error unless abs(x - y) <= atol + rtol * abs(y) throughout.

    Args:
        x: Floating-point numbers.
        y: Numbers of the same dtype; the shapes are broadcast.
        rtol: Relative tolerance, ten times the dtype's precision by default.
        atol: Absolute tolerance, the same by default.
        data: What the error's text shows; by default x and y.
        summarize: How many elements of each tensor.
        message: Begins the error's text.
        name: Name scope of the operations.
    """
    with get_default_graph().name_scope(name or "assert_near"):
        x = convert_to_tensor(x)
        y = convert_to_tensor(y, None if isinstance(y, Tensor | Convertible) else x.dtype)
        eps = 10 * float(np.finfo(x.dtype.np_dtype).eps) if x.dtype.name != "bfloat16" else 0.08
        rtol, atol = [
            convert_to_tensor(eps if v is None else v, x.dtype.real_dtype) for v in (rtol, atol)
        ]
        limit = add(atol, multiply(rtol, abs(y)))
        if data is None:
            said = "x and y not equal to tolerance:"
            data = [said, "rtol = ", rtol, "atol = ", atol, _label(x, "x"), x, _label(y, "y"), y]
        data = [message, *data] if message else list(data)
        return Assert(reduce_all(less_equal(abs(subtract(x, y)), limit)), data, summarize)


# -- ranks and shapes -----------------------------------------------------------------------------


def _known_rank(rank: Any) -> Any:
    known = get_static_value(rank)
    if known is not None and (known.dtype.kind not in "iu" or known.shape != ()):
        raise expected_dtype("a rank, an integer scalar", repr(rank))
    return None if known is None else int(known)


def _rank_check(
    x: Any, ranks: list[Any], fits: Any, later: Any, said: str, message: str | None, data: Any,
    summarize: int | None, name: str,
) -> Operation:  # fmt: skip
    with get_default_graph().name_scope(name):
        x = convert_to_tensor(x)
        known = [_known_rank(r) for r in ranks]
        if x.spec.rank is not None and None not in known:
            if fits(x.spec.rank, known):
                return no_op("static_checks_determined_all_ok")
            raise InvalidArgumentError(
                f"{message + ': ' if message else ''}expected {x.name} to have {said} "
                f"{' or '.join(map(str, known))}, got rank {x.spec.rank}, shape "
                f"{text(x.spec.shape)}"
            )
        numbers = [convert_to_tensor(r, dtypes.int32) for r in ranks]
        if data is None:
            data = [f"Tensor {x.name} must have {said}", *numbers, "Received shape: ", shape(x)]
        data = [message, *data] if message else list(data)
        return Assert(later(rank(x), numbers), data, summarize)


def assert_rank(
    x: Any, rank: Any, data: Any = None, summarize: int | None = None, message: str | None = None,
    name: str | None = None,
) -> Operation:  # fmt: skip
    """Returns an operation that is an error unless x has this rank.

    Args:
        x: A tensor.
        rank: An integer scalar.
        data: What the error's text shows: a list of tensors and texts.
        summarize: How many elements of each tensor.
        message: Begins the error's text.
        name: Name scope of the operations.

    Raises:
        InvalidArgumentError: at once (a ValueError), if both ranks are known and differ.
    """
    return _rank_check(
        x, [rank], lambda n, r: n == r[0], lambda n, r: equal(n, r[0]), "rank", message, data,
        summarize, name or "assert_rank",
    )  # fmt: skip


def assert_rank_at_least(
    x: Any, rank: Any, data: Any = None, summarize: int | None = None, message: str | None = None,
    name: str | None = None,
) -> Operation:  # fmt: skip
    """Returns an operation that is an error unless x has this rank or more; see `assert_rank`."""
    return _rank_check(
        x, [rank], lambda n, r: n >= r[0], lambda n, r: greater_equal(n, r[0]), "at least rank",
        message, data, summarize, name or "assert_rank_at_least",
    )  # fmt: skip


def assert_rank_in(
    x: Any, ranks: Any, data: Any = None, summarize: int | None = None, message: str | None = None,
    name: str | None = None,
) -> Operation:  # fmt: skip
    """Returns an operation that is an error unless x has one of these ranks; see `assert_rank`."""
    return _rank_check(
        x, list(ranks), lambda n, r: n in r, lambda n, r: reduce_any(equal(n, stack(r))),
        "rank in", message, data, summarize, name or "assert_rank_in",
    )  # fmt: skip


def assert_scalar(tensor: Any, name: str | None = None, message: str | None = None) -> Tensor:
    """Returns `tensor` if its static shape is that of a scalar.

    Raises:
        InvalidArgumentError: if it is not, or the rank is unknown.
    """
    t = convert_to_tensor(tensor)
    if t.spec.shape != ():
        front = f"{message}: " if message else ""
        raise InvalidArgumentError(
            f"{front}expected a scalar, got {t.name} of shape {text(t.spec.shape)}"
        )
    return t


def assert_shapes(
    shapes: Any,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Returns an operation that is an error unless tensors have shapes that fit each other.

    Args:
        shapes: Pairs (tensor, shape), or a dict of them. A shape is a sequence of integers, of
            symbols (texts), which stand for one number throughout, and of None or "." for any;
            "..." or "*" in front stands for any leading axes.
        data: What the error's text shows: a list of tensors and texts.
        summarize: How many elements of each tensor.
        message: Begins the error's text.
        name: Name scope of the operations.

    Raises:
        InvalidArgumentError: at once, if enough is known and it does not fit.
    """
    pairs = list(shapes.items() if isinstance(shapes, Mapping) else shapes)
    with get_default_graph().name_scope(name or "assert_shapes"):
        checks: list[Operation] = []
        sizes: dict[str, tuple[Any, str]] = {}
        for value, wanted in pairs:
            x = convert_to_tensor(value)
            symbols = [wanted] if isinstance(wanted, str | int) else list(wanted)
            is_open = bool(symbols) and symbols[0] in ("...", "*")
            symbols = symbols[is_open:]
            check = assert_rank_at_least if is_open else assert_rank
            checks.append(check(x, len(symbols), data, summarize, message))
            for i, symbol in enumerate(symbols):
                checks += _size_check(x, i - len(symbols), symbol, sizes, data, summarize, message)
        return group(*checks, name="shapes_checked")


def _size_check(
    x: Tensor, axis: int, symbol: Any, sizes: dict[str, tuple[Any, str]], data: Any,
    summarize: int | None, message: str | None,
) -> list[Operation]:  # fmt: skip
    if symbol is None or symbol == ".":
        return []
    known = None if x.spec.shape is None else x.spec.shape[axis]
    size = shape(x)[axis] if known is None else known
    if not isinstance(symbol, str):
        wanted, whose = int(symbol), "given"
    elif symbol not in sizes:
        sizes[symbol] = size, f"that of {x.name}"
        return []
    else:
        wanted, whose = sizes[symbol]
    if isinstance(wanted, int) and isinstance(size, int):
        if wanted == size:
            return []
        front = f"{message}: " if message else ""
        raise InvalidArgumentError(
            f"{front}expected size {wanted} ({whose}) at axis {axis} of {x.name}, got {size}, "
            f"shape {text(x.spec.shape)}"
        )
    if data is None:
        said = f"Tensor {x.name}, axis {axis}, must have the size {whose}:"
        data = [said, wanted, "Received shape: ", shape(x)]
    data = [message, *data] if message else list(data)
    return [Assert(equal(size, wanted), data, summarize)]
