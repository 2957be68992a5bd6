"""Summary ops: tags, collections, modes, control flow, pictures, errors."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from PIL import Image

import flowscope as fs
from flowscope.errors import DTypeError, InvalidArgumentError

MODES = ("compiled", "op", "tokens")


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with fs.Graph().as_default():
        yield


def run(t: Any, feeds: Any = None, mode: str = "compiled") -> Any:
    with fs.Session(config=fs.ConfigProto(mode=mode)) as session:
        return session.run(t, feeds)


def values(summary: bytes) -> dict[str, Any]:
    return {v.tag: v for v in fs.Summary.FromString(summary).value}


def test_tags_are_names_with_scope_and_family() -> None:
    with fs.name_scope("sc"):
        found = [
            fs.summary.scalar("a", 1.5),
            fs.summary.scalar("a", 2.0),
            fs.summary.scalar("b c!", 2.0, family="fam"),
            fs.summary.image("i", np.zeros((2, 1, 1, 1), np.float32), family="f g"),
        ]
    assert [t.op.name for t in found] == ["sc/a", "sc/a_1", "sc/fam/b_c_", "sc/f_g/i"]
    merged = fs.summary.merge_all()
    assert merged is not None
    assert merged.shape == () and merged.dtype is fs.string
    assert list(values(run(merged))) == [
        "sc/a", "sc/a_1", "fam/sc/fam/b_c_", "f_g/sc/f_g/i/image/0", "f_g/sc/f_g/i/image/1",
    ]  # fmt: skip


def test_collections() -> None:
    assert fs.summary.merge_all() is None
    a = fs.summary.scalar("a", 1.0)
    b = fs.summary.scalar("b", 2.0, collections=["mine", "other"])
    with fs.name_scope("deep"):
        c = fs.summary.text("c", "text")
    assert fs.get_collection(fs.GraphKeys.SUMMARIES) == [a, c]
    assert fs.get_collection("mine") == fs.get_collection("other") == [b]
    assert list(values(run(fs.summary.merge_all("mine")))) == ["b"]
    assert list(values(run(fs.summary.merge_all(scope="deep/")))) == ["deep/c"]
    merged = fs.summary.merge([a, b], ["mine"], name="m")
    assert merged.op.name == "m/m"
    assert fs.get_collection("mine") == [b, merged]


#: SHA-256 of what TensorFlow 2.21 gives for these numbers.
HISTOGRAMS = {
    1: "4c22fa38593eeb9eee133c2dd17ad8c59d4b2d7c384e55a4367ca696e2ed2f2f",
    20: "e5a071386227c7d66f02c7bd7a998e84fa7753b867d0465a0e619bca53068e8f",
}


@pytest.mark.parametrize("mode", MODES)
def test_histograms_have_tensorflows_bytes(mode: str) -> None:
    rng = np.random.default_rng(5)
    x = fs.placeholder(fs.float64, [None])
    summary = fs.summary.histogram("h", x)
    for power, expected in HISTOGRAMS.items():
        numbers = np.round(rng.standard_normal(500) * 1000)
        numbers *= 10.0 ** (power * np.round(rng.standard_normal(500)))
        assert hashlib.sha256(run(summary, {x: numbers}, mode)).hexdigest() == expected


@pytest.mark.parametrize("mode", MODES)
def test_branches_and_loops_give_summaries(mode: str) -> None:
    p = fs.placeholder(fs.bool, [])
    branch = fs.cond(p, lambda: fs.summary.scalar("yes", 1.0), lambda: fs.constant(b""))
    _, last = fs.while_loop(
        lambda i, s: i < 3,
        lambda i, s: (i + 1, fs.summary.scalar("step", i, collections=[])),
        [fs.constant(0), fs.constant(b"")],
    )
    merged = fs.summary.merge([branch, last])
    yes, no = (values(run(merged, {p: which}, mode)) for which in (True, False))
    assert {t: v.simple_value for t, v in yes.items()} == {
        "cond/then/yes": 1.0,
        "while/body/step": 2.0,
    }
    assert list(no) == ["while/body/step"]


def test_a_summary_inside_of_a_loop_cannot_be_merged_outside() -> None:
    def body(i: Any) -> Any:
        fs.summary.scalar("inside", i)
        return i + 1

    fs.while_loop(lambda i: i < 3, body, [fs.constant(0)])
    with pytest.raises(ValueError, match="inside"):
        fs.summary.merge_all()


def pictures(array: Any, **options: Any) -> list[Any]:
    found = values(run(fs.summary.image("im", fs.constant(array), **options))).values()
    return [np.asarray(Image.open(io.BytesIO(v.image.encoded_image_string))) for v in found]


@pytest.mark.parametrize(
    ("pixels", "expected"),
    [
        ([[-1.0], [2.0], [0.5], [np.nan]], [64, 255, 159, 255]),
        ([[0.1], [2.0], [0.5], [np.inf]], [12, 255, 63, 255]),
        ([[0.0], [0.0]], [0, 0]),
        ([[9e-7], [1e-7]], [0, 0]),
        ([[1e-6], [5e-7]], [255, 127]),
        ([[-1e-7], [1e-7]], [128, 128]),
        ([[-4.0, 1, 2], [0, 0, 0]], [[1, 159, 191], [128, 128, 128]]),
        ([[np.nan] * 4, [1, 2, 3, 4]], [[255, 0, 0, 255], [63, 127, 191, 255]]),
    ],
)
def test_images_are_scaled_as_tensorflow_does(pixels: Any, expected: Any) -> None:
    (found,) = pictures(np.array([[pixels]], np.float32), max_outputs=1)
    assert found.tolist() == [expected]


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_images_are_png_files(channels: int) -> None:
    batch = np.random.default_rng(0).integers(0, 256, (5, 7, 3, channels), np.uint8)
    found = pictures(batch, max_outputs=4)
    assert len(found) == 4
    for one, picture in zip(batch, found, strict=False):
        np.testing.assert_array_equal(picture.reshape(one.shape), one)


def test_a_graph_with_summaries_is_read_back() -> None:
    fs.summary.tensor_summary("t", [1.0, 2.0], "\u00e9")
    fs.summary.text("u", "a")
    before = run(fs.summary.merge_all())
    definition = fs.get_default_graph().as_graph_def()
    with fs.Graph().as_default() as graph:
        fs.import_graph_def(fs.GraphDef.FromString(definition.SerializeToString()), name="")
        assert run(graph.get_tensor_by_name("Merge/MergeSummary:0")) == before


def test_summaries_have_no_gradient() -> None:
    x = fs.constant(1.0)
    assert fs.gradients(fs.string_to_number(fs.summary.scalar("a", x)), [x]) == [None]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: fs.summary.scalar("a", "b"), DTypeError, "got string"),
        (lambda: fs.summary.scalar("a", True), DTypeError, "got bool"),
        (lambda: fs.summary.scalar("a", [1.0]), InvalidArgumentError, "expected a scalar"),
        (lambda: fs.summary.scalar("", 1.0), InvalidArgumentError, "expected a name"),
        (lambda: fs.summary.histogram("a", [1j]), DTypeError, "got complex"),
        (lambda: fs.summary.text("a", 1), DTypeError, "expected strings"),
        (lambda: fs.summary.image("a", fs.zeros([2, 2, 1])), InvalidArgumentError, "batch"),
        (lambda: fs.summary.image("a", fs.zeros([1, 2, 2, 2])), InvalidArgumentError, "channels"),
        (lambda: fs.summary.image("a", fs.zeros([1, 1, 1, 1], "int32")), DTypeError, "images of"),
        (lambda: fs.summary.image("a", [[[[1.0]]]], 0), InvalidArgumentError, "max_outputs"),
        (lambda: fs.summary.merge([]), InvalidArgumentError, "expected at least one summary"),
        (lambda: fs.summary.merge([1]), DTypeError, "expected strings"),
    ],
)
def test_bad_input_is_told_where_it_stands(make: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("mode", MODES)
def test_bad_values_are_told_when_they_come(mode: str) -> None:
    x = fs.placeholder(fs.float32)
    a = fs.summary.scalar("a", x)
    for summary, value, message in [
        (a, [1.0], "expected a scalar"),
        (fs.summary.histogram("h", x), [1.0, np.nan], "finite values for the histogram 'h'"),
        (fs.summary.image("i", x), np.zeros((1, 0, 1, 1)), "with pixels"),
        (fs.summary.image("i", x), np.zeros((1, 1, 1, 2)), "channels"),
        (fs.summary.merge([a, a]), 1.0, "the tag 'a' twice"),
        (fs.summary.merge([fs.constant(b"\xff")]), 1.0, "serialized"),
    ]:
        with pytest.raises(InvalidArgumentError, match=message):
            run(summary, {x: value}, mode)
