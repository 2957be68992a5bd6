"""Element types of a few bits, under TensorFlow's names, to keep and to cast; lossy transfers;
reductions over devices; codes of gradients."""

import typing as _typing

from flowscope.api.absent import refusal as _refusal
from flowscope.graph.values.dtypes import (
    float8_e4m3b11fnuz as float8_e4m3b11fnuz,
    float8_e4m3fn as float8_e4m3fn,
    float8_e4m3fnuz as float8_e4m3fnuz,
    float8_e5m2 as float8_e5m2,
    float8_e5m2fnuz as float8_e5m2fnuz,
    int2 as int2,
    int4 as int4,
    uint2 as uint2,
    uint4 as uint4,
)
from flowscope.ops.array.all_reduce import (
    build_shuffle_all_reduce as build_shuffle_all_reduce,
)
from flowscope.ops.core.lossy_transfers import lossy_transfer as lossy_transfer
from flowscope.train.optimizers.compressed import (
    bfloat16_codec as bfloat16_codec,
    compress_gradients as compress_gradients,
    top_k_codec as top_k_codec,
)

if not _typing.TYPE_CHECKING:  # type checkers know which names there are
    __getattr__ = _refusal(__name__, globals())
