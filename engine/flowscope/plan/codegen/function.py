"""Code: a region becomes one Python function, straight-line, with safepoints.

The function takes (gate, run, feeds, resources) and returns the region's outputs. Values live in
local variables that are used again as soon as their value has died, so an array is freed at its
last use. A line table leads from each line to its node, for errors.

At a safepoint the code tests one flag; if it is set, a `Safepoint` gets the live values: it may
hold the step, or run the rest of it in the code's place. Between two safepoints lies about
`STRETCH_S` of estimated work, and never a write of an update group that has begun.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from flowscope.graph.constant import Const
from flowscope.graph.op import is_special
from flowscope.graph.values.expression import number_text, python_text
from flowscope.ops.core.send_recv import Transfer
from flowscope.plan.analysis.costs import Costs
from flowscope.plan.analysis.locations import Part
from flowscope.plan.analysis.updates import unsafe_inside, unsafe_positions
from flowscope.plan.codegen.buffer_reuse import Reuse, can_reuse, out_expression, reuse
from flowscope.plan.codegen.code import Code, Line, compiled
from flowscope.plan.codegen.control_flow import write_cond, write_loop
from flowscope.plan.codegen.outlining import is_outlined, write_outlined
from flowscope.plan.codegen.parallel_for import (
    LARGE,
    ParallelFor,
    first_full,
    is_parallelizable,
    parallel_kernel,
)
from flowscope.plan.codegen.safepoints import (
    FILENAME,
    STRETCH_S,
    Deopt,
    LoopNames,
    OsrEntry,
    ValueVariables,
    VariableNames,
    safepoint,
    to_caller,
)
from flowscope.plan.codegen.sections import MakeTasks, Sections
from flowscope.plan.codegen.unboxed import (
    literal,
    number_form,
    overflow_check,
    unboxed_values,
)
from flowscope.plan.codegen.variants import PLAIN, Probe, Variant
from flowscope.plan.ir.breakpoints import BlockBreakpoint
from flowscope.plan.ir.crossings import is_crossing
from flowscope.plan.ir.kernels import counter, device_type, inlined_expression, own
from flowscope.plan.ir.modules import Modules
from flowscope.plan.ir.program import Node, Program, Value
from flowscope.plan.ir.structured import CondNode, LoopNode
from flowscope.plan.passes.regions import Region

if TYPE_CHECKING:
    from flowscope.plan.codegen.native_hooks import NativeMaker

#: Op types that nothing is written for: their order is all they do.
_SILENT = frozenset({"NoOp", "AwaitUpdate"})

_numbers = itertools.count()


def generate(
    region: Region,
    modules: Modules,
    generator: Callable[..., Any],
    deopt: Deopt,
    entries: Mapping[Node, OsrEntry] | None = None,
    parallel_for: ParallelFor | None = None,
    inner_deopt: Deopt = to_caller,
    variant: Variant = PLAIN,
    costs: Costs | None = None,
    make_tasks: MakeTasks | None = None,
    before: Code | None = None,
    native: NativeMaker | None = None,
) -> Code:
    """Returns the code of a region.

    Args:
        region: Nodes in order.
        modules: The array modules of its nodes.
        generator: `generator(run, op_seed)` makes the random generator of one invocation.
        deopt: Runs the rest of a step that leaves the code at a safepoint.
        entries: Loops that go on, by the nodes that stand for them in the region.
        parallel_for: Has several threads take parts of a kernel; None where one does it all.
        inner_deopt: The same as `deopt` for functions that the region's function calls; what is
            left there comes to `deopt` with all that is around.
        variant: What is added to it.
        costs: What its nodes take; None for what follows from their shapes.
        make_tasks: Has other threads run sections before their turn; None where one thread does it
            all. Variants do not overlap: what they tell is in the order of the program.
        before: Code of a program that may be much like it: what Python has compiled of it is used
            again where the source is the same. What the source names is the new program's.
        native: Makes the compiler of loops of single numbers; None where all stays Python.
    """
    probe = variant.probe()
    writer = Writer(region, modules, generator, deopt, entries or {}, parallel_for, inner_deopt)
    writer.probe, writer.costs = probe, costs or Costs()
    writer.native_compiler = native
    if make_tasks is not None and variant == PLAIN:
        writer.namespace["make_tasks"] = make_tasks
        writer.sections = Sections(writer.program, writer.costs.seconds)
    return writer.code(before)


class BlockScope:
    """A block that is being written: the region's own nodes, a branch, or a part of a loop.

    Attributes:
        program: The block.
        part: What the block is to the node that runs it.
        loop: The loop whose test or body it is.
        nodes: The nodes.
        last_use: Index of the node that reads each value last; the number of nodes for results.
        own: Values that are made here, in order: their places are free after their last use.
        reuse: How nodes use dying buffers.
        unsafe: Positions before which no safepoint may stand.
        index: The node that is being written.
        wishes: Places that results shall have, where these are free.
        is_inner: Whether it is part of a loop: what costs little memory is not cleared there.
    """

    def __init__(
        self,
        program: Program,
        own: Iterable[Value] = (),
        is_safe: bool = True,
        is_inner: bool = False,
        part: Part = "region",
        loop: LoopNames | None = None,
    ) -> None:
        self.program = program
        self.part = part
        self.loop = loop
        self.nodes = program.nodes
        self.last_use = _last_uses(program)
        self.own = dict.fromkeys([*own, *[v for n in program.nodes for v in n.outputs]])
        self.reuse: dict[Node, Reuse] = {}
        everywhere = frozenset(range(len(program.nodes) + 1))
        self.unsafe = unsafe_positions(program.nodes) if is_safe else everywhere
        self.index = 0
        self.wishes: dict[Value, str] = {}
        self.is_inner = is_inner

    def is_closed(self, index: int) -> bool:
        """Whether no step may be held in the blocks of a node."""
        is_whole = len(self.unsafe) <= len(self.nodes)
        return not is_whole or index in unsafe_inside(self.nodes)

    def dies(self, value: Value) -> bool:
        """Whether the node that is being written is the last one to read a value made here."""
        return value in self.own and self.last_use.get(value) == self.index


class Writer:
    """Writes one function; each method emits lines.

    Attributes:
        place: Local variable (or global, for constants) of each live value.
        unboxed: Which values are Python numbers.
        converted: Local variables with Python numbers for values whose `place` is NumPy's.
        deopt: Runs the rest of a step that leaves the code.
        entries: Loops that go on, by the nodes that stand for them in the region.
        scopes: The blocks that are being written, from the outermost.
        probe: What the variant of the code adds.
        is_outlined: Whether the region is a block of another function, which adds what stands
            before and after it.
        iterations: Local variables that count the iterations of the loops around.
        loops: The loops around whose test or body is being written, with these variables.
    """

    def __init__(
        self,
        region: Region,
        modules: Modules,
        generator: Callable[..., Any],
        deopt: Deopt,
        entries: Mapping[Node, OsrEntry],
        parallel_for: ParallelFor | None = None,
        inner_deopt: Deopt = to_caller,
        is_safe: bool = True,
        probe: Probe | None = None,
        is_outlined: bool = False,
    ) -> None:
        self.region = region
        self.probe = probe or Probe()
        self.costs = Costs()
        #: What other threads may compute before its turn; None for nothing.
        self.sections: Sections | None = None
        self.is_outlined = is_outlined
        self.native_compiler: NativeMaker | None = None
        self.native: list[Any] = []  # loops for machine code
        self.inner_deopt = inner_deopt
        self.is_safe = is_safe
        #: Code of blocks that stand too deep in others, by the line that calls it.
        self.outlined: dict[int, Code] = {}
        self.parallel_for = parallel_for
        self.deopt = deopt
        self.entries = entries
        self.points = 0
        self.modules = modules
        #: The names of modules and devices in the code, by identity.
        self._modules: dict[int, str] = {}
        self.namespace: dict[str, Any] = {"generator": generator, "own": own}
        self.namespace.update(int32=np.int32, int64=np.int64, float64=np.float64, bool_=np.bool_)
        self.text: list[str] = []
        self.lines: list[Line] = []
        self.depth = 1
        self.place = ValueVariables()
        #: The local variables of the mailboxes by what goes through them.
        self.mailboxes: dict[str, str] = {}
        self.converted: dict[Value, str] = {}
        self.free: dict[str, None] = {}  # the latest last
        #: How many values beyond the first a local variable holds: one that was brought to another
        #: device of the host is the same array.
        self.sharers: dict[str, int] = {}
        self.slots = 0
        self.globals = 0
        self.work = 0.0
        self.scopes: list[BlockScope] = []
        self.iterations: list[str] = []
        self.loops: tuple[tuple[Node, str], ...] = ()
        self.program = Program(region.nodes, region.inputs, region.outputs)
        self.unboxed = unboxed_values(self.program)
        self.names = VariableNames(self.place, self.unboxed.values, self.namespace)

    def code(self, before: Code | None = None) -> Code:
        """Returns the function; see `generate`."""
        self._head()
        if self.sections:
            self.emit("tasks = make_tasks()")
            self.emit("try:")
            self.depth = 2
        scope = BlockScope(self.program, is_safe=self.is_safe)
        self.reuses = can_reuse(self.region)
        if self.reuses:
            scope.reuse = reuse(self.region)
        self.scopes.append(scope)
        self.nodes(scope)
        self._return()
        if self.sections:
            self.depth = 1
            self.emit("finally: tasks.close()")
        number = next(_numbers)
        filename = f"{FILENAME} {number}>.py"  # in brackets it would not be read at need
        source = "\n".join(self.text) + "\n"
        function = compiled(source, filename, self.namespace, before)
        stamps = self.probe.table(self.program)
        lines, native = tuple(self.lines), tuple(self.native)
        return Code(function, source, lines, filename, self.outlined, stamps, native)

    def nodes(self, scope: BlockScope) -> None:
        """Writes the nodes of a block."""
        probe = Probe() if self.is_outlined and len(self.scopes) == 1 else self.probe
        is_told = type(probe) is not Probe
        sections, end = self.sections, 0
        for i, node in enumerate(scope.nodes):
            if i < end:
                continue
            scope.index = i
            if not sections and self._aliased(scope, node):
                continue  # no line, no time
            cost = self.costs.seconds(node)
            if sections:
                sections.write_forks(self, scope)
                if (fork := sections.at(scope)) is not None:
                    self.safepoint_before(scope, i, cost)
                    sections.write_join(self, scope, fork)
                    end = fork.end
                    self.work = STRETCH_S
                    continue
            self.safepoint_before(scope, i, cost)
            if is_told:
                probe.before(self, scope)
            self._node(scope, node)
            if is_told:
                probe.after(self, scope, node)
            self.work += cost
        scope.index = len(scope.nodes)
        probe.end(self, scope)

    def safepoint_before(self, scope: BlockScope, i: int, cost: float) -> None:
        """Writes a safepoint before a node if it is time for one; not where nothing is done."""
        is_idle = isinstance(op := scope.nodes[i].op, Const) or op.is_handle
        if self.work and self.work + cost > STRETCH_S and not is_idle and i not in scope.unsafe:
            self.safepoint()

    def of_section(self, region: Region) -> Code:
        """Returns the code of a section: no step is held in it."""
        generator, deopt = self.namespace["generator"], self.inner_deopt
        inner = Writer(
            region, self.modules, generator, deopt, {}, self.parallel_for, deopt, False, None, True
        )
        inner.costs, inner.native_compiler = self.costs, self.native_compiler
        return inner.code()

    def constant(self, node: Node) -> None:
        """Makes a constant a global of the function."""
        name = self.place[node.outputs[0]] = f"c{self.globals}"
        self.globals += 1
        self.namespace[name] = self.modules.kernel(node)(self.modules.of(node))

    def module(self, node: Node) -> str:
        """Returns the name that the array module of a node's device has in the code.

        The first one is "xp"; the destination of a transfer is a device.
        """
        module = self.modules.of(node)
        found = self._modules.get(id(module))
        if found is None:
            kind = "device" if isinstance(node.op, Transfer) else "xp"
            count = sum(n.startswith(kind) for n in self._modules.values())
            found = self._modules[id(module)] = f"{kind}{count or ''}"
            self.namespace[found] = module
        return found

    def emit(self, text: str, node: Node | None = None, arguments: tuple[str, ...] = ()) -> None:
        """Writes one line."""
        self.text.append("    " * self.depth + text)
        self.lines.append(Line(node, arguments, self.loops))

    def _head(self) -> None:
        self.depth = 0
        self.emit("def region(gate, run, feeds, resources):")
        self.depth = 1
        self._unpack(self.region.inputs, "feeds", "f")
        self._unpack(self.region.handle_values, "resources", "r")
        if any(is_crossing(n.op) for n in self.program.walk()):
            from flowscope.plan.codegen.crossings import write_mailboxes  # most send nothing

            write_mailboxes(self)
        self.probe.head(self)

    def _unpack(self, values: tuple[Value, ...], source: str, letter: str) -> None:
        names = [f"{letter}{i}" for i in range(len(values))]
        if names:
            self.emit(f"{', '.join(names)}, = {source}")
        self.place.assign(values, names)

    def _node(self, scope: BlockScope, node: Node) -> None:
        number = self.globals
        self.globals += 1
        op = node.op
        if op.type in _SILENT or op.is_handle:
            return
        if node.blocks:
            self._structured(scope, node, number)
        elif is_crossing(op):
            from flowscope.plan.codegen.crossings import write_crossing

            write_crossing(self, scope, node)
        elif op.is_blocking:
            self._try(scope, node, f"a{number}")
        elif isinstance(op, Const):
            if node.outputs[0] not in self.place:  # a section that was handed out may have it
                self.constant(node)
        elif not self._aliased(scope, node):
            self._line(scope, node, number)

    def _aliased(self, scope: BlockScope, node: Node) -> bool:
        if type(node.op) is not Transfer:
            return False
        from flowscope.plan.codegen.aliases import is_aliased  # most have one device

        return is_aliased(self, scope, node)

    def _structured(self, scope: BlockScope, node: Node, number: int) -> None:
        if is_outlined(self, node):
            write_outlined(self, scope, node, f"n{number}")
        elif isinstance(node, CondNode):
            write_cond(self, scope, node)
        elif isinstance(node, LoopNode):
            write_loop(self, scope, node)

    def _line(self, scope: BlockScope, node: Node, number: int) -> None:
        """Writes the line of a node that runs no blocks and never waits."""
        place, raw, outputs = self.place, self.unboxed.values, node.outputs
        names = tuple([place[v] for v in node.inputs])
        is_raw = bool(raw and outputs) and outputs[0] in raw
        if is_raw:
            expression = self.unboxed_expression(node)
        else:
            arguments = tuple(map(self.boxed, node.inputs)) if raw else names
            expression = self._expression(number, node, scope, arguments)
        gone = self.release(scope, node)
        targets = [self.slot(scope.wishes.get(v)) for v in outputs]
        place.assign(outputs, targets)
        for v in outputs:
            if v not in scope.last_use:
                name = place.take(v)
                gone.append((v, name))
                self.free[name] = None
        left = f"{', '.join(targets)} = " if targets else ""
        tail = self.clear(scope, gone) if gone else ""
        self.emit(f"{left}{expression}{tail}", node, names)
        if is_raw:
            self._wrap(node)

    def _try(self, scope: BlockScope, node: Node, name: str) -> None:
        """Writes an op that blocks: the function is left if it would have to wait."""
        self.namespace[name] = node.op.attempt
        self.safepoint()
        names = tuple([self.place[v] for v in node.inputs])
        self.emit(f"tried = {name}({', '.join(map(self.boxed, node.inputs))})", node, names)
        point = self.point(False)
        self.emit(f"if tried is None: return {point}.leave(locals())", node, names)
        self.release(scope, node)
        targets = [self.slot(scope.wishes.get(v)) for v in node.outputs]
        self.place.assign(node.outputs, targets)
        self.release_names(self.place.take(v) for v in node.outputs if v not in scope.last_use)
        if targets:
            self.emit(f"{', '.join(targets)}, = tried", node)

    def _wrap(self, node: Node) -> None:
        name = self.place.get(node.outputs[0])
        check = overflow_check(node, name, self.unboxed) if name else None
        if check is not None:
            self.emit(check, node)

    def release(self, scope: BlockScope, node: Node) -> list[tuple[Value, str]]:
        """Frees the places of what a node is the last one to read; returns them."""
        place, own, last, index = self.place, scope.own, scope.last_use, scope.index
        released = []
        for v in node.inputs:
            if last.get(v) == index and v in own:
                name = place.get(v, "-")
                if name[0] != "s":
                    continue
                del place[v]
                if self.sharers.get(name):
                    self.sharers[name] -= 1
                    continue
                released.append((v, name))
                self.free[name] = None
        return released

    def release_names(self, names: Iterable[str]) -> None:
        """Lets other values have local variables."""
        self.free.update(dict.fromkeys(names))

    def clear(self, scope: BlockScope, gone: list[tuple[Value, str]]) -> str:
        """The statement that frees the memory of values after their last use."""
        names = dict.fromkeys(
            n for v, n in gone if n in self.free and not (scope.is_inner and is_small(v))
        )
        return f"; {' = '.join(names)} = None" if names else ""

    def boxed(self, value: Value) -> str:
        """Returns an expression of a value as NumPy's."""
        name = self.place[value]
        if value not in self.unboxed.values:
            return name
        return f"{_BOXES[value.spec.dtype.name]}({name})"

    def unboxed_expression(self, node: Node) -> str:
        """Returns the expression of a node that computes an unboxed value."""
        return number_text(number_form(node), [self.as_unboxed(v) for v in node.inputs])

    def as_unboxed(self, value: Value) -> str:
        """Returns an expression of a value as a Python number."""
        if value in self.unboxed.values:
            return self.place[value]
        return self.converted.get(value) or literal(value)

    def _expression(
        self, number: int, node: Node, scope: BlockScope, arguments: tuple[str, ...]
    ) -> str:
        op, device = node.op, device_type(node)
        if not (is_special(op, device) or self.modules.must_switch(node)):
            plain = self._plain(node, scope, arguments)
            if plain is not None:
                if self.parallel_for is None or device != "CPU" or not is_parallelizable(node):
                    return plain
                return self._shared(number, node, scope, arguments, plain)
        name = f"k{number}"
        self.namespace[name] = self.modules.kernel(node)
        leading = [self.module(node)]
        if op.is_random:
            counts = [*map(str, counter(node))]
            if self.iterations:  # what is in a loop by hand has no path
                counts = [counts[0], counts[1] if counts[1:] else "0", *self.iterations]
            leading.append(f"generator(run, {', '.join(counts)})")
        return f"{name}({', '.join([*leading, *arguments])})"

    def _plain(self, node: Node, scope: BlockScope, arguments: tuple[str, ...]) -> str | None:
        if node in scope.reuse:
            how = scope.reuse[node]
            out = out_expression(how, arguments)
            return python_text(how.expression, arguments, self.module(node), out)
        return self.inlined(node, arguments)

    def inlined(self, node: Node, arguments: Sequence[str]) -> str | None:
        """The text of a node's expression; None where its kernel is called."""
        found = inlined_expression(node)
        return None if found is None else python_text(found, arguments, self.module(node))

    def _shared(
        self, number: int, node: Node, scope: BlockScope, arguments: tuple[str, ...], plain: str
    ) -> str:
        """Returns the expression of a large operation: see `parallel_for`."""
        assert self.parallel_for is not None
        name = f"k{number}"
        self.namespace[name] = parallel_kernel(node, self.parallel_for)
        out = out_expression(scope.reuse[node], arguments) if node in scope.reuse else "None"
        call = f"{name}({', '.join(arguments)}, {out})"
        shape = node.outputs[0].spec.shape
        if shape is not None and None not in shape:
            return call
        return f"{call} if {arguments[first_full(node)]}.size >= {LARGE} else {plain}"

    def safepoint(self, is_back: bool = False) -> None:
        """Writes a place where the step can be held; `is_back` where an iteration ends."""
        point = self.point(is_back)
        self.emit(
            f"if gate.raised and (left := {point}(gate, run, resources, locals())) is not None: "
            "return left"
        )
        self.work = 0.0

    def breakpoint(self, stand: BlockBreakpoint, number: int) -> None:
        """Writes a safepoint that the step comes to where a breakpoint asks for it.

        Args:
            stand: The breakpoint.
            number: The place in what is asked.
        """
        node = stand.node
        values = node.outputs if stand.is_after else node.inputs
        known = [self.boxed(v) if v in self.place else "None" for v in values]
        counts = "".join(f"{c}, " for c in self.iterations)
        point = self.point(False)
        is_meant = ""
        if self.iterations:
            is_meant = f" and (only[{number}] is None or only[{number}] == {self.iterations[-1]})"
        self.emit(
            f"if asks[{number}]{is_meant}"
            f" and tests[{number}](run, ({counts}), ({''.join(f'{k}, ' for k in known)}))"
            f" and (left := {point}(gate, run, resources, locals(), True)) is not None: return left"
        )

    def point(self, is_back: bool) -> str:
        """Makes a safepoint; returns its name."""
        point = f"p{self.points}"
        self.points += 1
        self.namespace[point] = safepoint(self, is_back)
        return point

    #: Whether dying buffers may be used again.
    reuses = False

    def _return(self) -> None:
        parts = []
        for value, is_shared in zip(self.region.outputs, self.region.shared, strict=True):
            name = self.place[value]
            parts.append(f"own({name})" if is_shared and value.spec.shape != () else name)
        self.emit(f"return ({', '.join(parts)}{',' if parts else ''})", None, ())

    def slot(self, wish: str | None = None) -> str:
        """Returns a free local variable: the wished one if it is free."""
        if wish is not None and wish in self.free:
            del self.free[wish]
            return wish
        if self.free:
            return self.free.popitem()[0]
        self.slots += 1
        return f"s{self.slots - 1}"


#: What makes NumPy's scalars of Python numbers, by dtype.
_BOXES = {"int32": "int32", "int64": "int64", "float64": "float64", "bool": "bool_"}


def is_small(value: Value) -> bool:
    """Whether a value takes next to no memory: one number."""
    return value.spec.shape == () and value.spec.dtype.kind in "fiucb"


def _last_uses(program: Program) -> dict[Value, int]:
    last: dict[Value, int] = {}
    for i, node in enumerate(program.nodes):
        for v in node.inputs:
            last[v] = i
    for v in program.fetches:
        last[v] = len(program.nodes)
    return last
