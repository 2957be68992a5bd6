"""What the wheel holds, and that it works where nothing else of the repository is."""

from __future__ import annotations

import itertools
import json
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

pytestmark = pytest.mark.slow

PACKAGES = ("flowscope", "flowscope_kernel", "flowscope_widgets")
EXTENSION = "data/share/jupyter/labextensions/flowscope/"


@pytest.fixture(scope="module")
def names(wheel: Path) -> list[str]:
    """The files in the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_packages(names: list[str]) -> None:
    """The wheel has the three packages, typed, and nothing else at its top."""
    for package in PACKAGES:
        assert f"{package}/__init__.py" in names
        assert f"{package}/py.typed" in names
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.startswith("flowscope-")} == set(PACKAGES)


def test_no_sources_of_the_front_end(names: list[str]) -> None:
    """Neither tests nor npm packages nor the extension's second copy are in it."""
    parts = ("node_modules", "tests", "__pycache__", "flowscope_widgets/labextension")
    assert [name for name in names if any(part in name for part in parts)] == []


def test_front_end(root: Path, wheel: Path, names: list[str]) -> None:
    """The widget's script is beside the widget, the extension in share/jupyter."""
    if not (root / "widgets/flowscope_widgets/static/graph_view.js").is_file():
        pytest.skip("needs the front end: make front-end")
    assert "flowscope_widgets/static/graph_view.js" in names
    extension = [name for name in names if EXTENSION in name]
    assert any(name.endswith("install.json") for name in extension)
    (package,) = [name for name in extension if name.endswith("flowscope/package.json")]
    with zipfile.ZipFile(wheel) as archive:
        build = json.loads(archive.read(package))["jupyterlab"]["_build"]
    assert any(name.endswith(build["load"]) for name in extension)


def test_metadata(wheel: Path) -> None:
    """The base needs no JupyterLab; the display is found through its entry point."""
    with zipfile.ZipFile(wheel) as archive:
        files = {Path(name).name: name for name in archive.namelist() if ".dist-info/" in name}
        metadata = archive.read(files["METADATA"]).decode()
        entry_points = archive.read(files["entry_points.txt"]).decode()
    lines = metadata.partition("\n\n")[0].splitlines()
    needs = [Requirement(line.partition(": ")[2]) for line in lines if "Requires-Dist" in line]
    base = {need.name for need in needs if need.marker is None}
    numbers = {"ml-dtypes", "numpy", "safetensors", "scipy", "threadpoolctl"}
    assert base == {"anywidget", "ipywidgets", "mini-racer"} | numbers
    assert "[flowscope.display]\nnotebook = flowscope_widgets:display" in entry_points
    assert "License-File: LICENSE" in lines


def test_stock_install_is_the_quick_one(wheel: Path) -> None:
    """The extra of the tutorials brings oneDNN, llvmlite where they serve, and the kernelspec."""
    with zipfile.ZipFile(wheel) as archive:
        files = {Path(name).name: name for name in archive.namelist()}
        metadata = archive.read(files["METADATA"]).decode()
        spec = json.loads(archive.read(files["kernel.json"]))
    assert files["kernel.json"].endswith("data/share/jupyter/kernels/flowscope/kernel.json")
    assert spec["argv"][1:3] == ["-m", "flowscope_kernel"]
    lines = metadata.partition("\n\n")[0].splitlines()
    needs = [Requirement(line.partition(": ")[2]) for line in lines if "Requires-Dist" in line]
    linux = {"sys_platform": "linux", "platform_machine": "x86_64", "python_version": "3.12"}
    mac = {**linux, "sys_platform": "darwin"}
    for extra, place in itertools.product(("cluster", "lab", "onednn", "threads"), (linux, mac)):
        of_extra = {**place, "extra": extra}
        found = {n.name for n in needs if n.marker and n.marker.evaluate(of_extra)}
        assert ("onednn-cpu-gomp" in found) is (place is linux and extra in ("lab", "onednn"))
        assert ("llvmlite" in found) is (place is linux and extra in ("lab", "threads"))
        assert ("distributed" in found) is (extra in ("lab", "cluster"))


def test_runs_where_it_is_installed(installed) -> None:
    """A program runs on the installed package, without node, dot or a browser on PATH."""
    out = installed.run(
        "import flowscope as fs\n"
        "x = fs.placeholder(fs.float32, [])\n"
        "with fs.Session() as sess:\n"
        "    print(fs.__file__)\n"
        "    print(sess.run(x * 2.0 + 1.0, {x: 3.0}))\n"
    )
    where, value = out.splitlines()
    assert Path(where).is_relative_to(installed.prefix)
    assert float(value) == 7.0


def test_shows_text_without_a_notebook(installed) -> None:
    """In plain Python `show` prints the graph."""
    out = installed.run(
        "import flowscope as fs\n"
        "x = fs.placeholder(fs.float32, [], name='x')\n"
        "fs.multiply(x, 2.0, name='twice')\n"
        "fs.show()\n"
    )
    assert "twice" in out


def test_all_packages_import(installed) -> None:
    """Each of the three packages imports."""
    for package in PACKAGES:
        installed.run(f"import {package}")


def test_extension_is_where_jupyter_looks(root: Path, installed) -> None:
    """pip puts the extension into the environment's share/jupyter."""
    if not (root / "widgets/flowscope_widgets/labextension/package.json").is_file():
        pytest.skip("needs the front end: make front-end")
    folder = installed.prefix / "share" / "jupyter" / "labextensions" / "flowscope"
    assert (folder / "package.json").is_file()
    assert (folder / "install.json").is_file()
