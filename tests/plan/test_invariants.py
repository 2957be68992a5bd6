"""What is the same in all iterations: reads of variables before the loop, with the right value."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from stage_runs import stage_values

import flowscope as fs

MODES = ["compiled", "op", "tokens"]


def power(w):
    """w ** 3, by a loop that reads the variable in its body."""
    return fs.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * w), [0, 1.0])[1]


@pytest.mark.parametrize("mode", MODES)
def test_a_loop_sees_the_writes_before_it(graph, mode):
    w = fs.Variable(2.0)
    before = power(w)
    train = fs.train.GradientDescentOptimizer(0.125).minimize(before)
    with fs.control_dependencies([train]):
        after = power(w)
    with fs.Session(config=fs.ConfigProto(mode=mode)) as s:
        s.run(fs.global_variables_initializer())
        assert s.run([before, after]) == [8.0, 0.125]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("read", [lambda v: v.read_value(), lambda v: v * 1.0])
def test_a_loop_sees_the_write_that_starts_it(graph, mode, read):
    v = fs.Variable(5.0)
    put = v.assign(v.read_value() * 0.0)
    y = fs.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, read(v)), [0, put])[1]
    with fs.Session(config=fs.ConfigProto(mode=mode)) as s:
        s.run(fs.global_variables_initializer())
        assert s.run(y) == 0.0


@pytest.mark.parametrize("mode", MODES)
def test_a_loop_in_a_body_sees_the_writes_of_each_iteration(graph, mode):
    v = fs.Variable(0.0)

    def outer(i, total):
        first = fs.while_loop(lambda j, x: j < 2, lambda j, x: (j + 1, x + v), [0, 0.0])[1]
        with fs.control_dependencies([v.assign_add(1.0)]):
            second = fs.while_loop(lambda j, x: j < 2, lambda j, x: (j + 1, x + v), [0, 0.0])[1]
        return i + 1, total + first + 10.0 * second

    total = fs.while_loop(lambda i, t: i < 3, outer, [0, 0.0])[1]
    with fs.Session(config=fs.ConfigProto(mode=mode)) as s:
        s.run(fs.global_variables_initializer())
        assert s.run(total) == (0 + 20) + (2 + 40) + (4 + 60)


@pytest.mark.parametrize("mode", MODES)
def test_a_loop_reads_after_what_it_waits_for(graph, mode):
    """Another step writes the variable; a queue says when."""
    v = fs.Variable(0.0)
    q = fs.FIFOQueue(1, fs.float32, [()])
    with fs.control_dependencies([v.assign(7.0)]):
        tell = q.enqueue(1.0)
    loop = fs.while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, x * v), [0, q.dequeue()])[1]
    with fs.Session(config=fs.ConfigProto(mode=mode)) as s:
        s.run(fs.global_variables_initializer())
        found = []
        reader = threading.Thread(target=lambda: found.append(s.run(loop)))
        reader.start()
        s.run(tell)
        reader.join()
        assert found == [49.0]


@pytest.mark.parametrize("mode", MODES)
def test_a_loop_comes_after_writes_by_program_order_alone(graph, mode):
    v = fs.Variable(2.0)
    before, put, after = power(v), v.assign(3.0), power(v)
    with fs.Session(config=fs.ConfigProto(mode=mode)) as s:
        s.run(fs.global_variables_initializer())
        assert s.run([after, put, before]) == [27.0, 3.0, 8.0]


def statement(draw, v, x, depth):
    """One random statement on a variable; returns what is computed after it."""
    kinds = ["read", "write", "loop", "loop", "branch", "waits", *["aside"] * 3 * (depth == 1)]
    kind = draw(st.sampled_from(kinds))
    if kind == "aside":
        fs.add_to_collection("aside", v.assign_add(1.0))
        return x
    if kind == "read" or depth > 2:
        return x * 0.5 + v.read_value()
    if kind == "write":
        return x + v.assign_add(fs.tanh(x))
    if kind == "waits":
        with fs.control_dependencies([v.assign(v * 0.5 + 1.0)]):
            return x + block(draw, v, x, depth + 1)
    if kind == "branch":
        return fs.cond(
            x > 1.0,
            lambda: block(draw, v, x, depth + 1),
            lambda: block(draw, v, x, depth + 1),
        )
    count = draw(st.integers(0, 3))
    return fs.while_loop(
        lambda i, x: i < count, lambda i, x: (i + 1, block(draw, v, x, depth + 1)), [0, x]
    )[1]


def block(draw, v, x, depth):
    for _ in range(draw(st.integers(1, 7 - 2 * depth))):
        x = statement(draw, v, x, depth)
    return fs.sin(x)


@pytest.mark.slow
@settings(max_examples=200)
@given(data=st.data())
def test_no_pass_changes_what_is_read(data):
    with fs.Graph().as_default():
        v = fs.Variable(1.5)
        x = fs.placeholder(fs.float32, [])
        y = block(data.draw, v, x, 1)
        fetches = [y, v.read_value(), *fs.get_collection("aside")]
        found = stage_values(fetches, {x: 0.75}, {"Variable": np.float32(1.5)})
    want = found.pop("order")
    for stage, values in found.items():
        assert values == want, stage
