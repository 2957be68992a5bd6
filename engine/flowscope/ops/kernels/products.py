"""Products of matrices, for the kernels that multiply: large ones are shared by several threads.

Which threads the step says that runs the kernel, see `flowscope.runtime.matrix_products`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from flowscope.graph.current_step import current_step
from flowscope.graph.op import Array, ArrayModule

#: Below so many multiplications one thread is quicker.
WORTH = 1 << 20
#: Of numbers in the machine's order of bytes.
_TYPES = frozenset({np.dtype(np.float32), np.dtype(np.float64)})


def matrix_product(xp: ArrayModule, a: Array, b: Array) -> Array:
    """Returns `xp.matmul(a, b)`."""
    if a.size * b.shape[-1] >= WORTH and xp is np and a.ndim == 2 == b.ndim:
        step = current_step()
        if step is not None and step.product is not None and a.dtype == b.dtype in _TYPES:
            found: Any = step.product(a, b)
            if found is not None:
                return found
    return xp.matmul(a, b)
