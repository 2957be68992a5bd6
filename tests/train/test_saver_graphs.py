"""Saving and restoring as operations, and together with the graph."""

import numpy as np
import pytest

import flowscope as fs
from flowscope.ops.state.checkpoint_ops import restore, save

pytestmark = pytest.mark.usefixtures("graph")
errors = fs.errors


def as_bits(array):
    return np.asarray(array).tobytes()


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


def test_training_goes_on_from_a_file_without_the_program(path, tmp_path, initialized):
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


def test_a_graph_is_imported_into_a_scope(path, initialized):
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


def test_a_saver_from_the_definition_of_another(path, graph, initialized):
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
    with pytest.raises(ValueError, match="another graph"):
        fs.train.Saver(saver_def=fs.train.SaverDef("no:0", "no:0", "no"))
