"""Pictures as `graphviz.Digraph`s: read back by pydot, by `dot` where it is, and compared."""

from __future__ import annotations

import re
import shutil
import subprocess
import warnings
from typing import Any, NamedTuple

import graphviz
import picture_graphs as graphs
import pydot
import pytest

import flowscope as fs
from flowscope.errors import DTypeError, FailedPreconditionError, NotFoundError
from flowscope.live.protocol.schema import Node
from flowscope.live.watchers.bus import LiveChannel
from flowscope_widgets import digraphs, panel, picture

pytestmark = pytest.mark.usefixtures("drawn")

CASES: dict[str, tuple[list[Node], tuple[str, ...]]] = {
    "mlp": (graphs.mlp(), ("layer1/w",)),
    "awkward": (graphs.awkward(), ("s & t", "u")),
    "loop": (graphs.loop(), ()),
    "frames": (graphs.frames(), ()),
    "all of frames": (graphs.frames(), ("*",)),
    "functions": (graphs.functions(), ()),
    "all of functions": (graphs.functions(), ("*",)),
    "towers": (graphs.towers(5, 3), ("tower2/layer1",)),
    "all of towers": (graphs.towers(5, 3), ("*",)),
    "tangle": (graphs.tangle(30, seed=1), ()),
    "empty": ([], ()),
}


class Read(NamedTuple):
    """What a text in DOT says: labels and attributes by node, edges, labels by cluster."""

    nodes: dict[str, dict[str, str]]
    edges: list[tuple[str, str]]
    clusters: dict[str, dict[str, str]]
    #: The cluster of each node.
    home: dict[str, str]


def unquoted(name: str) -> str:
    return name[1:-1].replace('\\"', '"') if name.startswith('"') else name


def plain(attributes: dict[str, Any]) -> dict[str, str]:
    return {name: unquoted(str(value)) for name, value in attributes.items()}


def read(text: str) -> Read:
    """Reads DOT with pydot; what an edge names must be there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyparsing's of names that pydot uses
        (graph,) = pydot.graph_from_dot_data(text)
    found = Read({}, [], {}, {})
    collect(graph, "", found)
    assert {end for edge in found.edges for end in edge} <= found.nodes.keys()
    return found


def collect(graph: pydot.Graph, home: str, found: Read) -> None:
    for node in graph.get_nodes():
        name = unquoted(node.get_name())
        if name in ("graph", "node", "edge") and not node.get_name().startswith('"'):
            continue
        assert name not in found.nodes, f"{name!r} is written twice"
        found.nodes[name] = plain(node.get_attributes())
        found.home[name] = home
    for edge in graph.get_edges():
        found.edges.append((unquoted(edge.get_source()), unquoted(edge.get_destination())))
    for inner in graph.get_subgraphs():
        name = unquoted(inner.get_name())
        (told,) = inner.get_graph_defaults()
        found.clusters[name] = plain(told)
        collect(inner, name, found)


def drawn_by_graphviz(text: str) -> str:
    """Returns the SVG that `dot` makes, which must not warn; "" where it is not installed."""
    found = shutil.which("dot")
    if found is None:
        return ""
    run = subprocess.run([found, "-Tsvg"], input=text, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    return run.stdout


def source(nodes: list[Node], **more: Any) -> str:
    """Returns the text of a picture; that of the package must be the same."""
    drawn = digraphs.json.loads(picture.dot(nodes, **more))
    made = graphviz.Digraph(
        graphviz.escape(drawn["name"]),
        graph_attr=drawn["graph"],
        node_attr=drawn["node"],
        edge_attr=drawn["edge"],
        body=drawn["body"],
    )
    assert made.source == drawn["text"]
    return str(made.source)


@pytest.mark.parametrize("name", CASES)
def test_every_graph_is_read_back_and_drawn(name: str) -> None:
    nodes, opened = CASES[name]
    text = source(nodes, open_scopes=opened)
    assert text == source(nodes, open_scopes=opened)
    assert bool(read(text).nodes) == bool(nodes)
    drawn_by_graphviz(text)


def test_boxes_edges_and_open_scopes(graph: fs.Graph) -> None:
    x = fs.placeholder(fs.float32, [2], name="x")
    with fs.name_scope("outer"), fs.name_scope("inner"):
        y = fs.exp(x, name="y")
    fs.negative(y, name="z")
    closed = read(fs.to_graphviz(graph, open_scopes=[]).source)
    opened = read(fs.to_graphviz(graph, open_scopes=["outer/inner"], title="mine").source)
    assert opened.clusters.keys() == {"cluster_outer/", "cluster_outer/inner/"}
    assert opened.nodes.keys() == {"x", "outer/inner/y", "z"}
    assert opened.edges == [("x", "outer/inner/y"), ("outer/inner/y", "z")]
    assert closed.nodes.keys() == {"x", "outer/", "z"} and len(closed.edges) == 2
    assert opened.nodes["x"]["shape"] == "parallelogram"
    assert opened.nodes["z"]["label"] == r"z\nNeg\nfloat32[2]"
    with pytest.raises(NotFoundError, match="no scope 'out'"):
        fs.to_graphviz(graph, open_scopes=["out"])


def test_loops_and_branches_are_clusters(graph: fs.Graph) -> None:
    x = fs.placeholder(fs.float32, [], name="x")
    y = fs.while_loop(lambda v: v < 10.0, lambda v: v * 2.0, [x], name="doubled")
    fs.cond(y > 12.0, lambda: y - 1.0, lambda: y + 1.0, name="either")
    text = fs.to_graphviz(graph, open_scopes="*").source
    told = read(text)
    labels = {told.clusters[c]["label"].split(r"\n")[0] for c in told.clusters}
    assert {"doubled", "body", "cond", "either", "then", "else"} <= labels
    styles = {c: told.clusters[c]["style"] for c in ("cluster_doubled/", "cluster_either/")}
    assert styles == {"cluster_doubled/": "rounded,bold", "cluster_either/": "rounded,dashed"}
    results = [name for name in told.nodes if name.endswith(" results")]
    assert all(told.home[name] == f"cluster_{name.removesuffix(' results')}" for name in results)
    assert "constraint=false" in text and drawn_by_graphviz(text) != "x"


def test_devices_are_colours_and_partitions_clusters(graph: fs.Graph) -> None:
    with fs.device("/cpu:0"):
        x = fs.placeholder(fs.float32, [4], name="x")
        y = fs.exp(x, name="y")
    with fs.device("/cpu:1"), fs.name_scope("far"):
        z = fs.negative(y, name="z")
    with fs.Session(config=fs.ConfigProto(device_count={"CPU": 3})) as session:
        session.run(z, {x: [1.0] * 4})
        plan = session.plan(z, [x])
        told = read(fs.to_graphviz(session, open_scopes="*").source)
        cut = read(fs.to_graphviz(plan, open_scopes="*").source)
    colours = {name: told.nodes[name]["fillcolor"] for name in ("y", "far/z")}
    assert len(set(colours.values())) == 2
    assert {n for n, c in told.home.items() if c == "cluster devices"} == {
        f"device /job:localhost/replica:0/task:0/device:CPU:{k}" for k in (0, 1)
    }
    lanes = [c for c in cut.clusters if c.startswith("cluster_") and c.count("/") == 1]
    assert len(lanes) == 2
    (send,) = [n for n, a in cut.nodes.items() if r"\nSend" in a["label"]]
    (recv,) = [n for n, a in cut.nodes.items() if r"\nRecv" in a["label"]]
    assert (send, recv) in cut.edges and cut.home[send] != cut.home[recv]
    assert {cut.clusters[lane]["color"] + "40" for lane in lanes} == set(colours.values())


def test_scopes_of_two_devices_have_a_stripe_of_each(graph: fs.Graph) -> None:
    nodes = [
        graphs.replace(node, placed=f"/job:a/device:CPU:{k % 2}")
        for k, node in enumerate(graphs.towers(2, 2))
    ]
    text = source(nodes, open_scopes=["tower0"])
    told = read(text)
    assert told.nodes["tower0/layer0/"]["style"] == "striped"
    assert re.fullmatch(r"#\w{8};0\.\d{3}:#\w{8}", told.nodes["tower0/layer0/"]["fillcolor"])
    drawn_by_graphviz(text)


ODD = [
    'a"]; b -> c [label="<i>',
    r"back\slash\N and \" end\\",
    "<<b>html<b>>",
    "&amp; &lt; &#65; & <",
    "node",
    "12.5",
    "two\nlines\tand\x00\x07",
    "x" * 300,
    "h\u00e4\u2603\U0001f600",
    "port:s:n",
]


@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
def test_no_name_leaves_its_quotes(odd: str) -> None:
    maker = graphs.Maker()
    maker.op("x", "Placeholder")
    maker.op(odd, "Neg", ["x"])
    maker.op(f"{odd}s/inner", "Neg", ["x"])
    text = source(maker.nodes, title=odd, open_scopes="*")
    told = read(text)
    assert len(told.nodes) == 3 and len(told.edges) == 2 and len(told.clusters) == 1
    svg = drawn_by_graphviz(text)
    if svg:
        shown = re.sub(r"[\x00-\x09\x0b-\x1f]", "\ufffd", odd)
        if len(shown) > 60:
            shown = f"{shown[:29]}\u2026{shown[-29:]}"
        assert shown.replace("\n", "") in texts_of(svg)


def texts_of(svg: str) -> set[str]:
    """Returns the texts of the boxes, the lines of one together."""
    from xml.etree import ElementTree

    space = "{http://www.w3.org/2000/svg}"
    found = set()
    for group in ElementTree.fromstring(svg).iter(f"{space}g"):
        lines = [t.text or "" for t in group.iter(f"{space}text")]
        found |= {"".join(lines[:k]).replace("\u00a0", " ") for k in range(1, len(lines) + 1)}
    return found


def test_a_small_change_of_the_graph_is_a_small_change_of_the_source(graph: fs.Graph) -> None:
    x = fs.placeholder(fs.float32, [2], name="x")
    fs.exp(x, name="y")
    before = fs.to_graphviz(graph).source.splitlines()
    fs.negative(x, name="z")
    after = fs.to_graphviz(graph).source.splitlines()
    assert [line for line in after if line in before] == before
    assert len(after) - len(before) == 2


class Comm:
    """A comm that nobody hears."""

    def send(self, data, buffers=None):
        pass


def test_a_view_gives_what_it_shows(graph: fs.Graph) -> None:
    with fs.name_scope("layer"):
        fs.exp(fs.constant(1.0, name="one"), name="y")
    fs.constant(2.0, name="two")
    view = panel.PanelView(Comm())
    view.open_scopes = {"layer": True}
    assert len(read(view.to_dot()).nodes) == 3
    assert view.to_dot() == fs.to_graphviz(view).source
    view.open_scopes = {"layer": False}
    assert read(view.to_dot()).nodes.keys() == {"layer/", "two"}
    view.isolated = "two"
    assert read(view.to_dot()).nodes.keys() == {"two"}
    view.close()


def test_a_recording_has_one(graph: fs.Graph) -> None:
    y = fs.exp(fs.constant(1.0, name="one"), name="y")
    with fs.Session() as session, fs.profile() as recorded:
        session.run(y)
    assert {"one", "y"} <= read(fs.to_graphviz(recorded).source).nodes.keys()


def test_what_cannot_be_drawn_is_told(graph: fs.Graph) -> None:
    with pytest.raises(DTypeError, match="a plan, a view or a recording to draw, got 3"):
        fs.to_graphviz(3)


def test_it_is_the_packages_own(graph: fs.Graph) -> None:
    fs.constant(1.0, name="one")
    made = fs.to_graphviz(title="my model/2")
    assert isinstance(made, graphviz.Digraph) and made.filename == "my_model_2.gv"
    made.graph_attr["rankdir"] = "LR"
    made.node("more", "of the user's")
    made.edge("one", "more")
    told = read(made.source)
    assert ("one", "more") in told.edges and "rankdir=LR" in made.source
    drawn_by_graphviz(made.source)


def test_it_is_a_picture_where_dot_is_and_a_text_elsewhere(
    graph: fs.Graph, monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:
    fs.constant(1.0, name="one")
    made = fs.to_graphviz(graph)
    if shutil.which("dot") is not None:
        assert "<svg" in made._repr_mimebundle_()["image/svg+xml"]
    monkeypatch.setenv("PATH", str(tmp_path))
    (text,) = made._repr_mimebundle_().values()
    assert text == f"{digraphs.NO_DOT}\n\n{made.source}"


def test_without_the_package_it_says_what_to_install(
    graph: fs.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "graphviz", None)
    with pytest.raises(FailedPreconditionError, match=r"flowscope\[lab\]"):
        fs.to_graphviz(graph)


def test_the_graph_of_a_feed_and_of_a_session_are_one(graph: fs.Graph) -> None:
    y = fs.exp(fs.constant(1.0, name="one"), name="y")
    with fs.Session() as session:
        session.run(y)
        assert fs.to_graphviz(session).source == fs.to_graphviz(LiveChannel(graph)).source
