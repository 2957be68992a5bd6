"""Pictures of models that others made: folded by repeats and modules, weights aside."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx_models import residual_network, transformer

import flowscope as fs
from flowscope.live.graphs.columns import columns_of, nodes_of
from flowscope.live.watchers.bus import LiveChannel
from flowscope_widgets import picture


def labels(model: onnx.ModelProto, **options: Any) -> list[str]:
    """The labels of the boxes of a model's picture."""
    if not picture.can_draw():
        pytest.skip("needs the front end: make front-end")
    with fs.onnx.load(model) as loaded:
        source = fs.to_graphviz(loaded.graph, **options).source
    return [
        found.replace("\\n", "; ") for found in re.findall(r'\[.*label="([^"]*)".*tooltip', source)
    ]


def test_a_transformer_without_names_is_a_stack_of_its_layers() -> None:
    told = labels(transformer(is_named=False), open_scopes=[])
    assert any(label.startswith("attention") for label in told)
    assert any(label.startswith("Dense 64 → 1000") for label in told)
    assert len(told) <= 8


def test_modules_in_names_are_scopes() -> None:
    told = labels(
        transformer(), open_scopes=["encoder", "encoder/layers_3", "encoder/layers_3/attention"]
    )
    assert any(label.startswith("query; Dense 64 → 64") for label in told)
    assert not [label for label in told if "Const" in label and "weight" in label]


@pytest.mark.parametrize("is_named", [True, False])
def test_a_residual_network_has_few_boxes_and_no_constants_beside_them(is_named: bool) -> None:
    told = labels(residual_network(is_named=is_named), open_scopes=[])
    assert len(told) <= 40
    assert len([label for label in told if "Const" in label]) <= 12
    if not is_named:
        assert any(re.match(r"Conv 7×7, 16; batch norm, relu", label) for label in told)
        assert any(label.startswith("Conv2D + Relu; 205") for label in told)  # five blocks


def test_the_flops_of_products_and_convolutions_are_told(graph: fs.Graph) -> None:
    x = fs.placeholder(fs.float32, [None, 6], name="x")
    y = fs.matmul(x, fs.ones([6, 5]), name="y")
    fs.nn.conv2d(fs.ones([2, 4, 4, 3]), fs.ones([3, 3, 3, 7]), 1, "SAME", name="c")
    fs.tanh(y, name="z")
    added = LiveChannel(graph).snapshot(0.0).graph.added
    found = {node.name: node.flops for node in added}
    assert (found["y"], found["z"]) == (2 * 6 * 5, 0)
    assert found["c"] == 2 * (2 * 4 * 4 * 7) * (3 * 3 * 3)
    assert {n.name: n.flops for n in nodes_of(*columns_of(added))} == found


@pytest.fixture
def write_model(tmp_path: Path) -> Callable[[], Path]:
    def write() -> Path:
        onnx.save(transformer(2, 16), tmp_path / "small.onnx")
        return tmp_path / "small.onnx"

    return write


def test_a_model_is_read_by_what_its_file_is(
    write_model: Callable[[], Path], tmp_path: Path, root: Path
) -> None:
    from flowscope.live.watchers.model_files import read_model

    names = {op.name for op in read_model(write_model()).get_operations()}
    assert "encoder/layers_1/attention/scores" in names
    with fs.Graph().as_default() as graph:
        fs.constant(1.0, name="alone")
    fs.train.write_graph(graph, tmp_path, "own.json", as_text=False)
    assert [op.name for op in read_model(tmp_path / "own.json").get_operations()] == ["alone"]
    saved = root / "tests" / "tensorflow" / "data" / "saved_1"
    for path in (saved, saved / "saved_model.pb"):
        assert len(read_model(path).get_operations()) > 3
    with pytest.raises(fs.errors.NotFoundError, match="there is no file"):
        read_model(tmp_path / "none.onnx")
    with pytest.raises(fs.errors.NotFoundError, match="no saved model"):
        read_model(tmp_path)


def test_the_command_line_writes_a_page_or_one_line(
    write_model: Callable[[], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch, root: Path,
) -> None:  # fmt: skip
    from flowscope.__main__ import main

    if not (root / "widgets/flowscope_widgets/static/page.js").is_file():
        pytest.skip("needs the front end: make front-end")
    monkeypatch.setattr("webbrowser.open", lambda _: pytest.fail("nobody sits here"))
    monkeypatch.chdir(tmp_path)
    assert main([str(write_model())]) == 0
    assert capsys.readouterr().out == "small.html\n"
    assert "<h1>small.onnx</h1>" in (tmp_path / "small.html").read_text("utf-8")
    assert main(["-o", "other.html", "small.onnx"]) == 0
    assert (tmp_path / "other.html").is_file()
    capsys.readouterr()
    (tmp_path / "cut.onnx").write_bytes((tmp_path / "small.onnx").read_bytes()[:500])
    for name in ("none.onnx", "cut.onnx", "."):
        assert main([name, "-o", "no.html"]) == 1
        told = capsys.readouterr().err
        assert told.startswith(f"{name}: ")
        assert told.count("\n") == 1
    assert not (tmp_path / "no.html").exists()
    assert main(["small.onnx", "-o"]) == 2


def test_a_terminal_with_a_display_opens_the_page(
    write_model: Callable[[], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    from flowscope.__main__ import main

    if not (root / "widgets/flowscope_widgets/static/page.js").is_file():
        pytest.skip("needs the front end: make front-end")
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.chdir(tmp_path)
    assert main([str(write_model())]) == 0
    assert opened == [(tmp_path / "small.html").as_uri()]
