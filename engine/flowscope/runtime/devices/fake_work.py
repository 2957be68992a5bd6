"""What array functions of a fake device cost, by name and shapes, as `plan.analysis.costs` does.

The rates are those of one core of a CPU; a device's profile says how many times quicker it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from flowscope.plan.analysis.costs import BYTES_PER_S, FLOPS_PER_S, PRODUCT_FLOPS_PER_S

_PRODUCTS = frozenset(
    ["matmul", "dot", "tensordot", "einsum", "inner", "__matmul__", "__rmatmul__"]
)
_SORTS = frozenset(
    ["sort", "argsort", "lexsort", "unique", "searchsorted", "partition", "argpartition"]
)
#: Seconds per m * n * min(m, n) of each matrix.
_CUBES_S = {
    "cholesky": 0.1e-9, "det": 0.2e-9, "slogdet": 0.2e-9, "solve": 0.2e-9, "inv": 0.4e-9,
    "solve_triangular": 0.1e-9, "qr": 0.6e-9, "eigh": 2e-9, "eigvalsh": 2e-9, "svd": 2e-9,
    "eig": 10e-9, "eigvals": 10e-9, "pinv": 3e-9,
}  # fmt: skip
_HEAVY_S = {
    **dict.fromkeys(("exp", "expm1", "log", "log1p", "tanh", "sqrt", "reciprocal"), 1e-9),
    **dict.fromkeys(
        ("sin", "cos", "tan", "arctan", "arcsin", "arccos", "erf", "power", "__pow__", "gammaln"),
        5e-9,
    ),
}


def work_s(name: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> float:
    """Returns the seconds that a call takes one core of a CPU.

    Args:
        name: The function's name.
        inputs: Its arrays.
        outputs: The arrays that it has made.
    """
    size = sum(int(a.size) for a in outputs)
    moved: float = sum(int(a.nbytes) for a in (*inputs, *outputs)) / BYTES_PER_S
    if name in _PRODUCTS and inputs and outputs:
        depth = int(inputs[0].shape[-1]) if inputs[0].ndim else 1
        rate = PRODUCT_FLOPS_PER_S / (2 if outputs[0].itemsize > 4 else 1)
        return moved + 2.0 * size * depth / rate
    if name in _CUBES_S and inputs and inputs[0].ndim > 1:
        return _CUBES_S[name] * int(inputs[0].size) * min(map(int, inputs[0].shape[-2:]))
    bits = math.log2(max(2, inputs[0].shape[-1])) if inputs and inputs[0].ndim else 1.0
    if name in _SORTS and inputs and inputs[0].ndim:
        return 5e-9 * int(inputs[0].size) * bits
    return moved + size * _HEAVY_S.get(name, 1 / FLOPS_PER_S)


__all__ = ["work_s"]
