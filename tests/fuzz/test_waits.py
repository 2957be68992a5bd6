"""Random programs with queues, Python functions and partial runs do on devices and workers what
they do on one device: a fixed part; `make fuzz` goes on from there."""

import pytest
from cluster_hosts import hosts_here
from waiting_runs import check, chosen

#: Programs per test: so many take about a second.
FEW = 20
#: Seeds that have shown a defect: of partial runs on workers; 4068 of variables that take turns.
FOUND = [31, 39, 59, 137, 1064, 4068]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::flowscope.errors.ControlFlowWarning")
@pytest.mark.parametrize("first", range(0, 100, FEW))
def test_other_places_change_nothing(first):
    with hosts_here(3) as (cluster, _):
        for seed in range(first, first + FEW):
            check(seed, cluster, chosen(seed, 1))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::flowscope.errors.ControlFlowWarning")
@pytest.mark.parametrize("seed", FOUND)
def test_what_was_found_stays_mended(seed):
    with hosts_here(3) as (cluster, _):
        pairs = [("a worker and the client", "op"), ("two workers", "compiled")]
        check(seed, cluster, [*pairs, ("a worker and the client", "compiled")])
