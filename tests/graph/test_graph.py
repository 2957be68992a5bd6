"""The graph: names, scopes, finding, collections, errors at the user's line."""

import inspect

import numpy as np
import pytest

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")


def here(offset=0):
    return inspect.currentframe().f_back.f_lineno + offset


def test_tensor_names_are_the_operations_name_and_the_outputs_index():
    x = fs.placeholder(fs.float32, [2], name="x")
    parts = fs.split(x, 2, name="parts")
    assert x.name == "x:0"
    assert [p.name for p in parts] == ["parts:0", "parts:1"]
    assert parts[1].op.outputs[1] is parts[1]


def test_names_are_made_unique_without_regard_to_case(graph):
    names = [fs.constant(1.0, name=n).op.name for n in ("c", "c", "C", "c_1")]
    assert names == ["c", "c_1", "C_2", "c_1_1"]
    assert len({n.lower() for n in names}) == 4


def test_default_names_are_tensorflows():
    x = fs.placeholder(fs.float32, [])
    assert [t.op.name for t in (x, x + x, fs.add(x, x), fs.matmul([[1.0]], [[1.0]]))] == [
        "Placeholder",
        "add",
        "Add_1",
        "MatMul",
    ]


def test_a_python_value_becomes_a_constant_inside_the_operations_scope():
    x = fs.placeholder(fs.float64, [], name="x")
    y = x * 2
    assert [t.name for t in y.op.inputs] == ["x:0", "mul/y:0"]
    assert y.op.inputs[1].dtype == fs.float64


def test_name_scopes_nest_and_can_be_opened_again(graph):
    with fs.name_scope("a") as a:
        with fs.name_scope("b"):
            assert fs.constant(1.0, name="c").op.name == "a/b/c"
    with fs.name_scope("a"):
        assert fs.constant(1.0, name="c").op.name == "a_1/c"
    with fs.name_scope(a):
        assert fs.constant(1.0, name="d").op.name == "a/d"
        with fs.name_scope(None):
            assert fs.constant(1.0, name="e").op.name == "e"
    assert graph.get_name_scope() == ""


@pytest.mark.parametrize("name", ["", "-a", "a b", "a:0", "ü"])
def test_a_bad_name_is_refused(graph, name):
    if name == "":
        assert fs.constant(1.0, name=name).op.name == "Const"
        return
    with pytest.raises(ValueError, match="cannot name an operation"):
        fs.constant(1.0, name=name)


def test_control_dependencies_nest_and_can_be_cleared():
    a, b = fs.no_op("a"), fs.no_op("b")
    with fs.control_dependencies([a]):
        with fs.control_dependencies([b, a]):
            inner = fs.no_op()
        with fs.control_dependencies(None):
            free = fs.no_op()
    assert inner.control_inputs == [a, b]
    assert free.control_inputs == []


def test_a_control_cycle_is_refused():
    a = fs.no_op("a")
    with fs.control_dependencies([a]):
        b = fs.no_op("b")
    with pytest.raises(ValueError, match='"b" waits for "a" already'):
        a._add_control_input(b)


def test_device_scopes_merge(graph):
    with fs.device("/job:worker"), fs.device("/task:1/gpu:0"):
        assert fs.no_op().device == "/job:worker/task:1/device:GPU:0"
        with fs.device(None):
            assert fs.no_op().device == ""
        with fs.device("/cpu:*"):
            assert fs.no_op().device == "/job:worker/task:1/device:CPU:0"
    with fs.device(lambda op: "/cpu:1" if op.type == "NoOp" else None):
        assert fs.no_op().device == "/device:CPU:1"
        assert fs.constant(1.0).device == ""
    with pytest.raises(ValueError, match="no device name"):
        with fs.device("/nonsense:0"):
            pass


def test_colocation_is_kept():
    a = fs.constant(1.0, name="a")
    with fs.colocate_with(a):
        b = fs.constant(2.0)
    assert b.op.colocation_groups() == [b"loc:@a"]
    assert a.op.colocation_groups() == [b"loc:@a"]


def test_finding_by_name(graph):
    x = fs.placeholder(fs.float32, [], name="scope/x")
    assert graph.get_operation_by_name("scope/x") is x.op
    assert graph.get_tensor_by_name("scope/x:0") is x
    with pytest.raises(KeyError, match=r"no operation is named 'scope/y'.*similar: scope/x"):
        graph.get_tensor_by_name("scope/y:0")
    with pytest.raises(KeyError, match="has 1 outputs"):
        graph.get_tensor_by_name("scope/x:1")
    with pytest.raises(
        ValueError, match="names an operation, expected a tensor's name like 'scope/x:0'"
    ):
        graph.get_tensor_by_name("scope/x")


def test_collections(graph):
    graph.add_to_collections(["a", "b", "a"], 1)
    graph.add_to_collection("a", 2)
    assert graph.get_collection("a") == [1, 2]
    graph.get_collection("a").append(3)
    assert graph.get_collection("a") == [1, 2]
    graph.get_collection_ref("a").append(3)
    assert graph.get_collection("a") == [1, 2, 3]
    assert graph.get_all_collection_keys() == ["a", "b"]
    v = fs.Variable(1.0, name="scope/v")
    assert graph.get_collection(fs.GraphKeys.GLOBAL_VARIABLES, "scope/") == [v]
    assert graph.get_collection(fs.GraphKeys.GLOBAL_VARIABLES, "other/") == []


def test_a_tensor_of_another_graph_is_refused_at_the_users_line():
    x = fs.placeholder(fs.float32, [], name="x")
    with fs.Graph().as_default():
        y = fs.placeholder(fs.float32, [], name="y")
        with pytest.raises(ValueError, match='"x:0" belongs to another graph') as e:
            y + x
        assert e.value.origin == f"test_graph.py, line {here(-1)}"


def test_errors_while_building_name_inputs_and_the_users_line():
    a = fs.placeholder(fs.float64, [2, 3], name="a")
    b = fs.placeholder(fs.float64, [2, 3], name="b")
    with pytest.raises(ValueError) as e, fs.name_scope("layer"):
        fs.matmul(a, b)
    line = here(-1)
    text = str(e.value)
    assert text.startswith("MatMul: ")
    assert 'input 0: float64[2,3]   from "a:0"' in text
    assert f'node "layer/MatMul", made in test_graph.py, line {line}' in text
    assert "fs.matmul(a, b)" in text
    assert isinstance(e.value, fs.errors.InvalidArgumentError)


def test_origins_keep_the_users_frames_only():
    def layer(x):
        return x + x

    x = fs.placeholder(fs.float32, [])
    y = layer(x)
    places = y.op.origin.places
    assert [p.line for p in places[:2]] == [here(-5), here(-2)]
    assert all(p.filename == __file__ for p in places)
    assert places[0].text == "return x + x"


def test_no_promotion_between_dtypes():
    with pytest.raises(TypeError, match="float32.*int32"):
        fs.constant(1.0) + fs.constant(1)
    assert issubclass(fs.errors.DTypeError, ValueError)


def test_python_values_take_the_tensors_dtype_or_are_refused():
    x = fs.placeholder(fs.int32, [])
    assert (x + 1).dtype == fs.int32
    with pytest.raises(TypeError, match=r"expected int32, got 1\.5"):
        x + 1.5


def test_misuse_of_a_tensor_says_what_to_do():
    x = fs.placeholder(fs.float32, [None], name="x")
    for misuse, hint in (
        (bool, "fs.where"),
        (len, "fs.shape"),
        (float, "session"),
        (iter, "fs.unstack"),
        (np.asarray, "session"),
    ):
        with pytest.raises(TypeError, match=hint):
            misuse(x)


def test_a_finalized_graph_takes_nothing(graph):
    graph.finalize()
    with pytest.raises(RuntimeError, match="finalized"):
        fs.constant(1.0)


def test_shapes_with_unknown_dimensions_and_rank():
    x = fs.placeholder(fs.float32, [None, 3])
    y = fs.placeholder(fs.float32)
    assert x.shape.as_list() == [None, 3]
    assert x.shape[0].value is None and x.shape[1].value == 3
    assert y.shape.ndims is None
    assert (x + fs.ones([5, 1])).shape.as_list() == [5, 3]
    assert (x + y).shape.ndims is None
    x.set_shape([7, None])
    assert x.get_shape() == [7, 3]
    with pytest.raises(ValueError, match="do not fit together"):
        x.set_shape([8, None])


def test_get_default_graph_and_reset(graph):
    assert fs.get_default_graph() is graph
    with pytest.raises(RuntimeError, match="inside"):
        fs.reset_default_graph()


def test_blocks_enclose_what_stands_in_them(graph):
    from flowscope.graph.block import Block

    outer = fs.constant(1.0, name="outer")
    body = Block(graph.root, outer.op)
    with graph.enter_block(body):
        inner = fs.constant(2.0, name="inner")
    assert graph.root.encloses(body) and not body.encloses(graph.root)
    assert body.operations == [inner.op]
    assert inner.op in graph.get_operations()
    assert not graph.is_fetchable(inner) and graph.is_fetchable(outer)
    with fs.Session() as sess, pytest.raises(ValueError, match="stands inside"):
        sess.run(inner)


def test_repr_says_what_one_wants_to_know():
    x = fs.placeholder(fs.float32, [None, 2], name="x")
    assert repr(x) == f"<fs.Tensor 'x:0' float32[?,2], test_graph.py, line {here(-1)}>"
    assert "Placeholder()" in repr(x.op)


def test_errors_survive_pickling():
    import pickle

    e = fs.errors.InvalidArgumentError(
        "bad", op="a", op_type="Add", inputs=["x"], origin="cell 1, line 2"
    )
    back = pickle.loads(pickle.dumps(e))
    assert type(back) is type(e) and str(back) == str(e) and back.origin == "cell 1, line 2"


def test_a_number_beside_a_tensor_is_a_constant_of_its_graph(graph):
    with fs.Graph().as_default() as other:
        a = fs.constant([1.0, 2.0], name="a")
        v = fs.Variable([1.0, 2.0])
    total = 2.0 * (a + 1.0) - v  # as in TensorFlow: the tensor's graph, not the default one
    assert {t.graph for t in (total, *total.op.inputs)} == {other}
    assert len(graph) == 0
    b = fs.constant(1.0)
    with pytest.raises(ValueError, match='"Const:0" belongs to another graph; it was made in') as e:
        fs.add(a, b)  # the line
    assert "# the line" in str(e.value)
    with fs.Session(graph=graph) as sess, pytest.raises(ValueError, match=r"graph=x\.graph"):
        sess.run(a)


def test_names_as_bytes(graph):
    x = fs.placeholder(fs.float32, [], name=b"x")
    assert fs.constant(44.0, name=b"e").name == "e:0"
    assert fs.add(1.0, x, name=b"sum").name == "sum:0"
    with fs.name_scope(b"s"):
        assert fs.identity(1.0, name=b"y").name == "s/y:0"
    with fs.Session() as sess:
        assert sess.run(b"sum:0", {b"x:0": 2.0}) == 3.0
