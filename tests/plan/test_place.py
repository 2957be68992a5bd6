"""Placement on devices of one kind: wishes, colocation, and errors that name who disagrees."""

import pytest

import flowscope as fs
from flowscope.plan.placement.makers import Makers

pytestmark = pytest.mark.usefixtures("graph")


def placed(fetches, **config):
    with fs.Session(config=fs.ConfigProto(device_count={"CPU": 3}, **config)) as sess:
        program = sess.plan(fetches).program
    return {n.name: n.device[-1] for n in program.nodes if n.op.type != "Transfer"}, program


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
    assert '"a" asks for /device:CPU:1 in test_place.py, line ' in str(e.value)
    assert '"b" asks for /device:CPU:2 in test_place.py, line ' in str(e.value)
    assert '"a" and "b" were colocated' in str(e.value)


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


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_a_wish_in_a_body_for_another_memory_counts(mode):
    y = BODIES["while_loop"](doubled_on("/gpu:1"))
    with fs.Session(config=fs.ConfigProto(fake_devices={"GPU": 2}, mode=mode)) as sess:
        program = sess.plan(y).program
        assert sess.run(y) == 8
    assert not program.notes
    assert walked(program)["doubled"].device[-5:] == "GPU:1"


def test_nodes_of_a_body_are_placed_one_by_one():
    with fs.device("/cpu:1"):
        limit = fs.placeholder(fs.int32, [], name="limit")

    def body(i):
        with fs.device("/cpu:2"):
            doubled = fs.multiply(i, 2, name="doubled")
        return fs.add(doubled, 1, name="added")

    def condition(i):
        with fs.device("/cpu:1"):
            return fs.less(i, limit, name="less")

    y = fs.while_loop(condition, body, [fs.constant(1)])
    with fs.Session(config=fs.ConfigProto(device_count={"CPU": 3})) as sess:
        program = sess.plan(y, [limit]).program
        assert sess.run(y, {limit: 20}) == 31
    nodes = walked(program)
    where = {name: nodes[name].device[-1] for name in ("doubled", "added", "less")}
    assert where == {"doubled": "2", "added": "0", "less": "1"}
    (loop,) = [n for n in program.nodes if n.blocks]
    assert loop.device.endswith("CPU:1")
    assert loop.reason == f'goes by "{nodes["less"].name}"'


def test_a_body_without_a_wish_of_its_own_does_not_take_that_of_the_loop():
    def body(i):
        with fs.device(None):
            return fs.add(i, 1, name="added")

    with fs.device("/cpu:1"):
        y = fs.while_loop(lambda i: i < 3, body, [fs.constant(1)])
    _, program = placed(y)
    assert walked(program)["added"].device.endswith("CPU:0")


def test_a_loop_that_goes_by_a_feed_stands_where_its_body_begins():
    count = fs.placeholder(fs.bool, [], name="pred")
    with fs.device("/cpu:2"):
        y = fs.cond(count, lambda: fs.identity(3), lambda: fs.identity(4))
    with fs.Session(config=fs.ConfigProto(device_count={"CPU": 3})) as sess:
        program = sess.plan(y, [count]).program
    (branch,) = [n for n in program.nodes if n.blocks]
    assert branch.device.endswith("CPU:2")


def test_a_constant_stands_where_it_is_used():
    one = fs.constant([1.0, 2.0], name="one")
    with fs.device("/cpu:1"):
        y = fs.exp(fs.placeholder_with_default(one, [2]), name="y")
    with fs.Session(config=fs.ConfigProto(device_count={"CPU": 2}, mode="op")) as sess:
        nodes = walked(sess.plan(y).program)
    assert nodes["one"].device == nodes["y"].device
    assert nodes["one"].reason == "stands where it is used"


def test_what_touches_a_variable_in_a_body_goes_where_it_is():
    with fs.device("/cpu:2"):
        v = fs.Variable(1.0, name="v")

    def body(i):
        with fs.control_dependencies([v.assign_add(1.0)]):
            return i + 1

    y = fs.while_loop(lambda i: i < 3, body, [fs.constant(0)])
    _, program = placed(y)
    found = [n for n in program.walk() if n.op.writes_state]
    assert [n.device[-1] for n in found] == ["2"]


def test_wishes_that_one_variable_contradicts_are_named_with_it():
    with fs.device("/cpu:2"):
        v = fs.Variable(1.0, name="v")
    write = v.assign_add(1.0, name="write")
    write.op.device = "/device:CPU:1"
    with pytest.raises(fs.errors.InvalidArgumentError) as e:
        placed(write)
    assert '"v" asks for /device:CPU:2' in str(e.value)
    assert '"write" asks for /device:CPU:1' in str(e.value)
    assert 'both touch variable "v"' in str(e.value)


def test_kernels_that_one_variable_contradicts_are_named_with_it(monkeypatch):
    v = fs.Variable([1.0, 2.0], name="v")
    write = v.assign_add([1.0, 1.0], name="write")
    read = v.read_value()
    monkeypatch.setattr(type(write.op.definition), "devices", ("CPU",))
    monkeypatch.setattr(type(read.op.definition), "devices", ("GPU",))
    with fs.Session(config=fs.ConfigProto(fake_devices={"GPU": 1})) as sess:
        with pytest.raises(fs.errors.InvalidArgumentError) as e:
            sess.plan([write, read])
    assert '"write" (' in str(e.value) and "runs on CPU only" in str(e.value)
    assert "runs on GPU only" in str(e.value)
    assert 'both touch variable "v"' in str(e.value)


def arrays_in_a_loop(device):
    def body(i, array):
        with fs.device(device):
            x = fs.square(fs.cast(i, fs.float32), name="squared")
        return i + 1, array.write(i, x)

    array = fs.TensorArray(fs.float32, 3)
    _, array = fs.while_loop(lambda i, a: i < 3, body, [fs.constant(0), array])
    with fs.device("/cpu:1"):
        return array.stack(name="stacked")


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_what_touches_one_array_shares_a_device_through_a_loop(mode):
    y = arrays_in_a_loop("/cpu:2")
    with fs.Session(config=fs.ConfigProto(device_count={"CPU": 3}, mode=mode)) as sess:
        program = sess.plan(y).program
        assert sess.run(y).tolist() == [0, 1, 4]
    kinds = {n.op.type: n.device[-1] for n in program.walk() if "Array" in n.op.type}
    assert set(kinds.values()) == {"1"} and len(kinds) == 3
    assert walked(program)["squared"].device[-1] == "2"


def test_a_list_that_a_loop_keeps_lives_with_what_it_keeps():
    x = fs.placeholder(fs.float32, [2])

    def body(i, y):
        with fs.device("/cpu:2"):
            z = fs.exp(y, name="kept")
        return i + 1, fs.sin(z)

    y = fs.while_loop(lambda i, y: i < 3, body, [0, x])[1]
    (dx,) = fs.gradients(y, x)
    with fs.Session(config=fs.ConfigProto(device_count={"CPU": 3})) as sess:
        program = sess.plan([y, dx], [x]).program
    loop = next(n for n in program.nodes if n.blocks)
    assert loop.kept
    makers = Makers(program)
    homes = {makers.maker(v).name.rpartition("/")[2] for v in loop.kept}
    assert "kept" in homes


def test_loops_made_by_hand_are_one_component():
    x = fs.placeholder(fs.bool, [], name="x")
    a, b = fs.raw_ops.Switch(data=fs.constant(1.0), pred=x)
    with fs.device("/cpu:1"):
        b = fs.exp(b, name="b")
    with fs.device("/cpu:2"):
        a = fs.sin(a, name="a")
    y = fs.raw_ops.Merge(inputs=[a, b]).output
    with pytest.raises(fs.errors.InvalidArgumentError, match="made by hand, which runs on one"):
        with fs.Session(config=fs.ConfigProto(device_count={"CPU": 3})) as sess:
            sess.plan(y, [x])
    with fs.Session(
        config=fs.ConfigProto(device_count={"CPU": 3}, allow_soft_placement=True)
    ) as sess:
        assert len({n.device for n in sess.plan(y, [x]).program.nodes}) == 1
