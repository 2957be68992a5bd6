"""Running from a view, without a browser: what is chosen, what is needed, runs and their values."""

import json

import numpy as np
import pytest

import flowscope as fs
from flowscope.live.watchers import bus
from flowscope_widgets import FromNotebook, between_cells, panel
from flowscope_widgets.fed import Fed

pytestmark = pytest.mark.usefixtures("graph")


class Comm:
    """What is used of a comm; keeps what is sent."""

    comm_id = "panel-1"

    def __init__(self):
        self.sent = []

    def send(self, data, buffers=None):
        self.sent.append(json.loads(json.dumps(data, allow_nan=False)))

    @property
    def setup(self):
        return [m["state"]["run_setup"] for m in self.sent if "run_setup" in m.get("state", {})][-1]

    @property
    def reply(self):
        replies = [m["content"] for m in self.sent if m["method"] == "custom"]
        return [r for r in replies if r["kind"] == "reply"][-1]


@pytest.fixture
def names(monkeypatch):
    """The notebook's variables, none of which is there at first."""
    found = {}
    monkeypatch.setattr(bus.notebook, "names", lambda: found)
    return found


@pytest.fixture
def model():
    x = fs.placeholder(fs.float32, [None, 2], name="x")
    w = fs.Variable([[1.0], [2.0]], name="w")
    y = fs.matmul(x, w, name="y")
    return x, w, y, fs.reduce_sum(y, name="loss"), w.assign_add([[1.0], [1.0]], name="step")


@pytest.fixture
def session(model):
    with fs.Session() as sess:
        sess.run(fs.global_variables_initializer())
        yield sess


@pytest.fixture
def view(graph, model, session, monkeypatch, names):
    monkeypatch.setattr(bus, "PERIOD_S", 1e6)
    made = panel.PanelView(Comm())
    yield made
    made.close()


def choose(view, what, value):
    view.take({"kind": "choose", "what": what, "value": value})


def press_run(view):
    view.take({"kind": "command", "command_id": 7, "name": "run", "view": 1})
    return view._comm.reply


# -- from Python ----------------------------------------------------------------------------------


def test_what_is_chosen_runs_in_the_views_session(view, model, session):
    x, w, _, loss, step = model
    view.fetches = [loss, "y:0", w, step.op]
    assert view.fetches == ["loss:0", "y:0", "w/read:0", "step"]
    (need,) = view.needs
    assert (need.name, need.dtype, need.shape, need.value) == ("x:0", "float32", (None, 2), "")
    view.feeds = {x: [[1.0, 1.0]]}
    assert view.needs[0].value == "list of 1" and view.feeds == {"x:0": [[1.0, 1.0]]}
    steps = session.steps
    values = view.run()
    assert values[0] == 3.0 and values[1].tolist() == [[3.0]] and values[3] is None
    assert session.steps == steps + 1 and view.run()[0] == 5.0, "the step has changed the variable"
    assert [r.number for r in view.runs] == [1, 2] and view.runs[0].values["loss:0"] == 3.0


def test_one_fetch_needs_no_list_and_a_fed_tensor_cuts(view, model):
    view.fetches = model[3]
    view.feeds = {model[2]: np.ones((4, 1), np.float32)}
    assert [n.name for n in view.needs] == ["y:0"] and view.run() == [4.0]


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("los:0", fs.errors.InvalidArgumentError),
        (3, fs.errors.DTypeError),
        ([None], fs.errors.DTypeError),
    ],
)
def test_what_cannot_be_fetched_is_refused(view, value, error):
    with pytest.raises(error):
        view.fetches = value
    assert view.fetches == []


def test_it_is_said_what_is_missing(view, model):
    for act, said in (
        (lambda: None, "view.fetches = "),
        (lambda: setattr(view, "fetches", model[2]), r"view.feeds = \{'x:0': value\}"),
    ):
        act()
        with pytest.raises(fs.errors.FailedPreconditionError, match=said):
            view.run()
    with pytest.raises(fs.errors.InvalidArgumentError, match="a dict of values"):
        view.feeds = [1]
    with pytest.raises(fs.errors.InvalidArgumentError, match="given twice"):
        view.feeds = {model[0]: 1, "x:0": 2}


def test_without_a_session_it_is_said_how_to_make_one(graph, model):
    made = panel.PanelView(Comm())
    made.fetches = model[1]
    assert "sess = fs.Session()" in made.run_setup["problem"]
    with pytest.raises(fs.errors.FailedPreconditionError, match=r"fs\.Session"):
        made.run()
    made.close()


def test_two_runs_are_compared_and_one_is_kept_as_baseline(view, model):
    view.fetches = [model[2], model[3]]
    for number in (1.0, 1.0, 1.5):
        view.feeds = {"x": np.full((3, 2), number, np.float32)}
        view.run()
    assert [(c.name, c.max_abs) for c in view.changes()] == [("y:0", 1.5), ("loss:0", 4.5)]
    assert all(c.is_equal for c in view.changes(1, 2)) and view.run_setup["compared_with"] == 2
    view.baseline = 1
    for _ in range(10):
        view.run()
    assert view.run_setup["compared_with"] == 1 and view.runs[0].number == 1
    with pytest.raises(fs.errors.InvalidArgumentError, match="one of"):
        view.baseline = 2


def test_a_run_that_fails_is_told_with_its_operation(view, model):
    view.fetches = model[2]
    view.feeds = {"x": np.ones((2, 3), np.float32)}
    assert "expected shape" in view.needs[0].problem
    with pytest.raises(fs.errors.InvalidArgumentError, match="cannot feed"):
        view.run()
    latest = view.run_setup["latest"]
    assert latest["error"].startswith("InvalidArgumentError: cannot feed") and view.changes() == ()
    assert latest["failed_at"] == "x"


def test_views_of_a_graph_share_what_is_to_be_run(view, model):
    other = panel.PanelView(Comm())
    view.fetches = model[3]
    assert other.fetches == ["loss:0"] and other._comm.setup["fetches"] == ["loss:0"]
    other.close()
    view.fetches = model[2]
    assert other._comm.setup["fetches"] == ["loss:0"], "it is told nothing more"


# -- from the picture -----------------------------------------------------------------------------


def test_a_page_chooses_and_types(view, names):
    choose(view, "fetches", ["loss:0", "loss:0"])
    assert view.fetches == ["loss:0"] and view._comm.setup["problem"] == "give a value for x"
    choose(view, "feed", ["x:0", "[[1, 2]]"])
    assert view.needs[0].value == "float32[1,2]" and view.feeds == {"x:0": [[1, 2]]}
    assert press_run(view)["ok"] and view._comm.setup["latest"]["fetched"][0]["text"] == "5"
    names["batch"] = np.ones((4, 2))
    choose(view, "feed", ["x:0", " batch "])
    assert view.feeds == {"x:0": FromNotebook("batch")} and view.needs[0].value == "float64[4,2]"
    names["batch"] = np.zeros((4, 2))
    assert press_run(view)["ok"] and view.runs[-1].values["loss:0"] == 0.0, "its value of now"
    choose(view, "feed", ["x:0", None])
    assert view.feeds == {} and view.needs[0].value == ""


def test_nothing_that_is_typed_is_executed(view, names, monkeypatch):
    ran = []
    names["f"] = lambda: ran.append(1)
    choose(view, "fetches", ["loss:0"])
    for text in ("f()", "__import__('os').system('x')", "f.x", "x[0]", "1 + 2", "[f()]", "("):
        choose(view, "feed", ["x:0", text])
        assert view.needs[0].problem.startswith("write a literal"), text
        reply = press_run(view)
        assert not reply["ok"] and reply["message"] == "give a value for x"
    assert not ran and not view.runs
    for text in ("(" * 5000, "9" * 20_000, "-" * 9000 + "1"):
        choose(view, "feed", ["x:0", text])
        assert view.needs[0].problem


def test_a_name_that_is_not_there_or_does_not_fit_is_told(view, names, model, monkeypatch):
    choose(view, "fetches", ["loss:0"])
    names.update(images=np.ones((2, 3)), x=model[0], words="no number")
    for text, said in (
        ("image", "did you mean images"),
        ("images", "expected shape"),
        ("x", "run it first"),
        ("words", "float32"),
        ("'text'", "float32"),
        ("None", ""),
    ):
        choose(view, "feed", ["x:0", text])
        assert said in view.needs[0].problem and view.needs[0].problem, text
    monkeypatch.setattr(bus.notebook, "names", None)
    choose(view, "feed", ["x:0", "images"])
    assert "%load_ext flowscope" in view.needs[0].problem


def test_an_object_of_the_user_is_not_asked_anything_before_the_run(view, names):
    class Odd:
        def __array__(self, *args, **kwargs):
            asked.append(1)
            return np.ones((1, 2))

        def __len__(self):
            asked.append(2)

    asked = []
    names["odd"] = Odd()
    choose(view, "fetches", ["loss:0"])
    choose(view, "feed", ["x:0", "odd"])
    assert view.needs[0].value == "Odd" and not asked
    assert press_run(view)["ok"] and asked and view.runs[-1].values["loss:0"] == 3.0


def test_what_the_graph_has_not_is_told_and_kept(view):
    choose(view, "fetches", ["gone:0"])
    assert "gone" in view._comm.setup["problem"] and view.fetches == ["gone:0"]
    assert not press_run(view)["ok"]
    choose(view, "baseline", 3)
    assert "one of []" in view._comm.reply["message"]


def test_while_a_cell_runs_the_run_waits(view, monkeypatch):
    choose(view, "fetches", ["w/read:0"])
    monkeypatch.setattr(bus.notebook, "cell_running", True)
    reply = press_run(view)
    assert reply == {**reply, "ok": True, "message": "runs when the cell has ended"}
    assert view._comm.setup["state"] == "waiting" and not view.runs
    assert press_run(view)["message"] == "a run is waiting already"
    bus.notebook.cell_running = False
    between_cells._cell_ended()
    assert view._comm.setup["state"] == "ready" and len(view.runs) == 1


def test_an_error_in_an_asked_run_stays_with_the_run(view, model):
    bad = fs.check_numerics(fs.log(fs.reduce_sum(model[0])), "not finite", name="check")
    view.fetches = bad
    choose(view, "feed", ["x:0", "[[-1.0, -1.0]]"])
    assert press_run(view)["ok"]
    latest = view._comm.setup["latest"]
    assert "not finite" in latest["error"] and latest["failed_at"] == "check"
    assert view._comm.setup["state"] == "ready"


def test_the_end_of_a_cell_looks_at_the_variables_again(view, names):
    choose(view, "fetches", ["loss:0"])
    choose(view, "feed", ["x:0", "later"])
    assert view._comm.setup["problem"] == "give a value for x"
    names["later"] = np.ones((1, 2))
    between_cells._cell_ended()
    assert view._comm.setup["problem"] == ""


def test_what_python_has_given_has_no_text():
    assert Fed.of(3.0).text == "" and Fed.of(FromNotebook("x")).text == "x"
    assert Fed.typed("  ").is_missing
