"""The SVG as text: well formed, escaped, the same each time; and pictures that were looked at."""

from __future__ import annotations

import os
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import picture_graphs as graphs
import pytest

from flowscope.live.schema import Node
from flowscope_widgets import picture

SNAPSHOTS = Path(__file__).parent / "snapshots"
SVG = "{http://www.w3.org/2000/svg}"

CASES: dict[str, tuple[list[Node], tuple[str, ...]]] = {
    "mlp": (graphs.mlp(), ()),
    "variable-open": (graphs.mlp(), ("layer1/w",)),
    "awkward": (graphs.awkward(), ("s & t", "u")),
    "loop": (graphs.loop(), ()),
    "frames": (graphs.frames(), ()),
    "functions": (graphs.functions(), ()),
    "towers": (graphs.towers(5, 3), ("tower2/layer1",)),
    "tangle": (graphs.tangle(30, seed=1), ()),
    "empty": ([], ()),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("path", ["", os.environ.get("PATH", "")], ids=["own", "as installed"])
def test_it_is_well_formed(name: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", path)
    nodes, opened = CASES[name]
    root = ET.fromstring(picture.svg(nodes, open_scopes=opened, title="A <title> & more"))
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    assert root.get("viewBox")
    assert "max-width" in root.get("style", "")
    assert root.findtext(f"{SVG}title") == "A <title> & more"
    assert "operation" in (root.findtext(f"{SVG}desc") or "")


@pytest.mark.parametrize("name", CASES)
def test_snapshots(name: str, own_layout: None) -> None:
    """Only our own layout: dot's positions differ between its versions."""
    nodes, opened = CASES[name]
    drawn = _rounded(picture.svg(nodes, open_scopes=opened, title=name)) + "\n"
    kept, changed = SNAPSHOTS / f"{name}.svg", SNAPSHOTS / f"{name}-changed.svg"
    if os.environ.get("FS_SNAP") == "accept":
        SNAPSHOTS.mkdir(exist_ok=True)
        kept.write_text(drawn, "utf-8")
    changed.unlink(missing_ok=True)
    if not kept.exists() or kept.read_text("utf-8") != drawn:
        changed.write_text(drawn, "utf-8")
        pytest.fail(f"the picture changed: compare {kept.name} and {changed.name}; `make snap`")


def _rounded(svg: str) -> str:
    return re.sub(r"-?\d+\.\d+", lambda number: f"{round(float(number[0]))}", svg)


def test_the_same_graph_gives_the_same_text() -> None:
    assert picture.svg(graphs.mlp()) == picture.svg(graphs.mlp())


def test_names_are_escaped(own_layout: None) -> None:
    svg = picture.svg(graphs.awkward(), open_scopes=("s & t",), title='"<&>')
    root = ET.fromstring(svg)
    texts = {text.text for text in root.iter(f"{SVG}text")}
    assert {"a<b>&\"c'", "<script>", "s & t", "Pla<ce&holder", '"<&>'} <= texts
    assert "<script" not in svg
    assert "\u0007" not in svg


def test_kinds_differ_by_shape(own_layout: None) -> None:
    m = graphs.Maker()
    ops = [m.op("a", "Placeholder"), m.op("b", "VarHandleOp"), m.op("c", "Const"), m.op("d", "Neg")]
    m.op("sum", "AddN", ops)
    root = ET.fromstring(picture.svg(m.nodes))
    groups = {g.get("data-op"): g for g in root.iter(f"{SVG}g")}
    outlines = {_outline(groups[str(k)]) for k in range(4)}
    assert len(outlines) == 4


def _outline(group: ET.Element) -> tuple[str, ...]:
    """Tags, corner radii and path commands, without lengths and colours."""
    shapes = [c for c in group if c.tag in (f"{SVG}rect", f"{SVG}path")]
    return tuple(
        f"{c.tag}{c.get('rx', '')}{re.sub('[^a-zA-Z]', '', c.get('d', ''))}" for c in shapes
    )


def test_a_function_is_named_at_its_body_and_at_its_calls(own_layout: None) -> None:
    nodes = graphs.functions()
    root = ET.fromstring(picture.svg(nodes))
    told = [text.text for text in root.iter(f"{SVG}text")]
    assert told.count("ƒ layer") == 3
    assert {"4 ops, 2 calls", "Relu → result", "2 ops, 1 call"} <= set(told)
    (call,) = [g for g in root.iter(f"{SVG}g") if g.get("data-op") == str(nodes[9].id)]
    assert "calls layer" in (call.findtext(f"{SVG}title") or "")
    opened = {r.get("data-scope") for r in root.iter(f"{SVG}rect")} - {None}
    assert opened == {"layer", "gradients"}, "a gradient stays closed"


def test_control_edges_are_dashed_and_bundles_counted(own_layout: None) -> None:
    m = graphs.Maker()
    x = m.op("x", "Placeholder", (), (2,))
    y = m.op("y", "Mul", [x, x], (2,))
    m.op("z", "Neg", [y], control=["x"])
    svg = picture.svg(m.nodes)
    assert svg.count("stroke-dasharray") == 1
    assert "float64[2] ×2" in svg


def test_devices_are_named_where_there_are_several(own_layout: None) -> None:
    nodes = graphs.chain(6)
    assert "cpu:0" not in _texts([replace(n, placed="cpu:0") for n in nodes])
    two = [replace(n, placed=f"gpu:{n.id % 2}") for n in nodes]
    assert {"gpu:0", "gpu:1"} <= _texts(two)
    assert picture.svg(two).count("fs-device0") == 3


def _texts(nodes: list[Node]) -> set[str | None]:
    return {text.text for text in ET.fromstring(picture.svg(nodes)).iter(f"{SVG}text")}


@pytest.mark.slow
def test_a_note_says_what_is_hidden(own_layout: None) -> None:
    assert "1 000 operations more not shown" in picture.svg(graphs.chain(1400))
    assert "edges not shown" in picture.svg(graphs.dense(100))
    assert "no operations yet" in picture.svg([])
    assert "operations in closed scopes" in picture.svg(graphs.towers(20, 3))
