"""`GraphOptions.enable_recv_scheduling` over workers: the receiver's process stays small."""

from pathlib import Path

import numpy as np
import pytest
from local_clusters import local_cluster

import flowscope as fs

SIZE, COUNT = 2048, 20
ONE = 4 * SIZE * SIZE


def on(task):
    return fs.device(f"/job:worker/task:{task}")


def peak():
    """The most bytes that this process had; `getrusage` tells those of its parent, if more."""
    (line,) = [s for s in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in s]
    return np.array(int(line.split()[1]) * 1024, np.int64)


def wide(x, receiver):
    """Many values of one worker, which another one takes one after the other, and slower."""
    with on(0):
        made = [fs.sin(x * float(i)) for i in range(COUNT)]
    with on(receiver):
        total = fs.tanh(made[0])
        for one in made[1:]:
            total = fs.tanh(fs.atan(fs.sin(fs.erf(fs.tanh(total + one)))))
    return total


def looped(x, receiver):
    return fs.while_loop(lambda i, _: i < 2, lambda i, a: (i + 1, wide(a, receiver)), [0, x])[1]


def grown(cluster, make, receiver, mode, is_late):
    """The result of a step, and how much its receiver's process has grown, in sizes of a value."""
    options = fs.GraphOptions(enable_recv_scheduling=is_late)
    with fs.Graph().as_default():
        x = fs.placeholder(fs.float32, [SIZE, SIZE])
        y = make(x, receiver)
        with on(receiver):
            total, most = fs.reduce_sum(y), fs.py_func(peak, [], fs.int64)
        config = fs.ConfigProto(mode=mode, graph_options=options)
        with fs.Session(cluster, config=config) as sess:
            before = sess.run(most)
            value = sess.run(total, {x: np.full((SIZE, SIZE), 0.5, "f")})
            return value, (sess.run(most) - before) / ONE


@pytest.mark.memory
@pytest.mark.slow
@pytest.mark.parametrize(("make", "mode"), [(wide, "compiled"), (looped, "tokens")])
def test_a_worker_that_receives_late_holds_few_values(source_env, make, mode):
    import distributed

    with (
        local_cluster(source_env, 3) as found,
        distributed.Client(found) as client,
        fs.cluster.connect(client) as cluster,
    ):
        value, all_at_once = grown(cluster, make, 1, "tokens", False)
        late, most = grown(cluster, make, 2, mode, True)
        assert late == value and most <= 0.6 * all_at_once
        assert all_at_once > 6, "how many come early depends on how quick their sender is"
