"""Summaries: values with tags, as bytes that `fs.summary.FileWriter` writes for TensorBoard.

Each op yields a serialized `fs.Summary`. All of it runs on the CPU.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.default import get_default_graph
from flowscope.graph.messages.event_messages import Summary, SummaryMetadata
from flowscope.graph.messages.protobuf import fields
from flowscope.graph.messages.tensor_proto import TensorProto
from flowscope.graph.op import Array, ArrayModule, Op, Spec, frozen
from flowscope.graph.operation import Tensor
from flowscope.graph.scopes import name_scope
from flowscope.graph.values import dtypes
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.graph.values.shapes import TensorShape
from flowscope.graph.values.string_values import boxed
from flowscope.ops.core.build import apply
from flowscope.ops.core.shape_rules import check_kind, check_rank
from flowscope.ops.host.summary_values import histogram as histogram_of, pixels, png
from flowscope.ops.state.graph_keys import GraphKeys
from flowscope.ops.strings.string_op import check_string

__all__ = ["histogram", "image", "merge", "merge_all", "scalar", "tensor_summary", "text"]

_STRING = Spec(dtypes.string, ())
_CHANNELS = (1, 3, 4)


class SummaryOp(Op, abstract=True, devices=("CPU",), is_differentiable=False):
    """Base of ops that yield a serialized summary."""


def _summary(*values: Summary.Value) -> bytes:
    return Summary(value=values).SerializeToString()


@frozen
class ScalarSummary(SummaryOp):
    """A number with a tag, as a serialized summary.

    Shapes: [] -> []
    """

    tag: str

    def infer(self, x: Spec) -> Spec:
        check_kind(x.dtype, "iuf")
        check_rank(x, 0, "a scalar")
        return _STRING

    def kernel(self, xp: ArrayModule, x: Array) -> bytes:
        if np.ndim(x):
            raise expected("a scalar", np.shape(x))
        with np.errstate(over="ignore"):
            return _summary(Summary.Value(tag=self.tag, simple_value=float(np.float32(x))))


@frozen
class HistogramSummary(SummaryOp):
    """How numbers are distributed, as a serialized summary.

    Raises: InvalidArgumentError if one is NaN or infinite.
    """

    tag: str

    def infer(self, x: Spec) -> Spec:
        check_kind(x.dtype, "iuf")
        return _STRING

    def kernel(self, xp: ArrayModule, x: Array) -> bytes:
        return _summary(Summary.Value(tag=self.tag, histo=histogram_of(x, self.tag)))


@frozen
class ImageSummary(SummaryOp):
    """The first images of a batch, as a serialized summary with PNG files.

    Shapes: [batch, height, width, channels] of 1, 3 or 4 channels -> []
    """

    tag: str
    max_outputs: int

    def infer(self, x: Spec) -> Spec:
        if x.dtype.name not in ("uint8", "float16", "float32", "float64"):
            raise expected_dtype("images of uint8, float16, float32 or float64", x.dtype)
        check_rank(x, 4, "images [batch, height, width, channels]")
        if x.shape is not None and x.shape[3] not in (None, *_CHANNELS):
            raise expected("1, 3 or 4 channels", x.shape)
        return _STRING

    def kernel(self, xp: ArrayModule, x: Array) -> bytes:
        if x.ndim != 4 or x.shape[3] not in _CHANNELS:
            raise expected("images [batch, height, width, channels] of 1, 3 or 4 channels", x.shape)
        if 0 in x.shape[1:]:
            raise expected("images with pixels", x.shape)
        images = [pixels(picture) for picture in x[: self.max_outputs]]
        return _summary(*[self._value(i, image) for i, image in enumerate(images)])

    def _value(self, i: int, image: Array) -> Summary.Value:
        height, width, channels = image.shape
        return Summary.Value(
            tag=f"{self.tag}/image" + (f"/{i}" if self.max_outputs > 1 else ""),
            image=Summary.Image(
                height=height,
                width=width,
                colorspace=channels,
                encoded_image_string=png(image),
            ),
        )


@frozen
class TensorSummaryV2(SummaryOp):
    """A tensor as it is, as a serialized summary. `metadata` is a serialized SummaryMetadata."""

    tag: str
    metadata: bytes

    def infer(self, x: Spec) -> Spec:
        if x.dtype in (dtypes.resource, dtypes.variant):
            raise expected_dtype("numbers, bools or strings", x.dtype)
        return _STRING

    def kernel(self, xp: ArrayModule, x: Array) -> bytes:
        x = np.asarray(boxed(x))
        proto = TensorProto(
            dtype=dtypes.as_dtype(x.dtype).as_datatype_enum,
            tensor_shape=TensorShape(x.shape).as_proto(),
        )
        if x.dtype.kind == "O":
            proto.string_val = x.reshape(-1).tolist()
        else:
            proto.tensor_content = x.tobytes()
        metadata = SummaryMetadata.FromString(self.metadata)
        return _summary(Summary.Value(tag=self.tag, tensor=proto, metadata=metadata))


@frozen
class MergeSummary(SummaryOp):
    """One serialized summary with the values of several.

    Raises: InvalidArgumentError if two values have one tag, or an input is no summary.
    """

    def infer(self, *xs: Spec) -> Spec:
        for x in xs:
            check_string(x)
        return _STRING

    def kernel(self, xp: ArrayModule, *xs: Array) -> bytes:
        parts = [part for x in xs for part in np.asarray(boxed(x)).reshape(-1).tolist()]
        seen: set[str] = set()
        for tag in (t for part in parts for t in _tags(part)):
            if tag in seen:
                raise expected("a tag for each value", f"the tag {tag!r} twice")
            seen.add(tag)
        return b"".join(parts)


def _tags(summary: bytes) -> list[str]:
    """Returns the tags in a serialized summary; the values themselves are passed over."""
    values = [value for number, _, value in fields(summary) if number == 1]
    return [tag.decode() for v in values for number, _, tag in fields(v) if number == 1]


def _cleaned(name: str) -> str:
    """Returns a name with "_" for what names of operations cannot have."""
    return re.sub(r"[^-/\w.]", "_", name, flags=re.ASCII).lstrip("/")


def _add(
    make: Callable[[str], Op],
    name: str,
    tensor: Tensor,
    collections: Any,
    family: str | None = None,
) -> Tensor:
    """Adds the op that `make` returns for a tag, and the result to collections.

    The tag is the operation's name, with the family in front.
    """
    label = _cleaned(name)
    if not label:
        raise InvalidArgumentError(f"expected a name for the summary, got {name!r}")
    if family is not None:
        family = _cleaned(family)
        label = f"{family}/{label}"
    with name_scope(label, values=[tensor]) as scope:
        tag = scope.rstrip("/")
        out = apply(make(tag if family is None else f"{family}/{tag}"), tensor, name=scope)
    _collect(out, [GraphKeys.SUMMARIES] if collections is None else collections)
    return out


def _collect(out: Tensor, collections: Iterable[str]) -> None:
    for key in [collections] if isinstance(collections, str) else collections:
        out.graph.add_to_collection(key, out)


def scalar(name: str, tensor: Any, collections: Any = None, family: str | None = None) -> Tensor:
    """Returns a serialized summary of one number.

    Args:
        name: Name of the operation, and with the name scopes in front the tag.
        tensor: A real number, a tensor of rank 0.
        collections: Names of the collections that get the summary; by default that of `merge_all`.
        family: A text in front of name and tag, by which TensorBoard groups.

    Raises:
        DTypeError: if it is not a real number.
        InvalidArgumentError: if it is not a scalar.

    Example:
        >>> summary = fs.summary.scalar("loss", 0.5)
        >>> fs.Summary.FromString(fs.Session().run(summary)).value[0].simple_value
        0.5
    """
    return _add(ScalarSummary, name, convert_to_tensor(tensor), collections, family)


def histogram(name: str, values: Any, collections: Any = None, family: str | None = None) -> Tensor:
    """Returns a serialized summary of how numbers are distributed.

    Args:
        name: Name of the operation, and with the name scopes in front the tag.
        values: Real numbers, of any shape.
        collections: Names of the collections that get the summary; by default that of `merge_all`.
        family: A text in front of name and tag, by which TensorBoard groups.

    Raises:
        DTypeError: if they are not real numbers.
        InvalidArgumentError: when it runs, if one is NaN or infinite.
    """
    return _add(HistogramSummary, name, convert_to_tensor(values), collections, family)


def image(
    name: str,
    tensor: Any,
    max_outputs: int = 3,
    collections: Any = None,
    family: str | None = None,
) -> Tensor:
    """Returns a serialized summary of the first images of a batch.

    Floating-point images are scaled one by one: the largest becomes 255; where there are negative
    numbers 0 becomes 128 and what is farthest from it lies at an end. Pixels that are not finite
    are red.

    Args:
        name: Name of the operation. The tags are "<name>/image/0" and so on, or "<name>/image".
        tensor: Images [batch, height, width, channels] of uint8, float16, float32 or float64, with
            1 (grey), 3 (RGB) or 4 (RGBA) channels.
        max_outputs: How many images at most.
        collections: Names of the collections that get the summary; by default that of `merge_all`.
        family: A text in front of name and tags, by which TensorBoard groups.

    Raises:
        DTypeError: if they are of another dtype.
        InvalidArgumentError: if the shape is another one, or `max_outputs` is below 1.
    """
    if max_outputs < 1:
        raise expected("max_outputs of at least 1", max_outputs)
    images = convert_to_tensor(tensor)
    return _add(lambda tag: ImageSummary(tag, int(max_outputs)), name, images, collections, family)


def text(name: str, tensor: Any, collections: Any = None) -> Tensor:
    """Returns a serialized summary of texts, in Markdown; TensorBoard shows a matrix as a table.

    Args:
        name: Name of the operation, and with the name scopes in front the tag.
        tensor: Strings of any shape.
        collections: Names of the collections that get the summary; by default that of `merge_all`.

    Raises:
        DTypeError: if they are not strings.
    """
    strings = convert_to_tensor(tensor)
    if strings.dtype is not dtypes.string:
        raise expected_dtype("strings", strings.dtype)
    plugin = SummaryMetadata.PluginData(plugin_name="text")
    return tensor_summary(name, strings, None, collections, SummaryMetadata(plugin_data=plugin))


def tensor_summary(
    name: str,
    tensor: Any,
    summary_description: str | None = None,
    collections: Any = None,
    summary_metadata: SummaryMetadata | None = None,
    family: str | None = None,
    display_name: str | None = None,
) -> Tensor:
    """Returns a serialized summary of a tensor as it is.

    Args:
        name: Name of the operation, and with the name scopes in front the tag.
        tensor: Numbers, bools or strings of any shape.
        summary_description: What it is, in Markdown.
        collections: Names of the collections that get the summary; by default that of `merge_all`.
        summary_metadata: Which of TensorBoard's plugins shows it.
        family: A text in front of name and tag, by which TensorBoard groups.
        display_name: A name that TensorBoard shows in the tag's place.

    Raises:
        DTypeError: if it is a handle.
    """
    metadata = SummaryMetadata()
    if summary_metadata is not None:
        metadata.CopyFrom(summary_metadata)
    if display_name is not None:
        metadata.display_name = display_name
    if summary_description is not None:
        metadata.summary_description = summary_description
    written, values = metadata.SerializeToString(), convert_to_tensor(tensor)
    return _add(lambda tag: TensorSummaryV2(tag, written), name, values, collections, family)


def merge(inputs: Any, collections: Any = None, name: str | None = None) -> Tensor:
    """Returns a serialized summary with the values of several.

    Args:
        inputs: Serialized summaries: strings of any shape.
        collections: Names of the collections that get the result; none by default.
        name: Name scope of the operation.

    Raises:
        DTypeError: if they are not strings.
        InvalidArgumentError: if there is none; when it runs, if two values have one tag.
    """
    tensors = [convert_to_tensor(summary) for summary in inputs]
    if not tensors:
        raise InvalidArgumentError("expected at least one summary to merge, got none")
    label = _cleaned(name) if name else None
    with name_scope(label, "Merge", tensors):
        out = apply(MergeSummary(), *tensors, name=label or "MergeSummary")
    _collect(out, collections or [])
    return out


def merge_all(
    key: str = GraphKeys.SUMMARIES, scope: str | None = None, name: str | None = None
) -> Tensor | None:
    """Returns a serialized summary with the values of all summaries of the default graph.

    Args:
        key: Name of the collection that they are in.
        scope: A regular expression: takes those whose names begin with it.
        name: Name scope of the operation.

    Returns:
        The summary, or None if there is nothing to merge.

    Example:
        >>> _, _ = fs.summary.scalar("a", 1.0), fs.summary.scalar("b", 2.0)
        >>> len(fs.Summary.FromString(fs.Session().run(fs.summary.merge_all())).value)
        2
    """
    found = get_default_graph().get_collection(key, scope)
    return merge(found, name=name) if found else None
