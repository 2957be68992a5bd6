"""A distributed step under the debugger: one operation of the whole step at a time."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from cluster_hosts import hosts_here, on, worker

import flowscope as fs
from flowscope.errors import (
    CancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    UnavailableError,
)

pytestmark = pytest.mark.usefixtures("graph")
MODES = ["compiled", "op", "tokens"]


@pytest.fixture(scope="module")
def ends():
    with hosts_here(2) as found:
        yield found


@pytest.fixture
def cluster(ends):
    return ends[0]


def power(trips=4):
    """A loop: one worker multiplies, the other one counts."""
    with on(0):
        matrix = fs.constant(np.array([[1.0, 1.0], [0.0, 1.0]], np.float32), name="matrix")
        start = fs.ones((2, 2), name="start")

    def body(i, x):
        with on(0):
            x = fs.matmul(x, matrix, name="product")
        with on(1):
            return fs.add(i, 1, name="next"), x

    with on(1):
        zero, limit = fs.constant(0), fs.constant(trips)

    def goes_on(i, x):
        with on(1):
            return i < limit

    return fs.while_loop(goes_on, body, [zero, start])


@pytest.mark.parametrize("mode", MODES)
def test_a_breakpoint_on_a_worker_holds_the_step_with_values_of_all(cluster, mode):
    loop = power()
    with fs.Session(cluster, config=fs.ConfigProto(mode=mode)) as sess:
        plain = sess.run(loop)
        point = sess.debug.break_after("while/body/product", iteration=2)
        found = []

        def look(stop):
            found.append((stop.op, stop.iterations, stop.value("while/body/product")))
            found.append(stop.values()["while/body/product:0"].max)
            found.append(stop.value("while/body/product", np.s_[0, 1:]).tolist())
            found.append(repr(stop))

        sess.debug.on_stop(look)
        again = sess.run(loop)
        np.testing.assert_array_equal(found[0][2], [[1.0, 4.0], [1.0, 4.0]])
        assert found[0][1] == (2,)
        assert found[1:3] == [4.0, [4.0]]
        assert worker(1) in found[3]
        assert point.hits == 1
    assert plain[0] == again[0]
    assert plain[1].tobytes() == again[1].tobytes()
