"""Messages as bytes, and back."""

from __future__ import annotations

import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import InvalidArgumentError
from flowscope.graph.messages.event_messages import HistogramProto, SessionLog, Summary
from flowscope.graph.messages.protobuf import INT, fields, varint


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, "00"), (1, "01"), (127, "7f"), (128, "8001"), (300, "ac02"), (-1, "ff" * 9 + "01")],
)
def test_varints(value: int, expected: str) -> None:
    """The examples of the encoding's specification."""
    assert varint(value).hex() == expected
    ((_, _, found),) = fields(b"\x08" + varint(value))
    assert INT.decode(found) == value


def test_messages_come_back() -> None:
    event = fs.Event(wall_time=1.5, step=-3, summary=Summary())
    event.summary.value.add(tag="a", simple_value=0.0)
    event.summary.value.add(tag="h", histo=HistogramProto(min=-1, bucket=[1, 2, 0]))
    event.summary.value.add(tag="t", tensor=fs.make_tensor_proto(np.eye(2)))
    event.summary.value.add(tag="s", tensor=fs.make_tensor_proto(["x", "\u00e9"]))
    found = fs.Event.FromString(event.SerializeToString())
    assert found.SerializeToString() == event.SerializeToString()
    assert found.WhichOneof("what") == "summary"
    assert (found.wall_time, found.step) == (1.5, -3)
    assert [v.WhichOneof("value") for v in found.summary.value] == [
        "simple_value", "histo", "tensor", "tensor",
    ]  # fmt: skip
    assert found.summary.value[1].histo == event.summary.value[1].histo
    np.testing.assert_array_equal(fs.make_ndarray(found.summary.value[2].tensor), np.eye(2))
    assert fs.make_ndarray(found.summary.value[3].tensor).tolist() == [b"x", "\u00e9".encode()]


def test_defaults_are_left_out() -> None:
    assert SessionLog().SerializeToString() == b""
    assert SessionLog(status=SessionLog.START).SerializeToString() == b"\x08\x01"
    assert Summary.FromString(b"") == Summary()


@pytest.mark.parametrize(
    "data", [b"\x0a\x05a", b"\xff", b"\x0f", b"\x0a\x03\x15\x00\x00", b"\x08\x01"]
)
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidArgumentError, match="expected a serialized message"):
        Summary.FromString(data)
