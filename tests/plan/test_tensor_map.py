"""The map: what a plan says of each tensor is what op mode computes."""

import numpy as np
import pytest
from random_programs import Program as RandomProgram

import flowscope as fs
from flowscope.plan.ir.breakpoints import NO_TESTS
from flowscope.plan.ir.serialization import dumps

pytestmark = pytest.mark.usefixtures("graph")
RUN = (7, 11, 3)
#: Programs in which all that is not fed is constant.
FEW = (19, 40)


class Gate:
    raised, is_by_op = False, False

    def breakpoints(self):
        return NO_TESTS


def planned(sess, fetches, feeds):
    plan = sess.plan(fetches, list(feeds))
    arrays = tuple([c(v) for c, v in zip(map(sess._planner.converter, feeds), feeds.values())])
    return plan, arrays, tuple(sess._planner.state(h.op) for h in plan.handles)


def answer(plan, tensor):
    (found,) = plan.locate(tensor)
    return found


def test_what_a_plan_says_of_a_tensor():
    x = fs.placeholder(fs.float32, [2], name="x")
    a, b = fs.sin(x, name="a"), fs.sin(x, name="b")
    passed = fs.identity(x, name="passed")
    two = fs.add(fs.constant(1.0), fs.constant(1.0), name="two")
    cut, unused = fs.cos(x, name="cut"), fs.tan(x, name="unused")
    behind = fs.exp(cut, name="behind")
    y = fs.add_n([a, b * two, passed, behind], name="y")
    with fs.Session() as sess:
        plan = sess.plan(y, [x, behind])
    assert answer(plan, y).kind == "value" and answer(plan, y).value.label == "y"
    assert answer(plan, a).kind == "value"
    assert answer(plan, b).kind == "same" and answer(plan, b).value is answer(plan, a).value
    assert answer(plan, b).why == 'it is the same as "a"'
    assert answer(plan, passed).kind == "same" and answer(plan, passed).why.endswith('"x:0"')
    assert answer(plan, two).kind == "constant" and answer(plan, two).constant == 2.0
    assert answer(plan, x).kind == answer(plan, behind).kind == "fed"
    for absent in (cut, unused):
        assert (answer(plan, absent).kind, answer(plan, absent).value) == ("absent", None)
    assert plan.tensors.tensors_of(answer(plan, a).value.identity) == [
        (a.op.id, 0, ()),
        (b.op.id, 0, ()),
    ]


def test_a_body_answers_once_per_call_and_a_parameter_is_what_comes_in():
    inner = []

    @fs.function
    def double(v):
        inner.extend([v, fs.multiply(v, 2.0, name="twice")])
        return inner[-1]

    x = fs.placeholder(fs.float32, [])
    y = double(double(fs.sin(x, name="first")))
    z = fs.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * y), [0, x], name="loop")[1]
    with fs.Session() as sess:
        plan = sess.plan(z, [x])
    parameter, twice = (plan.locate(t) for t in inner[:2])
    assert [len(parameter), len(twice)] == [2, 2]
    assert [at.kind for at in twice] == ["value", "value"]
    assert parameter[0].value.label == "first" and parameter[1].value is twice[0].value
    assert answer(plan, y).value is twice[1].value
    assert {answer(plan, z).kind} == {"value"}


def test_a_product_of_which_only_a_part_is_computed_is_absent():
    a, b = fs.placeholder(fs.float32, [2, 3], name="a"), fs.placeholder(fs.float32, [3, 4])
    product = fs.matmul(a, b, name="product")
    left, right = fs.split(product, 2, axis=1, name="halves")
    with fs.Session() as sess:
        plan = sess.plan(left, [a, b])
    assert answer(plan, product).kind == "absent"
    assert answer(plan, left).value.spec.shape == (2, 2)
    assert answer(plan, right).kind == "absent"


def test_the_map_does_not_travel_with_a_program():
    x = fs.placeholder(fs.float32, [])
    y = fs.sin(x) + fs.sin(x)
    with fs.Session() as sess:
        program = sess.plan(y, [x]).program
    assert program.same and b"_identity" not in dumps(program)[0]


def recorded(plan, arrays, states):
    """Returns the bits of all that nodes gave, by value and iterations."""
    seen = {}

    def probe(node, iterations, outputs):
        for value, array in zip(node.outputs, outputs, strict=True):
            if isinstance(array, np.ndarray | np.generic):
                seen.setdefault(value, {})[iterations] = bits(array)

    plan.executable.probed(probe)(Gate(), RUN, arrays, states)
    return seen


def bits(array):
    return np.asarray(array).dtype, np.asarray(array).shape, np.asarray(array).tobytes()


def said(plan, at, seen, fed):
    """The bits of a tensor in a plan by iterations; None for what it cannot say."""
    if at.kind == "constant":
        return {(): bits(at.constant)}
    if at.kind == "fed" or (at.value is not None and at.value in plan.program.feeds):
        return {(): bits(fed[at.value.index])}
    return seen.get(at.value)


@pytest.mark.filterwarnings("ignore::flowscope.errors.ControlFlowWarning")
@pytest.mark.parametrize("seed", [pytest.param(i, marks=pytest.mark.slow) for i in range(60)])
def test_each_answer_is_what_op_mode_computes(seed):
    program = RandomProgram(seed)
    feeds = {t: a for (t, _), a in zip(program.feeds, program.fed[0], strict=True)}
    found = {}
    with program.graph.as_default():
        for mode in ("op", "compiled"):
            config = fs.ConfigProto(mode=mode)
            with fs.Session(graph=program.graph, config=config) as sess:
                sess.run(program.initializer)
                plan, arrays, states = planned(sess, program.fetches, feeds)
                fed = [np.copy(a)[()] for a in arrays]
                try:
                    seen = recorded(plan, tuple(fed), states)
                except Exception:
                    return  # it fails: there is nothing to compare
                found[mode] = plan, seen, arrays
    compared = 0
    for op in program.graph.get_operations():
        for tensor in op.outputs:
            compared += compare(tensor, found)
    assert compared or seed in FEW, "nothing was compared"


def compare(tensor, found):
    """Compares what the two plans say of a tensor; returns how many values are equal."""
    op, compiled = found["op"], found["compiled"]
    at_op = {at.path: at for at in op[0].locate(tensor)}
    count = 0
    for at in compiled[0].locate(tensor):
        if at.kind == "absent" or at.path not in at_op:
            continue
        now = said(compiled[0], at, *compiled[1:])
        before = said(op[0], at_op[at.path], *op[1:])
        for iterations, there in (before or {}).items():
            here = [now[iterations[:n]] for n in range(len(iterations) + 1)
                    if now and iterations[:n] in now]  # fmt: skip
            if at.value.node is not None and here:
                assert here == [there], (tensor, at.why, iterations)
                count += 1
    return count
