"""A graph without scopes, and names without end: shown, in a page that answers."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from bare_host import Host
from playwright.sync_api import Page, expect

import flowscope as fs
from flowscope.live.protocol.schema import GraphChange
from flowscope.live.watchers.bus import LiveChannel

#: Operations of the graph, all in one scope.
MANY = 78_000


def test_a_graph_of_78_000_operations_without_a_scope_is_shown_and_answers(
    page: Page, static: Path, graph: fs.Graph
) -> None:
    y = fs.placeholder(fs.float32, [4], name="x")
    for name in ("first", "second"):
        y = fs.tanh(y, name=name)
    snapshot = LiveChannel(graph).describe()
    x, first, second = snapshot.graph.added
    rest = [replace(second, id=k, name=f"op{k}", inputs=((k - 1, 0),)) for k in range(2, MANY)]
    host = Host(page, static)
    page.set_default_timeout(120_000)
    host.start(replace(snapshot, graph=GraphChange(1, (x, first, *rest), ())))
    expect(host.find("nodes")).to_have_text(re.compile(r"78\s000\sops"))
    host.stage.press("/")
    page.get_by_role("searchbox").first.fill("name:op77999")
    expect(host.find("find")).to_contain_text("1")


def test_a_name_of_300_characters_breaks_nothing(page: Page, static: Path, graph: fs.Graph) -> None:
    name = "long" * 75
    with fs.name_scope(f"{name}s"):
        y = fs.exp(fs.placeholder(fs.float32, [4], name=f"{name}x"), name=name)
    fs.negative(y, name="end")
    host = Host(page, static)
    page.set_viewport_size({"width": 1280, "height": 800})
    host.start(LiveChannel(graph).describe(), chosen={"selection": f"{name}s/{name}"})
    expect(host.find("inspector")).to_contain_text("longlong")
    room = page.evaluate("() => [document.documentElement.scrollWidth, innerWidth]")
    assert room[0] <= room[1]
