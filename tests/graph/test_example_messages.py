"""Examples as messages."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import DTypeError, InvalidArgumentError


def example() -> fs.train.Example:
    made = fs.train.Example()
    made.features.feature["x"].int64_list.value.append(3)
    made.features.feature["y"].float_list.value.extend([1.5, 2])
    made.features.feature["s"].bytes_list.value[:] = [b"ab", b""]
    return made


def test_bytes_are_those_of_the_format() -> None:
    assert example().SerializeToString() == (
        b"\n.\n\n\n\x01x\x12\x05\x1a\x03\n\x01\x03"
        b"\n\x11\n\x01y\x12\x0c\x12\n\n\x08\x00\x00\xc0?\x00\x00\x00@"
        b"\n\r\n\x01s\x12\x08\n\x06\n\x02ab\n\x00"
    )


def test_messages_come_back() -> None:
    feature = fs.train.Feature
    given = fs.train.Example(
        features=fs.train.Features(
            feature={
                "a": feature(int64_list=fs.train.Int64List(value=[1, -(2**63), 2**63 - 1])),
                "empty": feature(float_list=fs.train.FloatList()),
                "none": feature(),
                "\u00e9": feature(bytes_list=fs.train.BytesList(value=[b"\xff"])),
            }
        )
    )
    found = fs.train.Example.FromString(given.SerializeToString())
    assert found == given
    features = found.features.feature
    assert features["a"].int64_list.value == [1, -(2**63), 2**63 - 1]
    assert [features[n].WhichOneof("kind") for n in ("a", "empty", "none")] == [
        "int64_list", "float_list", None,
    ]  # fmt: skip
    parsed = fs.train.Example()
    assert parsed.ParseFromString(given.SerializeToString()) > 0
    assert parsed == given == copy.deepcopy(given) == pickle.loads(pickle.dumps(given))


def test_a_field_may_be_unpacked() -> None:
    loose = b"\x08\x01\x08\x02"  # two entries of field 1, a varint each
    assert fs.train.Int64List.FromString(loose).value == [1, 2]
    halves = np.array([0.5, 2], "<f4").tobytes()
    single = b"\x0d" + halves[:4] + b"\x0d" + halves[4:]
    assert fs.train.FloatList.FromString(single).value == [0.5, 2]


def test_a_sequence_has_a_context_and_steps() -> None:
    made = fs.train.SequenceExample()
    made.context.feature["id"].bytes_list.value.append(b"q")
    for i in range(3):
        made.feature_lists.feature_list["t"].feature.add().int64_list.value.append(i)
    found = fs.train.SequenceExample.FromString(made.SerializeToString())
    assert found == made
    steps = found.feature_lists.feature_list["t"].feature
    assert [f.int64_list.value for f in steps] == [[0], [1], [2]]
    assert found.context.feature["id"].bytes_list.value == [b"q"]


def test_setting_one_list_unsets_the_others() -> None:
    feature = fs.train.Feature(int64_list=fs.train.Int64List(value=[1]))
    feature.float_list = fs.train.FloatList(value=[2.0])
    assert feature.WhichOneof("kind") == "float_list"
    feature.MergeFrom(fs.train.Feature(float_list=fs.train.FloatList(value=[3.0])))
    assert feature.float_list.value == [2, 3]
    assert not feature.HasField("int64_list")
    feature.ClearField("float_list")
    assert feature.SerializeToString() == b""


@pytest.mark.parametrize(
    "make",
    [
        lambda: fs.train.Int64List(value=[1.5]),
        lambda: fs.train.Int64List(value=[2**63]),
        lambda: fs.train.BytesList(value=["text"]),
        lambda: fs.train.BytesList(value=b"ab"),
        lambda: fs.train.FloatList(value=["x"]),
        lambda: fs.train.Feature(bytes_list=[b"a"]),
        lambda: fs.train.Features(feature={"a": 1}),
    ],
)
def test_wrong_values_are_told(make) -> None:
    with pytest.raises(DTypeError, match="expected"):
        make()


@pytest.mark.parametrize("data", [b"\n\x7fab", b"\x0b", b"\n" + b"\xff" * 12, b"\n\x03\n\x09a"])
def test_hostile_bytes_are_told(data: bytes) -> None:
    with pytest.raises(InvalidArgumentError, match="serialized message"):
        fs.train.Example.FromString(data)
