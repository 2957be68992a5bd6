"""Mathematical functions, under TensorFlow's names."""

from flowscope.ops.casting import *
from flowscope.ops.elementwise import *
from flowscope.ops.linalg import *
from flowscope.ops.logical import *
from flowscope.ops.reductions import *
from flowscope.ops.segments import *
