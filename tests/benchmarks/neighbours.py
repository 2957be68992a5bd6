"""Busy neighbours: processes that keep a core busy while something else is measured.

A browser that draws, a room of laptops, a shared server: an idle machine is the exception. A
neighbour ends with the process that started it, however that one ends: it holds the reading end of
a pipe whose other end closes then.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator

#: The thread that reads holds no lock of the interpreter, so the other one never lets go of it.
_BUSY = """
import os, sys, threading
def end():
    sys.stdin.buffer.read()
    os._exit(0)
threading.Thread(target=end, daemon=True).start()
print("busy", flush=True)
while True: pass
"""


@contextlib.contextmanager
def busy(count: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """So many processes are busy while the body runs."""
    with contextlib.ExitStack() as stack:
        started = []
        for _ in range(count):
            command = [sys.executable, "-S", "-c", _BUSY]
            one = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            stack.callback(_end, one)
            started.append(one)
        for one in started:
            assert one.stdout is not None
            one.stdout.readline()
        yield started


def _end(one: subprocess.Popen[bytes]) -> None:
    one.kill()
    one.communicate()
