"""What op functions declare in one line: which arguments become tensors, the scope, `name`."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import flowscope as fs
from flowscope.ops.core.declare import op_function


@op_function("x y=x places:int32", scope="Weighted")
def weighted(
    x: Any, y: Any, places: Any = None, name: str | None = None, scale: float = 1.0
) -> Any:
    """Returns something.

    Args:
        x: A tensor.
        y, places: More
            of them.
        scale: A number.

    Raises:
        DTypeError: if y is of another dtype.
    """
    assert all(t is None or isinstance(t, fs.Tensor) for t in (x, y, places))
    return x, y, places, fs.identity(x)


@op_function("x")
def plain(x: Any, name: str | None = None) -> Any:
    """Returns x.

    Args:
        x: A tensor.
    """
    return fs.identity(x, name)


def test_arguments_become_tensors_by_position_and_by_name() -> None:
    for x, y, places, _ in (
        weighted([1.0], 2, []),
        weighted(places=[], y=2, x=[1.0]),
        weighted(fs.constant([1.0]), fs.Variable(2.0), places=[]),
    ):
        assert [t.dtype for t in (x, y, places)] == [fs.float32, fs.float32, fs.int32]
    assert weighted(1, 2)[2] is None


def test_the_body_adds_its_operations_in_a_scope() -> None:
    fs.reset_default_graph()
    x = fs.constant(1.0)
    assert weighted(x, 1.0)[3].op.name == "Weighted/Identity"
    assert weighted(x, 1.0)[3].op.name == "Weighted_1/Identity"
    assert weighted(x, 1.0, None, "mine")[3].op.name == "mine/Identity"
    assert weighted(x, y=1.0, name="mine")[3].op.name == "mine_1/Identity"
    assert plain(1.0, "alone").op.name == "alone"
    with fs.Graph().as_default():  # the graph is that of the tensors
        assert weighted(x, x)[3].graph is x.graph


def test_signature_and_help_are_those_of_the_function() -> None:
    assert [*inspect.signature(weighted).parameters] == ["x", "y", "places", "name", "scale"]
    assert inspect.getdoc(weighted) == (
        "Returns something.\n\nArgs:\n    x: A tensor.\n    y, places: More\n        of them.\n"
        "    name: Name scope of the operations.\n    scale: A number.\n\n"
        "Raises:\n    DTypeError: if y is of another dtype."
    )
    assert str(inspect.getdoc(plain)).endswith("x: A tensor.\n    name: Name of the operation.")


def test_errors_name_the_function_and_what_is_wrong() -> None:
    with pytest.raises(TypeError, match=r"plain\(\) missing 1 required positional argument: 'x'"):
        plain()
    with pytest.raises(TypeError, match=r"weighted\(\) got an unexpected keyword argument 'z'"):
        weighted(1.0, 2.0, z=3)
    with pytest.raises(TypeError, match="expected float32, got float64"):
        weighted(fs.constant(1.0), fs.constant(1.0, fs.float64))


def test_a_tensor_may_keep_its_own_dtype() -> None:
    @op_function("x y~x")
    def pair(x: Any, y: Any, name: str | None = None) -> Any:
        return x, y

    assert pair(fs.constant(1.0, fs.float64), 2)[1].dtype == fs.float64
    assert pair(1.0, fs.constant(2))[1].dtype == fs.int32
