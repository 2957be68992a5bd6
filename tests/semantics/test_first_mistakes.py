"""What everybody gets wrong in the first week: one error each, at the line, with what to do."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")


def wrong_shape_while_building():
    x = fs.placeholder(fs.float32, [None, 64], name="x")
    fs.matmul(x, fs.zeros([32, 10]))  # here


def wrong_shape_of_an_open_dimension():
    x = fs.placeholder(fs.float32, [None, None], name="x")
    y = fs.matmul(x, fs.zeros([32, 10]))  # here
    fs.Session().run(y, {x: np.zeros((3, 31))})


def wrong_shape_of_a_feed():
    x = fs.placeholder(fs.float32, [None, 64], name="x")  # here
    fs.Session().run(x * 2, {x: np.zeros((3, 32))})


def two_dtypes():
    i = fs.placeholder(fs.int32, [None], name="i")
    fs.constant(2.0) * i  # here


def no_feed():
    x = fs.placeholder(fs.float32, [None, 64], name="x")  # here
    fs.Session().run(fs.exp(x))


def no_initial_value():
    w = fs.Variable(fs.zeros([3]), name="w")  # here
    fs.Session().run(w * 2)


def no_initial_value_in_parts():
    w = fs.Variable(fs.zeros([3]), name="w")  # here
    with fs.Session() as sess:
        y = w * 2
        sess.partial_run(sess.partial_run_setup([y], []), y)


def two_graphs():
    with fs.Graph().as_default():
        a = fs.constant(1.0, name="a")
    b = fs.constant(1.0)
    a + b  # here


def another_graph_than_the_sessions():
    with fs.Graph().as_default():
        a = fs.constant(1.0, name="a")
    fs.Session().run(a)


def a_loops_inner_tensor():
    inner = []

    def body(i):
        inner.append(i * 2)
        return i + 1

    fs.while_loop(lambda i: i < 3, body, [0])
    inner[0] + 1  # here


def a_shape_that_grows():
    a = fs.constant([1.0])
    invariants = [fs.TensorShape([]), fs.TensorShape([1])]
    fs.while_loop(
        lambda i, a: i < 3,
        lambda i, a: (i + 1, fs.concat([a, a], 0)),
        [0, a],
        shape_invariants=invariants,
    )


def not_a_number():
    x = fs.placeholder(fs.float32, [None], name="x")
    loss = fs.check_numerics(fs.reduce_mean(fs.log(x)), "loss")  # here
    fs.Session().run(loss, {x: [-1.0]})


def no_such_device():
    with fs.device("/gpu:0"):
        a = fs.placeholder(fs.float32, [])
        b = a * a  # here
    fs.Session().run(b, {a: 1.0})


def a_queue_that_nobody_fills():
    queue = fs.FIFOQueue(3, fs.float32, shapes=[[]], name="batches")
    config = fs.ConfigProto(operation_timeout_in_ms=50)
    fs.Session(config=config).run(queue.dequeue() * 2)


def a_loop_without_an_end():
    forever = fs.while_loop(lambda i: i < 3, lambda i: i, [0], name="forever")
    fs.Session(config=fs.ConfigProto(operation_timeout_in_ms=50)).run(forever)


def an_index_beyond_the_end():
    i = fs.placeholder(fs.int32, [None], name="i")
    y = fs.gather(fs.zeros([3, 4], name="table"), i)  # here
    fs.Session().run(y, {i: [1, 7]})


def a_closed_session():
    x = fs.constant(1.0)
    with fs.Session() as sess:
        sess.run(x)
    sess.run(x)


def a_gradient_that_is_none():
    x, y = fs.constant(1.0), fs.constant(1.0)
    fs.Session().run(fs.gradients(y, x))


def the_axis_first():
    fs.concat(1, [fs.zeros([2, 3]), fs.zeros([2, 3])])


MISTAKES = {
    wrong_shape_while_building: [
        "MatMul: inner dimensions must agree: expected 64, got 32",
        'input 0: float32[?,64]   from "x:0"',
    ],
    wrong_shape_of_an_open_dimension: [
        "MatMul: inner dimensions must agree: expected 31, got 32",
        'input 0: float32[3,31]   from "x:0"',
    ],
    wrong_shape_of_a_feed: ['cannot feed "x:0": expected shape [?,64], got [3,32]'],
    two_dtypes: ["Mul: expected both of one dtype, got float32 and int32: use fs.cast"],
    no_feed: [
        "Placeholder: expected a feed of dtype float32 and shape [?,64], got none",
        "give its value in the feed_dict",
    ],
    no_initial_value: ['the variable has no value yet: "w"', "global_variables_initializer()"],
    no_initial_value_in_parts: ['the variable has no value yet: "w"'],
    two_graphs: ['"Const:0" belongs to another graph; it was made in', "as_default()"],
    another_graph_than_the_sessions: ["'a:0'", "belongs to another graph", "fs.Session(graph="],
    a_loops_inner_tensor: [
        "stands inside the body of a while_loop",
        "values by fs.record",
    ],
    a_shape_that_grows: [
        "loop variable a",
        "has the shape invariant [1], and is float32[2] after one iteration",
        "give it a wider one in shape_invariants (fs.TensorShape([None])), or none at all",
    ],
    a_loop_without_an_end: ["the step took longer than its 50 ms", "in iteration ", 'of "forever"'],
    not_a_number: ["CheckNumerics: loss : the tensor has NaN"],
    no_such_device: ["no device fits '/device:GPU:0'", "allow_soft_placement=True"],
    a_queue_that_nobody_fills: [
        "the step took longer than its 50 ms",
        'it waited for "batches_Dequeue"',
        "0 of 3 elements, 1 dequeue waiting",
    ],
    an_index_beyond_the_end: ["expected indices in [0, 3), got 7", 'int32[2]   from "i:0"'],
    a_closed_session: ["this session is closed", "open another one"],
    a_gradient_that_is_none: ["got None (fs.gradients gives None for an x that the ys do not"],
    the_axis_first: ["expected a list of tensors, got 1: the axis comes second"],
}


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.__name__)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_mistake_has_one_error_that_says_what_to_do(mistake):
    with pytest.raises(fs.errors.OpError) as e:
        mistake()
    message = str(e.value)
    for part in MISTAKES[mistake]:
        assert part in message
    if "# here" in inspect.getsource(mistake):
        assert "# here" in message
    assert e.value.__suppress_context__ or e.value.__context__ is None or e.value.__cause__
