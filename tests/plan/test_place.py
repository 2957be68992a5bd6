"""Placement on devices of one kind: wishes, colocation, and errors that name who disagrees."""

import numpy as np
import pytest

import flowscope as fs
from flowscope.control.matmul_ops import SumOfProducts
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


def test_who_touches_a_variable_follows_its_handle():
    with fs.device("/cpu:2"):
        v = fs.Variable(1.0, name="v")
    write = v.assign_add(1.0, name="write")
    write.op.device = "/device:CPU:1"
    _, program = placed(write)
    (node,) = [n for n in program.walk() if n.name == "write"]
    assert node.device.endswith("CPU:2")
    assert node.reason == (
        'asked for /device:CPU:1, but shares a device with "v", which asked for /device:CPU:2'
    )


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_who_touches_a_queue_follows_it(mode):
    with fs.device("/cpu:1"):
        queue = fs.FIFOQueue(3, fs.float32, [[]], name="queue")
    with fs.device("/cpu:2"):
        put, got = queue.enqueue(5.0), queue.dequeue()
    with fs.Session(config=fs.ConfigProto(device_count={"CPU": 3}, mode=mode)) as sess:
        sess.run(put)
        assert sess.run(got) == 5.0
        for fetch in (put, got):
            nodes = [n for n in sess.plan(fetch).program.walk() if "ueue" in n.op.type]
            assert len(nodes) == 2 and {n.device[-1] for n in nodes} == {"1"}


def test_of_those_that_touch_one_queue_the_first_leads():
    queue = fs.FIFOQueue(3, fs.float32, [[]], name="queue")
    with fs.device("/cpu:1"):
        put = queue.enqueue(5.0, name="put")
    with fs.device("/cpu:2"), fs.control_dependencies([put]):
        got = queue.dequeue(name="got")
    _, program = placed(got)
    nodes = [n for n in program.walk() if "ueue" in n.op.type]
    assert len(nodes) == 3 and {n.device[-1] for n in nodes} == {"1"}


def test_what_is_not_there_is_refused_where_it_could_follow():
    with fs.device("/cpu:1"):
        queue = fs.FIFOQueue(3, fs.float32, [[]], name="queue")
    with fs.device("/cpu:7"):
        got = queue.dequeue()
    with pytest.raises(fs.errors.InvalidArgumentError, match="no device fits '/device:CPU:7'"):
        placed(got)


def test_what_was_colocated_with_two_variables_is_named_with_them():
    with fs.device("/cpu:1"):
        v = fs.Variable(1.0, name="v")
    with fs.device("/cpu:2"):
        w = fs.Variable(2.0, name="w")
    with fs.colocate_with(v), fs.colocate_with(w):
        y = fs.add(v, w, name="y")
    assert y.op.colocation_groups() == [b"loc:@v", b"loc:@w"]
    with pytest.raises(fs.errors.InvalidArgumentError) as e:
        placed(y)
    assert '"v" asks for /device:CPU:1' in str(e.value)
    assert '"w" asks for /device:CPU:2' in str(e.value)
    assert "were colocated" in str(e.value)


@pytest.mark.parametrize("read", [fs.identity, lambda v: v.read_value()])
def test_variables_are_read_where_they_lie_also_beside_another_one(read):
    with fs.device("/cpu:1"):
        v = fs.Variable(1.0, name="v")
    with fs.device("/cpu:2"):
        w = fs.Variable(2.0, name="w")
    with fs.colocate_with(w):
        y = fs.add(read(v), w, name="y")
    assert y.op.colocation_groups() == [b"loc:@w"]
    devices, _ = placed(y)
    reads = [name for name in devices if name.startswith("v/read")]
    assert devices["y"] == "2" and [devices[name] for name in reads] == ["1"]


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
    assert set(kinds.values()) == {"2"} and len(kinds) == 3
    assert walked(program)["squared"].device[-1] == "2"


@pytest.mark.parametrize(("colocate", "found"), [(True, "1"), (False, "2")])
def test_an_array_lies_where_the_first_value_is_made(colocate, found):
    x = fs.placeholder_with_default(1.0, [])
    with fs.device("/cpu:2"):
        array = fs.TensorArray(fs.float32, 3, colocate_with_first_write_call=colocate)
        y = fs.exp(x)
    with fs.device("/cpu:1"):
        array = array.write(0, fs.sin(x))
    with fs.device("/cpu:0"):
        array = array.write(1, y).write(2, x)
        stacked = array.stack(name="stacked")
    assert array.flow.op.device == ("" if colocate else "/device:CPU:0")
    _, program = placed(stacked)
    kinds = [n.device[-1] for n in program.walk() if "Array" in n.op.type]
    assert kinds == 5 * [found]


def rnn(train_on):
    """A recurrent network on one device, trained under another one."""
    fs.set_random_seed(4)
    x = fs.placeholder(fs.float32, [2, 5, 3], name="x")
    with fs.device("/cpu:1"):
        cell = fs.nn.rnn_cell.BasicLSTMCell(4)
        y, _ = fs.nn.dynamic_rnn(cell, x, dtype=fs.float32)
    with fs.device(train_on):
        loss = fs.reduce_mean(fs.square(y))
        return x, [loss, *fs.gradients(loss, [x, *fs.trainable_variables()])]


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
@pytest.mark.parametrize("split", ["always", "never"])
def test_gradients_of_a_loop_may_ask_for_another_device(mode, split):
    feed = np.linspace(-1, 1, 30, dtype=np.float32).reshape(2, 5, 3)
    config = fs.ConfigProto(device_count={"CPU": 3}, mode=mode, split_partitions=split)
    found = []
    for train_on in ("/cpu:1", "/cpu:2"):
        with fs.Graph().as_default():
            x, fetches = rnn(train_on)
            with fs.Session(config=config) as sess:
                sess.run(fs.global_variables_initializer())
                found.append(sess.run(fetches, {x: feed}))
                program = sess.plan(fetches, [x]).program
        assert any(isinstance(n.op, SumOfProducts) for n in program.walk())
        assert any(n.device[-1] == train_on[-1] for n in program.walk())
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


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


def contradicting(kind):
    """An operation that shares a device with two that no step needs."""
    made = []
    for i in (1, 2):
        with fs.device(f"/cpu:{i}"):
            made.append(fs.Variable(1.0, name=f"v{i}") if kind == "variables" else fs.exp(1.0 * i))
    with fs.colocate_with(made[0]), fs.colocate_with(made[1]):
        return fs.random_uniform([], name="c")


@pytest.mark.parametrize("kind", ["variables", "operations"])
def test_contradicting_colocation_with_what_no_step_needs_is_an_error(kind):
    c = contradicting(kind)
    config = {"device_count": {"CPU": 3}}
    with fs.Session(config=fs.ConfigProto(**config)) as sess:
        with pytest.raises(fs.errors.InvalidArgumentError, match='"c.*" is colocated with') as e:
            sess.run(c)
    assert "/device:CPU:1" in str(e.value) and "/device:CPU:2" in str(e.value)
    assert "allow_soft_placement=True" in str(e.value) and "test_place.py" in str(e.value)
    with fs.Session(config=fs.ConfigProto(**config, allow_soft_placement=True)) as sess:
        assert 0 <= sess.run(c) < 1
        assert any('" is colocated with' in note for note in sess.plan(c).program.notes)


@pytest.mark.parametrize("reads", [True, False])
def test_a_device_inside_of_a_colocation_is_passed_over_and_told(reads):
    with fs.device("/cpu:1"):
        v = fs.Variable(1.0, name="v")
    with fs.colocate_with(v), fs.device("/cpu:2"):
        c = fs.add(v if reads else fs.random_uniform([]), 1.0, name="c")
    with fs.Session(config=fs.ConfigProto(device_count={"CPU": 3})) as sess:
        placed = {p.name: p for p in sess.placement(c)}
        assert placed["c"].device.endswith("CPU:1")
        assert placed["c"].reason.startswith("asked for /device:CPU:2, but ")
        assert "/device:CPU:1" in placed["c"].reason
    with fs.device("/cpu:2"):
        assign = v.assign(2.0, read_value=False)
    assert assign.device == "/device:CPU:1" and assign.passed_over == "/device:CPU:2"
    with fs.colocate_with(v), fs.device("/cpu:1"):
        assert fs.random_uniform([]).op.passed_over == ""


def test_passed_over_wishes_outlive_another_process():
    import pickle

    with fs.device("/cpu:1"):
        v = fs.Variable(1.0, name="v")
    with fs.colocate_with(v), fs.device("/cpu:2"):
        c = fs.add(v, 1.0, name="c")
    with fs.Session(config=fs.ConfigProto(device_count={"CPU": 3})) as sess:
        (origin,) = next(n for n in sess.plan(c).program.nodes if n.name == "c").origins[:1]
    assert pickle.loads(pickle.dumps(origin)).passed_over == "/device:CPU:2"
