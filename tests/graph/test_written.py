"""A graph as text and as JSON: both are read back, and bad ones get one clear error."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import flowscope as fs
from flowscope.graph import op as op_module


@pytest.fixture
def own_ops(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the test registers is forgotten."""
    monkeypatch.setattr(op_module, "_registry", dict(op_module._registry))


def small() -> Any:
    """A graph with a bit of everything."""
    g = fs.Graph()
    with g.as_default():
        fs.set_random_seed(7)
        x = fs.placeholder(fs.float32, [None, 2], name="x")
        w = fs.Variable([[1.0], [2.0]], name="w")
        y = fs.matmul(x, w, name="y")
        with fs.colocate_with(w.op), fs.control_dependencies([w.initializer]), fs.device("/gpu:1"):
            fs.split(y, [1, 1], name="parts")
        fs.identity(g.get_tensor_by_name("parts:1"), name="last")
        fs.constant("a b", name="word")
    return g


TEXT = """\
@seed 7
x = Placeholder(dtype=float32, shape=[?,2])   float32[?,2]
w/initial_value = Const(value=float32([[1.0], [2.0]]))   float32[2,1]
w = VarHandleOp(dtype=float32, shape=[2,1], container="", shared_name="w")   resource[]
w/Assign = AssignVariableOp(w, w/initial_value)   float32[2,1]
w/read = ReadVariableOp(w)   float32[2,1]
y = MatMul(x, w/read)   float32[?,1]
parts = Split(y, sizes=[1,1])   float32[1,1], float32[1,1] after w/Assign on /device:GPU:1 with w
last = Identity(parts:1)   float32[1,1]
word = Const(value=string(b'a b'))   string[]
"""


def test_the_text_reads_well_and_gives_the_graph_again() -> None:
    g = small()
    assert g.text() == TEXT
    again = fs.Graph.from_text(TEXT)
    assert again.text() == TEXT
    assert again.as_graph_def() == g.as_graph_def()
    assert again.seed == 7


def test_the_text_may_have_remarks_and_blank_lines() -> None:
    text = "# two numbers\n\n  a = Const(value=float32(1.0))   float32[]  \r\nb = Neg(a)"
    g = fs.Graph.from_text(text)
    assert [op.name for op in g.get_operations()] == ["a", "b"]
    assert g.get_tensor_by_name("b:0").shape == []


def test_json_gives_the_graph_again() -> None:
    g = small()
    written = g.to_json()
    again = fs.Graph.from_json(written)
    assert again.as_graph_def() == g.as_graph_def()
    assert again.to_json() == written
    assert again.seed == 7
    facts = json.loads(written)
    assert (facts["format"], facts["version"]) == ("flowscope-graph", 1)


def test_json_keeps_the_users_lines_but_not_where_the_file_lay() -> None:
    g = small()
    op = fs.Graph.from_json(g.to_json()).get_operation_by_name("y")
    assert str(op.origin.place) == str(g.get_operation_by_name("y").origin.place)
    assert op.origin.place.filename == "test_written.py"
    assert op.origin.place.text == ""


def test_json_keeps_how_names_are_made() -> None:
    g = fs.Graph()
    with g.as_default():
        with fs.name_scope("s"):
            fs.constant(1.0)
        with fs.name_scope("empty"):
            pass
        fs.no_op("b/c")
    again = fs.Graph.from_json(g.to_json())
    for wished in ("s", "empty", "Const", "s/Const", "b"):
        assert again.unique_name(wished) == g.unique_name(wished)


def test_names_after_a_text_are_new_ones() -> None:
    g = fs.Graph.from_text("s/a = NoOp()   ()")
    with g.as_default(), fs.name_scope("s"):
        assert fs.no_op("a").name == "s_1/a"


ARRAYS = {
    "float32(0.1)": np.float32(0.1),
    "float32([inf, -inf, nan])": np.array([np.inf, -np.inf, np.nan], "f4"),
    "float64([-0.0, 1e-300])": np.array([-0.0, 1e-300]),
    "float16([0.1, 6.55e+04])": np.array([0.1, 65504], "f2"),
    "int8([[1, -2]])": np.array([[1, -2]], "i1"),
    "uint64(18446744073709551615)": np.uint64(2**64 - 1),
    "bool([True, False])": np.array([True, False]),
    "complex64([(1+2j), 1j, (nan-0j)])": np.array([1 + 2j, 1j, complex(np.nan, -0.0)], "c8"),
    "string([b'a\\n', b'\\xff\"'])": np.array([b"a\n", b'\xff"'], object),
    "float32([], shape=[0,3])": np.zeros((0, 3), "f4"),
    'float32(base64="AQDA/w==", shape=[])': np.array([0xFFC00001], "u4").view("f4")[0],
}


@pytest.mark.parametrize("text", ARRAYS)
def test_arrays_come_back_bit_by_bit(text: str) -> None:
    g = fs.Graph()
    with g.as_default():
        c = fs.constant(ARRAYS[text], name="c")
    line = g.text()
    assert line.startswith(f"c = Const(value={text})   ")
    for again in (fs.Graph.from_text(line), fs.Graph.from_json(g.to_json())):
        found = again.get_tensor_by_name("c:0").spec.constant
        assert type(found) is type(c.spec.constant)
        assert found.dtype == c.spec.constant.dtype
        if found.dtype == object:
            assert found.tolist() == c.spec.constant.tolist()
        else:
            assert found.tobytes() == c.spec.constant.tobytes()


def test_bfloat16_comes_back_bit_by_bit() -> None:
    g = fs.Graph()
    with g.as_default():
        c = fs.constant([1.0, 0.1, 3e38], fs.bfloat16, name="c")
    for again in (fs.Graph.from_text(g.text()), fs.Graph.from_json(g.to_json())):
        found = again.get_tensor_by_name("c:0")
        assert found.dtype is fs.bfloat16
        assert found.spec.constant.tobytes() == c.spec.constant.tobytes()


def test_large_arrays_are_left_out_unless_all_is_asked_for() -> None:
    g = fs.Graph()
    with g.as_default():
        fs.constant(np.arange(1000.0), name="c")
    assert g.text() == "c = Const(value=float64(..., shape=[1000]))   float64[1000]\n"
    with pytest.raises(ValueError, match="line 1, column .*: the values were left .* exact=True"):
        fs.Graph.from_text(g.text())
    exact = g.text(exact=True)
    again = fs.Graph.from_text(exact)
    np.testing.assert_array_equal(again.get_tensor_by_name("c:0").spec.constant, np.arange(1000.0))
    assert again.text(exact=True) == exact


NUMBERS: list[Any] = [
    1, 1.0, True, -0.0, float("nan"), 1e300, 2 + 3j, 2j, np.float32(0.1), np.int8(3), 2**70, None,
    "é\n\"'\u2028", "é", "\ud800", b"\xff'\"", fs.int8, -5, float("-inf"),
]  # fmt: skip


@pytest.mark.usefixtures("own_ops")
def test_users_ops_are_written_by_their_fields() -> None:
    @dataclass(frozen=True)
    class Mixed(fs.Op):
        """An op with attributes of many kinds."""

        number: Any
        nested: tuple[Any, ...] = ((1, None), ("a", b"b"), ())
        kind: fs.DType = fs.float32

        def infer(self) -> Any:
            return fs.Spec(self.kind, ())

    for number in NUMBERS:
        g = fs.Graph()
        g.add(Mixed(number), (), "m")
        g.add(Mixed(number, (("deep", (number,)),), fs.int32), (), "n")
        for again in (fs.Graph.from_text(g.text()), fs.Graph.from_json(g.to_json())):
            assert again.as_graph_def() == g.as_graph_def()
            assert again.text() == g.text()
        assert "nested" not in g.text().partition("\n")[0]


@pytest.mark.usefixtures("own_ops")
def test_an_attribute_that_cannot_be_written_is_named() -> None:
    @dataclass(frozen=True)
    class Holding(fs.Op):
        """An op with a function."""

        fn: Any = field(compare=False)

        def infer(self) -> Any:
            return ()

    g = fs.Graph()
    g.add(Holding(print), (), "bad")
    for write in (g.to_json, g.text):
        with pytest.raises(TypeError, match="Holding: attribute 'fn': a value of type builtin_fun"):
            write()
    with fs.Graph().as_default() as other:  # in this process it can be imported
        fs.import_graph_def(g.as_graph_def(), name="")
    assert other.get_operation_by_name("bad").get_attr("fn") is print


def test_a_shape_that_was_added_later_is_kept() -> None:
    g = fs.Graph()
    with g.as_default():
        x = fs.placeholder(fs.float32, name="x")
        fs.exp(x, name="y").set_shape([3])
        x.set_shape([None])
    for again in (fs.Graph.from_text(g.text()), fs.Graph.from_json(g.to_json())):
        assert again.get_tensor_by_name("x:0").shape.as_list() == [None]
        assert again.get_tensor_by_name("y:0").shape.as_list() == [3]


def test_control_inputs_may_point_forward() -> None:
    g = fs.Graph()
    with g.as_default():
        a, b = fs.no_op("a"), fs.no_op("b")
    a._add_control_input(b)
    assert g.text() == "a = NoOp()   () after b\nb = NoOp()   ()\n"
    for again in (fs.Graph.from_text(g.text()), fs.Graph.from_json(g.to_json())):
        assert again.text() == g.text()


def test_registered_gradients_are_kept() -> None:
    g = fs.Graph()
    with g.as_default():
        x = fs.constant(1.0, name="x")
        with g.gradient_override_map({"Exp": "Mine"}):
            fs.exp(x, name="y")
    assert g.text().endswith('y = Exp(x)   float32[] gradient "Mine"\n')
    for again in (fs.Graph.from_text(g.text()), fs.Graph.from_json(g.to_json())):
        assert again.get_operation_by_name("y").gradient == "Mine"


BAD_TEXTS = {
    "x": "line 1, column 2: expected '=', got the end of the line",
    "x = NoOp(": "line 1, column 10: expected an input or an attribute, got the end of the line",
    "a = NoOp()\nx = NoOp() ()\ny = Neg(a b)":
        "line 3, column 11: expected ',' or '\\)', got 'b\\)'",
    "x = Const(value=float32([1, [2]]))": "line 1, .*: expected rows of one length",
    "x = Const(value=float32(true))": "line 1, .*: expected a value or a dtype, got 'true'",
    "x = Const(value=int8([300]))": "line 1, .*: a value is beyond the range of int8",
    "x = Const(value=int8([1.5]))": "line 1, .*: expected values of int8, got others",
    "x = Const(value=int8([1], shape=[2]))": "line 1, .*: expected 2 values, got 1",
    'x = Const(value=int8(base64="AA=", shape=[1]))': "line 1, .*: expected base64",
    'x = Const(value=int8(base64="AAAA", shape=[1]))': "line 1, .*: expected 1 bytes .* got 3",
    "x = NoOp(a=1, b)": "line 1, .*: expected an attribute, for inputs stand before attributes",
    "x = NoOp(a=1, a=2)": "line 1, .*: the attribute 'a' is given twice",
    "x = NoOp() float33[]": "line 1, .*: expected a dtype, got 'float33'",
    "x = NoOp() float32[1,?,]": "line 1, .*: expected a shape like \\[\\?,2\\]",
    "x = NoOp() () before y": "line 1, .*: expected 'after', 'on', 'with', 'gradient' or the end",
    "x = NoOp(a=" + "[" * 9999: "line 1, .*: brackets are nested too deep",
    "@seed x": "line 1, .*: expected '@seed' and an integer",
    'x = PreventGradient(message="a)': "line 1, .*: expected a value",
    "x = Foo()\ny = Bar()": "no op types are named Bar, Foo: import the modules",
    "x = Neg(y)": "no operation is named 'y'",
    "x = NoOp() after y": "no operation is named 'y'",
    "x = NoOp()\ny = Neg(x)": '"x" has 0 outputs, there is no "x:0"(?s:.)*line 2 of the text',
    "x = NoOp()\nx = NoOp()": "there are two operations of this name",
    "x = Neg(y)\ny = Neg(x)": "operations wait for themselves: 'x', 'y'",
    "x = NoOp() after y\ny = NoOp() after x": "operations wait for themselves: 'x', 'y'",
    "x = NoOp(speed=3)": "there are no attributes speed; known: none",
    "x = Placeholder(dtype=float32)": "attributes are missing: shape",
    "x = Placeholder(dtype=3, shape=[])": "expected the attribute 'dtype' to be DType, got 3",
    "x = Placeholder(dtype=int8, shape=[1.5])": "expected the attribute 'shape' to be ",
    "x = Placeholder(dtype=int8, shape=[])  int16[]": "expected output 0 to be int8\\[\\]",
    "x = Placeholder(dtype=int8, shape=[2])  int8[3]": "and int8\\[3\\] is written",
    "x = NoOp() int8[]": "expected 0 outputs, got 1 in what is written",
    "x = Const(value=int8(1), dtype=int16)": "expected a value of int16\\[\\], got int8",
    "x = Const(value=int8(1))\ny = Const(value=int16(1))\nz = Add(x, y)":
        'Add: expected both of one dtype, got int8 and int16(?s:.)*input 1: int16\\[\\]   from "y"',
}  # fmt: skip


@pytest.mark.parametrize("text", BAD_TEXTS)
def test_a_bad_text_gets_one_clear_error(text: str) -> None:
    with pytest.raises(fs.OpError, match=BAD_TEXTS[text]):
        fs.Graph.from_text(text)


def changed(**facts: Any) -> str:
    """The JSON form of a graph of one operation, with other facts."""
    g = fs.Graph()
    with g.as_default():
        fs.constant([1.0, 2.0], name="c")
    document = json.loads(g.to_json())
    top = {k: v for k, v in facts.items() if k in document or k == "extra"}
    document["operations"][0].update({k: v for k, v in facts.items() if k not in top})
    return json.dumps(document | top)


def array(**facts: Any) -> Any:
    value = {"dtype": "float32", "shape": [2], "data": "AACAPwAAAEA="} | facts
    return {"value": {"array": value}, "dtype": {"dtype": "float32"}}


BAD_JSON = {
    "no JSON": "{",
    "is no JSON": "nonsense",
    "with \"format\": \"flowscope-graph\"": "[]",
    "\"flowscope-graph\" at its start": changed(format="other"),
    "version 2 of the JSON form, and this flowscope reads versions up to 1": changed(version=2),
    "expected a version number": changed(version="1"),
    "parts that are not known here: \\['extra'\\]": changed(extra=1),
    "parts that are not known here: \\['more'\\]": changed(more=1),
    "expected 'operations' to be a list": changed(operations={}),
    "operation 0 has no name": changed(name=3),
    "operation 'c': expected 'op' to be a str": changed(op=3),
    "operation 'c': expected 'inputs' to list names": changed(inputs=[3]),
    "expected an integer or null as the graph's seed": changed(seed="x"),
    "expected counts of names": changed(names={"a": "b"}),
    "expected a place": changed(places=[["f", "g", "h"]]),
    "its origin lists places that the graph does not have": changed(origin=[5]),
    "expected an output \\[dtype, shape\\]": changed(outputs=[3]),
    "expected a dtype's name, got 'float33'": changed(outputs=[["float33", []]]),
    "expected a list of sizes, got \\[-1\\]": changed(outputs=[["float32", [-1]]]),
    "attribute 'value': expected a value, got {'arrays'":
        changed(attributes={"value": {"arrays": 1}}),
    "attribute 'value': expected an array": changed(attributes=array(more=1)),
    "lists are nested too deep|it is no JSON":
        changed(attributes={"value": 0}).replace(": 0}", ": " + "[" * 3000 + "]" * 3000 + "}"),
    "expected 8 bytes for float32\\[2\\], got 2": changed(attributes=array(data="AAA=")),
    "expected base64, got '#'": changed(attributes=array(data="#")),
    "expected a list of sizes, got \\[2.0\\]": changed(attributes=array(shape=[2.0])),
    "expected bytes 0 and 1": changed(attributes=array(dtype="bool", data="AAI=")),
    "an array of resource is not written as bytes": changed(attributes=array(dtype="resource")),
    "a list of strings, got None": changed(attributes=array(dtype="string")),
    "no op types are named Foo": changed(op="Foo"),
    "no operation is named 'd'": changed(inputs=["d"]),
    "the inputs do not fit the op": changed(op="Neg", attributes={}),
    "'{}' is no device name|is no device name": changed(device="/nonsense"),
}  # fmt: skip


@pytest.mark.parametrize("message", BAD_JSON)
def test_bad_json_gets_one_clear_error(message: str) -> None:
    with pytest.raises(fs.OpError, match=message):
        fs.Graph.from_json(BAD_JSON[message])


def test_damaged_bytes_are_data_loss() -> None:
    whole = small().as_graph_def().SerializeToString()
    with pytest.raises(fs.errors.DataLossError):
        fs.GraphDef.FromString(whole[: len(whole) // 2])
    with pytest.raises(fs.errors.DataLossError):
        fs.GraphDef.FromString(b"\xff" + whole)


def test_a_graph_def_is_a_list_of_nodes() -> None:
    g = small()
    graph_def = g.as_graph_def()
    node = next(n for n in graph_def.node if n.name == "parts")
    assert (node.op, node.device) == ("Split", "/device:GPU:1")
    assert node.input == ["y", "^w/Assign"]
    assert node.attr["axis"] == 0 and node.attr["sizes"] == (1, 1)
    assert next(n for n in graph_def.node if n.name == "last").input == ["parts:1"]
    assert repr(graph_def) == "<fs.GraphDef: 9 operations of 8 types>"
    again = fs.GraphDef()
    assert again.ParseFromString(graph_def.SerializeToString()) > 0
    assert again == graph_def
    copy = fs.GraphDef()
    copy.CopyFrom(graph_def)
    copy.node[0].attr["shape"] = None
    assert copy != graph_def and again == graph_def
    with fs.Session(graph=g) as sess:
        assert sess.graph_def == graph_def


def test_files_hold_either_form(tmp_path: Any) -> None:
    g = small()
    with g.as_default():
        fs.constant(np.arange(99.0))
    for as_text in (True, False):
        path = fs.io.write_graph(g, tmp_path / "new", "graph", as_text)
        assert path == str(tmp_path / "new" / "graph")
        assert fs.io.read_graph(path) == g.as_graph_def()
        fs.train.write_graph(g.as_graph_def(), str(tmp_path), "g", as_text=as_text)
        assert fs.io.read_graph(tmp_path / "g") == g.as_graph_def()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["g", "new"]
    with pytest.raises(fs.errors.NotFoundError, match="there is no file"):
        fs.io.read_graph(tmp_path / "none")
    with pytest.raises(TypeError, match="expected a GraphDef, got int"):
        fs.io.write_graph(3, tmp_path, "g")


def test_reading_runs_nothing_from_the_file() -> None:
    evil = "__import__('os').system('false')"
    for text in (f"x = Const(value={evil})", f"x = {evil}", f"x = NoOp(a=[{evil}])"):
        with pytest.raises(ValueError, match="line 1"):
            fs.Graph.from_text(text)
