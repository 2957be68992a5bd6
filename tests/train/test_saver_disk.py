"""What disks and hostile files do to savers: full ones, damage, leftovers, paths of others."""

import json
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")
errors = fs.errors


def names_in(folder):
    return sorted(p.name for p in Path(folder).iterdir())


@pytest.fixture
def small_disk(monkeypatch):
    """Lets no file grow beyond a number of bytes."""
    # Python takes no notice where it could write but a part of a module's bytecode.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, old[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, old)


def test_a_full_disk_leaves_the_old_checkpoint_and_no_parts(path, initialized, small_disk):
    v, big = fs.Variable(fs.ones([100]), name="v"), fs.Variable(fs.ones([9000]), name="big")
    small, both = fs.train.Saver([v]), fs.train.Saver([v, big])
    with initialized() as sess:
        small.save(sess, path)
        before = names_in(Path(path).parent)
        sess.run(v.assign_add(fs.ones([100])))
        small_disk(20_000)
        with pytest.raises(errors.ResourceExhaustedError, match="model.safetensors"):
            both.save(sess, path)
        assert names_in(Path(path).parent) == before
        assert (fs.train.load_variable(path, "v") == 1).all()
        small_disk(2_000)
        for write in (
            lambda: small.export_meta_graph(path + ".other"),
            lambda: fs.train.write_graph(fs.get_default_graph(), Path(path).parent, "g.json"),
        ):
            with pytest.raises(errors.ResourceExhaustedError):
                write()
        assert names_in(Path(path).parent) == before


def test_a_state_that_cannot_be_written_deletes_nothing(path, initialized, small_disk):
    fs.Variable(1.0, name="v")
    saver = fs.train.Saver(max_to_keep=1)
    with initialized() as sess:
        first = saver.save(sess, path, 1, write_meta_graph=False)
        (Path(path).parent / "checkpoint").unlink()
        (Path(path).parent / "checkpoint").mkdir()
        with pytest.raises(errors.OpError):
            saver.save(sess, path, 2, write_meta_graph=False)
        assert fs.train.checkpoint_exists(first)
        assert saver.last_checkpoints == [first]


@pytest.mark.parametrize("folder", ["file/deeper", "x" * 300, "nul\0"])
def test_paths_that_no_file_can_have(tmp_path, initialized, folder):
    fs.Variable(1.0, name="v")
    (tmp_path / "file").touch()
    with initialized() as sess, pytest.raises(ValueError, match="model|null"):
        fs.train.Saver().save(sess, f"{tmp_path}/{folder}/model")


# -- damage ---------------------------------------------------------------------------------------


def test_a_changed_byte_is_data_loss_and_changes_nothing(path, initialized):
    variables = [
        fs.Variable(np.arange(50, dtype=np.float32), name="v"),
        fs.Variable([b"some", b"strings"], name="s"),
        fs.Variable(np.complex64(1 + 2j), name="c"),
    ]
    saver = fs.train.Saver()
    with initialized() as sess:
        saver.save(sess, path)
        file = Path(path + ".safetensors")
        good = file.read_bytes()
        start = 8 + int.from_bytes(good[:8], "little")
        want = sess.run(variables)
        for at in (start, start + 100, len(good) - 1):
            file.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
            for partial in (False, True):
                with pytest.raises(errors.DataLossError, match="model.safetensors"):
                    saver.restore(sess, path, partial=partial)
            for got, wanted in zip(sess.run(variables), want, strict=True):
                np.testing.assert_array_equal(got, wanted)


def test_parts_of_a_damaged_tensor_are_not_read(path, initialized):
    def whole_and_parts(count):
        cut = fs.fixed_size_partitioner(count)
        return fs.get_variable("v", [60], partitioner=cut)

    with fs.variable_scope("", reuse=fs.AUTO_REUSE):
        whole_and_parts(3)
    saver = fs.train.Saver()
    with initialized() as sess:
        saver.save(sess, path)
        file = Path(path + ".safetensors")
        data = bytearray(file.read_bytes())
        data[-1] ^= 1  # in the last part
        file.write_bytes(data)
        with pytest.raises(errors.DataLossError):
            saver.restore(sess, path)


def test_the_file_is_laid_out_as_the_format_asks(path, initialized):
    arrays = {"b": np.ones(3, np.int8), "d": np.ones(2), "h": np.ones(5, np.float16), "e": []}
    for name, value in arrays.items():
        fs.Variable(np.asarray(value, getattr(value, "dtype", np.float32)), name=name)
    with initialized() as sess:
        fs.train.Saver().save(sess, path)
    data = Path(path + ".safetensors").read_bytes()
    size = int.from_bytes(data[:8], "little")
    head = json.loads(data[8 : 8 + size])
    assert size % 8 == 0
    ends = sorted(f["data_offsets"] for n, f in head.items() if n != "__metadata__")
    assert [e[0] for e in ends[1:]] == [e[1] for e in ends[:-1]]
    assert all(head[n]["data_offsets"][0] % 8 == 0 for n in ("d",))
    assert set(json.loads(head["__metadata__"]["crc32"])) == set(arrays)


def test_names_that_the_format_has_no_place_for():
    v = fs.Variable(1.0)
    for name in ("__metadata__", "\ud800"):
        with pytest.raises(ValueError, match="no tensor of a checkpoint can be named"):
            fs.train.Saver({name: v})


# -- leftovers ------------------------------------------------------------------------------------

HOLDER = """
import fcntl, sys
file = open(sys.argv[1], "xb")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_leftovers_of_killed_processes_go_and_those_of_living_ones_stay(path, initialized):
    fs.Variable(1.0, name="v")
    folder = Path(path).parent
    dead = folder / ".model.safetensors.123-0123abcd.tmp"
    living = folder / ".model.safetensors.124-0123abcd.tmp"
    others = [folder / ".model.tmp", folder / "model.123-0123abcd.tmp"]
    for file in (dead, *others):
        file.touch()
    command = [sys.executable, "-c", HOLDER, str(living)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        with initialized() as sess:
            fs.train.Saver().save(sess, path)
        assert not dead.exists()
        assert living.exists()
        assert all(file.exists() for file in others)
        holder.communicate()


# -- what is not a saver's own --------------------------------------------------------------------


def test_nothing_is_deleted_that_is_not_beside_the_checkpoint_or_no_checkpoint(
    path, tmp_path, initialized
):
    fs.Variable(1.0, name="v")
    foreign = tmp_path / "weights.safetensors"
    with initialized() as sess:
        victim = fs.train.Saver().save(sess, tmp_path / "other" / "victim")
        foreign.write_bytes(b"not ours")
        saver = fs.train.Saver(max_to_keep=1)
        old = fs.train.Saver().save(sess, path, 1)
        listed = [f"{tmp_path}/x/../other/victim", victim, str(tmp_path / "weights"), old]
        saver.recover_last_checkpoints(listed)
        saver.set_last_checkpoints_with_time([(p, 0.0) for p in listed])
        saver.save(sess, path, 2)
    assert fs.train.checkpoint_exists(victim)
    assert foreign.exists()
    assert not fs.train.checkpoint_exists(old)


def test_own_checkpoints_are_deleted_in_whatever_folder(tmp_path, initialized):
    fs.Variable(1.0, name="v")
    saver = fs.train.Saver(max_to_keep=1)
    with initialized() as sess:
        first = saver.save(sess, tmp_path / "a" / "model")
        saver.save(sess, tmp_path / "b" / "model")
    assert not fs.train.checkpoint_exists(first)


HEAD = {"format": "flowscope-checkpoints", "version": 1, "last_preserved_timestamp": None}
PATHS = {"all_model_checkpoint_paths": [], "all_model_checkpoint_timestamps": []}


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000, "null", "{}", b"\xff\xfe", json.dumps(HEAD),
        json.dumps({**HEAD, **PATHS, "model_checkpoint_path": 5}),
        json.dumps({**HEAD, **PATHS, "model_checkpoint_path": "a\0b"}),
        json.dumps({**HEAD, **PATHS, "model_checkpoint_path": "a",
                    "all_model_checkpoint_paths": {"a": 1}}),
        json.dumps({**HEAD, "model_checkpoint_path": "a", "all_model_checkpoint_paths": ["a"],
                    "all_model_checkpoint_timestamps": [10**400]}),
    ],
)  # fmt: skip
def test_a_hostile_state_file_is_data_loss(tmp_path, text):
    data = text if isinstance(text, bytes) else text.encode()
    (tmp_path / "checkpoint").write_bytes(data)
    for read in (fs.train.latest_checkpoint, fs.train.get_checkpoint_state):
        with pytest.raises(errors.DataLossError, match="checkpoint"):
            read(str(tmp_path))


def test_a_state_file_that_is_a_folder_is_data_loss(tmp_path):
    (tmp_path / "checkpoint").mkdir()
    with pytest.raises(errors.DataLossError):
        fs.train.latest_checkpoint(str(tmp_path))


# -- steps ----------------------------------------------------------------------------------------


def test_steps_of_every_integer_kind(path, initialized):
    step = fs.train.get_or_create_global_step()
    saver = fs.train.Saver()
    kinds = [3, True, np.int64(5), np.int32(4), np.uint8(9), np.array(6), step, step + 7, step.name]
    with initialized() as sess:
        got = [saver.save(sess, path, k, write_meta_graph=False) for k in kinds]
        numbers = [3, 1, 5, 4, 9, 6, 0, 7, 0]
        assert got == [f"{path}-{n}" for n in numbers]
        for bad in (1.5, np.array([1]), object(), np.float32(2)):
            with pytest.raises(TypeError, match="expected an integer"):
                saver.save(sess, path, bad)


def test_lists_that_savers_refuse():
    v = fs.Variable(1.0, name="v")
    for bad in (5, "v", [5], {5: v}, {"a": 5}, [None], v):
        with pytest.raises(TypeError, match="expected"):
            fs.train.Saver(bad)
    for bad in ([v, v], {"a": v, "b": v}, {"a": [v, fs.Variable(2.0)]}):
        with pytest.raises(ValueError, match="v"):
            fs.train.Saver(bad)
    with pytest.raises(NotImplementedError, match="write_version"):
        fs.train.Saver(write_version=fs.train.SaverDef.V1)
    with pytest.raises(RuntimeError, match="build"):
        fs.train.Saver(defer_build=True).save(fs.Session(), "x")
    with pytest.raises(TypeError, match="expected a session"):
        fs.train.Saver().save(None, "x")
    with pytest.raises(TypeError, match="expected a list of prefixes"):
        fs.train.Saver().set_last_checkpoints("abc")


def test_a_saver_goes_by_its_definition(path, initialized):
    v = fs.Variable(3.0, name="v")
    saver = fs.train.Saver(name="own", max_to_keep=3)
    definition = fs.train.SaverDef.FromString(saver.to_proto().SerializeToString())
    same = fs.train.Saver.from_proto(definition)
    assert same.saver_def == definition == saver.as_saver_def()
    assert saver.to_proto("other") is None
    assert saver.to_proto("own").restore_op_name == "restore_all"
    assert fs.train.Saver.from_proto(saver.to_proto("own"), "own").saver_def == definition
    names_only = fs.train.SaverDef()
    names_only.CopyFrom(definition)
    names_only.entries = []
    with initialized() as sess:
        prefix = same.save(sess, path)
        sess.run(v.assign(5.0))
        fs.train.Saver(saver_def=names_only).restore(sess, prefix)
        assert sess.run(v) == 3
    with pytest.raises(errors.DataLossError):
        fs.train.SaverDef.FromString(b"{")


def test_a_saver_without_variables_writes_the_graph(path, tmp_path):
    saver = fs.train.Saver(allow_empty=True)
    with fs.Session() as sess:
        assert saver.save(sess, path) is None
        assert names_in(tmp_path) == ["model.meta"]
        assert saver.restore(sess, path) is None


def test_a_graph_without_usual_attributes_reads_back(path, initialized):
    v = fs.Variable([[1.0]], name="v")
    fs.matmul(v, v, name="y")
    with initialized() as sess:
        saver = fs.train.Saver()
        saver.save(sess, path, strip_default_attrs=True)
    text = Path(path + ".meta").read_text()
    assert "transpose_a" not in text
    with fs.Graph().as_default():
        fs.train.import_meta_graph(path + ".meta").restore(other := fs.Session(), path)
        assert other.run("y:0") == 1
