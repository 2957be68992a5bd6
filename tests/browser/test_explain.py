"""The panel Explanation: what an operation does, with the values of the step that is held."""

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


@pytest.fixture
def session(graph: Any) -> Iterator[fs.Session]:
    x = fs.placeholder(fs.float32, [None, 8], name="x")
    w = fs.Variable(np.linspace(-1, 1, 64).reshape(8, 8).astype("f"), name="w")
    h = fs.tanh(fs.matmul(x, w, name="product"), name="h")
    loss = fs.reduce_mean(fs.square(h), name="loss")
    fs.train.GradientDescentOptimizer(0.1).minimize(loss, name="train")
    with fs.Session() as made:
        made.run(fs.global_variables_initializer())
        yield made
        made.debug.clear()
        made.resume()


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (600, "dark")])
def test_an_operation_is_explained_with_the_values_of_the_held_step(
    open_host: Callable[..., LiveHost],
    page: Page,
    session: fs.Session,
    tmp_path: Path,
    width: int,
    theme: str,
) -> None:
    host = open_host(width, theme, fills=True)
    stage = page.get_by_test_id("fs-stage")
    stage.press("E")
    panel = page.get_by_test_id("fs-explain")
    expect(panel).to_contain_text("Select an operation: what it does is explained here")
    stage.press("/")
    page.locator(".fs-find input").fill("product")
    find, rail = [page.locator(one).bounding_box() for one in (".fs-find", ".fs-rail")]
    assert find["x"] + find["width"] <= rail["x"], "the search leaves the tabs free"
    page.keyboard.press("Enter")
    host.pump(lambda: "has the op type MatMul" in panel.inner_text())
    expect(panel).to_contain_text("no fetch or target of this plan needs it")
    expect(panel).to_contain_text("To see its values, hold a step there")
    session.debug.break_after("product")
    feed = {"x:0": np.linspace(-2, 2, 32).reshape(4, 8).astype("f")}
    run = threading.Thread(target=lambda: session.run(["loss:0", "train"], feed))
    run.start()
    makes = panel.locator("[data-role='output'] article")
    host.pump(lambda: makes.locator("canvas").count() == 1)
    expect(panel).to_contain_text("Step 1, which is held, computes it")
    expect(panel).to_contain_text("It runs on CPU")
    expect(panel).to_contain_text("Its own gradient is made of")
    expect(panel.locator("[data-role='input'] article")).to_have_count(2)
    expect(makes).to_contain_text("float32")
    page.screenshot(path=tmp_path / f"explain-{width}-{theme}.png")
    assert panel.evaluate("p => p.scrollWidth <= p.clientWidth + 1")
    session.debug.clear()
    session.resume()
    run.join(10)
    host.pump(lambda: "The latest step computes it" in panel.inner_text())
    page.get_by_role("button", name="Close the explanation").click()
    expect(panel).to_be_hidden()
    stage.press("?")
    expect(page.get_by_text("Explain", exact=True).first).to_be_visible()
