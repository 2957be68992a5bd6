"""Graphs with variables and collections, in files; graph_util; what is left out is said."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pytest

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")


def model() -> Any:
    x = fs.placeholder(fs.float32, [None, 2], name="x")
    w = fs.Variable([[1.0], [2.0]], name="w")
    b = fs.Variable([0.0], name="b")
    fs.Variable(0, trainable=False, name="count")
    loss = fs.reduce_mean(fs.square(fs.matmul(x, w) + b), name="loss")
    fs.add_to_collection("losses", loss)
    fs.add_to_collection("train_op", fs.no_op("train"))
    fs.add_to_collection("numbers", 3.5)
    fs.add_to_collection("numbers", ("a", None))
    return loss


def trained(steps: int = 3) -> list[Any]:
    """The losses of a training of the default graph's variables."""
    (loss,) = fs.get_collection("losses")
    step = fs.train.GradientDescentOptimizer(0.1).minimize(loss)
    x = loss.graph.get_tensor_by_name(loss.name.replace("loss", "x"))
    with fs.Session() as sess:
        sess.run(fs.global_variables_initializer())
        return [sess.run([loss, step], {x: [[1.0, 2.0]]})[0] for _ in range(steps)]


def test_a_graph_comes_back_with_variables_that_train(tmp_path: Any) -> None:
    model()
    path = tmp_path / "model.meta"
    meta = fs.train.export_meta_graph(path)
    assert fs.train.read_meta_graph(path) == meta
    before = [[v.name for v in f()] for f in (fs.global_variables, fs.trainable_variables)]
    with fs.Graph().as_default() as g:
        fs.train.import_meta_graph(str(path))
        after = [[v.name for v in f()] for f in (fs.global_variables, fs.trainable_variables)]
        assert before == after == [["w:0", "b:0", "count:0"], ["w:0", "b:0"]]
        assert fs.trainable_variables()[0] is fs.global_variables()[0]
        assert fs.get_collection("numbers") == [3.5, ("a", None)]
        assert fs.get_collection("train_op") == [g.get_operation_by_name("train")]
        assert fs.get_collection("losses") == [g.get_tensor_by_name("loss:0")]
        losses = trained()
    np.testing.assert_array_equal(losses, trained())


def test_an_imported_variable_is_like_one_that_was_made(sess: Any) -> None:
    v = fs.Variable([1.0, 2.0], name="v", trainable=False)
    meta = fs.train.export_meta_graph()
    fs.train.import_meta_graph(meta, import_scope="again")
    w = fs.global_variables()[1]
    assert w.name == "again/v:0"
    assert vars(w).keys() == vars(v).keys()
    assert (w.trainable, w.dtype, w.shape) == (False, fs.float32, [2])
    sess.run(fs.global_variables_initializer())
    sess.run(w.assign_add([1.0, 1.0]))
    assert [a.tolist() for a in sess.run([v, w, w + 1.0])] == [[1, 2], [2, 3], [3, 4]]


def test_names_follow_an_import_scope() -> None:
    model()
    meta = fs.train.export_meta_graph()
    with fs.Graph().as_default():
        for scope in ("one", "two"):
            fs.train.import_meta_graph(meta, import_scope=scope)
        assert [v.name for v in fs.trainable_variables("two")] == ["two/w:0", "two/b:0"]
        assert [t.name for t in fs.get_collection("losses")] == ["one/loss:0", "two/loss:0"]


def test_parts_of_variables_come_back() -> None:
    with fs.variable_scope("s", partitioner=fs.fixed_size_partitioner(2)):
        fs.get_variable("p", [4, 2])
    infos = [v._save_slice_info for v in fs.global_variables()]
    meta = fs.train.export_meta_graph()
    with fs.Graph().as_default():
        fs.train.import_meta_graph(fs.MetaGraphDef.from_json(meta.to_json()), import_scope="in")
        again = [v._save_slice_info for v in fs.global_variables()]
    assert [i.spec for i in again] == [i.spec for i in infos]
    assert {i.full_name for i in again} == {"in/s/p"}


def test_slices_in_collections_come_back() -> None:
    slices = fs.IndexedSlices([[1.0]], [2], [4, 1])
    fs.add_to_collection("s", slices)
    fs.add_to_collection("s", fs.IndexedSlices([[1.0]], [2]))
    with fs.Graph().as_default():
        meta = fs.train.export_meta_graph(graph=slices.graph)
        fs.train.import_meta_graph(meta, import_scope="in")
        first, second = fs.get_collection("s")
        assert first.values.name == f"in/{slices.values.name}" and first.shape == [4, 1]
        assert second.dense_shape is None


def test_what_cannot_be_written_is_left_out_and_said() -> None:
    fs.add_to_collection("odd", object())
    fs.add_to_collection(("key",), 1)
    fs.Variable(1.0, name="v", constraint=lambda x: x)
    with pytest.warns(UserWarning, match='not written: .*constraint of "v".*'):
        meta = fs.train.export_meta_graph()
    assert [t.partition(":")[0] for t in meta.skipped] == [
        "collection 'odd'", "collection ('key',)", 'the constraint of "v"'
    ]  # fmt: skip
    with fs.Graph().as_default():
        fs.train.import_meta_graph(meta)
        assert fs.global_variables()[0].constraint is None


def test_collections_devices_and_scopes_can_be_chosen() -> None:
    with fs.name_scope("s"), fs.device("/gpu:0"):
        v = fs.Variable(1.0, name="v")
        fs.add_to_collection("odd", fs.square(v, name="y"))
    fs.add_to_collection("odd", fs.no_op("outside"))
    meta = fs.train.export_meta_graph(
        collection_list=["variables", "odd"], export_scope="s", clear_devices=True
    )
    assert {n.device for n in meta.graph_def.node} == {""}
    assert sorted(meta.collections) == ["odd", "variables"]
    with fs.Graph().as_default() as g:
        fs.train.import_meta_graph(meta)
        assert g.get_operation_by_name("v").get_attr("shared_name") == "v"
        assert [v.name for v in fs.global_variables()] == ["v:0"]
        assert [t.name for t in fs.get_collection("odd")] == ["y:0"]
    with fs.name_scope("t"):
        fs.exp(v, name="z")
    part = fs.train.export_meta_graph(export_scope="t")
    assert part.collections["unbound_inputs"] == [{"value": "$unbound_inputs_s/v/read"}]
    with fs.Graph().as_default(), fs.Session() as sess:
        with pytest.raises(ValueError, match="give them by input_map"):
            fs.train.import_meta_graph(part)
        fs.train.import_meta_graph(part, input_map={"$unbound_inputs_s/v/read": 0.0})
        assert sess.run("z:0") == 1
    kept = fs.train.export_meta_graph()
    with fs.Graph().as_default() as g:
        fs.train.import_meta_graph(kept, clear_devices=True)
        assert g.get_operation_by_name("s/v").device == ""
    assert kept.graph_def.node[0].device == "/device:GPU:0"


def test_a_meta_graph_is_also_a_graph(tmp_path: Any) -> None:
    model()
    fs.train.export_meta_graph(tmp_path / "m")
    graph_def = fs.get_default_graph().as_graph_def()
    assert fs.io.read_graph(tmp_path / "m") == graph_def
    fs.io.write_graph(graph_def, tmp_path, "g", as_text=False)
    assert fs.train.read_meta_graph(tmp_path / "g").collections == {}


def test_an_input_map_is_passed_on() -> None:
    model()
    meta = fs.train.export_meta_graph()
    with fs.Graph().as_default() as g:
        mine = fs.placeholder(fs.float32, [1, 2], name="mine")
        fs.train.import_meta_graph(meta, input_map={"x": mine})
        assert g.get_operation_by_name("MatMul").inputs[0] is mine


def bad(change: Any) -> str:
    model()
    document = json.loads(fs.train.export_meta_graph().to_json())
    change(document)
    return json.dumps(document)


BAD = {
    "objects of unknown kinds stand in collections: thing":
        lambda d: d["objects"][0].update(kind="thing"),
    "a variable's handle must name a Tensor, got None": lambda d: d["objects"][0].pop("handle"),
    "a variable's initializer must name a Operation":
        lambda d: d["objects"][0].update(initializer="w:0"),
    "expected a variable's handle, got 'x:0'": lambda d: d["objects"][0].update(handle="x:0"),
    "no operation is named 'z'": lambda d: d["objects"][0].update(snapshot="z:0"),
    "a variable's aggregation is one of": lambda d: d["objects"][0].update(aggregation="MOST"),
    "expected .name, slice. as a variable's part": lambda d: d["objects"][0].update(part=3),
    "collection 'losses': expected an entry":
        lambda d: d["collections"].update(losses=[{"object": 7}]),
    "objects and collections to be lists": lambda d: d["collections"].update(losses=3),
}  # fmt: skip


@pytest.mark.parametrize("message", BAD)
def test_bad_collections_get_one_clear_error(message: str) -> None:
    text = bad(BAD[message])
    with pytest.raises(fs.OpError, match=message), fs.Graph().as_default():
        fs.train.import_meta_graph(fs.MetaGraphDef.from_json(text))


def test_wrong_arguments_are_refused(tmp_path: Any) -> None:
    with pytest.raises(fs.errors.NotFoundError, match="there is no file"):
        fs.train.import_meta_graph(tmp_path / "none")
    with pytest.raises(TypeError, match="expected a MetaGraphDef or a file's path, got 3"):
        fs.train.import_meta_graph(3)
    with pytest.raises(TypeError, match="no arguments more"):
        fs.train.import_meta_graph(fs.MetaGraphDef(), more=1)


# -- graph_util -----------------------------------------------------------------------------------

util = fs.graph_util


def names(graph_def: fs.GraphDef) -> list[str]:
    return [n.name for n in graph_def.node]


def test_a_part_of_a_graph() -> None:
    graph_def = fs.GraphDef.from_text(
        "a = NoOp()\nb = NoOp() after a\nc = NoOp() after b\nd = NoOp()"
    )
    part = util.extract_sub_graph(graph_def, ["b", "d"])
    assert names(part) == ["a", "b", "d"]
    part.node[0].name = "changed"
    assert names(graph_def) == ["a", "b", "c", "d"]
    with pytest.raises(fs.errors.NotFoundError, match="no operation named z in the graph"):
        util.extract_sub_graph(graph_def, ["z"])
    with pytest.raises(TypeError, match="dest_nodes to be a list of names, got 'b'"):
        util.extract_sub_graph(graph_def, "b")


def test_functions_go_along_with_their_calls() -> None:
    @fs.function
    def f(x: Any) -> Any:
        return x * 2.0

    fs.identity(f(fs.constant(1.0)), name="y")
    fs.no_op("n")
    graph_def = fs.get_default_graph().as_graph_def()
    assert [f.name for f in util.extract_sub_graph(graph_def, ["y"]).functions] == ["f"]
    assert util.extract_sub_graph(graph_def, ["n"]).functions == []


def test_identities_are_passed_over() -> None:
    x = fs.constant(1.0, name="x")
    y = fs.identity(fs.stop_gradient(x), name="y")
    with fs.control_dependencies([x]):
        fs.identity(y, name="waits")
    with fs.control_dependencies([fs.identity(x, name="waited_for")]):
        fs.exp(y, name="z")
    fs.identity(x, name="kept")
    graph_def = fs.get_default_graph().as_graph_def()
    short = util.remove_training_nodes(graph_def, ["kept"])
    assert names(short) == ["x", "waits", "waited_for", "z", "kept"]
    assert short.node[3].input == ["x", "^waited_for"]


def test_variables_become_constants(sess: Any) -> None:
    x = fs.placeholder(fs.float32, [2], name="x")
    v = fs.Variable([1.0, 2.0], name="v")
    w = fs.Variable([5.0, 6.0], name="w")
    y = fs.identity(x * v + w, name="y")
    changed = v.assign([0.0, 0.0])
    sess.run(fs.global_variables_initializer())
    sess.run(w.assign([7.0, 8.0]))
    graph_def = sess.graph_def
    frozen = util.convert_variables_to_constants(sess, graph_def, ["y"])
    assert names(frozen) == ["x", "v", "v/read", "w", "w/read", "mul", "add", "y"]
    with fs.Graph().as_default() as g, fs.Session():
        (again,) = fs.import_graph_def(frozen, return_elements=["y:0"], name="")
        assert not any(op.definition.is_stateful for op in g.get_operations())
        feed = [1.0, 2.0]
        np.testing.assert_array_equal(again.eval({"x:0": feed}), sess.run(y, {x: feed}))
    only_v = util.convert_variables_to_constants(sess, graph_def, ["y"], ["v"])
    but_w = util.convert_variables_to_constants(sess, graph_def, ["y"], None, ["w"])
    assert only_v == but_w
    assert {n.name: n.op for n in only_v.node}["w"] == "VarHandleOp"
    with pytest.raises(fs.errors.FailedPreconditionError, match="does more to the variable"):
        util.convert_variables_to_constants(sess, graph_def, [changed.op.name])


# -- reprs ----------------------------------------------------------------------------------------


def test_reprs_say_what_one_wants_to_know() -> None:
    g = fs.get_default_graph()
    assert repr(g) == "<fs.Graph: 0 operations>"
    model()
    with fs.device("/gpu:1"):
        fs.no_op()
    start = model.__code__.co_firstlineno + 1
    shown = repr(g)
    assert shown.startswith(
        "<fs.Graph: 19 operations, 3 variables (3 parameters), on /device:GPU:1, "
        f"made in test_written_meta.py, lines {start} to "
    )
    w = fs.global_variables()[0]
    assert repr(w) == f"<fs.Variable 'w:0' float32[2,1], test_written_meta.py, line {start + 1}>"
    assert "not trainable" in repr(fs.global_variables()[2])
    sess = fs.Session()
    sess.run(w.initializer)
    assert repr(sess) == "<fs.Session: graph of 19 operations, on CPU:0, 1 step done, 1 plan>"
    sess.close()
    assert repr(sess).endswith("closed>")
    with warnings.catch_warnings():
        assert repr(fs.train.export_meta_graph()) == (
            "<fs.MetaGraphDef: 19 operations, 3 objects, "
            "collections: variables, trainable_variables, losses, train_op, numbers>"
        )


def test_a_graph_of_many_devices_and_unknown_sizes() -> None:
    for i in range(5):
        with fs.device(f"/gpu:{i}"):
            fs.Variable(fs.placeholder(fs.float32, None), validate_shape=False)
    shown = repr(fs.get_default_graph())
    assert "5 variables (at least 0 parameters)" in shown
    assert "on /device:GPU:0, /device:GPU:1, /device:GPU:2 and 2 more" in shown


def test_a_variable_goes_by_its_message() -> None:
    with fs.name_scope("s"):
        v = fs.Variable([1.0, 2.0], name="v", trainable=False)
    message = v.to_proto()
    assert message is not None
    assert (message.variable_name, message.initializer_name) == ("s/v:0", "s/v/Assign")
    same = fs.Variable.from_proto(message)
    assert same == v and not same.trainable and same.shape == [2]
    assert fs.Variable(variable_def=v.to_proto("s"), import_scope="s") == v
    assert v.to_proto("other") is None
    assert fs.global_variables() == [v]
    with fs.Session() as sess:
        sess.run(same.initializer)
        assert sess.run(v).tolist() == [1, 2]
    with pytest.raises(TypeError, match="expected a VariableDef"):
        fs.Variable(variable_def=5)
    with pytest.raises(ValueError, match="initial_value or variable_def, got both"):
        fs.Variable(1.0, variable_def=message)
    with fs.Graph().as_default(), pytest.raises(KeyError, match="no operation is named"):
        fs.Variable.from_proto(message)


def test_a_part_without_what_it_was_colocated_with_is_imported() -> None:
    v = fs.Variable(1.0, name="v")
    with fs.colocate_with(fs.no_op("gone")):
        fs.add(v, 1.0, name="y")
    part = fs.graph_util.extract_sub_graph(fs.get_default_graph().as_graph_def(), ["y"])
    with fs.Graph().as_default():
        (y,) = fs.import_graph_def(part, return_elements=["y"]) or [None]
        assert y is not None and y.colocation_groups() == [b"loc:@import/y"]
