"""What a saved notebook keeps of a graph: all of it, in few characters, and nothing that runs."""

import json
import pathlib

import pytest
from packed_snapshots import nodes_of_packed, unpacked

import flowscope as fs
from flowscope.live.watchers.bus import LiveChannel
from flowscope_widgets import picture, saved
from flowscope_widgets.packing import packed

#: A packed snapshot that the front end's tests read.
VECTOR = pathlib.Path(__file__).parents[2] / "labextension/tests/vectors/packed.json"

pytestmark = pytest.mark.usefixtures("graph")


def unrolled_lstm(steps):
    """An LSTM that is unrolled, with gradients: fifty operations a step."""
    x = fs.placeholder(fs.float32, [steps, None, 64], name="x")
    labels = fs.placeholder(fs.int64, [None], name="labels")
    cell = fs.nn.rnn_cell.LSTMCell(64)
    outputs, _ = fs.nn.static_rnn(cell, fs.unstack(x), dtype=fs.float32)
    logits = fs.layers.dense(outputs[-1], 10)
    loss = fs.losses.sparse_softmax_cross_entropy(labels, logits)
    fs.train.AdamOptimizer().minimize(loss)


def test_what_is_packed_comes_back_whole(graph):
    unrolled_lstm(3)
    fs.while_loop(lambda i: i < 3, lambda i: i + 1, [0])
    snapshot = LiveChannel(graph).describe()
    assert list(nodes_of_packed(packed(snapshot)))[:40] == list(snapshot.graph.added)[:40]
    names = [node.name for node in nodes_of_packed(packed(snapshot))]
    assert names == [op.name for op in graph.get_operations()]


def test_the_vector_is_what_is_written(graph):
    vector = json.loads(VECTOR.read_text("utf-8"))
    x = fs.placeholder(fs.float32, [None, 3], name="x")
    fs.exp(x, name="layer/y")
    written, kept = unpacked(packed(LiveChannel(graph).describe())), unpacked(vector["packed"])
    assert written[0].keys() == kept[0].keys(), "write the vector anew"
    assert written[0]["graph"].keys() == kept[0]["graph"].keys()
    assert len(written[1]) == len(kept[1])
    assert [n.name for n in nodes_of_packed(vector["packed"])] == vector["names"]


@pytest.mark.slow
def test_fifteen_thousand_operations_stay_explorable_within_400_kb(graph):
    unrolled_lstm(304)
    assert 15_000 <= len(graph) < 15_500
    bundle = saved.saved_picture(LiveChannel(graph).describe())
    assert len(json.dumps(bundle)) <= 400_000
    assert len(nodes_of_packed(bundle[saved.MIME]["packed"])) == len(graph)


def test_what_would_be_too_large_is_left_out(graph, monkeypatch):
    monkeypatch.setattr(picture, "can_draw", lambda: False)
    for i in range(30):
        fs.constant(float(i), name=f"c{i}")
    snapshot = LiveChannel(graph).describe()
    assert saved.saved_picture(snapshot)[saved.MIME]["packed"]
    for name, limit in (("KEPT_CHARS", 100), ("KEPT_OPERATIONS", 29)):
        with monkeypatch.context() as patch:
            patch.setattr(saved, name, limit)
            assert saved.saved_picture(snapshot)[saved.MIME]["packed"] == ""
