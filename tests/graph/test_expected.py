"""Errors of shape rules say in one form what was expected and what came."""

from __future__ import annotations

import pytest

import flowscope as fs
from flowscope.graph.values.expected import expected, expected_dtype


@pytest.mark.parametrize(
    ("got", "text"),
    [
        ((3,), "expected a vector, got 3"),
        (((2, None),), "expected a vector, got [2,?]"),
        ((None,), "expected a vector, got [...]"),
        (((), "none"), "expected a vector, got [] and none"),
        ((fs.int32, fs.bool, fs.int8), "expected a vector, got int32, bool and int8"),
    ],
)
def test_what_came_is_said_in_words(got: tuple[object, ...], text: str) -> None:
    assert str(expected("a vector", *got)) == text
    assert str(expected_dtype("a vector", *got)) == text


def test_a_dtype_is_a_type_error_and_a_value_is_not() -> None:
    assert isinstance(expected_dtype("floats", fs.int32), TypeError)
    assert isinstance(expected("a vector", 3), fs.errors.InvalidArgumentError)
    assert not isinstance(expected("a vector", 3), TypeError)
