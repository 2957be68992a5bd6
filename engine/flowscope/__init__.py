"""flowscope: a dataflow engine for machine-learning models, with a live view of it.

    import flowscope as fs

    x = fs.placeholder(fs.float32, [None, 2])
    y = fs.reduce_sum(fs.square(x))
    with fs.Session() as sess:
        sess.run(y, {x: [[1.0, 2.0]]})

Names, arguments and semantics are TensorFlow 1's wherever the concept exists there.
"""

from flowscope import errors, math, nest, nn, random, train
from flowscope.autodiff.gradients import AggregationMethod, UnconnectedGradients, gradients
from flowscope.errors import OpError
from flowscope.graph.constant import constant, convert_to_tensor, get_static_value
from flowscope.graph.default import (
    get_default_graph,
    get_default_session,
    reset_default_graph,
)
from flowscope.graph.devices import DeviceSpec
from flowscope.graph.dtypes import (
    DType,
    as_dtype,
    bfloat16,
    complex64,
    complex128,
    double,
    float16,
    float32,
    float64,
    half,
    int8,
    int16,
    int32,
    int64,
    resource,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
)
from flowscope.graph.dtypes import bool_ as bool
from flowscope.graph.graph import Graph
from flowscope.graph.op import Op, Spec, register_kernel
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.scopes import *
from flowscope.graph.shapes import Dimension, TensorShape, dimension_value
from flowscope.live.ipython import load_ipython_extension, unload_ipython_extension
from flowscope.live.progress import progress
from flowscope.live.show import show
from flowscope.ops.arrays import *
from flowscope.ops.casting import *
from flowscope.ops.elementwise import *
from flowscope.ops.flow import *
from flowscope.ops.initializers import *
from flowscope.ops.linalg import *
from flowscope.ops.logical import *
from flowscope.ops.random import *
from flowscope.ops.reductions import *
from flowscope.ops.variable_scope import *
from flowscope.ops.variables import *
from flowscope.runtime.config import *
from flowscope.runtime.session import InteractiveSession, Session, container

__version__ = "0.1.0"
