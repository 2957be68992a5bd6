"""Random nests of loops and branches that are stepped through at random: the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from nests import as_graph, programs

import flowscope as fs
from flowscope.plan.codegen import function as code, outlining
from flowscope.runtime.waits.gate import Gate


class Random(Gate):
    """Takes a step over and lets it go at random safepoints, and looks at each."""

    __slots__ = ("draw", "looks")

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.raised = True
        self.draw = np.random.default_rng(seed)
        self.looks = 0

    def hold(self, point: int, here: Any = None) -> bool:
        if here is not None:
            assert here.where().mode in ("compiled", "op")
            self.looks += 1
        self.is_by_op = bool(self.draw.integers(2))
        return self.is_by_op


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    programs,
    st.floats(-2, 2),
    st.integers(0, 1000),
    st.sampled_from([0.0, 1.0]),
    st.sampled_from([(15, 60), (1, 60), (15, 2), (1, 2)]),
)
def test_results_do_not_depend_on_stepping(
    program: Any, at: float, seed: int, stretch_s: float, most: tuple[int, int]
) -> None:
    with (
        np.errstate(all="ignore"),
        fs.Graph().as_default(),
        pytest.MonkeyPatch.context() as patch,
        fs.Session() as sess,
    ):
        patch.setattr(code, "STRETCH_S", stretch_s)
        patch.setattr(outlining, "MOST_LOOPS", most[0])
        patch.setattr(outlining, "MOST_LEVELS", most[1])
        x, w = fs.placeholder(fs.float64, []), fs.placeholder(fs.float64, [])
        y, k = as_graph(program, x, fs.constant(3), w)
        g = fs.gradients(y, [x, w], unconnected_gradients=fs.UnconnectedGradients.ZERO)
        feeds = {x: at, w: 0.7}
        plain = [v.tobytes() for v in sess.run([y, k, *g], feeds)]
        sess.gate = Random(seed)
        assert [v.tobytes() for v in sess.run([y, k, *g], feeds)] == plain
