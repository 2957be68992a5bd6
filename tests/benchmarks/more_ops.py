"""More ops for `bench_ops.py --more`: arrays, segments, sorting, special functions, transforms.

Slower than twice TensorFlow's, and why:

- erf, erfinv, bessel_i0e: TensorFlow has vectorised approximations for float32; SciPy computes in
  float64, number by number. erf has one of its own here (`quick_erf`), at the speed of NumPy's
  passes; the others are rare.
- segment_max, segment max unsorted: NumPy has no loop that folds rows; they are gathered, a round
  for the second row of all segments, one for the third, ... (sums are sparse products).
- cholesky, inverse and triangular solves of many small matrices: NumPy calls LAPACK for one matrix
  after the other, on one thread.
- sparse add, embedding sparse: coordinates are put in order by a sort, which TensorFlow does in one
  merge of what is in order already; and its lookups hash.
- histogram: a pass each for shift, scale, both limits, the cast and the count.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _ids(fs: Any, i: Any) -> Any:
    """A rising segment for each row, ten rows each."""
    return fs.range(i.shape[0]) // 10


def _scattered(fs: Any, i: Any) -> Any:
    return fs.reshape(i.rows, [-1, 1])


def _definite(fs: Any, x: Any) -> Any:
    return fs.matmul(x, x, transpose_b=True) + 10.0 * fs.eye(x.shape.as_list()[-1])


def _sparse(fs: Any, i: Any, shuffled: bool = False) -> Any:
    places = fs.cast(i.places_in_order, fs.int64)
    if shuffled:
        places = fs.reverse(places, [0])
    return fs.SparseTensor(places, i.at_places, i.shape)


def _ids_of(fs: Any, i: Any) -> Any:
    places = fs.cast(i.places_in_order, fs.int64)
    return fs.SparseTensor(places, places[:, 1], i.shape)


#: As `bench_ops.OPS`.
MORE: dict[str, Callable[[Any, Any], Any]] = {
    "erf": lambda fs, i: fs.erf(i.x),
    "lgamma": lambda fs, i: fs.lgamma(i.positive),
    "digamma": lambda fs, i: fs.digamma(i.positive),
    "igamma": lambda fs, i: fs.igamma(i.positive, i.unit),
    "erfinv": lambda fs, i: fs.math.erfinv(i.unit),
    "bessel_i0e": lambda fs, i: fs.math.bessel_i0e(i.x),
    "xlog1py": lambda fs, i: fs.math.xlog1py(i.x, i.unit),
    "truncatediv": lambda fs, i: fs.truncatediv(i.ints, 7),
    "left_shift": lambda fs, i: fs.bitwise.left_shift(i.ints, 2),
    "roll": lambda fs, i: fs.roll(i.x, 3, 1),
    "space_to_depth": lambda fs, i: fs.space_to_depth(i.images, 2),
    "space_to_batch": lambda fs, i: fs.space_to_batch_nd(i.images, [2, 2], [[0, 0], [0, 0]]),
    "image patches": lambda fs, i: fs.extract_image_patches(
        i.images, [1, 3, 3, 1], [1, 1, 1, 1], [1, 1, 1, 1], "SAME"
    ),
    "matrix_band_part": lambda fs, i: fs.matrix_band_part(i.x, 3, 3),
    "matrix_diag": lambda fs, i: fs.matrix_diag(i.x[:, :10]),
    "segment_sum": lambda fs, i: fs.segment_sum(i.x, _ids(fs, i)),
    "segment_max": lambda fs, i: fs.segment_max(i.x, _ids(fs, i)),
    "segment sum unsorted": lambda fs, i: fs.unsorted_segment_sum(i.x, i.rows, 10),
    "segment max unsorted": lambda fs, i: fs.unsorted_segment_max(i.x, i.rows, 10),
    "segment mean unsorted": lambda fs, i: fs.unsorted_segment_mean(i.x, i.rows, 10),
    "segment sum of numbers": lambda fs, i: fs.unsorted_segment_sum(i.x, i.ints, 100),
    "segment product of numbers": lambda fs, i: fs.unsorted_segment_prod(i.unit, i.ints, 100),
    "tensor_scatter_update": lambda fs, i: fs.tensor_scatter_update(i.x, _scattered(fs, i), i.y),
    "tensor_scatter_add": lambda fs, i: fs.tensor_scatter_add(i.x, _scattered(fs, i), i.y),
    "batch gather": lambda fs, i: fs.gather(i.x, i.ints[:, :5], batch_dims=1),
    "sort": lambda fs, i: fs.sort(i.x, 1),
    "argsort": lambda fs, i: fs.argsort(i.x, 1),
    "unique": lambda fs, i: fs.unique(fs.reshape(i.ints, [-1])).idx,
    "bincount": lambda fs, i: fs.bincount(i.ints),
    "histogram": lambda fs, i: fs.histogram_fixed_width(i.unit, [0.0, 1.0], 50),
    "cumulative_logsumexp": lambda fs, i: fs.math.cumulative_logsumexp(i.x, 1),
    "dynamic_partition": lambda fs, i: fs.dynamic_partition(i.x, i.rows, 10)[0],
    "boolean_mask": lambda fs, i: fs.boolean_mask(i.x, i.mask),
    "where_v2": lambda fs, i: fs.where_v2(i.mask, i.x, i.row),
    "repeat": lambda fs, i: fs.repeat(i.x, 3, axis=0),
    "check_numerics": lambda fs, i: fs.check_numerics(i.x, "x") + 1.0,
    "cholesky": lambda fs, i: fs.cholesky(_definite(fs, i.matrices)),
    "cholesky small": lambda fs, i: fs.cholesky(_definite(fs, i.small_matrices)),
    "inverse": lambda fs, i: fs.matrix_inverse(i.matrices),
    "determinant": lambda fs, i: fs.matrix_determinant(i.matrices),
    "solve": lambda fs, i: fs.matrix_solve(i.small_matrices, i.sides),
    "triangular solve": lambda fs, i: fs.matrix_triangular_solve(i.small_matrices, i.sides),
    "qr": lambda fs, i: fs.qr(i.matrices)[0],
    "svd": lambda fs, i: fs.svd(i.matrices, compute_uv=False),
    "eigh": lambda fs, i: fs.self_adjoint_eigvals(_definite(fs, i.matrices)),
    "einsum": lambda fs, i: fs.einsum("bij,bjk->bik", i.matrices, i.matrices),
    "sparse product": lambda fs, i: fs.sparse_tensor_dense_matmul(_sparse(fs, i), i.square),
    "sparse add": lambda fs, i: fs.sparse_add(_sparse(fs, i), _sparse(fs, i)).values,
    "sparse reduce_sum": lambda fs, i: fs.sparse_reduce_sum(_sparse(fs, i), 1),
    "sparse to dense": lambda fs, i: fs.sparse_tensor_to_dense(_sparse(fs, i)),
    "sparse reorder": lambda fs, i: fs.sparse_reorder(_sparse(fs, i, shuffled=True)).values,
    "sparse softmax": lambda fs, i: fs.sparse_softmax(_sparse(fs, i)).values,
    "embedding sparse": lambda fs, i: fs.nn.embedding_lookup_sparse(
        i.square, _ids_of(fs, i), None, combiner="mean"
    ),
    "fft": lambda fs, i: fs.fft(fs.complex(i.x, i.y)),
    "rfft": lambda fs, i: fs.signal.rfft(i.x),
}
