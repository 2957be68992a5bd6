"""flowscope: a dataflow engine for machine-learning models, with a live view of it.

    import flowscope as fs

    x = fs.placeholder(fs.float32, [None, 2])
    y = fs.reduce_sum(fs.square(x))
    with fs.Session() as sess:
        sess.run(y, {x: [[1.0, 2.0]]})

Names, arguments and semantics are TensorFlow 1's wherever the concept exists there.
"""

import typing as _typing

from flowscope import (
    bitwise as bitwise,
    debugging as debugging,
    dtypes as dtypes,
    errors as errors,
    experimental as experimental,
    graph_util as graph_util,
    initializers as initializers,
    io as io,
    layers as layers,
    linalg as linalg,
    losses as losses,
    manip as manip,
    math as math,
    metrics as metrics,
    nest as nest,
    nn as nn,
    quantization as quantization,
    random as random,
    raw_ops as raw_ops,
    sets as sets,
    signal as signal,
    sparse as sparse,
    spectral as spectral,
    strings as strings,
    test as test,
    train as train,
)
from flowscope.absent import refusal as _refusal, refuse as _refuse
from flowscope.autodiff.custom_gradient import *
from flowscope.autodiff.gradients import (
    AggregationMethod as AggregationMethod,
    UnconnectedGradients as UnconnectedGradients,
    gradients as gradients,
)
from flowscope.autodiff.hessians import *
from flowscope.autodiff.recompute import *
from flowscope.autodiff.registry import *
from flowscope.cells import forget_cell as forget_cell
from flowscope.control.branches import *
from flowscope.control.function import *
from flowscope.control.functional import *
from flowscope.control.raw import *
from flowscope.control.record import *
from flowscope.control.tensor_array import *
from flowscope.control.version import *
from flowscope.control.while_loop import *
from flowscope.errors import (
    ControlFlowWarning as ControlFlowWarning,
    DeviceWarning as DeviceWarning,
    GraphGrowthWarning as GraphGrowthWarning,
    OpError as OpError,
)
from flowscope.graph.constant import (
    constant as constant,
    convert_to_tensor as convert_to_tensor,
)
from flowscope.graph.default import (
    get_default_graph as get_default_graph,
    get_default_session as get_default_session,
    reset_default_graph as reset_default_graph,
)
from flowscope.graph.devices import DeviceSpec as DeviceSpec
from flowscope.graph.dtypes import (
    QUANTIZED_DTYPES as QUANTIZED_DTYPES,
    DType as DType,
    as_dtype as as_dtype,
    bfloat16 as bfloat16,
    bfloat16_ref as bfloat16_ref,
    bool_ as bool,
    bool_ref as bool_ref,
    complex64 as complex64,
    complex64_ref as complex64_ref,
    complex128 as complex128,
    complex128_ref as complex128_ref,
    double as double,
    double_ref as double_ref,
    float16 as float16,
    float16_ref as float16_ref,
    float32 as float32,
    float32_ref as float32_ref,
    float64 as float64,
    float64_ref as float64_ref,
    half as half,
    half_ref as half_ref,
    int8 as int8,
    int8_ref as int8_ref,
    int16 as int16,
    int16_ref as int16_ref,
    int32 as int32,
    int32_ref as int32_ref,
    int64 as int64,
    int64_ref as int64_ref,
    qint8 as qint8,
    qint8_ref as qint8_ref,
    qint16 as qint16,
    qint16_ref as qint16_ref,
    qint32 as qint32,
    qint32_ref as qint32_ref,
    quint8 as quint8,
    quint8_ref as quint8_ref,
    quint16 as quint16,
    quint16_ref as quint16_ref,
    resource as resource,
    string as string,
    string_ref as string_ref,
    uint8 as uint8,
    uint8_ref as uint8_ref,
    uint16 as uint16,
    uint16_ref as uint16_ref,
    uint32 as uint32,
    uint32_ref as uint32_ref,
    uint64 as uint64,
    uint64_ref as uint64_ref,
    variant as variant,
)
from flowscope.graph.graph import Graph as Graph
from flowscope.graph.indexed_slices import *
from flowscope.graph.op import (
    Op as Op,
    Spec as Spec,
    register_kernel as register_kernel,
)
from flowscope.graph.operation import (
    Operation as Operation,
    Tensor as Tensor,
)
from flowscope.graph.scopes import *
from flowscope.graph.serialization.build import import_graph_def as import_graph_def
from flowscope.graph.serialization.definition import GraphDef as GraphDef, NodeDef as NodeDef
from flowscope.graph.serialization.meta import MetaGraphDef as MetaGraphDef
from flowscope.graph.shapes import (
    Dimension as Dimension,
    TensorShape as TensorShape,
    dimension_at_index as dimension_at_index,
    dimension_value as dimension_value,
)
from flowscope.graph.specs import *
from flowscope.graph.tensor_proto import *
from flowscope.live.ipython import (
    load_ipython_extension as load_ipython_extension,
    unload_ipython_extension as unload_ipython_extension,
)
from flowscope.live.progress import progress as progress
from flowscope.live.show import show as show
from flowscope.ops.array.arrays import *
from flowscope.ops.array.batch_gathering import *
from flowscope.ops.array.clipping import *
from flowscope.ops.array.moving import *
from flowscope.ops.array.patches import *
from flowscope.ops.array.segments import *
from flowscope.ops.array.sorting import *
from flowscope.ops.array.stitching import *
from flowscope.ops.array.tensor_scatters import *
from flowscope.ops.array.uniques import *
from flowscope.ops.core.casting import *
from flowscope.ops.core.flow import *
from flowscope.ops.core.static_values import *
from flowscope.ops.core.type_checks import *
from flowscope.ops.host.checks import *
from flowscope.ops.host.printing import *
from flowscope.ops.host.py_functions import *
from flowscope.ops.host.timing import *
from flowscope.ops.linalg.einsum import *
from flowscope.ops.linalg.factors import *
from flowscope.ops.linalg.matrices import *
from flowscope.ops.linalg.matrix_functions import *
from flowscope.ops.linalg.norms import *
from flowscope.ops.linalg.products import *
from flowscope.ops.linalg.solving import *
from flowscope.ops.linalg.spectra import *
from flowscope.ops.math.arithmetic import *
from flowscope.ops.math.counting import *
from flowscope.ops.math.elementwise import *
from flowscope.ops.math.logical import *
from flowscope.ops.math.reductions import *
from flowscope.ops.math.special import *
from flowscope.ops.objectives.confusion import *
from flowscope.ops.quantized.images import quantized_concat as quantized_concat
from flowscope.ops.quantized.quantization import *
from flowscope.ops.random.distributions import *
from flowscope.ops.random.normal_and_uniform import *
from flowscope.ops.signal.fourier import *
from flowscope.ops.sparse.arithmetic import *
from flowscope.ops.sparse.edit_distance import *
from flowscope.ops.sparse.forms import *
from flowscope.ops.sparse.sparse_tensor import *
from flowscope.ops.state.initializers import *
from flowscope.ops.state.locks import *
from flowscope.ops.state.matrix_initializers import orthogonal_initializer as orthogonal_initializer
from flowscope.ops.state.partitioned import *
from flowscope.ops.state.queues import *
from flowscope.ops.state.scatters import *
from flowscope.ops.state.template import *
from flowscope.ops.state.variable_lists import *
from flowscope.ops.state.variable_scope import *
from flowscope.ops.state.variables import *
from flowscope.ops.strings.elementwise import *
from flowscope.ops.strings.parsing import *
from flowscope.ops.strings.parts import *
from flowscope.runtime.config import *
from flowscope.runtime.containers import container as container
from flowscope.runtime.eager import EagerTensor as _EagerTensor
from flowscope.runtime.interactive import InteractiveSession as InteractiveSession
from flowscope.runtime.session import Session as Session
from flowscope.train.moving_averages import moving_average_variables as moving_average_variables

__version__ = "0.1.0"

if not _typing.TYPE_CHECKING:  # type checkers know which names there are
    __getattr__ = _refusal(__name__, globals())
    _refuse(
        (bitwise, debugging, dtypes, errors, experimental, graph_util, initializers, io, layers,
         linalg, losses, manip, math, metrics, nest, nn, quantization, random, raw_ops, sets,
         signal, sparse, spectral, strings, test, train)
    )  # fmt: skip
