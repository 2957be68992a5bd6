"""Saving and restoring as ops: named tensors to a checkpoint, and back."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

import numpy as np

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.values.dtypes import DType, resource, string
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import Dims, compatible, text
from flowscope.ops.core.build import apply, apply_many
from flowscope.ops.state.checkpoint_file import (
    CheckpointReader,
    bundle_format,
    check_names,
    file_of,
    write_checkpoint,
)

#: First position and shape of a part of a tensor, per axis; None: the whole.
Part = tuple[tuple[int, ...], tuple[int, ...]] | None


def _check_prefix(prefix: Spec) -> None:
    if prefix.dtype is not string or prefix.rank not in (0, None):
        raise expected_dtype("a string scalar as the checkpoint's prefix", prefix)


@frozen
class SaveV2(Op, is_stateful=True, is_differentiable=False, devices=("CPU",)):
    """Writes tensors under names to a checkpoint, all or nothing; the output is its prefix.

    With `as_bundle` the checkpoint has TensorFlow's form.

    Shapes: prefix a string scalar, then one tensor per name -> a string scalar
    """

    names: tuple[str, ...]
    as_bundle: bool = False

    def infer(self, prefix: Spec, *tensors: Spec) -> Spec:
        _check_prefix(prefix)
        if len(tensors) != len(self.names) or len(set(self.names)) < len(self.names):
            raise expected(f"{len(tensors)} different names, one per tensor", list(self.names))
        check_names(self.names)
        if any(t.dtype is resource for t in tensors):
            raise expected_dtype("tensors to save", "the handle of a variable")
        return Spec(string, ())

    def kernel(self, xp: ArrayModule, prefix: Array, *tensors: Array) -> Array:
        path, arrays = _path(prefix), dict(zip(self.names, tensors, strict=True))
        if self.as_bundle:
            bundle_format()[1](path, arrays)
            with suppress(FileNotFoundError):  # readers take the other form first
                os.unlink(file_of(path))
        else:
            write_checkpoint(path, arrays)
        return prefix


@frozen
class RestoreV2(Op, is_stateful=True, is_differentiable=False, devices=("CPU",)):
    """Reads tensors, or parts of tensors, by name from a checkpoint.

    Shapes: prefix a string scalar -> one tensor per name
    Raises: NotFoundError if the checkpoint or a name is missing; DataLossError if it is damaged;
        InvalidArgumentError if a tensor has another dtype or shape.
    """

    names: tuple[str, ...]
    dtypes: tuple[DType, ...]
    shapes: tuple[Dims, ...]
    parts: tuple[Part, ...]

    def infer(self, prefix: Spec) -> Any:
        _check_prefix(prefix)
        specs = tuple([Spec(d, s) for d, s in zip(self.dtypes, self.shapes, strict=True)])
        return specs if len(specs) != 1 else specs[0]

    def kernel(self, xp: ArrayModule, prefix: Array) -> Any:
        reader = CheckpointReader(_path(prefix))
        facts = zip(self.names, self.dtypes, self.shapes, self.parts, strict=True)
        arrays = tuple([_read(reader, *fact) for fact in facts])
        return arrays if len(arrays) != 1 else arrays[0]


def _path(prefix: Array) -> str:
    value = prefix if isinstance(prefix, bytes) else np.asarray(prefix).item()
    return os.fsdecode(value)


def _read(reader: CheckpointReader, name: str, dtype: DType, shape: Dims, part: Part) -> Array:
    array = reader.read(name, *(part or (None, None)))
    found = np.shape(array)
    if reader.dtype(name) is not dtype or not compatible(found, shape):
        raise expected(
            f'"{name}" to be {dtype}{text(shape)}',
            f'{reader.dtype(name)}{text(found)} from "{reader.path}"',
        )
    return array


def save(
    prefix: Any,
    tensor_names: Any,
    tensors: Any,
    name: str | None = None,
    as_bundle: bool = False,
) -> Tensor:
    """Returns the prefix; running it writes the checkpoint.

    Args:
        prefix: A string: the checkpoint's path without the suffix.
        tensor_names: Names, one per tensor.
        tensors: Tensors.
        name: Name of the operation.
        as_bundle: Whether the checkpoint has TensorFlow's form.
    """
    op = SaveV2(tuple(str(n) for n in tensor_names), as_bundle)
    values = [convert_to_tensor(t) for t in tensors]
    return apply(op, convert_to_tensor(prefix, string), *values, name=name)


def restore(
    prefix: Any,
    tensor_names: Any,
    dtypes: Any,
    shapes: Any = None,
    parts: Any = None,
    name: str | None = None,
) -> list[Tensor]:
    """Returns tensors that are read from a checkpoint when they run.

    Args:
        prefix: A string: the checkpoint's path without the suffix.
        tensor_names: Names of what is read.
        dtypes: Its dtypes.
        shapes: Its shapes, as far as they are known.
        parts: Per name None, or (first position, shape) of the part that is wanted.
        name: Name of the operation.
    """
    names = tuple(str(n) for n in tensor_names)
    unknown = (None,) * len(names)
    op = RestoreV2(names, tuple(dtypes), tuple(shapes or unknown), tuple(parts or unknown))
    return list(apply_many(op, convert_to_tensor(prefix, string), name=name))


__all__ = ["RestoreV2", "SaveV2", "restore", "save"]
