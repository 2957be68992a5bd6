"""A program goes to another process as bytes; the code that is made there gives the same bits."""

import numpy as np
import pytest
from code_of_program import Job, computed, computed_elsewhere, double

import flowscope as fs
from flowscope.plan.ir.serialization import dumps, loads
from flowscope.plan.verify import verify

pytestmark = pytest.mark.usefixtures("graph")


def planned(fetches, feeds=()):
    with fs.Session() as sess:
        return sess.plan(fetches, feeds).program


def training():
    x = fs.placeholder(fs.float32, [2, 3])
    w = fs.Variable(np.eye(3, dtype="f"), name="w")
    _, y = fs.while_loop(lambda i, v: i < 4, lambda i, v: (i + 1, fs.tanh(fs.matmul(v, w))), [0, x])
    z = fs.cond(fs.reduce_sum(y) > 0.0, lambda: y * 3.0, lambda: fs.negative(y))
    (gradient,) = fs.gradients(z, [w])
    dropped = fs.nn.dropout(z, rate=0.5, seed=3)
    update = w.assign_sub(gradient)
    return [z, gradient, dropped, update], [x]


def test_a_program_comes_back_as_it_was():
    program = planned(*training())
    data, functions = dumps(program)
    assert functions == ()
    back = loads(data)
    assert back.text() == program.text()
    verify(back)
    there, here = (list(p.walk()) for p in (program, back))
    for a, b in zip(there, here, strict=True):
        assert (a.order, a.path, a.group) == (b.order, b.path, b.group)
        assert [o.id for o in a.origins] == [o.id for o in b.origins]
        assert all(o.operation is not None for o in a.origins)
        assert all(o.operation is None for o in b.origins)
        assert str(b.origins[0].origin.place) == str(a.origins[0].origin.place)
    assert dumps(back)[0] == dumps(loads(dumps(back)[0]))[0]


@pytest.mark.slow
def test_chains_of_any_length_are_written():
    x = y = fs.placeholder(fs.float32, [])
    for _ in range(3000):
        y = y + 1.0
    assert len(loads(dumps(planned(y, [x]))[0]).nodes) >= 3000


def test_what_many_nodes_share_is_written_once():
    """Origins of one line, specs and ops without attributes: so large plans travel quickly."""
    x = y = fs.placeholder(fs.float32, [])
    for i in range(400):
        y = (fs.maximum, fs.minimum)[i % 2](y, x)
    program = planned(y, [x])
    data, _ = dumps(program)
    assert len(data) < 100 * len(program.nodes)
    nodes = loads(data).nodes
    for shared in (
        {id(n.origins[0].origin) for n in nodes},
        {id(n.outputs[0].spec) for n in nodes},
    ):
        assert len(shared) == 1
    assert len({id(n.op) for n in nodes}) == 2


def test_functions_of_users_are_numbers_that_the_receiver_binds():
    x = fs.placeholder(fs.float32, [2])
    program = planned(fs.py_func(double, [x], fs.float32), [x])
    data, functions = dumps(program)
    assert functions == (double,)
    back = loads(data, [double])
    with pytest.raises(IndexError):
        loads(data)
    assert back.text() == program.text()


@pytest.mark.slow
def test_code_that_another_process_makes_gives_the_same_bits(source_env):
    program = planned(*training())
    feeds = (np.linspace(-1, 1, 6, dtype="f").reshape(2, 3),)
    variables = {"w": np.linspace(0, 1, 9, dtype="f").reshape(3, 3)}
    job = Job(dumps(program)[0], feeds, variables)
    (there,) = computed_elsewhere([job], source_env)
    assert bits(there) == bits(computed(program, job))
    assert len(there) == 4


def bits(values):
    return [np.asarray(v).tobytes() for v in values]
