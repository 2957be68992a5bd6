"""The IPython extension: `%load_ext flowscope`.

It tells the engine which cell a line stands in and which cell is running, so that a cell that is
run again replaces what it had built, and shortens the traceback of a flowscope error to the user's
own lines.
"""

from flowscope_kernel.extension import load_ipython_extension, unload_ipython_extension

__all__ = ["load_ipython_extension", "unload_ipython_extension"]
