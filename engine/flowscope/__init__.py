"""flowscope: a dataflow engine for machine-learning models, with a live view of it.

    import flowscope as fs

    x = fs.placeholder(fs.float32, [None, 2])
    y = fs.reduce_sum(fs.square(x))
    with fs.Session() as sess:
        sess.run(y, {x: [[1.0, 2.0]]})

Names, arguments and semantics are TensorFlow 1's wherever the concept exists there.
"""

from flowscope import (
    errors as errors,
)
from flowscope import (
    math as math,
)
from flowscope import (
    nest as nest,
)
from flowscope import (
    nn as nn,
)
from flowscope import (
    random as random,
)
from flowscope import (
    train as train,
)
from flowscope.autodiff.gradients import (
    AggregationMethod as AggregationMethod,
)
from flowscope.autodiff.gradients import (
    UnconnectedGradients as UnconnectedGradients,
)
from flowscope.autodiff.gradients import (
    gradients as gradients,
)
from flowscope.errors import OpError as OpError
from flowscope.graph.constant import (
    constant as constant,
)
from flowscope.graph.constant import (
    convert_to_tensor as convert_to_tensor,
)
from flowscope.graph.constant import (
    get_static_value as get_static_value,
)
from flowscope.graph.default import (
    get_default_graph as get_default_graph,
)
from flowscope.graph.default import (
    get_default_session as get_default_session,
)
from flowscope.graph.default import (
    reset_default_graph as reset_default_graph,
)
from flowscope.graph.devices import DeviceSpec as DeviceSpec
from flowscope.graph.dtypes import (
    DType as DType,
)
from flowscope.graph.dtypes import (
    as_dtype as as_dtype,
)
from flowscope.graph.dtypes import (
    bfloat16 as bfloat16,
)
from flowscope.graph.dtypes import bool_ as bool
from flowscope.graph.dtypes import (
    complex64 as complex64,
)
from flowscope.graph.dtypes import (
    complex128 as complex128,
)
from flowscope.graph.dtypes import (
    double as double,
)
from flowscope.graph.dtypes import (
    float16 as float16,
)
from flowscope.graph.dtypes import (
    float32 as float32,
)
from flowscope.graph.dtypes import (
    float64 as float64,
)
from flowscope.graph.dtypes import (
    half as half,
)
from flowscope.graph.dtypes import (
    int8 as int8,
)
from flowscope.graph.dtypes import (
    int16 as int16,
)
from flowscope.graph.dtypes import (
    int32 as int32,
)
from flowscope.graph.dtypes import (
    int64 as int64,
)
from flowscope.graph.dtypes import (
    resource as resource,
)
from flowscope.graph.dtypes import (
    string as string,
)
from flowscope.graph.dtypes import (
    uint8 as uint8,
)
from flowscope.graph.dtypes import (
    uint16 as uint16,
)
from flowscope.graph.dtypes import (
    uint32 as uint32,
)
from flowscope.graph.dtypes import (
    uint64 as uint64,
)
from flowscope.graph.graph import Graph as Graph
from flowscope.graph.op import (
    Op as Op,
)
from flowscope.graph.op import (
    Spec as Spec,
)
from flowscope.graph.op import (
    register_kernel as register_kernel,
)
from flowscope.graph.operation import (
    Operation as Operation,
)
from flowscope.graph.operation import (
    Tensor as Tensor,
)
from flowscope.graph.scopes import *
from flowscope.graph.shapes import (
    Dimension as Dimension,
)
from flowscope.graph.shapes import (
    TensorShape as TensorShape,
)
from flowscope.graph.shapes import (
    dimension_value as dimension_value,
)
from flowscope.live.ipython import (
    load_ipython_extension as load_ipython_extension,
)
from flowscope.live.ipython import (
    unload_ipython_extension as unload_ipython_extension,
)
from flowscope.live.progress import progress as progress
from flowscope.live.show import show as show
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
from flowscope.runtime.session import (
    InteractiveSession as InteractiveSession,
)
from flowscope.runtime.session import (
    Session as Session,
)
from flowscope.runtime.session import (
    container as container,
)

__version__ = "0.1.0"
