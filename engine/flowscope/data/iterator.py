"""`fs.data.Iterator`: what steps take the elements of datasets from.

    iterator = dataset.make_initializable_iterator()
    images, labels = iterator.get_next()
    session.run(iterator.initializer)

It is a resource, as a queue is: it lives in a session's container, on the device or worker where it
is placed. A step that is stopped or out of time gives back what it took, and a step that waits for
an element which a thread computes ahead holds no thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from flowscope.control.blocks import Function, free_name, settled
from flowscope.control.tracing import building
from flowscope.data.structure import Structure
from flowscope.errors import InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.default import get_default_graph
from flowscope.graph.op import Op
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values.dtypes import string
from flowscope.graph.values.expected import expected_dtype
from flowscope.ops.core.build import apply, apply_none
from flowscope.ops.core.flow import Placeholder
from flowscope.ops.state import iterator_ops as ops

if TYPE_CHECKING:
    from flowscope.data.dataset import Dataset


class Iterator:
    """A position in a dataset, from which steps take elements; see `Dataset` for how to make one.

    Attributes:
        initializer: The operation that begins with its dataset.
        output_types: Dtypes, in the structure of elements.
        output_shapes: Static shapes, in the same structure.
        output_classes: `fs.Tensor` or `fs.SparseTensor`, in the same structure.
    """

    def __init__(
        self,
        iterator_resource: Tensor,
        structure: Structure,
        initializer: Operation | None = None,
        factory: Function | None = None,
        string_handle: Tensor | None = None,
        device: str = "",
    ) -> None:
        self._iterator_resource = iterator_resource
        self._structure = structure
        self._initializer = initializer
        self._factory = factory
        self._string_handle = string_handle
        self._device = device

    @staticmethod
    def from_structure(
        output_types: Any,
        output_shapes: Any = None,
        shared_name: str | None = None,
        output_classes: Any = None,
    ) -> Iterator:
        """Returns an iterator without a dataset: `make_initializer` gives it one, or another one.

        Args:
            output_types: Dtypes, in the structure of elements.
            output_shapes: Shapes, in the same structure; None: nothing is known.
            shared_name: Name in its container; the operation's by default.
            output_classes: `fs.Tensor` or `fs.SparseTensor`, in the same structure; None: tensors.
        """
        structure = Structure.of(output_types, output_shapes, output_classes)
        handle = _handle(ops.IteratorHandle, structure, shared_name, "Iterator")
        return Iterator(handle, structure)

    @staticmethod
    def from_string_handle(
        string_handle: Any,
        output_types: Any,
        output_shapes: Any = None,
        output_classes: Any = None,
    ) -> Iterator:
        """Returns an iterator that stands for the one that a string names, in each step anew.

        Args:
            string_handle: A string scalar, such as a placeholder: what `string_handle()` of an
                iterator gave in the same session, which lives on the same device.
            output_types: Dtypes, in the structure of elements.
            output_shapes: Shapes, in the same structure; None: nothing is known.
            output_classes: `fs.Tensor` or `fs.SparseTensor`, in the same structure; None: tensors.
        """
        structure = Structure.of(output_types, output_shapes, output_classes)
        name = convert_to_tensor(string_handle, string, name="string_handle")
        handle = _handle(ops.FeedableIteratorHandle, structure, None, "IteratorFromStringHandle")
        return Iterator(handle, structure, string_handle=name)

    @property
    def initializer(self) -> Operation:
        """The operation that begins with the dataset, at its first element.

        Raises:
            InvalidArgumentError: if there is none: a one-shot iterator needs none, and others are
                begun with what `make_initializer` returns.
        """
        if self._initializer is None:
            raise InvalidArgumentError(
                "this iterator has no initializer: a one-shot iterator begins by itself, one of "
                "from_structure with what make_initializer(dataset) returns"
            )
        return self._initializer

    def make_initializer(self, dataset: Dataset, name: str | None = None) -> Operation:
        """Returns the operation that has it begin with a dataset.

        Args:
            dataset: The dataset.
            name: Name of the operation.

        Raises:
            DTypeError, InvalidArgumentError: if its elements are others than the iterator's.
        """
        if not hasattr(dataset, "_variant"):
            raise expected_dtype("an fs.data.Dataset", repr(dataset))
        if dataset._device:
            raise InvalidArgumentError(
                "a dataset that brings its elements to a device needs an iterator of its own, of "
                "make_one_shot_iterator or make_initializable_iterator"
            )
        self._structure.check_fits(dataset._structure, "the iterator's elements")
        op = ops.MakeIterator()
        return apply_none(op, self._iterator_resource, dataset._variant, name=name)

    def get_next(self, name: str | None = None) -> Any:
        """Returns the tensors of the next element, in the structure of elements.

        Call it once, and use the tensors in as many steps as you like: each takes one element.

        Args:
            name: Name of the operation.

        Raises:
            OutOfRangeError: when it runs, at the end.
            FailedPreconditionError: when it runs, if the iterator has no dataset yet.
        """
        structure = self._structure
        inputs = [self._iterator_resource]
        op: Op
        if self._string_handle is None:
            op = ops.IteratorGetNext(structure.dtypes, structure.dims, self._factory)
        else:
            op = ops.FeedableGetNext(structure.dtypes, structure.dims)
            inputs.append(self._string_handle)
        made = get_default_graph().add(op, tuple(inputs), name or "IteratorGetNext")
        return structure.packed(_on_target(made.outputs, self._device))

    def string_handle(self, name: str | None = None) -> Tensor:
        """Returns a string scalar that names the iterator, for `from_string_handle`.

        Args:
            name: Name of the operation.
        """
        if self._string_handle is not None:
            return self._string_handle
        op = ops.IteratorToStringHandle(self._factory)
        return apply(op, self._iterator_resource, name=name)

    @property
    def output_types(self) -> Any:
        """Dtypes, in the structure of elements."""
        return self._structure.types

    @property
    def output_shapes(self) -> Any:
        """Static shapes, in the structure of elements."""
        return self._structure.shapes

    @property
    def output_classes(self) -> Any:
        """`fs.Tensor` or `fs.SparseTensor`, in the structure of elements."""
        return self._structure.classes

    def __repr__(self) -> str:
        return f"<fs.data.Iterator '{self._iterator_resource.op.name}' of {self._structure}>"


def one_shot(dataset: Dataset) -> Iterator:
    """See `Dataset.make_one_shot_iterator`."""
    factory = _factory(dataset)
    target = {"target": dataset._device}
    handle = _handle(ops.IteratorHandle, dataset._structure, None, "OneShotIterator", **target)
    return Iterator(handle, dataset._structure, factory=factory, device=dataset._device)


def initializable(dataset: Dataset, shared_name: str | None) -> Iterator:
    """See `Dataset.make_initializable_iterator`."""
    structure = dataset._structure
    target = {"target": dataset._device}
    handle = _handle(ops.IteratorHandle, structure, shared_name, "Iterator", **target)
    made = apply_none(ops.MakeIterator(), handle, dataset._variant, name="MakeIterator")
    return Iterator(handle, structure, made, device=dataset._device)


def make_one_shot_iterator(dataset: Dataset) -> Iterator:
    """Returns `dataset.make_one_shot_iterator()`."""
    return dataset.make_one_shot_iterator()


def make_initializable_iterator(dataset: Dataset, shared_name: str | None = None) -> Iterator:
    """Returns `dataset.make_initializable_iterator(shared_name)`."""
    return dataset.make_initializable_iterator(shared_name)


def _on_target(components: Sequence[Tensor], device: str) -> list[Tensor]:
    """Returns components on a device; strings stay where they are."""
    if not device:
        return list(components)
    with get_default_graph().device(device):
        return [
            t if t.dtype.kind in "srv" else apply(ops.OnTarget(), t, name="OnTarget")
            for t in components
        ]


def _handle(
    kind: Any, structure: Structure, shared_name: str | None, name: str, **more: str
) -> Tensor:
    graph = get_default_graph()
    full = graph.unique_name(name)
    definition = kind(
        dtypes=structure.dtypes,
        shapes=structure.dims,
        container=graph.extras.get("container", ""),
        shared_name=shared_name or full,
        **more,
    )
    with graph.enter_block(graph.root):
        return graph.add(definition, (), full + "/").outputs[0]


def _factory(dataset: Dataset) -> Function:
    """Returns a function that makes a dataset: a copy of the operations that it follows from."""
    graph = get_default_graph()
    variant = dataset._variant
    needed = _ancestors(variant.op)
    body = Function(graph, free_name(graph, "dataset_factory"), graph.block)
    body.block.what = "the dataset of a one-shot iterator"
    copies: dict[Operation, Operation] = {}
    with building(body, body.name + "/"):
        for op in needed:
            inputs = tuple([copies[t.op].outputs[t.value_index] for t in op.inputs])
            waits = [copies[c] for c in op.control_inputs]
            with graph.control_dependencies(waits), graph.device(op.device or None):
                copies[op] = graph.add(op.definition, inputs, op.name.rpartition("/")[2])
        body.results = [copies[variant.op].outputs[variant.value_index]]
    (body,) = settled([body])
    return body


def _ancestors(op: Operation) -> list[Operation]:
    """Returns the operations that one follows from, itself the last, in program order.

    Raises:
        InvalidArgumentError: if there is one whose value another step has, or the user gives.
    """
    block = op.block
    found, stack = {op}, [op]
    while stack:
        one = stack.pop()
        is_outside = one.block is not block or one.definition.is_parameter
        if isinstance(one.definition, Placeholder) or one.definition.is_handle or is_outside:
            raise InvalidArgumentError(
                f'the dataset of a one-shot iterator uses "{one.name}" ({one.type}), whose value '
                "only a step knows: make_initializable_iterator makes an iterator that takes it "
                "when its initializer runs"
            )
        new = [x for x in (*[t.op for t in one.inputs], *one.control_inputs) if x not in found]
        found.update(new)
        stack += new
    return sorted(found, key=lambda one: one.order)


__all__ = [
    "Iterator",
    "initializable",
    "make_initializable_iterator",
    "make_one_shot_iterator",
    "one_shot",
]
