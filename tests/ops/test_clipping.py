"""Clipping: slices, absent gradients, norms that are no numbers."""

import numpy as np
import pytest

import flowscope as fs

pytestmark = pytest.mark.usefixtures("graph")


def test_lists_with_slices_and_none(sess):
    slices = fs.IndexedSlices([[1.0, 2.0], [0.0, 2.0]], [0, 2], [3, 2])
    clipped, norm = fs.clip_by_global_norm([fs.constant([3.0, 4.0]), None, slices], 2.0)
    size = np.sqrt(9 + 16 + 1 + 4 + 4)
    assert clipped[1] is None and clipped[2].indices is slices.indices
    assert clipped[2].dense_shape is slices.dense_shape
    a, b, n = sess.run([clipped[0], clipped[2].values, norm])
    assert n == pytest.approx(size) == sess.run(fs.global_norm([None, [3.0, 4.0], slices]))
    np.testing.assert_allclose(a, np.array([3, 4]) * 2 / size, rtol=1e-6)
    np.testing.assert_allclose(b, np.array([[1, 2], [0, 2]]) * 2 / size, rtol=1e-6)


def test_what_is_short_enough_stays_and_a_norm_can_be_given(sess):
    x = fs.constant([3.0, 4.0])
    np.testing.assert_array_equal(sess.run(fs.clip_by_global_norm([x], 20.0)[0][0]), [3, 4])
    given = fs.clip_by_global_norm([x], 2.0, use_norm=fs.constant(10.0))[0][0]
    np.testing.assert_allclose(sess.run(given), [0.6, 0.8], rtol=1e-6)
    assert (sess.run(fs.clip_by_global_norm([fs.zeros([2])], 2.0)[0][0]) == 0).all()


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_a_norm_that_is_no_number_spoils_all(sess, bad):
    tensors = [fs.constant([bad, 1.0]), fs.constant([1.0])]
    clipped, norm = sess.run(fs.clip_by_global_norm(tensors, 2.0))
    assert not np.isfinite(norm)
    assert np.isnan(clipped[0]).all() and np.isnan(clipped[1]).all()


def test_slices_are_clipped_by_their_values(sess):
    slices = fs.IndexedSlices([[3.0], [-4.0]], [0, 2])
    by_value, by_norm = fs.clip_by_value(slices, -1.0, 1.0), fs.clip_by_norm(slices, 1.0)
    assert by_value.indices is by_norm.indices is slices.indices
    np.testing.assert_array_equal(sess.run(by_value.values), [[1], [-1]])
    np.testing.assert_allclose(sess.run(by_norm.values), [[0.6], [-0.8]], rtol=1e-6)


def test_limits_of_other_kinds(sess):
    x = fs.constant([3.0, 4.0])
    assert (sess.run(fs.clip_by_norm(x, -1.0)) == 0).all()
    limit = fs.constant(1.0, fs.float64)
    np.testing.assert_allclose(sess.run(fs.clip_by_norm(x, limit)), [0.6, 0.8], rtol=1e-6)
    rows = fs.clip_by_norm([[3.0, 4.0], [0.0, 0.0]], 1.0, axes=[1])
    np.testing.assert_allclose(sess.run(rows), [[0.6, 0.8], [0, 0]], rtol=1e-6)


def test_clear_errors():
    with pytest.raises(TypeError, match="expected a list of tensors"):
        fs.clip_by_global_norm(fs.ones([2]), 1.0)
    with pytest.raises(ValueError, match="at least one tensor"):
        fs.global_norm([None])
