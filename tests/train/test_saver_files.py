"""Checkpoint files and folders: damage, which ones are kept, processes that are killed."""

import json
import pickle
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

import flowscope as fs
from flowscope.train.checkpoint.retention import Retention

pytestmark = pytest.mark.usefixtures("graph")
errors = fs.errors


def strings(*values):
    return np.array(values, object)


# -- damage ---------------------------------------------------------------------------------------


@pytest.fixture
def saved(path, initialized):
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


def test_a_reader_keeps_the_file_that_it_has_opened(path, saved, initialized):
    reader = fs.train.load_checkpoint(path)
    with initialized() as sess:
        sess.run(fs.assign(fs.global_variables()[0], np.zeros(100, np.float32)))
        saved.save(sess, path)
    assert reader.get_tensor("v")[99] == 99
    assert fs.train.load_checkpoint(path).get_tensor("v")[99] == 0


def test_a_file_that_shrinks_while_it_is_open_is_data_loss(path, saved):
    reader = fs.train.load_checkpoint(path)
    with Path(path + ".safetensors").open("r+b") as file:
        file.truncate(Path(path + ".safetensors").stat().st_size - 4)
    with pytest.raises(errors.DataLossError, match="the file ends before it|written"):
        reader.get_tensor("s")


def test_a_pickle_is_not_run(path, saved):
    class Bomb:
        def __reduce__(self):
            return exec, ("raise SystemExit",)

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
        with pytest.raises(ValueError, match="there is no checkpoint"):
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


def test_a_failed_write_leaves_the_old_file_and_nothing_else(path, tmp_path, initialized):
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


def test_the_last_few_are_kept(path, tmp_path, initialized):
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
def test_all_are_kept_on_demand(path, tmp_path, keep, initialized):
    fs.Variable(1.0, name="v")
    saver = fs.train.Saver(max_to_keep=keep)
    with initialized() as sess:
        for step in range(7):
            saver.save(sess, path, step, write_meta_graph=False)
    assert len(names_in(tmp_path)) == 8


def test_one_every_few_hours_is_kept_for_good():
    kept, gone = Retention(max_to_keep=2, hours=2), []
    for hour in range(10):
        kept, more = kept.with_new(f"at{hour}", hour * 3600.0)
        gone += more
    assert gone == ["at0", "at1", "at3", "at5", "at7"]
    assert [name for name, _ in kept.kept] == ["at8", "at9"]
    assert kept.preserved == 6 * 3600


def test_a_checkpoint_that_is_written_again_counts_once(path, initialized):
    fs.Variable(1.0, name="v")
    saver = fs.train.Saver(max_to_keep=2)
    with initialized() as sess:
        for name in ("a", "b", "a"):
            saver.save(sess, f"{path}-{name}")
    assert saver.last_checkpoints == [f"{path}-b", f"{path}-a"]
    assert fs.train.checkpoint_exists(f"{path}-b")


def test_a_new_saver_takes_up_the_checkpoints_of_an_old_one(path, tmp_path, initialized):
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


def test_names_of_checkpoints(path, tmp_path, initialized):
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


def test_relative_paths_survive_a_move(path, tmp_path, monkeypatch, initialized):
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
    with pytest.raises(ValueError, match="there is no checkpoint in"):
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


def test_the_state_of_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(errors.NotFoundError, match="there is no"):
        fs.train.update_checkpoint_state(str(tmp_path / "missing"), "x")
