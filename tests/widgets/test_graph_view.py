"""The widget without a browser: what is chosen, who watches, what its displays hold."""

import json

import pytest
import traitlets
from packed_snapshots import nodes_of_packed

import flowscope as fs
from flowscope.live.protocol.schema import PROTOCOL
from flowscope.live.watchers import bus
from flowscope_widgets import graph_view
from flowscope_widgets.displays import Displays

pytestmark = pytest.mark.usefixtures("graph")


@pytest.fixture
def view(graph, root, monkeypatch):
    """A view of a graph of two scopes, and what it sent."""
    if not (root / "widgets/flowscope_widgets/static/graph_view.js").is_file():
        pytest.skip("needs the front end: make front-end")
    monkeypatch.setattr(bus, "PERIOD_S", 1e6)
    x = fs.placeholder(fs.float32, [2], name="model/x")
    fs.reduce_sum(x, name="model/loss/sum")
    made = graph_view.GraphView(graph)
    made.sent = []
    monkeypatch.setattr(made, "send", lambda content, buffers: made.sent.append(content))
    yield made
    made.close()


def hear(widget, **content):
    widget._on_message(widget, content, [])


# -- what is chosen -------------------------------------------------------------------------------


def test_an_operation_a_tensor_or_a_scope_is_selected(view, graph):
    op = graph.get_operation_by_name("model/loss/sum")
    for value, name in (
        (op, "model/loss/sum"),
        (op.outputs[0], "model/loss/sum"),
        ("model/x", "model/x"),
        ("model/loss", "model/loss/"),
        ("model/", "model/"),
        (None, None),
    ):
        view.selection = value
        assert view.selection == name


def test_what_is_not_there_is_refused(view):
    with pytest.raises(fs.errors.NotFoundError, match=r'no scope "model/los".*model/loss/'):
        view.selection = "model/los"
    with pytest.raises(fs.errors.DTypeError, match="expected an operation"):
        view.selection = 3
    with fs.Graph().as_default():
        other = fs.constant(1.0)
    with pytest.raises(fs.errors.InvalidArgumentError, match="another graph"):
        view.selection = other
    assert view.selection is None


def test_views_of_one_graph_have_one_key(view):
    same, other = (graph_view.GraphView(graph) for graph in (view.graph, fs.Graph()))
    assert view.graph_key and same.graph_key == view.graph_key != other.graph_key
    assert same.get_state("graph_key") == {"graph_key": view.graph_key}
    with pytest.raises(traitlets.TraitError):
        view.graph_key = "mine"


def test_an_iteration_is_chosen(view):
    view.iteration = ("loop:3/inner", 12)
    assert view.iteration.frame == "loop:3/inner" and view.iteration.number == 12
    assert json.loads(json.dumps(view.get_state("iteration"))) == {
        "iteration": ["loop:3/inner", 12]
    }
    for bad in (12, ("loop", -1), ("loop", 1.5), "loop"):
        with pytest.raises(fs.errors.InvalidArgumentError, match="expected the path of a frame"):
            view.iteration = bad
    view.iteration = None
    assert view.iteration is None


def test_what_the_browser_chooses_is_read_and_observed(view):
    seen = []
    view.observe(lambda change: seen.append((change.name, change.new)))
    hear(view, kind="choose", what="selection", value="model/x")
    hear(view, kind="choose", what="iteration", value=["loop", 4])
    assert view.selection == "model/x" and view.iteration == ("loop", 4)
    hear(view, kind="choose", what="selection", value="loop/Switch_3")
    hear(view, kind="choose", what="open_scopes", value={"model": True})
    assert view.selection == "loop/Switch_3", "what only the lowered program has is taken too"
    assert view.open_scopes == {"model": True}
    assert ("iteration", ("loop", 4)) in seen
    hear(view, kind="choose", what="step", value=120)
    hear(view, kind="choose", what="heat", value="time")
    assert (view.step, view.heat) == (120, "time")
    hear(view, kind="choose", what="heat", value="device")
    assert view.heat == "device"
    hear(view, kind="choose", what="step", value=None)
    assert view.step is None


@pytest.mark.parametrize(
    ("what", "value"),
    [
        ("selection", 3),
        ("iteration", ["loop"]),
        ("open_scopes", {"a": 1}),
        ("colour", "red"),
        ("step", "3"),
        ("step", True),
        ("heat", "hot"),
    ],
)
def test_what_is_no_choice_is_refused(view, what, value):
    with pytest.warns(UserWarning, match="not a message"):
        hear(view, kind="choose", what=what, value=value)
    assert (view.selection, view.iteration, view.open_scopes) == (None, None, {})
    assert (view.step, view.heat) == (None, "off")


def test_what_is_sought_and_what_is_shown_alone_is_data(view, graph):
    view.find = "type:Sum"
    view.isolated = graph.get_operation_by_name("model/loss/sum").outputs[0]
    assert view.get_state(["find", "isolated"]) == {
        "find": "type:Sum",
        "isolated": "model/loss/sum",
    }
    hear(view, kind="choose", what="find", value="from:x to:y")
    hear(view, kind="choose", what="isolated", value="")
    assert (view.find, view.isolated) == ("from:x to:y", "")
    with pytest.raises(fs.errors.NotFoundError, match="no scope"):
        view.isolated = "model/los"


def test_two_graphs_are_compared_by_name(view):
    with fs.Graph().as_default() as other:
        x = fs.placeholder(fs.float32, [3], name="model/x")
        fs.reduce_sum(x, name="model/loss/sum")
        fs.constant(1.0, name="gone")
    later = fs.constant(2.0, name="later")
    found = view.compare(other)
    assert found == {"model/x": "altered", "later": "added", "gone": "removed"}
    assert view.find == "is:different" and view.difference == found and later is not None
    assert view.compare(None) == {} and view.find == ""
    with pytest.raises(fs.errors.DTypeError, match="expected a graph"):
        view.compare("other")


# -- who watches ----------------------------------------------------------------------------------


def connect(widget, view):
    hear(widget, kind="connect", view=view, protocol=PROTOCOL)


def test_a_view_that_closes_or_falls_silent_is_told_nothing_more(view):
    connect(view, 1)
    connect(view, 2)
    feed = view._feed
    assert view.open_views == 2
    assert [(m["kind"], m["view"]) for m in view.sent] == [("snapshot", 1), ("snapshot", 2)]
    assert view.sent[-1]["silence_s"] > 0
    now_s = max(feed.audience._heard_s.values())
    hear(view, kind="disconnect", view=1)
    assert view.open_views == 1
    feed.look_after(now_s + feed.audience.silence_s / 2)
    assert view.open_views == 1
    feed.look_after(now_s + 10 * feed.audience.silence_s)
    assert view.open_views == 0
    assert feed._end is None, "nothing looks at the graph any more"


def test_a_silent_view_that_is_heard_again_gets_a_snapshot(view):
    connect(view, 1)
    count = len(view.sent)
    hear(view, kind="alive", view=1)
    assert len(view.sent) == count, "it is known, and was told all"
    view._feed.look_after(1e12)
    hear(view, kind="alive", view=1)
    assert view.open_views == 1
    assert [m["kind"] for m in view.sent[count:]] == ["snapshot"]


def test_two_widgets_of_a_graph_share_one_look(view, graph, monkeypatch):
    other = graph_view.GraphView(graph)
    told = []
    monkeypatch.setattr(other, "send", lambda content, buffers: told.append(content))
    connect(view, 1)
    connect(other, 2)
    assert other._feed is view._feed and (view.open_views, other.open_views) == (1, 1)
    fs.constant(1.0, name="later")
    view._feed.tick(1.0)
    assert [m["view"] for m in (view.sent[-1], told[-1])] == [1, 2]
    other.close()
    assert (view.open_views, other.open_views) == (1, 0)


# -- what draws -----------------------------------------------------------------------------------


def test_what_draws_is_sent_when_asked_for_and_not_with_every_view(view, graph):
    other = graph_view.GraphView(graph)
    state = view.get_state()
    assert len(json.dumps(state)) < 4000
    assert state["core"] and other.core == view.core
    hear(view, kind="core")
    (told,) = view.sent
    assert told["kind"] == "core" and len(told["script"]) > 50_000 and ".fs-view" in told["style"]


# -- displays -------------------------------------------------------------------------------------


class Shell:
    """What is used of IPython's shell."""

    def __init__(self):
        self.execution_count = 1
        self.published = []
        self.display_pub = self
        self.events = self

    def register(self, event, callback):
        self.ended = callback

    def publish(self, data, metadata, transient, update):
        packed = data["application/vnd.flowscope.view+json"]["packed"]
        names = [n.name for n in nodes_of_packed(packed)] if packed else None
        assert ("image/svg+xml" in data) == (names is not None) and data["text/plain"]
        self.published.append((transient["display_id"], update, names))


@pytest.fixture
def shell(monkeypatch):
    made = Shell()
    monkeypatch.setattr("flowscope_widgets.displays.get_ipython", lambda: made)
    return made


def test_the_saved_picture_is_drawn_at_the_end_of_a_cell_that_showed_or_changed_the_graph(
    view, shell
):
    displays = Displays(view)
    displays.show(is_result=False)
    ((first, update, names),) = shell.published
    assert not update and names is None, "the live view waits for no picture"
    shell.ended()
    ((_, _, _), (again, update, names)) = shell.published
    assert (again, update) == (first, True) and names[0] == "model/x" and "later" not in names
    shell.ended()
    assert len(shell.published) == 2, "nothing has changed"
    fs.constant(1.0, name="later")
    shell.ended()
    (again, update, names) = shell.published[-1]
    assert (again, update) == (first, True) and names[-1] == "later"
    displays.close()
    fs.constant(2.0)
    shell.ended()
    assert len(shell.published) == 3


def test_a_picture_that_takes_long_is_drawn_once(view, shell):
    displays = Displays(view)
    displays.show()
    shell.ended()
    displays._took_s = 1.0
    fs.constant(1.0, name="later")
    shell.ended()
    assert len(shell.published) == 2


def test_the_result_of_the_cell_that_shows_it_is_not_shown_twice(view, shell):
    displays = Displays(view)
    displays.show(is_result=False)
    displays.show()
    assert len(shell.published) == 1
    shell.execution_count += 1
    displays.show()
    assert len({one for one, _, _ in shell.published}) == 2
