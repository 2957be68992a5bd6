"""The site is built without a warning and a network; nothing in it comes from elsewhere."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import api_pages
import keyboard_page

ROOT = Path(__file__).parents[2]

#: What a page would fetch: not a link that somebody may follow.
_FETCHED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"([^\"]+)\"|<link\b[^>]*\bhref=\"([^\"]+)\""
    r"|@import\s+(?:url\()?[\"']?([^\"')\s;]+)|url\(\s*[\"']?([^\"')]+)"
)


@pytest.mark.slow
def test_the_site_is_built_and_fetches_nothing(tmp_path: Path, source_env: dict[str, str]) -> None:
    if not (ROOT / "widgets/flowscope_widgets/static/page.js").is_file():
        pytest.skip("needs the front end: make front-end")
    site = tmp_path / "site"
    command = [
        sys.executable,
        "-W",
        "error::DeprecationWarning:__main__",
        "docs/site/build_site.py",
        site,
    ]
    nowhere = dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), "http://127.0.0.1:9")
    built = subprocess.run(
        command, cwd=ROOT, env={**source_env, **nowhere}, capture_output=True, text=True
    )
    assert built.returncode == 0, built.stdout + built.stderr
    assert built.stderr == ""
    for path in [*site.rglob("*.html"), *site.rglob("*.css")]:
        for found in _FETCHED.findall(path.read_text("utf-8")):
            target = "".join(found)
            assert not re.match(r"(https?:)?//", target), f"{path.name} fetches {target}"
            if path.parent.name != "live" and path.suffix == ".html" and target != "#":
                assert (path.parent / target.partition("?")[0]).exists(), f"{path.name}: {target}"
    options = (site / "_static" / "documentation_options.js").read_text("utf-8")
    assert "SHOW_SEARCH_SUMMARY: false" in options  # they would be fetched
    index = (site / "searchindex.js").read_text("utf-8")
    found = json.loads(index[index.index("{") : index.rindex("}") + 1])
    assert {"index", "api/control", "howto/nan", "keyboard", "ops"} <= set(found["docnames"])
    assert len(json.dumps(found["objects"])) > 50_000
    page = (site / "howto" / "nan.html").read_text("utf-8")
    assert re.search(r'<a [^>]*href="\.\./api/[\w.]+\.html#fs\.clip_by_value"', page)
    assert (site / "_images" / "view.png").exists()


def test_the_keyboard_map_has_every_command() -> None:
    source = (ROOT / keyboard_page.SOURCE).read_text("utf-8")
    rows = keyboard_page.commands(source)
    keys = {place: keys for place, keys, *_ in rows}
    assert len(keys) == len(rows) > 60
    assert keys["pause"] == [" "] and keys["find-to"] == ["]"] and keys["walk-up"] == ["ArrowUp"]
    assert keys["timeline time-in"] == ["w", "+", "="] and keys["export-svg"] == []
    assert set(re.findall(r'\bid: "([\w-]+)"', source)) <= {row[0] for row in rows}


def test_a_command_of_a_form_that_is_not_known_is_refused() -> None:
    start = "COMMANDS: readonly ViewCommand[] = ["
    with pytest.raises(ValueError, match="a maker of commands that is known, got 'other'"):
        keyboard_page.commands(start + 'other("a", "b")]')
    with pytest.raises(ValueError, match="a command with id, label and keys"):
        keyboard_page.commands(start + '{ id: "a", keys: ["x"] }]')


def test_docstrings_become_markdown() -> None:
    doc = """What it does, with *stars* and a_b and `x * y`.

    with fs.Session() as s:
        s.run(y)

Args:
    x: A tensor
        of numbers.
    *more: The same.

Raises:
    DTypeError: if it is none.

Source: somewhere.

>>> 1 + 1
2
"""
    assert (
        api_pages.markdown(doc)
        == r"""What it does, with \*stars\* and a\_b and `x * y`.

```python
with fs.Session() as s:
    s.run(y)
```

**Args**

- `x`: A tensor of numbers.
- `*more`: The same.

**Raises**

- `DTypeError`: if it is none.

**Source:** somewhere.

```pycon
>>> 1 + 1
2
```
"""
    )


def test_every_public_name_has_a_page() -> None:
    from flowscope.ops import reference

    shown = set(re.findall(r"\bfs(?:\.\w+)+", "\n".join(api_pages.api_pages().values())))
    assert {name for name, _ in reference.public_names()} <= shown
