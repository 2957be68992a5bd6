"""What the tests of the picture share: graphs, both layouts, and where the snapshots are."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from flowscope_widgets.picture import dot, own
from flowscope_widgets.picture.geometry import Placement
from flowscope_widgets.picture.visible import View

sys.path.insert(0, str(Path(__file__).parent))

Layout = Callable[[View], Placement]


@pytest.fixture(params=["own", "dot"])
def layout(request: pytest.FixtureRequest) -> Layout:
    """Both layouts, one after the other; dot only where it is installed."""
    if request.param == "own":
        return own.lay_out
    pytest.importorskip("graphviz")
    if not shutil.which("dot"):
        pytest.skip("needs Graphviz: apt install graphviz")
    return dot.lay_out


@pytest.fixture
def own_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Uses our own layout, whatever is installed."""
    monkeypatch.setenv("PATH", "")
