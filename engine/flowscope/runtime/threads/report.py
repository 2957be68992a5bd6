"""What flowscope finds on this machine: cores, BLAS, oneDNN, GPUs; what is missing, and its price.

`python -m flowscope` prints it. Where a better choice of kernels can be tried here its price is
measured, in a process of its own; what is not installed cannot be, and then the text says where its
figure was measured.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import os
import platform
import subprocess
import sys
from dataclasses import dataclass

from flowscope.runtime.threads import blas_kernels
from flowscope.runtime.threads.cores import available_cores

__all__ = ["RuntimeReport", "runtime_report"]

#: A product of two 512x512 matrices of float32, the quickest of thirty; prints milliseconds.
_PRODUCT = """
import time, numpy as np
a = np.ones((512, 512), np.float32)
times = []
for _ in range(30):
    start = time.perf_counter(); a @ a; times.append(time.perf_counter() - start)
print(min(times) * 1e3)
"""
#: Median of 15 steps each, in turns, on two cores of a Xeon at 2.8 GHz.
_ONEDNN_GAIN = (
    "a 3x3 convolution of 32x28x28x32 with 64 filters takes 10.5 ms without and 6.7 ms with it,\n"
    "    its gradients 33 and 14 ms (measured on two cores of a Xeon at 2.8 GHz)"
)
_THREADS_GAIN = (
    "eight products of a perceptron (96x512-384-128-20) take 1.2 ms without and 0.8 ms with it\n"
    "    (measured on two cores of a Xeon at 2.8 GHz)"
)


@dataclass(frozen=True)
class Advice:
    """Something that would make steps quicker.

    Attributes:
        what: What is missing.
        todo: How to get it.
        gain: What it brings, measured; "" where that is not known.
    """

    what: str
    todo: str
    gain: str


@dataclass(frozen=True)
class RuntimeReport:
    """What is used on this machine.

    Attributes:
        used: What is used, by topic: "flowscope", "cores", "BLAS", "threads", "loops", "oneDNN",
            "GPU".
        advice: What is missing.
    """

    used: dict[str, str]
    advice: tuple[Advice, ...]

    def __str__(self) -> str:
        lines = [f"{topic:<10} {text}" for topic, text in self.used.items()]
        for one in self.advice:
            lines += ["", f"{one.what}:", f"    {one.todo}"]
            lines += [f"    {one.gain}"] if one.gain else []
        if not self.advice:
            lines += ["", "Nothing is missing."]
        return "\n".join(lines)

    __repr__ = __str__


def runtime_report(measure: bool = True) -> RuntimeReport:
    """A report of what flowscope uses on this machine, what is missing, and its benefit.

    `print(fs.runtime_report())`, or `python -m flowscope` in a terminal.

    Args:
        measure: Whether kernels that this machine could use and does not are timed, in processes
            of their own; that takes about a second. Where all is well nothing is measured.
    """
    advice = [*_blas_advice(measure), *_threads_advice(), *_onednn_advice()]
    used = {
        "flowscope": _versions(),
        "cores": f"{available_cores()} of {os.cpu_count()} for this process",
        "BLAS": "; ".join(map(_library_text, blas_kernels.libraries()))
        or "unknown to threadpoolctl",
        "threads": _threads_text(),
        "loops": "of numbers become machine code" if _has_llvmlite() else "are Python: no llvmlite",
        "oneDNN": _onednn_text(),
        "GPU": _gpu_text(),
    }
    return RuntimeReport(used, tuple(advice))


def _versions() -> str:
    import flowscope

    parts = (f"{name} {importlib.metadata.version(name)}" for name in ("NumPy", "SciPy"))
    python = f"Python {platform.python_version()}"
    return ", ".join([flowscope.__version__, python, *parts, platform.platform()])


def _library_text(library: dict[str, object]) -> str:
    under = "SciPy" if "scipy.libs" in str(library["filepath"]) else "NumPy"
    name = f"{library['internal_api']} {library['version'] or ''}".strip()
    return f"{name} under {under}, kernels {library.get('architecture', '?')}"


def _blas_advice(measure: bool) -> list[Advice]:
    flags = blas_kernels.cpu_flags()
    for library in blas_kernels.libraries():
        if better := blas_kernels.better_kernels(library, flags):
            what = f"OpenBLAS uses its kernels {library['architecture']}, the CPU has AVX-512"
            todo = f"set {blas_kernels.VARIABLE}={better} in the environment before Python starts"
            return [Advice(what, todo, _blas_gain(better) if measure else "")]
    return []


def _blas_gain(better: str) -> str:
    now, then = _product_ms({}), _product_ms({blas_kernels.VARIABLE: better})
    if now is None or then is None:
        return ""
    return f"a product of 512x512 matrices on one thread takes {now:.2g} ms, and {then:.2g} ms then"


def _product_ms(variables: dict[str, str]) -> float | None:
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", **variables}
    run = subprocess.run([sys.executable, "-c", _PRODUCT], env=env, capture_output=True, text=True)
    return None if run.returncode else float(run.stdout)


def _threads_text() -> str:
    if available_cores() < 2:
        return "matrix products on one thread: there is one core"
    return f"matrix products on {'several' if _has_llvmlite() else 'one'}"


def _threads_advice() -> list[Advice]:
    libraries = (one["internal_api"] for one in blas_kernels.libraries())
    if _has_llvmlite() or available_cores() < 2 or "openblas" not in libraries:
        return []
    what = "Matrix products run on one thread"
    return [Advice(what, 'pip install "flowscope[threads]"', _THREADS_GAIN)]


def _has_llvmlite() -> bool:
    return importlib.util.find_spec("llvmlite") is not None


def _onednn_text() -> str:
    from flowscope.ops.kernels import onednn

    library = onednn.library()
    if library is None:
        is_off = os.environ.get("FLOWSCOPE_ONEDNN") == "0"
        return "not used: FLOWSCOPE_ONEDNN=0" if is_off else "not installed"
    return f"{library.version}, for convolutions, pools and normalisation"


def _onednn_advice() -> list[Advice]:
    from flowscope.ops.kernels import onednn

    if onednn.library() is not None:
        return []
    if os.environ.get("FLOWSCOPE_ONEDNN") == "0":
        todo = "leave FLOWSCOPE_ONEDNN unset"
    elif has_onednn_wheel():
        todo = 'pip install "flowscope[onednn]"'
    else:
        todo = f"there is no wheel for {platform.system()} on {platform.machine()}"
    return [Advice("Convolutions run on NumPy, not on oneDNN", todo, _ONEDNN_GAIN)]


def has_onednn_wheel() -> bool:
    """Whether the extra `onednn` installs something here."""
    return sys.platform == "linux" and platform.machine() == "x86_64"


def _gpu_text() -> str:
    for name in ("cupy-cuda12x", "cupy-cuda13x", "cupy-cuda11x", "cupy"):
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        if not _has_gpu_driver():
            return f"{name} {version}, but no driver: install NVIDIA's"
        return f'{name} {version}: fs.ConfigProto(device_count={{"GPU": 1}}) uses it'
    if not _has_gpu_driver():
        return "no driver, no CuPy"
    return 'a driver, but no CuPy: pip install "flowscope[gpu]" (for CUDA 13 "flowscope[gpu13]")'


def _has_gpu_driver() -> bool:
    """Whether NVIDIA's driver is there for programs to load."""
    try:
        ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return False
    return True
