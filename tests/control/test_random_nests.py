"""Random nests of loops and branches: all modes, plain Python, gradients of unrolled graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from nests import as_graph, as_python, programs

import flowscope as fs


@pytest.mark.slow
@settings(max_examples=60)
@given(programs, st.floats(-2, 2), st.floats(-1, 1))
def test_values_and_gradients(program: Any, at: float, weight: float) -> None:
    with np.errstate(all="ignore"), fs.Graph().as_default():
        now = np.float64(at), np.int32(3), np.float64(weight)
        x, w = fs.placeholder(fs.float64, []), fs.placeholder(fs.float64, [])
        y, k = as_graph(program, x, fs.constant(3), w)
        plain, _, (want, count, _) = as_python(program, x, fs.constant(3), w, fs, now)
        zero = fs.UnconnectedGradients.ZERO
        g = fs.gradients(y, [x, w], unconnected_gradients=zero)
        h = fs.gradients(g, [x, w], unconnected_gradients=zero)
        plain_g = fs.gradients(plain, [x, w], unconnected_gradients=zero)
        plain_h = fs.gradients(plain_g, [x, w], unconnected_gradients=zero)
        bits = []
        for mode in ("compiled", "op", "tokens"):
            with fs.Session(config=fs.ConfigProto(mode=mode)) as s:
                values = s.run([y, k, *g, *h], {x: at, w: weight})
                bits.append([v.tobytes() for v in values])
                assert values[0].tobytes() == np.float64(want).tobytes()
                assert values[1] == count
                unrolled = s.run([*plain_g, *plain_h], {x: at, w: weight})
                np.testing.assert_allclose(values[2:], unrolled, rtol=1e-9, atol=1e-12)
        assert bits[0] == bits[1]
