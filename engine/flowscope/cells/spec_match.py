"""What is known of a tensor before a step, compared with what is known of another."""

from __future__ import annotations

from flowscope.graph.op import Spec
from flowscope.graph.values.shapes import Dims


def implies(new: Dims, old: Dims) -> bool:
    """Whether all that `old` says of a shape holds for `new`."""
    if old is None:
        return True
    return (
        new is not None
        and len(new) == len(old)
        and all(o is None or o == n for n, o in zip(new, old, strict=True))
    )


def same_spec(a: Spec, b: Spec) -> bool:
    """Whether two Specs say the same."""
    if a.dtype is not b.dtype or a.shape != b.shape or a.dims != b.dims:
        return False
    if (a.variable is None) != (b.variable is None) or (a.constant is None) != (b.constant is None):
        return False
    if a.variable is not None and b.variable is not None and not same_spec(a.variable, b.variable):
        return False
    return a.constant is b.constant or _bytes(a) == _bytes(b)


def _bytes(spec: Spec) -> object:
    value = spec.constant
    assert value is not None
    if isinstance(value, bytes):  # a string of rank 0
        return value
    return value.tolist() if value.dtype.kind == "O" else value.tobytes()


__all__ = ["implies", "same_spec"]
