"""Whether a `GraphDef` is sound, before anything is made of it.

Names are unique, inputs exist, nothing waits for itself, op types and their attributes are known,
and dtypes and shapes come out as they are written: they are inferred again.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import heapq
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from flowscope.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError, OpError
from flowscope.graph.lazy import frozen, mutable
from flowscope.graph.op import Op, Spec, find_op_class
from flowscope.graph.operation import Tensor
from flowscope.graph.serialization.definition import (
    FunctionDef,
    FunctionName,
    GraphDef,
    NodeDef,
    callees,
    callees_first,
    split_input,
)
from flowscope.graph.serialization.values import dtype_of, field_types, fits, read_dims
from flowscope.graph.values.shapes import compatible

#: How deep functions, branches and loops of a GraphDef may be nested.
MAX_CALL_DEPTH = 128
#: How many operations a function may have with those of the functions that it calls.
MAX_INLINED = 1 << 20

#: An output by node and index, or a tensor that takes its place.
Source = tuple[int, int] | Tensor


@mutable
class Checked:
    """A node that is sound.

    Attributes:
        node: The node.
        position: Its place in the GraphDef.
        definition: The op with its attributes.
        inputs: Where its inputs come from.
        control: Positions of the nodes that must finish first.
        specs: What is known of its outputs.
        later: Inputs that a loop made by hand hands to its next iteration, by their places: of
            operations that come after. Another input stands there until they are made.
    """

    node: NodeDef
    position: int
    definition: Op
    inputs: list[Source]
    control: list[int]
    specs: tuple[Spec, ...] = ()
    later: dict[int, tuple[int, int]] = dataclasses.field(default_factory=dict)


@mutable
class CheckedBody:
    """A function that is sound.

    Attributes:
        function: The function.
        nodes: Its operations.
    """

    function: FunctionDef
    nodes: list[Checked]

    def find(self, name: str) -> Any:
        """The object with a `spec` for a tensor; raises InvalidArgumentError if none has one."""
        op, output = split_input(name)
        for at in self.nodes:
            if at.node.name == op and 0 <= output < len(at.specs):
                return Known(at.specs[output])
        raise InvalidArgumentError(f"the function {self.function.name!r} has no tensor {name!r}")


@frozen
class Known:
    """What is known of a tensor of a function."""

    spec: Spec


@frozen
class Signature:
    """What a call has to know of a function, before there is one."""

    name: str
    parameters: list[Known]
    outputs: list[Known]
    writes_state: bool


@mutable
class Sound:
    """A GraphDef that is sound: functions, each behind those that it calls, and operations."""

    functions: list[CheckedBody]
    nodes: list[Checked]


def check(graph_def: GraphDef, mapped: Mapping[str, Tensor]) -> Sound:
    """Returns functions and nodes in an order in which they can be made: as written if possible.

    Args:
        graph_def: The graph.
        mapped: Tensors that take the place of outputs, by "name:index".

    Raises:
        NotFoundError: if an op type is not known.
        InvalidArgumentError: if anything else is wrong.
    """
    _index(graph_def.all_nodes())
    signatures: dict[str, Signature] = {}
    bodies = []
    _refuse_twins(graph_def.functions)
    ordered = callees_first(graph_def.functions)
    _check_calls(ordered)
    for function in ordered:
        body = CheckedBody(function, _check_nodes(function.node, {}, signatures))
        signatures[function.name] = _signature(body)
        bodies.append(body)
    nodes = _check_nodes(graph_def.node, mapped, signatures)
    _check_captures(bodies, nodes, mapped)
    return Sound(bodies, nodes)


def _refuse_twins(functions: Sequence[FunctionDef]) -> None:
    counts = collections.Counter(f.name for f in functions)
    twins = sorted(n for n, count in counts.items() if count > 1)
    if twins:
        raise AlreadyExistsError(f"there are two functions named {twins[0]!r}")


def _check_calls(ordered: Sequence[FunctionDef]) -> None:
    """Raises InvalidArgumentError for calls that a plan could not put in place.

    Args:
        ordered: Functions, each behind those that it calls.
    """
    depths: dict[str, int] = {}
    sizes: dict[str, int] = {}
    for f in ordered:
        depths[f.name] = 1 + max([depths.get(c, 0) for c in f.callees], default=0)
        sizes[f.name] = len(f.node) + sum(sizes.get(c, 0) for c in f.callees)
        if depths[f.name] > MAX_CALL_DEPTH or sizes[f.name] > MAX_INLINED:
            raise InvalidArgumentError(
                f"expected functions that call each other at most {MAX_CALL_DEPTH} deep and have "
                f"at most {MAX_INLINED} operations with those that they call, got "
                f"{depths[f.name]} and {sizes[f.name]} for {f.name!r}"
            )


def _check_captures(
    bodies: Sequence[CheckedBody], nodes: Sequence[Checked], mapped: Mapping[str, Tensor]
) -> None:
    """Raises InvalidArgumentError unless what functions capture exists."""
    everything = [*nodes, *[at for body in bodies for at in body.nodes]]
    counts = {at.node.name: len(at.specs) for at in everything}
    for body in bodies:
        for name in body.function.captures:
            op, output = split_input(name)
            if f"{op}:{output}" not in mapped and not 0 <= output < counts.get(op, 0):
                raise InvalidArgumentError(
                    f"{body.function.name!r} captures {name!r}, which does not exist"
                )


def _signature(body: CheckedBody) -> Signature:
    function = body.function
    if len(function.captures) > len(function.parameters):
        raise InvalidArgumentError(f"{function.name!r} captures more than it has parameters")
    return Signature(
        function.name,
        [body.find(n.name) for n in function.parameters],
        [body.find(n) for n in (*function.results, *function.kept)],
        any(at.definition.writes_state for at in body.nodes),
    )


def _check_nodes(
    nodes: Sequence[NodeDef], mapped: Mapping[str, Tensor], signatures: Mapping[str, Signature]
) -> list[Checked]:
    index = _index(nodes)
    definitions = _definitions(nodes, signatures)
    found = []
    for i, (node, definition) in enumerate(zip(nodes, definitions, strict=True)):
        inputs = [_source(node, text, index, mapped) for text in node.data_inputs]
        control = [_position(node, name, index) for name in node.control_inputs]
        later = _later(node, inputs, nodes)
        found.append(Checked(node, i, definition, inputs, control, later=later))
    order = _order([[s[0] for s in c.inputs if isinstance(s, tuple)] for c in found])
    _refuse_cycles(found)
    _infer(found, order)
    return [found[i] for i in order]


def _error(kind: type[OpError], node: NodeDef, message: str) -> OpError:
    origin = None if node.line is None else f"line {node.line} of the text"
    return kind(message).located(op=node.name, op_type=node.op, origin=origin)


# -- names and references -------------------------------------------------------------------------


def _index(nodes: Sequence[NodeDef]) -> dict[str, int]:
    index: dict[str, int] = {}
    for i, node in enumerate(nodes):
        if not node.name or node.name.startswith("^") or node.name.endswith("/"):
            raise _error(InvalidArgumentError, node, f"{node.name!r} cannot name an operation")
        if index.setdefault(node.name, i) != i:
            raise _error(AlreadyExistsError, node, "there are two operations of this name")
    return index


def _position(node: NodeDef, name: str, index: dict[str, int]) -> int:
    if name in index:
        return index[name]
    raise _error(InvalidArgumentError, node, f"no operation is named {name!r} in the graph to read")


def _source(
    node: NodeDef, text: str, index: dict[str, int], mapped: Mapping[str, Tensor]
) -> Source:
    name, output = split_input(text)
    tensor = mapped.get(f"{name}:{output}")
    return (_position(node, name, index), output) if tensor is None else tensor


def _later(
    node: NodeDef, inputs: list[Source], nodes: Sequence[NodeDef]
) -> dict[int, tuple[int, int]]:
    """Takes out of a Merge's inputs what comes from its loop's iteration before; returns it."""
    if node.op != "Merge":
        return {}
    later = {
        i: s
        for i, s in enumerate(inputs)
        if isinstance(s, tuple) and nodes[s[0]].op == "NextIteration"
    }
    stands = next((s for i, s in enumerate(inputs) if i not in later), None)
    if stands is None:
        return {}
    inputs[:] = [stands if i in later else s for i, s in enumerate(inputs)]
    return later


def _order(needs: list[list[int]]) -> list[int]:
    """Returns the positions so that each stands behind those it needs; the rest at the end."""
    if all(all(n < i for n in needed) for i, needed in enumerate(needs)):
        return list(range(len(needs)))
    waiting = [len(set(needed)) for needed in needs]
    users: list[list[int]] = [[] for _ in needs]
    for i, needed in enumerate(needs):
        for n in set(needed):
            users[n].append(i)
    ready = [i for i, count in enumerate(waiting) if not count]
    order = []
    while ready:
        i = heapq.heappop(ready)
        order.append(i)
        for user in users[i]:
            waiting[user] -= 1
            if not waiting[user]:
                heapq.heappush(ready, user)
    return order


def _refuse_cycles(nodes: list[Checked]) -> None:
    needs = [[*[s[0] for s in c.inputs if isinstance(s, tuple)], *c.control] for c in nodes]
    left = set(range(len(nodes))) - set(_order(needs))
    if left:
        names = ", ".join(repr(nodes[i].node.name) for i in sorted(left)[:5])
        raise InvalidArgumentError(f"operations wait for themselves: {names} and what needs them")


# -- op types and attributes ----------------------------------------------------------------------


def _definitions(nodes: Sequence[NodeDef], signatures: Mapping[str, Signature]) -> list[Op]:
    found = {name: find_op_class(name) for name in {n.op for n in nodes}}
    known = {name: op for name, op in found.items() if op is not None}
    missing = sorted(found.keys() - known.keys())
    if missing:
        raise NotFoundError(
            f"no op types are named {', '.join(missing)}: import the modules that define them"
        )
    return [_definition(n, known[n.op], signatures) for n in nodes]


def _definition(node: NodeDef, op: Any, signatures: Mapping[str, Signature]) -> Op:
    _check_attributes(node, _fields(op), field_types(op))
    missing = [n for n in callees([node]) if n not in signatures]
    if missing:
        message = f"the function {missing[0]!r} does not exist, or calls itself"
        raise _error(InvalidArgumentError, node, message)
    try:
        made: Op = op(**attributes_with(node, signatures))
        return made
    except Exception as e:  # a user's op may refuse its attributes in any way
        raise _error(InvalidArgumentError, node, f"the attributes do not fit: {e}") from e


def _check_attributes(node: NodeDef, fields: dict[str, bool], types: dict[str, Any]) -> None:
    unknown = sorted(n for n in node.attr if n not in fields)
    if unknown:
        known = ", ".join(fields) or "none"
        message = f"there are no attributes {', '.join(unknown)}; known: {known}"
        raise _error(InvalidArgumentError, node, message)
    missing = [n for n, is_needed in fields.items() if is_needed and n not in node.attr]
    if missing:
        raise _error(InvalidArgumentError, node, f"attributes are missing: {', '.join(missing)}")
    for name, value in node.attr.items():
        if name in types and not fits(value, types[name]):
            kind = getattr(types[name], "__name__", types[name])
            message = f"expected the attribute {name!r} to be {kind}, got {value!r}"
            raise _error(InvalidArgumentError, node, message)


def attributes_with(node: NodeDef, functions: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a node's attributes, with functions in the place of their names."""
    return {
        k: functions[v.name] if isinstance(v, FunctionName) else v for k, v in node.attr.items()
    }


@functools.cache
def _fields(op: Any) -> dict[str, bool]:
    """Returns an op type's attributes, and whether each must be given."""
    missing = dataclasses.MISSING
    return {
        f.name: f.default is missing and f.default_factory is missing
        for f in dataclasses.fields(op)
        if f.init
    }


# -- dtypes and shapes ----------------------------------------------------------------------------


def _infer(nodes: list[Checked], order: list[int]) -> None:
    changed: set[int] = set()
    for i in order:
        at = nodes[i]
        specs = [_spec(at.node, source, nodes) for source in at.inputs]
        if any(isinstance(s, Tensor) or s[0] in changed for s in at.inputs):
            changed.add(i)
        at.specs = tuple(_written(at, _inferred(at, specs), i in changed))
    for at in nodes:
        for place, source in at.later.items():
            spec, entered = _spec(at.node, source, nodes), _spec(at.node, at.inputs[place], nodes)
            if spec.dtype is not entered.dtype or not compatible(spec.shape, entered.shape):
                message = f"the loop begins with {entered}, its next iteration gets {spec}"
                raise _error(InvalidArgumentError, at.node, message)


def _spec(node: NodeDef, source: Source, nodes: list[Checked]) -> Spec:
    if isinstance(source, Tensor):
        return source.spec
    position, output = source
    made = nodes[position]
    if 0 <= output < len(made.specs):
        return made.specs[output]
    raise _error(
        InvalidArgumentError,
        node,
        f'"{made.node.name}" has {len(made.specs)} outputs, there is no '
        f'"{made.node.name}:{output}"',
    )


def _inferred(at: Checked, specs: list[Spec]) -> tuple[Spec, ...]:
    try:
        found: Any = at.definition.infer(*specs)
    except OpError as e:
        error = _error(type(e), at.node, e.message)
    except Exception as e:  # rules are written for what op functions pass, not for any file
        error = _error(InvalidArgumentError, at.node, f"the inputs do not fit the op: {e}")
    else:
        return found if type(found) is tuple else (found,)
    lines = [f'input {i}: {s}   from "{n}"' for i, (s, n) in enumerate(_named(at, specs))]
    raise error.located(inputs=lines)


def _named(at: Checked, specs: list[Spec]) -> Iterator[tuple[Spec, str]]:
    return zip(specs, at.node.data_inputs, strict=True)


def _written(at: Checked, specs: tuple[Spec, ...], is_changed: bool) -> Iterator[Spec]:
    """Yields the outputs' Specs, with the shapes that are written where they still hold."""
    written = at.node.outputs
    if written is not None and callees([at.node]):
        specs = specs[: len(written)]  # gradients add outputs to functions after they were called
    if written is not None and len(written) != len(specs):
        raise _error(
            InvalidArgumentError,
            at.node,
            f"expected {len(specs)} outputs, got {len(written)} in what is written",
        )
    for i, spec in enumerate(specs):
        _check_shape(at.node, spec)
        _check_constant(at.node, spec)
        if written is None:
            yield spec
            continue
        dtype, shape = written[i]
        if dtype is not spec.dtype or not (is_changed or compatible(shape, spec.shape)):
            raise _error(
                InvalidArgumentError,
                at.node,
                f"expected output {i} to be {spec}, by the op's rule, and {Spec(dtype, shape)} "
                "is written",
            )
        shown = spec.shape if is_changed else shape
        yield Spec(dtype, shown, spec.constant, spec.dims, spec.variable)


def _check_shape(node: NodeDef, spec: Spec) -> None:
    """Raises for what no array can have: rules take sizes from attributes as they are."""
    if spec.shape is None:
        return
    try:
        read_dims(list(spec.shape))
    except InvalidArgumentError as e:
        raise _error(InvalidArgumentError, node, f"{e.message} as a shape") from None


def _check_constant(node: NodeDef, spec: Spec) -> None:
    value = spec.constant
    if value is None:
        return
    if not isinstance(value, np.ndarray | np.generic | bytes):
        raise _error(InvalidArgumentError, node, f"expected a value of {spec}, got {value!r}")
    dtype = dtype_of(value)
    is_held = spec.dtype.is_quantized and spec.dtype.np_dtype == dtype.np_dtype
    if (dtype is not spec.dtype and not is_held) or not compatible(np.shape(value), spec.shape):
        raise _error(InvalidArgumentError, node, f"expected a value of {spec}, got {dtype}")
