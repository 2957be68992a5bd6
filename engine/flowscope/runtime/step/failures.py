"""From an exception in a running step to an error that names the operation and the user's line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from flowscope.errors import (
    CancelledError,
    DeadlineExceededError,
    InvalidArgumentError,
    OpError,
    ResourceExhaustedError,
    UnknownError,
    said,
)
from flowscope.graph.op import Spec
from flowscope.graph.operation import Operation, where
from flowscope.graph.values.dtypes import of_numpy, string
from flowscope.graph.values.shapes import text
from flowscope.ops.host.py_functions import HostFunc
from flowscope.ops.state.update_groups import CheckUpdate
from flowscope.plan.ir.invocation import Invocation, InvocationError
from flowscope.plan.ir.origins import named
from flowscope.plan.ir.program import Node
from flowscope.plan.plan import Plan
from flowscope.runtime.devices.device import driver_failure

if TYPE_CHECKING:
    from flowscope.runtime.step.step import Step


class FailureNote:
    """What is told of the step that failed last. The error itself is not kept: it holds values."""

    def __init__(self) -> None:
        #: After how many attempts it failed, the operation's number, and one line.
        self._noted: tuple[int, int | None, str] = (-1, None, "")

    def take(self, error: Exception, attempts: int) -> None:
        """Notes how the attempt with this number failed; one that was stopped has not."""
        if isinstance(error, CancelledError):
            return
        op = error.op if isinstance(error, OpError) else None
        message = str(error).strip().partition("\n")[0]
        number = op.id if isinstance(op, Operation) else None
        self._noted = attempts, number, f"{type(error).__name__}: {message}"

    def told(self, attempts: int) -> tuple[int | None, str] | None:
        """Returns operation and line if the latest of so many attempts failed."""
        noted, op, message = self._noted
        return (op, message) if noted == attempts else None


def is_late(error: DeadlineExceededError, step: Step | None) -> bool:
    """Whether the step ran out of time, and not something that an operation of it called."""
    left_s = None if step is None else step.left_s()
    return not error.is_located or (left_s is not None and left_s <= 0)


def located_failure(error: Exception, plan: Plan) -> tuple[Exception, BaseException | None]:
    """Returns an `OpError` with operation, inputs and origin where known, and its cause."""
    feeds = [t.name for t in plan.request.feeds]
    if isinstance(error, InvocationError):
        found, cause = located(error, feeds)
    else:
        found, cause = _at(plan.failed(error), error, feeds)
    return found.as_public(), cause


def located(
    error: InvocationError, feeds: Sequence[str] = ()
) -> tuple[OpError, BaseException | None]:
    """Returns an `OpError` that names the operation whose kernel failed, and the cause.

    Args:
        error: What failed.
        feeds: The names of the fed tensors, where they are known.
    """
    return _at(error.invocation, error.kernel_error, feeds)


def _at(
    failed: Invocation | None, error: Exception, feeds: Sequence[str] = ()
) -> tuple[OpError, BaseException | None]:
    cause: BaseException | None
    found: OpError
    if isinstance(error, OpError):
        cause, found = error.__cause__, error
    else:
        refusal = None if failed is None else _refusal(failed.node, failed.inputs)
        cause, found = error, refusal or _as_op_error(error)
    if failed is None or found.is_located:
        return found, cause
    node = failed.node
    inputs = [_described(i, v, node, feeds) for i, v in enumerate(failed.inputs)]
    return located_at(found, node, iterations=failed.iterations, inputs=inputs), cause


def located_at(error: OpError, node: Node, **more: Any) -> OpError:
    """Returns an error with the operation that a node came from, and the user's line.

    Args:
        error: The error.
        node: The node.
        more: Further facts of `OpError`.
    """
    op = node.op
    if isinstance(op, CheckUpdate):
        op = op.write
    elif isinstance(op, HostFunc):
        op = op.call
    is_check = isinstance(node.op, CheckUpdate)
    name = node.name.removesuffix("/check") if is_check else node.name
    facts = {"op": named(name, node.origins), "op_type": op.type, "device": node.device, **more}
    if node.origins:
        facts |= where(node.origins[0])
    return error.located(**facts)


#: Integers of at most so many elements are shown to a shape rule: sizes, axes, indices.
_SHOWN = 64


def _refusal(node: Node, values: Any) -> OpError | None:
    """The error that the op's shape rule raises for the actual inputs; None if it raises none.

    While the graph was built not all of it was known; an array module's words for the same name
    neither what was expected nor which input it was.
    """
    try:
        node.op.infer(*[_spec(v) for v in values])
    except OpError as refusal:
        return type(refusal)(refusal.message)
    except Exception:  # a rule that stumbles over odd inputs says nothing
        return None
    return None


def _spec(value: Any) -> Spec:
    if isinstance(value, bytes | str):
        return Spec(string, ())
    is_shown = isinstance(value, np.ndarray | np.integer) and value.size <= _SHOWN
    constant = value if is_shown and value.dtype.kind in "iu" else None
    return Spec(of_numpy(value.dtype), value.shape, constant)


def _as_op_error(error: Exception) -> OpError:
    if isinstance(error, MemoryError):
        return ResourceExhaustedError(f"out of memory: {error}")
    if isinstance(error, ValueError | TypeError | IndexError | ZeroDivisionError):
        return InvalidArgumentError(said(error))
    if (failure := driver_failure(error)) is not None:
        return failure
    return UnknownError(f"{type(error).__name__}: {said(error)}")


def _described(index: int, value: Any, node: Node, feeds: Sequence[str]) -> str:
    source = node.inputs[index]
    is_fed = source.node is None and not source.name and source.index < len(feeds)
    label = feeds[source.index] if is_fed else source.label
    if hasattr(value, "family"):
        return f"input {index}: {value}"
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f'input {index}: {value.dtype}{text(value.shape)}   from "{label}"'
    return f'input {index}: {type(value).__name__}   from "{label}"'
