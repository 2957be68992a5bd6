"""Breakpoints on the workers of a real cluster: the same stops as on one CPU."""

import pytest
from random_stops import Breaks


@pytest.mark.filterwarnings("ignore::flowscope.errors.ControlFlowWarning")
@pytest.mark.parametrize("mode", ["compiled", "op"])
@pytest.mark.parametrize("seed", [1, 4])
def test_random_breakpoints_stop_as_on_one_cpu(cluster, seed, mode):
    breaks = Breaks(seed)
    plain = breaks.stops("one CPU", mode)
    assert len(plain) > 1
    assert breaks.stops("hosts", mode, cluster) == plain
