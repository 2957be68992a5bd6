"""Mathematical functions, under TensorFlow's names."""

import typing as _typing

from flowscope.absent import refusal as _refusal
from flowscope.ops.array.segments import *
from flowscope.ops.array.shaping import invert_permutation as invert_permutation
from flowscope.ops.core.casting import *
from flowscope.ops.linalg.products import *
from flowscope.ops.math import special as special
from flowscope.ops.math.arithmetic import *
from flowscope.ops.math.arithmetic import add_n as add_n
from flowscope.ops.math.counting import *
from flowscope.ops.math.elementwise import *
from flowscope.ops.math.logical import *
from flowscope.ops.math.reductions import *
from flowscope.ops.math.scans import *
from flowscope.ops.math.special import *
from flowscope.ops.nn.activations import softsign as softsign, zero_fraction as zero_fraction
from flowscope.ops.nn.normalization import l2_normalize as l2_normalize
from flowscope.ops.nn.softmax import log_softmax as log_softmax, softmax as softmax
from flowscope.ops.nn.top_k import in_top_k as in_top_k, top_k as top_k
from flowscope.ops.objectives.confusion import *

if not _typing.TYPE_CHECKING:  # type checkers know which names there are
    __getattr__ = _refusal(__name__, globals())
