"""Sequences, whose lengths are known at load, and optionals."""

from __future__ import annotations

from typing import Any

import numpy as np

import flowscope as fs
from flowscope.errors import InvalidArgumentError, UnimplementedError
from flowscope.onnx.node import OnnxNode, dims_of
from flowscope.onnx.table import converts


@converts("SequenceConstruct")
def _construct(n: OnnxNode) -> Any:
    return n.tensors()


@converts("SequenceEmpty")
def _empty(n: OnnxNode) -> Any:
    return []


def _place(n: OnnxNode, i: int, count: int, most: int) -> int:
    at = int(np.reshape(n.constant(i, "the place in the sequence"), ()))
    if not -count <= at <= most:
        raise InvalidArgumentError(f"expected a place in a sequence of {count}, got {at}")
    return at + count if at < 0 else at


@converts("SequenceAt")
def _at(n: OnnxNode) -> Any:
    values = n.sequence(0)
    return fs.identity(values[_place(n, 1, len(values), len(values) - 1)])


@converts("SequenceInsert")
def _insert(n: OnnxNode) -> Any:
    values = list(n.sequence(0))
    at = _place(n, 2, len(values), len(values)) if n.has(2) else len(values)
    return [*values[:at], n.x(1), *values[at:]]


@converts("SequenceErase")
def _erase(n: OnnxNode) -> Any:
    values = list(n.sequence(0))
    at = _place(n, 1, len(values), len(values) - 1) if n.has(1) else len(values) - 1
    return [*values[:at], *values[at + 1 :]]


@converts("SequenceLength")
def _length(n: OnnxNode) -> Any:
    return fs.constant(len(n.sequence(0)), fs.int64)


@converts("ConcatFromSequence")
def _concat(n: OnnxNode) -> Any:
    values = n.sequence(0)
    if not values:
        raise InvalidArgumentError("expected a sequence with elements")
    if n.attr("new_axis", 0):
        return fs.stack(values, n.needed("axis"))
    return fs.concat(values, n.needed("axis"))


@converts("SplitToSequence")
def _split(n: OnnxNode) -> Any:
    x, axis = n.x(0), n.axis(0)
    if n.has(1) and n.known(1) is None and n.x(1).ndim == 1 and n.x(1).spec.is_static:
        return list(fs.split(x, n.x(1), axis))
    total = dims_of(x)[axis]
    if total is None:
        raise UnimplementedError("expected an axis of known size to be split")
    if not n.has(1):
        parts = fs.split(x, [1] * total, axis)
        return list(parts) if n.attr("keepdims", 1) else [fs.squeeze(p, [axis]) for p in parts]
    sizes = n.constant(1, "the sizes of the parts")
    if sizes.ndim == 0:
        part = int(sizes)
        if part < 1:
            raise InvalidArgumentError(f"expected parts of size 1 or more, got {part}")
        sizes = np.array([min(part, total - i) for i in range(0, total, part)])
    return list(fs.split(x, [int(s) for s in sizes], axis))


@converts("SequenceMap")
def _map(n: OnnxNode) -> Any:
    count, body = len(n.sequence(0)), n.needed("body")
    rows: list[list[Any]] = [[] for _ in body.output]
    for i in range(count):
        given = [v[i] if isinstance(v, list) else v for v in n.inputs]
        for row, value in zip(rows, n.run_graph(body, given), strict=True):
            row.append(value)
    return tuple(rows)


@converts("Optional")
def _optional(n: OnnxNode) -> Any:
    return n.inputs[0] if n.inputs else None


@converts("OptionalHasElement")
def _has_element(n: OnnxNode) -> Any:
    return fs.constant(bool(n.inputs) and n.inputs[0] is not None)


@converts("OptionalGetElement")
def _get_element(n: OnnxNode) -> Any:
    found = n.inputs[0] if n.inputs else None
    if found is None:
        raise InvalidArgumentError("expected an optional with an element, got one without")
    return fs.identity(found) if isinstance(found, fs.Tensor) else found
