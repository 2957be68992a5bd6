"""The message vectors that the front end's tests run are messages of the schema, both ways."""

import collections.abc
import dataclasses
import json
import pathlib
import types
import typing

import pytest

from flowscope.live.protocol import schema
from flowscope.live.watchers.wire import message_from, to_json

VECTORS = pathlib.Path(__file__).parents[2] / "labextension/tests/vectors/live.json"
STEPS = [
    pytest.param(step, id=f"{vector['name']}-{i}")
    for vector in json.loads(VECTORS.read_text("utf-8"))
    for i, step in enumerate(vector["steps"])
]
FROM_KERNEL = {"snapshot": schema.Snapshot, "delta": schema.Delta, "reply": schema.Reply}


def read(hint, value):
    """Returns a JSON value as what a field of this type holds; raises where it does not fit."""
    if dataclasses.is_dataclass(hint):
        hints = typing.get_type_hints(hint)
        assert set(value) == set(hints), f"{hint.__name__} has other fields"
        return hint(**{name: read(hints[name], value[name]) for name in hints})
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is types.UnionType:
        (inner,) = [a for a in args if a is not type(None)]
        return None if value is None else read(inner, value)
    if origin is collections.abc.Sequence:
        return tuple(read(args[0], v) for v in value)
    if origin is tuple and args[-1] is Ellipsis:
        return tuple(read(args[0], v) for v in value)
    if origin is tuple:
        return tuple(read(a, v) for a, v in zip(args, value, strict=True))
    if origin is typing.Literal:
        assert value in args
    return value


@pytest.mark.parametrize("step", STEPS)
def test_a_vector_is_of_the_schema(step):
    if "receive" in step:
        message = read(FROM_KERNEL[step["receive"]["kind"]], step["receive"])
        assert json.loads(json.dumps(to_json(message))) == step["receive"]
    for sent in step.get("sends", []):
        assert to_json(message_from(sent)) == sent
