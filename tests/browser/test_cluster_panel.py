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
from flowscope.cluster.status import ClusterStatus, QueueFill, WaitStatus, WorkerStatus
from flowscope.cluster.waits import findings, joined
from flowscope.live.bus import Feed
from flowscope.runtime.engine import Engine


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
def feed(graph: Any, own: Engine, recorded: Recorded) -> Feed:
    h = fs.exp(fs.placeholder(fs.float32, [3], name="x"), name="h")
    fs.reduce_sum(h, name="y")
    own.clusters["fs://7"] = recorded
    with own.as_default():
        return Feed(graph)


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
    expect(waits).to_contain_text("h:0 of GPU:0 of worker 2 for 2.14")
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


def test_without_a_cluster_it_says_how_to_connect_one(
    host: LiveHost, page: Page, own: Engine
) -> None:
    own.clusters.clear()
    host.start("light")
    page.get_by_test_id("fs-stage").press("C")
    panel = page.get_by_test_id("fs-cluster")
    host.pump(lambda: "connected to no cluster" in panel.inner_text())
    expect(panel).to_contain_text("fs.cluster.connect(client)")
