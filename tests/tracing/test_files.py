"""Recordings in files, and in Chrome's trace format."""

import dataclasses
import json

import numpy as np
import pytest

import flowscope as fs
from flowscope.tracing import Timeline, chrome_trace, files, load, save


@dataclasses.dataclass(frozen=True)
class OldSpans:
    """Spans before version 3."""

    lane: object
    node: object
    frame: object
    iteration: object
    begin: object
    end: object


def _old_node(node):
    """A node before version 3, with bytes."""
    kinds = [*[(f.name, object) for f in dataclasses.fields(node)], ("nbytes", int)]
    return dataclasses.make_dataclass("OldNode", kinds)(**vars(node), nbytes=4 * len(node.name))


pytestmark = pytest.mark.usefixtures("graph")


@pytest.fixture
def profiled():
    x = fs.placeholder(fs.float32, [2], name="x")

    def body(i, v):
        return i + 1, fs.cond(i > 1, lambda: v * 2.0, lambda: fs.tanh(v))

    _, v = fs.while_loop(lambda i, v: i < 3, body, [0, x])
    with fs.Session() as sess, fs.profile(sess) as found:
        for _ in range(3):
            sess.run(v, {x: [1.0, 2.0]})
    return found


def test_a_file_brings_the_recording_back(profiled, tmp_path):
    path = tmp_path / "run.recording"
    profiled.save(path)
    found, told = load(path), profiled.recording
    for name in ("nodes", "lanes", "gaps", "traced_steps", "origin_us"):
        assert getattr(found, name) == getattr(told, name)
    for part in ("spans", "frames", "totals", "memory"):
        for name, column in vars(getattr(told, part)).items():
            read = getattr(getattr(found, part), name)
            assert read.dtype == column.dtype and (read == column).all()
    assert [s.split for s in found.steps] == [s.split for s in told.steps]
    paths = [[r.critical_path(s).tolist() for s in r.steps] for r in (found, told)]
    assert paths[0] == paths[1]
    assert any(n.op == "Loop" for n in fs.GraphDef.from_json(found.graph).node)


def test_what_is_no_recording_is_refused(profiled, tmp_path):
    path = tmp_path / "run.recording"
    with pytest.raises(fs.errors.NotFoundError):
        load(path)
    path.write_bytes(b"something else")
    with pytest.raises(fs.errors.InvalidArgumentError, match="expected a recording"):
        load(path)
    profiled.save(path)
    data = path.read_bytes()
    for at in (len(files.MAGIC) + 3, len(files.MAGIC) + 40, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:at] + bytes([data[at] ^ 64]) + data[at + 1 :])
        with pytest.raises(fs.errors.DataLossError, match="is damaged"):
            load(path)
    for size in (len(files.MAGIC), len(files.MAGIC) + 20, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:size])
        with pytest.raises(fs.errors.DataLossError, match="is damaged"):
            load(path)


@pytest.mark.parametrize("version", [0, 4, "2"])
def test_another_version_is_refused(profiled, tmp_path, monkeypatch, version):
    path = tmp_path / "run.recording"
    monkeypatch.setattr(files, "VERSION", version)
    save(profiled.recording, path)
    monkeypatch.undo()
    with pytest.raises(fs.errors.UnimplementedError, match=r"of version .* reads versions 1 to 3"):
        load(path)


def test_a_file_of_version_1_has_no_values(profiled, tmp_path, monkeypatch):
    path = tmp_path / "run.recording"
    monkeypatch.setattr(files, "VERSION", 1)
    save(profiled.recording, path)
    path.write_bytes(path.read_bytes())
    monkeypatch.undo()
    found = load(path)
    assert found.values == () and len(found.steps) == 3


def test_bytes_of_older_files_are_those_of_their_nodes(profiled, tmp_path, monkeypatch):
    path, told = tmp_path / "run.recording", profiled.recording
    spans = {n: c for n, c in vars(told.spans).items() if n != "nbytes"}
    lanes = [dataclasses.replace(lane, kind="transfer") for lane in told.lanes]
    monkeypatch.setattr(files, "VERSION", 2)
    monkeypatch.setattr(files, "_COLUMNS", files._COLUMNS | {"spans": OldSpans})
    old = dataclasses.replace(
        told, lanes=tuple(lanes), spans=OldSpans(**spans), nodes=tuple(map(_old_node, told.nodes))
    )
    save(old, path)
    monkeypatch.undo()
    found = load(path)
    assert found.nodes == told.nodes
    expected = [-1 if n < 0 else 4 * len(told.nodes[n].name) for n in told.spans.node]
    assert found.spans.nbytes.tolist() == expected


def check_rules(text):
    """Reads Chrome's trace format by its rules; returns the slices."""
    assert "<" not in text
    events = json.loads(text)["traceEvents"]
    assert all({"ph", "name", "pid"} <= e.keys() for e in events)
    names = {e["pid"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
    assert {e["pid"] for e in events} <= names
    slices = [e for e in events if e["ph"] == "X"]
    stacks = {}
    for e in slices:
        assert e["dur"] >= 0 and isinstance(e["ts"], float)
        stack = stacks.setdefault((e["pid"], e["tid"]), [])
        begin, end = round(e["ts"] * 1000), round(e["ts"] * 1000) + round(e["dur"] * 1000)
        while stack and stack[-1][1] <= begin:
            stack.pop()
        assert not stack or (stack[-1][0] <= begin and end <= stack[-1][1])
        stack.append((begin, end))
    return slices


def test_slices_nest_and_sums_are_those_of_the_recording(profiled, tmp_path):
    profiled.export_chrome_trace(tmp_path / "trace.json")
    slices = check_rules((tmp_path / "trace.json").read_text())
    recording = profiled.recording
    for i, node in enumerate(recording.nodes):
        own = [e for e in slices if e["name"] == node.name]
        assert len(own) == recording.totals.count[i]
        rows = np.flatnonzero(recording.spans.node == i)
        spans = recording.spans
        assert round(sum(e["dur"] for e in own) * 1000) == (spans.end - spans.begin)[rows].sum()
    assert len([e for e in slices if e["cat"] == "step"]) == 3
    tanh = [e["args"] for e in slices if e["cat"] == "Tanh"]
    assert [a["iteration"] for a in tanh] == [0, 1] * 3 and {a["frame"] for a in tanh} == {"while"}


def test_timelines_read_step_stats():
    x = fs.placeholder(fs.float32, [2, 2], name="x")
    y = fs.matmul(fs.exp(x, name="e"), x, name="m")
    metadata = fs.RunMetadata()
    options = fs.RunOptions(trace_level=fs.RunOptions.FULL_TRACE)
    with fs.Session() as sess:
        sess.run(y, {x: np.eye(2)}, options=options, run_metadata=metadata)
        name = sess.list_devices()[0].name
    (device,) = metadata.step_stats.dev_stats
    assert device.device == name
    e, m = device.node_stats
    assert (e.node_name, e.timeline_label) == ("e", "e = Exp(feed0)")
    assert m.timeline_label == "m = MatMul(e, feed0)"
    for one in device.node_stats:
        assert one.all_start_micros > 1_600_000_000_000_000
        assert 0 <= one.op_start_rel_micros <= one.op_end_rel_micros <= one.all_end_rel_micros
        (output,) = one.output
        assert [d.size for d in output.tensor_description.shape.dim] == [2, 2]
        assert output.tensor_description.allocation_description.requested_bytes == 16
        assert one.memory[0].total_bytes == 16 and one.thread_id == 0
    assert e.all_start_nanos + e.all_end_rel_nanos <= m.all_start_nanos
    text = Timeline(metadata.step_stats).generate_chrome_trace_format(show_memory=True)
    slices = check_rules(text)
    assert [s["name"] for s in slices] == ["Exp", "MatMul"] and slices[0]["args"]["bytes"] == 16
    assert text.count('"DataFlow"') == 2
    assert Timeline(metadata.step_stats).generate_chrome_trace_format(False).count("DataFlow") == 0


def test_names_are_escaped():
    with fs.Graph().as_default():
        fs.constant(1.0)
    recording = fs.tracing.Recorder().recording()
    assert "traceEvents" in json.loads(chrome_trace(recording))
    assert "\\u003c/script" in fs.tracing.chrome.written([{"name": "</script>"}])


def test_a_timeline_wants_step_stats():
    with pytest.raises(fs.errors.OpError, match="RunMetadata.step_stats"):
        Timeline(None)
