"""Open shapes: forget static shapes that a write may have made wrong.

`assign(validate_shape=False)` gives a variable any shape. Operations that were made before keep the
static shape that the variable had then, as in TensorFlow; the plan must not rely on it. `prune` has
opened the handles of such variables. From them on specs are inferred again; behind what cannot be
inferred, and behind branches and loops, no shape is known.
"""

from __future__ import annotations

from collections.abc import Iterable

from flowscope.errors import OpError
from flowscope.graph.op import Spec
from flowscope.plan.ir.program import Node, Program, Value
from flowscope.plan.ir.rewriting import with_specs


def open_shapes(program: Program) -> Program:
    """Returns the program in which specs that follow from opened handles say what is so."""
    handles = [v for n in program.nodes if n.op.is_handle for v in n.outputs]
    opened = {v: v.spec for v in handles if _is_opened(v.spec)}
    count = 0
    while count != len(opened):  # again for loops made by hand
        count = len(opened)
        _open_all(program.nodes, opened)
    changed = {v: spec for v, spec in opened.items() if spec != v.spec}
    return with_specs(program, changed) if changed else program


def _is_opened(handle: Spec) -> bool:
    return handle.variable is not None and handle.variable.shape is None


def _open_all(nodes: Iterable[Node], opened: dict[Value, Spec]) -> None:
    """Adds the values that follow from opened ones, with what is known of them."""
    for node in nodes:
        if all(v not in opened for v in node.inputs):
            continue
        for block in node.blocks:
            opened.update((v, _unknown(v.spec)) for v in block.feeds)
            _open_all(block.nodes, opened)
        if node.blocks:
            opened.update((v, _unknown(v.spec)) for v in node.outputs)
            continue
        for value, spec in zip(node.outputs, _inferred(node, opened), strict=True):
            if value in opened or spec != value.spec:
                opened[value] = spec


def _inferred(node: Node, opened: dict[Value, Spec]) -> list[Spec]:
    try:
        found = node.op.infer(*[opened.get(v, v.spec) for v in node.inputs])
    except (OpError, NotImplementedError):
        return [_unknown(v.spec) for v in node.outputs]
    return [found] if isinstance(found, Spec) else list(found)


def _unknown(spec: Spec) -> Spec:
    return spec if spec.variable is not None else Spec(spec.dtype, None)


__all__ = ["open_shapes"]
