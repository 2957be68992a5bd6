"""The view of a session on a real cluster: its panel, its lanes, a worker that hangs."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live_host import LiveHost
from local_clusters import local_cluster, wait_until
from playwright.sync_api import Page, expect

import flowscope as fs
from flowscope.errors import OpError

pytest.importorskip("distributed")


@pytest.fixture
def cluster(source_env: dict[str, str]) -> Iterator[fs.cluster.Cluster]:
    with (
        local_cluster(source_env, 2, dashboard_address=":0") as machines,
        fs.cluster.connect(machines) as found,
    ):
        wait_until(lambda: len(found.tasks) == 2)
        yield found


@pytest.fixture
def session(graph: Any, cluster: fs.cluster.Cluster) -> Iterator[fs.Session]:
    """A loop whose body is on two workers."""
    x = fs.placeholder(fs.float32, [100], name="x")

    def body(i: Any, v: Any) -> tuple[Any, Any]:
        with fs.device("/job:worker/task:0"):
            v = fs.tanh(v, name="squashed")
        with fs.device("/job:worker/task:1"):
            return i + 1, fs.multiply(v, 1.5, name="stretched")

    _, v = fs.while_loop(lambda i, v: i < 20, body, [fs.constant(0), x], name="loop")
    fs.reduce_sum(v, name="y")
    with fs.Session(cluster) as made:
        yield made


def test_a_cluster_is_watched_while_it_runs_and_while_a_worker_hangs(
    host: LiveHost,
    page: Page,
    session: fs.Session,
    cluster: fs.cluster.Cluster,
    tmp_path: Path,
) -> None:
    page.set_viewport_size({"width": 1280, "height": 1000})
    feed = {"x:0": np.ones(100, np.float32)}
    session.run("y:0", feed)
    host.start()
    stage = page.get_by_test_id("fs-stage")
    stage.press("C")
    panel = page.get_by_test_id("fs-cluster")
    rows = panel.locator("tbody tr")
    host.pump(lambda: rows.count() == 3)
    expect(rows.nth(1)).to_contain_text("worker 0")
    expect(rows.nth(1)).to_contain_text(str(cluster.tasks[0].pid))
    expect(panel.get_by_role("link", name="Dask dashboard")).to_have_attribute(
        "href", cluster.dashboard_link
    )
    # A recorded step has a lane for each process, and one for each pair that sends.
    stage.press("R")
    length = page.get_by_test_id("fs-step-length")

    def is_traced() -> bool:
        session.run("y:0", feed)  # what loops is seen once before it is traced
        return "s" in length.inner_text()

    host.pump(is_traced)
    page.screenshot(path=tmp_path / "cluster-runs.png")
    # A worker is stopped: its row says so, and what waits for it is named first.
    pid = cluster.tasks[0].pid
    failed: list[OpError] = []

    def run() -> None:
        try:
            session.run("y:0", feed)
        except OpError as e:
            failed.append(e)

    os.kill(pid, signal.SIGSTOP)
    try:
        thread = threading.Thread(target=run)
        thread.start()
        host.pump(lambda: rows.nth(1).get_attribute("data-health") == "hung")
        expect(page.get_by_test_id("fs-cluster-findings")).to_contain_text("worker 0 hangs")
        page.screenshot(path=tmp_path / "cluster-hangs.png")
        host.pump(lambda: not thread.is_alive())
    finally:
        os.kill(pid, signal.SIGCONT)
    assert "worker" in failed[0].message
    host.pump(lambda: rows.nth(1).get_attribute("data-health") == "ok")
    assert session.run("y:0", feed) == pytest.approx(session.run("y:0", feed))


def test_a_loop_over_workers_is_stepped_through_in_one_order(
    host: LiveHost, page: Page, session: fs.Session, tmp_path: Path
) -> None:
    """A move is an operation or a transfer, and says where; values of workers are looked into."""
    page.set_viewport_size({"width": 1280, "height": 800})
    feed = {"x:0": np.ones(100, np.float32)}
    plain = session.run("y:0", feed)
    host.start()
    stage = page.get_by_test_id("fs-stage")
    page.evaluate("window.choose('selection', 'loop/body/stretched')")
    stage.press("D")
    form = page.get_by_test_id("fs-break")
    form.get_by_label("Before or after").select_option("before")
    form.get_by_label("iteration").fill("1")
    form.get_by_role("button", name="Set").click()
    points = page.get_by_test_id("fs-points").locator("li")
    host.pump(lambda: points.count() == 1)
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(session.run("y:0", feed)))
    thread.start()
    stops = page.get_by_test_id("fs-stops").locator("li")
    debugger = page.get_by_test_id("fs-debug")

    def next_is(text: str) -> None:
        host.pump(lambda: any(f"next: {text} \u00b7" in told for told in stops.all_inner_texts()))

    try:
        next_is("loop/body/stretched on worker 1")
        expect(stops).to_contain_text("loop iteration 1")
        for text in (
            "i goes from worker 1 to this notebook",
            "loop/cond/Less in this notebook",
            "v goes from worker 1 to worker 0",
            "loop/body/squashed on worker 0",
        ):
            debugger.get_by_role("button", name="Step one operation").click()
            next_is(text)
        expect(stops).to_contain_text("loop iteration 2")
        # What is on a worker is looked into from here.
        page.evaluate("window.choose('selection', 'loop/body/v')")
        stage.press("y")
        value = page.locator("[data-tensor='loop/body/v:0']")
        host.pump(lambda: value.count() == 1)
        expect(value).to_have_attribute("data-state", "alive")
        expect(value).to_contain_text("float32[100]")
        page.screenshot(path=tmp_path / "cluster-stepped.png")
        points.get_by_role("checkbox").click()
        host.pump(lambda: not session.debug.breakpoints[0].is_enabled)
        debugger.get_by_role("button", name="Continue").click()
        host.pump(lambda: not thread.is_alive())
    finally:
        session.debug.clear()
        session.resume()
        thread.join(30.0)
    assert found == [plain]


def test_a_loop_that_runs_on_workers_is_paused_and_stepped_through(
    host: LiveHost, page: Page, session: fs.Session, tmp_path: Path
) -> None:
    """The view pauses a step in its midst; moves go from worker to worker in the plan's order."""
    page.set_viewport_size({"width": 1280, "height": 800})

    def body(i: Any, v: Any) -> tuple[Any, Any]:
        with fs.device("/job:worker/task:0"):
            v = fs.sin(v, name="bent")
        with fs.device("/job:worker/task:1"):
            return i + 1, fs.add(v, 1.0, name="lifted")

    _, v = fs.while_loop(lambda i, v: i < 1 << 30, body, [fs.constant(0), fs.zeros([9])], name="it")
    failed: list[BaseException] = []

    def run() -> None:
        try:
            session.run(v)
        except OpError as e:
            failed.append(e)

    thread = threading.Thread(target=run)
    thread.start()
    wait_until(lambda: session.running > 0)
    host.start()
    stage = page.get_by_test_id("fs-stage")
    stage.press("D")
    stops = page.get_by_test_id("fs-stops").locator("li")
    debugger = page.get_by_test_id("fs-debug")

    def told() -> str:
        return "".join(stops.all_inner_texts())

    try:
        host.pump(lambda: page.get_by_role("button", name="Pause").first.is_enabled())
        page.get_by_role("button", name="Pause").first.click()
        host.pump(lambda: "next:" in told())
        assert stops.count() == 1  # one for the whole step, whatever the number of workers
        step = debugger.get_by_role("button", name="Step one operation")
        seen: list[str] = []
        while len(seen) < 80 and not {"bent", "lifted"} <= {*seen[-8:]}:
            before = told()
            step.click()
            host.pump(lambda before=before: told() not in (before, ""))
            names = [
                n for n in ("bent on worker 0", "lifted on worker 1") if f"it/body/{n}" in told()
            ]
            seen += [n.partition(" ")[0] for n in names]
        assert {"bent", "lifted"} <= {*seen}
        page.evaluate("window.choose('selection', 'it/body/bent')")
        page.screenshot(path=tmp_path / "cluster-paused.png")
        debugger.get_by_role("button", name="Continue").click()
        host.pump(lambda: not session.debug.stops)
        assert thread.is_alive()
    finally:
        session.stop()
        session.resume()
        thread.join(30.0)
    assert "stopped" in str(failed[0])
