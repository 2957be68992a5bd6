"""Written by `python -m flowscope.exports`: what is changed here is lost."""

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
from flowscope.autodiff.custom_gradient import (
    custom_gradient as custom_gradient,
    grad_pass_through as grad_pass_through,
)
from flowscope.autodiff.gradients import (
    AggregationMethod as AggregationMethod,
    UnconnectedGradients as UnconnectedGradients,
    gradients as gradients,
)
from flowscope.autodiff.hessians import (
    hessians as hessians,
)
from flowscope.autodiff.recompute import (
    recompute_grad as recompute_grad,
)
from flowscope.autodiff.registry import (
    NoGradient as NoGradient,
    NotDifferentiable as NotDifferentiable,
    RegisterGradient as RegisterGradient,
    no_gradient as no_gradient,
)
from flowscope.cells import (
    forget_cell as forget_cell,
)
from flowscope.control.branches import (
    case as case,
    cond as cond,
    switch_case as switch_case,
)
from flowscope.control.function import (
    function as function,
    get_function as get_function,
)
from flowscope.control.functional import (
    foldl as foldl,
    foldr as foldr,
    map_fn as map_fn,
    scan as scan,
    vectorized_map as vectorized_map,
)
from flowscope.control.raw import (
    merge as merge,
    switch as switch,
)
from flowscope.control.record import (
    record as record,
)
from flowscope.control.tensor_array import (
    TensorArray as TensorArray,
)
from flowscope.control.version import (
    control_flow_v2_enabled as control_flow_v2_enabled,
    disable_control_flow_v2 as disable_control_flow_v2,
    enable_control_flow_v2 as enable_control_flow_v2,
)
from flowscope.control.while_loop import (
    while_loop as while_loop,
)
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
from flowscope.graph.devices import (
    DeviceSpec as DeviceSpec,
)
from flowscope.graph.dtypes import (
    DType as DType,
    QUANTIZED_DTYPES as QUANTIZED_DTYPES,
    as_dtype as as_dtype,
    bfloat16 as bfloat16,
    bfloat16_ref as bfloat16_ref,
    bool_ as bool,
    bool_ref as bool_ref,
    complex128 as complex128,
    complex128_ref as complex128_ref,
    complex64 as complex64,
    complex64_ref as complex64_ref,
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
    int16 as int16,
    int16_ref as int16_ref,
    int32 as int32,
    int32_ref as int32_ref,
    int64 as int64,
    int64_ref as int64_ref,
    int8 as int8,
    int8_ref as int8_ref,
    qint16 as qint16,
    qint16_ref as qint16_ref,
    qint32 as qint32,
    qint32_ref as qint32_ref,
    qint8 as qint8,
    qint8_ref as qint8_ref,
    quint16 as quint16,
    quint16_ref as quint16_ref,
    quint8 as quint8,
    quint8_ref as quint8_ref,
    resource as resource,
    string as string,
    string_ref as string_ref,
    uint16 as uint16,
    uint16_ref as uint16_ref,
    uint32 as uint32,
    uint32_ref as uint32_ref,
    uint64 as uint64,
    uint64_ref as uint64_ref,
    uint8 as uint8,
    uint8_ref as uint8_ref,
    variant as variant,
)
from flowscope.graph.graph import (
    Graph as Graph,
)
from flowscope.graph.indexed_slices import (
    IndexedSlices as IndexedSlices,
    IndexedSlicesValue as IndexedSlicesValue,
    convert_to_tensor_or_indexed_slices as convert_to_tensor_or_indexed_slices,
)
from flowscope.graph.op import (
    Op as Op,
    Spec as Spec,
    register_kernel as register_kernel,
)
from flowscope.graph.operation import (
    Operation as Operation,
    Tensor as Tensor,
)
from flowscope.graph.scopes import (
    add_to_collection as add_to_collection,
    add_to_collections as add_to_collections,
    colocate_with as colocate_with,
    control_dependencies as control_dependencies,
    device as device,
    get_collection as get_collection,
    get_collection_ref as get_collection_ref,
    init_scope as init_scope,
    is_tensor as is_tensor,
    name_scope as name_scope,
    op_scope as op_scope,
)
from flowscope.graph.serialization.build import (
    import_graph_def as import_graph_def,
)
from flowscope.graph.serialization.definition import (
    GraphDef as GraphDef,
    NodeDef as NodeDef,
)
from flowscope.graph.serialization.meta import (
    MetaGraphDef as MetaGraphDef,
)
from flowscope.graph.shapes import (
    Dimension as Dimension,
    TensorShape as TensorShape,
    dimension_at_index as dimension_at_index,
    dimension_value as dimension_value,
)
from flowscope.graph.specs import (
    IndexedSlicesSpec as IndexedSlicesSpec,
    TensorSpec as TensorSpec,
)
from flowscope.graph.tensor_proto import (
    AttrValue as AttrValue,
    make_ndarray as make_ndarray,
    make_tensor_proto as make_tensor_proto,
)
from flowscope.live.ipython import (
    load_ipython_extension as load_ipython_extension,
    unload_ipython_extension as unload_ipython_extension,
)
from flowscope.live.progress import (
    progress as progress,
)
from flowscope.live.show import (
    show as show,
)
from flowscope.ops.array.arrays import (
    fill as fill,
    lin_space as lin_space,
    linspace as linspace,
    meshgrid as meshgrid,
    ones as ones,
    ones_like as ones_like,
    range as range,
    rank as rank,
    shape as shape,
    shape_n as shape_n,
    size as size,
    zeros as zeros,
    zeros_like as zeros_like,
)
from flowscope.ops.array.batch_gathering import (
    batch_gather as batch_gather,
)
from flowscope.ops.array.clipping import (
    clip_by_average_norm as clip_by_average_norm,
    clip_by_global_norm as clip_by_global_norm,
    clip_by_norm as clip_by_norm,
    clip_by_value as clip_by_value,
    global_norm as global_norm,
)
from flowscope.ops.array.gathering import (
    gather as gather,
    gather_nd as gather_nd,
    scatter_nd as scatter_nd,
)
from flowscope.ops.array.joining import (
    concat as concat,
    parallel_stack as parallel_stack,
    split as split,
    stack as stack,
    unstack as unstack,
)
from flowscope.ops.array.moving import (
    reverse as reverse,
    reverse_sequence as reverse_sequence,
    reverse_v2 as reverse_v2,
    roll as roll,
)
from flowscope.ops.array.one_hot import (
    eye as eye,
    one_hot as one_hot,
)
from flowscope.ops.array.padding import (
    pad as pad,
    repeat as repeat,
    tile as tile,
)
from flowscope.ops.array.patches import (
    extract_image_patches as extract_image_patches,
    extract_volume_patches as extract_volume_patches,
)
from flowscope.ops.array.segments import (
    segment_max as segment_max,
    segment_mean as segment_mean,
    segment_min as segment_min,
    segment_prod as segment_prod,
    segment_sum as segment_sum,
    sparse_segment_mean as sparse_segment_mean,
    sparse_segment_sqrt_n as sparse_segment_sqrt_n,
    sparse_segment_sum as sparse_segment_sum,
    unsorted_segment_max as unsorted_segment_max,
    unsorted_segment_mean as unsorted_segment_mean,
    unsorted_segment_min as unsorted_segment_min,
    unsorted_segment_prod as unsorted_segment_prod,
    unsorted_segment_sqrt_n as unsorted_segment_sqrt_n,
    unsorted_segment_sum as unsorted_segment_sum,
)
from flowscope.ops.array.selection import (
    boolean_mask as boolean_mask,
    select as select,
    sequence_mask as sequence_mask,
    where as where,
    where_v2 as where_v2,
)
from flowscope.ops.array.shaping import (
    expand_dims as expand_dims,
    invert_permutation as invert_permutation,
    reshape as reshape,
    squeeze as squeeze,
    transpose as transpose,
)
from flowscope.ops.array.slicing import (
    newaxis as newaxis,
    slice as slice,
    strided_slice as strided_slice,
)
from flowscope.ops.array.sorting import (
    argsort as argsort,
    searchsorted as searchsorted,
    sort as sort,
)
from flowscope.ops.array.space_to_batch import (
    batch_to_space as batch_to_space,
    batch_to_space_nd as batch_to_space_nd,
    depth_to_space as depth_to_space,
    required_space_to_batch_paddings as required_space_to_batch_paddings,
    space_to_batch as space_to_batch,
    space_to_batch_nd as space_to_batch_nd,
    space_to_depth as space_to_depth,
)
from flowscope.ops.array.stitching import (
    dynamic_partition as dynamic_partition,
    dynamic_stitch as dynamic_stitch,
    parallel_dynamic_stitch as parallel_dynamic_stitch,
)
from flowscope.ops.array.tensor_scatters import (
    tensor_scatter_add as tensor_scatter_add,
    tensor_scatter_max as tensor_scatter_max,
    tensor_scatter_min as tensor_scatter_min,
    tensor_scatter_nd_add as tensor_scatter_nd_add,
    tensor_scatter_nd_max as tensor_scatter_nd_max,
    tensor_scatter_nd_min as tensor_scatter_nd_min,
    tensor_scatter_nd_sub as tensor_scatter_nd_sub,
    tensor_scatter_nd_update as tensor_scatter_nd_update,
    tensor_scatter_sub as tensor_scatter_sub,
    tensor_scatter_update as tensor_scatter_update,
)
from flowscope.ops.array.uniques import (
    listdiff as listdiff,
    setdiff1d as setdiff1d,
    unique as unique,
    unique_with_counts as unique_with_counts,
)
from flowscope.ops.core.broadcasting import (
    broadcast_dynamic_shape as broadcast_dynamic_shape,
    broadcast_static_shape as broadcast_static_shape,
    broadcast_to as broadcast_to,
)
from flowscope.ops.core.casting import (
    bitcast as bitcast,
    cast as cast,
    complex as complex,
    conj as conj,
    imag as imag,
    real as real,
    saturate_cast as saturate_cast,
    to_bfloat16 as to_bfloat16,
    to_complex128 as to_complex128,
    to_complex64 as to_complex64,
    to_double as to_double,
    to_float as to_float,
    to_int32 as to_int32,
    to_int64 as to_int64,
)
from flowscope.ops.core.flow import (
    group as group,
    identity as identity,
    identity_n as identity_n,
    no_op as no_op,
    placeholder as placeholder,
    placeholder_with_default as placeholder_with_default,
    prevent_gradient as prevent_gradient,
    stop_gradient as stop_gradient,
    tuple as tuple,
)
from flowscope.ops.core.static_values import (
    get_static_value as get_static_value,
)
from flowscope.ops.core.type_checks import (
    assert_integer as assert_integer,
    assert_proper_iterable as assert_proper_iterable,
    assert_same_float_dtype as assert_same_float_dtype,
    assert_type as assert_type,
    is_numeric_tensor as is_numeric_tensor,
)
from flowscope.ops.host.checks import (
    Assert as Assert,
    add_check_numerics_ops as add_check_numerics_ops,
    assert_equal as assert_equal,
    assert_greater as assert_greater,
    assert_greater_equal as assert_greater_equal,
    assert_less as assert_less,
    assert_less_equal as assert_less_equal,
    assert_near as assert_near,
    assert_negative as assert_negative,
    assert_non_negative as assert_non_negative,
    assert_non_positive as assert_non_positive,
    assert_none_equal as assert_none_equal,
    assert_positive as assert_positive,
    assert_rank as assert_rank,
    assert_rank_at_least as assert_rank_at_least,
    assert_rank_in as assert_rank_in,
    assert_scalar as assert_scalar,
    check_numerics as check_numerics,
    ensure_shape as ensure_shape,
    guarantee_const as guarantee_const,
    verify_tensor_all_finite as verify_tensor_all_finite,
    with_dependencies as with_dependencies,
)
from flowscope.ops.host.printing import (
    Print as Print,
    print as print,
)
from flowscope.ops.host.py_functions import (
    numpy_function as numpy_function,
    py_func as py_func,
    py_function as py_function,
)
from flowscope.ops.host.timing import (
    timestamp as timestamp,
)
from flowscope.ops.linalg.einsum import (
    einsum as einsum,
)
from flowscope.ops.linalg.factors import (
    cholesky as cholesky,
    qr as qr,
)
from flowscope.ops.linalg.matrices import (
    diag as diag,
    diag_part as diag_part,
    matrix_band_part as matrix_band_part,
    matrix_diag as matrix_diag,
    matrix_diag_part as matrix_diag_part,
    matrix_set_diag as matrix_set_diag,
)
from flowscope.ops.linalg.matrix_functions import (
    matrix_square_root as matrix_square_root,
)
from flowscope.ops.linalg.norms import (
    norm as norm,
)
from flowscope.ops.linalg.products import (
    cross as cross,
    matmul as matmul,
    matrix_transpose as matrix_transpose,
    sparse_matmul as sparse_matmul,
    tensordot as tensordot,
    trace as trace,
)
from flowscope.ops.linalg.solving import (
    cholesky_solve as cholesky_solve,
    matrix_determinant as matrix_determinant,
    matrix_inverse as matrix_inverse,
    matrix_solve as matrix_solve,
    matrix_solve_ls as matrix_solve_ls,
    matrix_triangular_solve as matrix_triangular_solve,
)
from flowscope.ops.linalg.spectra import (
    self_adjoint_eig as self_adjoint_eig,
    self_adjoint_eigvals as self_adjoint_eigvals,
    svd as svd,
)
from flowscope.ops.math.arithmetic import (
    accumulate_n as accumulate_n,
    add_n as add_n,
    angle as angle,
    approximate_equal as approximate_equal,
    divide_no_nan as divide_no_nan,
    floor_div as floor_div,
    is_non_decreasing as is_non_decreasing,
    is_strictly_increasing as is_strictly_increasing,
    multiply_no_nan as multiply_no_nan,
    nextafter as nextafter,
    polyval as polyval,
    reciprocal_no_nan as reciprocal_no_nan,
    truncatediv as truncatediv,
    truncatemod as truncatemod,
)
from flowscope.ops.math.counting import (
    bincount as bincount,
    histogram_fixed_width as histogram_fixed_width,
    histogram_fixed_width_bins as histogram_fixed_width_bins,
    unravel_index as unravel_index,
)
from flowscope.ops.math.elementwise import (
    abs as abs,
    acos as acos,
    acosh as acosh,
    add as add,
    asin as asin,
    asinh as asinh,
    atan as atan,
    atan2 as atan2,
    atanh as atanh,
    ceil as ceil,
    cos as cos,
    cosh as cosh,
    div as div,
    div_no_nan as div_no_nan,
    divide as divide,
    equal as equal,
    exp as exp,
    expm1 as expm1,
    floor as floor,
    floordiv as floordiv,
    floormod as floormod,
    greater as greater,
    greater_equal as greater_equal,
    is_finite as is_finite,
    is_inf as is_inf,
    is_nan as is_nan,
    less as less,
    less_equal as less_equal,
    log as log,
    log1p as log1p,
    log_sigmoid as log_sigmoid,
    logical_and as logical_and,
    logical_not as logical_not,
    logical_or as logical_or,
    logical_xor as logical_xor,
    maximum as maximum,
    minimum as minimum,
    mod as mod,
    multiply as multiply,
    negative as negative,
    not_equal as not_equal,
    pow as pow,
    realdiv as realdiv,
    reciprocal as reciprocal,
    rint as rint,
    round as round,
    rsqrt as rsqrt,
    scalar_mul as scalar_mul,
    sigmoid as sigmoid,
    sign as sign,
    sin as sin,
    sinh as sinh,
    softplus as softplus,
    sqrt as sqrt,
    square as square,
    squared_difference as squared_difference,
    subtract as subtract,
    tan as tan,
    tanh as tanh,
    truediv as truediv,
    xdivy as xdivy,
    xlogy as xlogy,
)
from flowscope.ops.math.reductions import (
    count_nonzero as count_nonzero,
    reduce_all as reduce_all,
    reduce_any as reduce_any,
    reduce_euclidean_norm as reduce_euclidean_norm,
    reduce_logsumexp as reduce_logsumexp,
    reduce_max as reduce_max,
    reduce_mean as reduce_mean,
    reduce_min as reduce_min,
    reduce_prod as reduce_prod,
    reduce_std as reduce_std,
    reduce_sum as reduce_sum,
    reduce_variance as reduce_variance,
)
from flowscope.ops.math.scans import (
    arg_max as arg_max,
    arg_min as arg_min,
    argmax as argmax,
    argmin as argmin,
    cumprod as cumprod,
    cumsum as cumsum,
    cumulative_logsumexp as cumulative_logsumexp,
)
from flowscope.ops.math.special import (
    bessel_i0 as bessel_i0,
    bessel_i0e as bessel_i0e,
    bessel_i1 as bessel_i1,
    bessel_i1e as bessel_i1e,
    betainc as betainc,
    digamma as digamma,
    erf as erf,
    erfc as erfc,
    erfcinv as erfcinv,
    erfinv as erfinv,
    igamma as igamma,
    igammac as igammac,
    lbeta as lbeta,
    lgamma as lgamma,
    ndtri as ndtri,
    polygamma as polygamma,
    xlog1py as xlog1py,
    zeta as zeta,
)
from flowscope.ops.objectives.confusion import (
    confusion_matrix as confusion_matrix,
)
from flowscope.ops.quantized.fake_quant import (
    fake_quant_with_min_max_args as fake_quant_with_min_max_args,
    fake_quant_with_min_max_args_gradient as fake_quant_with_min_max_args_gradient,
    fake_quant_with_min_max_vars as fake_quant_with_min_max_vars,
    fake_quant_with_min_max_vars_gradient as fake_quant_with_min_max_vars_gradient,
    fake_quant_with_min_max_vars_per_channel as fake_quant_with_min_max_vars_per_channel,
    fake_quant_with_min_max_vars_per_channel_gradient as fake_quant_with_min_max_vars_per_channel_gradient,
)
from flowscope.ops.quantized.images import (
    quantized_concat as quantized_concat,
)
from flowscope.ops.quantized.quantization import (
    dequantize as dequantize,
    quantize as quantize,
    quantize_v2 as quantize_v2,
)
from flowscope.ops.random.distributions import (
    multinomial as multinomial,
    random_gamma as random_gamma,
    random_poisson as random_poisson,
    random_poisson_v2 as random_poisson_v2,
)
from flowscope.ops.random.normal_and_uniform import (
    random_normal as random_normal,
    random_uniform as random_uniform,
    truncated_normal as truncated_normal,
)
from flowscope.ops.random.seeds import (
    get_seed as get_seed,
    set_random_seed as set_random_seed,
)
from flowscope.ops.random.shuffling import (
    random_crop as random_crop,
    random_shuffle as random_shuffle,
)
from flowscope.ops.signal.fourier import (
    fft as fft,
    fft2d as fft2d,
    fft3d as fft3d,
    ifft as ifft,
    ifft2d as ifft2d,
    ifft3d as ifft3d,
)
from flowscope.ops.sparse.arithmetic import (
    sparse_add as sparse_add,
    sparse_maximum as sparse_maximum,
    sparse_minimum as sparse_minimum,
    sparse_reduce_max as sparse_reduce_max,
    sparse_reduce_max_sparse as sparse_reduce_max_sparse,
    sparse_reduce_sum as sparse_reduce_sum,
    sparse_reduce_sum_sparse as sparse_reduce_sum_sparse,
    sparse_softmax as sparse_softmax,
    sparse_tensor_dense_matmul as sparse_tensor_dense_matmul,
)
from flowscope.ops.sparse.array_ops import (
    sparse_concat as sparse_concat,
    sparse_fill_empty_rows as sparse_fill_empty_rows,
    sparse_reorder as sparse_reorder,
    sparse_reset_shape as sparse_reset_shape,
    sparse_reshape as sparse_reshape,
    sparse_retain as sparse_retain,
    sparse_slice as sparse_slice,
    sparse_split as sparse_split,
    sparse_transpose as sparse_transpose,
)
from flowscope.ops.sparse.conversion import (
    sparse_mask as sparse_mask,
    sparse_merge as sparse_merge,
    sparse_tensor_to_dense as sparse_tensor_to_dense,
    sparse_to_dense as sparse_to_dense,
    sparse_to_indicator as sparse_to_indicator,
)
from flowscope.ops.sparse.edit_distance import (
    edit_distance as edit_distance,
)
from flowscope.ops.sparse.sparse_tensor import (
    SparseTensor as SparseTensor,
    SparseTensorSpec as SparseTensorSpec,
    SparseTensorValue as SparseTensorValue,
    convert_to_tensor_or_sparse_tensor as convert_to_tensor_or_sparse_tensor,
    sparse_placeholder as sparse_placeholder,
)
from flowscope.ops.state.initializers import (
    Constant as Constant,
    GlorotNormal as GlorotNormal,
    GlorotUniform as GlorotUniform,
    Initializer as Initializer,
    Ones as Ones,
    RandomNormal as RandomNormal,
    RandomUniform as RandomUniform,
    TruncatedNormal as TruncatedNormal,
    VarianceScaling as VarianceScaling,
    Zeros as Zeros,
    constant_initializer as constant_initializer,
    glorot_normal_initializer as glorot_normal_initializer,
    glorot_uniform_initializer as glorot_uniform_initializer,
    ones_initializer as ones_initializer,
    random_normal_initializer as random_normal_initializer,
    random_uniform_initializer as random_uniform_initializer,
    truncated_normal_initializer as truncated_normal_initializer,
    uniform_unit_scaling_initializer as uniform_unit_scaling_initializer,
    variance_scaling_initializer as variance_scaling_initializer,
    zeros_initializer as zeros_initializer,
)
from flowscope.ops.state.locks import (
    CriticalSection as CriticalSection,
)
from flowscope.ops.state.matrix_initializers import (
    orthogonal_initializer as orthogonal_initializer,
)
from flowscope.ops.state.partitioned_variable import (
    PartitionedVariable as PartitionedVariable,
    fixed_size_partitioner as fixed_size_partitioner,
    min_max_variable_partitioner as min_max_variable_partitioner,
    variable_axis_size_partitioner as variable_axis_size_partitioner,
)
from flowscope.ops.state.queues import (
    FIFOQueue as FIFOQueue,
    QueueBase as QueueBase,
)
from flowscope.ops.state.scatters import (
    batch_scatter_update as batch_scatter_update,
    scatter_add as scatter_add,
    scatter_div as scatter_div,
    scatter_max as scatter_max,
    scatter_min as scatter_min,
    scatter_mul as scatter_mul,
    scatter_nd_add as scatter_nd_add,
    scatter_nd_sub as scatter_nd_sub,
    scatter_nd_update as scatter_nd_update,
    scatter_sub as scatter_sub,
    scatter_update as scatter_update,
)
from flowscope.ops.state.template import (
    Template as Template,
    make_template as make_template,
)
from flowscope.ops.state.variable_lists import (
    all_variables as all_variables,
    assert_variables_initialized as assert_variables_initialized,
    global_variables as global_variables,
    global_variables_initializer as global_variables_initializer,
    initialize_all_variables as initialize_all_variables,
    initialize_local_variables as initialize_local_variables,
    initialize_variables as initialize_variables,
    is_variable_initialized as is_variable_initialized,
    local_variables as local_variables,
    local_variables_initializer as local_variables_initializer,
    model_variables as model_variables,
    report_uninitialized_variables as report_uninitialized_variables,
    trainable_variables as trainable_variables,
    variables_initializer as variables_initializer,
)
from flowscope.ops.state.variable_scope import (
    AUTO_REUSE as AUTO_REUSE,
    VariableScope as VariableScope,
    create_partitioned_variables as create_partitioned_variables,
    get_local_variable as get_local_variable,
    get_variable as get_variable,
    get_variable_scope as get_variable_scope,
    no_regularizer as no_regularizer,
    variable_op_scope as variable_op_scope,
    variable_scope as variable_scope,
)
from flowscope.ops.state.variables import (
    GraphKeys as GraphKeys,
    Variable as Variable,
    VariableAggregation as VariableAggregation,
    VariableSynchronization as VariableSynchronization,
    assign as assign,
    assign_add as assign_add,
    assign_sub as assign_sub,
    count_up_to as count_up_to,
    variable_creator_scope as variable_creator_scope,
)
from flowscope.ops.strings.elementwise import (
    as_string as as_string,
    decode_base64 as decode_base64,
    encode_base64 as encode_base64,
    regex_replace as regex_replace,
    string_join as string_join,
    string_strip as string_strip,
    substr as substr,
)
from flowscope.ops.strings.hash_buckets import (
    fingerprint as fingerprint,
    string_to_hash_bucket as string_to_hash_bucket,
    string_to_hash_bucket_fast as string_to_hash_bucket_fast,
    string_to_hash_bucket_strong as string_to_hash_bucket_strong,
)
from flowscope.ops.strings.join_split import (
    reduce_join as reduce_join,
    string_split as string_split,
)
from flowscope.ops.strings.parsing import (
    decode_csv as decode_csv,
    decode_raw as decode_raw,
    string_to_number as string_to_number,
)
from flowscope.runtime.config import (
    ConfigProto as ConfigProto,
    DeviceStepStats as DeviceStepStats,
    FeedStats as FeedStats,
    GPUOptions as GPUOptions,
    GraphOptions as GraphOptions,
    NodeExecStats as NodeExecStats,
    OptimizerOptions as OptimizerOptions,
    RewriterConfig as RewriterConfig,
    RunMetadata as RunMetadata,
    RunOptions as RunOptions,
    StepStats as StepStats,
)
from flowscope.runtime.containers import (
    container as container,
)
from flowscope.runtime.interactive import (
    InteractiveSession as InteractiveSession,
)
from flowscope.runtime.session import (
    Session as Session,
)
from flowscope.train.moving_averages import (
    moving_average_variables as moving_average_variables,
)

__version__: str
