"""Python functions as operations: they run in the session's process, on NumPy arrays."""

from __future__ import annotations

import itertools
import os
import traceback
import weakref
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from flowscope.cells.user_functions import Held
from flowscope.errors import (
    DTypeError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    OutOfRangeError,
    ResourceExhaustedError,
    UnimplementedError,
    UnknownError,
    said,
)
from flowscope.graph.constant import convert_to_tensor, to_array
from flowscope.graph.current_step import CurrentStep, current_step
from flowscope.graph.default import get_default_graph
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.providers import load
from flowscope.graph.values.dtypes import DType, as_dtype, of_numpy
from flowscope.graph.values.expected import expected

__all__ = ["numpy_function", "py_func", "py_function"]


class _Held(Held):
    """A Python function that operations call."""

    def name(self) -> str:
        """Returns how messages call it."""
        return getattr(self.function, "__name__", type(self.function).__name__)


class SentFunction:
    """A Python function that has come from another process.

    Attributes:
        function: The function.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def name(self) -> str:
        """Returns how messages call it."""
        return getattr(self.function, "__name__", type(self.function).__name__)


#: The functions by token. Ops hold them; a graph that was written and read again finds them here as
#: long as the first one lives.
_functions: weakref.WeakValueDictionary[str, _Held] = weakref.WeakValueDictionary()
_numbers = itertools.count()

#: The folder of the package's own files.
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))

#: TensorFlow's errors for Python's.
_ERRORS: tuple[tuple[Any, type[OpError]], ...] = (
    (StopIteration, OutOfRangeError),
    (MemoryError, ResourceExhaustedError),
    (NotImplementedError, UnimplementedError),
    ((ValueError, TypeError), InvalidArgumentError),
)


#: How the functions of `py_function` are called, on tensors with values, and how their results are
#: differentiated: `call` and `differentiate` of `flowscope.runtime.session.eager`, which fills it.
eager_calls: list[tuple[Callable[..., Any], Callable[..., Any]]] = []


def _eager_calls() -> tuple[Callable[..., Any], Callable[..., Any]]:
    if not eager_calls:
        load("eager_calls")
    return eager_calls[0]


class HoldsFunction(Op, abstract=True, devices=("CPU",)):
    """Base of ops that have a Python function of the user's; a token stands for it."""

    token: str
    held: ClassVar[Held | None] = None
    sent: ClassVar[SentFunction | None] = None

    def holder(self) -> _Held | SentFunction:
        """The holder of the function.

        Raises:
            NotFoundError: if that is gone, or in another process.
        """
        found = self.sent or _functions.get(self.token)
        if found is None:
            raise NotFoundError(
                f"the Python function {self.token!r} is not there: it lives in the process, and as "
                "long as the graph, that built the operation"
            )
        return found

    def hold(self, graph: Any, function: Callable[..., Any], says: Any = None) -> None:
        """Has the function, from now on; it is neither written nor compared.

        Args:
            graph: Where the op is used.
            function: The function.
            says: Whose behaviour counts, if not that of `function`.
        """
        held = _Held(graph, function, says, token=self.token, is_live=self.is_stateful)
        object.__setattr__(self, "held", held)
        _functions[self.token] = held


def new_token() -> str:
    """Returns a token that stands for no function yet."""
    return f"pyfunc_{next(_numbers)}"


class _Calls(HoldsFunction, abstract=True):
    token: str
    dtypes: tuple[DType, ...]

    def infer(self, *inputs: Spec) -> Any:
        return tuple([Spec(d, None) for d in self.dtypes])

    def kernel(self, xp: ArrayModule, *inputs: Array) -> Any:
        held = self.holder()
        given = [_given(v) for v in inputs]

        def call() -> Any:
            try:
                return self.called(held.function, given)
            except Exception as e:
                raise failure_of(held, e) from e

        step: CurrentStep | None = current_step()
        returned = call() if step is None else step.call_function(call)
        values = _results(held, returned, self.dtypes)
        return values[0] if len(values) == 1 else tuple(values)

    def called(self, function: Callable[..., Any], inputs: list[Any]) -> Any:
        """The function's result."""
        return function(*inputs)


@frozen
class PyFunc(_Calls, is_stateful=True, is_differentiable=False, has_declared_shapes=True):
    """What a Python function returns for the inputs; it may have effects, and runs each time.

    Attributes: `token` names the function, `dtypes` are those of its results.
    """

    token: str
    dtypes: tuple[DType, ...]


@frozen
class PyFuncStateless(_Calls, is_differentiable=False, has_declared_shapes=True):
    """What a Python function returns for the inputs, which its results follow from alone."""

    token: str
    dtypes: tuple[DType, ...]


@frozen
class EagerPyFunc(_Calls, is_stateful=True, has_declared_shapes=True):
    """What a Python function of tensors with values returns; it runs each time.

    Attributes: `token` names the function, `dtypes` are those of its results, `inputs` those of its
    arguments.
    """

    token: str
    dtypes: tuple[DType, ...]
    inputs: tuple[DType, ...] = ()

    def called(self, function: Callable[..., Any], inputs: list[Any]) -> Any:
        return _eager_calls()[0](function, inputs, self.inputs)

    def grad(self, g: Any, y: Any, *inputs: Tensor) -> Any:
        given = [g] if len(self.dtypes) == 1 else list(g)
        arriving = [i for i, one in enumerate(given) if one is not None]
        wanted = [i for i, x in enumerate(inputs) if x.dtype.kind in "fc"]
        held = _functions.get(self.token)
        if held is None or not wanted:
            return (None,) * len(inputs)
        function = _Gradient(held, len(inputs), wanted, arriving)
        arguments = [*inputs, *[given[i] for i in arriving]]
        dtypes = [inputs[i].dtype for i in wanted]
        found: dict[int, Tensor] = dict(
            zip(wanted, _call(EagerPyFunc, function, arguments, dtypes, "EagerPyFuncGrad"))  # type: ignore[arg-type]
        )
        for i, gradient in found.items():
            gradient.set_shape(inputs[i].shape)
        return tuple([found.get(i) for i in range(len(inputs))])


class _Gradient:
    """The gradient of a function: it takes the arguments, and the cotangents that arrive.

    Args:
        held: The function.
        count: How many arguments it has.
        wanted: For which of them gradients are wanted.
        arriving: For which results there are cotangents.
    """

    def __init__(
        self, held: _Held | SentFunction, count: int, wanted: Sequence[int], arriving: Sequence[int]
    ) -> None:
        self.held, self._count, self._wanted, self._arriving = held, count, wanted, arriving
        self.__name__ = f"the gradient of {held.name()}"

    def __call__(self, *tensors: Any) -> list[Any]:
        inputs, cotangents = tensors[: self._count], tensors[self._count :]
        returned = self.held.function(*inputs)
        ys = list(returned) if isinstance(returned, list | tuple) else [returned]
        found: list[Any] = _eager_calls()[1](
            [ys[i] for i in self._arriving], [inputs[i] for i in self._wanted], cotangents
        )
        return found


#: A function that takes longer lets others of its step go on.
_PATIENCE_S = 0.01


@frozen
class HostFunc(
    Op,
    is_stateful=True,
    is_blocking=True,
    is_differentiable=False,
    devices=("CPU",),
    has_declared_shapes=True,
):
    """A Python function that overlaps with others of its step; a plan makes it of a `PyFunc`.

    Attributes:
        call: The op that calls the function.
    """

    call: Op

    def infer(self, *inputs: Spec) -> Any:
        return self.call.infer(*inputs)

    def attempt(self, *inputs: Any) -> tuple[Any, ...] | None:
        """The function's result, if that does not take long."""
        step: CurrentStep = current_step()
        before, step.left_call = step.left_call, None
        if before is not None and before[0] is self:
            call = before[1]
        else:
            call = step.start_function(lambda: self._outputs(inputs))
            call.wait(_PATIENCE_S)
        if call.is_done:
            return call.result()  # type: ignore[no-any-return]
        step.left_call = self, call
        return None

    def begin(self, state: Any, finish: Callable[[Any], None], *inputs: Any) -> Callable[[], None]:
        """Waits for the call that `attempt` has started."""
        step: CurrentStep = current_step()
        assert step.left_call is not None
        _, call = step.left_call
        step.left_call = None
        call.tell(finish)
        give_up: Callable[[], None] = call.leave_alone
        return give_up

    def _outputs(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        found = self.call.kernel(np, *inputs)
        return (found,) if len(self.call.dtypes) == 1 else tuple(found)  # type: ignore[attr-defined]


def called_function(op: Op) -> Callable[..., Any] | None:
    """Returns the Python function that an op calls, to send it with the op; None for other ops."""
    call = op.call if isinstance(op, HostFunc) else op
    held = _functions.get(call.token) if isinstance(call, HoldsFunction) else None
    return None if held is None else held.function


def bind_function(op: Op, function: Callable[..., Any]) -> None:
    """Has an op that has come from another process call the function that came with it."""
    call = op.call if isinstance(op, HostFunc) else op
    # Not a field, as what `held` is.
    object.__setattr__(call, "sent", SentFunction(function))


def is_function(op: Op) -> bool:
    """Whether an op calls a Python function."""
    return isinstance(op, _Calls)


def _given(value: Any) -> Any:
    """Returns an input as the function sees it: read-only, for others may use it as well."""
    if isinstance(value, np.ndarray):
        value = value.view()
        value.setflags(write=False)
    return value


def failure_of(held: _Held | SentFunction, error: Exception) -> OpError:
    """Returns the error of a step for what a function of the user's has raised, with its line."""
    kind = next((k for e, k in _ERRORS if isinstance(error, e)), UnknownError)
    frames = traceback.extract_tb(error.__traceback__)[1:]
    # The user's line, not one of an operation that the function uses.
    frames = [f for f in frames if not f.filename.startswith(_PACKAGE)] or frames
    at = f" (line {frames[-1].lineno} of {frames[-1].filename})" if frames else ""
    words = error.message if isinstance(error, OpError) else said(error)
    text = f"{type(error).__name__} in {held.name()}{at}: {words}"
    return error.reworded(text) if isinstance(error, OpError) else kind(text)


def _results(held: _Held | SentFunction, returned: Any, wanted: tuple[DType, ...]) -> list[Any]:
    if not wanted and (returned is None or (isinstance(returned, list) and not returned)):
        return []
    several = list(returned) if isinstance(returned, list | tuple) else [returned]
    if len(several) != len(wanted):
        raise expected(f"{len(wanted)} results of {held.name()}", len(several))
    return [_converted(held, i, v, d) for i, (v, d) in enumerate(zip(several, wanted))]


def _converted(held: _Held | SentFunction, index: int, value: Any, dtype: DType) -> Any:
    """Returns a result as an array of its own; a plain Python number takes the dtype that fits."""
    what = f"expected {dtype} as result {index} of {held.name()}"
    if value is None:
        raise InvalidArgumentError(f"{what}, got None")
    try:
        if dtype.kind == "s" or type(value) in (bool, int, float, complex, str, bytes):
            return to_array(value, dtype)
        array, found = _as_array(value)
        if found is dtype:
            return array[()]
    except _NotAnArray as e:
        raise InternalError(f"{what}, got {e}: return an array") from None
    except OpError as e:
        raise InvalidArgumentError(f"{what}, {e.message}") from None
    raise InvalidArgumentError(
        f"{what}, got {found}: return np.asarray(..., np.{dtype.np_dtype.name})"
    )


class _NotAnArray(Exception):
    """What no array can be made of."""


def _as_array(value: Any) -> tuple[Any, DType]:
    """Returns a result as an array, and its dtype.

    Raises:
        InvalidArgumentError: if it is a ragged list.
        _NotAnArray: if it holds something else than numbers and strings.
    """
    try:
        array = np.array(value, order="C").view(np.ndarray)
    except UnicodeDecodeError:  # bytes beside a str
        array = np.array(value, object)
    except (ValueError, TypeError) as e:
        raise InvalidArgumentError(f"got no regular array: {e}") from None
    known = array.dtype.kind != "O" or all(isinstance(v, str | bytes) for v in array.reshape(-1))
    try:
        if known:
            return array, of_numpy(array.dtype)
    except DTypeError:
        pass
    raise _NotAnArray(
        f"{type(value).__name__} of {array.dtype}" if array.ndim else type(value).__name__
    )


def _call(
    kind: type[_Calls], func: Any, inp: Any, wanted: Any, name: str
) -> list[Tensor] | Tensor | Operation:
    if not callable(func):
        raise expected("a function", repr(func))
    is_list = isinstance(wanted, list | tuple)
    dtypes = tuple([as_dtype(d) for d in (wanted if is_list else [wanted])])
    graph = get_default_graph()
    tensors = tuple([convert_to_tensor(v) for v in inp])
    # The behaviour of a gradient is that of its function.
    says = func.held.function if isinstance(func, _Gradient) else None
    of = {"inputs": tuple([t.dtype for t in tensors])} if kind is EagerPyFunc else {}
    definition = kind(new_token(), dtypes, **of)  # type: ignore[call-arg]
    definition.hold(graph, func, says)
    op = graph.add(definition, tensors, name)
    if not dtypes:
        return op if kind.is_stateful else []
    return list(op.outputs) if is_list else op.outputs[0]


def py_func(
    func: Callable[..., Any],
    inp: Any,
    Tout: Any,
    stateful: bool = True,
    name: str | None = None,
) -> Any:
    """The result of a Python function that runs in the session's process.

    Args:
        func: Takes NumPy arrays (scalars for rank 0), which it must not change, and returns arrays.
        inp: A list of tensors.
        Tout: A dtype, or a list of them for several results.
        stateful: Whether it may return something else for equal inputs, or has effects.
        name: Name of the operation.

    Returns:
        A tensor, or a list of them where `Tout` is one; where there is no result the operation, or
        an empty list if it is not stateful.
        Their shapes are unknown: see `Tensor.set_shape` and `fs.ensure_shape`. No gradient flows
        through: see `fs.custom_gradient`.

    Raises:
        InvalidArgumentError: when it runs, if the results have other dtypes; errors of the function
            become errors of the step, with the function's line in their text.
        InternalError: when it runs, if a result is no array, number or string.

    Functions of one step that do not depend on each other start in the order of the program, each
    once the one before it has returned or has taken 10 ms; several run on threads of their own.
    Ctrl-C raises KeyboardInterrupt in the function of a step that the main thread runs. Where a
    step has a deadline its functions run on threads of their own: at the deadline, or when it is
    stopped, the step ends, and the function is left alone. It ends at its next line of Python.

    Example:
        >>> x = fs.placeholder(fs.float64, [3])
        >>> order = fs.py_func(lambda v: np.argsort(v), [x], fs.int64)
        >>> fs.Session().run(order, {x: [0.3, 0.1, 0.2]})
        array([1, 2, 0])
    """
    kind = PyFunc if stateful else PyFuncStateless
    return _call(kind, func, inp, Tout, name or "PyFunc")


def numpy_function(
    func: Any = None,
    inp: Any = None,
    Tout: Any = None,
    stateful: bool = True,
    name: str | None = None,
) -> Any:
    """The result of a Python function of NumPy arrays; see `py_func`."""
    return py_func(func, inp, Tout, stateful, name)


def py_function(
    func: Any = None,
    inp: Any = None,
    Tout: Any = None,
    name: str | None = None,
) -> Any:
    """The result of a Python function of tensors with values; it has a gradient.

    Args:
        func: Takes tensors that have values (`numpy()`), and may use operations on them, which
            compute at once; returns tensors, arrays or numbers.
        inp: A list of tensors.
        Tout: A dtype, or a list of them for several results.
        name: Name of the operation.

    Returns:
        A tensor, or a list of them where `Tout` is one; where there is no result, the operation.
        Their shapes are unknown: see `Tensor.set_shape` and `fs.ensure_shape`.

    The gradient calls the function again and differentiates the operations that it uses; where it
    computes with NumPy the gradient is zero. Variables of the graph outside cannot be used in it:
    give their values in `inp`. For all else see `py_func`.
    """
    return _call(EagerPyFunc, func, inp, Tout, name or "EagerPyFunc")
