"""Savers: what is written and read back, what is refused before anything changes."""

import json
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

import flowscope as fs
from flowscope.ops.checkpoint import restore, save
from flowscope.train.retention import Retention

pytestmark = pytest.mark.usefixtures("graph")
errors = fs.errors


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "model")


def initialized(*fetches):
    sess = fs.Session()
    sess.run([fs.global_variables_initializer(), *fetches])
    return sess


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
def test_a_value_comes_back_bit_by_bit(path, kind):
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


def test_a_scalar_string_comes_back(path):
    v = fs.Variable(b"text", name="v", trainable=False)
    saver = fs.train.Saver()
    with initialized() as sess:
        saver.save(sess, path)
        sess.run(v.assign(b"other"))
        saver.restore(sess, path)
        assert sess.run(v) == b"text"


def test_the_file_is_a_safetensors_file(path):
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


def test_variables_are_renamed_and_chosen(path):
    a, b = fs.Variable(1.0, name="a"), fs.Variable(2.0, name="b")
    with initialized() as sess:
        fs.train.Saver({"x": a, "y": b}).save(sess, path)
        assert fs.train.list_variables(path) == [("x", []), ("y", [])]
        sess.run([a.assign(0.0), b.assign(0.0)])
        report = fs.train.Saver({"y": a}).restore(sess, path)
        assert sess.run([a, b]) == [2.0, 0.0]
    assert [name for name, _ in report.extra] == ["x"]
    assert report.is_complete


def test_local_variables_are_not_saved_unless_they_are_named(path):
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


def test_no_variables():
    with pytest.raises(ValueError, match="no variables to save"):
        fs.train.Saver()
    empty = fs.train.Saver(allow_empty=True)
    with fs.Session() as sess:
        fs.no_op()
        assert empty.save(sess, "model") is None
        assert empty.restore(sess, "model") is None


def test_uninitialised_variables_are_all_named_and_nothing_is_written(path, tmp_path):
    fs.Variable(1.0, name="a"), fs.Variable(1.0, name="b")
    with fs.Session() as sess, pytest.raises(errors.FailedPreconditionError, match='"a", "b"'):
        fs.train.Saver().save(sess, path)
    assert list(tmp_path.iterdir()) == []


def test_a_deferred_saver(path):
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
def test_parts_are_one_tensor_and_come_back_cut_otherwise(path, count, axis):
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


def test_parts_are_saved_by_list_by_dict_and_as_a_whole(path):
    w = in_parts(2)
    with initialized() as sess:
        for var_list in (list(w), [w], {"w": w}, {"w": list(w)}):
            saver = fs.train.Saver(var_list)
            saver.save(sess, path)
            assert fs.train.list_variables(path) == [("w", [5, 3])]
            saver.restore(sess, path)
    with pytest.raises(ValueError, match='parts of "w" do not make up the whole'):
        fs.train.Saver(list(w)[:1])


def test_slots_of_parts_are_saved_as_one(path):
    w = in_parts(2)
    optimizer = fs.train.AdamOptimizer()
    optimizer.minimize(fs.reduce_sum(w * w))
    with initialized() as sess:
        fs.train.Saver().save(sess, path)
    shapes = dict(fs.train.list_variables(path))
    assert shapes["w/Adam"] == shapes["w/Adam_1"] == [5, 3]
    assert not [name for name in shapes if "part" in name]


# -- what does not fit ----------------------------------------------------------------------------


def misfits(path):
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


def test_all_that_does_not_fit_is_reported_before_anything_changes(path):
    variables = misfits(path)
    saver = fs.train.Saver()
    with initialized() as sess:
        with pytest.raises(errors.NotFoundError) as caught:
            saver.restore(sess, path)
        assert str(caught.value).startswith(REPORT.format(path=path))
        assert "partial=True" in str(caught.value)
        assert all((value == 0).all() for value in sess.run(list(variables.values())))


def test_a_report_alone_changes_nothing(path, graph):
    misfits(path)
    before = len(graph)
    assert str(fs.train.restore_report(path)) == REPORT.format(path=path)
    assert len(graph) == before
    assert repr(fs.train.Saver().compare(path)) == REPORT.format(path=path)
    chosen = fs.train.restore_report(path, {"dense/kernel": fs.global_variables()[0]})
    assert chosen.fits == ("dense/kernel",)


def test_a_partial_restore_restores_what_fits(path):
    variables = misfits(path)
    with fs.Session() as sess:
        report = fs.train.Saver().restore(sess, path, partial=True)
        assert report.fits == ("fits",)
        assert sess.run(variables["fits"]) == [1]
        names = sess.run(fs.report_uninitialized_variables())
        assert list(names) == [b"dense_1/kernel", b"shape", b"type"]


def test_a_partial_restore_of_parts_and_of_nothing(path):
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


def test_another_shape_of_the_same_size_is_restored_on_demand(path):
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


def test_variables_of_unknown_shape_take_what_comes(path):
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


def test_restored_values_are_not_tied_to_the_file(path):
    v = fs.Variable(np.ones(1000, np.float32), name="v")
    saver = fs.train.Saver()
    with initialized() as sess:
        saver.save(sess, path)
        saver.restore(sess, path)
        with Path(path + ".safetensors").open("r+b") as file:
            file.seek(-100, 2)
            file.write(b"\xff" * 100)
        np.testing.assert_array_equal(sess.run(v), 1)
        sess.run(v.assign_add(np.ones(1000, np.float32)).op)
    assert np.isnan(fs.train.load_variable(path, "v")[-1])


# -- damage ---------------------------------------------------------------------------------------


@pytest.fixture
def saved(path):
    fs.Variable(np.arange(100, dtype=np.float32), name="v")
    fs.Variable(strings(b"a", b"bc"), name="s", trainable=False)
    saver = fs.train.Saver()
    with initialized() as sess:
        saver.save(sess, path)
    return saver


def rewritten(path, tensors=None, **metadata):
    with safetensors.safe_open(path + ".safetensors", framework="np") as file:
        found = {k: file.get_tensor(k).copy() for k in file.keys()}  # noqa: SIM118
        facts = {**file.metadata(), **metadata}
    safetensors.numpy.save_file({**found, **(tensors or {})}, path + ".safetensors", facts)


@pytest.mark.parametrize("size", [0, 7, 50, 300])
def test_a_truncated_file_is_refused(path, saved, size):
    with Path(path + ".safetensors").open("r+b") as file:
        file.truncate(size)
    with fs.Session() as sess, pytest.raises(errors.DataLossError, match="damaged, or no check"):
        saved.restore(sess, path)


def test_a_pickle_is_not_run(path, saved):
    class Bomb:
        def __reduce__(self):
            return exec, ("raise SystemExit",)

    import pickle

    with Path(path + ".safetensors").open("wb") as file:
        pickle.dump(Bomb(), file)
    with fs.Session() as sess, pytest.raises(errors.DataLossError):
        saved.restore(sess, path)


@pytest.mark.parametrize("text", ["{", "[]", '{"s": 3}', '{"s": {"dtype": "odd", "shape": []}}'])
def test_damaged_metadata_is_refused(path, saved, text):
    rewritten(path, encoded=text)
    with pytest.raises(errors.DataLossError, match="damaged metadata"):
        fs.train.load_checkpoint(path)


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(3, np.uint8),
        np.frombuffer(np.array([0, 9, 3], "<u8").tobytes() + b"abc", np.uint8),
        np.frombuffer(np.array([1, 1, 3], "<u8").tobytes() + b"abc", np.uint8),
        np.frombuffer(np.array([0, 1, 2], "<u8").tobytes() + b"abc", np.uint8),
        np.zeros(3, np.float32),
    ],
)
def test_damaged_strings_are_refused(path, saved, array):
    rewritten(path, {"s": array})
    with pytest.raises(errors.DataLossError, match='"s" in .* cannot be read'):
        fs.train.load_variable(path, "s")


def test_a_newer_encoding_is_refused(path, saved):
    rewritten(path, flowscope="2")
    with pytest.raises(errors.UnimplementedError, match="a newer flowscope wrote it"):
        fs.train.load_checkpoint(path)


def test_a_missing_checkpoint(path):
    fs.Variable(1.0, name="v")
    with fs.Session() as sess:
        with pytest.raises(ValueError, match="there is no such checkpoint"):
            fs.train.Saver().restore(sess, path)
        with pytest.raises(ValueError, match="got None"):
            fs.train.Saver().restore(sess, None)
    with pytest.raises(errors.NotFoundError):
        fs.train.NewCheckpointReader(path)
    with pytest.raises(errors.NotFoundError):
        fs.train.load_variable(path, "v")


def test_a_reader_tells_what_is_there(path, saved):
    reader = fs.train.load_checkpoint(path)
    assert reader.has_tensor("v")
    assert not reader.has_tensor("w")
    assert reader.debug_string() == b"s (string) [2]\nv (float32) [100]"
    assert "2 tensors" in repr(reader)
    with pytest.raises(errors.NotFoundError, match='there is no "w" in the checkpoint'):
        reader.get_tensor("w")
    assert fs.train.load_variable(path, "v:0")[99] == 99


def test_a_failed_write_leaves_the_old_file_and_nothing_else(path, tmp_path):
    v = fs.Variable([1.0], name="v")
    saver = fs.train.Saver()
    with initialized() as sess:
        saver.save(sess, path, write_meta_graph=False)
        target = tmp_path / "full.safetensors"
        target.mkdir()
        sess.run(v.assign([2.0]).op)
        with pytest.raises(errors.OpError, match="full.safetensors"):
            saver.save(sess, str(tmp_path / "full"))
        saver.restore(sess, path)
        assert sess.run(v) == [1]
    names = {"model.safetensors", "checkpoint", "full.safetensors"}
    assert {p.name for p in tmp_path.iterdir()} == names


# -- which checkpoints are kept -------------------------------------------------------------------


def names_in(folder):
    return sorted(p.name for p in folder.iterdir())


def test_the_last_few_are_kept(path, tmp_path):
    fs.Variable(1.0, name="v")
    saver = fs.train.Saver(max_to_keep=2)
    with initialized() as sess:
        written = [saver.save(sess, path, step) for step in range(4)]
    assert written == [f"{path}-{i}" for i in range(4)]
    assert saver.last_checkpoints == written[2:]
    files = [f"model-{i}.{kind}" for i in (2, 3) for kind in ("meta", "safetensors")]
    assert names_in(tmp_path) == ["checkpoint", *files]
    state = fs.train.get_checkpoint_state(str(tmp_path))
    assert state.model_checkpoint_path == written[3] == fs.train.latest_checkpoint(str(tmp_path))
    assert state.all_model_checkpoint_paths == written[2:]
    assert len(state.all_model_checkpoint_timestamps) == 2
    assert fs.train.checkpoint_exists(written[3])
    assert not fs.train.checkpoint_exists(written[0])


@pytest.mark.parametrize("keep", [0, None])
def test_all_are_kept_on_demand(path, tmp_path, keep):
    fs.Variable(1.0, name="v")
    saver = fs.train.Saver(max_to_keep=keep)
    with initialized() as sess:
        for step in range(7):
            saver.save(sess, path, step, write_meta_graph=False)
    assert len(names_in(tmp_path)) == 8


def test_one_every_few_hours_is_kept_for_good():
    kept = Retention(max_to_keep=2, hours=2)
    gone = [name for hour in range(10) for name in kept.add(f"at{hour}", hour * 3600.0)]
    assert gone == ["at0", "at1", "at3", "at5", "at7"]
    assert [name for name, _ in kept.kept] == ["at8", "at9"]
    assert kept.preserved == 6 * 3600


def test_a_checkpoint_that_is_written_again_counts_once(path):
    fs.Variable(1.0, name="v")
    saver = fs.train.Saver(max_to_keep=2)
    with initialized() as sess:
        for name in ("a", "b", "a"):
            saver.save(sess, f"{path}-{name}")
    assert saver.last_checkpoints == [f"{path}-b", f"{path}-a"]
    assert fs.train.checkpoint_exists(f"{path}-b")


def test_a_new_saver_takes_up_the_checkpoints_of_an_old_one(path, tmp_path):
    fs.Variable(1.0, name="v")
    with initialized() as sess:
        old = fs.train.Saver()
        written = [old.save(sess, path, step) for step in range(3)]
        new = fs.train.Saver(max_to_keep=2)
        new.recover_last_checkpoints([*written, f"{path}-99"])
        assert new.last_checkpoints == written
        new.save(sess, path, 3)
        assert fs.train.get_checkpoint_state(str(tmp_path)).all_model_checkpoint_paths == [
            written[2],
            f"{path}-3",
        ]
        new.set_last_checkpoints([written[2]])
        assert new.last_checkpoints == [written[2]]
    times = fs.train.get_checkpoint_mtimes([*written, f"{path}-3"])
    assert len(times) == 2
    fs.train.remove_checkpoint(f"{path}-3")
    fs.train.remove_checkpoint(f"{path}-3")
    assert fs.train.latest_checkpoint(str(tmp_path)) is None


def test_names_of_checkpoints(path, tmp_path):
    fs.Variable(1.0, name="v")
    step = fs.train.get_or_create_global_step()
    saver = fs.train.Saver(pad_step_number=True)
    with initialized(step.assign(12)) as sess:
        assert saver.save(sess, path, step) == f"{path}-00000012"
        deep = tmp_path / "a" / "b" / "model"
        saver.save(sess, deep, latest_filename="newest", meta_graph_suffix="graph")
        assert names_in(deep.parent) == ["model.graph", "model.safetensors", "newest"]
        assert fs.train.latest_checkpoint(str(deep.parent)) is None
        assert fs.train.latest_checkpoint(str(deep.parent), "newest") == str(deep)
        saver.save(sess, tmp_path / "quiet" / "m", write_state=False, write_meta_graph=False)
        assert names_in(tmp_path / "quiet") == ["m.safetensors"]
        for bad in (str(tmp_path / "checkpoint"), str(tmp_path) + "/"):
            with pytest.raises(ValueError, match="expected the path of a checkpoint"):
                saver.save(sess, bad)
        with pytest.raises(ValueError, match="without a folder"):
            saver.save(sess, path, latest_filename="a/b")


def test_relative_paths_survive_a_move(path, tmp_path, monkeypatch):
    fs.Variable(1.0, name="v")
    folder = tmp_path / "here"
    with initialized() as sess:
        fs.train.Saver(save_relative_paths=True).save(sess, folder / "model")
        folder.rename(tmp_path / "there")
        assert fs.train.latest_checkpoint(str(tmp_path / "there")) == str(
            tmp_path / "there" / "model"
        )
        monkeypatch.chdir(tmp_path)
        fs.train.Saver().save(sess, "near/model")
    assert fs.train.latest_checkpoint("near") == "near/model"
    assert fs.train.latest_checkpoint(str(tmp_path / "near")) == str(tmp_path / "near" / "model")
    assert fs.train.load_variable("near", "v") == 1.0


def test_the_folders_state_is_checked(tmp_path):
    folder = str(tmp_path)
    assert fs.train.get_checkpoint_state(folder) is None
    assert fs.train.latest_checkpoint(str(tmp_path / "missing")) is None
    with pytest.raises(errors.NotFoundError, match="there is no checkpoint in"):
        fs.train.load_checkpoint(folder)
    fs.train.update_checkpoint_state(folder, "m-2", ["m-1"], save_relative_paths=False)
    facts = json.loads((tmp_path / "checkpoint").read_text())
    assert facts["all_model_checkpoint_paths"] == ["m-1", "m-2"]
    with pytest.raises(ValueError, match="expected 1 times"):
        fs.train.update_checkpoint_state(
            folder, "m", ["m"], all_model_checkpoint_timestamps=[1.0, 2.0]
        )
    for text in ("{", "[]", "{}", json.dumps({**facts, "version": 2})):
        (tmp_path / "checkpoint").write_text(text)
        with pytest.raises(errors.DataLossError):
            fs.train.latest_checkpoint(folder)


# -- as operations --------------------------------------------------------------------------------


def test_a_checkpoint_between_two_updates_is_part_of_a_step(sess, path):
    a, b = fs.Variable(0.0, name="a"), fs.Variable(0.0, name="b")
    updates = [v.assign_add(1.0).op for v in (a, b)]
    with fs.control_dependencies(updates):
        saved = save(path, ["a", "b"], [a, b])
    with fs.control_dependencies([saved]):
        more = [v.assign_add(10.0).op for v in (a, b)]
    sess.run(fs.global_variables_initializer())
    assert sess.run([saved, *more])[0] == path.encode()
    assert sess.run([a, b]) == [11, 11]
    x, y = restore(path, ["a", "b"], [fs.float32, fs.float32], [(), ()])
    assert sess.run([x, y]) == [1, 1]


def test_tensors_and_parts_are_read_by_name(sess, path):
    value = np.arange(12, dtype=np.float32).reshape(3, 4)
    name = fs.placeholder(fs.string, [])
    sess.run(save(name, ["t"], [fs.constant(value) * 2.0]), {name: path})
    whole, part, none = restore(
        path,
        ["t"] * 3,
        [fs.float32] * 3,
        [None, (2, 3), (0, 4)],
        [None, ((1, 1), (2, 3)), ((3, 0), (0, 4))],
    )
    got = sess.run([whole, part, none])
    np.testing.assert_array_equal(got[0], value * 2)
    np.testing.assert_array_equal(got[1], value[1:, 1:] * 2)
    assert got[2].shape == (0, 4)
    assert (whole.shape.ndims, part.shape.as_list()) == (None, [2, 3])


def test_reading_ops_check_what_they_find(sess, path):
    sess.run(save(path, ["t"], [fs.ones([2])]))
    (wrong_type,) = restore(path, ["t"], [fs.float64])
    (wrong_shape,) = restore(path, ["t"], [fs.float32], [(3,)])
    (missing,) = restore(path, ["u"], [fs.float32])
    with pytest.raises(ValueError, match=r'expected "t" to be float64.*got float32\[2\]'):
        sess.run(wrong_type)
    with pytest.raises(ValueError, match=r'expected "t" to be float32\[3\], got float32\[2\]'):
        sess.run(wrong_shape)
    with pytest.raises(errors.NotFoundError, match='there is no "u"'):
        sess.run(missing)


def test_bad_savings_are_refused_while_building():
    v = fs.Variable(1.0)
    with pytest.raises(TypeError, match="string"):
        save(fs.constant(3), ["a"], [v])
    with pytest.raises(ValueError, match="one per tensor"):
        save("p", ["a"], [v, v])
    with pytest.raises(ValueError, match="different names"):
        save("p", ["a", "a"], [v, v])
    with pytest.raises(TypeError, match="handle of a variable"):
        save("p", ["a"], [v.handle])


# -- with the graph -------------------------------------------------------------------------------


def training():
    x = fs.placeholder(fs.float32, [None, 3], name="x")
    w = fs.get_variable("w", [3, 2], initializer=fs.random_normal_initializer(seed=1))
    loss = fs.reduce_mean(fs.square(fs.matmul(x, w) - 1.0), name="loss")
    step = fs.train.get_or_create_global_step()
    return fs.train.AdamOptimizer(0.1).minimize(loss, step, name="train")


FEED = {"x:0": np.arange(6, dtype=np.float32).reshape(2, 3)}


def test_training_goes_on_from_a_file_without_the_program(path, tmp_path):
    train = training()
    saver = fs.train.Saver()
    with initialized() as sess:
        for _ in range(3):
            sess.run(train, FEED)
        prefix = saver.save(sess, path, fs.train.get_global_step())
        for _ in range(3):
            sess.run(train, FEED)
        want = sess.run(["w:0", "loss:0"], FEED)
    with fs.Graph().as_default() as graph, fs.Session() as sess:
        again = fs.train.import_meta_graph(prefix + ".meta")
        before = len(graph)
        again.restore(sess, fs.train.latest_checkpoint(str(tmp_path)))
        for _ in range(3):
            sess.run("train", FEED)
        got = sess.run(["w:0", "loss:0"], FEED)
        assert again.save(sess, path, 6) == f"{path}-6"
        assert len(graph) == before
    assert as_bits(got[0]) == as_bits(want[0])
    assert got[1] == want[1]


def test_a_graph_is_imported_into_a_scope(path):
    training()
    saver = fs.train.Saver(max_to_keep=7)
    with initialized() as sess:
        saver.save(sess, path)
        want = sess.run("w:0")
    meta = saver.export_meta_graph()
    with fs.Graph().as_default(), fs.Session() as sess:
        again = fs.train.import_meta_graph(meta, import_scope="again")
        again.restore(sess, path)
        assert as_bits(sess.run("again/w:0")) == as_bits(want)
        assert again.as_saver_def().max_to_keep == 7


def test_a_graph_without_a_saver_gets_one():
    v = fs.Variable([1.0], name="v")
    meta = fs.train.export_meta_graph()
    with fs.Graph().as_default():
        assert "1 tensors" in repr(fs.train.import_meta_graph(meta))
    with fs.Graph().as_default() as graph:
        fs.no_op()
        empty = fs.train.export_meta_graph(graph=graph)
    with fs.Graph().as_default():
        assert fs.train.import_meta_graph(empty) is None
    assert v.name == "v:0"


def test_a_saver_from_the_definition_of_another(path, graph):
    v = fs.Variable(3.0, name="v")
    saver = fs.train.Saver(max_to_keep=1)
    before = len(graph)
    same = fs.train.Saver(saver_def=saver.as_saver_def())
    assert len(graph) == before
    with initialized() as sess:
        same.save(sess, path)
        sess.run(v.assign(0.0))
        same.restore(sess, path)
        assert sess.run(v) == 3
    with pytest.raises(ValueError, match="damaged"):
        fs.train.Saver(saver_def=fs.train.SaverDef("no:0", "no:0", "no"))


# -- processes ------------------------------------------------------------------------------------

PROGRAM = """
    import sys
    import numpy as np
    import flowscope as fs

    folder, until = sys.argv[1], int(sys.argv[2])
    fs.set_random_seed(3)
    x = fs.placeholder(fs.float32, [None, 3], name="x")
    w = fs.get_variable("w", [3, 2], initializer=fs.random_normal_initializer(seed=1))
    loss = fs.reduce_mean(fs.square(fs.matmul(x, w) - 1.0))
    step = fs.train.get_or_create_global_step()
    train = fs.train.AdamOptimizer(0.1).minimize(loss, step)
    saver = fs.train.Saver()
    feed = {x: np.arange(6, dtype=np.float32).reshape(2, 3)}
    with fs.Session() as sess:
        sess.run(fs.global_variables_initializer())
        latest = fs.train.latest_checkpoint(folder)
        if latest:
            saver.restore(sess, latest)
        while sess.run(step) < until:
            sess.run(train, feed)
            saver.save(sess, folder + "/model", step)
            print("saved", flush=True)
        print(sess.run(w).tobytes().hex(), sess.run(step))
"""


def start(folder, until, env):
    program = textwrap.dedent(PROGRAM)
    return subprocess.Popen(
        [sys.executable, "-c", program, str(folder), str(until)],
        stdout=subprocess.PIPE,
        text=True,
        env=env,
    )


@pytest.mark.slow
def test_training_survives_a_process_that_is_killed(tmp_path, source_env):
    whole = start(tmp_path / "whole", 30, source_env).communicate()[0].splitlines()[-1]
    folder = tmp_path / "killed"
    folder.mkdir()
    for saves in (1, 4):
        child = start(folder, 10**9, source_env)
        for _ in range(saves):
            assert child.stdout.readline() == "saved\n"
        # It is killed wherever it is now, in the midst of a save perhaps.
        child.send_signal(signal.SIGKILL)
        child.communicate()
        latest = fs.train.latest_checkpoint(str(folder))
        assert fs.train.load_variable(latest, "global_step") >= saves
    left = fs.train.load_variable(str(folder), "global_step")
    again = start(folder, max(30, int(left)), source_env).communicate()[0].splitlines()[-1]
    if left > 30:
        whole = start(tmp_path / "longer", int(left), source_env).communicate()[0].splitlines()[-1]
    assert again == whole


@pytest.mark.slow
def test_importing_flowscope_does_not_import_safetensors(source_env):
    code = "import sys, flowscope; print('safetensors' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], env=source_env, capture_output=True)
    assert done.stdout.strip() == b"False"
