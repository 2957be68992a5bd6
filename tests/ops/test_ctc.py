# ruff: noqa: E501  (numbers)
"""Connectionist temporal classification; numbers without another source are TensorFlow's."""

import itertools

import numpy as np
import pytest

import flowscope as fs

RNG = np.random.RandomState(0)
LOGITS = np.array(
    [
        [[0.7290906, 0.1289829, 1.1394007, -1.2348258], [0.4023416, -0.6848101, -0.8707972, -0.5788497]],
        [[-0.3115525, 0.0561653, -1.1651498, 0.9008265], [0.4656624, -1.5362437, 1.4882522, 1.8958892]],
        [[1.1787796, -0.1799248, -1.0707526, 1.0544517], [-0.4031769, 1.222445, 0.208275, 0.976639]],
        [[0.3563664, 0.7065732, 0.0105, 1.7858706], [0.1269121, 0.4019894, 1.8831507, -1.347759]],
        [[-1.270485, 0.9693967, -1.1731234, 1.9436212], [-0.413619, -0.7474548, 1.922942, 1.4805148]],
    ],
    "f4",
)  # fmt: skip
PLACES = np.array([[0, 0], [0, 1], [1, 0]])


def labels(values=(1, 2, 0), places=PLACES):
    return fs.SparseTensor(places, np.array(values, "i4"), [2, 2])


@pytest.mark.parametrize(
    ("options", "want"),
    [
        ({}, [4.5257707, 4.676511]),
        ({"preprocess_collapse_repeated": True}, [4.5257707, 4.676511]),
        ({"ctc_merge_repeated": False}, [4.912627, 5.0046086]),
        ({"time_major": False}, [4.5257707, 4.676511]),
    ],
)
def test_loss(graph, sess, options, want):
    x = LOGITS if options.get("time_major", True) else LOGITS.transpose(1, 0, 2)
    y = fs.nn.ctc_loss(labels(), x, [5, 4], **options)
    assert y.shape == [2]
    np.testing.assert_allclose(sess.run(y), want, rtol=1e-6)


def test_gradient(graph, sess):
    x = fs.constant(LOGITS)
    (g,) = fs.gradients(fs.nn.ctc_loss(labels(), x, [5, 4]), x)
    want = [
        [[0.3128573, -0.737881, 0.4715651, -0.0465414], [0.1031931, 0.1692655, 0.1405385, -0.4129974]],
        [[0.1604676, -0.0738747, -0.1217931, 0.0352004], [-0.0738676, 0.0166863, 0.3434649, -0.2862838]],
        [[0.4453287, 0.0424939, -0.261161, -0.2266615], [-0.1586741, 0.4270645, 0.1548977, -0.4232886]],
        [[0.1369189, 0.1846878, -0.3617247, 0.0401185], [-0.4956389, 0.1579434, 0.694643, -0.356948]],
        [[0.027491, 0.2582017, -0.1020371, -0.1836553], [0, 0, 0, 0]],
    ]  # fmt: skip
    np.testing.assert_allclose(sess.run(g), want, atol=1e-6)


def test_there_is_no_second_gradient(graph):
    x = fs.constant(LOGITS)
    (g,) = fs.gradients(fs.nn.ctc_loss(labels(), x, [5, 4]), x)
    with pytest.raises(LookupError, match="no second gradient"):
        fs.gradients(g, x)


def merged(path, blank, merges=True):
    kept = [c for i, c in enumerate(path) if not (merges and i and path[i - 1] == c)]
    return tuple(c for c in kept if c != blank)


def probabilities(logits, merges=True):
    """The probability of every labelling, by going through all paths."""
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    found = {}
    for path in itertools.product(range(p.shape[1]), repeat=len(p)):
        key = merged(path, p.shape[1] - 1, merges)
        found[key] = found.get(key, 0) + np.prod(p[np.arange(len(p)), list(path)])
    return found


@pytest.mark.parametrize("wanted", [(), (0,), (1, 1), (0, 1, 0), (0, 1, 1, 0), (1, 1, 1)])
def test_loss_and_gradient_from_all_paths(graph, sess, wanted):
    logits = np.random.default_rng(1).standard_normal((5, 1, 3))
    x = fs.constant(logits)
    places = [[0, i] for i in range(len(wanted))]
    sparse = fs.SparseTensor(
        np.reshape(places, (-1, 2)).astype("i8"), np.array(wanted, "i4"), [1, max(len(wanted), 1)]
    )
    y = fs.nn.ctc_loss(sparse, x, [5])
    got, slope = sess.run([y, fs.gradients(y, x)[0]])
    np.testing.assert_allclose(got, -np.log(probabilities(logits[:, 0])[wanted]), rtol=1e-9)
    for index in np.ndindex(5, 1, 3):
        moved = [logits.copy(), logits.copy()]
        moved[0][index] -= 1e-5
        moved[1][index] += 1e-5
        low, high = [-np.log(probabilities(m[:, 0])[wanted]) for m in moved]
        np.testing.assert_allclose(slope[index], (high - low) / 2e-5, atol=1e-7)


def test_a_labelling_that_no_path_gives_has_an_infinite_loss_and_no_gradient(graph, sess):
    sparse = fs.SparseTensor([[0, 0], [0, 1], [1, 0]], np.array([1, 1, 0], "i4"), [2, 2])
    x = fs.constant(LOGITS)
    y = fs.nn.ctc_loss(sparse, x, [2, 4])  # two equal labels need a blank between
    got, slope = sess.run([y, fs.gradients(y, x)[0]])
    assert got[0] == np.inf and np.isfinite(got[1])
    assert not slope[:, 0].any() and slope[:4, 1].any()


def test_more_labels_than_steps(graph, sess):
    with pytest.raises(fs.errors.InvalidArgumentError, match="2 labels for 1 steps in example 0"):
        sess.run(fs.nn.ctc_loss(labels(), LOGITS, [1, 4]))
    y = fs.nn.ctc_loss(labels(), LOGITS, [1, 4], ignore_longer_outputs_than_inputs=True)
    np.testing.assert_allclose(sess.run(y), [0, 4.676511], rtol=1e-6)


def test_repeated_labels_are_merged_first_if_asked_for(graph, sess):
    twice = labels((1, 1, 0))
    once = fs.SparseTensor([[0, 0], [1, 0]], np.array([1, 0], "i4"), [2, 1])
    got = sess.run(fs.nn.ctc_loss(twice, LOGITS, [5, 4], preprocess_collapse_repeated=True))
    np.testing.assert_array_equal(got, sess.run(fs.nn.ctc_loss(once, LOGITS, [5, 4])))


def test_dense_labels_and_another_blank(graph, sess):
    """Class c of the sparse form is c + 1 where the blank comes first."""
    rolled = np.roll(LOGITS, 1, 2)
    y = fs.nn.ctc_loss_v2([[2, 3], [1, 0]], rolled, [2, 1], [5, 4])
    np.testing.assert_allclose(sess.run(y), [4.5257707, 4.676511], rtol=1e-6)
    middle = LOGITS[..., [0, 3, 1, 2]]
    moved = fs.SparseTensor(PLACES, np.array([2, 3, 0], "i4"), [2, 2])
    y = fs.nn.ctc_loss_v2(moved, middle, None, [5, 4], blank_index=1)
    np.testing.assert_allclose(sess.run(y), [4.5257707, 4.676511], rtol=1e-6)
    y = fs.nn.ctc_loss_v2(labels(), LOGITS.transpose(1, 0, 2), None, [5, 4], False)
    np.testing.assert_allclose(sess.run(y), [4.5257707, 4.676511], rtol=1e-6)


def dense(value):
    out = np.full(value.dense_shape, -1)
    out[tuple(value.indices.T)] = value.values
    return out.tolist()


def test_greedy_decoder(graph, sess):
    (found,), scores = fs.nn.ctc_greedy_decoder(LOGITS, [5, 4])
    value, sums = sess.run([found, scores])
    assert dense(value) == [[2, 0, -1], [0, 1, 2]]
    np.testing.assert_allclose(sums, [[-6.9484982], [-5.4038267]], rtol=1e-6)


def test_greedy_decoder_merges_repeats_and_takes_another_blank(graph, sess):
    steps = np.eye(3, dtype="f4")[[1, 1, 0, 1, 2, 2]][:, None]
    results = [
        fs.nn.ctc_greedy_decoder(steps, [6])[0][0],
        fs.nn.ctc_greedy_decoder(steps, [6], merge_repeated=False)[0][0],
        fs.nn.ctc_greedy_decoder(steps, [6], blank_index=0)[0][0],
    ]
    found = [dense(v) for v in sess.run(results)]
    assert found == [[[1, 0, 1]], [[1, 1, 0, 1]], [[1, 1, 2]]]


@pytest.mark.parametrize(
    ("width", "second", "scores"),
    [
        (10, [[2, 1, -1], [0, 1, 2]], [[-2.2603142, -2.5049071], [-1.897378, -2.2385373]]),
        (3, [[2, -1, -1], [0, 1, 2]], [[-2.586513, -3.1059377], [-1.897378, -2.280962]]),
    ],
)
def test_beam_search_decoder(graph, sess, width, second, scores):
    paths, logs = fs.nn.ctc_beam_search_decoder_v2(LOGITS, [5, 4], width, 2)
    first, other, got = sess.run([*paths, logs])
    assert dense(first) == [[2, 0], [0, 2]]
    assert dense(other) == second
    np.testing.assert_allclose(got, scores, rtol=1e-6)


def test_a_wide_beam_finds_the_likeliest_labellings(graph, sess):
    logits = np.random.default_rng(3).standard_normal((5, 1, 3))
    paths, logs = fs.nn.ctc_beam_search_decoder(logits, [5], 200, 4, merge_repeated=False)
    ranked = sorted(probabilities(logits[:, 0]).items(), key=lambda item: -item[1])[:4]
    found, got = sess.run([paths, logs])
    assert [tuple(v.values) for v in found] == [labels for labels, _ in ranked]
    np.testing.assert_allclose(np.exp(got[0]), [p for _, p in ranked], rtol=1e-9)


def test_repeats_in_what_was_found_are_merged_if_asked_for(graph, sess):
    steps = 9 * np.eye(3, dtype="f4")[[1, 2, 1, 0]][:, None]
    kept, merged_ = [
        fs.nn.ctc_beam_search_decoder(steps, [4], 10, 1, merge)[0][0] for merge in (False, True)
    ]
    assert [dense(v) for v in sess.run([kept, merged_])] == [[[1, 1, 0]], [[1, 0]]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fs.nn.ctc_loss([[1]], LOGITS, [5, 4]), "a fs.SparseTensor"),
        (lambda: fs.nn.ctc_loss(labels(), LOGITS[0], [5, 4]), "rank 3"),
        (lambda: fs.nn.ctc_loss(labels(), LOGITS, [5, 4, 3]), r"one length per example: \[2\]"),
        (lambda: fs.nn.ctc_beam_search_decoder(LOGITS, [5, 4], 2, 3), r"top_paths in \[1, 2\]"),
        (lambda: fs.nn.ctc_loss_v2([[1]], LOGITS, None, [5, 4]), "label_length"),
    ],
)
def test_errors_of_shapes(graph, call, message):
    with pytest.raises(fs.errors.InvalidArgumentError, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fs.nn.ctc_loss(labels((1, 3, 0)), LOGITS, [5, 4]), r"labels in \[0, 3\), got 3"),
        (lambda: fs.nn.ctc_loss(labels(), LOGITS, [5, 6]), r"lengths in \[0, 5\]"),
        (
            lambda: fs.nn.ctc_loss(labels(places=PLACES + np.array([1, 0])), LOGITS, [5, 4]),
            "labels of 2 examples, got number 2",
        ),
        (lambda: fs.nn.ctc_greedy_decoder(LOGITS, [5, 4], blank_index=7)[1], "blank_index in"),
    ],
)
def test_errors_of_values(graph, sess, call, message):
    with pytest.raises(fs.errors.InvalidArgumentError, match=message):
        sess.run(call())
