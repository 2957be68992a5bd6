"""Op mode: a region run one operation at a time, for debuggers and as the code's counterpart.

It calls kernels where generated code inlines templates, allocates alike and gives bit-equal
results.
Templates for numbers may differ from the kernel in the sign of a zero, so both modes share them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from flowscope.graph.op import is_special, kernel_of
from flowscope.plan.code import counter, device_type, own, scalar_template
from flowscope.plan.passes.regions import Region
from flowscope.plan.program import Node, Value

#: Called after each operation with the node and its outputs' values.
Probe = Callable[[Node, tuple[Any, ...]], None]


class Interpreter:
    """Runs a region one operation at a time; same signature as generated code.

    Attributes:
        at: The node that runs now, and its inputs' values: for errors.
    """

    def __init__(
        self, region: Region, xp: Any, generator: Callable[[Any, int], Any], unsafe: frozenset[int]
    ) -> None:
        self._region = region
        self._xp = xp
        self._generator = generator
        self._unsafe = unsafe
        self._dying = _dying(region)

    def __call__(
        self,
        gate: Any,
        run: Any,
        feeds: tuple[Any, ...],
        resources: tuple[Any, ...],
        probe: Probe | None = None,
    ) -> tuple[Any, ...]:
        """Runs the region once; see `flowscope.plan.code` for the arguments."""
        region = self._region
        values: dict[Value, Any] = dict(zip(region.inputs, feeds, strict=True))
        values.update(zip(region.handle_values, resources, strict=True))
        for i, node in enumerate(region.nodes):
            if node.op.type == "VarHandle":
                continue
            if gate.raised and i not in self._unsafe:
                live = tuple(values)
                values = dict(zip(live, gate.hold(i, tuple(values.values())), strict=True))
            inputs = [values[v] for v in node.inputs]
            try:
                outputs = self._invoke(node, run, inputs)
            except Exception as e:
                raise InvocationError(node, tuple(inputs), e) from e
            for v in self._dying[i]:
                values.pop(v, None)
            inputs.clear()
            values.update((v, o) for v, o in zip(node.outputs, outputs, strict=True))
            if probe is not None:
                probe(node, outputs)
            del outputs
        return tuple(
            own(values[v]) if s and v.spec.shape != () else values[v]
            for v, s in zip(region.outputs, region.shared, strict=True)
        )

    def _invoke(self, node: Node, run: Any, inputs: list[Any]) -> tuple[Any, ...]:
        device = device_type(node)
        template = scalar_template(node)
        if template is not None and not is_special(node.op, device):
            kernel = _function(template, len(inputs))
        else:
            kernel = kernel_of(node.op, device)
        if node.op.is_random:
            result = kernel(self._xp, self._generator(run, *counter(node)), *inputs)
        else:
            result = kernel(self._xp, *inputs)
        if len(node.outputs) == 1:
            return (result,)
        return result if node.outputs else ()


@functools.cache
def _function(template: str, count: int) -> Callable[..., Any]:
    """Returns a template as a function (xp, *inputs)."""
    names = [f"a{i}" for i in range(count)]
    function: Callable[..., Any] = eval(f"lambda xp, {', '.join(names)}: {template.format(*names)}")
    return function


class InvocationError(Exception):
    """An operation's kernel failed with `kernel_error`; the session turns it into an OpError."""

    def __init__(self, node: Node, inputs: tuple[Any, ...], kernel_error: Exception) -> None:
        super().__init__(node.name)
        self.kernel_error = kernel_error
        self.node = node
        self.inputs = inputs


def _dying(region: Region) -> list[list[Value]]:
    last: dict[Value, int] = {}
    for i, node in enumerate(region.nodes):
        for v in (*node.outputs, *node.inputs):
            last[v] = i
    for v in region.outputs:
        last.pop(v, None)
    dying: list[list[Value]] = [[] for _ in region.nodes]
    for v, i in last.items():
        dying[i].append(v)
    return dying
