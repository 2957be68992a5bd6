"""The panel of the cluster: workers as rows, what each waits for, and what is wrong, said first."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from live_host import LiveHost
from playwright.sync_api import Page, expect

import flowscope as fs
from flowscope.cluster.watch.status import (
    ClusterStatus,
    LostState,
    QueueFill,
    WaitStatus,
    WorkerStatus,
)
from flowscope.cluster.watch.waits import by_gravity, findings, joined, state_found
from flowscope.live.watchers.bus import LiveChannel
from flowscope.runtime.session.engine import Engine


def task(number: int) -> str:
    return f"/job:worker/replica:0/task:{number}"


def worker(number: int, **told: Any) -> WorkerStatus:
    made = WorkerStatus(
        task(number), f"tcp://10.0.0.{number}:4{number}217", "5f", f"node-{number}", 47110 + number,
        (f"{task(number)}/device:CPU:0", f"{task(number)}/device:GPU:0"), "ok", "", 0.1,
        1_100_000_000, 4_000_000_000, 52_400_000, 1204, 1, 48_000_000, 1_200_000, 0.0032, 0.000041,
        0.000082, 1_900_000_000.0, (), "sockets",
    )  # fmt: skip
    return replace(made, **told)


CLIENT = replace(
    worker(0), task="/job:client/replica:0/task:0", worker="", host="node-0", memory_limit=None,
    devices=("/job:client/replica:0/task:0/device:CPU:0",), clock_ahead_s=None, round_trip_s=None,
    bytes_per_s=None, held_bytes=0,
)  # fmt: skip


def status(is_hung: bool) -> ClusterStatus:
    """Two workers wait for a third one, which hangs or is late; its queue is nearly full."""
    wait = WaitStatus(
        "c", 7, f"{task(0)}/device:CPU:0", f"{task(2)}/device:GPU:0", "h:0", "value", 2.14
    )
    waits = joined(
        [wait, replace(wait, device=CLIENT.devices[0], peer=wait.device, what="y:0", seconds=2.3)]
    )
    told = {"health": "hung", "reason": "its process is stopped", "silent_s": 2.2}
    last = worker(2, memory_bytes=3_700_000_000, queues=(QueueFill("jobs", 7, 8, 1, 0),))
    sealed = worker(1, memory_bytes=2_700_000_000, transport="dask", is_encrypted=True)
    workers = (CLIENT, worker(0), sealed, last)
    if is_hung:
        workers = (*workers[:-1], replace(last, **told))
    health = {w.task: (w.health, w.reason) for w in workers}
    found = findings(waits, health)
    page = "http://127.0.0.1:8787/status"
    return ClusterStatus("fs://7", "tcp://10.0.0.1:8786", page, workers, waits, found)


class Recorded:
    """What a cluster said."""

    told = status(is_hung=True)

    def status(self) -> ClusterStatus:
        return self.told


@pytest.fixture
def recorded() -> Recorded:
    return Recorded()


@pytest.fixture
def own() -> Engine:
    return Engine()


@pytest.fixture
def feed(graph: Any, own: Engine, recorded: Recorded) -> LiveChannel:
    h = fs.exp(fs.placeholder(fs.float32, [3], name="x"), name="h")
    fs.reduce_sum(h, name="y")
    own.clusters["fs://7"] = recorded
    with own.as_default():
        return LiveChannel(graph)


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (600, "dark")])
def test_workers_are_rows_and_a_worker_that_hangs_is_named_first(
    host: LiveHost, page: Page, recorded: Recorded, tmp_path: Path, width: int, theme: str
) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    host.start(theme)
    stage = page.get_by_test_id("fs-stage")
    stage.press("C")
    panel = page.get_by_test_id("fs-cluster")
    rows = panel.locator("tbody tr")
    host.pump(lambda: rows.count() == 4)
    expect(page.get_by_test_id("fs-cluster-note")).to_contain_text("3 workers: 2 ok, 1 hung")
    finding = page.get_by_test_id("fs-cluster-findings").locator("li").first
    expect(finding).to_contain_text("worker 2 hangs (its process is stopped): worker 0 has waited")
    expect(panel.get_by_role("link", name="Dask dashboard")).to_have_attribute(
        "href", "http://127.0.0.1:8787/status"
    )
    last = rows.nth(3)
    expect(last).to_have_attribute("data-health", "hung")
    expect(last).to_contain_text("3.70 GB of 4.00 GB")
    reached = rows.nth(1).locator(".fs-transport")
    expect(reached).to_have_text("sockets, no TLS")
    expect(reached).to_have_attribute("title", re.compile(r"^This worker .* not encrypted\.$"))
    expect(rows.nth(2).locator(".fs-transport")).to_have_text("Dask's ports, TLS")
    waits = rows.nth(1).locator(".fs-waits")
    expect(waits).to_contain_text(re.compile(r"h:0 of GPU:0 of worker 2\s*for 2\.14"))
    box, around = waits.bounding_box(), panel.bounding_box()
    assert box is not None and around is not None
    assert box["x"] + box["width"] <= around["x"] + around["width"], "what counts is in sight"
    page.screenshot(path=tmp_path / f"cluster-{width}-{theme}.png")
    assert panel.evaluate("p => p.scrollWidth <= p.clientWidth + 1")
    # What a worker waits for leads to the operation; a device shows its operations alone.
    rows.nth(1).get_by_role("button", name="h:0 of GPU:0 of worker 2").click()
    host.pump(lambda: host.chosen.get("selection") == "h")
    recorded.told = status(is_hung=False)
    host.pump(lambda: "hangs" not in panel.inner_text())
    expect(finding).to_contain_text("GPU:0 of worker 2 has not sent yet")
    stage.press("C")
    expect(panel).to_be_hidden()


def sixteen() -> ClusterStatus:
    """Workers with long names of every kind, each with eight GPUs; all wait for the last one."""
    name = "/job:preprocessing_of_samples/replica:0/task:{}".format
    op = "model/encoder/layer_with_a_long_name/attention/output/add:0"
    workers = [
        worker(
            number, task=name(number), worker=f"tcp://worker-{number}.training.example.org:40217",
            host=f"gpu-node-{number:03}.rack-7.training.example.org", transport="dask and sockets",
            devices=tuple(f"{name(number)}/device:GPU:{gpu}" for gpu in range(8)), steps=1_234_567,
            queues=(QueueFill("pipeline/shuffled_batches_of_samples", 7, 4096, 1, 0),),
        )
        for number in range(16)
    ]  # fmt: skip
    last = workers[-1].devices[-1]
    waits = [
        WaitStatus("c", 7, device, last, op, "value", 2.0 + number)
        for number, one in enumerate(workers[:-1])
        for device in one.devices[:5]
    ]
    told = joined(waits)
    found = findings(told, {w.task: (w.health, w.reason) for w in workers})
    return ClusterStatus("fs://7", "", "http://127.0.0.1/", (CLIENT, *workers), told, found)


#: What is cut and has no title with the whole text; and lines of text that lie on each other.
UNREADABLE = """panel => {
    const found = [];
    const all = [...panel.querySelectorAll("*")].filter(e => e.checkVisibility());
    for (const e of all) {
        const text = e.textContent.trim();
        const style = getComputedStyle(e);
        const hides = (overflow, all, shown) => all > shown + 1 &&
            (overflow === "hidden" || overflow === "clip");
        const isCut = hides(style.overflowX, e.scrollWidth, e.clientWidth) ||
            hides(style.overflowY, e.scrollHeight, e.clientHeight);
        if (!isCut || text === "" || e.matches("thead, thead *")) continue;
        const titles = [];
        for (let at = e; at !== null && at !== panel; at = at.parentElement) titles.push(at.title);
        const hasAll = titles.some(t => t.includes(text)) || e.matches(".fs-transport[title]");
        if (!hasAll) found.push(`cut: ${e.tagName} ${e.className} ${text}`);
    }
    const texts = all.filter(e => e.matches(
        "a, b, li, small, .fs-line, .fs-clamped, .fs-since, .fs-reason"));
    const boxes = texts.map(e => [e, e.getBoundingClientRect()]);
    boxes.forEach(([e, a], i) => boxes.slice(i + 1).forEach(([o, b]) => {
        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (across > 1 && down > 3) found.push(`overlap: ${e.textContent} | ${o.textContent}`);
    }));
    const around = panel.getBoundingClientRect();
    const out = boxes.filter(([, box]) => box.right > around.right + 1);
    found.push(...out.map(([e]) => `out: ${e.textContent}`));
    return found;
}"""


@pytest.mark.parametrize(
    ("width", "theme"),
    [
        (1600, "light"), (1280, "light"), (1280, "dark"), (900, "light"), (700, "light"),
        (600, "dark"), (480, "light"), (300, "dark"), (230, "light"),
    ],
)  # fmt: skip
def test_many_workers_with_long_names_are_readable_at_every_width(
    host: LiveHost, page: Page, recorded: Recorded, tmp_path: Path, width: int, theme: str
) -> None:
    recorded.told = sixteen()
    page.set_viewport_size({"width": max(width, 1280), "height": 800})
    host.start(theme)
    page.evaluate("w => { document.querySelector('#host').style.width = w }", f"{width - 16}px")
    page.get_by_test_id("fs-stage").press("C")
    panel = page.get_by_test_id("fs-cluster")
    rows = panel.locator("tbody tr")
    host.pump(lambda: rows.count() == 17)
    page.screenshot(path=tmp_path / f"sixteen-{width}-{theme}.png")
    assert panel.evaluate(UNREADABLE) == []
    assert panel.evaluate("p => p.scrollWidth <= p.clientWidth + 1")
    name = rows.nth(16).locator("td").first
    expect(name).to_have_attribute("title", re.compile(r"gpu-node-015\.rack-7.*\n.*GPU:7.*", re.S))


def test_a_title_and_a_pressed_button_stay_while_answers_come(
    host: LiveHost, page: Page, recorded: Recorded
) -> None:
    host.start("light")
    page.get_by_test_id("fs-stage").press("C")
    rows = page.get_by_test_id("fs-cluster").locator("tbody tr")
    host.pump(lambda: rows.count() == 4)
    row = rows.nth(1)
    wait = row.get_by_role("button", name="h:0 of GPU:0 of worker 2").element_handle()
    name = row.locator("td").first.element_handle()
    told = recorded.told
    again = [replace(w, steps=w.steps + 1, running=2) for w in told.workers]
    recorded.told = replace(told, workers=tuple(again))
    host.pump(lambda: "2 running" in row.inner_text())
    assert wait.evaluate("e => e.isConnected") and name.evaluate("e => e.isConnected")
    assert "2 running" in (name.get_attribute("title") or "")


def test_without_a_cluster_it_says_how_to_connect_one(
    host: LiveHost, page: Page, own: Engine
) -> None:
    own.clusters.clear()
    host.start("light")
    page.get_by_test_id("fs-stage").press("C")
    panel = page.get_by_test_id("fs-cluster")
    host.pump(lambda: "connected to no cluster" in panel.inner_text())
    expect(panel).to_contain_text("fs.cluster.connect(client)")


def test_a_worker_that_was_started_again_is_not_shown_as_well_until_its_state_is_there(
    host: LiveHost, page: Page, recorded: Recorded, tmp_path: Path
) -> None:
    lost = (LostState("variable", "w"), LostState("queue", "jobs"), LostState("variable", "b"))
    before, last = status(is_hung=False), worker(2, lost=lost)
    found = by_gravity([*before.findings, state_found(last.task, lost)])
    recorded.told = replace(before, workers=(*before.workers[:-1], last), findings=found)
    host.start("light")
    stage = page.get_by_test_id("fs-stage")
    stage.press("C")
    panel = page.get_by_test_id("fs-cluster")
    rows = panel.locator("tbody tr")
    host.pump(lambda: rows.count() == 4)
    expect(page.get_by_test_id("fs-cluster-note")).to_have_text(
        re.compile(r"^3\s+workers: 2 ok, 1 without its state$")
    )
    well, row = rows.nth(1), rows.nth(3)
    said = row.locator(".fs-lost-state")
    expect(said).to_have_text(re.compile(r"^lost: 2\s+variables and 1\s+queue$"))
    expect(said).to_have_attribute("title", re.compile("^variable w, queue jobs, variable b: "))
    dot = row.get_by_role("img", name="worker 2: ok, 2 variables and 1 queue lost")
    colour = "e => getComputedStyle(e).backgroundColor"
    green = well.get_by_role("img", name="worker 0: ok").evaluate(colour)
    assert dot.evaluate(colour) != green
    finding = page.get_by_test_id("fs-cluster-findings").locator("li").first
    expect(finding).to_contain_text("worker 2 was started again and has lost 2 variables")
    assert panel.evaluate(UNREADABLE) == []
    page.screenshot(path=tmp_path / "cluster-lost-state.png")
    recorded.told = before
    host.pump(lambda: "lost" not in panel.inner_text())
    restored = rows.nth(3).get_by_role("img", name="worker 2: ok", exact=True)
    assert restored.evaluate(colour) == green
    expect(page.get_by_test_id("fs-cluster-note")).to_have_text(re.compile(r"^3\s+workers$"))
