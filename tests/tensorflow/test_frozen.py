"""Graphs that TensorFlow has frozen: opened, run, differentiated, cut and written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowscope as fs
from flowscope.graph.messages.tensorflow_schema import message_class, text_of

DATA = Path(__file__).parent / "data"
MODELS = sorted(path.stem for path in DATA.glob("*.npz"))


class Model:
    """A frozen graph with inputs and what TensorFlow made of them."""

    def __init__(self, name: str) -> None:
        with np.load(DATA / f"{name}.npz") as file:
            facts = {key: file[key] for key in file.files}
        self.data = facts["graph"].tobytes()
        self.inputs, self.outputs = facts["inputs"].tolist(), facts["outputs"].tolist()
        self.fed = {n: facts[f"input_{i}"] for i, n in enumerate(self.inputs)}
        self.expected = [facts[f"output_{i}"] for i in range(len(self.outputs))]
        self.gradient = facts.get("gradient")

    def tensors(self, names: list[str], scope: str = "") -> list[Any]:
        graph = fs.get_default_graph()
        return [graph.get_tensor_by_name(f"{scope}{n}") for n in names]

    def feeds(self, scope: str = "") -> dict[str, Any]:
        return {f"{scope}{n}": v for n, v in self.fed.items()}


def close(found: Any, expected: Any) -> None:
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_a_frozen_graph_gives_what_tensorflow_gives(name: str) -> None:
    model = Model(name)
    with fs.Graph().as_default():
        fs.import_graph_def(fs.GraphDef.FromString(model.data), name="")
        outputs = model.tensors(model.outputs)
        for mode in ("compiled", "op", "tokens"):
            with fs.Session(config=fs.ConfigProto(mode=mode)) as session:
                close(session.run(outputs, model.feeds()), model.expected)


@pytest.mark.parametrize("name", [n for n in MODELS if Model(n).gradient is not None])
def test_gradients_lead_through_as_in_tensorflow(name: str) -> None:
    model = Model(name)
    with fs.Graph().as_default():
        fs.import_graph_def(fs.GraphDef.FromString(model.data), name="")
        outputs, inputs = model.tensors(model.outputs), model.tensors(model.inputs)
        total = fs.add_n([fs.reduce_sum(y * y) for y in outputs])
        gradient = fs.gradients(total, inputs[0])[0]
        with fs.Session() as session:
            found = session.run(gradient, model.feeds())
    np.testing.assert_allclose(found, model.gradient, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", ["recurrent", "control_lowered"])
def test_all_written_forms_hold_the_same_graph(name: str, tmp_path: Path) -> None:
    model = Model(name)
    binary = fs.GraphDef()
    assert binary.ParseFromString(model.data) == len(model.data)
    (tmp_path / "graph.pb").write_bytes(model.data)
    message = message_class("GraphDef").FromString(model.data)
    (tmp_path / "graph.pbtxt").write_text(text_of(message))
    assert fs.io.read_graph(tmp_path / "graph.pb") == binary
    assert fs.io.read_graph(tmp_path / "graph.pbtxt") == binary
    fs.train.write_graph(binary, tmp_path, "ours.txt")
    with fs.Graph().as_default():
        # Written in our own form and read again it still computes the same.
        fs.import_graph_def(fs.io.read_graph(tmp_path / "ours.txt"), name="")
        with fs.Session() as session:
            close(session.run(model.tensors(model.outputs), model.feeds()), model.expected)


def test_two_models_in_one_graph_feed_each_other() -> None:
    first, second = Model("recurrent"), Model("control")
    x, n = second.inputs
    with fs.Graph().as_default():
        fs.import_graph_def(fs.GraphDef.FromString(first.data), name="first")
        made = fs.reshape(first.tensors(first.outputs, "first/")[0], [-1])
        start, turns = fs.ones([5]), fs.constant(5)
        returned = fs.import_graph_def(
            fs.GraphDef.FromString(second.data),
            {x: fs.pad(made, [[0, 0]])[:5] * 0 + start, n: turns},
            second.outputs,
            name="second",
        )
        with fs.Session() as session:
            found = session.run(returned, first.feeds("first/"))
            alone = session.run(returned, {**first.feeds("first/"), turns: 5})
    close(found, alone)
    assert all(t.name.startswith("second/") for t in returned)


def test_a_part_of_a_frozen_graph_can_be_cut_out() -> None:
    model = Model("convolutions")
    whole = fs.GraphDef.FromString(model.data)
    pool = next(n.name for n in whole.node if n.op == "MaxPool")
    part = fs.graph_util.extract_sub_graph(whole, [pool])
    assert 10 < len(part.node) < len(whole.node)
    with fs.Graph().as_default():
        (found,) = fs.import_graph_def(part, return_elements=[f"{pool}:0"])
        with fs.Session() as session:
            assert session.run(found, model.feeds("import/")).shape == (2, 4, 4, 4)


def changed(data: bytes, **ops: str) -> bytes:
    message = message_class("GraphDef").FromString(data)
    for node in [*message.node, *[n for f in message.library.function for n in f.node_def]]:
        node.op = ops.get(node.op, node.op)
    return message.SerializeToString()


def test_all_unknown_op_types_are_named_at_once() -> None:
    data = changed(Model("recurrent").data, Tanh="Tanhh", MatMul="MyMatMul", Max="Maxx")
    with pytest.raises(fs.errors.NotFoundError) as caught:
        fs.GraphDef.FromString(data)
    for op in ("Tanhh", "MyMatMul", "Maxx"):
        assert f"{op}: " in str(caught.value)


def test_python_functions_of_a_file_are_not_run() -> None:
    data = changed(Model("convolutions").data, Softmax="PyFunc")
    with pytest.raises(fs.errors.NotFoundError, match="PyFunc"):
        fs.GraphDef.FromString(data)


def test_an_error_names_the_node_of_the_file() -> None:
    message = message_class("GraphDef").FromString(Model("convolutions").data)
    node = next(n for n in message.node if n.op == "MaxPool")
    node.attr["padding"].s = b"NOWHERE"
    with pytest.raises(fs.errors.InvalidArgumentError, match=f'"{node.name}"'):
        fs.GraphDef.FromString(message.SerializeToString())


def test_without_protobuf_the_error_says_what_to_install(monkeypatch: Any) -> None:
    import sys

    from flowscope.graph.messages import tensorflow_schema

    tensorflow_schema._classes.cache_clear()
    monkeypatch.setitem(sys.modules, "google.protobuf.message_factory", None)
    with pytest.raises(fs.errors.FailedPreconditionError, match=r"flowscope\[tensorflow\]"):
        fs.GraphDef.FromString(Model("control").data)
