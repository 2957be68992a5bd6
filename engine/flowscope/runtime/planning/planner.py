"""A session's planner: from what users ask for to a `PreparedCall`, per (fetches, feeds, mode)."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from flowscope.errors import DTypeError, GraphError, InvalidArgumentError, OpError, StaleError
from flowscope.graph.block import misplaced
from flowscope.graph.graph import Graph
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values.dtypes import variant
from flowscope.graph.values.shapes import Dims
from flowscope.ops.core.send_recv import Transfer
from flowscope.ops.host.py_functions import HostFunc
from flowscope.ops.state.variable_ops import ReadVariableOp
from flowscope.plan.analysis.costs import Costs, CostTable, fed_specs
from flowscope.plan.analysis.effects import is_worldly
from flowscope.plan.codegen.variants import Breakpoints
from flowscope.plan.executables.back_ends import Function, code_back_ends
from flowscope.plan.executables.execution import Execution
from flowscope.plan.ir.breakpoints import NO_TESTS, BreakTests
from flowscope.plan.ir.modules import Modules
from flowscope.plan.ir.program import Node, Program, devices_of
from flowscope.plan.partial_run import Stage, Staged, staged
from flowscope.plan.partition.partitions import Mode
from flowscope.plan.plan import Plan, Request, in_mode, make_plan
from flowscope.runtime.config import ConfigProto
from flowscope.runtime.devices.device import Device
from flowscope.runtime.planning.calls import PreparedCall, identity, with_breakpoints
from flowscope.runtime.planning.feeds import Converter, converter
from flowscope.runtime.planning.fetches import Flattened, Rebuild, decoded, is_bare_handle
from flowscope.runtime.planning.graph_growth import GrowthWarner
from flowscope.runtime.planning.plan_cache import PlanCache
from flowscope.runtime.state.device_variable import PlacedVariable, handing_out, on_device
from flowscope.runtime.state.queue_state import QueueState
from flowscope.runtime.state.queue_transactions import QueueUse
from flowscope.runtime.state.random_generators import generator
from flowscope.runtime.state.resources import VariableState
from flowscope.runtime.threads.cores import available_cores

if TYPE_CHECKING:
    from flowscope.plan.placement.by_cost import ByCost
    from flowscope.plan.placement.machine import PlacementMachine
    from flowscope.runtime.session.remote import Remote
    from flowscope.runtime.trace.part_trace import PartPlan

#: Wraps the function of a plan.
Around = Callable[[Plan, Function], Function]
_STRUCTURES = (list, tuple, Mapping)


class Planner:
    """Plans for one session, one at a time.

    Attributes:
        calls: What was planned.
        state: The state of a handle: where a variable's value is kept, a queue, a lock.
        placements: Device of each operation that was planned, by id.
        placement_version: Grows with every change of them.
        moves: The numbers of the graph's edits that only gave an operation another device.
        back_ends: The code back ends, by the names that partitions have.
        queues: The queues that steps use, by the ids of the operations of their handles.
        breakpoints: Returns those of a plan; None where none were set.
        around: Wraps the function of each plan; None for no wrapper.
    """

    def __init__(
        self,
        graph: Graph,
        config: ConfigProto,
        devices: Sequence[Device],
        state: Callable[[Any], Any],
        growth: GrowthWarner,
        remote: Remote | None = None,
    ) -> None:
        self.calls = PlanCache(config.plan_cache_size, PreparedCall.count_nodes)
        self.placements: dict[int, str] = {}
        self.placement_version = 0
        self.moves: set[int] = set()
        self._cost_table = CostTable()
        #: How many edits of the graph the table has seen.
        self._seen_edits = 0
        self.queues: dict[int, QueueState] = {}
        self._graph = graph
        self._config = config
        self.state = state
        self._devices = {d.name: d for d in devices}
        self._by_name = {"": devices[0], **self._devices}
        self.back_ends = code_back_ends(_driver)
        own = sorted(devices, key=lambda d: d.device_type == "CPU")
        #: Accelerators first: what has a kernel for them runs there. Then those of other tasks.
        self._specs = [d.spec for d in own]
        self._has_kinds = any(d.device_type != "CPU" for d in devices)
        self._remote = remote
        #: Where handles were placed first, with what they asked for then, by their ids.
        self._homes: dict[int, tuple[str, str, Operation]] = {}
        if remote is not None:
            self.back_ends = remote.back_ends(self.back_ends)
            self._by_name.update((d.name, d) for d in remote.devices)
            self._specs += [d.spec for d in remote.devices]
        self._growth = growth
        self.breakpoints: Callable[[Plan], BreakTests] | None = None
        #: The stages of partial runs: they are kept elsewhere, and ask at breakpoints too.
        self._stages: weakref.WeakSet[PreparedCall] = weakref.WeakSet()
        self.around: Around | None = None
        self.lock = threading.RLock()
        #: Devices of operations that were placed by cost, by their ids: there they stay.
        self._settled: dict[int, str] = {}
        #: Shapes of what was fed last when a plan was made.
        self._fed_shapes: weakref.WeakKeyDictionary[Tensor, Dims] = weakref.WeakKeyDictionary()
        if config.placement not in ("default", "simulated"):
            raise InvalidArgumentError(
                f'expected placement as "default" or "simulated", got {config.placement!r}'
            )
        if config.split_partitions not in ("auto", "always", "never"):
            raise InvalidArgumentError(
                'expected split_partitions as "auto", "always" or "never", '
                f"got {config.split_partitions!r}"
            )

    def call(
        self, key: Hashable, fetches: Any, feeds: Any, mode: Mode, given: Any = ()
    ) -> PreparedCall:
        """Returns the call of `fetches` and the fed things, planned where there is none.

        Args:
            key: What calls of the same fetches, feeds and mode have in common.
            fetches: As the user gave them.
            feeds: What is fed: tensors, variables, names.
            mode: How it is run.
            given: The values that are fed, by which the plan's costs are estimated; () where none
                are there yet.
        """
        if not self.lock.acquire(False):
            from flowscope.runtime.waits.waiting import acquire  # few sessions plan on two threads

            acquire(self.lock, "for another plan of the session")
        try:
            found = self.calls.find(key)
            if found is not None and found.is_current(self._graph):
                return found
            self._look()
            self.calls.forget_stale(self._graph)
            edits = self._graph.edits
            request, rebuild = self.request(fetches, feeds, mode, given)
            costs = partial(self.costs, request.feeds)
            before = None if found is None else self._moved_since(found, request)
            plan = make_plan(request, self._by_name, generator, self.back_ends, costs, before)
            self._note(list(plan.program.walk()))
            single = not isinstance(fetches, _STRUCTURES) and len(request.fetches) == 1
            call = self._bound(plan, edits, rebuild, single, handing_out)
            if call.elsewhere is None and self._is_split(plan, costs):
                from flowscope.runtime.step.split import SplitFunction  # most sessions need none

                call.split = SplitFunction(plan.parts, plans=partial(_part_plans, plan))
                self._bind(call, self.around)
            self.calls.add(key, call)
            return call
        finally:
            self.lock.release()

    def known(self, key: Hashable) -> PreparedCall | None:
        """Returns the call of a key, where one was made lately that is not stale."""
        found = self.calls.get(key)
        return found if found is not None and found.is_current(self._graph) else None

    def _moved_since(
        self, call: PreparedCall, request: Request
    ) -> tuple[Plan, Mapping[int, str]] | None:
        """Returns a stale plan and what its moved operations ask for; None if more has changed."""
        plan, graph = call.plan, self._graph
        was = plan.request
        asked = was.fetches, was.targets, was.feeds, was.mode
        if asked != (request.fetches, request.targets, request.feeds, request.mode):
            return None
        edits = range(call.edits + 1, graph.edits + 1)
        if graph.run is not None or not all(i in self.moves for i in edits):
            return None
        moved = [op for op in graph.edited_since(call.edits) if op.id in plan.operations]
        return plan, {op.id: op.device for op in moved}

    def _is_split(self, plan: Plan, costs: Callable[[Program], Costs]) -> bool:
        """Whether the devices of a plan have threads of their own."""
        devices = {n.device for n in plan.program.walk() if not n.blocks}
        wish = self._config.split_partitions
        if wish == "never" or len(devices) < 2 or self._accelerators(plan.program):
            return False
        if wish == "always":
            return len(plan.partitions) > 1
        if not self._config.overlaps or plan.request.mode != "compiled":
            return False
        from flowscope.plan.partition.splitting import pays

        machine = self.machine(available_cores())
        return pays(plan.program, machine, costs(plan.program)) and not plan.has_split_groups

    @property
    def cost_table(self) -> CostTable:
        """What was measured of operations that are still what they were then."""
        edits = self._graph.edits
        if self._seen_edits != edits:
            edited = self._graph.edited_since(self._seen_edits)
            self._cost_table.forget([op.id for op in edited if op.id not in self.moves])
            self._seen_edits = edits
        return self._cost_table

    def costs(self, feeds: Sequence[Tensor], program: Program) -> Costs:
        """Returns the costs of a program whose feeds have the shapes that were fed last."""
        shapes = [self._fed_shapes.get(t) for t in feeds]
        specs = fed_specs(program, shapes) if len(shapes) == len(program.feeds) else {}
        return Costs(self.cost_table, specs)

    def note_fed(self, feeds: Sequence[Tensor], given: Sequence[Any]) -> None:
        """Notes the shapes of what is fed: costs start from them."""
        for tensor, value in zip(feeds, given, strict=False):
            shape = getattr(value, "shape", None)
            if shape is None and isinstance(value, list | tuple | int | float):
                with suppress(Exception):  # converting it says what is wrong
                    shape = np.shape(value)
            self._fed_shapes[tensor] = shape

    def machine(self, cores: int = 1) -> PlacementMachine:
        """The machine model for placement by cost; steps may use so many threads."""
        from flowscope.runtime.devices.device_profiles import machine_of  # most sessions need none

        devices = [self._by_name[str(spec)] for spec in self._specs]
        if self._remote is None:
            return machine_of(devices, cores)
        return machine_of(devices, cores, self._remote.links())

    def unsettle(self, plan: Plan) -> None:
        """Has the operations of a plan be placed anew, where that goes by cost.

        Plans that share operations with it are made anew too, so that all agree.
        """
        with self.lock:
            for i in plan.operations:
                self._settled.pop(i, None)
            shared = plan.operations.keys()
            self.calls.forget(lambda call: bool(shared & call.plan.operations.keys()))

    def device_named(self, name: str) -> Device:
        """Returns the session's device of this full name."""
        return self._by_name[name]

    def _state_places(self) -> Mapping[int, str]:
        """Returns where state is on a cluster, by its handles: there it stays for all plans."""
        return {i: at for i, (wish, at, op) in self._homes.items() if op.device == wish}

    def _by_cost(self, feeds: Sequence[Tensor]) -> ByCost | None:
        if self._config.placement != "simulated":
            return None
        from flowscope.plan.placement.by_cost import ByCost

        cores = available_cores() if self._config.overlaps else 1
        machine, costs = self.machine(cores), partial(self.costs, feeds)
        return ByCost(machine, costs, self._settled, is_one_thread=self._has_kinds)

    def staged(self, fetches: Any, feeds: Any, mode: Mode) -> Staged:
        """Returns the program of a partial run, before it is cut into stages."""
        with self.lock:
            self._look()
            request, _ = self.request(fetches, feeds, mode)
            found = staged(request)
            self._note(list(found.program.walk()))
            return found

    def replayed(self, plan: Plan) -> PreparedCall:
        """Returns the call of what a plan runs, in which each operation runs by itself."""
        with self.lock:
            made = in_mode(plan, "op", self._by_name, generator, self.back_ends)
            call = self._bound(made, self._graph.edits, tuple, False, handing_out)
            self.calls.add("replayed", call)
            return call

    def stage(
        self, program: Staged, before: frozenset[int] | None, now: frozenset[int]
    ) -> tuple[PreparedCall, Stage]:
        """Returns one stage of a partial run, and its call; its results stay on the device."""
        with self.lock:
            stage = program.stage(before, now, self._by_name, generator, self.back_ends)
            call = self._bound(stage.plan, self._graph.edits, tuple, False, on_device, ())
            self._stages.add(call)
            return call, stage

    def request(
        self, fetches: Any, feeds: Any, mode: Mode, given: Sequence[Any] = ()
    ) -> tuple[Request, Rebuild]:
        """The request for a plan, and the function that assembles the results."""
        if not len(self._graph) and not isinstance(fetches, Tensor | Operation):
            raise GraphError("the session's graph is empty: add operations to it, then run them")
        flat = Flattened(self._graph, fetches)
        fed = [self.fed(k) for k in feeds]
        if len(set(fed)) < len(fed):
            raise InvalidArgumentError("a tensor is fed twice")
        self.note_fed(fed, given)
        request = Request(
            flat.tensors,
            flat.targets,
            fed,
            mode=mode,
            devices=self._specs,
            soft_placement=self._config.allow_soft_placement,
            read=ReadVariableOp,
            merges=self._config.graph_options.optimizer_options.merges,
            folds=self._config.graph_options.optimizer_options.folds,
            overlaps=self._config.overlaps,
            is_apart=self._remote is not None or self._config.split_partitions == "always",
            as_bfloat16=self._config.graph_options.enable_bfloat16_sendrecv,
            late_receives=self._config.graph_options.enable_recv_scheduling,
            by_cost=self._by_cost(fed),
            wishes=self._state_places(),
        )
        return request, flat.rebuild

    def fed(self, key: Any) -> Tensor:
        """Returns the tensor that a key of a feed_dict stands for."""
        handle = getattr(key, "handle", None)
        try:
            tensor: Tensor = self._graph.as_graph_element(
                handle if isinstance(handle, Tensor) else decoded(key), allow_operation=False
            )
        except StaleError:
            raise
        except OpError as e:
            raise DTypeError(f"cannot feed {key!r}: {e.message}") from None
        if tensor.spec.dtype is variant or is_bare_handle(tensor):
            raise InvalidArgumentError(f'"{tensor.name}" is no array and cannot be fed')
        if not self._graph.is_feedable(tensor):
            if tensor.op.block is not self._graph.root:
                raise misplaced(tensor, "fed")
            raise InvalidArgumentError(f'"{tensor.name}" may not be fed: Graph.prevent_feeding')
        return tensor

    def converter(self, tensor: Tensor, stays: bool = False) -> Converter:
        """The function that turns a value fed for a tensor into an array in the host's memory.

        Args:
            tensor: The tensor.
            stays: Whether an array on an accelerator stays there.
        """
        accelerators = [d for d in self._devices.values() if d.device_type != "CPU"]
        return converter(tensor, accelerators, stays)

    def _accelerators(self, program: Program) -> list[Device]:
        """Returns the devices of a program that are no CPUs; the first of them is current."""
        if not self._has_kinds:
            return []
        names = dict.fromkeys(n.device for n in program.walk())
        found = [self._by_name[name] for name in names if not self.is_elsewhere(name)]
        return [d for d in found if d.device_type != "CPU"]

    def is_elsewhere(self, device: str) -> bool:
        """Whether a device belongs to another task of a cluster."""
        return self._remote is not None and self._remote.is_elsewhere(device)

    @property
    def remote(self) -> Remote | None:
        """The session's part in its cluster; None in one of this process alone."""
        return self._remote

    def state_at(self, handle: Any, device: str) -> Any:
        """The resource of a handle on a device: state of this process, or of another task."""
        if self._remote is not None and self._remote.is_elsewhere(device):
            return self._remote.state(handle, device)
        return self.state(handle)

    def _bound(
        self,
        plan: Plan,
        edits: int,
        rebuild: Rebuild,
        single: bool,
        wrap: Callable[..., Any],
        feeds: Sequence[Tensor] | None = None,
    ) -> PreparedCall:
        variables = {h: self._variable(h) for h in (*plan.handles, *plan.required)}
        accelerators = self._accelerators(plan.program)
        on = partial(wrap, accelerators[0]) if accelerators else identity
        given = plan.request.feeds if feeds is None else feeds
        travelling = _travelling(plan.program) if accelerators and feeds is None else ()
        for handle, state in variables.items():
            if isinstance(state, QueueState):
                self.queues.update((op.id, state) for op in handle.origins)
        tests = NO_TESTS if self.breakpoints is None else self.breakpoints(plan)
        call = PreparedCall(
            plan,
            edits,
            tuple([self.converter(t, i in travelling) for i, t in enumerate(given)]),
            rebuild,
            single,
            tuple(variables[h] for h in plan.handles),
            tuple(variables[h] for h in plan.required),
            queue_use(plan.program.walk(), variables),
            on,
        )
        call.tests = tests
        if self._remote is not None and any(map(self.is_elsewhere, devices_of(plan.program))):
            call.elsewhere = self._remote.function(plan, call.resources, feeds is None)
        self._bind(call, self.around if feeds is None else None)  # a stage is no step
        return call

    def _bind(self, call: PreparedCall, around: Around | None) -> None:
        """Has a call ask at its breakpoints, with something around it."""
        on = call.on_device
        call.wrap = on if around is None else partial(_within, around, call.plan, on)
        if self._remote is not None and self._remote.begins_anew(call.plan):
            call.wrap = partial(_beginning_anew, self._remote.begin_anew, call.wrap)
        function, by_op = _tested(call.plan, call.tests)
        apart = call.elsewhere or call.split
        if apart is not None and not any(call.tests.names):
            function = apart  # with breakpoints one thread runs the step
        call.function, call.by_op = call.wrap(function), call.wrap(by_op)

    @property
    def stages(self) -> list[PreparedCall]:
        """The calls of the stages of partial runs, as far as somebody has them."""
        return list(self._stages)

    def arm(self) -> None:
        """Has the functions of all calls ask at the breakpoints that there are now."""
        with self.lock:
            stages = {*self._stages}
            for call in (*self.calls.all(), *stages):
                tests = NO_TESTS if self.breakpoints is None else self.breakpoints(call.plan)
                before, call.tests = call.tests, tests
                if (tests.names, tests.flagged) != (before.names, before.flagged):
                    self._bind(call, None if call in stages else self.around)

    def wrap(self, around: Around | None) -> None:
        """Has something else stand around the functions of all plans."""
        with self.lock:
            self.around = around
            for call in self.calls.all():
                self._bind(call, self.around)

    def _variable(self, handle: Node) -> Any:
        state = self.state_at(handle.op, handle.device)
        target = getattr(handle.op, "target", "")
        if target and self._has_kinds and not self.is_elsewhere(handle.device):
            state.send_to(target, handle.device, self._devices.values())
        is_placed = self._has_kinds and isinstance(state, VariableState)
        return PlacedVariable(state, self._by_name[handle.device]) if is_placed else state

    def _look(self) -> None:
        if self._graph.finalized:
            return
        self._growth.look(self._graph)

    def _settle(self, nodes: Sequence[Node]) -> None:
        """Notes where operations were placed by cost.

        Who only assigns a variable, as an initializer does, does not decide where it lives.
        """
        read = {h for n in nodes if n.op.reads_state and not n.blocks for h in n.handles}
        for node in nodes:
            touched = [node] if node.op.is_handle else node.handles if not node.blocks else []
            if node.origins and (not touched or not read.isdisjoint(touched)):
                self._settled[node.origins[0].id] = node.device

    def _note_homes(self, nodes: Sequence[Node]) -> None:
        for op, node in [(r.operation, n) for n in nodes if n.op.is_handle for r in n.origins]:
            home = None if op is None else self._homes.get(op.id)
            if op is not None and (home is None or home[0] != op.device):
                self._homes[op.id] = op.device, node.device, op

    def _note(self, nodes: Sequence[Node]) -> None:
        own = [n for n in nodes if not isinstance(n.op, Transfer)]  # that has its maker's origins
        found = {op.id: n.device for n in own for op in n.origins}
        if self._config.placement == "simulated":
            self._settle(own)
        if self._remote is not None:
            self._note_homes(own)
        if any(self.placements.get(i) != device for i, device in found.items()):
            self.placements.update(found)
            self.placement_version += 1
        if self._config.log_device_placement:
            for node in nodes:
                print(f"{node.name}: {node.op.type}: {node.device} ({node.reason})")


def _part_plans(plan: Plan) -> Sequence[PartPlan]:
    from flowscope.runtime.trace.part_trace import part_plans  # most steps are not traced

    return part_plans(plan)


def _travelling(program: Program) -> set[int]:
    """Returns which feeds only transfers take: an array may be on the device that it goes to."""
    others = {v for n in program.nodes if not isinstance(n.op, Transfer) for v in n.inputs}
    return {v.index for v in program.feeds if v not in others}


def queue_use(nodes: Iterable[Node], states: Mapping[Node, Any]) -> QueueUse | None:
    """The use that steps make of queues and readers; None if they use none.

    Args:
        nodes: All nodes that run, in blocks too.
        states: What their handles stand for.
    """
    queues = [s for s in states.values() if hasattr(s, "give_back")]
    if not queues:
        return None
    walked = list(nodes)
    written = dict.fromkeys(states[h] for n in walked if n.writes_state for h in n.handles)
    return QueueUse(
        queues,
        list(written),
        any(is_worldly(n) or isinstance(n.op, HostFunc) for n in walked if not n.blocks),
    )


def _within(around: Around, plan: Plan, on: Callable[..., Any], function: Function) -> Function:
    """A function that runs a plan's function on its device, wrapped."""
    return around(plan, on(function))


def _beginning_anew(
    note: Callable[[], None], wrap: Callable[..., Any], function: Function
) -> Function:
    """A function that runs a plan which restores or initialises a session, and records it."""
    wrapped = wrap(function)

    def run(*arguments: Any) -> tuple[Any, ...]:
        values: tuple[Any, ...] = wrapped(*arguments)
        note()
        return values

    return run


def _tested(plan: Plan, tests: BreakTests) -> tuple[Function, Function]:
    """Two functions that run a plan and ask at breakpoints; the second one op at a time."""
    names = tuple(map(frozenset, tests.names))
    if not any(names):
        return plan.executable.function, plan.executable.by_op
    is_code = plan.request.mode == "compiled"  # what is no code asks anyway
    executable = plan.variant(Breakpoints(*names)) if is_code else plan.executable
    return with_breakpoints(executable.function, tests), with_breakpoints(executable.by_op, tests)


def _driver(execution: Execution, modules: Modules) -> Callable[..., tuple[Any, ...]]:
    from flowscope.runtime.step.driver import Driver  # most programs are code, and need no machine

    return Driver(execution, modules)


def targets_of(program: Staged, op: Operation) -> list[Node]:
    """Returns the nodes that stand for an operation which must run."""
    return [n for n in program.program.nodes if any(o.id == op.id for o in n.origins)]
