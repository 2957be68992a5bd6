"""What bodies wait for by control dependencies, where operations wait for others: in all modes."""

from __future__ import annotations

import numpy as np
import pytest

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")

#: What a body may wait for, of its loop variable x: itself, or what follows from it.
AWAITED = {
    "the variable": lambda x: x,
    "what simplifying takes away": fs.identity,
    "an operation of the body": lambda x: x + 1,
    "what is known while planning": lambda x: fs.shape(x, optimize=False),
}


@pytest.fixture(params=["compiled", "op", "tokens"])
def session(request, graph):
    config = fs.ConfigProto(mode=request.param, operation_timeout_in_ms=60_000)
    with fs.Session(graph=graph, config=config) as s:
        yield s


def queue():
    return fs.FIFOQueue(100, [fs.int32], shapes=[()])


def delayed(tensor, by):
    """Returns a tensor that is there after a few waits more."""
    way = queue()
    for _ in range(by):
        with fs.control_dependencies([tensor]):
            put = way.enqueue(0)
        with fs.control_dependencies([put]):
            tensor = way.dequeue()
    return tensor


def conversation(awaited, is_in_condition=False):
    """Returns how many words of a loop still stood in its queue when another loop had read one.

    The first loop says a word in each iteration, and takes an answer into the next one; the second
    loop is slow to answer.
    """
    words, answers = queue(), queue()

    def speak(i, x):
        with fs.control_dependencies(awaited(x)):
            words.enqueue(i)

    def cond(i, x):
        if is_in_condition:
            speak(i, x)
        return i < 6

    def body(i, x):
        if not is_in_condition:
            speak(i, x)
        return i + 1, answers.dequeue()

    def answer(j, left):
        word = words.dequeue()
        with fs.control_dependencies([delayed(word, 5)]):
            size = words.size()
        with fs.control_dependencies([size]):
            answers.enqueue(word)
        return j + 1, left.write(j, size)

    spoken = fs.while_loop(cond, body, [0, -1])
    array = fs.TensorArray(fs.int32, 6)
    read = fs.while_loop(lambda j, left: j < 6, answer, [0, array], parallel_iterations=1)
    return spoken[1], read[1].stack()


@pytest.mark.parametrize("what", AWAITED)
def test_an_operation_of_a_body_waits_for_a_loop_variable(session, what):
    last, left = session.run(conversation(lambda x: [AWAITED[what](x)]))
    assert last == 5
    assert left.tolist() == [0] * 6


def test_what_waits_for_nothing_runs_ahead(session):
    _, left = session.run(conversation(lambda x: []))
    assert left.max() > 0


def test_an_operation_of_a_condition_waits_for_a_loop_variable(session):
    last, left = session.run(conversation(lambda x: [x], is_in_condition=True))
    assert last == 5
    assert left.tolist() == [0] * 6


def test_a_body_waits_for_what_is_outside_by_itself_not_its_loop(session):
    """The loop says three words before the value comes that its other operations wait for."""
    words, answers = queue(), queue()
    late = answers.dequeue()

    def body(i):
        words.enqueue(i)
        with fs.control_dependencies([late]):
            words.enqueue(i + 100)
        return i + 1

    loop = fs.while_loop(lambda i: i < 3, body, [0])
    early = words.dequeue_many(3)
    with fs.control_dependencies([early]):
        answer = answers.enqueue(7)
    with fs.control_dependencies([early, loop]):
        rest = words.dequeue_many(3)
    found = session.run([early, rest, loop, answer])
    assert sorted(found[0]) == [0, 1, 2]
    assert sorted(found[1]) == [100, 101, 102]


def test_a_branch_waits_for_what_is_outside_by_itself(session):
    words, answers = queue(), queue()
    late = answers.dequeue()

    def then():
        words.enqueue(1)
        with fs.control_dependencies([late]):
            words.enqueue(2)
        return 0

    taken = fs.cond(fs.placeholder_with_default(True, []), then, lambda: 1)
    first = words.dequeue()
    with fs.control_dependencies([first]):
        answer = answers.enqueue(7)
    with fs.control_dependencies([first]):
        second = words.dequeue()
    assert session.run([first, second, taken, answer])[:3] == [1, 2, 0]


def test_bodies_in_bodies_wait_for_variables_of_all_loops_around(session):
    words = queue()
    late = fs.placeholder_with_default(5.0, []) + fs.random_uniform([])

    def inner(i):
        def body(j):
            def say():
                with fs.control_dependencies([late, i, j]), fs.control_dependencies([put(i, j)]):
                    return fs.constant(1)

            return j + fs.cond(i >= 0, say, lambda: 1)

        return fs.while_loop(lambda j: j < 2, body, [0])

    def put(i, j):
        return words.enqueue(i * 10 + j)

    loop = fs.while_loop(lambda i: i < 2, lambda i: i + inner(i) - 1, [0])
    assert session.run([loop, words.dequeue_many(4)])[1].tolist() == [0, 1, 10, 11]


def test_a_function_waits_for_its_arguments_and_for_what_is_outside(session):
    words, answers = queue(), queue()
    late, given = answers.dequeue(), answers.dequeue()

    @fs.function
    def say(x):
        with fs.control_dependencies([x, late]), fs.control_dependencies([words.enqueue(3)]):
            return fs.constant(0)

    said, first = say(given), words.enqueue(1)
    with fs.control_dependencies([first]), fs.control_dependencies([answers.enqueue(0)]):
        second = words.enqueue(2)
    with fs.control_dependencies([second]):
        answer = answers.enqueue(0)
    session.run([said, answer])
    assert session.run(words.dequeue_many(3)).tolist() == [1, 2, 3]


def test_waiting_changes_neither_values_nor_gradients(session):
    x = fs.constant(2.0)
    late = fs.random_uniform([])

    def body(i, y):
        with fs.control_dependencies([late, i, y]):
            return i + 1, y * x

    y = fs.while_loop(lambda i, y: i < 3, body, [0, 1.0])[1]
    first, none = fs.gradients(y, [x, late])
    second = fs.gradients(first, x)[0]
    assert none is None
    assert session.run([y, first, second]) == [8, 12, 12]


def test_what_waits_for_a_read_that_is_taken_out_of_the_loop_still_runs(session):
    v = fs.Variable(3.0)

    def body(i):
        with fs.control_dependencies([v.read_value()]):
            return i + 1

    loop = fs.while_loop(lambda i: i < 3, body, [0])
    session.run(v.initializer)
    assert session.run(loop) == 3


def test_a_step_in_which_nothing_waits_takes_nothing_for_it(graph):
    late = fs.placeholder(fs.float32, [])

    def body(i):
        with fs.control_dependencies([late, i]):
            return fs.identity(i) + 1

    loop = fs.while_loop(lambda i: i < 3, body, [0])
    with fs.Session() as s:
        plan = s.plan(loop, [late])
        assert "Identity" in plan.text("inline")
        assert "Identity" not in plan.text()


def test_others_that_wait_for_a_loop_do_not_hold_back_its_iterations(session):
    """Every iteration waits for an answer that comes once all of them have asked."""
    words, answers = queue(), queue()

    def body(i):
        words.enqueue(i)
        answers.dequeue()
        return i + 1

    loop = fs.while_loop(lambda i: i < 4, body, [0])
    asked = words.dequeue_many(4)
    with fs.control_dependencies([asked]):
        answer = answers.enqueue_many([np.zeros(4, np.int32)])
    with fs.control_dependencies([loop]):
        left = answers.size()
    assert session.run([left, answer])[0] == 0
