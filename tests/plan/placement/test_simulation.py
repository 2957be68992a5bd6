"""Simulated steps: nodes take the device on which they finish first; steps are predicted."""

import numpy as np
import pytest

import flowscope as fs
from flowscope.plan.analysis.costs import Costs, CostTable, fed_specs
from flowscope.plan.analysis.device_profile import DeviceProfile, Link
from flowscope.plan.passes.place import place
from flowscope.plan.placement.by_cost import ByCost
from flowscope.plan.placement.choices import Choices
from flowscope.plan.placement.kept_lists import tied_with_kept
from flowscope.plan.placement.machine import PlacementMachine
from flowscope.plan.placement.simulation import Prediction

pytestmark = pytest.mark.usefixtures("graph")
PREFIX = "/job:localhost/replica:0/task:0/device:"
SLOW_LINK = Link(1e6, 1e-3)


def machine(accelerators=1, link=None, memory_bytes=0, cores=1, cpus=1):
    profile = DeviceProfile(20.0, 5e-6, link or Link(), memory_bytes)
    names = [f"GPU:{i}" for i in range(accelerators)] + [f"CPU:{i}" for i in range(cpus)]
    profiles = [profile] * accelerators + [DeviceProfile()] * cpus
    return PlacementMachine([PREFIX + n for n in names], profiles, cores)


def program_of(fetches, feeds=()):
    config = fs.ConfigProto(device_count={"CPU": 1}, graph_options=plain())
    with fs.Session(config=config) as sess:
        return sess.plan(fetches, feeds).placed


def plain():
    return fs.GraphOptions(optimizer_options=fs.OptimizerOptions(opt_level=-1))


def placed(program, of, costs=None, **options):
    specs = [fs.DeviceSpec.from_string(n) for n in of.names]
    by_cost = ByCost(of, costs or (lambda p: Costs()), **options)
    simulated = _simulated(program, specs, by_cost)
    return {n.name: n.device[len(PREFIX) :] for n in simulated}, simulated


def _simulated(program, specs, by_cost):
    """The nodes of the program, placed; told before memories are looked at."""
    program, _, ties = tied_with_kept(program, specs)
    choices = Choices(specs, ties)
    plain = [n for n in program.walk() if not n.blocks]
    components = [(c, choices.of(c)[1]) for c in ties.components(plain)]
    for (nodes, _), (device, _, _) in zip(
        components, by_cost.choose(program, components), strict=True
    ):
        for node in nodes:
            node.device = device
    return plain


def products(count, size=256):
    x = fs.placeholder(fs.float32, [size, size], name="x")
    y = x
    for i in range(count):
        y = fs.matmul(y, x, name=f"p{i}")
    return x, y


def test_large_work_goes_to_the_accelerator_and_small_stays():
    x, y = products(8)
    z = fs.exp(fs.placeholder(fs.float32, [], name="small"), name="z")
    devices, _ = placed(program_of([y, z], [x, z.op.inputs[0]]), machine())
    assert {devices[f"p{i}"] for i in range(8)} == {"GPU:0"}
    assert devices["z"] == "CPU:0"


def test_a_slow_link_keeps_work_where_its_inputs_are():
    x, y = products(2)
    devices, _ = placed(program_of(y, [x]), machine(link=SLOW_LINK))
    assert set(devices.values()) == {"CPU:0"}


def test_two_independent_chains_take_two_devices():
    x = fs.placeholder(fs.float32, [512, 512], name="x")
    a = b = x
    for i in range(3):
        a, b = fs.matmul(a, x, name=f"a{i}"), fs.matmul(b, x, name=f"b{i}")
    program = program_of([a, b], [x])
    devices, _ = placed(program, machine(0, cpus=2, cores=2))
    chains = [{devices[f"{c}{i}"] for i in range(3)} for c in "ab"]
    assert sorted(map(sorted, chains)) == [["CPU:0"], ["CPU:1"]]
    devices, _ = placed(program, machine(0, cpus=2, cores=1))
    assert set(devices.values()) == {"CPU:0"}, "two CPUs on one core are one"


def test_what_a_loop_repeats_counts_as_often_as_it_runs():
    x = fs.placeholder(fs.float32, [32, 32], name="x")

    def y(trips):
        def body(i, h):
            return i + 1, fs.tanh(fs.matmul(h, x, name="product"))

        return fs.while_loop(lambda i, h: i < trips, body, [0, x])[1]

    few, many = y(1), y(10_000)
    seconds = []
    for fetch in (few, many):
        program = program_of(fetch, [x])
        seconds.append(Prediction(program, machine(0), Costs()).run())
    assert 1000 < seconds[1] / seconds[0] < 20_000


def test_a_loop_that_is_worth_it_moves_with_what_it_takes():
    x = fs.placeholder(fs.float32, [512, 512], name="x")

    def body(i, h):
        return i + 1, fs.matmul(h, x, name="product")

    y = fs.while_loop(lambda i, h: i < 50, body, [0, x])[1]
    _, nodes = placed(program_of(y, [x]), machine())
    (product,) = [n for n in nodes if n.op.type == "MatMul"]
    assert product.device.endswith("GPU:0")
    (less,) = [n for n in nodes if n.op.type == "Less"]
    assert less.device.endswith("CPU:0"), "what steers stays with the host"


def test_learned_counts_weigh_loops_and_branches():
    x = fs.placeholder(fs.float32, [64, 64], name="x")
    n = fs.placeholder(fs.int32, [], name="n")
    y = fs.while_loop(lambda i, h: i < n, lambda i, h: (i + 1, fs.matmul(h, x)), [0, x])[1]
    program = program_of(y, [x, n])
    (loop,) = [node for node in program.nodes if node.blocks]
    table = CostTable()
    before = Prediction(program, machine(0), Costs(table)).run()
    table.learn_often(loop, 1000)
    after = Prediction(program, machine(0), Costs(table)).run()
    assert after / before == pytest.approx(100, rel=0.3)


def test_memory_limits_are_kept():
    x = fs.placeholder(fs.float32, [256, 256], name="x")
    ys = []
    for i in range(4):
        w = fs.Variable(np.ones((256, 256), np.float32), name=f"w{i}")
        ys.append(fs.matmul(x, w, name=f"p{i}"))
    program = program_of(ys, [x])
    nbytes = 256 * 256 * 4
    everything, _ = placed(program, machine(memory_bytes=40 * nbytes))
    assert {everything[f"w{i}"] for i in range(4)} == {"GPU:0"}
    some, _ = placed(program, machine(memory_bytes=int(4.5 * nbytes)))
    assert {some[f"w{i}"] for i in range(4)} == {"CPU:0", "GPU:0"}


def test_a_variable_goes_with_the_first_that_uses_it():
    x = fs.placeholder(fs.float32, [512, 512], name="x")
    w = fs.Variable(np.ones((512, 512), np.float32), name="w")
    y = x
    for i in range(6):
        y = fs.matmul(y, w, name=f"p{i}")
    devices, _ = placed(program_of(y, [x]), machine())
    assert devices["w"] == devices["p0"] == "GPU:0"


def test_what_was_placed_before_stays_there():
    x, y = products(4)
    program = program_of(y, [x])
    settled = {n.origins[0].id: PREFIX + "CPU:0" for n in program.nodes if n.name == "p1"}
    devices, _ = placed(program, machine(), settled=settled)
    assert devices["p1"] == "CPU:0" and devices["p3"] == "GPU:0"


def test_predictions_count_crossings_once_and_wait_for_them():
    x, y = products(2, 128)
    program = program_of(y, [x])
    of = machine(link=SLOW_LINK)
    nodes = list(program.walk())
    here = Prediction(program, of, Costs(), True, dict.fromkeys(nodes, PREFIX + "CPU:0"))
    there = Prediction(program, of, Costs(), True, dict.fromkeys(nodes, PREFIX + "GPU:0"))
    assert here.run() < 1e-3 < there.run()
    assert here.schedule.moved_bytes == 0
    assert there.schedule.moved_bytes == 2 * 128 * 128 * 4, "x comes once, and y goes back"


def test_shapes_of_feeds_reach_into_loops():
    x = fs.placeholder(fs.float32, [None, 64], name="x")
    w = fs.ones([64, 64])
    y = fs.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, fs.matmul(h, w)), [0, x])[1]
    program = program_of(y, [x])
    specs = fed_specs(program, [(10, 64)])
    product = next(n for n in program.walk() if n.op.type == "MatMul")
    assert specs[product.outputs[0]].shape == (10, 64)
    assert Costs(None, specs).is_known(product) and not Costs().is_known(product)
    assert specs[program.fetches[0]].shape == (10, 64)


def test_wishes_are_kept_in_simulation():
    x = fs.placeholder(fs.float32, [512, 512], name="x")
    with fs.device("/cpu:0"):
        y = fs.matmul(x, x, name="y")
    z = fs.matmul(y, y, name="z")
    devices, _ = placed(program_of(z, [x]), machine())
    assert devices["y"] == "CPU:0"


def test_the_pass_says_who_chose():
    x, y = products(1)
    w = fs.Variable(np.ones((256, 256), np.float32), name="w")
    y = fs.matmul(y, w, name="last")
    program = program_of(y, [x])
    of = machine(0, cpus=2, cores=2)
    specs = [fs.DeviceSpec.from_string(n) for n in of.names]
    found = place(program, specs, False, ByCost(of, lambda p: Costs()))
    reasons = {n.name: n.reason for n in found.nodes}
    assert reasons["last"] == "finishes first there"
    assert reasons["w"] == "stands where it is used"
