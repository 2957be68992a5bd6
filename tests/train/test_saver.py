"""Savers: what is written and read back, what is refused before anything changes."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")
errors = fs.errors


def strings(*values):
    return np.array(values, object)


VALUES = {
    "float16": np.array([[1.5, -2.0]], np.float16),
    "float32": np.array([[np.pi, np.nan], [np.inf, -0.0]], np.float32),
    "float64": np.array([np.e]),
    "bfloat16": np.array([1.0, 3.0], ml_dtypes.bfloat16),
    **{k: np.array([0, np.iinfo(k).max, np.iinfo(k).min], k) for k in
       ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
    "bool": np.array([True, False]),
    "complex64": np.array([[1 - 2j]], np.complex64),
    "complex128": np.array([1 - 2j, 3j]),
    "string": strings(b"", b"two\x00words", "ü".encode()),
    "scalar": np.float32(3.0),
    "complex_scalar": np.complex128(1 + 1j),
    "no_rows": np.zeros((0, 3), np.float32),
}  # fmt: skip


def as_bits(array):
    array = np.asarray(array)
    return array.tolist() if array.dtype == object else array.tobytes()


@pytest.mark.parametrize("kind", VALUES)
def test_a_value_comes_back_bit_by_bit(path, kind, initialized):
    value = VALUES[kind]
    v = fs.Variable(value, name="v", trainable=False)
    saver = fs.train.Saver()
    with initialized() as sess:
        assert saver.save(sess, path) == path
    with fs.Session() as sess:
        saver.restore(sess, path)
        got = sess.run(v)
    assert as_bits(got) == as_bits(value)
    reader = fs.train.NewCheckpointReader(path)
    assert reader.get_variable_to_shape_map() == {"v": list(np.shape(value))}
    assert reader.get_variable_to_dtype_map() == {"v": v.dtype}
    assert as_bits(reader.get_tensor("v")) == as_bits(value)
    assert np.shape(reader.get_tensor("v")) == np.shape(value)


def test_a_scalar_string_comes_back(path, initialized):
    v = fs.Variable(b"text", name="v", trainable=False)
    saver = fs.train.Saver()
    with initialized() as sess:
        saver.save(sess, path)
        sess.run(v.assign(b"other"))
        saver.restore(sess, path)
        assert sess.run(v) == b"text"


def test_the_file_is_a_safetensors_file(path, initialized):
    fs.Variable([1.0, 2.0], name="a")
    with initialized() as sess:
        fs.train.Saver().save(sess, path)
    loaded = safetensors.numpy.load_file(path + ".safetensors")
    assert {k: v.tolist() for k, v in loaded.items()} == {"a": [1, 2]}


def test_files_of_others_are_read(path):
    v = fs.Variable([0.0, 0.0], name="v")
    safetensors.numpy.save_file({"v": np.array([1, 2], np.float32)}, path + ".safetensors")
    with fs.Session() as sess:
        fs.train.Saver().restore(sess, path)
        assert list(sess.run(v)) == [1, 2]
        fs.train.Saver().restore(sess, path + ".safetensors")


def test_variables_are_renamed_and_chosen(path, initialized):
    a, b = fs.Variable(1.0, name="a"), fs.Variable(2.0, name="b")
    with initialized() as sess:
        fs.train.Saver({"x": a, "y": b}).save(sess, path)
        assert fs.train.list_variables(path) == [("x", []), ("y", [])]
        sess.run([a.assign(0.0), b.assign(0.0)])
        report = fs.train.Saver({"y": a}).restore(sess, path)
        assert sess.run([a, b]) == [2.0, 0.0]
    assert [name for name, _ in report.extra] == ["x"]
    assert report.is_complete


def test_local_variables_are_not_saved_unless_they_are_named(path, initialized):
    a, b = fs.Variable(1.0, name="a"), fs.get_local_variable("b", initializer=2.0)
    with initialized(b.initializer) as sess:
        fs.train.Saver().save(sess, path)
        assert fs.train.list_variables(path) == [("a", [])]
        fs.train.Saver([a, b]).save(sess, path)
        assert fs.train.list_variables(path) == [("a", []), ("b", [])]


def test_what_cannot_be_saved_is_refused():
    a = fs.Variable(1.0, name="a")
    with pytest.raises(TypeError, match="expected variables to save, got 3"):
        fs.train.Saver([a, 3])
    with pytest.raises(TypeError, match="expected variables to save"):
        fs.train.Saver([a.value()])
    with pytest.raises(ValueError, match="which are no parts of one"):
        fs.train.Saver({"x": [a, fs.Variable(2.0)]})
    with fs.Graph().as_default():
        other = fs.Variable(1.0, name="b")
    with pytest.raises(ValueError, match="several graphs"):
        fs.train.Saver([a, other])


def test_no_variables(path):
    with pytest.raises(ValueError, match="no variables to save"):
        fs.train.Saver()
    empty = fs.train.Saver(allow_empty=True)
    with fs.Session() as sess:
        fs.no_op()
        assert empty.save(sess, path) is None
        assert empty.restore(sess, path) is None


def test_uninitialised_variables_are_all_named_and_nothing_is_written(path, tmp_path):
    fs.Variable(1.0, name="a"), fs.Variable(1.0, name="b")
    with fs.Session() as sess, pytest.raises(errors.FailedPreconditionError, match='"a", "b"'):
        fs.train.Saver().save(sess, path)
    assert list(tmp_path.iterdir()) == []


def test_a_deferred_saver(path, initialized):
    saver = fs.train.Saver(defer_build=True)
    a = fs.Variable(1.0, name="a")
    with initialized() as sess:
        with pytest.raises(ValueError, match="call build"):
            saver.save(sess, path)
        saver.build()
        saver.build()
        fs.get_default_graph().finalize()
        saver.save(sess, path)
        saver.restore(sess, path)
    with pytest.raises(ValueError, match="defer_build"):
        fs.train.Saver([a], defer_build=True)


# -- parts ----------------------------------------------------------------------------------------


def in_parts(count, name="w", axis=0):
    cut = fs.fixed_size_partitioner(count, axis) if count else None
    return fs.get_variable(name, [5, 3], partitioner=cut, initializer=fs.zeros_initializer())


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_parts_are_one_tensor_and_come_back_cut_otherwise(path, count, axis, initialized):
    value = np.arange(15, dtype=np.float32).reshape(5, 3)
    w = in_parts(2)
    with initialized(w.assign(value)) as sess:
        fs.train.Saver().save(sess, path)
    np.testing.assert_array_equal(fs.train.load_variable(path, "w"), value)
    with fs.Graph().as_default():
        other = in_parts(count, axis=axis)
        with fs.Session() as sess:
            fs.train.Saver().restore(sess, path)
            np.testing.assert_array_equal(sess.run(other), value)


def test_parts_are_saved_by_list_by_dict_and_as_a_whole(path, initialized):
    w = in_parts(2)
    with initialized() as sess:
        for var_list in (list(w), [w], {"w": w}, {"w": list(w)}):
            saver = fs.train.Saver(var_list)
            saver.save(sess, path)
            assert fs.train.list_variables(path) == [("w", [5, 3])]
            saver.restore(sess, path)
    with pytest.raises(ValueError, match='parts of "w" do not make up the whole'):
        fs.train.Saver(list(w)[:1])


def test_slots_of_parts_are_saved_as_one(path, initialized):
    w = in_parts(2)
    optimizer = fs.train.AdamOptimizer()
    optimizer.minimize(fs.reduce_sum(w * w))
    with initialized() as sess:
        fs.train.Saver().save(sess, path)
    shapes = dict(fs.train.list_variables(path))
    assert shapes["w/Adam"] == shapes["w/Adam_1"] == [5, 3]
    assert not [name for name in shapes if "part" in name]


# -- what does not fit ----------------------------------------------------------------------------


def misfits(path, initialized):
    """A checkpoint, and a graph with variables of which only "fits" is as in it."""
    with fs.Graph().as_default():
        fs.Variable([1.0], name="fits")
        fs.Variable([1.0], name="dense/kernel")
        fs.Variable(np.zeros((2, 3), np.float32), name="shape")
        fs.Variable([1.0], name="type")
        with initialized() as sess:
            fs.train.Saver().save(sess, path)
    return {
        "fits": fs.Variable([0.0], name="fits"),
        "dense_1/kernel": fs.Variable([0.0], name="dense_1/kernel"),
        "shape": fs.Variable(np.zeros((3, 2), np.float32), name="shape"),
        "type": fs.Variable(np.array([0.0]), name="type"),
    }


REPORT = """\
1 of 4 tensors can be restored from "{path}.safetensors"
  missing:  dense_1/kernel: float32[1] is wanted, the file has none; similar: "dense/kernel"
  shape:    shape: float32[3,2] is wanted, the file has float32[2,3]
  dtype:    type: float64[1] is wanted, the file has float32[1]
  not used: dense/kernel: the file has float32[1]"""


def test_all_that_does_not_fit_is_reported_before_anything_changes(path, initialized):
    variables = misfits(path, initialized)
    saver = fs.train.Saver()
    with initialized() as sess:
        with pytest.raises(errors.NotFoundError) as caught:
            saver.restore(sess, path)
        assert str(caught.value).startswith(REPORT.format(path=path))
        assert "partial=True" in str(caught.value)
        assert all((value == 0).all() for value in sess.run(list(variables.values())))


def test_a_report_alone_changes_nothing(path, graph, initialized):
    misfits(path, initialized)
    before = len(graph)
    assert str(fs.train.restore_report(path)) == REPORT.format(path=path)
    assert len(graph) == before
    assert repr(fs.train.Saver().compare(path)) == REPORT.format(path=path)
    chosen = fs.train.restore_report(path, {"dense/kernel": fs.global_variables()[0]})
    assert chosen.fits == ("dense/kernel",)


def test_a_partial_restore_restores_what_fits(path, initialized):
    variables = misfits(path, initialized)
    with fs.Session() as sess:
        report = fs.train.Saver().restore(sess, path, partial=True)
        assert report.fits == ("fits",)
        assert sess.run(variables["fits"]) == [1]
        names = sess.run(fs.report_uninitialized_variables())
        assert list(names) == [b"dense_1/kernel", b"shape", b"type"]


def test_a_partial_restore_of_parts_and_of_nothing(path, initialized):
    w = in_parts(2)
    with initialized(w.assign(np.ones((5, 3)))) as sess:
        fs.train.Saver({"w": w}).save(sess, path)
        sess.run(w.assign(np.zeros((5, 3))))
        other = fs.Variable(5.0, name="other")
        sess.run(other.initializer)
        fs.train.Saver().restore(sess, path, partial=True)
        np.testing.assert_array_equal(sess.run(w), 1)
        assert fs.train.Saver([other]).restore(sess, path, partial=True).fits == ()
        assert sess.run(other) == 5


def test_another_shape_of_the_same_size_is_restored_on_demand(path, initialized):
    with fs.Graph().as_default():
        fs.Variable([[1.0, 2.0], [3.0, 4.0]], name="v")
        with initialized() as sess:
            fs.train.Saver().save(sess, path)
    v = fs.Variable([0.0] * 4, name="v")
    with fs.Session() as sess:
        with pytest.raises(ValueError, match=r"v: float32\[4\] is wanted"):
            fs.train.Saver().restore(sess, path)
        fs.train.Saver(reshape=True).restore(sess, path)
        assert list(sess.run(v)) == [1, 2, 3, 4]


def test_variables_of_unknown_shape_take_what_comes(path, initialized):
    v = fs.Variable([1.0, 2.0], name="v", validate_shape=False)
    saver = fs.train.Saver()
    with initialized() as sess:
        saver.save(sess, path)
        sess.run(v.assign([3.0]))
        saver.restore(sess, path)
        assert list(sess.run(v)) == [1, 2]


@pytest.mark.parametrize("one_by_one", [False, True])
def test_several_variables_are_restored(path, one_by_one, sess):
    variables = [fs.Variable([float(i)] * i, name=f"v{i}") for i in range(1, 5)]
    saver = fs.train.Saver(restore_sequentially=one_by_one)
    sess.run(fs.global_variables_initializer())
    saver.save(sess, path)
    sess.run([v.assign(v * 0.0) for v in variables])
    saver.restore(sess, path)
    assert [list(a) for a in sess.run(variables)] == [[1], [2, 2], [3, 3, 3], [4, 4, 4, 4]]


def test_restored_values_are_not_tied_to_the_file(path, initialized):
    v = fs.Variable(np.ones(1000, np.float32), name="v")
    saver = fs.train.Saver()
    with initialized() as sess:
        arrays = {"v": np.ones(1000, np.float32)}
        safetensors.numpy.save_file(arrays, path + ".safetensors")  # without a checksum
        saver.restore(sess, path)
        with Path(path + ".safetensors").open("r+b") as file:
            file.seek(-100, 2)
            file.write(b"\xff" * 100)
        np.testing.assert_array_equal(sess.run(v), 1)
        sess.run(v.assign_add(np.ones(1000, np.float32)).op)
    assert np.isnan(fs.train.load_variable(path, "v")[-1])
