"""Models that TensorFlow has saved: called, trained on, chosen by tags, refused where damaged."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowscope as fs
from flowscope.graph.messages.tensorflow_schema import message_class

DATA = Path(__file__).parent / "data"


def example(name: str) -> tuple[Any, Any]:
    with np.load(DATA / name / "expected.npz") as file:
        return file["x"], file["y"]


@pytest.mark.parametrize(("name", "tags"), [("saved_1", ["serve"]), ("saved_2", None)])
def test_signatures_give_what_tensorflow_gives(name: str, tags: Any) -> None:
    x, y = example(name)
    with fs.saved_model.load(DATA / name, tags) as model:
        signature = model.signatures["serving_default"]
        ((given, tensor),) = signature.inputs.items()
        assert tensor.dtype == fs.float32
        for found in (model(x), signature(**{given: x})):
            (value,) = found.values()
            np.testing.assert_allclose(value, y, rtol=1e-4, atol=1e-6)
        with pytest.raises(fs.errors.InvalidArgumentError, match=f"the inputs {given}"):
            signature(other=x)


def test_a_model_keeps_its_state_from_call_to_call() -> None:
    with fs.saved_model.load(DATA / "saved_counter") as model:
        for count in (1, 2, 3):
            found = model(x=[1.0, 2.0])
            assert found["scaled"].tolist() == [2.0, 4.0]
            assert found["count"].tolist() == [count, count]


@pytest.mark.parametrize("scope", [None, "old"])
def test_a_model_is_loaded_into_a_session_and_trained_on(scope: str | None, tmp_path: Path) -> None:
    x, y = example("saved_1")
    prefix = f"{scope}/" if scope else ""
    with fs.Graph().as_default() as graph, fs.Session(graph=graph) as session:
        before = fs.Variable(1.0, name="mine", trainable=False)
        tags = [fs.saved_model.tag_constants.SERVING]
        meta = fs.saved_model.loader.load(session, tags, DATA / "saved_1", import_scope=scope)
        key = fs.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
        written = meta.signature_def[key]
        inputs = graph.get_tensor_by_name(prefix + written.inputs["x"].name)
        outputs = graph.get_tensor_by_name(prefix + written.outputs["y"].name)
        np.testing.assert_allclose(session.run(outputs, {inputs: x}), y, rtol=1e-5)
        assert len(fs.global_variables()) == 1 + 4
        assert len(fs.trainable_variables()) == 3
        loss = fs.reduce_mean(fs.square(outputs))
        train = fs.train.GradientDescentOptimizer(0.02).minimize(loss)
        session.run(before.initializer)
        losses = [session.run([loss, train], {inputs: x})[0] for _ in range(20)]
        assert losses[-1] < 0.7 * losses[0]
        path = fs.train.Saver().save(session, str(tmp_path / "trained"))
        last = session.run(outputs, {inputs: x})
        session.run(fs.global_variables_initializer())
        fs.train.Saver().restore(session, path)
        np.testing.assert_array_equal(session.run(outputs, {inputs: x}), last)


def test_graphs_are_chosen_by_their_tags() -> None:
    with fs.saved_model.load(DATA / "saved_1", ["gpu", "serve"]) as model:
        assert list(model.signatures) == ["other"]
    for tags in (None, ["train"], ["gpu"], []):
        with pytest.raises(fs.errors.NotFoundError, match="it has: serve; serve, gpu"):
            fs.saved_model.load(DATA / "saved_1", tags)
    assert fs.saved_model.contains_saved_model(DATA / "saved_1")
    assert not fs.saved_model.loader.maybe_saved_model_directory(DATA)
    with pytest.raises(fs.errors.NotFoundError, match="no saved model"):
        fs.saved_model.load(DATA)


def changed(folder: Path, change: Any) -> Path:
    shutil.copytree(DATA / "saved_counter", folder / "model")
    path = folder / "model" / "saved_model.pb"
    message = message_class("SavedModel").FromString(path.read_bytes())
    change(message.meta_graphs[0])
    path.write_bytes(message.SerializeToString())
    return folder / "model"


@pytest.mark.parametrize("name", ["../../secret", "/etc/passwd", "..", ""])
def test_assets_lie_in_the_folder(name: str, tmp_path: Path) -> None:
    def change(meta: Any) -> None:
        meta.asset_file_def.add(filename=name).tensor_info.name = "x:0"

    folder = changed(tmp_path, change)
    with pytest.raises(fs.errors.DataLossError, match="a file in the model's folder"):
        fs.saved_model.load(folder)


def test_a_damaged_model_is_one_error(tmp_path: Path) -> None:
    folder = changed(tmp_path, lambda meta: None)
    path = folder / "saved_model.pb"
    whole = path.read_bytes()
    rng = random.Random(2)
    for _ in range(80):
        data = bytearray(whole)
        at = rng.randrange(len(data))
        data[at] = rng.randrange(256)
        path.write_bytes(data if rng.random() < 0.8 else data[:at])
        try:
            fs.saved_model.load(folder).close()
        except fs.errors.OpError:
            continue


def test_a_missing_checkpoint_is_named(tmp_path: Path) -> None:
    folder = changed(tmp_path, lambda meta: None)
    (folder / "variables" / "variables.index").unlink()
    with pytest.raises(fs.errors.NotFoundError, match="variables"):
        fs.saved_model.load(folder)
