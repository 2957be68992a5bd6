"""Code: a region becomes one Python function, straight-line, with safepoints.

The function takes (gate, run, feeds, resources) and returns the region's outputs. Values live in
local variables that are used again as soon as their value has died, so an array is freed at its
last use. A line table leads from each line to its node, for errors.

At a safepoint the code tests one flag; if it is set, `gate.hold(point, live)` gets the live values
and the code goes on with the values that it returns. Between two safepoints lies about `STRETCH_S`
of estimated work, and never a write of an update group that has begun.
"""

from __future__ import annotations

import functools
import itertools
import linecache
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flowscope.graph.op import is_special, kernel_of
from flowscope.plan.passes.regions import Region
from flowscope.plan.program import Node, Value
from flowscope.plan.reuse import Reuse, reuse

#: Estimated seconds of work between two safepoints.
STRETCH_S = 200e-6
_UNKNOWN_S = 50e-6
_PER_OP_S = 1e-6
_PER_SCALAR_OP_S = 0.05e-6
_BYTES_PER_S = 10e9
_FLOPS_PER_S = 20e9

#: Op types that nothing is written for: their order is all they do.
_SILENT = frozenset({"VarHandle", "NoOp"})

_numbers = itertools.count()


@dataclass(frozen=True)
class Line:
    """What one generated line does: which node, and the locals that hold its inputs."""

    node: Node | None
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Code:
    """The function of a region with its source and line table."""

    function: Callable[..., tuple[Any, ...]]
    source: str
    #: Line i + 1 of the source.
    lines: tuple[Line, ...]
    filename: str


def generate(region: Region, xp: Any, generator: Callable[[Any, int], Any]) -> Code:
    """Returns the code of a region.

    Args:
        region: Nodes in order.
        xp: The array module of the device.
        generator: `generator(run, op_seed)` makes the random generator of one invocation.
    """
    return _Writer(region, xp, generator).code()


def seconds(node: Node) -> float:
    """Returns a first guess of the seconds that one invocation takes."""
    specs = tuple(v.spec for v in node.outputs)
    inputs = tuple(v.spec for v in node.inputs)
    if all(s.shape == () for s in (*inputs, *specs)):
        return _PER_SCALAR_OP_S if node.op.template else _PER_OP_S
    cost = node.op.cost(inputs, specs)
    if cost.flops is None or cost.nbytes is None:
        return _UNKNOWN_S
    return _PER_OP_S + cost.flops / _FLOPS_PER_S + cost.nbytes / _BYTES_PER_S


class _Writer:
    """Writes one function; each method emits lines."""

    def __init__(self, region: Region, xp: Any, generator: Callable[[Any, int], Any]) -> None:
        self.region = region
        self.namespace: dict[str, Any] = {"xp": xp, "generator": generator, "own": own}
        self.text: list[str] = []
        self.lines: list[Line] = []
        #: Local variable (or global, for constants) of each live value.
        self.place: dict[Value, str] = {}
        self.free: list[str] = []
        self.slots = 0
        self.last_use = _last_uses(region)
        self.reuse = reuse(region) if all(device_type(n) == "CPU" for n in region.nodes) else {}
        self.unsafe = unsafe_positions(region.nodes)

    def code(self) -> Code:
        self._head()
        work = 0.0
        for i, node in enumerate(self.region.nodes):
            cost = seconds(node)
            if work and work + cost > STRETCH_S and i not in self.unsafe:
                self._safepoint(i)
                work = 0.0
            self._node(i, node)
            work += cost
        self._return()
        number = next(_numbers)
        filename = f"<flowscope plan {number}>"
        source = "\n".join(self.text) + "\n"
        exec(compile(source, filename, "exec"), self.namespace)
        linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
        return Code(self.namespace["region"], source, tuple(self.lines), filename)

    def _emit(self, text: str, node: Node | None = None, arguments: tuple[str, ...] = ()) -> None:
        self.text.append(text)
        self.lines.append(Line(node, arguments))

    def _head(self) -> None:
        self._emit("def region(gate, run, feeds, resources):")
        self._unpack(self.region.inputs, "feeds", "f")
        self._unpack(self.region.handle_values, "resources", "r")

    def _unpack(self, values: tuple[Value, ...], source: str, letter: str) -> None:
        names = [f"{letter}{i}" for i in range(len(values))]
        if names:
            self._emit(f"    {', '.join(names)}, = {source}")
        self.place.update(zip(values, names, strict=True))

    def _node(self, index: int, node: Node) -> None:
        kind = node.op.type
        if kind in _SILENT:
            return
        if kind == "Const":
            name = f"c{index}"
            self.namespace[name] = kernel_of(node.op, device_type(node))(self.namespace["xp"])
            self.place[node.outputs[0]] = name
            return
        arguments = tuple([self.place[v] for v in node.inputs])
        expression = self._expression(index, node, arguments)
        released = [self.place.pop(v) for v in dict.fromkeys(node.inputs) if self._dies(v, index)]
        self.free += released
        targets = [self._slot() for _ in node.outputs]
        self.place.update(zip(node.outputs, targets, strict=True))
        unused = [self.place.pop(v) for v in node.outputs if v not in self.last_use]
        self.free += unused
        left = f"{', '.join(targets)} = " if targets else ""
        clear = [n for n in dict.fromkeys((*released, *unused)) if n in self.free]
        tail = f"; {' = '.join(clear)} = None" if clear else ""
        self._emit(f"    {left}{expression}{tail}", node, arguments)

    def _expression(self, index: int, node: Node, arguments: tuple[str, ...]) -> str:
        op, device = node.op, device_type(node)
        if node in self.reuse and not is_special(op, device):
            return _in_place(self.reuse[node], arguments)
        template = scalar_template(node) or op.template
        if template is not None and not is_special(op, device):
            return template.format(*arguments)
        name = f"k{index}"
        self.namespace[name] = kernel_of(op, device)
        leading = ["xp"]
        if op.is_random:
            leading.append(f"generator(run, {', '.join(map(str, counter(node)))})")
        return f"{name}({', '.join([*leading, *arguments])})"

    def _safepoint(self, index: int) -> None:
        live = sorted(
            {n for v, n in self.place.items() if self.last_use.get(v, -1) >= index and n[0] in "sf"}
        )
        names = ", ".join(live)
        target = f"{names}, = " if live else ""
        self._emit(
            f"    if gate.raised: {target}gate.hold({index}, ({names}{',' if live else ''}))"
        )

    def _return(self) -> None:
        parts = []
        for value, is_shared in zip(self.region.outputs, self.region.shared, strict=True):
            name = self.place[value]
            parts.append(f"own({name})" if is_shared and value.spec.shape != () else name)
        self._emit(f"    return ({', '.join(parts)}{',' if parts else ''})", None, ())

    def _dies(self, value: Value, index: int) -> bool:
        return self.last_use.get(value) == index and self.place[value][0] == "s"

    def _slot(self) -> str:
        if self.free:
            return self.free.pop()
        self.slots += 1
        return f"s{self.slots - 1}"


def _in_place(how: Reuse, arguments: tuple[str, ...]) -> str:
    out = arguments[how.index]
    if how.same:
        tests = " == ".join(f"{arguments[j]}.shape" for j in (how.index, *how.same))
        out = f"{out} if {tests} else None"
    return how.template.format(*arguments, out=out)


def scalar_template(node: Node) -> str | None:
    """Returns the template for numbers, where the node's inputs are known to be numbers."""
    template = node.op.scalar_template
    if template is None or device_type(node) != "CPU":
        return None
    is_scalar = all(v.spec.shape == () and v.spec.dtype.is_numeric for v in node.inputs)
    return template if is_scalar else None


def counter(node: Node) -> tuple[int, ...]:
    """Returns what tells a random node's draws from others': op seed, and its path of calls."""
    seed: int = node.op.seed  # type: ignore[attr-defined]
    return (seed, zlib.crc32("/".join(node.path).encode())) if node.path else (seed,)


def own(value: Any) -> Any:
    """Returns a value that shares memory with no other: a copy of an array."""
    copy = getattr(value, "copy", None)
    return value if copy is None else copy()


def device_type(node: Node) -> str:
    """Returns the type of the device that the node was placed on, e.g. "CPU"."""
    return _type_of(node.device)


@functools.cache
def _type_of(device: str) -> str:
    return device.rpartition("/device:")[2].partition(":")[0] or "CPU"


def _last_uses(region: Region) -> dict[Value, int]:
    last: dict[Value, int] = {}
    for i, node in enumerate(region.nodes):
        for v in node.inputs:
            last[v] = i
    for v in region.outputs:
        last[v] = len(region.nodes)
    return last


def unsafe_positions(nodes: tuple[Node, ...]) -> frozenset[int]:
    """Returns the positions before which no safepoint may stand: inside an update group."""
    spans: dict[str, tuple[int, int]] = {}
    for i, node in enumerate(nodes):
        if node.op.writes_state and node.update_group:
            first, _ = spans.get(node.update_group, (i, i))
            spans[node.update_group] = (first, i)
    return frozenset(i for first, last in spans.values() for i in range(first + 1, last + 1))
