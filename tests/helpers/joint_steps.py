"""Steps over three workers that are paused while they run."""

from cluster_hosts import on, worker
from process_channels import until

import flowscope as fs

DEVICES = [
    "/job:client/replica:0/task:0/device:CPU:0",
    *[worker(i) + "/device:CPU:0" for i in range(3)],
]


def chain(trips, size=2):
    """A loop in which three workers and the client take turns; one has the condition."""
    with on(0):
        start = fs.ones((size, size), name="start")

    def body(i, x, y):
        with on(0):
            a = fs.tanh(x, name="a")
        with on(1):
            b = fs.multiply(a, 2.0, name="b")
            c = fs.add(b, 0.5, name="c")
        with on(2):
            d = fs.exp(c, name="d")
        with on(0):
            e = fs.add(a, d, name="e")
        with fs.device(DEVICES[0]):
            f = fs.add(d, y, name="f")
        with on(1):
            return fs.add(i, 1, name="next"), e, f

    def goes_on(i, x, y):
        with on(1):
            return fs.less(i, trips, name="less")

    with on(1):
        zero = fs.constant(0)
    return fs.while_loop(goes_on, body, [zero, start, start], parallel_iterations=4)


def paused(sess):
    """Pauses the session's running step; returns where it stands."""
    until(lambda: sess._remote.steps)
    sess.pause()
    return stood(sess)


def stood(sess):
    stop = sess.debug.wait(30.0)
    assert stop is not None
    return stop
