"""Pictures of whole models, counted: what `make bench-views` counts holds for each of them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytestmark = pytest.mark.slow

#: Texts of a fitted picture are seen at this size at least, in CSS pixels.
LEAST_PX = 9.0


@pytest.fixture(scope="module")
def bench(root: Path) -> ModuleType:
    """The module bench_views.py."""
    path = root / "tests" / "benchmarks" / "views" / "bench_views.py"
    spec = importlib.util.spec_from_file_location("bench_views", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def figures(bench: ModuleType, root: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The figures of all models."""
    if not (root / "labextension" / "node_modules").is_dir():
        pytest.skip("needs the front end's packages: make front-end")
    folder = tmp_path_factory.mktemp("views")
    bench.write_snapshots(folder, list(bench.MODELS))
    return bench.count(folder, root / "labextension")


def test_every_text_of_a_fitted_picture_can_be_read(figures: Any) -> None:
    for name, figure in figures.items():
        for width in (1280, 600):
            assert figure[f"smallest label px at {width}"] >= LEAST_PX, f"{name} at {width}"
        assert figure["names cut to a letter"] == 0, name


def test_levels_keep_to_their_budget(figures: Any) -> None:
    for name, figure in figures.items():
        assert figure["most boxes of a level"] <= 40, name


def test_opening_a_scope_turns_no_pair_of_boxes_round(figures: Any) -> None:
    for name, figure in figures.items():
        assert figure["flips on opening %"] == 0, name
