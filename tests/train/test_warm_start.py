"""Variables that start from a checkpoint; the values and errors are those of TensorFlow 2.21."""

import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import DTypeError, InvalidArgumentError, NotFoundError

start = fs.train.init_from_checkpoint


@pytest.fixture
def saved(path):
    """A checkpoint with old/a = ones [2, 2] and old/b = (0, 1, 2, 3)."""
    with fs.Graph().as_default(), fs.Session() as sess, fs.variable_scope("old"):
        fs.get_variable("a", initializer=np.ones((2, 2), "f"))
        fs.get_variable("b", initializer=np.arange(4, dtype="f"))
        sess.run(fs.global_variables_initializer())
        return fs.train.Saver().save(sess, path)


@pytest.fixture
def new(graph):
    """Variables of another program."""
    with fs.variable_scope("new"):
        return (
            fs.get_variable("a", [2, 2]),
            fs.get_variable("b", [4], partitioner=fs.fixed_size_partitioner(2)),
            fs.Variable(np.full(4, 9, "f"), name="plain"),
        )


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_a_scope(saved, new, mode):
    a, b, plain = new
    start(saved, [("old/b", plain), ("old/a", "new/a"), ("old/b", "new/b")])
    with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
        sess.run(fs.global_variables_initializer())
        values = sess.run([a, b.as_tensor(), plain])
    assert [v.tolist() for v in values] == [[[1, 1], [1, 1]], [0, 1, 2, 3], [0, 1, 2, 3]]


@pytest.mark.parametrize(
    "assignment",
    [
        lambda a, b: {"old/": "new/"},
        lambda a, b: {"old/a": a, "old/b": b},
        lambda a, b: {"old/a": a, "old/b": list(b)},
        lambda a, b: [("old/a", "new/a"), ("old/b", "new/b")],
    ],
)
def test_what_an_assignment_map_may_be(saved, graph, sess, assignment):
    with fs.variable_scope("new"):
        a = fs.get_variable("a", [2, 2])
        b = fs.get_variable("b", [4], partitioner=fs.fixed_size_partitioner(2))
    start(saved, assignment(a, b))
    sess.run(fs.global_variables_initializer())
    assert sess.run(b.as_tensor()).tolist() == [0, 1, 2, 3]
    assert sess.run(a).tolist() == [[1, 1], [1, 1]]


def test_the_root_of_a_checkpoint(path, graph, sess):
    with fs.Graph().as_default(), fs.Session() as other:
        fs.get_variable("w", initializer=np.float32(5))
        other.run(fs.global_variables_initializer())
        saved = fs.train.Saver().save(other, path)
    with fs.variable_scope("tower"):
        w = fs.get_variable("w", [])
    start(path.rpartition("/")[0], {"/": "tower/"})
    assert w.initializer.name == "tower/w/Assign_1"
    assert w.initial_value.shape == []
    sess.run(w.initializer)
    assert sess.run([w, w.initialized_value()]) == [5, 5]
    assert saved


def test_what_does_not_fit_is_told_before_anything_changes(saved, new):
    a, _, plain = new
    before = [v.initializer for v in (a, plain)]
    for assignment, words in [
        ({"old/x": a, "old/a": plain}, "missing:  old/x(.|\n)*shape:    old/a: float32.4."),
        ({"old/": "none/"}, "there is no variable in the name scope 'none/'"),
        ({"old/a": "new/zz"}, "expected the name of a variable, or of scopes as in 'old/': 'new/'"),
        ({"old/a": "new/"}, "expected the name of a variable"),
    ]:  # fmt: skip
        with pytest.raises(InvalidArgumentError, match=words):
            start(saved, assignment)
    with pytest.raises(DTypeError, match="expected variables to save, got 3"):
        start(saved, {"old/a": 3})
    with pytest.raises(DTypeError, match="expected names in the checkpoint as keys"):
        start(saved, [(a, "old/a")])
    with pytest.raises(NotFoundError):
        start(f"{saved}-other", {"old/a": a})
    with pytest.raises(InvalidArgumentError, match="dtype:    old/a: int32"):
        start(saved, {"old/a": fs.get_variable("i", initializer=np.zeros((2, 2), "i"))})
    assert [v.initializer for v in (a, plain)] == before


def test_warm_start(saved, new, sess):
    a, b, plain = new
    fs.train.warm_start(
        saved, ["new/[ab]"], var_name_to_prev_var_name={"new/a": "old/a", "new/b": "old/b"}
    )
    sess.run(fs.global_variables_initializer())
    assert [v.tolist() for v in sess.run([a, b.as_tensor(), plain])] == [
        [[1, 1], [1, 1]], [0, 1, 2, 3], [9, 9, 9, 9],
    ]  # fmt: skip
    fs.train.warm_start(saved, [plain], var_name_to_prev_var_name={"new/plain": "old/b"})
    sess.run(plain.initializer)
    assert sess.run(plain).tolist() == [0, 1, 2, 3]
    fs.train.warm_start(saved, "new/a", var_name_to_prev_var_name={"new/a": "old/a"})
    before = a.initializer
    fs.train.warm_start(saved, None, var_name_to_prev_var_name={"new/a": "old/a"})
    assert a.initializer is before


def test_errors_of_warm_start(saved, new):
    a, _, _ = new
    with pytest.raises(InvalidArgumentError, match=r"are chosen, \['new/a'\], got \['new/q'\]"):
        fs.train.warm_start(saved, "new/a", var_name_to_prev_var_name={"new/q": "old/b"})
    for given in ([a, "x"], 7):
        with pytest.raises(DTypeError, match="expected a regular expression, a list of them or"):
            fs.train.warm_start(saved, given)
    with pytest.raises(InvalidArgumentError, match="missing:  new/a"):
        fs.train.warm_start(saved, "new/a")


@pytest.fixture
def words(tmp_path):
    (tmp_path / "new").write_text("x\ny\nz\n")
    (tmp_path / "old").write_text("y\nq\n")
    return str(tmp_path / "new"), 3, 1, str(tmp_path / "old")


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("in_parts", [False, True])
def test_rows_of_words_move_to_their_new_places(saved, words, graph, sess, axis, in_parts):
    shape = [4, 2] if axis == 0 else [2, 4]
    cut = fs.fixed_size_partitioner(2) if in_parts else None
    a = fs.get_variable("a", shape, partitioner=cut)
    backup = fs.constant_initializer(7.0)
    info = fs.train.VocabInfo(*words, backup_initializer=backup, axis=axis)
    fs.train.warm_start(saved, None, {"a": info}, {"a": "old/a"})
    sess.run(fs.global_variables_initializer())
    wanted = np.full((4, 2), 7.0)
    wanted[1] = 1
    assert (
        sess.run(fs.convert_to_tensor(a)).tolist() == (wanted if axis == 0 else wanted.T).tolist()
    )


def test_words_that_do_not_fit(saved, words, graph):
    new, size, _, old = words
    a = fs.get_variable("a", [5, 2])
    info = fs.train.VocabInfo(*words)
    with pytest.raises(InvalidArgumentError, match=r"of shape \[4,2\]: one row per word"):
        fs.train.warm_start(saved, [a], {"a": info}, {"a": "old/a"})
    with pytest.raises(InvalidArgumentError, match="expected 9 words in .*, got 3"):
        fs.train.warm_start(saved, [a], {"a": fs.train.VocabInfo(new, 9, 0, old)}, {"a": "old/a"})
    with pytest.raises(InvalidArgumentError, match="expected the axis 0 or 1, got 2"):
        fs.train.VocabInfo(new, size, 0, old, axis=2)
    with pytest.raises(InvalidArgumentError, match="missing:  a"):
        fs.train.warm_start(saved, [a], {"a": info})
