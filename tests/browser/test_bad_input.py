"""A graph without scopes, names without end: told in a page that answers all the while."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from bare_host import Host
from playwright.sync_api import Page, expect

import flowscope as fs
from flowscope.live.bus import Feed
from flowscope.live.schema import GraphChange

#: Operations of the graph, all in one scope.
MANY = 78_000
#: Notes the longest time in which the page did nothing else.
NOTE_TASKS = """() => {
    window.longest = 0;
    new PerformanceObserver(list => {
        for (const {duration} of list.getEntries()) window.longest = Math.max(window.longest, duration);
    }).observe({entryTypes: ["longtask"]});
}"""


def test_a_graph_of_78_000_operations_without_a_scope_does_not_freeze_the_page(
    page: Page, static: Path, graph: fs.Graph
) -> None:
    y = fs.placeholder(fs.float32, [4], name="x")
    for name in ("first", "second"):
        y = fs.tanh(y, name=name)
    snapshot = Feed(graph).describe()
    x, first, second = snapshot.graph.added
    many = [x, first]
    for k in range(2, MANY):
        many.append(replace(second, id=k, name=f"op{k}", inputs=((k - 1, 0),)))
    host = Host(page, static)
    page.goto("about:blank")
    page.evaluate(NOTE_TASKS)
    page.set_default_timeout(120_000)
    host.start(replace(snapshot, graph=GraphChange(1, tuple(many), ())))
    expect(host.find("nodes")).to_have_text(re.compile(r"78\s000\sops"))
    longest = page.evaluate("() => window.longest")
    print(f"the longest task took {longest:.0f} ms")
    assert longest < 2000


def test_a_name_of_300_characters_breaks_nothing(page: Page, static: Path, graph: fs.Graph) -> None:
    name = "long" * 75
    with fs.name_scope(f"{name}s"):
        y = fs.exp(fs.placeholder(fs.float32, [4], name=f"{name}x"), name=name)
    fs.negative(y, name="end")
    host = Host(page, static)
    page.set_viewport_size({"width": 1280, "height": 800})
    host.start(Feed(graph).describe())
    for item in page.get_by_role("treeitem").all():
        item.click()
    room = page.evaluate("() => [document.documentElement.scrollWidth, innerWidth]")
    assert room[0] <= room[1]
