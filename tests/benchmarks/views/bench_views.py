"""Figures of the pictures of twelve models: `python tests/benchmarks/views/bench_views.py`.

The engine makes the snapshots; node folds them, lays them out and counts (`labextension/dev/
bench_views.ts`). `--keep` writes the figures to `after.json`, and `FIGURES.md` with them beside
those of `before.json`. `--out FOLDER` keeps snapshots and pictures (SVG).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import flowscope as fs
from flowscope.live.watchers import bus
from flowscope.live.watchers.wire import to_wire

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE), str(ROOT)]

from models import MODELS  # noqa: E402

Figures = dict[str, dict[str, float]]


REMAINS = """\
Not as it should be yet:

- Boxes cover less than a quarter of the stage in all models but `flat_2000`; between ranks of
  38 px lie at least 34 px for a line and its label.
- `pipeline` does not fit 600 px at zoom 0.62: what has no room is reached by panning, not folded.
- The drawing script is over 50 kB gzipped. Without panels, inspector, commands and the models of
  runs and traces 61 kB are left, 11 of them the layout's worker: a first chunk of 50 draws nothing.
- 100 operations more in a graph of 36 000 take 75 to 140 ms of the processor: its outermost level
  of 3 382 boxes is folded anew. Where levels are small it takes 6 to 10 ms.
""".splitlines()


def write_snapshots(folder: Path, names: list[str]) -> None:
    """Writes each model's snapshot as it travels: NAME.json, NAME.0.bin, NAME.1.bin."""
    for name in names:
        with fs.Graph().as_default() as graph:
            MODELS[name]()
            message, buffers = to_wire(bus.LiveChannel(graph).describe())
        (folder / f"{name}.json").write_text(json.dumps(message))
        for k, buffer in enumerate(buffers):
            (folder / f"{name}.{k}.bin").write_bytes(buffer)


def count(folder: Path, front_end: Path) -> Figures:
    """Returns the figures of all snapshots in a folder."""
    from hatch_build import find_node

    node = find_node()
    if node is None:
        raise SystemExit("node is needed; `make bench-views` sets it up")
    command = [str(node[0] / "node"), "scripts/bench_views.mjs", str(folder.resolve())]
    done = subprocess.run(command, cwd=front_end, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def table(before: Figures, after: Figures) -> str:
    """Returns the figures as Markdown: before and after, model by model."""
    lines = [
        "# Figures of the pictures of twelve models",
        "",
        "The first picture of each, fitted to a stage of 1280 x 800 and 600 x 600 pixels; before",
        "-> after the rules of the picture. `make bench-views` computes them anew.",
    ]
    keys = list(next(iter(after.values())))
    for first in range(0, len(keys), 5):
        part = keys[first : first + 5]
        lines += ["", f"| model | {' | '.join(part)} |", "|---|" + "---:|" * len(part)]
        for name in [n for n in MODELS if n in after]:
            cells = [f"{before.get(name, {}).get(k, '-')} -> {after[name][k]}" for k in part]
            lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", *REMAINS]) + "\n"


def browser_table() -> str:
    """The figures that `browser.py` has kept, as Markdown; "" where it has kept none."""
    file = HERE / "browser.json"
    kept: dict[str, Figures] = json.loads(file.read_text()) if file.exists() else {}
    after, before = kept.get("after", {}), kept.get("before", {})
    lines = [
        "",
        "# Figures of the view in a browser",
        "",
        "Chromium on two cores that other programs share: the clock tells up to three times",
        "what it does on a quiet machine, so tasks are told by their time of the processor.",
        "The clock starts when the snapshot is there; `make bench-views BROWSER=1` measures anew.",
    ]
    sent = ", ".join(f"{k} {v}" for k, v in after.get("", {}).items())
    lines += ["", f"Sent once a page: {sent}."]
    for name in [n for n in after if n]:
        lines += ["", f"| {name} | before | after |", "|---|---:|---:|"]
        for key, value in after[name].items():
            lines.append(f"| {key} | {before.get(name, {}).get(key, '-')} | {value} |")
    return "\n".join(lines) + "\n" if after else ""


def main() -> None:
    """Prints the figures, and keeps them where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="models; all if none")
    parser.add_argument("--out", type=Path, help="where snapshots and pictures are kept")
    parser.add_argument("--keep", action="store_true", help="write after.json and FIGURES.md")
    parser.add_argument("--front-end", type=Path, default=ROOT / "labextension")
    arguments = parser.parse_args()
    names = arguments.names or list(MODELS)
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.out or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        write_snapshots(folder, names)
        after = count(folder, arguments.front_end)
    before_file = HERE / "before.json"
    before = json.loads(before_file.read_text()) if before_file.exists() else {}
    print(table(before, after))
    if arguments.keep:
        (HERE / "after.json").write_text(json.dumps(after, indent=1) + "\n")
        (HERE / "FIGURES.md").write_text(table(before, after) + browser_table())


if __name__ == "__main__":
    main()
