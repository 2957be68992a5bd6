"""Objects of the user's on their way to a worker: functions, op types and what they refer to.

What a worker can import by its name goes by its name: it is installed there, or is an own module,
which goes along (`cluster.shipping.own_modules`). What no module has goes by value, as Dask sends
it: functions of cells, op types of cells with their kernels, functions in functions.
"""

from __future__ import annotations

import dis
import io
import pickle
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any

from flowscope.cluster.shipping.own_modules import OwnModule, imports_of, needed
from flowscope.cluster.shipping.sent_modules import PROCESS, SentModule, sent_modules
from flowscope.errors import FailedPreconditionError, InvalidArgumentError
from flowscope.graph.op import Op, arriving, own_kernels, take_kernels

#: Asks a task which modules it wants: takes a header, returns the answer's.
Ask = Callable[[dict[str, Any]], Mapping[str, Any]]


def nothing_wanted(header: dict[str, Any]) -> Mapping[str, Any]:
    """Answers for a task that has all modules."""
    return {"wanted": ()}


class SentObjects:
    """Objects as bytes.

    Attributes:
        data: The bytes.
        names: The names of the modules that the objects come from.
        needs: The user's own modules among them, and those that they import.
    """

    def __init__(self, data: bytes, names: Collection[str]) -> None:
        self.data = data
        self.names = names
        self.needs = needed(names)

    @property
    def offer(self) -> dict[str, Any]:
        """The header that asks a task what it wants."""
        offered = {n: [m.digest, imports_of(m, self.needs)] for n, m in self.needs.items()}
        return {"kind": "modules.offer", "modules": offered, "process": PROCESS}

    def dumps(self, wanted: Collection[str] = ()) -> bytes:
        """Returns the bytes for a task, with the modules that it wants.

        Raises:
            FailedPreconditionError: if there is one that cannot be sent.
        """
        for name in wanted:
            check_sendable(self.needs[name])
        modules = {n: tuple(_told(self.needs[n])) for n in wanted}
        return pickle.dumps((modules, self.data), pickle.HIGHEST_PROTOCOL)


def check_sendable(module: OwnModule) -> None:
    """Raises FailedPreconditionError if a module cannot be sent."""
    if module.problem:
        at = f" ({module.path})" if module.path else ""
        raise FailedPreconditionError(
            f"the module {module.name!r}{at} is not on the worker and cannot go along: "
            f"{module.problem}; or install it on the workers"
        )


def sent(objects: Any) -> SentObjects:
    """Returns objects as they are sent.

    Raises:
        InvalidArgumentError: if one of them cannot be sent.
    """
    out = io.BytesIO()
    pickler: Any = _pickler()(out)
    try:
        pickler.dump(objects)
        pickler.dump(own_kernels(pickler.ops))
    except Exception as e:  # a class of the user's, or what a function encloses
        raise InvalidArgumentError(
            f"what a function or op refers to cannot be sent to a worker: {type(e).__name__}: {e}; "
            "make it inside of the function, or in a module of its own"
        ) from e
    return SentObjects(out.getvalue(), pickler.names)


def dumps_for(objects: Any, ask: Ask) -> bytes:
    """Returns objects as bytes for a task, with the modules that it wants; see `sent`."""
    found = sent(objects)
    return found.dumps(ask(found.offer)["wanted"] if found.needs else ())


def answer_offer(header: Mapping[str, Any]) -> dict[str, Any]:
    """Returns which modules this process wants of those that a client offers."""
    return {"wanted": sent_modules.wanted(header["modules"], header["process"])}


def loads(data: bytes) -> Any:
    """Returns the objects that `SentObjects.dumps` has written; takes their modules.

    Raises:
        LackError: if a module cannot be imported here.
    """
    modules, packed = pickle.loads(data)
    sent_modules.install({name: SentModule(*facts) for name, facts in modules.items()})
    try:
        with arriving():
            unpickler = pickle.Unpickler(io.BytesIO(packed))
            found = unpickler.load()
            take_kernels(unpickler.load())
    except Exception as e:  # a module runs as it is imported
        raise LackError(*_lack(e)) from e
    return found


class LackError(FailedPreconditionError):
    """Objects that were sent need what is not here.

    Args:
        message: What.
        module: The module that is not here, or fails; "" if it is none.
    """

    def __init__(self, message: str, module: str = "", **facts: Any) -> None:
        super().__init__(message, **facts)
        self.module = module


def _lack(error: Exception) -> tuple[str, str]:
    """The text of an error that came while objects were loaded, and the failing module."""
    failing = _failing_module(error)
    if isinstance(error, ModuleNotFoundError) and error.name:
        by = f", which {failing!r} imports" if failing and failing != error.name else ""
        return (
            f"there is no module {error.name!r} here{by}: install it in the environment of the "
            "worker, as it is in that of the client",
            failing or error.name,
        )
    said = f"{type(error).__name__}: {error}"
    if failing:
        return (
            f"the module {failing!r} cannot be imported here: {said}; what a module reads or asks "
            "for as it is imported has to be on the worker, too",
            failing,
        )
    return f"a function or op of the plan cannot be made here: {said}", ""


def _failing_module(error: BaseException) -> str:
    """Returns the outermost module whose import has failed; "" for none."""
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_name == "<module>":
            return str(trace.tb_frame.f_globals.get("__name__", ""))
        trace = trace.tb_next
    return ""


def _told(module: OwnModule) -> SentModule:
    return SentModule(module.source, module.path, module.is_package)


def is_importable(obj: Any) -> bool:
    """Whether a function or type is what its module has under its name."""
    module = sys.modules.get(getattr(obj, "__module__", None) or "")
    found: Any = module if module is not None and module.__name__ != "__main__" else None
    for part in obj.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is obj


def _imports_in(code: CodeType) -> Iterator[str]:
    """Yields the names of the modules that a function may import when it is called."""
    for one in dis.get_instructions(code):
        if one.opname == "IMPORT_NAME":
            yield one.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _imports_in(constant)


def _pickler() -> type:
    """Returns the class of what writes objects, and notes which modules they need."""
    import cloudpickle  # Dask has it; only clusters need it

    base: Any = cloudpickle.CloudPickler

    class Pickler(base):  # type: ignore[misc]
        def __init__(self, out: io.BytesIO) -> None:
            super().__init__(out, pickle.HIGHEST_PROTOCOL)
            self.names: set[str] = set()
            #: The op types that go by value.
            self.ops: list[type[Op]] = []

        def reducer_override(self, obj: Any) -> Any:
            """Notes what an object needs; returns what Dask's pickler does."""
            if isinstance(obj, ModuleType):
                self.names.add(obj.__name__)
            elif isinstance(obj, type | FunctionType):
                if is_importable(obj):
                    self.names.add(obj.__module__)
                elif isinstance(obj, FunctionType):
                    self.names.update(_imports_in(obj.__code__))
                elif issubclass(obj, Op):
                    self.ops.append(obj)
            return super().reducer_override(obj)

    return Pickler


__all__ = [
    "Ask",
    "LackError",
    "SentObjects",
    "answer_offer",
    "check_sendable",
    "dumps_for",
    "is_importable",
    "loads",
    "nothing_wanted",
    "sent",
]
