"""The documentation site, opened from the disk: it searches, and its recordings are explored."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

#: Builds a site of a few pages: what is looked at here is what all of them share.
BUILD = """
import pathlib, sys
sys.path.insert(0, "docs/site")
import build_site
pages = build_site.pages()
live = pages["live.md"].replace("howto/export.md#a-recording-as-a-page", "api/control.md")
kept = {"api/control.md": pages["api/control.md"], "live.md": live}
kept["index.md"] = "# Start\\n\\n```{toctree}\\napi/control\\nlive\\n```\\n"
build_site.pages = lambda: kept
sys.exit(build_site.build(pathlib.Path(sys.argv[1])))
"""


@pytest.fixture(scope="module")
def site(root: Path, tmp_path_factory: Any, source_env: dict[str, str]) -> Path:
    if not (root / "widgets/flowscope_widgets/static/page.js").is_file():
        pytest.skip("needs the front end: make front-end")
    folder = tmp_path_factory.mktemp("docs") / "site"
    command = [sys.executable, "-c", BUILD, folder]
    built = subprocess.run(command, cwd=root, env=source_env, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_site_searches_and_shows_recordings_from_the_disk(
    page: Page, site: Path, scheme: Any
) -> None:
    asked: list[str] = []
    errors: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.set_viewport_size({"width": 1280, "height": 800})
    page.emulate_media(color_scheme=scheme)
    page.goto((site / "index.html").as_uri())
    search = page.get_by_role("textbox", name="Search")
    search.fill("while_loop")
    search.press("Enter")
    found = page.get_by_role("link", name=re.compile("while_loop"))
    expect(found.first).to_be_visible()
    found.first.click()
    expect(page).to_have_url(re.compile(r"api/control\.html.*#fs\.while_loop"))
    page.goto((site / "live.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    recording = page.frame_locator("iframe").first
    expect(recording.locator(".fs-view[data-ready]")).to_be_visible()
    recording.get_by_test_id("fs-stage").press("T")
    expect(recording.get_by_test_id("fs-costs-table").locator("tbody tr").first).to_be_visible()
    assert not errors
    assert [url for url in asked if not url.startswith(("file:", "blob:", "data:"))] == []
