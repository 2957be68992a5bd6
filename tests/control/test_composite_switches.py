"""`switch` and `merge` of slices and sparse tensors, of variables, and where nothing comes."""

import numpy as np
import pytest

import flowscope as fs

MODES = ["compiled", "op", "tokens"]


@pytest.fixture(params=MODES)
def session(request, graph):
    with fs.Session(config=fs.ConfigProto(mode=request.param)) as s:
        yield s


@pytest.fixture
def pred(graph):
    return fs.placeholder(fs.bool, [])


def test_a_variable_is_switched_by_its_value(graph, pred, session):
    v = fs.get_variable("v", initializer=[1.0, 2.0])
    low, high = fs.switch(v, pred)
    out, index = fs.merge([low + 1.0, high * 10.0])
    session.run(v.initializer)
    assert [x.tolist() for x in session.run([out, index], {pred: True})] == [[10, 20], 1]
    assert [x.tolist() for x in session.run([out, index], {pred: False})] == [[2, 3], 0]


def test_one_input_alone_and_none_that_comes(graph, pred, session):
    _, high = fs.switch(fs.constant([1.0]), pred)
    one, index = fs.merge([high])
    both, _ = fs.merge([high, high + 1.0])
    assert [x.tolist() for x in session.run([one, index], {pred: True})] == [[1], 0]
    for dead in (one, index, both):
        with pytest.raises(fs.errors.InvalidArgumentError, match="has no value: it is on a way"):
            session.run(dead, {pred: False})


def test_slices_are_switched_by_their_parts(graph, pred, session):
    x = fs.IndexedSlices(fs.constant([[1.0, 2.0]]), fs.constant([1]), fs.constant([2, 2]))
    low, high = fs.switch(x, pred)
    out, index = fs.merge([low, high])
    assert isinstance(out, fs.IndexedSlices)
    for way in (False, True):
        found, came = session.run([out, index], {pred: way})
        assert found.values.tolist() == [[1, 2]] and found.indices.tolist() == [1]
        assert came == way
        assert session.run(fs.convert_to_tensor(out), {pred: way}).tolist() == [[0, 0], [1, 2]]


def test_a_tensor_beside_slices_is_slices_of_all_rows(graph, pred, session):
    rows = fs.IndexedSlices(
        fs.constant([[5.0, 6.0]]), fs.constant([1], fs.int64), fs.constant([2, 2])
    )
    dense, _ = fs.switch(fs.constant([[1.0, 2.0], [3.0, 4.0]]), pred)
    _, slices = fs.switch(rows, pred)
    out, index = fs.merge([dense, slices])
    assert out.indices.dtype is fs.int64
    whole = fs.convert_to_tensor(out)
    got = [session.run([whole, index], {pred: way}) for way in (False, True)]
    assert [g[0].tolist() for g in got] == [[[1, 2], [3, 4]], [[0, 0], [5, 6]]]
    assert [g[1] for g in got] == [0, 1]


def test_sparse_tensors_are_merged_among_themselves(graph, pred, session):
    x = fs.SparseTensor([[0, 1]], [5.0], [1, 2])
    low, high = fs.switch(x, pred)
    doubled = fs.SparseTensor(high.indices, high.values * 2.0, high.dense_shape)
    out, index = fs.merge([low, doubled])
    got = [session.run([out, index], {pred: way}) for way in (False, True)]
    assert [g[0].values.tolist() for g in got] == [[5], [10]]
    assert [g[1] for g in got] == [0, 1]


def test_what_cannot_be_merged(graph, pred):
    x = fs.SparseTensor([[0, 1]], [5.0], [1, 2])
    with pytest.raises(TypeError, match="expected sparse tensors alone"):
        fs.merge([x, fs.constant([1.0])])
    open_, closed = [
        fs.IndexedSlices(np.ones([1, 2], np.float32), [0], shape) for shape in (None, [2, 2])
    ]
    with pytest.raises(ValueError, match="all slices to have a dense_shape, or none"):
        fs.merge([open_, closed])
    assert fs.merge([open_, open_]).output.dense_shape is None
    for inputs, error in (([], "at least one"), ([x, None], "None among")):
        with pytest.raises(ValueError, match=error):
            fs.merge(inputs)


def test_contexts_made_by_hand_are_refused(graph):
    for name in ("CondContext", "WhileContext", "control_flow_ops"):
        with pytest.raises(AttributeError, match=r"use fs.cond and fs.while_loop"):
            getattr(fs, name)
