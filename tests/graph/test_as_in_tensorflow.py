"""Graphs, operations, tensors and dtypes answer as TensorFlow 1's do, errors included."""

import pytest

import flowscope as fs


@pytest.fixture(autouse=True)
def graph():
    with fs.Graph().as_default() as g:
        yield g


def test_collections_belong_to_a_graph_that_is_not_finalized(graph):
    graph.add_to_collection("k", 1)
    graph.add_to_collection(3, 2)
    assert graph.collections == ["k", 3] and graph.get_all_collection_keys() == ["k"]
    graph.finalize()
    for change in (
        lambda: graph.add_to_collection("k", 2),
        lambda: graph.add_to_collections(["k"], 2),
        lambda: graph.clear_collection("k"),
    ):
        with pytest.raises(RuntimeError, match="finalized"):
            change()
    assert graph.get_collection("k") == [1] and not graph.building_function


def test_names_of_collections():
    assert fs.GraphKeys.COND_CONTEXT == "cond_context"
    assert fs.GraphKeys.RESOURCES == "resources" and fs.GraphKeys.VARIABLES == "variables"


def test_elements_are_found_by_strings(graph):
    a = fs.constant(1.0, name="a")
    for find in (graph.get_tensor_by_name, graph.get_operation_by_name):
        for wrong in (a, a.op, 3):
            with pytest.raises(TypeError, match="expected a name"):
                find(wrong)


def test_attributes_that_follow_from_inputs(graph):
    a = fs.constant([[1.0]], name="a")
    assert fs.matmul(a, a).op.get_attr("T") is fs.float32
    cast = fs.cast(a, fs.int32).op
    assert (cast.get_attr("SrcT"), cast.get_attr("DstT")) == (fs.float32, fs.int32)
    with pytest.raises(ValueError, match="no attribute"):
        cast.get_attr("N")
    with pytest.raises(ValueError, match="do not fit Const"):
        graph.create_op("Const", [], [fs.int32])


def test_control_inputs_are_added_and_taken_away():
    a, b, c = [fs.no_op(name=n) for n in "abc"]
    a._add_control_inputs([b, c, b])
    assert a.control_inputs == [b, c] and a.node_def.input == ["^b", "^c"]
    a._remove_all_control_inputs()
    assert a.control_inputs == []
    with pytest.raises(TypeError, match="expected an operation"):
        a._add_control_input(3)


def test_the_inputs_of_a_definition_are_names():
    a, b = fs.split([1, 2], 2, name="s")
    assert fs.add(b, a).op.node_def.input == ["s:1", "s"]


def test_small_properties_of_tensors():
    a = fs.placeholder(fs.float32, [None, 2])
    assert a.ndim == 2 and fs.placeholder(fs.float32).ndim is None
    assert a.experimental_ref() == a.ref()


def test_what_is_no_constant_is_a_type_error():
    with pytest.raises(TypeError, match="got the tensor"):
        fs.constant(fs.constant(1))
    with pytest.raises(TypeError, match="does not fit"):
        fs.constant([1, 2], shape=[3], verify_shape=True)
    with pytest.raises(TypeError, match="int32 or int64"):
        fs.convert_to_tensor(fs.TensorShape([1]), fs.float32)
    assert fs.convert_to_tensor(fs.TensorShape([1]), fs.int64).dtype is fs.int64


def test_codes_of_errors():
    errors = fs.errors
    assert errors.exception_type_from_error_code(3) is errors.InvalidArgumentError
    assert errors.error_code_from_exception_type(errors.AbortedError) == errors.ABORTED
    with pytest.raises(KeyError):
        errors.exception_type_from_error_code(99)
    assert errors.OpError(None, None, "m", 5).error_code == 5
    assert errors.InvalidArgumentError(None, None, "m").error_code == 3


def test_numbers_and_dimensions():
    assert int(fs.float32) == 1
    assert fs.dimension_at_index(fs.TensorShape([1, 2]), 1) == 2
    assert fs.dimension_at_index(fs.TensorShape(None), 1).value is None
    assert fs.Session(target=b"").graph is fs.get_default_graph()


def test_keys_that_are_no_strings_are_collections_too(graph):
    graph.add_to_collection(("key",), 1)
    assert graph.get_all_collection_keys() == [] and graph.collections == [("key",)]
