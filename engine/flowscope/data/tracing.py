"""How the functions that users give to datasets become functions of the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flowscope.control.blocks import Function, free_name, settled
from flowscope.control.tracing import building
from flowscope.data.structure import Structure
from flowscope.errors import DTypeError
from flowscope.graph.default import get_default_graph
from flowscope.graph.op import Spec
from flowscope.graph.operation import Tensor

#: Makes of what a function returns a description of it, and tensors.
Described = Callable[[Any], tuple[Any, Sequence[Tensor]]]


def traced(
    function: Any,
    what: str,
    arguments: Sequence[Structure],
    unpacks: bool,
    describe: Described,
) -> tuple[Function, Any]:
    """Returns the function of the graph that a user's function makes, and what it returns.

    The user's function is called once. What it uses of the graph outside is handed in when the
    dataset is made: tensors by their values then, variables as they are when an element is
    computed.

    Args:
        function: The user's function.
        what: What messages call it: "map_func".
        arguments: The structures of its arguments.
        unpacks: Whether a tuple as the only argument is given as several.
        describe: What is made of its result, in the function's block.

    Raises:
        DTypeError: if it is no function.
    """
    if not callable(function):
        raise DTypeError(f"expected a function as {what}, got {function!r}")
    graph = get_default_graph()
    name = getattr(function, "__name__", what).strip("<>")
    body = Function(graph, free_name(graph, f"Dataset_{name}"), graph.block)
    body.block.what = "a function of a dataset"
    given = [
        structure.packed([
            body.add_parameter(Spec(dtype, dims), f"component_{i}")
            for i, (dtype, dims) in enumerate(structure.components)
        ])
        for structure in arguments
    ]  # fmt: skip
    with building(body, body.name + "/"):
        is_tuple = unpacks and type(given[0]) is tuple
        found = function(*given[0]) if is_tuple else function(*given)
        described, tensors = describe(found)
        body.results = [body.own(t) for t in tensors]
    (body,) = settled([body])
    return body, described


__all__ = ["traced"]
