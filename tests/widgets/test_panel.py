"""The docked panel's side in the kernel, without a browser: which graph it shows, and its state."""

import pytest

import flowscope as fs
from flowscope.live.protocol.schema import PROTOCOL
from flowscope.live.watchers import bus
from flowscope_widgets import panel
from flowscope_widgets.chosen import graph_key

pytestmark = pytest.mark.usefixtures("graph")


class Comm:
    """What is used of a comm; keeps what is sent."""

    comm_id = "panel-1"

    def __init__(self):
        self.sent = []

    def send(self, data, buffers=None):
        self.sent.append(data)

    def states(self, name):
        return [m["state"][name] for m in self.sent if name in m.get("state", {})]

    def kinds(self):
        return [m["content"]["kind"] for m in self.sent if m["method"] == "custom"]


@pytest.fixture
def comm(monkeypatch):
    monkeypatch.setattr(bus, "PERIOD_S", 1e6)
    return Comm()


@pytest.fixture
def shown(comm, graph):
    """A panel on the default graph, which has one operation."""
    fs.constant(1.0, name="here")
    made = panel.PanelView(comm)
    yield made
    made.close()


def connect(view, number=1):
    view.take({"kind": "connect", "view": number, "protocol": PROTOCOL})


def test_the_default_graph_is_shown_and_told(shown, comm, graph):
    assert shown.graph is graph and comm.states("graph_key") == [graph_key(graph)]
    connect(shown)
    assert comm.kinds() == ["snapshot"] and shown.open_views == 1
    (graphs,) = comm.states("graphs")
    assert {"key": graph_key(graph), "title": "default graph, 1 operations"} in graphs


def test_a_graph_that_is_chosen_stays_and_following_comes_back(shown, comm, graph):
    connect(shown)
    with fs.Graph().as_default() as other:
        fs.constant(2.0)
        session = fs.Session()
    shown.selection = "here"
    shown.take({"kind": "graph", "key": graph_key(other)})
    assert shown.graph is other and comm.states("graph_key")[-1] == graph_key(other)
    assert shown.selection is None and shown.open_views == 0, "it connects anew"
    shown.take({"kind": "look"})
    assert shown.graph is other
    session.close()
    shown.take({"kind": "graph", "key": None})
    shown.take({"kind": "look"})
    assert comm.states("is_followed")[-1] is True


def test_it_goes_over_to_the_graph_that_runs(shown, comm, graph):
    with fs.Graph().as_default() as other:
        seen = []

        def look():
            shown.take({"kind": "look"})
            seen.append(shown.graph)
            return np_zero

        import numpy as np

        np_zero = np.float32(0.0)
        y = fs.py_func(look, [], fs.float32)
        with fs.Session() as session:
            session.run(y)
    assert seen == [other]


def test_its_state_is_set_and_read_from_python(shown, comm):
    shown.find = "type:Const"
    assert comm.sent[-1] == {"method": "update", "state": {"find": "type:Const"}}
    shown.take({"kind": "choose", "what": "selection", "value": "here"})
    assert shown.selection == "here"
