"""Sparse tensors, under TensorFlow's names.

Written by `python -m flowscope.api.exports`: what is changed here is lost.
"""

from flowscope.ops.array.segments import (
    sparse_segment_mean as segment_mean,
    sparse_segment_sqrt_n as segment_sqrt_n,
    sparse_segment_sum as segment_sum,
)
from flowscope.ops.sparse.arithmetic import (
    sparse_add as add,
    sparse_maximum as maximum,
    sparse_minimum as minimum,
    sparse_reduce_max as reduce_max,
    sparse_reduce_max_sparse as reduce_max_sparse,
    sparse_reduce_sum as reduce_sum,
    sparse_reduce_sum_sparse as reduce_sum_sparse,
    sparse_softmax as softmax,
    sparse_tensor_dense_matmul as matmul,
    sparse_tensor_dense_matmul as sparse_dense_matmul,
)
from flowscope.ops.sparse.array_ops import (
    expand_dims as expand_dims,
    sparse_concat as concat,
    sparse_fill_empty_rows as fill_empty_rows,
    sparse_reorder as reorder,
    sparse_reset_shape as reset_shape,
    sparse_reshape as reshape,
    sparse_retain as retain,
    sparse_slice as slice,
    sparse_split as split,
    sparse_transpose as transpose,
)
from flowscope.ops.sparse.conversion import (
    eye as eye,
    from_dense as from_dense,
    sparse_mask as mask,
    sparse_merge as merge,
    sparse_tensor_to_dense as to_dense,
    sparse_to_indicator as to_indicator,
)
from flowscope.ops.sparse.sparse_tensor import (
    SparseTensor as SparseTensor,
    sparse_placeholder as placeholder,
)
from flowscope.ops.state.containers.accumulators import (
    SparseConditionalAccumulator as SparseConditionalAccumulator,
)

__all__ = [
    "SparseConditionalAccumulator",
    "SparseTensor",
    "add",
    "concat",
    "expand_dims",
    "eye",
    "fill_empty_rows",
    "from_dense",
    "mask",
    "matmul",
    "maximum",
    "merge",
    "minimum",
    "placeholder",
    "reduce_max",
    "reduce_max_sparse",
    "reduce_sum",
    "reduce_sum_sparse",
    "reorder",
    "reset_shape",
    "reshape",
    "retain",
    "segment_mean",
    "segment_sqrt_n",
    "segment_sum",
    "slice",
    "softmax",
    "sparse_dense_matmul",
    "split",
    "to_dense",
    "to_indicator",
    "transpose",
]
