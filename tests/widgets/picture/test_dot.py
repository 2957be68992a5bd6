"""The picture in Graphviz's language: read back by a small parser, and by `dot` where it is."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import NamedTuple

import picture_graphs as graphs
import pytest

import flowscope as fs
from flowscope.live.bus import Feed
from flowscope.live.schema import Node
from flowscope_widgets import panel, picture

pytestmark = pytest.mark.usefixtures("drawn")

CASES: dict[str, tuple[list[Node], tuple[str, ...]]] = {
    "mlp": (graphs.mlp(), ("layer1/w",)),
    "awkward": (graphs.awkward(), ("s & t", "u")),
    "loop": (graphs.loop(), ()),
    "frames": (graphs.frames(), ()),
    "functions": (graphs.functions(), ()),
    "towers": (graphs.towers(5, 3), ("tower2/layer1",)),
    "tangle": (graphs.tangle(30, seed=1), ()),
    "empty": ([], ()),
}


def nodes_of(graph: fs.Graph) -> list[Node]:
    return list(Feed(graph).describe().graph.added)


TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|->|[{}\[\];=,]|[\w.]+|\s+')


class Read(NamedTuple):
    """What a text in DOT says."""

    nodes: dict[str, str]
    edges: list[tuple[str, str]]
    clusters: list[str]


def tokens(text: str) -> list[str]:
    """Returns the tokens of DOT as Graphviz knows them; fails at what is none."""
    found, at = [], 0
    while at < len(text):
        match = TOKEN.match(text, at)
        assert match is not None, f"no token of DOT: {text[at : at + 40]!r}"
        at = match.end()
        if match[0].strip():
            found.append(match[0])
    return found


def read(text: str) -> Read:
    """Reads DOT: braces and brackets must match, and edges join nodes that there are."""
    words = tokens(text)
    assert words[0] == "digraph" and words[-1] == "}"
    assert words.count("{") == words.count("}") and words.count("[") == words.count("]")
    node = re.compile(r'^\s*(n\d+) \[label="((?:[^"\\]|\\.)*)"', re.MULTILINE)
    nodes = {name: label.replace(r"\"", '"') for name, label in node.findall(text)}
    edges = re.findall(r"^  (n\d+) -> (n\d+)\b", text, re.MULTILINE)
    clusters = re.findall(r"subgraph (cluster_n\d+) \{", text)
    assert all(a in nodes and b in nodes for a, b in edges)
    assert set(re.findall(r'l(?:head|tail)="(\w+)"', text)) <= set(clusters)
    return Read(nodes, edges, clusters)


def check_with_graphviz(text: str) -> None:
    """Lets Graphviz read it, where it is installed."""
    found = shutil.which("dot")
    if found is not None:
        subprocess.run([found, "-Tsvg"], input=text.encode(), check=True, capture_output=True)


@pytest.mark.parametrize("name", CASES)
def test_every_graph_is_read_back(name: str) -> None:
    nodes, opened = CASES[name]
    text = picture.dot(nodes, open_scopes=opened)
    assert read(text).nodes or not nodes
    check_with_graphviz(text)


def test_boxes_edges_and_open_scopes(graph: fs.Graph) -> None:
    x = fs.placeholder(fs.float32, [2], name="x")
    with fs.name_scope("outer"), fs.name_scope("inner"):
        y = fs.exp(x, name="y")
    fs.negative(y, name="z")
    closed = read(picture.dot(nodes_of(graph)))
    opened = picture.dot(nodes_of(graph), open_scopes=["outer/inner"], title="mine")
    told = read(opened)
    assert len(told.clusters) == 2 and len(told.edges) == len(closed.edges) == 2
    assert {label.split("\\n")[0] for label in told.nodes.values()} == {"x", "y", "z"}
    assert 'digraph "mine"' in opened and "parallelogram" in opened and "float32[2]" in opened


def test_no_name_leaves_its_quotes(graph: fs.Graph) -> None:
    odd = 'a"]; b -> c [label="<i>'
    x = fs.constant(1.0, name="x")
    text = picture.dot(nodes_of(graph), title=odd + "\\ \n \x00")
    assert x is not None and len(read(text).nodes) == 1
    assert 'b -> c [label=\\"<i>' in text


def test_a_view_gives_what_it_shows(graph: fs.Graph) -> None:
    with fs.name_scope("layer"):
        fs.exp(fs.constant(1.0, name="one"), name="y")
    fs.constant(2.0, name="two")

    class Comm:
        def send(self, data, buffers=None):
            pass

    view = panel.PanelView(Comm())
    view.open_scopes = {"layer": True}
    assert len(read(view.to_dot()).nodes) == 3
    view.close()
