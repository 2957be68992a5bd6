"""What asks for devices changes no bit: random nests with gradients, with `fs.device` and without.

`make fuzz` goes on from these seeds (tests/fuzz/fuzz_placed.py).
"""

from __future__ import annotations

import pytest
from cluster_hosts import hosts_here
from placed_programs import TASKS, PlacedProgram, check, check_on_cluster

import flowscope as fs

pytestmark = pytest.mark.filterwarnings("ignore::flowscope.errors.ControlFlowWarning")
#: Seeds whose loops keep lists for makers on several devices, in branches, and again for these.
TOLD = [0, 2, 7, 9, 16, 20, 27]


@pytest.fixture(scope="module")
def cluster():
    with hosts_here(2) as (found, _):
        yield found


@pytest.mark.parametrize("seed", [*TOLD, pytest.param(range(40, 120), marks=pytest.mark.slow)])
def test_devices_change_no_bit_and_none_is_refused(seed):
    for each in [seed] if isinstance(seed, int) else seed:
        check(each)


@pytest.mark.parametrize("seed", [2, 9, 16, pytest.param(range(40, 80), marks=pytest.mark.slow)])
def test_so_do_tasks_of_a_cluster(cluster, seed):
    for each in [seed] if isinstance(seed, int) else seed:
        check_on_cluster(each, cluster)


def test_programs_are_the_same_with_devices_and_without():
    for seed in range(30):
        plain, placed = PlacedProgram(seed), PlacedProgram(seed, TASKS)
        kinds = [[op.type for op in p.graph.get_operations()] for p in (plain, placed)]
        assert kinds[0] == kinds[1], seed
        assert any(op.device for op in placed.graph.get_operations()), seed


@pytest.mark.parametrize("split", ["always", "never"])
@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_the_gradient_of_a_loop_in_a_branch_may_be_on_two_devices(mode, split):
    x = fs.placeholder(fs.float32, [])

    def body(i, a):
        with fs.device("/cpu:0"):
            b = fs.sin(a)
        with fs.device("/cpu:1"):
            return i + 1, fs.sin(b)

    loop = lambda: fs.while_loop(lambda i, _: i < 3, body, [0, x])[1]  # noqa: E731
    y = fs.cond(x > 0, lambda: fs.cond(x < 9, loop, lambda: -x), lambda: x)
    (g,) = fs.gradients(y, x)
    config = fs.ConfigProto(device_count={"CPU": 2}, mode=mode, split_partitions=split)
    with fs.Session(config=config) as sess:
        assert sess.run(g, {x: 0.5}) == pytest.approx(0.5228129)
        assert sess.run(g, {x: 10.0}) == -1 and sess.run(g, {x: -1.0}) == 1


def test_a_list_that_two_devices_fill_is_at_the_first_and_the_other_values_are_brought():
    x = fs.placeholder(fs.float32, [], name="x")

    def body(i, a):
        with fs.device("/cpu:0"):
            b = fs.sin(a, name="first")
        with fs.device("/cpu:1"):
            return i + 1, fs.cos(b, name="second")

    loop = lambda: fs.while_loop(lambda i, _: i < 3, body, [0, x])[1]  # noqa: E731
    y = fs.cond(x > 0, lambda: fs.cond(x < 9, loop, lambda: -x), lambda: x)
    (g,) = fs.gradients(y, x)
    with fs.Session(config=fs.ConfigProto(device_count={"CPU": 2})) as sess:
        nodes = list(sess.plan(g, [x]).program.walk())
    packs = [n for n in nodes if n.op.type == "PackLists"]
    copies = [
        n
        for n in nodes
        if n.name.rpartition("/")[2].startswith("kept_") and n.op.type == "Identity"
    ]
    assert {n.device[-1] for n in packs} == {"0"} == {n.device[-1] for n in copies}
    assert all("shares a device with" in n.reason for n in copies)
