"""What is used, what is missing: the report, and the choice of OpenBLAS's kernels."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import flowscope as fs
from flowscope.ops.kernels import onednn
from flowscope.runtime.threads import blas_kernels, report

WIDE = frozenset(["sse", "avx2", "avx512f", "avx512dq", "avx512cd", "avx512bw", "avx512vl"])


def library(architecture: str, api: str = "openblas") -> dict[str, Any]:
    return {"internal_api": api, "architecture": architecture, "version": "0.3", "filepath": "x"}


@pytest.mark.parametrize(
    ("found", "flags", "expected"),
    [
        (library("Haswell"), WIDE, "SkylakeX"),
        (library("Zen"), WIDE, "SkylakeX"),
        (library("Haswell"), frozenset({"avx2"}), None),
        (library("Haswell"), WIDE - {"avx512bw"}, None),
        (library("SkylakeX"), WIDE, None),
        (library("Cooperlake"), WIDE, None),
        (library("SapphireRapids"), WIDE, None),
        (library("Haswell", "mkl"), WIDE, None),
        ({"internal_api": "openblas"}, WIDE, None),
    ],
)
def test_kernels_follow_the_flags(
    found: dict[str, Any], flags: frozenset[str], expected: str | None
) -> None:
    assert blas_kernels.better_kernels(found, flags) == expected


def test_flags(tmp_path: Path) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text("processor\t: 0\nmodel name\t: A: B\nflags\t\t: fpu avx2\n\nflags: other\n")
    assert blas_kernels.cpu_flags(file) == {"fpu", "avx2"}
    assert blas_kernels.cpu_flags(tmp_path / "missing") == frozenset()


def test_what_the_user_has_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas_kernels, "libraries", lambda: [library("Haswell")])
    monkeypatch.setattr(blas_kernels, "cpu_flags", lambda: WIDE)
    monkeypatch.delenv(blas_kernels.VARIABLE, raising=False)
    assert blas_kernels.environment() == {"OPENBLAS_CORETYPE": "SkylakeX"}
    monkeypatch.setenv(blas_kernels.VARIABLE, "Haswell")
    assert blas_kernels.environment() == {}


def test_report_says_what_is_used() -> None:
    found = fs.runtime_report(measure=False)
    assert found.used["flowscope"].startswith(f"{fs.__version__}, Python 3.")
    assert found.used["BLAS"]
    loaded = onednn.library()
    assert (loaded.version if loaded else "not") in found.used["oneDNN"]
    assert str(found).splitlines()[0].startswith("flowscope  ")


def test_report_advises_onednn_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onednn, "library", lambda: None)
    monkeypatch.delenv("FLOWSCOPE_ONEDNN", raising=False)
    for has, todo in ((True, 'pip install "flowscope[onednn]"'), (False, "there is no wheel")):
        monkeypatch.setattr(report, "has_onednn_wheel", lambda has=has: has)
        found = fs.runtime_report(measure=False)
        (advice,) = [a for a in found.advice if "oneDNN" in a.what]
        assert advice.todo.startswith(todo)
        assert "33 and 14 ms" in str(found)


def test_report_advises_llvmlite_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "available_cores", lambda: 2)
    monkeypatch.setattr(blas_kernels, "libraries", lambda: [library("SkylakeX")])
    monkeypatch.setattr(report, "_has_llvmlite", lambda: False)
    (advice,) = [a for a in fs.runtime_report(measure=False).advice if "products" in a.what]
    assert advice.todo == 'pip install "flowscope[threads]"'
    monkeypatch.setattr(report, "_has_llvmlite", lambda: True)
    assert "on several" in fs.runtime_report(measure=False).used["threads"]


def test_report_is_content_where_nothing_is_missing() -> None:
    assert str(report.RuntimeReport({"cores": "2"}, ())).endswith("Nothing is missing.")


@pytest.mark.slow
def test_report_measures_the_kernels_that_it_advises() -> None:
    env = {**os.environ, "OPENBLAS_CORETYPE": "Haswell"}
    out = subprocess.run(
        [sys.executable, "-m", "flowscope"], env=env, capture_output=True, text=True, check=True
    ).stdout
    if not blas_kernels.cpu_flags() >= WIDE - {"sse"} or "kernels Haswell" not in out:
        pytest.skip("needs OpenBLAS on a CPU with AVX-512")
    assert "set OPENBLAS_CORETYPE=SkylakeX in the environment before Python starts" in out
    assert "a product of 512x512 matrices on one thread takes" in out


@pytest.mark.slow
@pytest.mark.parametrize(("args", "code"), [(["--environment"], 0), (["--what"], 2)])
def test_command_line(args: list[str], code: int) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "flowscope", *args], capture_output=True, text=True, check=False
    )
    assert run.returncode == code
    assert ("python -m flowscope --environment" in run.stderr) is (code == 2)


@pytest.mark.parametrize(
    ("has_driver", "installed", "expected"),
    [
        (False, None, "no driver, no CuPy"),
        (True, None, 'a driver, but no CuPy: pip install "flowscope[gpu]"'),
        (False, "cupy-cuda13x", "cupy-cuda13x 14.0, but no driver: install NVIDIA's"),
        (True, "cupy-cuda12x", "cupy-cuda12x 14.0: fs.ConfigProto"),
    ],
)
def test_gpus_say_what_is_missing(
    has_driver: bool, installed: str | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(name: str) -> str:
        if name != installed:
            raise report.importlib.metadata.PackageNotFoundError(name)
        return "14.0"

    def load(name: str) -> None:
        if not has_driver:
            raise OSError(name)

    monkeypatch.setattr(report.importlib.metadata, "version", version)
    monkeypatch.setattr(report.ctypes, "CDLL", load)
    assert report._gpu_text().startswith(expected)
