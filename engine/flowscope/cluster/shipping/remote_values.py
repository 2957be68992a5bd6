"""Values that are on workers while a client runs a step one operation at a time.

The client has a number for each. What operations there take and make stays there; only what
somebody asks for comes over: a number of its elements, a slice, a condition's answer.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from flowscope.cluster.shipping.sent_objects import Ask, dumps_for
from flowscope.errors import InvalidArgumentError
from flowscope.runtime.session.remote import RemoteValue
from flowscope.runtime.state.random_generators import generator

if TYPE_CHECKING:
    from flowscope.cluster.client.session import ClusterSession


def called_there(
    function: Callable[[Any], Any], asks: Ask, ask: Callable[[list[Any]], list[Any]]
) -> Any:
    """Calls a function with a value on the value's task; returns its result.

    Args:
        function: The function.
        asks: Asks the task which modules it wants.
        ask: Sends it, as bytes in an array, and returns the answer (`hosted_ops.applied`).
    """
    data = np.frombuffer(dumps_for(function, asks), np.uint8)
    return pickle.loads(ask([data])[0].tobytes())


class RemoteArray(RemoteValue):
    """A value of another task.

    Args:
        session: The session's part in the cluster.
        task: The task that has it.
        number: Its number there.
        dtype: Its dtype.
        shape: Its shape; None for what is no array.
    """

    def __init__(
        self,
        session: ClusterSession,
        task: str,
        number: int,
        dtype: Any,
        shape: Sequence[int] | None,
    ) -> None:
        self._session = session
        self.task = task
        self.number = number
        self.dtype = dtype
        self.is_array = shape is not None
        self.shape = tuple(shape or ())

    def fetch(self) -> Any:
        """Returns it, brought here."""
        header = {"kind": "op.fetch", "number": self.number}
        return self._session.ask(self.task, header)[0]

    def apply(self, function: Callable[[Any], Any]) -> Any:
        """Calls a function with the value on its task; only the result is transferred."""
        header = {"kind": "op.apply", "number": self.number}
        asks = self._session.asks(self.task)
        return called_there(function, asks, lambda sent: self._session.ask(self.task, header, sent))

    def __bool__(self) -> bool:
        return bool(self.fetch())

    def __int__(self) -> int:
        return int(self.fetch())

    __index__ = __int__

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.fetch(), dtype)

    def __del__(self) -> None:
        self._session.drops(self.task).append(self.number)


class RemoteGenerator:
    """Stands for the generator of one invocation: it is made where the operation runs."""

    def __init__(self, run: Any, *counts: int) -> None:
        self._arguments = run, *counts

    def made(self) -> Any:
        """Returns the generator."""
        return generator(*self._arguments)

    def __reduce__(self) -> Any:
        return RemoteGenerator, self._arguments


def brought_here(value: Any) -> Any:
    """Returns an argument of a kernel that runs here."""
    if isinstance(value, RemoteArray):
        return value.fetch()
    return value.made() if isinstance(value, RemoteGenerator) else value


class _Packer(pickle.Pickler):
    """Writes what stays there as a number, and arrays apart from the rest."""

    def __init__(self, out: io.BytesIO, task: str, values: list[Any]) -> None:
        super().__init__(out, pickle.HIGHEST_PROTOCOL)
        self._task = task
        self._values = values

    def persistent_id(self, obj: Any) -> tuple[Any, ...] | None:
        """The persistent id of a value or of state of the task."""
        if isinstance(obj, RemoteArray):
            if obj.task == self._task:
                return "held", obj.number
            obj = obj.fetch()
        if isinstance(obj, np.ndarray | np.generic):
            self._values.append(obj)
            return "sent", len(self._values)
        key = getattr(obj, "state_key", None)
        return None if key is None else ("state", *key)


class _Unpacker(pickle.Unpickler):
    def __init__(
        self, data: bytes, held: Mapping[int, Any], states: Mapping[Any, Any], values: Sequence[Any]
    ) -> None:
        super().__init__(io.BytesIO(data))
        self._held = held
        self._states = states
        self._values = values

    def persistent_load(self, pid: Any) -> Any:
        """The value or state of a persistent id of `_Packer`."""
        match pid:
            case ("held", number):
                return self._held[number]
            case ("sent", number):
                return self._values[number]
            case _:
                return self._states[pid[1:]]


def packed(arguments: Sequence[Any], task: str) -> list[Any]:
    """Returns the arguments of a kernel as a run carries them to a task.

    Raises:
        InvalidArgumentError: if there is one that cannot be sent.
    """
    values: list[Any] = []
    out = io.BytesIO()
    try:
        _Packer(out, task, values).dump(tuple(arguments))
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError) as e:
        raise InvalidArgumentError(f"an input cannot be sent to {task}: {e}") from e
    return [np.frombuffer(out.getvalue(), np.uint8), *values]


def unpacked(
    values: Sequence[Any], held: Mapping[int, Any], states: Mapping[Any, Any]
) -> tuple[Any, ...]:
    """Returns the arguments that `packed` has written: "sent" values are numbered from 1.

    Args:
        values: What the run has brought.
        held: The values that are here, by their numbers.
        states: What handles stand for here, by containers and names.
    """
    found = _Unpacker(values[0].tobytes(), held, states, values).load()
    return tuple([a.made() if isinstance(a, RemoteGenerator) else a for a in found])


__all__ = ["RemoteArray", "RemoteGenerator", "brought_here", "called_there", "packed", "unpacked"]
