"""What the tests of messages share."""

from __future__ import annotations

import pytest

from flowscope.live.watchers import bus
from flowscope.live.watchers.bus import LiveChannel


@pytest.fixture
def feed(graph, monkeypatch):
    """A feed that looks only when the test says so, and what it sent."""
    monkeypatch.setattr(bus, "PERIOD_S", 1e6)
    monkeypatch.setattr(bus.notebook, "cell_running", None)  # as in plain Python
    made = LiveChannel(graph)
    made.sent = []
    end = made.subscribe(made.sent.append)
    yield made
    end()
