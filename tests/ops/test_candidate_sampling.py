"""Samplers of classes, and the losses on top of them."""

import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import InvalidArgumentError

TRUE = np.array([[0, 2], [3, 1]])
SAMPLERS = {
    "uniform": lambda **k: fs.nn.uniform_candidate_sampler(TRUE, 2, range_max=10, **k),
    "log_uniform": lambda **k: fs.nn.log_uniform_candidate_sampler(TRUE, 2, range_max=10, **k),
    "fixed": lambda **k: fs.nn.fixed_unigram_candidate_sampler(
        TRUE, 2, range_max=10, unigrams=range(1, 11), **k
    ),
}


def probabilities(name):
    n = np.arange(10.0)
    return {
        "uniform": np.full(10, 0.1),
        "log_uniform": np.log((n + 2) / (n + 1)) / np.log(11),
        "fixed": (n + 1) / 55,
    }[name]


@pytest.mark.parametrize("name", SAMPLERS)
def test_classes_come_as_often_as_expected(graph, sess, name):
    drawn, of_true, of_drawn = SAMPLERS[name](num_sampled=20000, unique=False, seed=1)
    assert (drawn.dtype, drawn.shape) == (fs.int64, (20000,))
    classes, true_count, drawn_count = sess.run([drawn, of_true, of_drawn])
    p = probabilities(name)
    np.testing.assert_allclose(np.bincount(classes, minlength=10) / 20000, p, atol=0.01)
    np.testing.assert_allclose(true_count, 20000 * p[TRUE], rtol=1e-5)
    np.testing.assert_allclose(drawn_count, 20000 * p[classes], rtol=1e-5)


@pytest.mark.parametrize("name", SAMPLERS)
def test_unique_classes_are_expected_at_most_once(graph, sess, name):
    sampler = SAMPLERS[name](num_sampled=4, unique=True, seed=1)
    seen = np.zeros(10)
    expected = np.zeros(2)
    for _ in range(300):
        classes, true_count, drawn_count = sess.run(list(sampler))
        assert len(set(classes)) == 4
        assert (drawn_count < 1).all() and (drawn_count > 0).all()
        seen[classes] += 1
        expected += true_count[0] / 300
    # How often classes 0 and 2 came, beside how often they were expected: an approximation.
    np.testing.assert_allclose(seen[[0, 2]] / 300, expected, atol=0.1)


def test_the_number_of_draws_decides_what_is_expected_of_unique_classes(graph, sess):
    """Numbers of TensorFlow: five draws of ten classes gave four different ones."""
    _, _, drawn = fs.nn.uniform_candidate_sampler(TRUE, 2, 10, True, 10, seed=1)
    (count,) = set(sess.run(drawn).round(5))
    tries = np.log1p(-count) / np.log(0.9)
    assert tries == pytest.approx(round(tries), abs=1e-3)


def test_every_run_draws_anew_and_a_seed_repeats_it():
    def runs():
        with fs.Graph().as_default(), fs.Session() as sess:
            drawn = SAMPLERS["uniform"](num_sampled=8, unique=False, seed=3)[0]
            return [sess.run(drawn).tolist() for _ in range(2)]

    first, second = runs()
    assert first != second
    assert runs() == [first, second]


def test_all_candidate_sampler(graph, sess):
    drawn, of_true, of_drawn = fs.nn.all_candidate_sampler(TRUE, 2, 5, True)
    np.testing.assert_array_equal(sess.run(drawn), np.arange(5))
    np.testing.assert_array_equal(sess.run(of_true), np.ones((2, 2)))
    np.testing.assert_array_equal(sess.run(of_drawn), np.ones(5))


def test_fixed_unigrams_from_a_file_with_reserved_classes(graph, sess, tmp_path):
    path = tmp_path / "words"
    path.write_text("the,4\na,1\n\nof,9\n")
    drawn, counts, _ = fs.nn.fixed_unigram_candidate_sampler(
        [[0, 3]], 2, 1000, False, 4, str(path), distortion=0.5, num_reserved_ids=1
    )
    classes, expected = sess.run([drawn, counts])
    np.testing.assert_allclose(np.bincount(classes) / 1000, [0, 2 / 6, 1 / 6, 3 / 6], atol=0.06)
    np.testing.assert_allclose(expected, [[0, 500]])


def test_a_shard_draws_its_own_classes_alone(graph, sess):
    drawn = fs.nn.fixed_unigram_candidate_sampler(
        [[0]], 1, 50, False, 6, unigrams=[1.0, 2, 3, 4, 5, 6], num_shards=2, shard=1
    )[0]
    assert set(sess.run(drawn)) == {0, 1, 2}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fs.nn.uniform_candidate_sampler(TRUE, 2, 4, True, 3), "at most 3 different"),
        (lambda: fs.nn.uniform_candidate_sampler(TRUE, 3, 4, True, 9), r"shape \[\?,3\]"),
        (
            lambda: fs.nn.fixed_unigram_candidate_sampler(TRUE, 2, 1, False, 3),
            "one of vocab_file and unigrams",
        ),
        (
            lambda: fs.nn.fixed_unigram_candidate_sampler(TRUE, 2, 1, False, 3, unigrams=[1]),
            "expected 3 frequencies, got 1",
        ),
        (
            lambda: fs.nn.fixed_unigram_candidate_sampler(TRUE, 2, 2, True, 2, unigrams=[0, 1]),
            "weights above 0 for 2 classes",
        ),
        (lambda: fs.nn.nce_loss([[1.0]], [1.0], [[0]], [[1.0]], 1, 1, 1, ([0], [1.0])), "got 2"),
    ],
)
def test_errors(graph, call, message):
    with pytest.raises(fs.errors.InvalidArgumentError, match=message):
        call()


def test_compute_accidental_hits(graph, sess):
    """Of a class that was drawn twice the last one counts, as in TensorFlow."""
    hits = fs.nn.compute_accidental_hits(TRUE, [2, 5, 3, 2], 2)
    examples, places, lowest = sess.run(list(hits))
    np.testing.assert_array_equal(examples, [0, 1])
    np.testing.assert_array_equal(places, [3, 2])
    np.testing.assert_array_equal(lowest, np.full(2, np.finfo("f4").min))
    none = sess.run(list(fs.nn.compute_accidental_hits(TRUE, np.zeros(0, "i8"), 2)))
    assert [v.size for v in none] == [0, 0, 0]


# -- losses: the numbers are TensorFlow's ----------------------------------------------------------

RNG = np.random.RandomState(0)
RNG.randn(2, 2, 2, 3)
W, B, X = (RNG.randn(*s).astype("f4") for s in ((10, 3), (10,), (2, 3)))
DRAWN = (
    np.array([2, 5, 3, 7]),
    np.array([[0.4, 0.3], [0.2, 0.1]], "f4"),
    np.array([0.3, 0.2, 0.1, 0.4], "f4"),
)


@pytest.mark.parametrize(
    ("loss", "extra", "want"),
    [
        ("nce_loss", {}, [11.846718, 9.052919]),
        ("nce_loss", {"remove_accidental_hits": True}, [9.181298, 6.9152713]),
        ("sampled_softmax_loss", {}, [2.1792617, 1.7670937]),
        ("sampled_softmax_loss", {"remove_accidental_hits": False}, [2.3346844, 2.0596123]),
    ],
)
def test_losses_of_a_given_sample(graph, sess, loss, extra, want):
    y = getattr(fs.nn, loss)(W, B, TRUE, X, 4, 10, 2, sampled_values=DRAWN, **extra)
    np.testing.assert_allclose(sess.run(y), want, rtol=1e-5)


def test_a_table_in_parts(graph, sess):
    drawn = DRAWN[0], DRAWN[1][:, :1], DRAWN[2]
    parts = [W[::2], W[1::2]]
    y = fs.nn.sampled_softmax_loss(parts, B, TRUE[:, :1], X, 4, 10, 1, sampled_values=drawn)
    np.testing.assert_allclose(sess.run(y), [2.5756352, 1.584095], rtol=1e-5)


@pytest.mark.parametrize("loss", ["nce_loss", "sampled_softmax_loss"])
def test_a_step_touches_the_rows_of_the_true_and_drawn_classes_alone(graph, sess, loss):
    table = fs.Variable(np.zeros((1000, 3), "f4"), use_resource=True)
    bias = fs.Variable(np.zeros(1000, "f4"), use_resource=True)
    y = getattr(fs.nn, loss)(table, bias, [[7], [900]], X, 5, 1000)
    grads = fs.gradients(y, [table, bias])
    assert all(isinstance(g, fs.IndexedSlices) for g in grads)
    assert [g.values.shape.as_list() for g in grads] == [[7, 3], [7]]
    train = fs.train.GradientDescentOptimizer(0.1).minimize(y, var_list=[table, bias])
    sess.run(fs.global_variables_initializer())
    sess.run(train)
    changed = np.flatnonzero(sess.run(table).any(1))
    assert {7, 900} <= set(changed)
    assert len(changed) <= 7


def test_with_all_classes_drawn_it_is_the_full_softmax(graph, sess):
    labels = np.array([[1], [4]])
    everything = fs.nn.all_candidate_sampler(labels, 1, 10, True)
    sampled = fs.nn.sampled_softmax_loss(W, B, labels, X, 10, 10, 1, everything)
    full = fs.nn.sparse_softmax_cross_entropy_with_logits(
        labels=labels[:, 0], logits=fs.matmul(X, W, transpose_b=True) + B
    )
    np.testing.assert_allclose(sess.run(sampled), sess.run(full), rtol=1e-5)


def test_sharded_full_softmax_multiplies_beside_each_shard(graph, sess):
    """Each part of the output layer makes its own logits and its own gradient (SPEC O12)."""
    parts = [fs.Variable(W[i::2].T.copy(), use_resource=True, name=f"part{i}") for i in range(2)]
    labels = np.array([1, 4])
    logits = []
    for part in parts:
        with graph.colocate_with(part.op):
            logits.append(fs.matmul(X, part.read_value()))
    # Class c is column c // 2 of part c % 2.
    whole = fs.reshape(fs.stack(logits, 2), [2, 10])
    loss = fs.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=whole)
    grads = fs.gradients(loss, parts)
    table = fs.Variable(W, use_resource=True)
    single = fs.nn.sparse_softmax_cross_entropy_with_logits(
        labels=labels, logits=fs.matmul(X, table.read_value(), transpose_b=True)
    )
    (whole_grad,) = fs.gradients(single, [table])
    sess.run(fs.global_variables_initializer())
    got, want = sess.run([loss, single])
    np.testing.assert_allclose(got, want, rtol=1e-5)
    shards, together = sess.run([grads, whole_grad])
    for i, shard in enumerate(shards):
        np.testing.assert_allclose(shard, together[i::2].T, rtol=1e-5, atol=1e-6)
    for part, grad in zip(parts, grads, strict=True):
        assert part.op.name in str(logits[parts.index(part)].op.colocation_groups())
        assert grad.shape == part.shape


def test_learned_unigrams_are_drawn_as_often_as_they_came(graph, sess):
    classes = fs.placeholder(fs.int64, [None, 1])
    drawn = fs.nn.learned_unigram_candidate_sampler(classes, 1, 2000, False, 4)
    sess.run(fs.local_variables_initializer())
    first = sess.run(drawn, {classes: [[3]] * 96})
    np.testing.assert_allclose(first.true_expected_count, 500)
    second = sess.run(drawn, {classes: [[0]]})
    np.testing.assert_allclose(second.true_expected_count, 20)
    counts = np.bincount(second.sampled_candidates, minlength=4)
    assert counts[3] > 1850 > counts[:3].max()
    np.testing.assert_allclose(second.sampled_expected_count[second.sampled_candidates == 3], 1940)


def test_learned_unigrams_can_differ(graph, sess):
    drawn = fs.random.learned_unigram_candidate_sampler([[1], [2]], 1, 4, True, 4)
    sess.run(fs.local_variables_initializer())
    assert sorted(sess.run(drawn.sampled_candidates)) == [0, 1, 2, 3]
    with pytest.raises(InvalidArgumentError, match="at most 4 different"):
        fs.nn.learned_unigram_candidate_sampler([[1]], 1, 5, True, 4)
    wrong = fs.nn.learned_unigram_candidate_sampler([[7]], 1, 2, True, 4)
    sess.run(fs.local_variables_initializer())
    with pytest.raises(InvalidArgumentError, match="true classes in"):
        sess.run(wrong)
