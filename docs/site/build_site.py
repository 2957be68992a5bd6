"""Builds the documentation site: `make docs`, or `python docs/site/build_site.py [folder]`.

The pages are those of `docs/`, ARCHITECTURE.md, CHANGELOG.md and parts of README.md, and what is
generated: the API, the keyboard map, facts of error classes. All are written into one folder, from
which Sphinx makes the site; a link to a page is rewritten to where the page is there.
"""

from __future__ import annotations

import argparse
import inspect
import os
import re
import shutil
import sys
from pathlib import Path

import api_pages
import keyboard_page
from flowscope import errors
from live_pages import write_live_pages

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "build" / "docs"

#: Pages that are not in `docs/`, and where they are in the site.
ELSEWHERE = {
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "README.md": "first_steps.md",
}

#: What is written for the site alone.
GENERATED = ("docs/api/", "docs/keyboard.md")

_CODE = re.compile(r"((?:^ *(```+|~~~+).*?^ *\2 *$)|`[^`\n]+`)", re.M | re.S)
_LINK = re.compile(r"(\]\()([^)#:\s]+)(#[^)\s]*)?(\))")
_SECTIONS = re.compile(r"^<!-- sections of README\.md: (.*) -->$", re.M)


def pages() -> dict[str, str]:
    """Returns the texts of all pages by their paths in the site's source."""
    found = {}
    for path in sorted((ROOT / "docs").rglob("*.md")):
        name = path.relative_to(ROOT).as_posix()
        found[place(name)] = with_sections(relinked(path.read_text("utf-8"), name), place(name))
    for name in ("ARCHITECTURE.md", "CHANGELOG.md"):
        found[place(name)] = relinked((ROOT / name).read_text("utf-8"), name)
    for name, text in api_pages.api_pages().items():
        found[name.removeprefix("docs/")] = text
    found["keyboard.md"] = keyboard_page.keyboard_page(ROOT)
    for name, text in found.items():
        if name.startswith("errors/") and name != "errors/index.md":
            found[name] = with_facts(text, Path(name).stem)
        elif name.startswith("decisions/") and name != "decisions/README.md":
            found[name] = "---\norphan: true\n---\n" + text  # their index leads to them
        elif name == "ops.md":  # hundreds of headings, which every page's sidebar would walk
            found[name] = "---\ntocdepth: 2\n---\n" + text
    return found


def place(name: str) -> str:
    """Returns the path in the site of a file of the repository."""
    return ELSEWHERE.get(name) or name.removeprefix("docs/")


def relinked(text: str, name: str, at: str | None = None) -> str:
    """Returns a page with links as they have to be in the site.

    Args:
        text: The page, or a part of it.
        name: The file that it is from.
        at: The page in which it will be; its own by default.
    """
    page = Path(at or place(name))

    def link(match: re.Match[str]) -> str:
        start, target, anchor, end = match.groups("")
        there = os.path.normpath(Path(name).parent / target)
        if not (ROOT / there).exists() and not there.startswith(GENERATED):
            raise FileNotFoundError(f"{name} links to {target}, which is not there")
        if (ROOT / there).is_dir():
            there = f"{there}/README.md"
        return f"{start}{os.path.relpath(place(there), page.parent)}{anchor}{end}"

    parts = _CODE.split(text)
    return "".join(
        part if i % 3 == 1 else "" if i % 3 == 2 else _LINK.sub(link, part)
        for i, part in enumerate(parts)
    )


def without_code(text: str, *, inline: bool = True) -> str:
    """Returns a page without its blocks of code, and without code in its lines."""
    return _CODE.sub(lambda m: "" if inline or m[2] else m[0], text)


def with_sections(text: str, at: str) -> str:
    """Returns a page with the README's sections where the page asks for them."""

    def sections(match: re.Match[str]) -> str:
        readme = (ROOT / "README.md").read_text("utf-8")
        found = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", readme, re.M | re.S))
        return relinked(
            "\n".join(f"## {title}\n{found[title]}" for title in match[1].split("; ")),
            "README.md",
            at,
        )

    return _SECTIONS.sub(sections, text)


def with_facts(text: str, name: str) -> str:
    """Returns the page of an error class with what the class itself says behind the title."""
    cls = getattr(errors, name)
    bases = [
        f"`{b.__name__}`" for b in cls.__mro__[1:] if b not in (Exception, BaseException, object)
    ]
    facts = f"*{api_pages.escaped(inspect.getdoc(cls) or '')}*\n\nDerived from {', '.join(bases)}."
    if "code" in vars(cls):
        facts += f" Its status code is {cls.code}."
    title, _, rest = text.partition("\n")
    return f"{title}\n\n{facts}\n{rest}"


def write_source(folder: Path) -> None:
    """Writes the source of the site into a folder."""
    shutil.rmtree(folder, ignore_errors=True)
    found = {folder / name: text.encode() for name, text in pages().items()}
    for path in (ROOT / "docs").rglob("*.png"):
        found[folder / path.relative_to(ROOT / "docs")] = path.read_bytes()
    for path, data in found.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def build(site: Path) -> int:
    """Builds the site into a folder, with its source beside it; returns Sphinx' exit status."""
    from sphinx.cmd.build import main as sphinx

    source, doctrees = (site.with_name(f"{site.name}-{name}") for name in ("source", "doctrees"))
    write_source(source)
    for folder in (site, doctrees):
        shutil.rmtree(folder, ignore_errors=True)
    folders = ["-c", Path(__file__).parent, "-d", doctrees, source, site]
    status = sphinx(["-W", "--keep-going", "-q", *map(str, folders)])
    write_live_pages(site / "live")
    return status


def main() -> int:
    """Builds the site where the arguments say; returns the exit status."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", nargs="?", type=Path, default=SITE)
    folder = options.parse_args().folder.resolve()
    status = build(folder)
    if not status:
        print(f"The site is built: open {folder / 'index.html'}")
    return status


if __name__ == "__main__":
    sys.exit(main())
