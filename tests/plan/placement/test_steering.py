"""What steers a program stays on the host: nothing that decides waits for an accelerator."""

import numpy as np
import pytest

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")


def planned(fetches, *feeds):
    """Returns where each node stands that is no constant, by the last part of its name."""
    config = fs.ConfigProto(fake_devices={"GPU": 1})
    with fs.Session(config=config) as sess:
        program = sess.plan(fetches, list(feeds)).program
    nodes = [n for n in program.walk() if n.op.type != "Const"]
    return {n.name.rpartition("/")[2]: n.device[-5:] for n in nodes}, program


def test_a_loops_counter_and_condition_stay_on_the_host():
    x = fs.placeholder(fs.float32, [None, 4])
    _, v = fs.while_loop(lambda i, v: i < 10, lambda i, v: (i + 1, fs.tanh(v) * 2.0), [0, x])
    places, program = planned(v, x)
    assert places["Less"] == places["add"] == places["Loop"] == "CPU:0"
    assert places["Tanh"] == places["mul"] == "GPU:0"
    inside = [n.op.type for node in program.nodes for b in node.blocks for n in b.walk()]
    assert "Transfer" not in inside


def test_arithmetic_of_shapes_stays_on_the_host():
    x = fs.placeholder(fs.float32, [None, 4])
    y = fs.reshape(fs.tanh(x), [fs.shape(x)[0] * 2, 2], name="flat")
    places, _ = planned(y, x)
    assert places["mul"] == places["strided_slice"] == "CPU:0"
    assert places["flat"] == "GPU:0"


def test_a_number_that_is_computed_with_goes_to_the_accelerator():
    x = fs.placeholder(fs.float32, [4])

    def body(i, v):
        return i + 1, v * fs.cast(i, fs.float32)

    _, v = fs.while_loop(lambda i, v: i < 3, body, [0, x])
    places, _ = planned(v, x)
    assert places["add"] == "GPU:0"


def test_integers_that_only_the_user_reads_do_not_steer():
    x = fs.placeholder(fs.float32, [4])
    y = fs.cast(fs.argmax(fs.tanh(x)), fs.int32) + 1
    places, _ = planned([y, fs.add(y, 1, name="next")], x)
    assert places["next"] == "GPU:0"


def test_a_wish_for_what_steers_is_granted():
    x = fs.placeholder(fs.float32, [4])

    def test(i, v):
        with fs.device("/gpu:0"):
            return i < 3

    y = fs.while_loop(test, lambda i, v: (i + 1, fs.tanh(v)), [0, x])[1]
    places, _ = planned(y, x)
    assert places["Less"] == "GPU:0"


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_what_steers_gives_what_the_cpu_gives(mode):
    x = fs.placeholder(fs.float32, [None])

    def body(i, v):
        v = fs.cond(fs.equal(i % 2, 0), lambda: fs.sin(v), lambda: v * 1.5)
        return i + 1, fs.concat([v, fs.slice(v, [i], [1])], 0)

    y = fs.while_loop(lambda i, v: i < 4, body, [0, x], shape_invariants=[[], [None]])[1]
    fetches = [y, *fs.gradients(y, [x]), fs.shape(y)]
    feeds = {x: np.linspace(0.1, 1.0, 5, dtype="f")}
    with fs.Session() as cpu:
        there = cpu.run(fetches, feeds)
    with fs.Session(config=fs.ConfigProto(fake_devices={"GPU": 1}, mode=mode)) as gpu:
        for a, b in zip(gpu.run(fetches, feeds), there, strict=True):
            np.testing.assert_array_equal(a, b)
