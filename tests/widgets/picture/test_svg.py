"""The saved picture: well formed, escaped, the same each time, from any thread and process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import picture_graphs as graphs
import pytest

from flowscope.live.protocol.schema import Node
from flowscope_widgets import picture

pytestmark = pytest.mark.usefixtures("drawn")

SVG = "{http://www.w3.org/2000/svg}"

CASES: dict[str, tuple[list[Node], tuple[str, ...]]] = {
    "mlp": (graphs.mlp(), ()),
    "variable-open": (graphs.mlp(), ("layer1/w",)),
    "awkward": (graphs.awkward(), ("s & t", "u")),
    "loop": (graphs.loop(), ()),
    "frames": (graphs.frames(), ()),
    "functions": (graphs.functions(), ()),
    "towers": (graphs.towers(5, 3), ("tower2/layer1",)),
    "tangle": (graphs.tangle(30, seed=1), ()),
    "empty": ([], ()),
}


def read(svg: str) -> ET.Element:
    return ET.fromstring(svg)


def texts(svg: str) -> set[str]:
    return {text.text or "" for text in read(svg).iter(f"{SVG}text")}


@pytest.mark.parametrize("name", CASES)
def test_it_is_well_formed_and_names_itself(name: str) -> None:
    nodes, opened = CASES[name]
    root = read(picture.svg(nodes, open_scopes=opened, title="A <title> & more"))
    assert (root.tag, root.get("role")) == (f"{SVG}svg", "img")
    assert root.get("viewBox")
    assert "max-width" in root.get("style", "")
    assert root.findtext(f"{SVG}title") == root.get("aria-label") == "A <title> & more"
    assert re.match(rf"{len(nodes)}.operations", root.findtext(f"{SVG}desc") or "")


def test_the_same_graph_gives_the_same_text() -> None:
    assert picture.svg(graphs.mlp()) == picture.svg(graphs.mlp())


def test_names_are_escaped() -> None:
    svg = picture.svg(graphs.awkward(), open_scopes=("s & t",), title='"<&>')
    assert {"a<b>&\"c'", "<script>", "s & t", '"<&>'} <= texts(svg)
    assert "<script" not in svg
    assert "\u0007" not in svg


def test_a_text_that_no_encoding_can_hold_is_replaced() -> None:
    m = graphs.Maker()
    m.op("half \ud800 a pair", "Neg")
    svg = picture.svg(m.nodes)
    assert svg.encode("utf-8")
    assert "half \ufffd a pair" in svg


def test_the_light_colours_are_attributes_and_the_dark_ones_a_style_sheet() -> None:
    svg = picture.svg(graphs.mlp())
    sheet = read(svg).findtext(f"{SVG}style") or ""
    assert sheet.startswith("@media (prefers-color-scheme:dark)")
    used = {name for names in re.findall(r'class="([^"]*)"', svg) for name in names.split()}
    assert set(re.findall(r"\.([\w-]+)\{", sheet)) == used - {"fs-picture"}
    assert 'fill="#ffffff"' in svg


def test_open_scopes_show_what_they_hold() -> None:
    closed, opened = (picture.svg(graphs.mlp(), open_scopes=o) for o in ((), ("layer1",)))
    assert hidden(closed) > hidden(opened) > 0


def hidden(svg: str) -> int:
    """Returns how many operations a picture says to be in closed scopes."""
    (note,) = [text for text in texts(svg) if text.endswith("in closed scopes")]
    return int(note.split("\u00a0")[0])


def test_devices_are_named_where_there_are_several() -> None:
    nodes = graphs.chain(6)
    assert "cpu:0" not in texts(picture.svg([replace(n, placed="cpu:0") for n in nodes]))
    two = [replace(n, placed=f"gpu:{n.id % 2}") for n in nodes]
    assert {"gpu:0", "gpu:1"} <= texts(picture.svg(two))


def test_nothing_is_said_to_be_there_in_an_empty_graph() -> None:
    assert "no operations yet" in texts(picture.svg([]))


def test_threads_draw_the_same() -> None:
    wanted = picture.svg(graphs.mlp())
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: picture.svg(graphs.mlp()), range(8)))
    assert set(found) == {wanted}


PROGRAM = """
import os, sys
sys.path.insert(0, {folder!r})
import picture_graphs as graphs
from flowscope_widgets import picture
assert "py_mini_racer" not in sys.modules, "V8 is loaded when the first picture is drawn"
assert picture.svg(graphs.mlp()).startswith("<svg")
child = os.fork()
if child == 0:
    os._exit(1 if picture.can_draw() else 0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print("drawn")
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks are POSIX's")
def test_a_process_ends_cleanly_and_its_forks_leave_v8_alone() -> None:
    """V8's threads stay with the parent: a call in the child would wait for them for ever."""
    program = PROGRAM.format(folder=str(Path(graphs.__file__).parent))
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "drawn\n", "")


@pytest.mark.slow
def test_a_process_that_has_drawn_ends_beside_busy_ones() -> None:
    """Left to the interpreter's end, V8's threads hang it now and then where cores are busy."""
    code = "from flowscope_widgets import picture\nfor _ in range(4): picture.svg([])"
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        for _ in range(6):
            subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    finally:
        for process in busy:
            process.kill()
            process.wait()
