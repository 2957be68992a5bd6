"""import_graph_def: scopes, replaced inputs, returned elements, devices, functions, failures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")


def written(text: str) -> fs.GraphDef:
    return fs.GraphDef.from_text(text)


PLUS = """\
a = Placeholder(dtype=float32, shape=[?])   float32[?]
c = Const(value=float32([1.0, 2.0]))   float32[2]
s/b = Add(a, c)   float32[2] after n on /device:CPU:0 with a
n = NoOp()   ()
"""


def names() -> list[str]:
    return [op.name for op in fs.get_default_graph().get_operations()]


def test_what_is_added_lies_in_a_scope_of_its_own(sess: Any) -> None:
    assert fs.import_graph_def(written(PLUS)) is None
    assert names() == ["import/a", "import/c", "import/s/b", "import/n"]
    fs.import_graph_def(written(PLUS))
    assert names()[4:] == [f"import_1/{n}" for n in ("a", "c", "s/b", "n")]
    with fs.name_scope("out"):
        fs.import_graph_def(written(PLUS), name="in")
    assert names()[8:] == [f"out/in/{n}" for n in ("a", "c", "s/b", "n")]
    fs.import_graph_def(written("a = NoOp()"), name="in/")
    fs.import_graph_def(written("a = NoOp()"), name="in/")
    fs.import_graph_def(written("a = NoOp()"), name="")
    assert names()[12:] == ["in/a", "in/a_1", "a"]
    assert sess.run("import_1/s/b:0", {"import_1/a:0": [3.0, 4.0]}).tolist() == [4, 6]


def test_elements_are_returned_by_their_names_in_the_graph_def() -> None:
    a, b, n = fs.import_graph_def(written(PLUS), return_elements=["a:0", "s/b", "n"])
    assert (a.name, b.name, n.name) == ("import/a:0", "import/s/b", "import/n")
    assert b.inputs[0] is a and b.control_inputs == [n]
    assert b.colocation_groups() == [b"loc:@import/a"]
    assert fs.import_graph_def(written(PLUS), return_elements=[]) == []
    for wrong, message in (
        (["z"], "return_elements names z, and the graph that is imported has none of them"),
        (["a:3"], "return_elements names a:3"),
    ):
        with pytest.raises(ValueError, match=message):
            fs.import_graph_def(written(PLUS), return_elements=wrong)
    with pytest.raises(TypeError, match="return_elements to be a list of names"):
        fs.import_graph_def(written(PLUS), return_elements="a")


def test_inputs_are_replaced(sess: Any) -> None:
    x = fs.constant([5.0, 6.0, 7.0][:2], name="x")
    (b,) = fs.import_graph_def(written(PLUS), {"a": x, "^n": x.op}, ["s/b"])
    assert b.inputs[0] is x and b.control_inputs == [x.op]
    assert sess.run(b.outputs[0]).tolist() == [6, 8]
    (b,) = fs.import_graph_def(written(PLUS), {"a:0": [1.0, 1.0], "^n": x}, ["s/b"])
    assert b.inputs[0].name == "import_1/_inputs/Const:0" and b.control_inputs == [x.op]
    # What is not there can be replaced too: part of a graph can be imported.
    (y,) = fs.import_graph_def(written("y = Neg(z:1)   float32[2]"), {"z:1": x}, ["y:0"])
    assert sess.run(y).tolist() == [-5, -6]


def test_shapes_follow_the_inputs_that_are_put_in() -> None:
    text = "x = Placeholder(dtype=float32, shape=[2])   float32[2]\ny = Neg(x)   float32[2]\n"
    x = fs.placeholder(fs.float32, [3, 4])
    (y,) = fs.import_graph_def(written(text + "z = Exp(y)   float32[2]"), {"x": x}, ["y:0"])
    assert y.shape == [3, 4]
    assert fs.get_default_graph().get_tensor_by_name("import/z:0").shape == [3, 4]
    assert fs.get_default_graph().get_tensor_by_name("import/x:0").shape == [2]


def test_replacements_that_do_not_fit_are_refused() -> None:
    g = fs.get_default_graph()
    x, i = fs.constant([1.0]), fs.constant([1, 2])
    for wrong in ({"z:0": x}, {"z": x}, {"^z": x}):
        with pytest.raises(ValueError, match=r"input_map names \^?z(:0)?, and the graph"):
            fs.import_graph_def(written(PLUS), wrong)
    before = g.get_operations()
    with pytest.raises(TypeError, match="Add: expected both of one dtype, got int32 and float32"):
        fs.import_graph_def(written(PLUS), {"a": i})
    with pytest.raises(TypeError, match="input_map to be a dict"):
        fs.import_graph_def(written(PLUS), [x])
    with fs.Graph().as_default():
        other = fs.constant([1.0])
    with pytest.raises(ValueError, match="belongs to another graph"):
        fs.import_graph_def(written(PLUS), {"a": other})
    assert g.get_operations() == before
    fs.import_graph_def(written(PLUS), {"n": x})  # n has no output, but is there


def test_a_graph_def_that_does_not_hold_together_adds_nothing() -> None:
    for text in (
        "a = NoOp()\nb = Neg(z)", "a = NoOp()\nb = Foo()", "a = NoOp()\nb = NoOp(x=1)",
        "a = Const(value=int8(1))\nb = MatMul(a, a)", "a = NoOp()\nb = Neg(a)",
        "a = NoOp() after b\nb = NoOp() after a", "a = NoOp()\na = NoOp()",
    ):  # fmt: skip
        with pytest.raises(fs.OpError):
            fs.import_graph_def(written(text))
    assert names() == []
    with pytest.raises(TypeError, match="expected a GraphDef, got Graph: graph.as_graph_def"):
        fs.import_graph_def(fs.Graph())  # type: ignore[arg-type]
    fs.get_default_graph().finalize()
    with pytest.raises(RuntimeError, match="finalized"):
        fs.import_graph_def(written("a = NoOp()"))


def test_a_scope_without_operations_takes_no_name() -> None:
    with fs.name_scope("a"):
        pass
    a, again = [
        fs.import_graph_def(written("a = NoOp()"), return_elements=["a"], name="")[0] for _ in "ab"
    ]
    assert (a.name, again.name, fs.no_op("a").name) == ("a", "a_1", "a_2")


def test_devices_follow_colocation() -> None:
    written_def = written("a = NoOp()\nb = NoOp() with a")
    with fs.device(lambda op: f"/device:CPU:{op.name[-1] == 'a':d}"):
        ops = fs.import_graph_def(written_def, return_elements=["a", "b"])
    assert [op.device for op in ops] == ["/device:CPU:1"] * 2
    with pytest.raises(ValueError, match='"b" shares a device with "z"'):
        fs.import_graph_def(written("b = NoOp() with z"))


def test_the_scopes_around_hold_for_what_is_added() -> None:
    first = fs.no_op("first")
    with fs.device("/job:w/gpu:1"), fs.control_dependencies([first]):
        a, b = fs.import_graph_def(written(PLUS), return_elements=["a", "s/b"])
    assert a.device == "/job:w/device:GPU:1"
    assert b.device == a.device  # it shares the device of a
    assert a.control_inputs == [first]
    assert [c.name for c in b.control_inputs] == ["import/n"]  # it takes a, which waits for first
    with fs.device(lambda op: "/gpu:3" if op.type == "Const" else ""):
        a, c = fs.import_graph_def(written(PLUS), return_elements=["a", "c"])
    assert (a.device, c.device) == ("", "/device:GPU:3")


def test_nodes_may_stand_in_any_order(sess: Any) -> None:
    lines = "y = Neg(x)\nx = Exp(w)\nw = Const(value=float32(0.0))"
    (y,) = fs.import_graph_def(written(lines), name="", return_elements=["y:0"])
    assert sess.run(y) == -1


def test_an_imported_variable_is_a_variable_of_its_own(sess: Any) -> None:
    v = fs.Variable(1.0, name="v")
    graph_def = fs.get_default_graph().as_graph_def()
    set_two, read = fs.import_graph_def(graph_def, return_elements=["v/Assign", "v/read:0"])
    sess.run([v.initializer, set_two])
    sess.run(v.assign(5.0))
    assert sess.run([v, read]) == [5, 1]
    shared = next(n for n in graph_def.node if n.name == "v")
    shared.attr["shared_name"] = "ours"
    for _ in range(2):
        fs.import_graph_def(graph_def, name="again")
    sess.run("again/v/Assign")
    assert sess.run("again_1/v/read:0") == 1


def test_random_operations_draw_the_same_numbers() -> None:
    g = fs.get_default_graph()
    fs.set_random_seed(3)
    fs.random_normal([4], name="r")
    with fs.Graph().as_default() as h:
        fs.set_random_seed(3)
        fs.import_graph_def(g.as_graph_def(), name="deep/er")
    with fs.Session(graph=g) as one, fs.Session(graph=h) as two:
        np.testing.assert_array_equal(one.run("r:0"), two.run("deep/er/r:0"))


def test_origins_are_the_makers_or_else_the_import() -> None:
    with fs.Graph().as_default() as g:
        fs.no_op("a")
    made = g.get_operation_by_name("a").origin.place
    (a,) = fs.import_graph_def(g.as_graph_def(), return_elements=["a"])
    (b,) = fs.import_graph_def(written("b = NoOp()"), return_elements=["b"])
    assert a.origin.place == made
    assert b.origin.place is not None and b.origin.place.line > made.line


def test_updates_of_two_imports_are_two_groups() -> None:
    v = fs.Variable(1.0, name="v")
    fs.train.AdamOptimizer(name="Train").minimize(fs.square(v))
    graph_def = fs.get_default_graph().as_graph_def()
    with fs.Graph().as_default() as g:
        for _ in range(2):
            fs.import_graph_def(graph_def)
    groups = {getattr(op.definition, "group", "") for op in g.get_operations()} - {""}
    assert groups == {"import/Train", "import_1/Train"}


def test_operations_of_gradients_know_what_they_are_of() -> None:
    x = fs.constant([1.0, 2.0], name="x")
    fs.gradients(fs.exp(x, name="y"), x)
    g = fs.get_default_graph()
    found = {op.name: op.forward.name for op in g.get_operations() if op.forward}
    assert set(found.values()) == {"y"}
    again = fs.Graph.from_json(g.to_json())
    assert {op.name: op.forward.name for op in again.get_operations() if op.forward} == found
    fs.import_graph_def(g.as_graph_def(), name="in")
    of = {op.forward.name for op in g.get_operations() if op.forward and op.name[:3] == "in/"}
    assert of == {"in/y"}


def test_what_stands_in_a_cell_is_written_as_it_is_now(sess: Any) -> None:
    g = sess.graph

    def first(size: int) -> None:
        with g.cell("first"):
            fs.import_graph_def(written(PLUS), {"a": fs.constant([1.0] * size)}, name="m")

    def second() -> Any:
        with g.cell("second"):
            return fs.identity(g.get_tensor_by_name("m/s/b:0"), name="y")

    first(2)
    y = second()
    first(1)
    assert sess.run(y).tolist() == [2, 3]
    again = fs.Graph.from_json(g.to_json())
    assert [op.name for op in again.get_operations()] == [
        "Const", "m/a", "m/c", "m/s/b", "m/n", "y"
    ]  # fmt: skip
    assert again.text() == fs.Graph.from_text(g.text()).text() == g.text()
    with g.cell("first"):
        fs.no_op("other")
    assert g.text() == "other = NoOp()   ()\n"  # y is stale


FUNCTION = """\
function twice {
  twice/x = Parameter(spec=float32[2], index=0)   float32[2]
  twice/c = Parameter(spec=float32[], index=1)   float32[]
  twice/Mul = Mul(twice/x, twice/c)   float32[2]
  captures c
  returns twice/Mul
}
c = Const(value=float32(2.0))   float32[]
x = Const(value=float32([1.0, 2.0]))   float32[2]
y = Call(x, c, function=@twice)   float32[2]
"""


def test_functions_are_written_and_can_be_called_again(sess: Any) -> None:
    assert fs.Graph.from_text(FUNCTION).text() == FUNCTION
    g = fs.Graph.from_json(fs.Graph.from_text(FUNCTION).to_json())
    assert g.text() == FUNCTION
    (y,) = fs.import_graph_def(g.as_graph_def(), return_elements=["y:0"], name="in")
    again = fs.get_function("in/twice")
    (z,) = again(y)
    (slope,) = fs.gradients(z, y)
    assert [v.tolist() for v in sess.run([y, z, slope])] == [[2, 4], [4, 8], [2, 2]]


def test_functions_with_variables_and_gradients_come_back() -> None:
    g = fs.Graph()
    with g.as_default():
        v = fs.Variable(3.0, name="v")

        @fs.function
        def inner(x: Any) -> Any:
            return fs.exp(x) * v

        @fs.function
        def outer(x: Any) -> Any:
            return inner(x) + x, v.assign_add(1.0)

        x = fs.constant([1.0, 2.0], name="x")
        y, _ = outer(x)
        fs.identity(y, name="y")
        fs.identity(fs.gradients(y, x)[0], name="dx")
    assert g.as_graph_def().functions[0].name == "inner"
    for again in (fs.Graph.from_text(g.text()), fs.Graph.from_json(g.to_json())):
        assert again.as_graph_def() == g.as_graph_def()
        for one, two in zip(values(g), values(again), strict=True):
            np.testing.assert_array_equal(one, two)


def values(g: Any) -> Any:
    with fs.Session(graph=g) as sess:
        sess.run("v/Assign")
        return sess.run(["y:0", "dx:0"])


BAD_FUNCTIONS = {
    "function f {": "line 1, .*: expected '}' behind the operations of 'f', got the end",
    "function f { x": "line 1, .*: expected the end of the line, got 'x'",
    "function f {\n}\nfunction f {\n}": "there are two functions named 'f'",
    "x = Call(function=@f)": "the function 'f' does not exist",
    "function f {\n y = Call(function=@f)\n}": "the function 'f' does not exist, or calls itself",
    "function f {\n returns y\n}": "the function 'f' has no tensor 'y'",
    "function f {\n p = Parameter(spec=int8[], index=0)\n captures y\n}":
        "'f' captures 'y', which does not exist",
    "function f {\n captures y\n}\ny = NoOp()": "'f' captures more than it has parameters",
    "function f {\n a = NoOp()\n}\nb = NoOp() after a": "no operation is named 'a'",
    "x = NoOp()\nfunction f {\n x = NoOp()\n}": "there are two operations of this name",
    "x = Call(function=3)": "expected the attribute 'function' to be Function, got 3",
    "function f {\n}\nx = Const(value=@f, dtype=int8)":
        "expected the attribute 'value' to be Literal",
}  # fmt: skip


@pytest.mark.parametrize("text", BAD_FUNCTIONS)
def test_bad_functions_get_one_clear_error(text: str) -> None:
    with pytest.raises(fs.OpError, match=BAD_FUNCTIONS[text]):
        fs.Graph.from_text(text)
