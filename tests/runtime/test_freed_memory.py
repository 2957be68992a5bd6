"""Memory that a step frees is there for the next one."""

import os
import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's setting"),
]

#: Prints how many pages the system has mapped anew for 50 steps of arrays of 4 MB: the least of
#: three times, for a thread may start beside one of them.
PROGRAM = """
import resource, numpy as np, flowscope as fs
from flowscope.runtime.threads.freed_memory import keep_freed_memory
x = fs.placeholder(fs.float32, [1 << 20])
y = fs.reduce_sum(fs.stack([x + 1.0, x * 2.0]))
with fs.Session() as sess:
    feed = {x: np.ones(1 << 20, np.float32)}
    for _ in range(5):
        sess.run(y, feed)
    found = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(50):
            sess.run(y, feed)
        found.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    print(keep_freed_memory(), min(found))
"""


def faults(**variables):
    names = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")
    env = {k: v for k, v in os.environ.items() if k not in names}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(
        command, env={**env, **variables}, capture_output=True, text=True, check=True
    )
    is_kept, count = done.stdout.split()
    return is_kept == "True", int(count)


def test_steps_take_the_memory_of_the_steps_before():
    is_kept, count = faults()
    if not is_kept:
        pytest.skip("needs glibc")
    assert count < 500


def test_what_the_user_has_set_stays():
    is_kept, count = faults(MALLOC_TRIM_THRESHOLD_="131072")
    assert not is_kept
    assert count > 10_000
