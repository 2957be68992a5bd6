"""What the tests of the picture share: graphs, and a skip where the front end is not built."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from flowscope_widgets import picture

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def drawn() -> None:
    """Pictures can be drawn."""
    if not picture.can_draw():
        pytest.skip("needs the front end: make front-end")
