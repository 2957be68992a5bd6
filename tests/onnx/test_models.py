"""Models of ONNX: names, origins, control flow, training, external data, errors."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from cluster_hosts import hosts_here, worker
from onnx import TensorProto, helper, numpy_helper

import flowscope as fs

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def info(name: str, dims: Any, dtype: int = FLOAT) -> Any:
    return helper.make_tensor_value_info(name, dtype, dims)


def model(nodes: list[Any], inputs: list[Any], outputs: list[Any], **weights: Any) -> Any:
    initializers = [numpy_helper.from_array(v, k) for k, v in weights.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, initializers)
    found = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    onnx.checker.check_model(found)
    return found


def layer() -> Any:
    """relu(x @ w + b), halved as often as `n` says, with a node in a branch."""
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["goes"]),
            helper.make_node("Mul", ["h", "half"], ["next"]),
        ],
        "body",
        [info("i", [], INT64), info("go", [], BOOL), info("h", [None, 3])],
        [info("goes", [], BOOL), info("next", [None, 3])],
    )
    sides = [
        helper.make_graph([helper.make_node(op, ["last"], [op])], op, [], [info(op, [None, 3])])
        for op in ("Neg", "Abs")
    ]
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["z"], "/dense/Gemm"),
        helper.make_node("Relu", ["z"], ["r"], "/dense/Relu"),
        helper.make_node("Loop", ["n", "", "r"], ["last"], "/loop", body=body),
        helper.make_node("If", ["flip"], ["y"], "/if", then_branch=sides[0], else_branch=sides[1]),
    ]
    rng = np.random.default_rng(0)
    return model(
        nodes,
        [info("x", ["batch", 4]), info("n", [], INT64), info("flip", [], BOOL)],
        [info("y", ["batch", 3])],
        w=rng.normal(size=(4, 3)).astype(np.float32),
        b=rng.normal(size=3).astype(np.float32),
        half=np.float32(0.5),
    )


def expected(m: Any, feeds: dict[str, Any]) -> Any:
    w, b, _ = [numpy_helper.to_array(t) for t in m.graph.initializer]
    found = np.maximum(feeds["x"] @ w + b, 0) * 0.5 ** int(feeds["n"])
    return -found if feeds["flip"] else found


def feeds(flip: bool = True) -> dict[str, Any]:
    x = np.random.default_rng(1).normal(size=(5, 4)).astype(np.float32)
    return {"x": x, "n": np.int64(3), "flip": np.bool_(flip)}


@pytest.mark.parametrize("flip", [True, False])
@pytest.mark.parametrize("trainable", [True, False])
def test_a_model_runs_and_keeps_its_names(flip: bool, trainable: bool) -> None:
    m = layer()
    with fs.onnx.load(m.SerializeToString(), trainable=trainable) as loaded:
        assert list(loaded.inputs) == ["x", "n", "flip"]
        found = loaded.run(feeds(flip))["y"]
        np.testing.assert_allclose(found, expected(m, feeds(flip)), rtol=1e-5)
        relu = loaded.graph.get_operation_by_name("dense/Relu")
        assert "/dense/Relu (Relu)" in str(relu.origin.place)
        assert isinstance(loaded.weights["w"], fs.Variable) is trainable


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_an_imported_model_runs_in_all_modes(mode: Any) -> None:
    m = layer()
    config = fs.ConfigProto(mode=mode)
    with fs.onnx.load(m) as loaded, fs.Session(graph=loaded.graph, config=config) as session:
        fed = {loaded.inputs[k]: v for k, v in feeds().items()}
        for _ in range(2):
            found = session.run(loaded.outputs["y"], fed)
            np.testing.assert_allclose(found, expected(m, feeds()), rtol=1e-5)


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
@pytest.mark.parametrize("is_far", [False, True], ids=["devices", "workers"])
def test_parts_of_a_model_are_moved(mode: Any, is_far: bool) -> None:
    """Its layer and its loop, to other devices or to workers."""
    m, fed = layer(), feeds()
    with contextlib.ExitStack() as stack:
        loaded = stack.enter_context(fs.onnx.load(m))
        cluster, places = None, ["/cpu:1", "/cpu:2"]
        if is_far:
            cluster, _ = stack.enter_context(hosts_here(2))
            places = [f"{worker(i)}/device:CPU:0" for i in range(2)]
        config = fs.ConfigProto(mode=mode, device_count={"CPU": 3})
        sess = stack.enter_context(fs.Session(cluster or "", loaded.graph, config))
        given = {loaded.inputs[k]: v for k, v in fed.items()}
        before = sess.run(loaded.outputs["y"], given)
        np.testing.assert_allclose(before, expected(m, fed), rtol=1e-5)
        for name, place in zip(["dense", "loop"], places, strict=True):
            sess.move(name, place)
        assert sess.run(loaded.outputs["y"], given).tobytes() == before.tobytes()
        parts = sess.plan(loaded.outputs["y"], list(given)).parts
        assert len({str(part.device) for part in parts}) >= 3


def test_a_model_is_trained_on() -> None:
    with fs.onnx.load(layer(), trainable=True) as loaded:
        with loaded.graph.as_default():
            loss = fs.reduce_mean(fs.square(loaded.outputs["y"] + 1.0))
            step = fs.train.GradientDescentOptimizer(0.5).minimize(loss)
        fed = {loaded.inputs[k]: v for k, v in feeds().items()}
        losses = [loaded.session.run([loss, step], fed)[0] for _ in range(6)]
        assert losses[-1] < losses[0]


def test_a_file_with_data_beside_it(tmp_path: Path) -> None:
    m = layer()
    path = tmp_path / "m.onnx"
    onnx.save(m, path, save_as_external_data=True, location="m.data", size_threshold=0)
    with fs.onnx.load(path) as loaded:
        found = loaded.run(feeds())["y"]
    np.testing.assert_allclose(found, expected(layer(), feeds()), rtol=1e-5)


def test_data_outside_of_the_folder_are_refused(tmp_path: Path) -> None:
    m = layer()
    weight = m.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="../secret")
    (tmp_path / "secret").write_bytes(b"\0" * 48)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "m.onnx").write_bytes(m.SerializeToString())
    with pytest.raises(fs.errors.InvalidArgumentError, match="in the model's folder"):
        fs.onnx.load(tmp_path / "in" / "m.onnx")


def test_missing_operators_are_named_all_at_once() -> None:
    nodes = [
        helper.make_node("Foo", ["x"], ["y"], "/first", domain="my"),
        helper.make_node("Bar", ["y"], ["z"], "/second", domain="my"),
    ]
    graph = helper.make_graph(nodes, "g", [info("x", [1])], [info("z", [1])])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("my", 2)]
    with pytest.raises(fs.errors.UnimplementedError) as e:
        fs.onnx.load(helper.make_model(graph, opset_imports=opsets))
    assert "/first (Foo), opset 2" in str(e.value)
    assert "/second (Bar), opset 2" in str(e.value)


def test_an_attribute_that_does_nothing_is_refused() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"], "/act", slope=0.5)]
    graph = helper.make_graph(nodes, "g", [info("x", [1])], [info("y", [1])])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    with pytest.raises(fs.errors.UnimplementedError, match=r"/act.*not supported: slope"):
        fs.onnx.load(proto)


def test_wrong_feeds_are_named() -> None:
    with fs.onnx.load(layer()) as loaded:
        with pytest.raises(fs.errors.InvalidArgumentError, match="expected the inputs x, n, flip"):
            loaded.run({"x": np.zeros((1, 4), np.float32)})


def test_no_file_of_that_name() -> None:
    with pytest.raises(fs.errors.NotFoundError, match=r"nowhere\.onnx"):
        fs.onnx.load("nowhere.onnx")


@pytest.mark.slow
def test_damaged_models_give_an_error_of_ours() -> None:
    data, refused = layer().SerializeToString(), 0
    for seed in range(300):
        rng = random.Random(seed)
        bad = bytearray(data)
        for _ in range(rng.randint(1, 4)):
            bad[rng.randrange(len(bad))] = rng.randrange(256)
        if rng.random() < 0.3:
            del bad[rng.randrange(len(bad)) :]
        try:
            fs.onnx.load(bytes(bad)).close()
        except fs.errors.OpError:  # any other error fails the test
            refused += 1
    assert 100 < refused < 300  # some damage changes a number or a name alone
