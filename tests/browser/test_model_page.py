"""Pages of models, opened from the disk: what a model is made of, and how large each box is."""

from __future__ import annotations

import re
from pathlib import Path

import onnx
import pytest
from onnx_models import residual_network, transformer
from playwright.sync_api import Page, expect

from flowscope.live.watchers.model_files import write_model_page

MODELS = {
    "transformer": lambda: transformer(is_named=False),
    "named": transformer,
    "residual": lambda: residual_network(is_named=False),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_seen_with_the_sizes_of_its_boxes(
    page: Page, root: Path, name: str, tmp_path: Path
) -> None:
    if not (root / "widgets/flowscope_widgets/static/page.js").is_file():
        pytest.skip("needs the front end: make front-end")
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    path = tmp_path / f"{name}.onnx"
    onnx.save(MODELS[name](), path)
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(Path(write_model_page(path, tmp_path / "model.html")).as_uri())
    expect(page.locator(".fs-view[data-ready]")).to_be_visible()
    expect(page.get_by_test_id("fs-state")).to_have_text("graph")
    stage = page.get_by_test_id("fs-stage")
    expect(stage).to_have_attribute("data-heat", "weights")
    total = re.compile(r"\d k parameters|\d\sM parameters|parameters, .*B, .*FLOP")
    expect(page.get_by_test_id("fs-heat-note")).to_have_text(total)
    inspector = page.get_by_test_id("fs-inspector")
    expect(inspector).to_contain_text("parameters")
    expect(inspector).to_contain_text("FLOP")
    expect(page.get_by_test_id("fs-timeline-canvas")).to_be_hidden()
    # The next measure, by the same key that shows shares.
    stage.press("h")
    expect(stage).to_have_attribute("data-heat", "flops")
    most = page.get_by_test_id("fs-hottest")
    expect(most).to_have_text(re.compile(r"most: \S+, \d"))
    most.click()
    expect(inspector).to_contain_text("products, convolutions")
    page.screenshot(path=tmp_path / f"{name}.png")
    assert not errors
