"""Random nests of loops and branches: whatever finishes first, the values are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from machine_steps import Steps
from nests import as_graph, programs

import flowscope as fs
from flowscope.executor.replay import replay


@pytest.mark.slow
@settings(max_examples=10)
@given(programs, st.floats(-2, 2), st.floats(-1, 1), st.integers(0, 1000))
def test_any_order_gives_the_same_values_and_gradients(
    program: Any, at: float, weight: float, seed: int
) -> None:
    with np.errstate(all="ignore"), fs.Graph().as_default():
        x, w = fs.placeholder(fs.float64, []), fs.placeholder(fs.float64, [])
        y, k = as_graph(program, x, fs.constant(3), w)
        g = fs.gradients(y, [x, w], unconnected_gradients=fs.UnconnectedGradients.ZERO)
        fetches = [fs.identity(t) for t in (y, k, *g)]
        with fs.Session() as s:
            want = [v.tobytes() for v in s.run(fetches, {x: at, w: weight})]
        steps = Steps(fetches, {x: at, w: weight})
        got = steps.finish(seed)
        assert [v.tobytes() for v in got] == want
        again = replay(steps.graph, steps.machine.story.events)
        assert [v.tobytes() for v in again.results] == want
