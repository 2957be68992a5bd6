"""The kernel of the kernelspec "Python 3 (flowscope)"."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from jupyter_client.manager import KernelManager

ROOT = Path(__file__).parents[2]

#: As on a machine on which OpenBLAS takes the wrong kernels.
WRONG_KERNELS = """
import flowscope.runtime.threads.blas_kernels as b
b.environment = lambda: {"OPENBLAS_CORETYPE": "SkylakeX"}
from flowscope_kernel.__main__ import main
main()
"""


def test_kernelspec_starts_it() -> None:
    spec = json.loads((ROOT / "kernel_ext/kernelspec/kernel.json").read_text())
    assert spec["argv"][:3] == ["python", "-m", "flowscope_kernel"]
    assert spec["display_name"] == "Python 3 (flowscope)"


def answers(command: list[str], code: str) -> Iterator[str]:
    """Yields what a kernel prints that a command starts."""
    manager = KernelManager()
    manager.kernel_spec.argv = [sys.executable, *command, "-f", "{connection_file}"]
    env = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}
    manager.start_kernel(env=env)
    client = manager.blocking_client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        found: list[str] = []
        client.execute_interactive(
            code, timeout=60, output_hook=lambda m: found.append(m["content"].get("text", ""))
        )
        yield "".join(found)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
        manager.cleanup_resources()


@pytest.mark.slow
def test_kernel_runs_cells() -> None:
    for out in answers(["-m", "flowscope_kernel"], "import os; print(6 * 7, os.getpid())"):
        assert out.startswith("42 ")


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="a process starts anew on POSIX only")
def test_kernel_starts_anew_where_openblas_chose_wrong() -> None:
    code = "import os, sys; print(os.environ['OPENBLAS_CORETYPE'], 'numpy' in sys.modules)"
    for out in answers(["-c", WRONG_KERNELS], code):
        assert out.split() == ["SkylakeX", "False"]
