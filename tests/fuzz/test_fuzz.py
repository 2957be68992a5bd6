"""Random programs do the same in every mode: a fixed part; `make fuzz` goes on from there."""

import pytest
from random_programs import check

#: Programs per test: so many take about a second.
FEW = 25


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::flowscope.errors.ControlFlowWarning")
@pytest.mark.parametrize("first", range(0, 500, FEW))
def test_modes_agree(first):
    for seed in range(first, first + FEW):
        check(seed)
