"""A client's plan on a host: the partitions of this process, compiled here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from flowscope.cluster.membership.devices import task_of
from flowscope.cluster.shipping.plans import Shipment, is_worldly_call, shared_groups
from flowscope.cluster.transport.channel import KeyTable
from flowscope.cluster.watch.state_book import StateKey, check_there, key_of
from flowscope.cluster.worker.owners import HostOwner
from flowscope.ops.state.iterator_ops import IteratorHandle
from flowscope.ops.state.variable_ops import VarHandleOp
from flowscope.plan.codegen.variants import PLAIN, Variant
from flowscope.plan.executables.back_ends import CodeTarget, Executable, Function, code_back_ends
from flowscope.plan.ir.breakpoints import NO_TESTS
from flowscope.plan.ir.collector import paused_collector
from flowscope.plan.ir.modules import Modules
from flowscope.plan.ir.program import Node
from flowscope.plan.partition.compiled_partitions import (
    CompiledPartition,
    compile_apart,
    takes_turns,
)
from flowscope.plan.passes.regions import Region, handles_of, whole_region
from flowscope.runtime.datasets.resource_kinds import kept_state
from flowscope.runtime.planning.calls import identity
from flowscope.runtime.planning.planner import queue_use
from flowscope.runtime.state.containers import Container
from flowscope.runtime.state.device_variable import PlacedVariable, handing_out
from flowscope.runtime.state.random_generators import generator
from flowscope.runtime.state.resources import VariableState
from flowscope.runtime.step.driver import Driver
from flowscope.runtime.trace.part_trace import PartPlan, PartRecorder

if TYPE_CHECKING:
    from flowscope.cluster.worker.sessions import WorkerSession


class WorkerPlan:
    """What a host runs of a plan, in one session; steps know it as their call.

    Attributes:
        parts: The partitions.
        programs: What these run.
        functions: What runs them.
        by_op: The same one operation at a time.
        writers: The other workers that may write in its steps, where these take from queues.
        is_asked: Whether others take from queues, and ask what its steps have written.
        written: The variables that its steps write.
        is_worldly: Whether they act on the world outside.
        gone: The positions in `had` of variables that have no value.
        takes_turns: Whether they can be stepped through by turns.
        resources: What the handles stand for.
        queues: What its steps may do to queues.
        feeds: The names of the step's feeds.
        takes, gives: The numbers of the step's feeds that it takes, and of the fetches it gives.
        table: The keys by which its partitions meet others.
        shared_groups: The update groups of several processes for which it writes.
        uses_blas: Whether a kernel multiplies matrices.
    """

    trace = None
    tests = NO_TESTS

    @paused_collector()
    def __init__(
        self,
        host: HostOwner,
        session: WorkerSession,
        shipment: Shipment,
        had: Sequence[Sequence[str]] = (),
        writers: Sequence[str] = (),
        is_asked: bool = False,
    ) -> None:
        self.writers, self.is_asked = tuple(writers), is_asked
        self.programs = programs = [p.program for p in shipment.partitions]
        self.nodes = [n for p in programs for n in p.walk()]
        handles = {h.name: h for p in programs for h in handles_of(p)}
        ops = [h.op for h in handles.values()]
        refusals, self.gone = check_there(session.container, ops, had)
        devices: dict[str, Any] = {d.name: d for d in host.devices} | {"": host.devices[0]}
        self._modules = Modules(host.devices[0].xp, devices, self.nodes)
        self._host = host
        compile_region = partial(self._compiled, code_back_ends(Driver))
        self.parts: tuple[CompiledPartition, ...] = compile_apart(
            shipment.partitions, [*handles.values()], compile_region, is_handed_out=False
        )
        restarted = shipment.restarted
        states = {
            h: placed_state(host, session, h, devices, restarted, refusals)
            for h in handles.values()
        }
        self.resources = tuple(states.values())
        self.feeds = shipment.feeds
        self.queues = queue_use(self.nodes, states)
        written = dict.fromkeys(h for n in self.nodes if n.writes_state for h in n.handles)
        self.written = [states[h] for h in written]
        self.is_worldly = any(map(is_worldly_call, self.nodes))
        self.takes = tuple(sorted({i for p in self.parts for i in p.takes}))
        self.gives = tuple([i for p in self.parts for i in p.gives])
        names = dict(shipment.tasks)
        self.table = KeyTable(
            shipment.keys, lambda d: names.get(task_of(d), task_of(d)), shipment.windows
        )
        self.shared_groups = shared_groups(self.nodes)
        self.uses_blas = any(n.op.uses_blas for n in self.nodes)
        current: Any = self._modules.current
        on: Callable[[Function], Function] = identity
        if current is not None:
            on = partial(handing_out, current)
        self.functions = [on(p.executable.function) for p in self.parts]
        self.by_op = [on(p.executable.by_op) for p in self.parts]
        self.takes_turns = takes_turns(shipment.partitions)
        self._on = on
        #: The partitions to those who trace a step: their code has variants.
        self._traced = [
            PartPlan(
                one.back_end,
                part.executable,
                partial(compile_region, one.back_end, whole_region(one.program, False)),
            )
            for one, part in zip(shipment.partitions, self.parts, strict=True)
        ]

    @property
    def plan(self) -> WorkerPlan:
        """Itself: what a step runs."""
        return self

    def traced(self) -> tuple[list[PartRecorder], list[Function]]:
        """Recorders of the partitions for one step, and the traced functions."""
        recorders = [
            PartRecorder(part.device, plan)
            for part, plan in zip(self.parts, self._traced, strict=True)
        ]
        return recorders, [self._on(one.function) for one in recorders]

    def _compiled(
        self, back_ends: Any, name: str, region: Region, variant: Variant = PLAIN
    ) -> Executable:
        target = CodeTarget(self._modules, generator, self._host.devices[0].parallel_for)
        made: Executable = back_ends[name].compile(region, target, variant)
        return made


def placed_state(
    host: HostOwner,
    session: WorkerSession,
    handle: Node,
    devices: dict[str, Any],
    restarted: frozenset[str],
    refusals: Mapping[StateKey, str],
) -> Any:
    """The state of a handle of a client's plan, on its device of this host.

    Args:
        host, session: Where.
        handle: The handle.
        devices: The host's devices by name.
        restarted: Names of variables that a cell has made anew.
        refusals: What errors say of variables that were lost.
    """
    op: Any = handle.op
    state = state_of(session.container(op.container), op, restarted)
    if refusals and isinstance(state, VariableState):
        state.refusal = refusals.get(key_of(op), state.refusal)
    has_kinds = any(d.device_type != "CPU" for d in host.devices)
    if has_kinds and isinstance(op, IteratorHandle) and op.target:
        state.send_to(op.target, handle.device, host.devices)
    if has_kinds and isinstance(state, VariableState):
        return PlacedVariable(state, devices[handle.device])
    return state


def state_of(container: Container, handle: Any, restarted: frozenset[str] = frozenset()) -> Any:
    """The state of a handle in a container of this host, made on first use.

    Args:
        container: The container.
        handle: The op that makes the handle.
        restarted: Names of variables that a cell has made anew.
    """
    if not isinstance(handle, VarHandleOp):
        return kept_state(container, handle)
    if handle.shared_name in restarted:
        dtype = handle.dtype.np_dtype
        return container.restarted(handle.shared_name, handle.shape, dtype)
    return container.variable(handle.shared_name, handle.shape)


__all__ = ["WorkerPlan", "placed_state", "state_of"]
