"""All errors of flowscope, under TensorFlow's names, with the facts as fields.

An op's shape rule raises one with a bare message; whoever knows more (the graph while building, the
session while running) adds the node, its inputs and the user's line by `located`. Errors survive
pickling, for they cross processes.
"""

from __future__ import annotations

import typing as _typing
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from flowscope.api.absent import refusal as _refusal


class OpError(Exception):
    """Base of all errors that building or running an operation can raise.

    TensorFlow's arguments do too: `fs.errors.OutOfRangeError(node_def, op, message)`.

    Args:
        arguments: The message: what was expected and what came, one sentence or more.
        op: The operation or, where no graph holds it, its name; None if there is none.
        op_type: Type of the operation, e.g. "MatMul".
        inputs: One line per input: name, dtype, shape, where it comes from.
        origin: Where the user made the operation, e.g. "cell 4, line 7".
        source: The text of that line.
        device: Device on which the operation ran.
        forward: Name of the operation whose gradient this one is part of.
        forward_origin, forward_source: Where the user made that one.
        iterations: The running loops around, from the outermost: their names, and the number of
            the iteration, which counts from 0.

    Attributes:
        op_name: Name of the operation, None if there is none.

    The other facts are attributes too. A pickled error keeps the operation's name, not its graph.
    """

    #: The status code that TensorFlow gives this error.
    code: ClassVar[int] = 2

    def __init__(
        self,
        *arguments: Any,
        op: Any = None,
        op_type: str | None = None,
        inputs: Sequence[str] = (),
        origin: str | None = None,
        source: str | None = None,
        device: str | None = None,
        forward: str | None = None,
        forward_origin: str | None = None,
        forward_source: str | None = None,
        iterations: Sequence[tuple[str, int]] = (),
    ) -> None:
        if len(arguments) not in (1, 3, 4):
            raise TypeError(
                f"expected a message, or node_def, op and message, got {len(arguments)} arguments"
            )
        message: str = arguments[2] if len(arguments) > 1 else arguments[0]
        super().__init__(message)
        self.message = message
        self._node_def, given = arguments[:2] if len(arguments) > 1 else (None, None)
        op = op or given
        is_code = len(arguments) == 4 and isinstance(arguments[3], int)
        self._code: int | None = arguments[3] if is_code else None
        self._op = None if isinstance(op, str) else op
        self.op_name: str | None = op if isinstance(op, str) else getattr(op, "name", None)
        self.op_type = op_type
        self.inputs = tuple(inputs)
        self.origin = origin
        self.source = source
        self.device = device
        self.forward = forward
        self.forward_origin = forward_origin
        self.forward_source = forward_source
        self.iterations = tuple([(name, number) for name, number in iterations])

    @property
    def error_code(self) -> int:
        """TensorFlow's status code: the one that was given, else that of this class."""
        return self.code if self._code is None else self._code

    @property
    def op(self) -> Any:
        """The operation that failed, None if no graph holds it; `op_name` is its name."""
        return self._op

    @property
    def node_def(self) -> Any:
        """The definition of `op`, or the one that the error was made with; else None."""
        return getattr(self._op, "node_def", self._node_def)

    @property
    def is_located(self) -> bool:
        """Whether the operation's name is known."""
        return self.op_name is not None

    def located(self, **facts: Any) -> Self:
        """Returns the same error with `facts` (the constructor's keywords) added."""
        known = {k: v for k, v in self.facts().items() if v}
        if self._op is not None:
            known["op"] = self._op
        made = _rebuild(type(self), self.message, {**facts, **known})
        return _typing.cast(Self, made.with_traceback(self.__traceback__))

    def reworded(self, message: str) -> OpError:
        """Returns an error of the same class with another message, and no other facts."""
        return _rebuild(type(self), message, {})

    def as_public(self) -> OpError:
        """Returns itself; of a class that only flowscope uses, the same of a public class."""
        cls = type(self)
        if not cls.__module__.startswith("flowscope.") or public_class(cls) is cls:
            return self
        facts = self.facts()
        if self._op is not None:
            facts["op"] = self._op
        made = public_class(cls)(self.message, **facts).with_traceback(self.__traceback__)
        made.__cause__ = self.__cause__
        made.__suppress_context__ = self.__suppress_context__
        return made

    def facts(self) -> dict[str, Any]:
        """The fields beside the message: the constructor's keywords, as plain data."""
        return {
            "op": self.op_name,
            "op_type": self.op_type,
            "inputs": self.inputs,
            "origin": self.origin,
            "source": self.source,
            "device": self.device,
            "forward": self.forward,
            "forward_origin": self.forward_origin,
            "forward_source": self.forward_source,
            "iterations": self.iterations,
        }

    def __str__(self) -> str:
        lines = [f"{self.op_type}: {self.message}" if self.op_type else self.message]
        lines += [f"  {line}" for line in self.inputs]
        if self.op_name is None and self.device:
            lines.append(f"on {self.device}")
        if self.op_name is not None:
            on = f", on {self.device}" if self.device else ""
            lines += _placed(f'node "{self.op_name}"{on}', self.origin, self.source)
        if self.iterations:
            steps = [f'iteration {number} of "{name}"' for name, number in self.iterations]
            lines.append("in " + ", ".join(steps))
        if self.forward is not None:
            of = f'gradient of "{self.forward}"'
            lines += _placed(of, self.forward_origin, self.forward_source)
        return "\n".join(lines)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.facts())


def _placed(what: str, origin: str | None, source: str | None) -> list[str]:
    made = f", made in {origin}" if origin else ""
    return [what + made, *([f"  {source}"] if source else [])]


def _rebuild(cls: type[OpError], message: str, facts: dict[str, Any]) -> OpError:
    """Returns an error; where a class of the user's asks for other arguments, its public base."""
    try:
        return cls(message, **facts)
    except TypeError:
        if public_class(cls) is cls:
            raise
        return public_class(cls)(f"{cls.__name__}: {message}", **facts)


def said(error: BaseException) -> str:
    """Returns the text of an exception, also of one that cannot say it."""
    try:
        return str(error)
    except Exception as e:  # a class of the user's
        return f"(its text cannot be told: {type(e).__name__})"


def public_class(cls: type[OpError]) -> type[OpError]:
    """Returns the class of this module that a class of errors is, or is derived from."""
    return next(c for c in cls.__mro__ if c.__module__ == __name__)


class CancelledError(OpError):
    """The step was stopped by a person or by a call."""

    code = 1


class UnknownError(OpError):
    """Something failed for a reason that flowscope cannot name; see `__cause__`."""

    code = 2


class InvalidArgumentError(OpError, ValueError):
    """An argument does not fit: a shape, a value, a name, a device."""

    code = 3


class DTypeError(InvalidArgumentError, TypeError):
    """An argument has the wrong dtype; there is no implicit promotion."""


class GraphError(InvalidArgumentError, RuntimeError):
    """The graph cannot take this: finalized, another graph's tensor, no default session."""


class NestingError(GraphError, AssertionError):
    """Scopes of a `with` are left in another order than they were entered in."""


class StaleError(GraphError):
    """What was used follows from operations that a re-run of a notebook cell has changed."""


class UnsupportedGradientError(InvalidArgumentError, LookupError):
    """A gradient was asked for through an op that has none."""


class DeadlineExceededError(OpError):
    """A step or a wait took longer than it was given."""

    code = 4


class NotFoundError(OpError, KeyError):
    """A named thing (operation, tensor, file, variable) does not exist."""

    code = 5

    __str__ = OpError.__str__


class UnmatchedError(NotFoundError, AssertionError):
    """A checkpoint and the objects to restore do not hold the same variables."""


class AlreadyExistsError(OpError):
    """A named thing exists already."""

    code = 6


class RegistrationError(AlreadyExistsError, KeyError):
    """A second gradient was registered under one name."""

    __str__ = AlreadyExistsError.__str__


class PermissionDeniedError(OpError):
    """The operating system refused access."""

    code = 7


class ResourceExhaustedError(OpError):
    """Memory or another resource ran out."""

    code = 8


class FailedPreconditionError(OpError):
    """The state is not ready for this, e.g. a variable without a value."""

    code = 9


class AbortedError(OpError):
    """The step was aborted, usually because a peer failed."""

    code = 10


class OutOfRangeError(OpError):
    """A sequence has come to its end, or an index lies outside it."""

    code = 11


class UnimplementedError(OpError, NotImplementedError):
    """This device or flowscope has no such operation."""

    code = 12


class InternalError(OpError):
    """A broken invariant inside flowscope: please report it."""

    code = 13


class UnavailableError(OpError):
    """A peer cannot be reached at present."""

    code = 14


class DataLossError(OpError):
    """Stored data cannot be read back."""

    code = 15


class UnauthenticatedError(OpError):
    """A peer did not prove who it is."""

    code = 16


class GraphGrowthWarning(UserWarning):
    """A line of the program adds operations to the graph between runs, again and again."""


class ControlFlowWarning(UserWarning):
    """A branch or loop does not do what its text suggests."""


class DeviceWarning(UserWarning):
    """A device that was asked for is not there."""


class VersionWarning(UserWarning):
    """Processes of a cluster compute with other libraries or vector instructions."""


def exception_type_from_error_code(error_code: int) -> type[OpError]:
    """Returns the class of a status code; raises NotFoundError (a KeyError) if there is none."""
    for cls in OpError.__subclasses__():
        if cls.code == error_code:
            return cls
    raise NotFoundError(f"expected a status code from 1 to {UNAUTHENTICATED}, got {error_code!r}")


def error_code_from_exception_type(cls: type[OpError]) -> int:
    """Returns the status code of a class of errors."""
    return cls.code


#: TensorFlow's status codes.
OK = 0
CANCELLED = CancelledError.code
UNKNOWN = UnknownError.code
INVALID_ARGUMENT = InvalidArgumentError.code
DEADLINE_EXCEEDED = DeadlineExceededError.code
NOT_FOUND = NotFoundError.code
ALREADY_EXISTS = AlreadyExistsError.code
PERMISSION_DENIED = PermissionDeniedError.code
RESOURCE_EXHAUSTED = ResourceExhaustedError.code
FAILED_PRECONDITION = FailedPreconditionError.code
ABORTED = AbortedError.code
OUT_OF_RANGE = OutOfRangeError.code
UNIMPLEMENTED = UnimplementedError.code
INTERNAL = InternalError.code
UNAVAILABLE = UnavailableError.code
DATA_LOSS = DataLossError.code
UNAUTHENTICATED = UnauthenticatedError.code

if not _typing.TYPE_CHECKING:  # type checkers know which names there are
    __getattr__ = _refusal(__name__, globals())
