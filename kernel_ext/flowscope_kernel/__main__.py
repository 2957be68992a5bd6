"""The ipykernel of the kernelspec "Python 3 (flowscope)": with the right kernels of OpenBLAS.

They are chosen by the environment, before NumPy is loaded. Where OpenBLAS takes the wrong ones this
process starts anew, with the environment that it should have had; its number stays the same, by
which Jupyter interrupts and ends it.
"""

import os
import runpy
import sys


def main() -> None:
    """Becomes the ipykernel."""
    from flowscope.runtime.threads.blas_kernels import environment

    variables = environment() if os.name == "posix" else {}
    if variables:
        command = [sys.executable, "-m", "ipykernel_launcher", *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, **variables})
    try:
        runpy.run_module("ipykernel_launcher", run_name="__main__")
    except ImportError as error:
        if error.name != "ipykernel_launcher":
            raise
        sys.exit('JupyterLab\'s kernel is missing: pip install "flowscope[lab]"')


if __name__ == "__main__":
    main()
