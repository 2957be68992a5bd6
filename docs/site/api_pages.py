"""Makes the pages of the API: the public names with their docstrings, one page per part or room.

Functions and classes come from `flowscope.ops.reference`, which lists each under all its names.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

from flowscope.ops import reference

#: Pages of names that are shown at the top, by the room in which they are defined: title and rooms.
ROOMS = {
    "graph": ("Graphs, tensors, operations, scopes", "graph cells errors"),
    "session": ("Sessions, options, devices", "runtime plan"),
    "watching": ("Looking at graphs and steps", "live tracing"),
    "control": ("Branches, loops, functions", "control"),
    "autodiff": ("Gradients", "autodiff"),
    "variables": ("Variables, queues and other state", "ops.state train"),
    "math": ("Mathematics", "ops.math ops.core ops.signal"),
    "arrays": ("Arrays: shaping, joining, slicing, gathering", "ops.array ops.objectives"),
    "matrices": ("Matrices", "ops.linalg"),
    "random_numbers": ("Random numbers", "ops.random"),
    "sparse_tensors": ("Sparse tensors", "ops.sparse"),
    "texts": ("Strings", "ops.strings"),
    "host": ("Python functions, checks, printing, files", "ops.host ops.input"),
    "quantized": ("Quantized numbers", "ops.quantized"),
}

_HEADING = re.compile(
    r"(Args|Args and Raises|Attributes|Class attributes|Example|In short|Raises|Returns|Shapes"
    r"|Source|Variables):(?: (.*))?$"
)
_ITEM = re.compile(r"(\*{0,2}[\w, *()]{1,70}?): (.*)$")
_CODE_SPAN = re.compile(r"(`+[^`]+`+)")

Pages = dict[str, str]


def api_pages() -> Pages:
    """Returns the pages' texts by their paths below the site's root."""
    topics, values = reference._entries()
    by_page: dict[str, list[tuple[list[str], Any]]] = {}
    for rows in topics.values():
        for value, names in rows:
            by_page.setdefault(_page_of(value, names), []).append((names, value))
    shown = {id(value): names[0] for rows in topics.values() for value, names in rows}
    pages = {}
    for name, entries in by_page.items():
        entries.sort(key=lambda entry: entry[0][0].lower())
        title, about = _title(name)
        links = " · ".join(f"`{names[0]}`" for names, _ in entries)
        parts = [f"# {title}\n\n{about}\n\n{links}\n"]
        parts += [_entry(names, value, shown) for names, value in entries]
        pages[f"docs/api/{name}.md"] = "\n".join(parts)
    pages["docs/api/values.md"] = _values(values)
    pages["docs/api/index.md"] = _index(sorted(pages))
    return pages


def _page_of(value: Any, names: list[str]) -> str:
    """Returns the page of an object: of its part, or at the top of the room that defines it."""
    path = names[0].split(".")[1:-1]
    if path:
        return f"fs.{path[0]}"
    module = str(getattr(value, "__module__", "")).removeprefix("flowscope.")
    return next(
        name for name, (_, rooms) in ROOMS.items() if any(_is_in(module, r) for r in rooms.split())
    )


def _is_in(module: str, room: str) -> bool:
    return module == room or module.startswith(f"{room}.")


def _title(page: str) -> tuple[str, str]:
    if page in ROOMS:
        return ROOMS[page][0], "Names of `flowscope` itself, which is imported as `fs`."
    module = sys.modules[f"flowscope.{page.removeprefix('fs.')}"]
    return page, markdown(inspect.getdoc(module) or "")


def _index(paths: list[str]) -> str:
    names = [path.removeprefix("docs/api/").removesuffix(".md") for path in paths]
    rooms = [name for name in ROOMS if name in names]
    parts = [name for name in names if name.startswith("fs.")]
    lists = "\n".join(
        f"```{{toctree}}\n:caption: {caption}\n:maxdepth: 1\n\n" + "\n".join(found) + "\n```\n"
        for caption, found in (("Names of fs", rooms), ("Parts", parts), ("Values", ["values"]))
    )
    return (
        "# API\n\nAll public names with their docstrings. `import flowscope as fs` is assumed. "
        "[One table](../ops.md) lists the same names and all op types, with the dtypes that they "
        f"take.\n\n{lists}"
    )


def _values(values: list[tuple[Any, list[str]]]) -> str:
    rows = [f"| `{', '.join(names)}` | {reference._shown(value)} |" for value, names in values]
    return "# Values\n\nDtypes and other constants.\n\n| name | value |\n|---|---|\n" + (
        "\n".join(rows) + "\n"
    )


# -- entries --------------------------------------------------------------------------------------


def _entry(names: list[str], value: Any, shown: dict[int, str]) -> str:
    """Returns the directive of a function or class, with its methods."""
    name, *others = names
    is_class = isinstance(value, type)
    body = []
    if others:
        body.append(f"Also: {', '.join(f'`{other}`' for other in others)}.\n")
    body.append(markdown(inspect.getdoc(value) or ""))
    if is_class:
        bases = [shown[id(b)] for b in value.__mro__[1:] if id(b) in shown]
        if bases:
            body.append(f"Derived from {', '.join(f'`{base}`' for base in bases)}.\n")
        body += [_member(n, m) for n, m in _members(value)]
    kind = "class" if is_class else "function"
    return _directive(f"py:{kind}", name + _signature(value), "\n".join(body), 5 if is_class else 4)


def _members(cls: type) -> Iterator[tuple[str, Any]]:
    """Yields what a class itself defines and documents."""
    for name, member in sorted(vars(cls).items()):
        inner = getattr(member, "__func__", getattr(member, "fget", member))
        is_shown = callable(inner) or isinstance(member, property)
        if not name.startswith("_") and is_shown and inspect.getdoc(inner):
            yield name, member


def _member(name: str, member: Any) -> str:
    doc = markdown(inspect.getdoc(member) or "")
    if isinstance(member, property) or not callable(getattr(member, "__func__", member)):
        return _directive("py:attribute", name, doc, 4)
    flags = {classmethod: ":classmethod:\n", staticmethod: ":staticmethod:\n"}
    function = getattr(member, "__func__", member)
    if isinstance(function, type):
        return _directive("py:class", name, doc, 4)
    signature = _signature(function)
    if not isinstance(member, staticmethod):
        signature = re.sub(r"^\((self|cls)(, )?", "(", signature)
    return _directive("py:method", name + signature, flags.get(type(member), "") + "\n" + doc, 4)


def _signature(function: Callable[..., Any]) -> str:
    text = reference._signature(function).replace("\\|", "|")
    return re.sub(r"<factory>|<[^>]*>", "...", text)


def _directive(kind: str, argument: str, body: str, colons: int) -> str:
    fence = ":" * colons
    return f"{fence}{{{kind}}} {argument}\n{body}\n{fence}\n"


# -- docstrings -----------------------------------------------------------------------------------


def markdown(doc: str) -> str:
    """Returns a docstring as Markdown: headings in bold, their items as lists, examples as code."""
    lines = doc.splitlines()
    parts: list[str] = []
    paragraph: list[str] = []
    at = 0

    def end_paragraph() -> None:
        if paragraph:
            parts.append("\n".join(escaped(line) for line in paragraph))
            paragraph.clear()

    while at < len(lines):
        line = lines[at]
        heading = _HEADING.match(line)
        if not line.strip():
            end_paragraph()
            at += 1
        elif line.lstrip().startswith(">>>"):
            end_paragraph()
            end = _until_blank(lines, at)
            parts.append(_code(lines[at:end], "pycon"))
            at = end
        elif line.startswith("    ") and not paragraph:
            end = _while_indented(lines, at)
            parts.append(_code(lines[at:end], "python"))
            at = end
        elif heading and (heading[2] or _is_indented(lines, at + 1)):
            end_paragraph()
            end = _while_indented(lines, at + 1)
            parts.append(_section(heading[1], heading[2], _dedented(lines[at + 1 : end])))
            at = end
        else:
            paragraph.append(line)
            at += 1
    end_paragraph()
    return "\n\n".join(parts) + "\n"


def _section(heading: str, first: str | None, lines: list[str]) -> str:
    if first is not None:
        more = " ".join(escaped(line.strip()) for line in [first, *lines] if line.strip())
        return f"**{heading}:** {more}"
    if any(line.startswith(">>>") for line in lines):
        return f"**{heading}**\n\n{markdown(chr(10).join(lines))}".rstrip()
    items: list[str] = []
    for line in lines:
        item = _ITEM.match(line)
        if item:
            items.append(f"- `{item[1]}`: {escaped(item[2])}")
        elif items and line.startswith("    "):
            items[-1] += f" {escaped(line.strip())}"
        elif line.strip():
            items.append(escaped(line.strip()))
    if not any(item.startswith("- `") for item in items):
        return f"**{heading}:** " + " ".join(items)
    return f"**{heading}**\n\n" + "\n".join(items)


def _code(lines: list[str], language: str) -> str:
    return f"```{language}\n" + "\n".join(_dedented(lines)).strip("\n") + "\n```"


def _dedented(lines: list[str]) -> list[str]:
    return inspect.cleandoc("\n" + "\n".join(lines)).splitlines()


def _is_indented(lines: list[str], at: int) -> bool:
    return at < len(lines) and lines[at].startswith("    ")


def _until_blank(lines: list[str], at: int) -> int:
    while at < len(lines) and lines[at].strip():
        at += 1
    return at


def _while_indented(lines: list[str], at: int) -> int:
    while at < len(lines) and (not lines[at].strip() or lines[at].startswith("    ")):
        at += 1
    while at > 0 and not lines[at - 1].strip():
        at -= 1
    return at


def escaped(line: str) -> str:
    """Returns a line of plain text for Markdown: nothing outside of backticks is markup."""
    parts = _CODE_SPAN.split(line)
    parts[::2] = [re.sub(r"([\\*_\[\]<>|$~#{}])", r"\\\1", part) for part in parts[::2]]
    text = "".join(parts)
    return re.sub(r"^([-+=]|\d+\.)(?! )", r"\\\1", text) if text[:1] in "-+=" else text
