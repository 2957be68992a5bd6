"""Locks: parts of a step that no other step, and no other part of it, runs at the same time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from flowscope import nest
from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.graph import Graph
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.expected import expected_dtype
from flowscope.ops.core.build import apply, apply_none
from flowscope.ops.core.flow import identity
from flowscope.ops.core.handles import add_handle

__all__ = ["CriticalSection"]


@frozen
class MutexHandle(Op, is_stateful=True, is_handle=True, family="lock"):
    """The handle of a lock, which lives in a container."""

    container: str
    shared_name: str

    def infer(self) -> Spec:
        return Spec(dtypes.resource, ())


class _LockOp(Op, abstract=True, writes_state=True, is_differentiable=False, devices=("CPU",)):
    # Locks of one name are taken and given back in program order within a step: otherwise one part
    # could hold the lock while it waits for another part of the step, which waits for the lock.
    is_stateful: ClassVar[bool] = True


class MutexAcquire(_LockOp, is_blocking=True, ends_with_step=True):
    """Takes a lock, waiting until it is free; what it returns stands for holding it.

    A step that ends gives back all locks that it holds.
    """

    def infer(self, handle: Spec) -> Spec:
        _check_handle(handle)
        return Spec(dtypes.variant, ())

    def begin(
        self, state: Any, finish: Callable[[Any], None], *inputs: Array
    ) -> Callable[[], None]:
        def finished(hold: Any) -> None:
            finish(hold if isinstance(hold, BaseException) else (hold,))

        return state.acquire(finished)  # type: ignore[no-any-return]


class MutexRelease(_LockOp):
    """Gives a lock back that was taken.

    Raises: InvalidArgumentError if it was given back already.
    """

    def infer(self, handle: Spec, hold: Spec) -> tuple[Spec, ...]:
        _check_handle(handle)
        if hold.dtype is not dtypes.variant:
            raise expected_dtype("what MutexAcquire returned", hold)
        return ()

    def kernel(self, xp: ArrayModule, state: Any, hold: Any) -> None:
        state.release(hold)


def _check_handle(handle: Spec) -> None:
    if handle.dtype is not dtypes.resource or handle.variable is not None:
        raise expected_dtype("a lock", handle)


class CriticalSection:
    """Runs functions so that none of them overlaps with another, in this step or in others.

        section = fs.CriticalSection()

        def increment():
            value = counter.read_value()
            with fs.control_dependencies([value]):
                return counter.assign(value + 1)

        new_value = section.execute(increment)

    Args:
        name: Name of the lock's handle.
        shared_name: Name of the lock in its container; the handle's by default. Sections of one
            name exclude each other, across graphs too where a container is shared.
        critical_section_def: Not supported.
        import_scope: Not supported.

    Attributes:
        handle: The handle of the lock.
    """

    def __init__(
        self,
        name: str | None = None,
        shared_name: str | None = None,
        critical_section_def: Any = None,
        import_scope: str | None = None,
    ) -> None:
        if critical_section_def is not None or import_scope is not None:
            raise InvalidArgumentError(
                "critical_section_def and import_scope are not supported: make a CriticalSection "
                "with the shared_name of the other"
            )
        self.handle: Tensor = add_handle(MutexHandle, name or "critical_section", shared_name)

    @property
    def name(self) -> str:
        """The handle's name."""
        return self.handle.op.name

    def execute(
        self, fn: Callable[[], Any], exclusive_resource_access: bool = True, name: str | None = None
    ) -> Any:
        """Returns the results of `fn`, which runs while the lock is held.

        All operations with effects that `fn` adds run while the lock is held, whether its results
        depend on them or not.

        Args:
            fn: Takes nothing, returns a tensor, an operation, None or a structure of them.
            exclusive_resource_access: Whether no other section may touch the variables that `fn`
                touches: sections of two locks do not exclude each other.
            name: Name scope of the operations.

        Raises:
            InvalidArgumentError: if `fn` uses this section itself: it would wait for ever; or if
                another section with exclusive access touches one of its variables.
        """
        graph = self.handle.op.graph
        running: list[CriticalSection] = graph.extras.setdefault("critical_sections", [])
        if any(s._lock == self._lock for s in running):
            raise InvalidArgumentError(
                f'"{self.name}" is used inside itself: it would wait for ever for the lock that it '
                "holds; call the function directly"
            )
        with graph.name_scope(name or f"{self.name.rpartition('/')[2]}_execute"):
            hold = apply(MutexAcquire(), self.handle, name="acquire")
            count = len(graph)
            running.append(self)
            try:
                with graph.control_dependencies([hold]):
                    result = fn()
            finally:
                running.remove(self)
            added = graph.operations_since(count)
            self._claim(added, exclusive_resource_access)
            flat = [r if isinstance(r, Operation) else _tensor(r) for r in nest.flatten(result)]
            block = graph.block
            effects = [o for o in added if o.block is block and o.definition.has_effect]
            wanted = [r for r in flat if r is not None]
            with graph.control_dependencies([*wanted, *effects]):
                release = apply_none(MutexRelease(), self.handle, hold, name="release")
            with graph.control_dependencies([release]):
                out = [release if not isinstance(r, Tensor) else identity(r) for r in flat]
        return nest.pack_sequence_as(result, out) if flat else release

    @property
    def _lock(self) -> Any:
        return self.handle.op.definition

    def _claim(self, added: list[Operation], is_exclusive: bool) -> None:
        """Notes which variables the section touches; refuses those of other sections."""
        graph: Graph = self.handle.op.graph
        claims: dict[Tensor, tuple[CriticalSection, bool]]
        claims = graph.extras.setdefault("critical_claims", {})
        for handle in {t for op in added for t in op.inputs if t.spec.variable is not None}:
            if handle.spec.dtype is not dtypes.resource:
                continue
            other, was_exclusive = claims.setdefault(handle, (self, is_exclusive))
            if other._lock != self._lock and (is_exclusive or was_exclusive):
                raise InvalidArgumentError(
                    f'"{handle.op.name}" is used by the critical sections "{other.name}" and '
                    f'"{self.name}", which do not exclude each other: use one section, or '
                    "exclusive_resource_access=False for both"
                )


def _tensor(value: Any) -> Tensor | None:
    return None if value is None else convert_to_tensor(value)
