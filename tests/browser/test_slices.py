"""Values of all ranks: any slice as a heat map, a vector as a line, and the code that gives it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live_host import LiveHost
from playwright.sync_api import Page, expect

import flowscope as fs

OUTPUT = Path(__file__).parent / "output"
X = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5)


@pytest.fixture
def session(graph: Any) -> Iterator[fs.Session]:
    x = fs.placeholder(fs.float32, [2, 3, 4, 5], name="x")
    y = fs.multiply(x, 2.0, name="y")
    v = fs.reduce_sum(y, [0, 1, 2], name="v")
    fs.reduce_sum(v, name="end")
    made = fs.Session()
    yield made
    made.debug.clear()
    if made.debug.history is not None:
        made.debug.history.remove()
    made.resume()


@pytest.mark.parametrize("mode", ["held", "recorded"])
def test_any_slice_of_a_value_is_seen_and_had_as_an_array(
    open_host: Callable[..., LiveHost], page: Page, session: fs.Session, mode: str
) -> None:
    OUTPUT.mkdir(exist_ok=True)
    host = open_host()
    thread = None
    values = page.get_by_test_id("fs-values")
    if mode == "held":
        session.debug.break_before("v")
        thread = threading.Thread(target=lambda: session.run("end:0", {"x:0": X}))
        thread.start()
    else:
        session.debug.record(["y:0", "v:0"])
        for _ in range(2):
            session.run("end:0", {"x:0": X})
    page.get_by_role("tab", name="Values").click()
    page.get_by_role("button", name="Value", exact=True).first.click()
    if mode == "recorded":
        host.pump(lambda: page.get_by_test_id("fs-scrubber").is_visible())
        page.get_by_test_id("fs-scrubber").fill("0")
    page.evaluate("window.choose('selection', 'y')")
    image = values.get_by_test_id("fs-heat-map")
    host.pump(lambda: image.count() == 1)
    expect(image).to_have_attribute(
        "aria-label", "Heat map, 4 × 5, of a value with 4 axes, from 0 to 38.0"
    )
    values.get_by_label("Place along axis 0 of y:0").fill("1")
    values.get_by_label("Place along axis 0 of y:0").press("Tab")
    host.pump(lambda: "from 120 to 158" in (image.get_attribute("aria-label") or ""))
    values.get_by_label("Place along axis 1 of y:0").fill("2")
    values.get_by_label("Place along axis 1 of y:0").press("Tab")
    host.pump(lambda: "from 200 to 238" in (image.get_attribute("aria-label") or ""))
    code = values.locator("[data-code]").get_attribute("data-code") or ""
    found = eval(code, {"session": session, "np": np})  # noqa: S307
    np.testing.assert_array_equal(found, 2 * X[1, 2])
    page.screenshot(path=OUTPUT / f"slices-{mode}.png")
    if thread is not None:
        session.debug.clear()
        session.resume()
        thread.join(20)
        assert not thread.is_alive()
        return
    page.evaluate("window.choose('selection', 'v')")
    plot = values.get_by_role("img", name="Plot of 5 elements")
    host.pump(lambda: plot.count() == 1)
    assert (plot.locator("path").get_attribute("d") or "").count("L") == 4
