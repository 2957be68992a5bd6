"""Graphs and saved models in TensorFlow's form: read back, and equal to bytes that it has loaded.

`data/written` has what `written_programs.py` wrote and TensorFlow 2.21 ran with equal values
(`load_written.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from written_programs import PROGRAMS, X, network, write

import flowscope as fs

DATA = Path(__file__).parent / "data" / "written"
#: What no random numbers are in.
FIXED = [program for program in PROGRAMS if program is not network]


def run_graph(path: Path, mode: str) -> Any:
    """What the graph in a file gives for `X`."""
    with fs.Graph().as_default(), fs.Session(config=fs.ConfigProto(mode=mode)) as session:
        fs.import_graph_def(fs.io.read_graph(path), name="")
        return session.run("y:0", {"x:0": X})


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_what_is_written_is_read_with_equal_values(
    program: Callable[[Any], Any], tmp_path: Path
) -> None:
    expected = write(program, tmp_path)
    with fs.saved_model.load(tmp_path) as model:
        np.testing.assert_allclose(model(x=X)["y"], expected, rtol=1e-6, atol=1e-6)
    for name, mode in (("graph.pb", "compiled"), ("graph.pb", "op"), ("graph.pbtxt", "tokens")):
        found = run_graph(tmp_path / name, mode)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("program", FIXED, ids=lambda program: program.__name__)
def test_bytes_are_those_that_tensorflow_has_loaded(
    program: Callable[[Any], Any], tmp_path: Path
) -> None:
    write(program, tmp_path)
    kept = (DATA / f"{program.__name__}.pb").read_bytes()
    assert (tmp_path / "graph.pb").read_bytes() == kept
    kept = (DATA / f"{program.__name__}_saved_model.pb").read_bytes()
    assert (tmp_path / "saved_model.pb").read_bytes() == kept


def test_variables_of_a_graph_stay_variables(graph: fs.Graph, tmp_path: Path) -> None:
    w = fs.Variable([1.0, 2.0], name="w")
    fs.assign_add(w, [10.0, 10.0], name="more")
    fs.multiply(w, 2.0, name="y")
    path = fs.train.write_graph(graph, tmp_path, "live.pb", as_text=False, form="tensorflow")
    with fs.Graph().as_default(), fs.Session() as session:
        fs.import_graph_def(fs.io.read_graph(path), name="")
        session.run("w/Assign")
        session.run("more")
        assert session.run("y:0").tolist() == [22.0, 24.0]


def test_what_tensorflow_has_not_is_named(graph: fs.Graph, tmp_path: Path) -> None:
    x = fs.placeholder(fs.float32, [], name="x")
    fs.py_func(np.sin, [x], fs.float32, name="mine")
    fs.while_loop(lambda v: v < 9.0, lambda v: v * 2.0, [x], name="many")
    with pytest.raises(fs.errors.UnimplementedError, match=r'"mine" \(PyFunc\).*"many/Loop"'):
        fs.train.write_graph(graph, tmp_path, "graph.pb", False, form="tensorflow")
    with pytest.raises(fs.errors.InvalidArgumentError, match='"own" or "tensorflow"'):
        fs.train.write_graph(graph, tmp_path, "graph.pb", form="onnx")
    assert not list(tmp_path.iterdir())


def test_a_model_has_placeholders_as_inputs_and_an_empty_folder(
    graph: fs.Graph, tmp_path: Path
) -> None:
    save = fs.saved_model.simple_save
    x, other = (fs.placeholder(fs.float32, [], name=n) for n in ("x", "other"))
    y = x + other
    with fs.Session() as session:
        with pytest.raises(fs.errors.InvalidArgumentError, match="placeholders as inputs"):
            save(session, tmp_path, {"y": y}, {"z": y * 2.0})
        with pytest.raises(fs.errors.InvalidArgumentError, match="all placeholders.*other"):
            save(session, tmp_path, {"x": x}, {"y": y})
        with pytest.raises(fs.errors.InvalidArgumentError, match="tensors by names"):
            save(session, tmp_path, {"x": "x:0"}, {"y": y})
        save(session, tmp_path, {"x": x, "o": other}, {"y": y})
        with pytest.raises(fs.errors.InvalidArgumentError, match="an empty folder"):
            save(session, tmp_path, {"x": x, "o": other}, {"y": y})
    with fs.saved_model.load(tmp_path) as model:
        assert model(x=1.0, o=2.0)["y"] == 3.0
