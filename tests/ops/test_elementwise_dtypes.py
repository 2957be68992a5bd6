"""The kernels of the elementwise tables, for every dtype that they declare."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from op_oracle import noted

from flowscope.graph.op import Op, Spec, all_ops
from flowscope.graph.values.dtypes import ALL, DType, bfloat16
from flowscope.ops.core.table import Binary, Unary

#: Ops whose result for these numbers is not continuous: a rounded input may give another one.
JUMPS = {"Ceil", "Floor", "FloorDiv", "FloorMod", "Rint", "Round", "TruncateDiv", "TruncateMod"}
NUMBERS = {
    "b": ([True, False, True], [True, True, False]),
    "i": ([3, 1, 2], [1, 2, 2]),
    "u": ([3, 1, 2], [1, 2, 2]),
    "f": ([0.5, 0.75, 0.25], [0.5, 0.25, 0.75]),
    "c": ([0.5 + 0.25j, 0.75, 0.25j], [0.5, 0.25 - 0.5j, 0.75]),
}


def made(op: Op, dtype: DType) -> tuple[list[Any], Spec] | None:
    """Inputs of this dtype and what the op says of its output; None if it does not take them."""
    count = 1 if isinstance(op, Unary) else 2
    inputs = [np.array(v).astype(dtype.np_dtype) for v in NUMBERS[dtype.kind][:count]]
    try:
        return inputs, op.infer(*[Spec(dtype, (3,)) for _ in inputs])
    except TypeError:
        return None


OPS = {
    name: cls
    for name, cls in sorted(all_ops().items())
    if issubclass(cls, Unary | Binary) and cls.__module__.startswith("flowscope.")
}


def dtypes_of(cls: Any) -> list[DType]:
    return [d for d in ALL if d.kind in cls.kinds and d.kind in NUMBERS]


def tolerance(dtype: DType) -> float:
    if dtype is bfloat16:
        return 0.04
    eps = np.finfo(dtype.np_dtype).eps if dtype.kind in "fc" else 0
    return float(16 * eps)


@pytest.mark.parametrize("name", OPS)
def test_a_kernel_keeps_its_promise_and_is_as_exact_as_the_dtype(name: str) -> None:
    for dtype in dtypes_of(OPS[name]):
        with noted(dtype):
            check(OPS[name](), dtype)


def check(op: Op, dtype: DType) -> None:
    found = made(op, dtype)
    if found is None:
        return
    inputs, spec = found
    with np.errstate(all="ignore"):
        got = op.kernel(np, *inputs)
        one = op.kernel(np, *[x[0] for x in inputs])
    assert got.dtype == one.dtype == spec.dtype.np_dtype
    assert got.shape == (3,)
    assert one.shape == ()
    if dtype.kind in "fc" and op.type not in JUMPS and spec.dtype.kind in "fc":
        wide = [x.astype("c16" if dtype.kind == "c" else "f8") for x in inputs]
        with np.errstate(all="ignore"):
            want = op.kernel(np, *wide)
        limit = tolerance(dtype)
        plain = got.astype(want.dtype)
        np.testing.assert_allclose(plain, want, rtol=limit, atol=limit)


def test_bfloat16_is_among_the_cases() -> None:
    assert sum(bfloat16 in dtypes_of(cls) for cls in OPS.values()) > 40
