"""Mathematical functions, under TensorFlow's names."""

from flowscope.ops import special as special
from flowscope.ops.activations import softsign as softsign
from flowscope.ops.arithmetic import *
from flowscope.ops.casting import *
from flowscope.ops.confusion import *
from flowscope.ops.counting import *
from flowscope.ops.elementwise import *
from flowscope.ops.flow import add_n as add_n
from flowscope.ops.linalg import *
from flowscope.ops.logical import *
from flowscope.ops.losses import log_softmax as log_softmax, softmax as softmax
from flowscope.ops.nn import (
    in_top_k as in_top_k,
    top_k as top_k,
    zero_fraction as zero_fraction,
)
from flowscope.ops.normalization import l2_normalize as l2_normalize
from flowscope.ops.reductions import *
from flowscope.ops.segments import *
from flowscope.ops.shaping import invert_permutation as invert_permutation
from flowscope.ops.special import *
