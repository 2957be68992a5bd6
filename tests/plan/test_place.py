"""Placement on devices of one kind: wishes, colocation, and errors that name who disagrees."""

import pytest

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")


def placed(fetches, **config):
    with fs.Session(config=fs.ConfigProto(device_count={"CPU": 3}, **config)) as sess:
        program = sess.plan(fetches).program
    return {n.name: n.device[-1] for n in program.nodes}, program


def test_a_wish_is_granted_and_the_rest_goes_to_the_first_device():
    with fs.device("/cpu:1"):
        a = fs.random_uniform([2], name="a")
    b = fs.exp(a, name="b")
    devices, program = placed(b)
    assert devices == {"a/shape": "1", "a": "1", "b": "0"} or devices == {"a": "1", "b": "0"}
    reasons = {n.name: n.reason for n in program.nodes}
    assert "asked for" in reasons["a"]
    assert reasons["b"] == "the first device with a kernel"


def test_what_touches_a_variable_goes_where_it_is():
    with fs.device("/cpu:2"):
        v = fs.Variable(1.0, name="v")
    with fs.device("/cpu:1"):
        write = v.assign_add(1.0, name="write")
    devices, program = placed([write, v.read_value()])
    assert devices["write"] == devices["v"] == devices["v/read_1"] == "2"
    (reason,) = [n.reason for n in program.nodes if n.name == "write"]
    assert '"v"' in reason


def test_colocated_operations_share_a_device():
    with fs.device("/cpu:1"):
        a = fs.random_uniform([2], name="a")
    with fs.get_default_graph().colocate_with(a.op):
        b = fs.random_normal([2], name="b")
    with fs.get_default_graph().colocate_with(b.op):
        c = fs.random_normal([2], name="c")
    devices, _ = placed([a, b, c])
    assert devices["a"] == devices["b"] == devices["c"] == "1"


def contradiction():
    a = fs.random_uniform([2], name="a")
    a.op.device = "/device:CPU:1"
    with fs.get_default_graph().colocate_with(a.op):
        b = fs.random_normal([2], name="b")
    b.op.device = "/device:CPU:2"
    return [a, b]


def test_wishes_that_contradict_are_an_error_that_names_the_component():
    with pytest.raises(fs.errors.InvalidArgumentError) as e:
        placed(contradiction())
    assert '"a" for /device:CPU:1' in str(e.value)
    assert '"b" for /device:CPU:2' in str(e.value)


def test_soft_placement_passes_over_what_cannot_be():
    devices, program = placed(contradiction(), allow_soft_placement=True)
    assert devices["a"] == devices["b"] == "0"
    assert [n.split(":")[0] for n in program.notes if "shape" not in n] == ['"a"', '"b"']


BODIES = {
    "while_loop": lambda f: fs.while_loop(lambda i: i < 5, f, [fs.constant(1)]),
    "cond": lambda f: fs.cond(
        fs.placeholder_with_default(True, []), lambda: f(fs.constant(3)), lambda: fs.constant(1)
    ),
    "nested": lambda f: fs.while_loop(
        lambda i: i < 5, lambda i: fs.cond(i < 9, lambda: f(i), lambda: i + 1), [fs.constant(1)]
    ),
    "function": lambda f: fs.function(f)(fs.identity(fs.placeholder_with_default(3, []))),
}


def doubled_on(device):
    def f(i):
        with fs.device(device):
            return fs.multiply(i, 2, name="doubled")

    return f


def walked(program):
    return {n.name.rpartition("/")[2]: n for n in program.walk()}


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
@pytest.mark.parametrize("name", BODIES)
def test_wishes_in_bodies_count(name, mode):
    y = BODIES[name](doubled_on("/cpu:2"))
    _, program = placed(y, mode=mode)
    node = walked(program)["doubled"]
    assert node.device.endswith("CPU:2")
    assert node.reason == "asked for /device:CPU:2"


@pytest.mark.parametrize("name", BODIES)
def test_a_wish_in_a_body_for_what_is_not_there_is_refused_or_told(name):
    y = BODIES[name](doubled_on("/gpu:0"))
    with fs.Session() as sess, pytest.raises(fs.errors.InvalidArgumentError) as caught:
        sess.run(y)
    assert "no device fits '/device:GPU:0'" in str(caught.value)
    assert "test_place.py" in str(caught.value)
    _, program = placed(y, allow_soft_placement=True)
    node = walked(program)["doubled"]
    assert node.device.endswith("CPU:0")
    assert "asked for /device:GPU:0, which is not there" in node.reason
    assert any("doubled" in note for note in program.notes)


def test_a_wish_in_a_body_for_another_memory_is_told():
    y = BODIES["while_loop"](doubled_on("/gpu:1"))
    with fs.Session(config=fs.ConfigProto(fake_devices={"GPU": 2})) as sess:
        program = sess.plan(y).program
        assert sess.run(y) == 8
    assert "which lies in another memory" in walked(program)["doubled"].reason
    assert any("doubled" in note for note in program.notes)
