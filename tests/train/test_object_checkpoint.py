"""Checkpoints of objects: variables by where a program holds them."""

import numpy as np
import pytest

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")
errors = fs.errors
VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"


def program(**more):
    v = fs.get_variable("v", initializer=np.float32(1.0))
    optimizer = fs.train.AdamOptimizer(0.1)
    step = fs.train.get_or_create_global_step()
    train = optimizer.minimize(v * v, global_step=step)
    return v, step, train, fs.train.Checkpoint(step=step, optimizer=optimizer, v=v, **more)


def test_training_goes_on_from_a_checkpoint(path, initialized):
    v, step, train, checkpoint = program()
    with initialized() as sess:
        assert checkpoint.save(path) == f"{path}-1"
        sess.run(train)
        latest = checkpoint.save(path)
        assert (latest, fs.train.latest_checkpoint(path.rpartition("/")[0])) == (f"{path}-2",) * 2
        sess.run(train)
        want = sess.run([v, step])
    names = [name.removesuffix(VALUE) for name, _ in fs.train.list_variables(latest)]
    assert names == [
        "optimizer/beta1_power", "optimizer/beta2_power", "save_counter", "step", "v",
        "v/.OPTIMIZER_SLOT/optimizer/m", "v/.OPTIMIZER_SLOT/optimizer/v",
    ]  # fmt: skip
    with fs.Graph().as_default(), fs.variable_scope("other_names"):
        v, step, train, checkpoint = program()
        status = checkpoint.restore(latest).assert_consumed()
        with fs.Session() as sess:
            status.run_restore_ops()
            sess.run(train)
            assert sess.run([v, step]) == want
            assert checkpoint.save(path) == f"{path}-3"


def test_variables_that_are_made_behind_restore_are_restored(path, initialized):
    *_, checkpoint = program()
    with initialized() as sess:
        saved = checkpoint.save(path)
        slots = sess.run(fs.global_variables())
    with fs.Graph().as_default():
        v = fs.get_variable("v", initializer=np.float32(9.0))
        optimizer, step = fs.train.AdamOptimizer(0.1), fs.train.create_global_step()
        status = fs.train.Checkpoint(step=step, optimizer=optimizer, v=v).restore(saved)
        with pytest.raises(AssertionError, match="no object holds"):
            status.assert_consumed()
        optimizer.minimize(v * v)
        status.assert_consumed()
        with fs.Session() as sess:
            status.initialize_or_restore()
            assert len(sess.run(fs.global_variables())) == len(slots)
            assert sess.run(v) == 1


def test_what_does_not_match_is_said_and_initialised(path, initialized):
    v = fs.Variable(2.0, name="v")
    w = fs.Variable([3.0, 4.0], name="w")
    with initialized() as sess:
        saved = fs.train.Checkpoint(v=v).write(path, sess)
        assert saved == path
        both = fs.train.Checkpoint(v=v, w=w)
        status = both.restore(saved)
        with pytest.raises(AssertionError, match="w/.ATTRIBUTES"):
            status.assert_existing_objects_matched()
        sess.run([v.assign(0.0), w.assign([0.0, 0.0])])
        status.expect_partial().run_restore_ops()
        assert sess.run(v) == 2 and not sess.run(w).any()
        status.assert_nontrivial_match().initialize_or_restore(sess)
        assert sess.run(w).tolist() == [3, 4]
        with pytest.raises(AssertionError, match="nothing of the checkpoint matches"):
            fs.train.Checkpoint(w=w).restore(saved).assert_nontrivial_match()
        with pytest.raises(ValueError, match="shape"):
            fs.train.Checkpoint(v=w).restore(saved).run_restore_ops()


def test_without_a_checkpoint_variables_are_initialised():
    v = fs.Variable(2.0)
    status = fs.train.Checkpoint(v=v).restore(None)
    with fs.Session() as sess:
        for call in (status.assert_consumed, status.run_restore_ops):
            with pytest.raises(AssertionError, match="no checkpoint was given"):
                call()
        status.initialize_or_restore()
        assert sess.run(v) == 2


def test_a_savers_checkpoint_is_read_by_names(path, initialized):
    v = fs.Variable(2.0, name="a/v")
    with initialized() as sess:
        fs.train.Saver().save(sess, path)
        sess.run(v.assign(0.0))
        fs.train.Checkpoint(anything=[v]).restore(path).initialize_or_restore()
        assert sess.run(v) == 2


def test_layers_lists_dicts_parts_and_checkpoints_within(path, initialized):
    layer = fs.layers.Dense(3, name="d")
    layer(fs.ones([1, 2]))
    shared = fs.Variable(1.0)
    cut = fs.get_variable("p", [4, 2], partitioner=fs.fixed_size_partitioner(2))
    inner = fs.train.Checkpoint(shared=shared)
    checkpoint = fs.train.Checkpoint(
        model=layer, inner=inner, rows=[shared, {"a/b": fs.Variable(5.0)}], cut=cut
    )
    with initialized() as sess:
        want = sess.run(fs.global_variables())
        checkpoint.write(path)
        names = {n.removesuffix(VALUE): s for n, s in fs.train.list_variables(path)}
        assert {"model/kernel", "model/bias", "cut"} <= set(names)
        assert names["cut"] == [4, 2] and "rows/1/a.Sb" in names
        assert sum("shared" in n or n == "rows/0" for n in names) == 1
        for v in fs.global_variables():
            sess.run(v.assign(fs.zeros_like(v)))
        checkpoint.restore(path).run_restore_ops()
        for got, wanted in zip(sess.run(fs.global_variables()[: len(want)]), want, strict=True):
            np.testing.assert_array_equal(got, wanted)


def test_bad_arguments(path):
    for bad in (5, "v", object(), None):
        with pytest.raises(TypeError, match="expected a variable, an optimizer"):
            fs.train.Checkpoint(a=bad)
    checkpoint = fs.train.Checkpoint(v=fs.Variable(1.0))
    with pytest.raises(errors.NotFoundError, match="there is no checkpoint"):
        checkpoint.restore(path)
    with pytest.raises(RuntimeError, match="no default session"):
        checkpoint.save(path)
    with fs.Session() as sess, pytest.raises(errors.FailedPreconditionError):
        checkpoint.save(path, sess)
