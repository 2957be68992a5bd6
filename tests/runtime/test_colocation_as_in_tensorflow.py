"""Where variables' initial values, reads and cached copies are, as in TensorFlow 1.15."""

import numpy as np
import pytest

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")
MODES = ["compiled", "op", "tokens"]


def variables_elsewhere(op):
    """Asks for another device for variables alone, as `replica_device_setter` does."""
    return "/cpu:1" if op.type == "VarHandleOp" else "/cpu:2"


def initializers():
    names = [op for op in fs.get_default_graph().get_operations() if "/Initializer/" in op.name]
    assert names
    return names


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["get_variable", "function"])
def test_initial_values_are_made_beside_the_variable(kind, mode):
    with fs.device(variables_elsewhere):
        if kind == "function":
            v = fs.Variable(lambda: fs.random_uniform([3], seed=1), name="v")
        else:
            v = fs.get_variable("v", [3], initializer=fs.random_uniform_initializer(seed=1))
    assert all(op.colocation_groups() == [b"loc:@v"] for op in initializers())
    config = fs.ConfigProto(device_count={"CPU": 3}, mode=mode)
    with fs.Session(config=config) as sess:
        sess.run(v.initializer)
        assert sess.run(v).shape == (3,)
        nodes = [n for n in sess.plan(v.initializer).program.walk() if n.op.type != "Const"]
        assert {n.device[-1] for n in nodes} == {"1"}


def test_initial_values_that_are_tensors_are_where_they_were_made():
    with fs.device("/cpu:2"):
        start = fs.random_uniform([3])
    with fs.device("/cpu:1"):
        v = fs.Variable(start)
    assert v.initial_value.device.endswith("CPU:2") and v.device.endswith("CPU:1")


def test_graphs_are_written_and_read_with_the_colocation_of_initial_values():
    fs.get_variable("v", [3], initializer=fs.random_uniform_initializer(seed=1))
    written = fs.get_default_graph().as_graph_def()
    with fs.Graph().as_default() as again:
        fs.import_graph_def(written, name="")
        made = [op for op in again.get_operations() if "/Initializer/" in op.name]
    assert made and all(op.colocation_groups() == [b"loc:@v"] for op in made)


@pytest.mark.parametrize("mode", MODES)
def test_a_cached_copy_is_where_it_is_asked_to_be_whoever_reads_first(mode):
    with fs.device("/cpu:1"):
        v = fs.Variable([1.0, 2.0], caching_device="/device:CPU:2", name="v")
    with fs.device("/cpu:0"):
        y, z = fs.exp(v), fs.sin(v)
    assert y.op.inputs[0] is z.op.inputs[0]
    assert y.op.inputs[0].device == "/device:CPU:2"
    with fs.Session(config=fs.ConfigProto(device_count={"CPU": 3}, mode=mode)) as sess:
        sess.run(v.initializer)
        np.testing.assert_array_equal(sess.run(y), np.exp(np.array([1.0, 2.0], "f")))
        nodes = sess.plan([y, z]).program.nodes
        crossing = [n for n in nodes if n.op.type == "Transfer"]
        assert mode == "compiled" or len(crossing) == 2  # to the cache, and from there


def test_reads_are_shared_by_device_scopes_and_stand_where_the_variable_stands():
    with fs.device("/cpu:1"):
        v = fs.Variable(1.0, name="v")
    values = []
    for i in range(3):
        with fs.device(f"/cpu:{i}"):
            values.append(v.value())
    assert len(set(values)) == 1 and values[0].device == v.device


@pytest.mark.parametrize("method", [None, 0, 1, 2])
@pytest.mark.parametrize("gate", [True, False])
@pytest.mark.parametrize("colocate", [True, False])
def test_aggregated_gradients_are_beside_what_they_are_gradients_of_if_asked(
    colocate, gate, method
):
    with fs.device("/cpu:1"):
        v = fs.Variable([1.0, 2.0], name="v")
    with fs.device("/cpu:0"):
        y = fs.reduce_sum(v * 3.0 + fs.sin(v) + v * v)
    with fs.device("/cpu:2"):
        (g,) = fs.gradients(
            y, v, colocate_gradients_with_ops=colocate, gate_gradients=gate,
            aggregation_method=method,
        )  # fmt: skip
    assert g.device == ("/device:CPU:1" if colocate else "/device:CPU:2")
    assert (g.op.colocation_groups() == [b"loc:@v/read"]) is colocate
    with fs.Session(config=fs.ConfigProto(device_count={"CPU": 3})) as sess:
        sess.run(v.initializer)
        x = np.array([1.0, 2.0], "f")
        np.testing.assert_allclose(sess.run(g), 3 + np.cos(x) + 2 * x, rtol=1e-6)
