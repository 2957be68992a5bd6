"""What restores variables in a graph of TensorFlow, and what only saves them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import get_static_value
from flowscope.graph.operation import Tensor
from flowscope.graph.values.dtypes import DType
from flowscope.ops.core.flow import no_op
from flowscope.ops.state.checkpoint_ops import Part, restore
from flowscope.tensorflow.importer import ForeignFunction, ForeignNode, functions_of
from flowscope.tensorflow.op_table import OpUse, maker

#: Op types that write checkpoints.
_SAVING = frozenset({"MergeV2Checkpoints", "SaveV2", "ShardedFilename"})
#: "7 5 0,3:-": the shape of the whole, and per axis the first position and length, or "-" for all.
_SLICE = re.compile(r"((?:\d+ )*\d+) ((?:-|\d+,\d+)(?::(?:-|\d+,\d+))*)", re.ASCII)


@maker("RestoreV2")
def _restore(use: OpUse) -> Any:
    prefix, names, slices = use.inputs
    dtypes = use.attribute("dtypes", list)
    texts, parts = _texts(names), [_part(text) for text in _texts(slices)]
    if not len(texts) == len(parts) == len(dtypes) or not all(isinstance(d, DType) for d in dtypes):
        raise InvalidArgumentError(f"expected {len(dtypes)} names and slices, got {len(texts)}")
    shapes = [None if part is None else part[1] for part in parts]
    return tuple(restore(prefix, texts, dtypes, shapes, parts, use.name))


def _texts(tensor: Tensor) -> list[str]:
    value = get_static_value(tensor)
    if value is None or tensor.dtype.kind != "s":
        raise InvalidArgumentError("expected the names of what is restored as constants")
    return [bytes(text).decode(errors="replace") for text in value.reshape(-1).tolist()]


def _part(text: str) -> Part:
    if not text:
        return None
    found = _SLICE.fullmatch(text)
    sizes = [int(n) for n in found[1].split()] if found else []
    extents = found[2].split(":") if found else []
    if not found or len(sizes) != len(extents):
        raise InvalidArgumentError(f"expected the place of a part of a tensor, got {text!r}")
    pairs = [
        (0, size) if extent == "-" else tuple(map(int, extent.split(",")))
        for extent, size in zip(extents, sizes, strict=True)
    ]
    return tuple([p[0] for p in pairs]), tuple([p[1] for p in pairs])


@maker("DisableCopyOnRead")
def _disable_copy_on_read(use: OpUse) -> Any:
    """Values of variables are never copied for readers."""
    return no_op(use.name)


def without_saving(
    nodes: Iterable[ForeignNode], bodies: Iterable[ForeignFunction]
) -> list[ForeignNode]:
    """Returns a graph's nodes without those that write checkpoints, and what depends on these."""
    writing = {b.name for b in bodies if any(n.op in _SAVING for n in b.nodes)}
    left = list(nodes)
    gone = {n.name for n in left if n.op in _SAVING or functions_of(n) & writing}
    before = -1
    while len(gone) > before:
        before = len(gone)
        gone |= {n.name for n in left if any(_source(i) in gone for i in n.inputs)}
    return [n for n in left if n.name not in gone]


def _source(name: str) -> str:
    return name.removeprefix("^").partition(":")[0]


__all__ = ["without_saving"]
