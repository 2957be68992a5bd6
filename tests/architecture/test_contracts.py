"""The rules that hold for all code: who imports whom, how long a file may get, what is imported."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = ("engine", "kernel_ext", "widgets", "tests")
MAX_LINES = 600

# `import flowscope` must stay quick, and work where none of these is installed.
UNWANTED = (
    "IPython",
    "anywidget",
    "asyncio",
    "comm",
    "cupy",
    "dask",
    "distributed",
    "graphviz",
    "ipykernel",
    "ipywidgets",
    "jupyter_client",
    "jupyter_core",
    "jupyterlab",
    "matplotlib",
    "py_mini_racer",
    "scipy",
    "sklearn",
    "traitlets",
)

# Of the standard library it may bring along what NumPy brings, and these with what they need.
REVIEWED = (
    "atexit",
    "base64",
    "bisect",
    "contextlib",
    "copy",
    "ctypes",
    "dataclasses",
    "enum",
    "errno",
    "gc",
    "heapq",
    "json",
    "signal",
    "sysconfig",
    "threading",
    "traceback",
    "unicodedata",
    "weakref",
    "zlib",
    "threadpoolctl",  # with the first step that multiplies
)
# Parts of the engine that a first step mostly does without.
LATER = ("flowscope.executor", "flowscope.live.answers.state", "flowscope.runtime.step.driver")
STEP = """
import flowscope as fs
x = fs.placeholder(fs.float32, [2, 2])
with fs.Session() as session:
    session.run(fs.nn.relu(fs.matmul(x, x) + 1.0), {x: [[1, 2], [3, 4]]})
"""
# Python sources that are compiled until a first step has run: of kernels that are expressions,
# named tuples, and of the few dataclasses that are made at once (see decision 15).
MAX_COMPILED = 290


@pytest.mark.slow
def test_import_contracts(root: Path, source_env: dict[str, str]) -> None:
    """The contracts of [tool.importlinter] in pyproject.toml are kept."""
    run = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"],
        cwd=root,
        env=source_env,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_files_stay_short(root: Path) -> None:
    """A file over 600 lines holds more than one thing; what is generated is read elsewhere."""
    files = [p for name in SOURCES for p in (root / name).rglob("*.py")]
    files += [p for p in (root / "labextension" / "src").rglob("*.ts*") if p.is_file()]
    lengths = {p.relative_to(root).as_posix(): len(p.read_text().splitlines()) for p in files}
    del lengths["labextension/src/wire/messages.ts"]  # of `live/protocol/schema.py` and its parts
    assert {name: n for name, n in lengths.items() if n > MAX_LINES} == {}


def test_source_packages_are_typed(root: Path) -> None:
    """Each of the three packages carries py.typed."""
    packages = ("engine/flowscope", "kernel_ext/flowscope_kernel", "widgets/flowscope_widgets")
    assert [p for p in packages if not (root / p / "py.typed").is_file()] == []


def test_tests_are_no_packages(root: Path) -> None:
    """tests/ has no __init__.py: two test files may have the same name."""
    assert list((root / "tests").rglob("__init__.py")) == []


@pytest.mark.slow
def test_tests_of_memory_run_first(root: Path) -> None:
    """What another test leaves in the process, or runs beside it, would be measured too."""
    for path in (root / "tests").rglob("test_*.py"):
        names = {
            n.attr for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Attribute)
        }
        if names & {"get_traced_memory", "getrusage"}:
            assert "@pytest.mark.memory" in path.read_text(), f"mark the tests of memory in {path}"


def test_import_brings_nothing_along(source_env: dict[str, str]) -> None:
    """A first step in a fresh interpreter imports no notebook, cluster or GPU package."""
    code = f"import sys, json\n{STEP}\nprint(json.dumps(sorted(sys.modules)))"
    run = subprocess.run(
        [sys.executable, "-c", code], env=source_env, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    imported = {name.partition(".")[0] for name in json.loads(run.stdout)}
    assert sorted(imported.intersection(UNWANTED)) == []


@pytest.mark.slow
def test_import_does_little(source_env: dict[str, str]) -> None:
    """`import flowscope` and a first step load what was reviewed, and make dataclasses late.

    It counts and does not time: `make bench` does.
    """
    code = f"""
import json, sys, numpy, {", ".join(REVIEWED)}
before, compiled = set(sys.modules), []
def hook(event, args):
    if event == "compile" and args[1] == "<string>":
        compiled.append(args)
sys.addaudithook(hook)
{STEP}
print(json.dumps([sorted(set(sys.modules) - before), len(compiled)]))
"""
    run = subprocess.run(
        [sys.executable, "-c", code], env=source_env, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    loaded, compiled = json.loads(run.stdout)
    packages = {name.partition(".")[0] for name in loaded if not name.startswith("_")}
    assert sorted(packages - {"flowscope", "numpy"}) == []
    assert [name for name in loaded if name.startswith(LATER)] == []
    assert compiled <= MAX_COMPILED
