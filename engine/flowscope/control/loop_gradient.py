"""The gradient of a loop: a loop that runs as many times, backwards.

Its variables are the cotangents of the loop's variables, and a sum for each capture. Of a capture
of which slices are taken it keeps the slices' values and indices, as lists. What it reads
of the forward body's tensors the forward loop keeps, as a list per tensor that grows by one value
in each iteration; the backward loop takes them from its end. What the forward loop captures it
captures too.

A loop that is to recompute keeps its variables alone, and what cannot be had again: random numbers,
reads of variables. The rest of its body is copied into the backward one.

Lists that the forward loop takes elements of become lists that the backward loop keeps, and the
other way round. So the backward loop is a loop like any other, and has a gradient.
"""

from __future__ import annotations

from collections.abc import Callable

from flowscope.control.blocks import (
    GradientBody,
    Parameter,
    settled,
    zeros_of,
)
from flowscope.control.lists import list_spec, sum_of_lists
from flowscope.control.loop import Loop, loop_gradients
from flowscope.control.slices import from_lists, parts_of
from flowscope.control.specs import flows, outside, value_spec
from flowscope.control.trampoline import Work
from flowscope.graph.indexed_slices import IndexedSlices
from flowscope.graph.lazy import frozen
from flowscope.graph.operation import Operation, Tensor
from flowscope.ops.math.elementwise import add


@frozen
class _Ways:
    """Where cotangents flow: positions of variables, lists, captures among the parameters."""

    variables: list[int]
    lists: list[int]
    captures: list[int]
    #: Positions of kept tensors among the outputs of the body.
    kept: list[int]
    #: Where zeros flow.
    zeros: list[int]


def loop_gradient(
    op: Operation, given: dict[int, Tensor]
) -> Work[list[Tensor | IndexedSlices | None]]:
    """Adds the gradient of a Loop operation.

    Args:
        op: The operation.
        given: Cotangents by output.

    Returns:
        A cotangent per input, None where nothing flows.
    """
    loop: Loop = op.definition  # type: ignore[assignment]
    ways = _ways(loop, given)
    out: list[Tensor | IndexedSlices | None] = [None] * len(op.inputs)
    if not (ways.variables or ways.lists or ways.captures):
        return out
    body, sliced = yield from _body(loop, ways)
    summed = [k for k in ways.captures if k not in sliced]
    first_capture = loop.first + loop.carried + (len(loop.cond.captures) if loop.cond else 0)

    def outer(position: int) -> int:
        is_carried = position < loop.carried
        return loop.first + position if is_carried else first_capture + position - loop.carried

    starts = [_start(op, given, i) for i in ways.variables]
    zeros = [zeros_of(op.inputs[outer(k)]) for k in summed]
    taken = [given[1 + m] for m in ways.kept]
    read, captured = _read(op, loop, body, outer)
    (body,) = settled([body])
    backward = Loop(
        body,
        None,
        variables=len(starts) + len(zeros),
        lists=len(taken) + len(read),
        has_count=True,
        back_prop=True,
        parallel_iterations=loop.parallel_iterations,
        swap_memory=loop.swap_memory,
        recompute=loop.recompute,
    )
    count = op.outputs[loop.variables]
    inputs = (count, *starts, *zeros, *taken, *read, *captured)
    made = tuple(op.graph.add(backward, inputs, "while_grad").outputs)
    for i, g in zip((*ways.variables, *summed), made, strict=False):
        out[outer(i)] = g
    lists = iter(made[backward.variables + 1 :])
    for j in ways.lists:
        out[outer(j)] = next(lists)
    for k in sliced:
        out[outer(k)] = from_lists(next(lists), next(lists), op.inputs[outer(k)])
    for i in ways.zeros:
        out[outer(i)] = zeros_of(op.inputs[outer(i)])
    return out


def _ways(loop: Loop, given: dict[int, Tensor]) -> _Ways:
    """Returns where cotangents flow."""
    body, n = loop.body, loop.variables
    kept = [i - 1 for i in given if i > n]
    variables, reached = _closure(loop, {i for i in given if i < n}, kept)
    lists = [j for j in range(n, loop.carried) if body.parameters[j] in reached]
    places = range(loop.carried, len(body.parameters))
    captures = [k for k in places if body.parameters[k] in reached]
    # A variable that another one depends on, but not by way of derivatives, has a cotangent of
    # zeros, as in TensorFlow; so has what its next value is computed from.
    linked, _ = _closure(loop, variables, kept, lambda op: True)
    more, from_them = _closure(loop, linked - variables, [])
    zeros = [k for k, p in enumerate(body.parameters) if p in from_them and p not in reached]
    zeros += [i for i in more - variables if flows(body.parameters[i].spec)]
    return _Ways(sorted(variables), lists, captures, kept, sorted(set(zeros)))


def _closure(
    loop: Loop,
    variables: set[int],
    kept: list[int],
    enter: Callable[[Operation], bool] | None = None,
) -> tuple[set[int], set[Tensor]]:
    """Returns variables and the parameters they lead to: one's cotangent may lead to another's."""
    body = loop.body
    wanted = {body.outputs[i] for i in (*variables, *kept)}
    while True:
        reached = body.reach(wanted, enter)
        found = {i for i in range(loop.variables) if body.parameters[i] in reached} - variables
        if not found:
            return variables, reached
        variables = variables | found
        wanted |= {body.outputs[i] for i in found}


def _body(loop: Loop, ways: _Ways) -> Work[tuple[GradientBody, list[int]]]:
    """Returns the body of the backward loop, and the captures whose gradients are slices.

    The body's captures are still the forward body's tensors. It keeps the slices' values and
    indices behind the cotangents of lists.
    """
    forward = loop.body
    body = GradientBody(forward, f"{forward.name}_grad", loop.recompute)
    parameters, outputs = forward.parameters, forward.outputs
    n, m = len(ways.variables), len(ways.variables) + len(ways.lists)
    ys = [outputs[i] for i in (*ways.variables, *ways.kept)]
    xs = [parameters[i] for i in (*ways.variables, *ways.lists, *ways.captures)]
    gs = [body.add_parameter(outside(y.spec), "g") for y in ys]
    with body.graph.enter_block(body.block), body.graph.name_scope(body.name + "/"):
        found = yield from body.differentiate(ys, xs, gs)
        dense = [body.own(zeros_of(x)) if g is None else body.dense(g)
                 for x, g in zip(xs[:m], found, strict=False)]  # fmt: skip
        own = dict(zip(ways.captures, found[m:], strict=True))
        slices = {k: g for k, g in own.items() if isinstance(g, IndexedSlices)}
        body.kept = [*dense[n:], *[t for g in slices.values() for t in parts_of(body, g)]]
        summed = {k: None if g is None else body.dense(g)
                  for k, g in own.items() if k not in slices}  # fmt: skip
        bound = body.parameters[len(gs) :]
        sums = [body.add_parameter(value_spec(parameters[k].spec), "sum") for k in summed]
        totals = [s if g is None else plus(s, g)
                  for s, g in zip(sums, summed.values(), strict=True)]  # fmt: skip
    body.results = [*dense[:n], *totals]
    body.arrange([*gs[:n], *sums, *gs[n:], *bound], body.captures)
    return body, list(slices)


def plus(a: Tensor, b: Tensor) -> Tensor:
    """Returns the sum of two cotangents."""
    return sum_of_lists([a, b]) if a.spec.dtype.kind == "v" else add(a, b)


def _start(op: Operation, given: dict[int, Tensor], i: int) -> Tensor:
    found = given.get(i)
    return zeros_of(op.outputs[i]) if found is None else found


def _read(
    op: Operation, loop: Loop, body: GradientBody, outer: object
) -> tuple[list[Tensor], list[Tensor]]:
    """Sorts the backward body's captures: lists that the forward loop keeps, and its captures."""
    lists: list[tuple[Tensor, Tensor]] = []
    captured: list[tuple[Tensor, Tensor]] = []
    first = len(body.parameters) - len(body.captures)
    for tensor, parameter in zip(body.captures, body.parameters[first:], strict=True):
        if tensor.op.block is not loop.body.block:
            captured.append((tensor, parameter))
            continue
        position = _position(tensor)
        if position is not None and position >= loop.carried:
            captured.append((op.inputs[outer(position)], parameter))  # type: ignore[operator]
        else:
            lists.append((kept(op, loop, tensor), parameter))
    order = [*body.parameters[:first], *[p for _, p in lists], *[p for _, p in captured]]
    body.arrange(order, [t for t, _ in captured])
    body._inside = dict(captured)
    return [t for t, _ in lists], [t for t, _ in captured]


def _position(tensor: Tensor) -> int | None:
    definition = tensor.op.definition
    return definition.index if isinstance(definition, Parameter) else None


def kept(op: Operation, loop: Loop, tensor: Tensor) -> Tensor:
    """Returns the list of the values that a tensor of a loop's body has had."""
    body = loop.body
    found = body.outputs[loop.variables :]
    if tensor not in found:
        body.kept.append(tensor)
    index = loop.variables + 1 + body.outputs[loop.variables :].index(tensor)
    made = len(op.outputs) - 1
    for missing in body.outputs[made:index]:
        op.add_output(list_spec(missing.spec))
    return op.outputs[index]


loop_gradients.append(loop_gradient)


__all__ = ["kept", "loop_gradient", "plus"]
