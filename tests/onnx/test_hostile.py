"""Damaged and hostile models of ONNX: one clear error, in bounded time."""

from __future__ import annotations

import onnx_mutants as mutants
import pytest


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_mutants_give_a_model_or_an_error_in_time(part: int) -> None:
    for seed in range(150 * part, 150 * (part + 1)):
        assert mutants.wrong(seed) is None, seed


@pytest.mark.slow
def test_what_is_not_damaged_is_read() -> None:
    assert len(mutants.samples()) > 1000
    assert mutants.read(mutants.samples()[0])
    assert mutants.read(mutants.samples()[1])
