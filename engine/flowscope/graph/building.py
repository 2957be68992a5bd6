"""Where a thread adds operations to a graph: name scopes, control inputs, devices, blocks.

Name scopes, control dependencies and blocks belong to the thread that has opened them. Devices and
colocation are the graph's, for all threads, until `Graph.switch_to_thread_local`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from flowscope.errors import DTypeError, InvalidArgumentError, NestingError
from flowscope.graph.block import Block, misplaced
from flowscope.graph.devices import DeviceSpec, contradict, merged
from flowscope.graph.op import Op, op_class
from flowscope.graph.operation import Operation, Tensor, where
from flowscope.graph.origins.origin import capture

#: Places in program order that one cell has: its operations' orders share the bits above.
PLACES = 1 << 32
#: What a device is asked for by: a (partial) name or a function of the operation.
DeviceWish = str | Callable[[Operation], Any]


class Controller:
    """One `with control_dependencies(...)`.

    Attributes:
        operations: What operations of the block wait for.
        made: The operations of the block. What takes a value of theirs waits already.
    """

    __slots__ = ("made", "operations")

    def __init__(self, operations: tuple[Operation, ...]) -> None:
        self.operations = operations
        self.made: set[Operation] = set()


class _Later(NamedTuple):
    """An operation that does not exist yet, as far as `Wishes` asks for it."""

    name: str
    device: str = ""
    colocation: tuple[str, ...] = ()


class Wishes:
    """Where operations are asked to run.

    Attributes:
        devices: Wishes, the innermost first.
        name: The device name that they add up to, if none of them is a function; else None.
        colocation: Operations to share a device with, the innermost first.
    """

    __slots__ = ("colocation", "devices", "name")

    def __init__(
        self,
        devices: tuple[DeviceWish, ...] = (),
        colocation: tuple[Operation | _Later, ...] = (),
    ) -> None:
        self.devices = devices
        self.colocation = colocation
        self.name: str | None = ""
        if any(callable(d) for d in devices):
            self.name = None
        else:
            for wish in devices:
                self.name = merged(str(wish), self.name)

    def apply(self, op: Operation) -> None:
        """Sets the device and the colocation of a new operation, which has neither."""
        if self.name is not None:
            op.device = self.name
        else:
            for wish in self.devices:
                op.device = _called(wish, op) if callable(wish) else merged(wish, op.device)
        if not self.colocation:
            return
        names: dict[str, None] = {}
        for target in self.colocation:
            names.update(dict.fromkeys(target.colocation or (target.name,)))
            if target.device:
                follow(op, target.device)
        op.colocation = tuple(sorted(names))


#: Where nothing is asked for.
NO_WISHES = Wishes()


def follow(op: Operation, device: str) -> None:
    """Has an operation ask for the device of what it follows; notes a wish that contradicts it."""
    if op.device and op.device != device and contradict(op.device, device):
        op.passed_over = op.device
    op.device = device


def _called(function: Callable[[Operation], Any], op: Operation) -> str:
    found = function(op)
    if found is None:
        return op.device
    if not isinstance(found, str | DeviceSpec):
        raise DTypeError(
            f"expected a device name from the device function, got {found!r} for {op.name}"
        ).located(op=op.name, op_type=op.type, **where(op))
    return DeviceSpec.from_string(str(found)).to_string()


class OpenScopes:
    """What one thread has opened in one graph.

    Attributes:
        scope: The name scope, "" at the top.
        controllers: The control dependencies, from the outermost.
        control: All operations that they wait for.
        block: The block that operations are added to.
        forward: The operation whose gradient is built, or None.
        gradients: Names of gradients by op type that replace the ops' own.
        wishes: The thread's own wishes for devices; None where the graph's count.
        extras: State of builders above the graph (variable scopes, ...), by name.
    """

    def __init__(self, root: Block) -> None:
        self.scope = ""
        self.controllers: tuple[Controller, ...] = ()
        self.control: tuple[Operation, ...] = ()
        self.block = root
        self.forward: Operation | None = None
        self.gradients: dict[str, str] = {}
        self.wishes: Wishes | None = None
        self.extras: dict[str, Any] = {}


class _Threads(threading.local):
    """What each thread has opened in one graph: one object, for to reach it takes a while."""

    def __init__(self, root: Block) -> None:
        self.here = OpenScopes(root)


class Building:
    """The scopes of a graph: what operations that are added get from around them."""

    _next_order: int

    def __init__(self) -> None:
        super().__init__()
        self.root = Block()
        self._threads = _Threads(self.root)
        self._wishes = NO_WISHES
        self._is_thread_local = False
        #: Held while an operation is added: several threads may build one graph.
        self._lock = threading.RLock()

    @property
    def _here(self) -> OpenScopes:
        return self._threads.here

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """Returns `name` in the current name scope, with "_1", "_2", ... where it is taken."""
        raise NotImplementedError

    def as_graph_element(self, obj: Any) -> Any:
        """Returns the tensor or operation that `obj` stands for."""
        raise NotImplementedError

    def _as_operation(self, thing: Any) -> Operation:
        found = self.as_graph_element(thing)
        return found.op if isinstance(found, Tensor) else found

    @property
    def block(self) -> Block:
        """The block that operations are added to."""
        return self._here.block

    @property
    def thread_extras(self) -> dict[str, Any]:
        """State of builders above the graph that belongs to the current thread, by name."""
        return self._here.extras

    def switch_to_thread_local(self) -> None:
        """Makes devices and colocation belong to the thread that opens them, from now on.

        A thread begins with those that the graph has when the thread first adds to it.
        """
        self._is_thread_local = True

    def _wished(self) -> Wishes:
        if not self._is_thread_local:
            return self._wishes
        here = self._here
        if here.wishes is None:
            here.wishes = self._wishes
        return here.wishes

    def _wish(self, wishes: Wishes) -> None:
        if self._is_thread_local:
            self._here.wishes = wishes
        else:
            self._wishes = wishes

    # -- names ----------------------------------------------------------------------------------

    def get_name_scope(self) -> str:
        """Returns the current name scope, "" at the top."""
        return self._here.scope

    @contextmanager
    def name_scope(self, name: str | bytes | None) -> Iterator[str]:
        """Opens a name scope; yields its name with a "/" behind it.

        A name that ends in "/" (what an earlier `with` yielded) re-opens that scope as it is; None
        or "" goes back to the top.
        """
        here = self._here
        before = here.scope
        name = name.decode() if isinstance(name, bytes) else name
        if not name:
            here.scope = ""
        elif not isinstance(name, str):
            raise DTypeError(f"expected a name scope's name as a string, got {name!r}")
        elif name[-1] == "/":
            here.scope = name[:-1]
        else:
            here.scope = self.unique_name(name)
        try:
            yield here.scope + "/" if here.scope else ""
        finally:
            here.scope = before

    # -- control inputs -------------------------------------------------------------------------

    @contextmanager
    def control_dependencies(self, control_inputs: Any) -> Iterator[None]:
        """Makes operations of the block wait for `control_inputs`; None clears those outside.

        An operation that takes a value which waits already gets no control input of its own.

        In the body of a branch, a loop or a function, what stands there for a tensor outside is
        waited for, in each iteration; so the body itself need not wait.
        """
        here = self._here
        before = here.controllers, here.control
        if control_inputs is None:
            here.controllers = ()
        else:
            here.controllers = (*before[0], Controller(self._awaited(control_inputs)))
        mine = here.controllers
        here.control = tuple(dict.fromkeys(op for c in mine for op in c.operations))
        try:
            yield
        except BaseException:
            here.controllers, here.control = before
            raise
        if here.controllers is not mine:
            raise NestingError("control_dependencies ends inside another one that it encloses")
        here.controllers, here.control = before

    def _awaited(self, control_inputs: Any) -> tuple[Operation, ...]:
        block = self._here.block
        ops = [self._as_operation(self._apart(_operation_or_itself(c))) for c in control_inputs]
        for op in ops:
            if not op.block.encloses(block):
                place = capture().place
                facts = {"origin": place and str(place), "source": place and place.text}
                raise misplaced(op, "waited for").located(op=op, **facts)
        return tuple(dict.fromkeys(block.awaited(op) for op in ops))

    def _apart(self, thing: Any) -> Any:
        """The operations to wait for in place of one output of a branch or a loop.

        Where something in it may wait for others, one output can be there long before another.
        """
        if not isinstance(thing, Tensor) or len(thing.op.outputs) < 2:
            return thing
        op = thing.op
        if op.block is not self._here.block or op.graph is not self or not _has_blocking(op):
            return thing
        # The op that hands on is defined above this floor.
        made: Operation = self.add(op_class("Identity")(), (thing,), "awaited")
        return made

    def _control_for(self, definition: Op, inputs: tuple[Tensor, ...]) -> tuple[Operation, ...]:
        """Returns the control inputs of a new operation: those that its inputs do not wait for."""
        here = self._here
        # What needs an input's shape alone runs without the input where the shape is known.
        read = () if definition.needs_shape_only else inputs[: definition.kernel_inputs]
        makers = {t.op for t in read}
        waits = [
            op
            for c in here.controllers
            if makers.isdisjoint(c.made)
            for op in c.operations
            if op not in makers
        ]
        return tuple(dict.fromkeys(waits))

    # -- devices --------------------------------------------------------------------------------

    @contextmanager
    def device(self, device_name_or_function: Any) -> Iterator[None]:
        """Asks for a device for the operations of the block.

        Args:
            device_name_or_function: A (partial) device name or `DeviceSpec`, which overrides the
                parts that it sets of those outside; a function of the operation (whose `device`
                is what stands inside asks for) that returns the name to ask for, or None for no
                change; or None, which clears those outside.

        Raises:
            InvalidArgumentError: if it is no device name.
        """
        before = self._wished()
        wish = device_name_or_function
        if wish is None:
            mine = Wishes((), before.colocation)
        else:
            if not callable(wish):
                wish = DeviceSpec.from_string(_device_name(wish)).to_string()
            mine = Wishes((wish, *before.devices), before.colocation)
        self._wish(mine)
        try:
            yield
        except BaseException:
            self._wish(before)
            raise
        if self._wished() is not mine:
            raise NestingError("a device scope ends inside another one that it encloses")
        self._wish(before)

    @contextmanager
    def colocate_with(self, op: Any, ignore_existing: bool = False) -> Iterator[None]:
        """Asks that the operations of the block share a device with `op`.

        Devices that are asked for outside do not count in it.

        Args:
            op: An operation, tensor or variable (with its handle, so where its value lies); None
                (with `ignore_existing`) for none at all.
            ignore_existing: Whether the operations that blocks outside name do not count.
        """
        if op is None and not ignore_existing:
            raise InvalidArgumentError(
                "expected an operation to share a device with, got None: "
                "ignore_existing=True ends what blocks outside ask for"
            )
        before = self._wished()
        targets = () if ignore_existing else before.colocation
        if op is not None:
            targets = (self._as_operation(getattr(op, "handle", op)), *targets)
        self._wish(Wishes((), targets))
        try:
            yield
        finally:
            self._wish(before)

    @contextmanager
    def colocate_with_name(self, name: str) -> Iterator[None]:
        """Asks that the operations of the block share a device with one that is made later.

        Args:
            name: The name that it will have. Devices that are asked for outside do not count.
        """
        before = self._wished()
        self._wish(Wishes((), (_Later(name),)))
        try:
            yield
        finally:
            self._wish(before)

    # -- blocks and gradients -------------------------------------------------------------------

    @contextmanager
    def enter_block(self, block: Block) -> Iterator[Block]:
        """Adds operations to `block`; control dependencies from outside do not reach in."""
        here = self._here
        before = here.block, here.controllers, here.control
        here.block, here.controllers, here.control = block, (), ()
        try:
            yield block
        finally:
            here.block, here.controllers, here.control = before

    @contextmanager
    def gradient_of(self, op: Operation, name: str = "") -> Iterator[None]:
        """Notes of the operations of the block that they are made for the gradient of `op`.

        Args:
            op: The operation.
            name: A name scope to open, or "".
        """
        here = self._here
        before = here.forward, here.scope
        here.forward = op
        if name:
            here.scope = self.unique_name(name)
        try:
            yield
        finally:
            here.forward, here.scope = before

    @contextmanager
    def gradient_override_map(self, op_type_map: dict[str, str]) -> Iterator[None]:
        """Gives operations of the block other gradients than their op's own.

        Args:
            op_type_map: Name of a gradient (see `fs.RegisterGradient`) by op type.
        """
        if not isinstance(op_type_map, dict) or not all(
            isinstance(name, str) for pair in op_type_map.items() for name in pair
        ):
            raise DTypeError(
                f"expected names of gradients by op type, a dict of strings, got {op_type_map!r}"
            )
        here = self._here
        before = here.gradients
        here.gradients = before | op_type_map
        try:
            yield
        finally:
            here.gradients = before

    def building_context(self) -> tuple[Any, ...]:
        """A key of the place of building: block, control inputs, cell."""
        here, cell = self._here, self._next_order // PLACES
        return here.block, here.control, cell


def _has_blocking(op: Operation) -> bool:
    """Whether something in the bodies that an operation runs may wait for others."""
    functions = getattr(op.definition, "functions", ())
    inner = [o for f in functions for o in f.block.operations]
    return any(o.definition.is_blocking or _has_blocking(o) for o in inner)


def _operation_or_itself(thing: Any) -> Any:
    """Returns the operation that makes the parts of a composite tensor, or a variable's handle."""
    op = None if isinstance(thing, Tensor | Operation) else getattr(thing, "op", None)
    return op if isinstance(op, Operation) else thing


def _device_name(wish: Any) -> str:
    if isinstance(wish, str | DeviceSpec):
        return str(wish)
    raise InvalidArgumentError(
        f"expected a device name, an fs.DeviceSpec, a function or None, got {wish!r}"
    )
