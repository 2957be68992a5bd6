"""What a view has had traced is handed to the browser as files that other tools read."""

import base64
import json

import numpy as np
import pytest
from process_channels import until

import flowscope as fs
from flowscope.live.protocol import schema
from flowscope.live.watchers.wire import message_from
from flowscope_widgets import exporting, panel, picture

pytestmark = pytest.mark.usefixtures("graph")


class Comm:
    """A comm that keeps what is sent."""

    def __init__(self):
        self.sent = []

    def send(self, data, buffers=None):
        self.sent.append(data)


@pytest.fixture
def view(graph):
    x = fs.placeholder(fs.float32, [3], name="x")
    fs.exp(x, name="y")
    with fs.Session() as sess:
        made = panel.PanelView(Comm())
        made.session = sess
        yield made
        made.close()


def asked(view, what):
    answers = []
    view._carry = lambda content, buffers: answers.append(content)
    view.take({"kind": "ask_export", "view": 3, "request_id": 1, "what": what})
    until(lambda: any(one.get("kind") == "export" for one in answers))
    return next(one for one in answers if one.get("kind") == "export")


def traced(view):
    command = {"kind": "command", "command_id": 1, "name": "trace", "value": 1000, "view": 3}
    view._feed.hear(schema.Connect(3), lambda message: None)
    view._feed.hear(message_from(command), lambda message: None)
    for k in range(4):
        view._feed.tick(float(k))
        view.session.run("y:0", {"x:0": np.ones(3, np.float32)})


def test_nothing_is_said_where_nothing_was_traced(view):
    assert asked(view, "chrome")["error"] == exporting.NOTHING_TRACED


def test_a_file_of_another_kind_is_refused(view):
    assert "expected one of" in asked(view, "xml")["error"]


@pytest.mark.parametrize("what", ["chrome", "recording", "html"])
def test_what_was_traced_is_a_file(view, what, tmp_path):
    if what == "html" and not picture.can_draw():
        pytest.skip("needs the front end: make front-end")
    traced(view)
    told = asked(view, what)
    assert told["error"] == "" and told["view"] == 3
    content = base64.b64decode(told["content"])
    if what == "chrome":
        events = json.loads(content)
        events = events["traceEvents"] if isinstance(events, dict) else events
        assert any(event.get("name") == "y" for event in events)
    elif what == "html":
        assert content.startswith(b"<!doctype html>")
    else:
        (tmp_path / "steps.recording").write_bytes(content)
        loaded = fs.tracing.load(tmp_path / "steps.recording")
        assert "y" in {n.name for n in loaded.nodes} and loaded.graph
