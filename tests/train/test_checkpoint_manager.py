"""Managers of checkpoints: what they write, keep and take over."""

from pathlib import Path

import pytest

import flowscope as fs
from flowscope.errors import DTypeError, InvalidArgumentError


@pytest.fixture
def folder(tmp_path):
    return str(tmp_path / "model")


@pytest.fixture
def v(graph):
    return fs.get_variable("v", initializer=1.0)


@pytest.fixture
def saved(v, sess):
    sess.run(fs.global_variables_initializer())
    with sess.as_default():
        yield fs.train.Checkpoint(v=v)


def files(folder):
    return sorted(f.name for f in Path(folder).glob("*.safetensors"))


def test_the_last_few_are_kept(saved, folder):
    manager = fs.train.CheckpointManager(saved, folder, max_to_keep=2)
    assert (manager.latest_checkpoint, manager.checkpoints) == (None, [])
    paths = [manager.save() for _ in range(3)]
    assert paths == [f"{folder}/ckpt-{i}" for i in (1, 2, 3)]
    assert manager.checkpoints == paths[1:]
    assert manager.latest_checkpoint == paths[2]
    assert files(folder) == ["ckpt-2.safetensors", "ckpt-3.safetensors"]
    again = fs.train.CheckpointManager(saved, folder, max_to_keep=2)
    assert again.checkpoints == paths[1:]
    assert again.save(checkpoint_number=10) == f"{folder}/ckpt-10"
    assert files(folder) == ["ckpt-10.safetensors", "ckpt-3.safetensors"]
    assert again.save() == f"{folder}/ckpt-5"  # each save counts


def test_all_are_kept(saved, folder):
    manager = fs.train.CheckpointManager(saved, folder, None, checkpoint_name="m")
    for _ in range(7):
        manager.save()
    assert len(manager.checkpoints) == len(files(folder)) == 7
    assert manager.checkpoint is saved
    assert (manager.directory, manager.checkpoint_interval) == (folder, None)


def test_some_are_kept_for_good(saved, folder):
    manager = fs.train.CheckpointManager(saved, folder, 1, keep_checkpoint_every_n_hours=1e-12)
    for _ in range(4):
        manager.save()
    assert manager.checkpoints == [f"{folder}/ckpt-4"]
    assert "ckpt-2.safetensors" in files(folder)
    assert "ckpt-3.safetensors" in files(folder)


def test_restore_or_initialize(saved, v, sess, folder):
    called = []
    manager = fs.train.CheckpointManager(saved, folder, 3, init_fn=lambda: called.append(1))
    assert manager.restore_or_initialize() is None
    assert called == [1]
    path = manager.save()
    sess.run(v.assign(5.0))
    assert manager.restore_or_initialize() == path
    assert sess.run(v) == 1.0
    assert called == [1]


def test_an_interval_of_steps(saved, v, sess, folder):
    step = fs.get_variable("step", initializer=0)
    sess.run(step.initializer)
    manager = fs.train.CheckpointManager(saved, folder, 9, step_counter=step, checkpoint_interval=2)
    forward = step.assign_add(1)
    made = []
    for _ in range(5):
        made.append(manager.save() is not None)
        sess.run(forward)
    assert made == [True, False, True, False, True]
    assert manager.save(check_interval=False) is not None  # step 5, and the last one was of step 4
    assert manager.save(check_interval=False) is None
    manager = fs.train.CheckpointManager(
        saved, folder, 9, step_counter=step, checkpoint_interval=2, last_checkpoint_step=4
    )
    assert manager.save() is None
    manager.restore_or_initialize()
    assert manager.save(check_interval=False) is None


def test_errors(saved, v, folder):
    with pytest.raises(DTypeError, match=r"expected an fs.train.Checkpoint"):
        fs.train.CheckpointManager(v, folder, 3)
    with pytest.raises(InvalidArgumentError, match="expected a positive max_to_keep"):
        fs.train.CheckpointManager(saved, folder, 0)
    with pytest.raises(InvalidArgumentError, match="checkpoint_interval needs a step_counter"):
        fs.train.CheckpointManager(saved, folder, 1, checkpoint_interval=3)
    with pytest.raises(InvalidArgumentError, match="there are no options of checkpoints here"):
        fs.train.CheckpointManager(saved, folder, 1).save(options=object())
