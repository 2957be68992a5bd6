"""Operations as columns say what the same operations say as nodes."""

import base64
import json
import pathlib

from work import calls_in

import flowscope as fs
from flowscope.live.graphs.columns import columns_of, nodes_of
from flowscope.live.graphs.lowered import lowered_nodes
from flowscope.live.graphs.nodes import Described
from flowscope.live.watchers.bus import LiveChannel
from flowscope.live.watchers.wire import to_json, to_wire

VECTORS = pathlib.Path(__file__).parents[2] / "labextension/tests/vectors/columns.json"


def model():
    """A graph with all that views are told of operations."""
    x = fs.placeholder(fs.float32, [None, 2], name="x")
    text = fs.constant("a\0\u00e9\ud83d\ude00".encode("utf-8", "surrogatepass"), name="text")
    with fs.name_scope("layer"), fs.control_dependencies([text]):
        w = fs.get_variable("w", [2, 2])
        h = fs.tanh(fs.matmul(x, w))
    y = fs.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, fs.matmul(v, w)), [0, h])[1]
    z = fs.cond(y[0, 0] > 0.0, lambda: y, lambda: -y)
    g = fs.gradients(z, w)
    f = fs.function(lambda t: fs.exp(t))
    return fs.group(f(z), *g), x


def by_hand():
    """A loop of primitives."""
    enter = fs.raw_ops.Enter(data=fs.constant(0), frame_name="hand")
    merge = fs.raw_ops.Merge(inputs=[enter, enter]).output
    fs.raw_ops.Exit(data=merge)


def check(nodes):
    columns, buffer = columns_of(nodes)
    assert nodes_of(columns, buffer) == tuple(nodes)


def test_operations_by_columns_are_the_nodes(graph):
    target, x = model()
    with fs.Session() as sess:
        sess.run(fs.global_variables_initializer())
        sess.run(target, {x: [[1.0, 2.0]]})
        described = Described(graph.get_operations(), sess.placements)
        check(described)
        check(described.nodes)
        check(lowered_nodes(sess.latest_plan))
    check(())


def test_stale_operations_and_loops_by_hand_are_told_too(graph):
    with graph.cell("a"):
        x = fs.placeholder(fs.float32, [2], name="x")
    with graph.cell("b"):
        fs.exp(x)
    with graph.cell("a"):
        fs.placeholder(fs.int32, [3], name="x")
    check(Described(graph.get_operations(), {}))
    by_hand()
    check(Described(graph.get_operations(), {}))


def test_a_collective_tells_how_many_bytes_go_which_way(graph):
    places = [f"/job:worker/task:{i}" for i in range(2)]
    for length in (4, 1 << 20):
        fs.collectives.all_reduce([fs.zeros([length])] * 2, devices=places, name="sums")
    described = Described(graph.get_operations(), {})
    check(described)
    small, large = [n.attributes for n in described.nodes if n.type == "AllReduce"]
    assert small["reduction"] == large["reduction"] == "sum" and small["ranks"] == "2"
    assert small["algorithm"] == "exchange: each process folds all"
    assert large["algorithm"] == "reduce-scatter, then all-gather"
    assert small["bytes between processes"] == str(2 * 16)
    assert large["bytes between processes"] == str(2 * 4 << 20)


def test_a_message_travels_as_json_and_buffers(graph):
    model()
    snapshot = LiveChannel(graph).snapshot(0.0)
    told, buffers = to_wire(snapshot)
    whole = json.loads(json.dumps(to_json(snapshot)))
    told = json.loads(json.dumps(told))
    assert [told["graph"][name]["buffer"] for name in ("added", "changed")] == [0, 1]
    assert told["graph"]["added"]["rows"] == len(whole["graph"]["added"]) == len(graph)
    assert len(buffers) == 2
    assert {k: v for k, v in told.items() if k != "graph"} == {
        k: v for k, v in whole.items() if k != "graph"
    }


def vector():
    """The data of the front end's tests: columns as they travel, and the nodes they are."""
    with fs.Graph().as_default() as graph:
        model()
        by_hand()
    message, buffers = to_wire(LiveChannel(graph).snapshot(0.0))
    nodes = to_json(LiveChannel(graph).snapshot(0.0))["graph"]["added"]
    return {
        "columns": message["graph"]["added"],
        "buffer": base64.b64encode(buffers[0]).decode(),
        "nodes": nodes,
    }


def test_the_front_ends_vector_is_what_is_sent(monkeypatch):
    monkeypatch.setattr("flowscope.live.graphs.nodes.made_at", lambda op: None)
    monkeypatch.setattr("flowscope.live.graphs.columns.made_at", lambda op: None)
    found = json.dumps(vector(), indent=None, ensure_ascii=True)
    if not VECTORS.exists():
        VECTORS.write_text(found + "\n", "utf-8")
    assert json.loads(VECTORS.read_text("utf-8")) == json.loads(found)


def test_what_is_described_takes_little_work(graph):
    y = fs.placeholder(fs.float32, [4], name="x")
    for _ in range(300):
        y = y + 1.0
    calls, _ = calls_in(lambda: to_wire(LiveChannel(graph).snapshot(0.0)))
    assert calls < 100 * len(graph)
