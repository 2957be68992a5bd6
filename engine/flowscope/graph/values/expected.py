"""How shape rules and kernels say what is wrong: "expected ..., got ...", in one form.

    if x.rank not in (None, 1):
        raise expected("a vector", x.shape)

Whoever catches the error adds the operation, its inputs and the user's line, see `errors`.
"""

from __future__ import annotations

from typing import Any

from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.values.shapes import text


def expected(what: str, *got: Any) -> InvalidArgumentError:
    """Returns the error for a wrong value or shape: "expected {what}, got {a}, {b} and {c}".

    Args:
        what: What was expected.
        got: What came. A shape (a tuple, or None) becomes e.g. "[2,?]"; what else, `str` of it.
    """
    return InvalidArgumentError(_sentence(what, got))


def expected_dtype(what: str, *got: Any) -> DTypeError:
    """Returns the error for a wrong dtype or kind of value, a TypeError; see `expected`."""
    return DTypeError(_sentence(what, got))


def _sentence(what: str, got: tuple[Any, ...]) -> str:
    *first, last = [text(v) if v is None or isinstance(v, tuple) else str(v) for v in got]
    return f"expected {what}, got {' and '.join([', '.join(first), last] if first else [last])}"
