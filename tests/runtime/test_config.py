"""Options of sessions and runs: each field does what it says or is refused."""

from __future__ import annotations

from typing import Any

import pytest

import flowscope as fs
from flowscope.graph.messages.message import Message
from flowscope.graph.unsupported import REFUSED, refuse
from flowscope.runtime import config as options

MESSAGES = [
    fs.ConfigProto,
    fs.GPUOptions,
    fs.GraphOptions,
    fs.OptimizerOptions,
    fs.RewriterConfig,
    fs.RunOptions,
]


@pytest.mark.parametrize("kind", MESSAGES)
def test_a_mistyped_field_is_an_error(kind: type[Message]) -> None:
    with pytest.raises(ValueError, match="has no field 'no_such_field'; it has "):
        kind(no_such_field=1)
    with pytest.raises(AttributeError, match="has no field 'no_such_field'"):
        kind().no_such_field = 1  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("device_count", 3),
        ("intra_op_parallelism_threads", "a"),
        ("intra_op_parallelism_threads", 1.5),
        ("allow_soft_placement", "x"),
        ("graph_options", 3),
        ("gpu_options", fs.RunOptions()),
    ],
)
def test_a_field_has_one_type(field: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"expected ConfigProto.{field} of type"):
        fs.ConfigProto(**{field: value})


@pytest.mark.parametrize("kind", MESSAGES)
def test_what_is_refused_says_what_to_do(kind: type[Message]) -> None:
    for field, refused in REFUSED.get(kind.__name__, {}).items():
        default = getattr(kind(), field)
        setattr(kind(), field, default)
        wished = {str: "x", list: ["x"], bool: True, float: 0.5}.get(type(default), 77)
        with pytest.raises(NotImplementedError) as caught:
            setattr(kind(), field, wished)
        assert f"{kind.__name__}: {field}={wished!r} is not supported" in str(caught.value)
        assert refused.instead in str(caught.value)


@pytest.mark.parametrize("kind", MESSAGES)
def test_each_field_is_described(kind: type[Message]) -> None:
    text = kind.__doc__ or ""
    named = {f for f in kind._defaults if f in text}
    assert named == set(kind._defaults) or kind is fs.RewriterConfig


def test_messages_are_compared_copied_and_shown() -> None:
    config = fs.ConfigProto(device_count={"CPU": 2}, allow_soft_placement=True)
    config.graph_options.optimizer_options.opt_level = fs.OptimizerOptions.L0
    assert fs.ConfigProto().graph_options.optimizer_options.opt_level == 0
    same = fs.ConfigProto()
    same.CopyFrom(config)
    assert same == config != fs.ConfigProto()
    same.device_count["CPU"] = 3
    assert config.device_count == {"CPU": 2}
    assert config.HasField("graph_options") and not config.HasField("gpu_options")
    assert "opt_level: -1" in repr(config) and "allow_soft_placement: true" in repr(config)
    assert repr(fs.ConfigProto()) == ""
    config.ClearField("device_count")
    assert [name for name, _ in config.ListFields()] == ["allow_soft_placement", "graph_options"]
    config.Clear()
    assert config == fs.ConfigProto()
    with pytest.raises(TypeError, match="expected a ConfigProto"):
        config.MergeFrom(fs.RunOptions())  # type: ignore[arg-type]
    for call in (config.HasField, config.ClearField):
        with pytest.raises(ValueError, match="has no field"):
            call("foo")


def planned(**fields: Any) -> str:
    """Returns the program of (a + b) * (a + b) with c = 2 * 3, under optimizer options."""
    config = fs.ConfigProto()
    config.graph_options.optimizer_options.MergeFrom(fs.OptimizerOptions(**fields))
    a, b = fs.placeholder(fs.float32, []), fs.placeholder(fs.float32, [])
    y = (a + b) * (a + b) * (fs.constant(2.0) * fs.constant(3.0))
    with fs.Session(config=config) as sess:
        assert sess.run(y, {a: 1.0, b: 2.0}) == 54.0
        return sess.plan(y, [a, b]).text()


def test_optimizer_options_do_what_they_say(graph: Any) -> None:
    level = fs.OptimizerOptions.L0
    counts = {
        (merges, folds): [
            planned(
                opt_level=level,
                do_common_subexpression_elimination=merges,
                do_constant_folding=folds,
            ).count(f" = {op}(")
            for op in ("Add", "Mul")
        ]
        for merges in (False, True)
        for folds in (False, True)
    }
    expected = {
        (False, False): [2, 3],
        (False, True): [2, 2],
        (True, False): [1, 3],
        (True, True): [1, 2],
    }
    assert counts == expected
    assert planned().count(" = Add(") == 1
    assert planned(opt_level=level, do_function_inlining=True).count(" = Add(") == 2


def test_a_traced_run_says_what_ran_where(graph: Any) -> None:
    x = fs.constant(1.0, name="x")
    y = fs.exp(x, name="y")
    meta = fs.RunMetadata()
    with fs.Session() as sess:
        sess.run(y, run_metadata=meta)
        assert not meta.HasField("step_stats")
        sess.run(y, options=fs.RunOptions(trace_level=fs.RunOptions.FULL_TRACE), run_metadata=meta)
        (device,) = meta.step_stats.dev_stats
        assert device.device == sess.list_devices()[0].name
    assert meta.HasField("step_stats")
    assert "y" in {n.node_name for n in device.node_stats} or len(device.node_stats) == 1
    assert "StepStats(total_ns=" in repr(meta) and repr(fs.RunMetadata()) == ""


def test_the_table_of_what_is_refused_is_sound() -> None:
    for owner, refused in REFUSED.items():
        for name, entry in refused.items():
            assert entry.instead and entry.taken, (owner, name)
            refuse(owner, **{name: entry.taken[0]})
    assert set(options.__all__) >= {kind.__name__ for kind in MESSAGES}
