"""`fs.show()` outside of a notebook: a text is made without all that views are told."""

import os
import subprocess
import sys

import pytest

import flowscope as fs
from flowscope.live.graphs.nodes import Described
from flowscope.live.graphs.text import text
from flowscope.live.protocol.schema import Node
from flowscope.live.watchers.bus import LiveChannel


def layers(n):
    x = fs.placeholder(fs.float32, [4], name="x")
    for i in range(n):
        with fs.name_scope(f"layer_{i}"):
            for _ in range(20):
                x = fs.nn.relu(x * 2.0 + 1.0)


def flat():
    x = fs.placeholder(fs.float32, [4], name="x")
    for i in range(80):
        x = (fs.exp, fs.tanh, fs.negative)[i % 3](x)


def structured():
    @fs.function
    def f(a):
        return a * a + 1.0

    x = fs.placeholder(fs.float32, [], name="x")
    y = fs.cond(x > 0, lambda: f(x), lambda: -x)
    z = fs.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, f(a)), [0, y])[1]
    v = fs.get_variable("v", initializer=1.0)
    fs.gradients(z * v, [x, v])
    with fs.control_dependencies([z]):
        fs.no_op(name="last")


def by_hand():
    from flowscope import raw_ops as raw

    start = raw.Enter(data=fs.constant(0), frame_name="count")
    i, _ = raw.Merge(inputs=[start, start])
    limit = raw.Enter(data=fs.constant(3), frame_name="count", is_constant=True)
    stop, go = raw.Switch(data=i, pred=raw.LoopCond(input=fs.less(i, limit)))
    one = raw.Enter(data=fs.constant(1), frame_name="count", is_constant=True)
    i.op._update_input(1, raw.NextIteration(data=go + one))
    raw.Exit(data=stop)


@pytest.mark.parametrize("build", [lambda: layers(12), flat, structured, by_hand])
def test_outlines_tell_what_nodes_tell(graph, build):
    build()
    described = LiveChannel(graph).describe().graph.added
    assert isinstance(described, Described)
    outlines = described.outlines()
    assert text(outlines) == text(described.nodes)
    for outline, node in zip(outlines, described.nodes, strict=True):
        fields = Node.__dataclass_fields__
        assert [getattr(outline, f) for f in fields] == [getattr(node, f) for f in fields]
    with pytest.raises(AttributeError, match="foo"):
        _ = outlines[0].foo


def test_show_prints_that_text(graph, capsys):
    structured()
    fs.show()
    assert capsys.readouterr().out == text(LiveChannel(graph).describe().graph.added) + "\n"


COUNTED = """
import contextlib, io
from work import calls_in
import flowscope as fs

x = fs.placeholder(fs.float32, [4], name="x")
for i in range(20):
    with fs.name_scope(f"layer_{i}"):
        for _ in range(20):
            x = fs.nn.relu(x * 2.0 + 1.0)
with contextlib.redirect_stdout(io.StringIO()):
    fs.show()
    calls, _ = calls_in(fs.show)
print(calls, len(fs.get_default_graph()))
"""


def test_a_text_takes_little_work(root, source_env):
    """In a process of its own: what other tests have loaded is called, too."""
    path = os.pathsep.join([source_env["PYTHONPATH"], str(root / "tests" / "helpers")])
    told = subprocess.run(
        [sys.executable, "-c", COUNTED], env=source_env | {"PYTHONPATH": path},
        capture_output=True, text=True, check=True, timeout=60,
    ).stdout  # fmt: skip
    calls, ops = map(int, told.split())
    assert ops > 2000
    assert calls < 32 * ops  # 127 where all is made, 41 where each is asked for bodies and frames
