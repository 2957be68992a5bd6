"""NumPy = CuPy: every row of the ops' table, in every dtype that it declares, on CPU and on GPU.

Where there is no GPU the same is asked of the fake one, which has CuPy's limits;
`test_there_is_a_real_gpu` says why there is no real one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from op_oracle import noted, same_bits
from op_rows import ROWS, Row
from row_tools import for_each
from test_rows import TOLERANCE, Case, arrays_of, gradients, known, weighted

import flowscope as fs
from flowscope.errors import UnavailableError
from flowscope.runtime.devices.cupy import gpus

pytestmark = pytest.mark.slow


def why_not() -> str | None:
    """Why there is no real GPU to compare with; None if there is one."""
    try:
        return None if gpus() else "CuPy finds no GPU"
    except UnavailableError as error:
        return error.message


WHY_NOT = why_not()
IS_REAL = WHY_NOT is None
CONFIG = {"device_count": {"GPU": 1}} if IS_REAL else {"fake_devices": {"GPU": 1}}


@pytest.mark.skipif(not IS_REAL, reason=f"no real GPU: {WHY_NOT}")
def test_there_is_a_real_gpu() -> None:
    with fs.Graph().as_default(), fs.Session(config=fs.ConfigProto(**CONFIG)) as session:
        assert any("GPU" in d.name for d in session.list_devices())
        with fs.device("/GPU:0"):
            assert session.run(fs.reduce_sum(fs.ones([3]))) == 3


@for_each(ROWS)
def test_the_gpu_gives_what_the_cpu_gives(row: Row) -> None:
    for dtype in row.dtypes:
        arrays = arrays_of(row, dtype)
        case = Case(row, dtype, arrays, known(arrays))
        outputs = list(case.outputs)
        if row.order and any(t.dtype.is_differentiable for t in case.xs):
            outputs += [g for g in gradients(case, weighted(case)) if g is not None]
        with fs.Session(graph=case.graph) as session:
            want = session.run(outputs, case.feeds)
        config = fs.ConfigProto(**CONFIG)
        with noted(dtype), fs.Session(graph=case.graph, config=config) as session:
            for g, w in zip(session.run(outputs, case.feeds), want, strict=True):
                agree(g, w)


def agree(got: Any, want: Any) -> None:
    """Asserts equal numbers; fractions to a few bits, for sums may come in another order."""
    assert type(got) is type(want)
    assert got.dtype == want.dtype
    if got.dtype.kind not in "fc":
        assert same_bits(got, want)
        return
    limit = TOLERANCE[got.dtype.name] * (50 if IS_REAL else 1)
    np.testing.assert_allclose(got, want, rtol=limit, atol=limit)
