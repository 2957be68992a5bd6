"""Makes the keyboard map from the table of commands in the front end's sources."""

from __future__ import annotations

import re
from pathlib import Path

SOURCE = "labextension/src/view/commands.ts"

_STRING = r'"((?:[^"\\]|\\.)*)"'
_NAMES = {
    " ": "Space", "ArrowUp": "↑", "ArrowDown": "↓", "ArrowLeft": "←", "ArrowRight": "→",
    "Escape": "Esc", "-": "−",
}  # fmt: skip

Row = tuple[str, list[str], str, str]


def keyboard_page(root: Path) -> str:
    """Returns the page's text, as Markdown."""
    rows = [row for row in commands((root / SOURCE).read_text("utf-8")) if row[1]]
    tables = [
        f"## {title}\n\n| key | what | |\n|---|---|---|\n"
        + "".join(f"| {_keys(keys)} | {label} | {hint} |\n" for _, keys, label, hint in found)
        for title, found in (
            ("Everywhere in a view", [row for row in rows if not row[0].startswith("timeline ")]),
            ("In the timeline", [row for row in rows if row[0].startswith("timeline ")]),
        )
    ]
    return (
        "# Keyboard map\n\nA view hears these keys while the keyboard's focus is in it: Tab leads "
        "into the picture. `?` shows the same list in the view. In the timeline its own keys come "
        "first.\n\n" + "\n".join(tables)
    )


def commands(source: str) -> list[Row]:
    """Returns place and id, keys, label and hint of each command of the table `COMMANDS`."""
    start = source.index("COMMANDS: readonly ViewCommand[] = [")
    body = source[source.index("= [", start) + 2 :]
    return [_row(entry) for entry in _elements(body) if entry]


def _elements(text: str) -> list[str]:
    """Returns the elements of the array literal that a text begins with."""
    found, depth, start = [], 0, 1
    for match in re.finditer(rf"{_STRING}|`[^`]*`|/\*.*?\*/|[\[\](){{}},]", text, re.S):
        token = match[0]
        if token in ("[", "(", "{"):
            depth += 1
        elif token in ("]", ")", "}"):
            depth -= 1
        if (token == "," and depth == 1) or depth == 0:
            found.append(text[start : match.start()].strip())
            start = match.end()
        if depth == 0:
            break
    return found


def _row(entry: str) -> Row:
    """Returns an element of the table as a row; a form that is not known is an error."""
    call = re.match(rf"(\w+)\({_STRING}, {_STRING}(?:, (\[[^]]*\]|{_STRING}))?", entry)
    if call:
        maker, first, label, keys = call.group(1, 2, 3, 4)
        place = {"inTime": "timeline "}.get(maker, "")
        if maker not in ("inTime", "walk", "breakAt", "saveSteps"):
            raise ValueError(f"expected a maker of commands that is known, got {maker!r}")
        return place + first, _strings(keys or ""), _text(label), ""
    id_, label = (re.search(rf"\b{f}: {_STRING}", entry) for f in ("id", "label"))
    keys = re.search(r"\bkeys: \[([^]]*\"?)\]", entry.replace('"]"', '"&#93;"'))
    if not (id_ and label and keys):
        raise ValueError(f"expected a command with id, label and keys, got {entry!r}")
    hint = re.search(rf"\bhint: {_STRING}", entry)
    return id_[1], _strings(keys[1]), _text(label[1]), _text(hint[1]) if hint else ""


def _strings(text: str) -> list[str]:
    return [_text(found).replace("&#93;", "]") for found in re.findall(_STRING, text)]


def _text(literal: str) -> str:
    return re.sub(r"\\u([0-9a-f]{4})", lambda m: chr(int(m[1], 16)), literal)


def _keys(keys: list[str]) -> str:
    return " ".join(f"<kbd>{_html(_NAMES.get(key, key))}</kbd>" for key in keys)


def _html(text: str) -> str:
    return "".join(f"&#{ord(c)};" if c in "<>&|[]*_`{}\\" else c for c in text)
