"""Examples as tensors: what a program says of the features, and what reads them.

    features = {"image": fs.FixedLenFeature([], fs.string), "tags": fs.VarLenFeature(fs.int64)}
    found = fs.parse_single_example(record, features)  # a tensor, and a sparse one

A whole batch is read at once: `parse_example` of a batch of records is several times as quick as
`parse_single_example` of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.operation import Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.dtypes import DType, as_dtype
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import TensorShape
from flowscope.ops.core.build import apply_many
from flowscope.ops.input.example_ops import ParseExample, ParseFeatureLists
from flowscope.ops.sparse.conversion import sparse_merge
from flowscope.ops.sparse.sparse_tensor import SparseTensor
from flowscope.ops.strings.string_op import as_strings

__all__ = [
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "SparseFeature",
    "VarLenFeature",
    "parse_example",
    "parse_sequence_example",
    "parse_single_example",
    "parse_single_sequence_example",
]


class FixedLenFeature(NamedTuple):
    """A feature with the same number of values in each example: a tensor.

    Attributes:
        shape: The shape of an example's values, all of it known.
        dtype: float32, int64 or string.
        default_value: Values of that shape for examples without the feature; if None, each example
            has to have it.
    """

    shape: Any
    dtype: Any
    default_value: Any = None


class VarLenFeature(NamedTuple):
    """A feature with any number of values: a sparse tensor.

    Attributes:
        dtype: float32, int64 or string.
    """

    dtype: Any


class FixedLenSequenceFeature(NamedTuple):
    """A feature with any number of rows of one shape: a tensor, padded at the ends.

    Attributes:
        shape: The shape of a row, all of it known.
        dtype: float32, int64 or string.
        allow_missing: Whether an example may be without it; it then has 0 rows.
        default_value: What fills up shorter ones; 0 or "" if None.
    """

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


class SparseFeature(NamedTuple):
    """A sparse tensor whose values and places are two features.

    Attributes:
        index_key: Name of the feature with the places, or a list of such names, one per axis.
        value_key: Name of the feature with the values.
        dtype: float32, int64 or string: that of the values.
        size: Length of the axis, or a list of lengths.
        already_sorted: Whether the places are in row-major order.
    """

    index_key: Any
    value_key: str
    dtype: Any
    size: Any
    already_sorted: bool = False


class _Plan:
    """What is read of examples, from what a program says of the features.

    Args:
        features: The features by their names.
    """

    def __init__(self, features: Any) -> None:
        if not isinstance(features, Mapping) or not features:
            raise expected("a dict of features, not empty", repr(features))
        self.features = dict(features)
        self.sparse: dict[str, DType] = {}
        self.dense: dict[str, Any] = {}
        for key, feature in sorted(self.features.items()):
            self._add(key, feature)

    def _add(self, key: str, feature: Any) -> None:
        match feature:
            case VarLenFeature(dtype):
                self._add_sparse(key, dtype)
            case SparseFeature(index_key, value_key, dtype):
                for one in _listed(index_key):
                    self._add_sparse(one, dtypes.int64)
                self._add_sparse(value_key, dtype)
            case FixedLenFeature() | FixedLenSequenceFeature():
                _checked(key, feature.dtype)
                self.dense[key] = feature
            case _:
                raise expected_dtype(
                    f"FixedLenFeature, VarLenFeature or another one for {key!r}", repr(feature)
                )

    def _add_sparse(self, key: str, dtype: Any) -> None:
        found = _checked(key, dtype)
        if self.sparse.setdefault(key, found) is not found:
            raise expected(f"one dtype for feature {key!r}", self.sparse[key], found)

    def facts(self) -> dict[str, Any]:
        """The attributes that the ops share."""
        if both := sorted(set(self.sparse) & set(self.dense)):
            raise expected("each feature as a dense or as a sparse one", f"both for {both[0]!r}")
        return {
            "sparse": tuple(self.sparse),
            "sparse_types": tuple(self.sparse.values()),
            "dense": tuple(self.dense),
            "dense_types": tuple([as_dtype(f.dtype) for f in self.dense.values()]),
            "dense_shapes": tuple([_shape(k, f.shape) for k, f in self.dense.items()]),
        }

    def results(self, outputs: tuple[Tensor, ...]) -> dict[str, Any]:
        """The op's outputs by the names of the features, without those behind the dense ones."""
        n = len(self.sparse)
        found: dict[str, Any] = {
            key: SparseTensor(outputs[i], outputs[n + i], outputs[2 * n + i])
            for i, key in enumerate(self.sparse)
        }
        found |= dict(zip(self.dense, outputs[3 * n :]))
        return {key: _result(found, key, feature) for key, feature in self.features.items()}


def _result(found: dict[str, Any], key: str, feature: Any) -> Any:
    if not isinstance(feature, SparseFeature):
        return found[key]
    is_one = isinstance(feature.index_key, str)
    ids = [found[k] for k in _listed(feature.index_key)]
    return sparse_merge(
        ids[0] if is_one else ids,
        found[feature.value_key],
        feature.size,
        already_sorted=feature.already_sorted,
    )


def _listed(index_key: Any) -> list[str]:
    return [index_key] if isinstance(index_key, str) else list(index_key)


def _checked(key: str, dtype: Any) -> DType:
    found = as_dtype(dtype)
    if found.name not in ("float32", "int64", "string"):
        raise expected_dtype(f"float32, int64 or string for feature {key!r}", found)
    return found


def _shape(key: str, shape: Any) -> tuple[int, ...]:
    dims = TensorShape(shape)
    if not dims.is_fully_defined():
        raise expected(f"a shape that is known for feature {key!r}", dims)
    return tuple([int(n or 0) for n in dims.as_list()])


def _default(key: str, feature: Any, dims: tuple[int, ...]) -> Tensor:
    """What stands for the values that an example lacks; nothing if it may not lack them."""
    dtype, value = as_dtype(feature.dtype), feature.default_value
    grows = isinstance(feature, FixedLenSequenceFeature)
    if value is None:
        filler = b"" if dtype is dtypes.string else 0
        return convert_to_tensor(filler if grows else np.empty(0, dtype.np_dtype), dtype)
    found = convert_to_tensor(value, dtype)
    size = 1 if grows else int(np.prod(dims, dtype=np.int64))
    have = found.get_shape().num_elements()
    if have is not None and have != size:
        raise expected(f"a default of {size} values for feature {key!r}", have)
    return found


def _parse(serialized: Any, features: Any, name: Any, names: Any, is_single: bool) -> Any:
    plan = _Plan(features)
    facts = plan.facts()
    dense = plan.dense.items()
    grows = tuple([isinstance(f, FixedLenSequenceFeature) for f in plan.dense.values()])
    for key, feature in dense:
        if isinstance(feature, FixedLenSequenceFeature) and not feature.allow_missing:
            raise expected(f"allow_missing=True for the sequence feature {key!r}", False)
    required = tuple([not g and f.default_value is None for g, (_, f) in zip(grows, dense)])
    op = ParseExample(is_single, **facts, variable=grows, required=required)
    defaults = [_default(k, f, d) for (k, f), d in zip(dense, facts["dense_shapes"])]
    given = as_strings(serialized)
    return plan.results(apply_many(op, given, _names(names), *defaults, name=name))


def _names(names: Any) -> Tensor:
    return as_strings(np.empty(0, object) if names is None else names)


def parse_example(
    serialized: Any, features: Any, name: str | None = None, example_names: Any = None
) -> dict[str, Any]:
    """The features of a batch of serialized examples.

    Args:
        serialized: Serialized `fs.train.Example`s, a vector [n].
        features: What is read, by name: `FixedLenFeature`, `VarLenFeature`, `SparseFeature`, or
            `FixedLenSequenceFeature` with `allow_missing`.
        name: Name of the operation.
        example_names: What errors call the examples, a vector [n].

    Returns:
        By name, a tensor [n] + shape for a `FixedLenFeature`, [n, longest] + shape for a
        `FixedLenSequenceFeature`, and a sparse tensor of shape [n, longest] for a `VarLenFeature`.

    Raises:
        InvalidArgumentError: when it runs, if bytes are no example, an example lacks a feature that
            has no default, or has values of another dtype or number.
    """
    return _parse(serialized, features, name, example_names, False)  # type: ignore[no-any-return]


def parse_single_example(
    serialized: Any, features: Any, name: str | None = None, example_names: Any = None
) -> dict[str, Any]:
    """The features of one serialized example; as `parse_example`, but without the first axis.

    Args:
        serialized: A serialized `fs.train.Example`, a scalar.
        features: What is read, by name.
        name: Name of the operation.
        example_names: What errors call the example, a scalar.
    """
    name = name or "ParseSingleExample"
    return _parse(serialized, features, name, example_names, True)  # type: ignore[no-any-return]


def _parse_sequences(
    serialized: Any, context: Any, sequence: Any, names: Any, name: str | None, is_single: bool
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    if not context and not sequence:
        raise expected("context_features, sequence_features or both", "none of them")
    given, found = as_strings(serialized), {}
    if context:
        found = _parse(given, context, f"{name}/context", names, is_single)
    if not sequence:
        return found, {}, {}
    for key, feature in sequence.items():
        if not isinstance(feature, VarLenFeature | FixedLenSequenceFeature):
            what = f"VarLenFeature or FixedLenSequenceFeature for {key!r}"
            raise expected_dtype(what, repr(feature))
        default = getattr(feature, "default_value", None)
        if default is not None:
            raise expected(f"no default_value for the list {key!r}", default)
    plan = _Plan(sequence)
    required = tuple([not f.allow_missing for f in plan.dense.values()])
    op = ParseFeatureLists(is_single, **plan.facts(), required=required)
    outputs = apply_many(op, given, _names(names), name=name)
    lengths = outputs[3 * len(plan.sparse) + len(plan.dense) :]
    return found, plan.results(outputs), dict(zip(plan.dense, lengths))


def parse_sequence_example(
    serialized: Any,
    context_features: Any = None,
    sequence_features: Any = None,
    example_names: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The features and the lists of features of a batch of serialized sequence examples.

    Args:
        serialized: Serialized `fs.train.SequenceExample`s, a vector [n].
        context_features: What is read of the context, by name; see `parse_example`.
        sequence_features: What is read of the lists, by name: `FixedLenSequenceFeature` or
            `VarLenFeature`.
        example_names: What errors call the examples, a vector [n].
        name: Name of the operation.

    Returns:
        Three dicts by name: the context's features; the lists, each a tensor [n, longest] + shape,
        padded with zeros or empty strings, or a sparse tensor of rank 3; of the former the numbers
        of steps, int64 [n].

    Raises:
        InvalidArgumentError: when it runs, as for `parse_example`, or if a step has not the values
            that its shape says.
    """
    name = name or "ParseSequenceExample"
    return _parse_sequences(
        serialized, context_features, sequence_features, example_names, name, False
    )


def parse_single_sequence_example(
    serialized: Any,
    context_features: Any = None,
    sequence_features: Any = None,
    example_name: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The features and the lists of features of one serialized sequence example.

    Args:
        serialized: A serialized `fs.train.SequenceExample`, a scalar.
        context_features: What is read of the context, by name; see `parse_example`.
        sequence_features: What is read of the lists, by name; see `parse_sequence_example`.
        example_name: What errors call the example, a scalar.
        name: Name of the operation.

    Returns:
        Two dicts by name: the context's features; the lists, each a tensor [steps] + shape or a
        sparse tensor of shape [steps, longest].
    """
    name = name or "ParseSingleSequenceExample"
    found = _parse_sequences(
        serialized, context_features, sequence_features, example_name, name, True
    )
    return found[0], found[1]
