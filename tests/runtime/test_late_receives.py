"""`GraphOptions.enable_recv_scheduling`: a device that gets many values holds few at a time."""

import numpy as np
import pytest
from cluster_hosts import hosts_here
from placed_programs import CPUS, TASKS, PlacedProgram, assert_same

import flowscope as fs

pytestmark = [
    pytest.mark.usefixtures("graph"),
    pytest.mark.filterwarnings("ignore::flowscope.errors.ControlFlowWarning"),
]
MODES = ["compiled", "op", "tokens"]
SIZE = 64
ONE = 4 * SIZE * SIZE
OPTIONS = fs.GraphOptions(enable_recv_scheduling=True)


def wide(x, count=24):
    """Many values, all of which are there at once, and a device that takes one after the other."""
    with fs.device("/cpu:0"):
        made = [fs.sin(x * float(i)) for i in range(count)]
    with fs.device("/gpu:0"):
        total = fs.tanh(made[0])
        for one in made[1:]:
            total = fs.tanh(total + one)
    return total


def looped(x):
    return fs.while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, wide(a)), [0, x])[1]


def peak(make, mode, options):
    """Returns the result and how many values the receiver held at most."""
    with fs.Graph().as_default():
        x = fs.placeholder(fs.float32, [SIZE, SIZE])
        y = make(x)
        config = fs.ConfigProto(mode=mode, fake_devices={"GPU": 1}, graph_options=options)
        with fs.Session(config=config) as sess:
            gpu = next(d for d in sess.devices if "GPU" in d.name)
            value = sess.run(y, {x: np.ones((SIZE, SIZE), "f")})
            return value, gpu.usage().peak_bytes / ONE


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("make", [wide, looped])
def test_the_receiver_holds_few_values(make, mode):
    early, all_at_once = peak(make, "tokens", fs.GraphOptions())
    late, most = peak(make, mode, OPTIONS)
    assert late.tobytes() == early.tobytes()
    assert most <= 0.6 * all_at_once and all_at_once > 20


@pytest.mark.parametrize(
    "seed", [2, 7, *[pytest.param(i, marks=pytest.mark.slow) for i in range(20, 40)]]
)
def test_it_changes_no_bit_on_devices_threads_and_tasks(seed):
    want = PlacedProgram(seed).run()
    placed = PlacedProgram(seed, CPUS)
    for mode, split in (("compiled", "always"), ("tokens", "never"), ("tokens", "always")):
        config = {"mode": mode, "split_partitions": split, "graph_options": OPTIONS}
        assert_same(want, placed.run(device_count={"CPU": 3}, **config), f"{seed}, {mode}")
    far = PlacedProgram(seed, TASKS)
    with hosts_here(2) as (cluster, _):
        for mode in ("compiled", "tokens"):
            got = far.run(target=cluster, mode=mode, graph_options=OPTIONS)
            assert_same(want, got, f"{seed}, {mode}, cluster")
