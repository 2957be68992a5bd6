"""The pages of docs/ tell the truth: their Python runs and prints what they show, links lead on.

A page's Python blocks run in order; one that imports flowscope begins with no names and an empty
graph, the others go on where the last one was. A block ```output behind one is what that prints, or
the error or warning that it ends with. A block that is not run has a line `<!-- not run: why -->`
before it.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import linecache
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import build_site
import flowscope as fs
from flowscope.graph import op
from flowscope.runtime.devices import device_registry

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "docs").rglob("*.md")
    if path.name != "ops.md"
)
_BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<why>[^\n]+) -->\n)?^```python\n(?P<code>.*?)^```$"
    r"(?:\n+^```output\n(?P<output>.*?)^```$)?",
    re.M | re.S,
)


def blocks(page: str) -> list[re.Match[str]]:
    return list(_BLOCK.finditer((ROOT / page).read_text("utf-8")))


WITH_CODE = [page for page in PAGES if any(block["why"] is None for block in blocks(page))]


@pytest.fixture
def own_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder and a graph for one page; the ops and devices that it registers are forgotten."""
    monkeypatch.chdir(tmp_path)
    fs.reset_default_graph()
    yield
    fs.reset_default_graph()
    for name in [n for n, made in op._registry.items() if not made.__module__.startswith("flow")]:
        del op._registry[name]
    for table in (op._kernels, op._families, device_registry._makers):
        for key in [k for k in table if "NPU" in k]:
            del table[key]


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_CODE)
def test_the_programs_of_a_page_run_and_print_what_it_shows(own_graph: None, page: str) -> None:
    names: dict[str, Any] = {}
    for block in blocks(page):
        if block["why"] is None:
            if "import flowscope as" in block["code"]:
                names = {"__name__": "__main__"}
                fs.reset_default_graph()
            said = run(block["code"], names, may_fail=block["output"] is not None)
            if block["output"] is not None:
                assert agrees(block["output"], said), f"{page}:\n{block['code']}\n{said}"


def agrees(shown: str, said: str) -> bool:
    """Whether a page shows what was said; `...` stands for what differs from run to run."""
    return doctest.OutputChecker().check_output(shown, said, doctest.ELLIPSIS)


def run(code: str, names: dict[str, Any], may_fail: bool) -> str:
    """Runs a program; returns what it prints, and the error that it ends with."""
    name = "example.py"
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        try:
            exec(compile(code, name, "exec"), names)
        except (fs.OpError, Warning) as error:
            if not may_fail:
                raise
            print(f"{type(error).__name__}: {error}")
    return said.getvalue()


def test_all_python_is_marked_as_such() -> None:
    """Code that is only indented would not be run."""
    for page in PAGES:
        text = re.sub(r"^```.*?^```$", "", (ROOT / page).read_text("utf-8"), flags=re.M | re.S)
        assert not re.search(r"^ {4}(import|with|from|def|@)\b", text, re.M), page


# -- links ----------------------------------------------------------------------------------------

_LINK = re.compile(r"\]\(([^)\s]*)\)")


def test_links_lead_to_pages_and_headings() -> None:
    """Of the site, so that links into generated pages count too."""
    pages = build_site.pages()
    anchors = {name: anchors_of(text) for name, text in pages.items()}
    for name, text in pages.items():
        for target in _LINK.findall(build_site.without_code(text)):
            assert not re.match(r"(https?:)?//", target) or not name.startswith("api/"), target
            path, _, anchor = target.partition("#")
            if ":" in path or path.endswith((".png", ".svg", ".html")):
                continue
            there = (Path(name).parent / path).as_posix() if path else name
            there = re.sub(r"[^/]+/\.\./", "", there)
            assert there in pages, f"{name} links to {target}"
            assert not anchor or anchor in anchors[there], f"{name} links to {target}"


def anchors_of(page: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", build_site.without_code(page, inline=False), re.M)
    slugs = {
        re.sub(r"[^\w\- ]", "", h.lower().replace("`", "")).replace(" ", "-") for h in headings
    }
    return slugs | set(re.findall(r"^\(([\w-]+)\)=$", page, re.M))


# -- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES)
def test_names_of_the_package_are_there(page: str) -> None:
    text = build_site.without_code((ROOT / page).read_text("utf-8"), inline=False)
    for name in re.findall(r"`(fs(?:\.[A-Za-z]\w*)+)", text):
        value = fs
        for part in name.split(".")[1:]:
            value = getattr(value, part)


def test_every_error_class_has_a_page_and_every_message_its_anchor() -> None:
    pages = {path.stem for path in (ROOT / "docs/errors").glob("*.md")} - {"index"}
    classes = {n for n, c in vars(fs.errors).items() if isinstance(c, type) and n[0] != "_"}
    assert pages == {n for n in classes if issubclass(getattr(fs.errors, n), Exception)}
    listed = _LINK.findall((ROOT / "docs/errors/index.md").read_text("utf-8"))
    headings = [
        f"{page}.md#{anchor}"
        for page in pages
        for anchor in re.findall(
            "^## (.+)$", (ROOT / f"docs/errors/{page}.md").read_text("utf-8"), re.M
        )
    ]
    assert len(listed) == len(set(listed)) == len(headings) >= 30
