"""Where the package's names are found, by module: names, or "theirs=ours".

Written by `python -m flowscope.api.exports`: what is changed here is lost.
"""

#: Parts of the package: `fs.nn`.
PARTS = (
    "bitwise cluster coconet collectives contrib data debugging dtypes errors experimental "
    "graph_util image initializers io layers linalg lookup losses manip math metrics nest nn "
    "onnx python_io quantization queue random raw_ops replicator saved_model sets signal "
    "sparse spectral strings summary test tracing train"
)
#: What modules show.
NAMES = {
    "flowscope.autodiff.custom_gradient": "custom_gradient grad_pass_through",
    "flowscope.autodiff.gradients": "AggregationMethod UnconnectedGradients gradients",
    "flowscope.autodiff.hessians": "hessians",
    "flowscope.autodiff.recompute": "recompute_grad",
    "flowscope.autodiff.registry": "NoGradient NotDifferentiable RegisterGradient no_gradient",
    "flowscope.cells": "forget_cell",
    "flowscope.control.arrays.tensor_array": "TensorArray",
    "flowscope.control.branches": "case cond switch_case",
    "flowscope.control.dynamic.raw": "merge switch",
    "flowscope.control.function": "function get_function",
    "flowscope.control.functional": "foldl foldr map_fn scan vectorized_map",
    "flowscope.control.record": "record",
    "flowscope.control.version": (
        "control_flow_v2_enabled disable_control_flow_v2 enable_control_flow_v2"
    ),
    "flowscope.control.while_loop": "while_loop",
    "flowscope.errors": (
        "ControlFlowWarning DeviceWarning GraphGrowthWarning OpError VersionWarning"
    ),
    "flowscope.graph.constant": "constant convert_to_tensor",
    "flowscope.graph.default": "get_default_graph get_default_session reset_default_graph",
    "flowscope.graph.devices": "DeviceSpec",
    "flowscope.graph.graph": "Graph",
    "flowscope.graph.indexed_slices": (
        "IndexedSlices IndexedSlicesValue convert_to_tensor_or_indexed_slices"
    ),
    "flowscope.graph.messages.event_messages": (
        "Event HistogramProto SessionLog Summary SummaryMetadata"
    ),
    "flowscope.graph.messages.tensor_proto": "AttrValue make_ndarray make_tensor_proto",
    "flowscope.graph.op": "Op Spec register_kernel",
    "flowscope.graph.operation": "Operation Tensor",
    "flowscope.graph.scopes": (
        "add_to_collection add_to_collections colocate_with control_dependencies device "
        "get_collection get_collection_ref init_scope is_tensor name_scope op_scope"
    ),
    "flowscope.graph.serialization.build": "import_graph_def",
    "flowscope.graph.serialization.definition": "GraphDef NodeDef",
    "flowscope.graph.serialization.meta": "MetaGraphDef",
    "flowscope.graph.specs": "IndexedSlicesSpec TensorSpec",
    "flowscope.graph.values.dtypes": (
        "DType QUANTIZED_DTYPES as_dtype bfloat16 bfloat16_ref bool_=bool bool_ref complex128 "
        "complex128_ref complex64 complex64_ref double double_ref float16 float16_ref float32 "
        "float32_ref float64 float64_ref half half_ref int16 int16_ref int32 int32_ref int64 "
        "int64_ref int8 int8_ref qint16 qint16_ref qint32 qint32_ref qint8 qint8_ref quint16 "
        "quint16_ref quint8 quint8_ref resource string string_ref uint16 uint16_ref uint32 "
        "uint32_ref uint64 uint64_ref uint8 uint8_ref variant"
    ),
    "flowscope.graph.values.shapes": "Dimension TensorShape dimension_at_index dimension_value",
    "flowscope.live.answers.progress": "progress",
    "flowscope.live.watchers.ipython": "load_ipython_extension unload_ipython_extension",
    "flowscope.live.watchers.show": "save_html show to_graphviz",
    "flowscope.ops.array.arrays": (
        "fill lin_space linspace meshgrid ones ones_like range rank shape shape_n size zeros "
        "zeros_like"
    ),
    "flowscope.ops.array.batch_gathering": "batch_gather",
    "flowscope.ops.array.clipping": (
        "clip_by_average_norm clip_by_global_norm clip_by_norm clip_by_value global_norm"
    ),
    "flowscope.ops.array.gathering": "gather gather_nd scatter_nd",
    "flowscope.ops.array.joining": "concat parallel_stack split stack unstack",
    "flowscope.ops.array.moving": "reverse reverse_sequence reverse_v2 roll",
    "flowscope.ops.array.one_hot": "eye one_hot",
    "flowscope.ops.array.padding": "pad repeat tile",
    "flowscope.ops.array.patches": "extract_image_patches extract_volume_patches",
    "flowscope.ops.array.segments": (
        "segment_max segment_mean segment_min segment_prod segment_sum sparse_segment_mean "
        "sparse_segment_sqrt_n sparse_segment_sum unsorted_segment_max unsorted_segment_mean "
        "unsorted_segment_min unsorted_segment_prod unsorted_segment_sqrt_n unsorted_segment_sum"
    ),
    "flowscope.ops.array.selection": "boolean_mask select sequence_mask where where_v2",
    "flowscope.ops.array.shaping": "expand_dims invert_permutation reshape squeeze transpose",
    "flowscope.ops.array.slicing": "newaxis slice strided_slice",
    "flowscope.ops.array.sorting": "argsort searchsorted sort",
    "flowscope.ops.array.space_to_batch": (
        "batch_to_space batch_to_space_nd depth_to_space required_space_to_batch_paddings "
        "space_to_batch space_to_batch_nd space_to_depth"
    ),
    "flowscope.ops.array.stitching": "dynamic_partition dynamic_stitch parallel_dynamic_stitch",
    "flowscope.ops.array.tensor_scatters": (
        "tensor_scatter_add tensor_scatter_max tensor_scatter_min tensor_scatter_nd_add "
        "tensor_scatter_nd_max tensor_scatter_nd_min tensor_scatter_nd_sub "
        "tensor_scatter_nd_update tensor_scatter_sub tensor_scatter_update"
    ),
    "flowscope.ops.array.uniques": "listdiff setdiff1d unique unique_with_counts",
    "flowscope.ops.core.broadcasting": (
        "broadcast_dynamic_shape broadcast_static_shape broadcast_to"
    ),
    "flowscope.ops.core.casting": (
        "bitcast cast complex conj imag real saturate_cast to_bfloat16 to_complex128 to_complex64 "
        "to_double to_float to_int32 to_int64"
    ),
    "flowscope.ops.core.flow": (
        "group identity identity_n no_op placeholder placeholder_with_default prevent_gradient "
        "stop_gradient tuple"
    ),
    "flowscope.ops.core.static_values": "get_static_value",
    "flowscope.ops.core.type_checks": (
        "assert_integer assert_proper_iterable assert_same_float_dtype assert_type "
        "is_numeric_tensor"
    ),
    "flowscope.ops.host.checks": (
        "Assert add_check_numerics_ops assert_equal assert_greater assert_greater_equal "
        "assert_less assert_less_equal assert_near assert_negative assert_non_negative "
        "assert_non_positive assert_none_equal assert_positive assert_rank assert_rank_at_least "
        "assert_rank_in assert_scalar check_numerics ensure_shape guarantee_const "
        "verify_tensor_all_finite with_dependencies"
    ),
    "flowscope.ops.host.files": "matching_files read_file write_file",
    "flowscope.ops.host.printing": "Print print",
    "flowscope.ops.host.py_functions": "numpy_function py_func py_function",
    "flowscope.ops.host.timing": "timestamp",
    "flowscope.ops.input.examples": (
        "FixedLenFeature FixedLenSequenceFeature SparseFeature VarLenFeature parse_example "
        "parse_single_example parse_single_sequence_example"
    ),
    "flowscope.ops.input.readers": (
        "FixedLengthRecordReader IdentityReader ReaderBase TFRecordReader TextLineReader "
        "WholeFileReader"
    ),
    "flowscope.ops.input.tensor_strings": (
        "deserialize_many_sparse parse_tensor serialize_many_sparse serialize_sparse "
        "serialize_tensor"
    ),
    "flowscope.ops.linalg.einsum": "einsum",
    "flowscope.ops.linalg.factors": "cholesky qr",
    "flowscope.ops.linalg.matrices": (
        "diag diag_part matrix_band_part matrix_diag matrix_diag_part matrix_set_diag"
    ),
    "flowscope.ops.linalg.matrix_functions": "matrix_square_root",
    "flowscope.ops.linalg.norms": "norm",
    "flowscope.ops.linalg.products": (
        "cross matmul matrix_transpose sparse_matmul tensordot trace"
    ),
    "flowscope.ops.linalg.solving": (
        "cholesky_solve matrix_determinant matrix_inverse matrix_solve matrix_solve_ls "
        "matrix_triangular_solve"
    ),
    "flowscope.ops.linalg.spectra": "self_adjoint_eig self_adjoint_eigvals svd",
    "flowscope.ops.math.arithmetic": (
        "accumulate_n add_n angle approximate_equal divide_no_nan floor_div is_non_decreasing "
        "is_strictly_increasing multiply_no_nan nextafter polyval reciprocal_no_nan truncatediv "
        "truncatemod"
    ),
    "flowscope.ops.math.counting": (
        "bincount histogram_fixed_width histogram_fixed_width_bins unravel_index"
    ),
    "flowscope.ops.math.elementwise": (
        "abs acos acosh add asin asinh atan atan2 atanh ceil cos cosh div div_no_nan divide equal "
        "exp expm1 floor floordiv floormod greater greater_equal is_finite is_inf is_nan less "
        "less_equal log log1p log_sigmoid logical_and logical_not logical_or logical_xor maximum "
        "minimum mod multiply negative not_equal pow realdiv reciprocal rint round rsqrt "
        "scalar_mul sigmoid sign sin sinh softplus sqrt square squared_difference subtract tan "
        "tanh truediv xdivy xlogy"
    ),
    "flowscope.ops.math.reductions": (
        "count_nonzero reduce_all reduce_any reduce_euclidean_norm reduce_logsumexp reduce_max "
        "reduce_mean reduce_min reduce_prod reduce_std reduce_sum reduce_variance"
    ),
    "flowscope.ops.math.scans": (
        "arg_max arg_min argmax argmin cumprod cumsum cumulative_logsumexp"
    ),
    "flowscope.ops.math.special": (
        "bessel_i0 bessel_i0e bessel_i1 bessel_i1e betainc digamma erf erfc erfcinv erfinv igamma "
        "igammac lbeta lgamma ndtri polygamma xlog1py zeta"
    ),
    "flowscope.ops.objectives.confusion": "confusion_matrix",
    "flowscope.ops.quantized.fake_quant": (
        "fake_quant_with_min_max_args fake_quant_with_min_max_args_gradient "
        "fake_quant_with_min_max_vars fake_quant_with_min_max_vars_gradient "
        "fake_quant_with_min_max_vars_per_channel "
        "fake_quant_with_min_max_vars_per_channel_gradient"
    ),
    "flowscope.ops.quantized.images": "quantized_concat",
    "flowscope.ops.quantized.quantization": "dequantize quantize quantize_v2",
    "flowscope.ops.random.distributions": (
        "multinomial random_gamma random_poisson random_poisson_v2"
    ),
    "flowscope.ops.random.normal_and_uniform": "random_normal random_uniform truncated_normal",
    "flowscope.ops.random.seeds": "get_seed set_random_seed",
    "flowscope.ops.random.shuffling": "random_crop random_shuffle",
    "flowscope.ops.signal.fourier": "fft fft2d fft3d ifft ifft2d ifft3d",
    "flowscope.ops.sparse.arithmetic": (
        "sparse_add sparse_maximum sparse_minimum sparse_reduce_max sparse_reduce_max_sparse "
        "sparse_reduce_sum sparse_reduce_sum_sparse sparse_softmax sparse_tensor_dense_matmul"
    ),
    "flowscope.ops.sparse.array_ops": (
        "sparse_concat sparse_fill_empty_rows sparse_reorder sparse_reset_shape sparse_reshape "
        "sparse_retain sparse_slice sparse_split sparse_transpose"
    ),
    "flowscope.ops.sparse.conversion": (
        "sparse_mask sparse_merge sparse_tensor_to_dense sparse_to_dense sparse_to_indicator"
    ),
    "flowscope.ops.sparse.edit_distance": "edit_distance",
    "flowscope.ops.sparse.sparse_tensor": (
        "SparseTensor SparseTensorSpec SparseTensorValue convert_to_tensor_or_sparse_tensor "
        "sparse_placeholder"
    ),
    "flowscope.ops.state.containers.accumulators": (
        "ConditionalAccumulator ConditionalAccumulatorBase SparseConditionalAccumulator"
    ),
    "flowscope.ops.state.containers.barriers": "Barrier",
    "flowscope.ops.state.containers.locks": "CriticalSection",
    "flowscope.ops.state.containers.queues": (
        "FIFOQueue PaddingFIFOQueue PriorityQueue QueueBase RandomShuffleQueue"
    ),
    "flowscope.ops.state.initializers": (
        "Constant GlorotNormal GlorotUniform Initializer Ones RandomNormal RandomUniform "
        "TruncatedNormal VarianceScaling Zeros constant_initializer glorot_normal_initializer "
        "glorot_uniform_initializer ones_initializer random_normal_initializer "
        "random_uniform_initializer truncated_normal_initializer uniform_unit_scaling_initializer "
        "variance_scaling_initializer zeros_initializer"
    ),
    "flowscope.ops.state.matrix_initializers": "orthogonal_initializer",
    "flowscope.ops.state.partitioned_variable": (
        "PartitionedVariable fixed_size_partitioner min_max_variable_partitioner "
        "variable_axis_size_partitioner"
    ),
    "flowscope.ops.state.scatters": (
        "batch_scatter_update scatter_add scatter_div scatter_max scatter_min scatter_mul "
        "scatter_nd_add scatter_nd_sub scatter_nd_update scatter_sub scatter_update"
    ),
    "flowscope.ops.state.template": "Template make_template",
    "flowscope.ops.state.variable_lists": (
        "all_variables assert_variables_initialized global_variables global_variables_initializer "
        "initialize_all_tables initialize_all_variables initialize_local_variables "
        "initialize_variables is_variable_initialized local_variables local_variables_initializer "
        "model_variables report_uninitialized_variables tables_initializer trainable_variables "
        "variables_initializer"
    ),
    "flowscope.ops.state.variable_scope": (
        "AUTO_REUSE VariableScope create_partitioned_variables get_local_variable get_variable "
        "get_variable_scope no_regularizer variable_op_scope variable_scope"
    ),
    "flowscope.ops.state.variables": (
        "GraphKeys Variable VariableAggregation VariableSynchronization assign assign_add "
        "assign_sub count_up_to variable_creator_scope"
    ),
    "flowscope.ops.strings.elementwise": (
        "as_string decode_base64 encode_base64 regex_replace string_join string_strip substr"
    ),
    "flowscope.ops.strings.hash_buckets": (
        "fingerprint string_to_hash_bucket string_to_hash_bucket_fast "
        "string_to_hash_bucket_strong"
    ),
    "flowscope.ops.strings.join_split": "reduce_join string_split",
    "flowscope.ops.strings.parsing": "decode_csv decode_raw string_to_number",
    "flowscope.plan.analysis.device_profile": "DeviceProfile Link=DeviceLink",
    "flowscope.runtime.config": (
        "ClusterDef ConfigProto DeviceStepStats FeedStats GPUOptions GraphOptions JobDef "
        "NodeExecStats OptimizerOptions RewriterConfig RunMetadata RunOptions StepStats"
    ),
    "flowscope.runtime.devices.device": "Device",
    "flowscope.runtime.devices.device_registry": "DeviceRequest register_device",
    "flowscope.runtime.session.interactive": "InteractiveSession",
    "flowscope.runtime.session.session": "Session",
    "flowscope.runtime.state.containers": "container",
    "flowscope.runtime.threads.report": "runtime_report",
    "flowscope.tracing.profile": "profile",
    "flowscope.train.optimizers.moving_averages": "moving_average_variables",
}
#: Op types that modules define.
OP_TYPES = {
    "flowscope.autodiff.custom_gradient": "GradientHub WithGradient",
    "flowscope.coconet.chances": "ChanceKey KeptElements",
    "flowscope.coconet.fused_kernel": "FusedElementwise",
    "flowscope.control.arrays.array_ops": (
        "ConcatArray EmptyArray GatherArray GatherCotangents GatherOrZeros NewArray ReadArray "
        "ReadCotangent ReadOrZeros ScatterArray SizeOfArray SplitArray UnsplitArray WriteArray"
    ),
    "flowscope.control.arrays.list_ops": "DropItem SetItem",
    "flowscope.control.blocks": "Parameter",
    "flowscope.control.calls": "Call",
    "flowscope.control.cond": "Cond",
    "flowscope.control.dynamic.primitives": (
        "ControlTrigger Enter Exit ListPop ListPush LoopCond Merge NextIteration Switch"
    ),
    "flowscope.control.dynamic.stacks": "NewStack StackClose StackPop StackPush",
    "flowscope.control.lists": (
        "EmptyList Head ListOf ListOfZeros PackLists SumOfLists UnpackList"
    ),
    "flowscope.control.loop": "Loop",
    "flowscope.control.matmul_ops": "Part SumOfMatMuls SumOfProducts TransposedCopy",
    "flowscope.control.record": "AddToLast ListOfLast StackOfList UnstackToList",
    "flowscope.control.slices": "ConcatOfList SplitToList",
    "flowscope.graph.constant": "Const",
    "flowscope.onnx.kernels.operator": "OnnxOperator",
    "flowscope.ops.array.arrays": "Fill LinSpace OnesLike Range Rank Shape Size ZerosLike",
    "flowscope.ops.array.batch_gathering": "BatchGather BatchGatherGrad",
    "flowscope.ops.array.clipping": "ClipByValue",
    "flowscope.ops.array.gathering": "Gather GatherGrad GatherNd ScatterNd",
    "flowscope.ops.array.joining": "Concat ConcatGrad Pack Split SplitBy SplitEven Unpack",
    "flowscope.ops.array.moving": "Reverse ReverseSequence Roll",
    "flowscope.ops.array.one_hot": "OneHot",
    "flowscope.ops.array.padding": "MirrorPadGrad Pad PadWith Repeat RepeatGrad Tile",
    "flowscope.ops.array.patches": "ExtractPatches ExtractPatchesGrad",
    "flowscope.ops.array.segments": (
        "SegmentMax SegmentMean SegmentMin SegmentProd SegmentSum UnsortedSegmentMax "
        "UnsortedSegmentMin UnsortedSegmentProd UnsortedSegmentSum"
    ),
    "flowscope.ops.array.selection": "Select SelectBroadcast Where",
    "flowscope.ops.array.shaping": "ExpandDims InvertPermutation Reshape Squeeze Transpose",
    "flowscope.ops.array.slicing": "Slice SliceGrad StridedSlice StridedSliceGrad",
    "flowscope.ops.array.sorting": "ArgSort Permuted SearchSorted Sort",
    "flowscope.ops.array.space_to_batch": (
        "BatchToSpaceND DepthToSpace SpaceToBatchND SpaceToDepth"
    ),
    "flowscope.ops.array.stitching": "DynamicPartition DynamicStitch",
    "flowscope.ops.array.tensor_scatters": "TensorScatter",
    "flowscope.ops.array.uniques": "ListDiff Unique UniqueWithCounts",
    "flowscope.ops.collective.hubs": (
        "AllGather AllReduce AllToAll RankBroadcast RankReduce RankScatter ReduceScatter"
    ),
    "flowscope.ops.collective.pieces": "CollectiveFold CollectiveJoin CollectivePart",
    "flowscope.ops.collective.references": "ForwardReference",
    "flowscope.ops.core.broadcasting": "BroadcastArgs BroadcastTo SumTo",
    "flowscope.ops.core.casting": "Bitcast Cast Complex ComplexAbs Conj Imag Real",
    "flowscope.ops.core.flow": (
        "Identity NoOp Placeholder PlaceholderWithDefault PreventGradient StopGradient"
    ),
    "flowscope.ops.core.lossy_transfers": "FromUpperHalf LossyTransfer UpperHalf",
    "flowscope.ops.core.send_recv": "Recv Send Transfer TripCount",
    "flowscope.ops.host.checks": "AssertTrue CheckNumerics EnsureShape",
    "flowscope.ops.host.dataset_ops": (
        "BatchDataset CacheDataset ConcatenateDataset DatasetReduce FilterDataset "
        "FixedLengthRecordDataset FlatMapDataset GeneratorDataset IgnoreErrorsDataset "
        "InterleaveDataset MapDataset PaddedBatchDataset PrefetchDataset RangeDataset "
        "RepeatDataset ShardDataset ShuffleDataset SkipDataset TFRecordDataset TakeDataset "
        "TensorDataset TensorSliceDataset TextLineDataset UnbatchDataset WindowDataset ZipDataset"
    ),
    "flowscope.ops.host.files": "MatchingFiles ReadFile WriteFile",
    "flowscope.ops.host.printing": "PrintFirst PrintIdentity PrintLine",
    "flowscope.ops.host.py_functions": "EagerPyFunc HostFunc PyFunc PyFuncStateless",
    "flowscope.ops.host.summaries": (
        "HistogramSummary ImageSummary MergeSummary ScalarSummary TensorSummaryV2"
    ),
    "flowscope.ops.host.timing": "Timestamp",
    "flowscope.ops.input.example_ops": "ParseExample ParseFeatureLists",
    "flowscope.ops.input.images": "DecodeImage EncodeImage ExtractJpegShape IsJpeg",
    "flowscope.ops.input.reader_ops": (
        "FixedLengthRecordReaderHandle IdentityReaderHandle ReaderNumRecordsProduced "
        "ReaderNumWorkUnitsCompleted ReaderRead ReaderReadUpTo ReaderReset ReaderRestoreState "
        "ReaderSerializeState TFRecordReaderHandle TextLineReaderHandle WholeFileReaderHandle"
    ),
    "flowscope.ops.input.tensor_strings": (
        "DeserializeManySparse ParseTensor SerializeManySparse SerializeSparse SerializeTensor"
    ),
    "flowscope.ops.linalg.einsum": "Einsum EinsumSpread",
    "flowscope.ops.linalg.factors": "Cholesky Lu Qr",
    "flowscope.ops.linalg.matrices": "MatrixBandPart MatrixDiag MatrixDiagPart MatrixSetDiag",
    "flowscope.ops.linalg.matrix_functions": (
        "MatrixExponential MatrixLogarithm MatrixSquareRoot"
    ),
    "flowscope.ops.linalg.matrix_tools": "TriangularPart",
    "flowscope.ops.linalg.products": "Cross MatMul",
    "flowscope.ops.linalg.solving": (
        "LogMatrixDeterminant MatrixDeterminant MatrixInverse MatrixSolve MatrixTriangularSolve"
    ),
    "flowscope.ops.linalg.spectra": "Eig PseudoInverse SelfAdjointEig Svd",
    "flowscope.ops.linalg.tridiagonal": "TridiagonalSolve",
    "flowscope.ops.math.arithmetic": "AddN Angle MulNoNan NextAfter TruncateDiv TruncateMod",
    "flowscope.ops.math.bits": "BitwiseAnd BitwiseOr BitwiseXor Invert LeftShift RightShift",
    "flowscope.ops.math.counting": (
        "Bincount HistogramFixedWidth HistogramFixedWidthBins UnravelIndex"
    ),
    "flowscope.ops.math.dynamic_axes": "PositiveAxes ReverseBy TransposeBy",
    "flowscope.ops.math.elementwise": (
        "Abs Acos Acosh Add Asin Asinh Atan Atan2 Atanh Ceil Cos Cosh DivNoNan Equal Exp Expm1 "
        "Floor FloorDiv FloorMod Greater GreaterEqual IsFinite IsInf IsNan Less LessEqual Log "
        "Log1p LogicalAnd LogicalNot LogicalOr LogicalXor Maximum Minimum Mul Neg NotEqual Pow "
        "RealDiv Reciprocal ReciprocalGrad Rint Rsqrt RsqrtGrad Sigmoid SigmoidGrad Sign Sin Sinh "
        "Softplus Sqrt SqrtGrad Square SquaredDifference Sub Tan Tanh TanhGrad Xdivy Xlogy"
    ),
    "flowscope.ops.math.logical": "All Any",
    "flowscope.ops.math.reductions": "Max Mean Min Prod Sum",
    "flowscope.ops.math.scans": "ArgMax ArgMin Cumprod Cumsum CumulativeLogsumexp",
    "flowscope.ops.math.special": (
        "BesselI0 BesselI0e BesselI1 BesselI1e BesselJ0 BesselJ1 BesselK0 BesselK0e BesselK1 "
        "BesselK1e BesselY0 BesselY1 Betainc Dawsn Digamma Erf Erfc Erfinv Expint FresnelCos "
        "FresnelSin Igamma IgammaGradA Igammac Lgamma Ndtri Polygamma Spence Xlog1py Zeta"
    ),
    "flowscope.ops.nn.activations": (
        "Elu EluGrad LeakyRelu LeakyReluGrad Relu Relu6 Relu6Grad ReluGrad Selu SeluGrad Softsign"
    ),
    "flowscope.ops.nn.bias": "BiasAdd BiasAddGrad",
    "flowscope.ops.nn.candidate_sampling": (
        "AllCandidateSampler ComputeAccidentalHits FixedUnigramCandidateSampler "
        "LogUniformCandidateSampler UniformCandidateSampler"
    ),
    "flowscope.ops.nn.convolution_ops": (
        "Conv2D Conv2DBackpropFilter Conv2DBackpropInput Conv3D Conv3DBackpropFilter "
        "Conv3DBackpropInput"
    ),
    "flowscope.ops.nn.ctc": "CTCBeamSearchDecoder CTCGreedyDecoder CTCLoss",
    "flowscope.ops.nn.ctc_labels": "CollapsedRepeats UniqueLabels",
    "flowscope.ops.nn.depthwise": (
        "DepthwiseConv2dNative DepthwiseConv2dNativeBackpropFilter "
        "DepthwiseConv2dNativeBackpropInput"
    ),
    "flowscope.ops.nn.fractional_pooling": "FractionalArgmax PoolingSequence",
    "flowscope.ops.nn.learned_sampling": "LearnedUnigramCandidateSampler",
    "flowscope.ops.nn.morphology": (
        "Dilation2D Dilation2DBackpropFilter Dilation2DBackpropInput Dilation2DPick"
    ),
    "flowscope.ops.nn.normalization_ops": (
        "FusedBatchNormGradV3 FusedBatchNormV3 LRN NeighbourSum"
    ),
    "flowscope.ops.nn.pooling_ops": (
        "AvgPool AvgPool3D AvgPool3DGrad AvgPoolGrad MaxPool MaxPool3D MaxPool3DGrad "
        "MaxPool3DGradGrad MaxPoolGrad MaxPoolGradGrad MaxPoolWithArgmax"
    ),
    "flowscope.ops.nn.recurrent_inputs": "CheckBlockInputs",
    "flowscope.ops.nn.softmax": "LogSoftmax Softmax",
    "flowscope.ops.nn.top_k": "InTopK TopK",
    "flowscope.ops.objectives.cross_entropy": (
        "SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits"
    ),
    "flowscope.ops.objectives.l2_loss": "L2Loss",
    "flowscope.ops.objectives.weights": "BroadcastWeights",
    "flowscope.ops.quantized.fake_quant": "FakeQuantOutside FakeQuantWithMinMaxVars",
    "flowscope.ops.quantized.images": (
        "QuantizedAvgPool QuantizedConv2D QuantizedMaxPool QuantizedReluX"
    ),
    "flowscope.ops.quantized.quantization": "Dequantize QuantizeV2 QuantizedMatMul",
    "flowscope.ops.quantized.quantize_and_dequantize": "QuantizeAndDequantize QuantizeInside",
    "flowscope.ops.random.distributions": (
        "Multinomial RandomGamma RandomGammaGrad RandomPoisson"
    ),
    "flowscope.ops.random.normal_and_uniform": (
        "RandomNormal RandomUniform RandomUniformInt TruncatedNormal"
    ),
    "flowscope.ops.random.shuffling": "RandomShuffle",
    "flowscope.ops.random.stateless": (
        "StatelessBinomial StatelessCategorical StatelessGamma StatelessNormal StatelessPoisson "
        "StatelessTruncatedNormal StatelessUniform StatelessUniformInt"
    ),
    "flowscope.ops.signal.fourier": "FFT IRFFT RFFT Resized",
    "flowscope.ops.sparse.arithmetic": "SparseTensorDenseMatMul",
    "flowscope.ops.sparse.edit_distance": "EditDistance",
    "flowscope.ops.sparse.index_ops": (
        "SparseConcatShape SparseFillEmptyRows SparseOrder SparseResetShape SparseReshape "
        "SparseToDense SparseUnique"
    ),
    "flowscope.ops.sparse.sets": "SetOperation SetSize",
    "flowscope.ops.state.checkpoint_ops": "RestoreV2 SaveV2",
    "flowscope.ops.state.containers.accumulators": (
        "AccumulatorApplyGradient AccumulatorHandle AccumulatorNumAccumulated "
        "AccumulatorSetGlobalStep AccumulatorTakeGradient SparseAccumulatorApplyGradient "
        "SparseAccumulatorTakeGradient"
    ),
    "flowscope.ops.state.containers.barriers": (
        "BarrierIncompleteSize BarrierInsertMany BarrierTakeMany"
    ),
    "flowscope.ops.state.containers.locks": "MutexAcquire MutexHandle MutexRelease",
    "flowscope.ops.state.containers.queue_ops": (
        "BarrierHandle Dequeue DequeueMany DequeueUpTo Enqueue EnqueueMany FIFOQueueHandle "
        "PaddingFIFOQueueHandle PriorityQueueHandle QueueClose QueueIsClosed QueueSize "
        "RandomShuffleQueueHandle StagingAreaHandle"
    ),
    "flowscope.ops.state.containers.staging": (
        "StageClear StageGet StageIncompleteSize StagePut"
    ),
    "flowscope.ops.state.iterator_ops": (
        "DeserializeIterator FeedableGetNext FeedableIteratorHandle IteratorGetNext "
        "IteratorHandle IteratorToStringHandle MakeIterator OnTarget SerializeIterator"
    ),
    "flowscope.ops.state.training_ops": (
        "ApplyAdadelta ApplyAdagrad ApplyAdagradDA ApplyAdam ApplyCenteredRMSProp ApplyFtrl "
        "ApplyGradientDescent ApplyLazyAdam ApplyMomentum ApplyProximalAdagrad "
        "ApplyProximalGradientDescent ApplyRMSProp"
    ),
    "flowscope.ops.state.update_groups": "AwaitUpdate BeginUpdate CheckUpdate EndUpdate",
    "flowscope.ops.state.variable_ops": (
        "AssignAddVariableOp AssignStridedSlice AssignSubVariableOp AssignVariableOp CountUpTo "
        "DestroyResourceOp InitializedValue ReadVariableOp ScatterVariable VarHandleOp "
        "VarIsInitializedOp"
    ),
    "flowscope.ops.strings.elementwise": (
        "AsString DecodeBase64 EncodeBase64 EncodeBase64Unpadded RegexFullMatch RegexReplace "
        "StringCase StringFormat StringJoin StringLength StringStrip Substr UnicodeTranscode"
    ),
    "flowscope.ops.strings.hash_buckets": "Fingerprint HashBucket",
    "flowscope.ops.strings.join_split": "ReduceJoin StringSplit UnsortedSegmentJoin",
    "flowscope.ops.strings.parsing": "DecodeCSV DecodeRaw StringToNumber",
    "flowscope.ops.tables.table_ops": (
        "HashTableHandle InitializeTable InitializeTableFromTextFile LookupTableExport "
        "LookupTableFind LookupTableImport LookupTableInsert LookupTableRemove LookupTableSize "
        "MutableDenseHashTableHandle MutableHashTableHandle"
    ),
}
#: Modules that fill registries.
REGISTRIES = {
    "debuggers": "flowscope.debug",
    "cluster_connectors": "flowscope.cluster.servers.connecting",
    "dataset_reducers": "flowscope.runtime.datasets.dataset_reduction",
    "bundle_formats": "flowscope.tensorflow.checkpoints.bundle",
    "call_types": "flowscope.control.calls",
    "default_setters": "flowscope.graph.default",
    "deferrers": "flowscope.runtime.threads.interrupt",
    "densifier": "flowscope.ops.array.gathering",
    "cost_graphs": "flowscope.tracing.cost_graph",
    "device_stats": "flowscope.tracing.step_stats",
    "timelines": "flowscope.tracing.timeline",
    "differentiator": "flowscope.autodiff",
    "eager_calls": "flowscope.runtime.session.eager",
    "filler": "flowscope.ops.array.arrays",
    "function_makers": "flowscope.control.serialization",
    "input_replacer": "flowscope.control.dynamic.frames",
    "loop_gradients": "flowscope.control.loop_gradient",
    "kinds": (
        "flowscope.ops.sparse.sparse_tensor flowscope.ops.tables.tables "
        "flowscope.train.checkpoint.meta_graph"
    ),
    "observers": "flowscope.cells",
    "operator __getitem__": "flowscope.ops.array.slicing",
    "operator __matmul__": "flowscope.ops.linalg.products",
    "operator __sparse_mul__": "flowscope.ops.sparse.arithmetic",
    "operator __sparse_truediv__": "flowscope.ops.sparse.arithmetic",
    "packer": "flowscope.ops.array.joining",
    "queue_choosers": "flowscope.control.chosen_queue",
    "runner": "flowscope.runtime.session.session",
    "serializer default_values": "flowscope.graph.serialization.text_form",
    "serializer graph_def_of": "flowscope.graph.serialization.export",
    "serializer graph_of": "flowscope.graph.serialization.build",
    "serializer json_of": "flowscope.graph.serialization.json_form",
    "serializer read_json": "flowscope.graph.serialization.json_form",
    "serializer read_text": "flowscope.graph.serialization.text_reader",
    "serializer read_tensorflow": "flowscope.tensorflow.reading",
    "serializer write_tensorflow": "flowscope.tensorflow.writing",
    "serializer text_of": "flowscope.graph.serialization.text_form",
    "steps_of": "flowscope.runtime.session.engine",
    "operator __abs__": "flowscope.ops.math.elementwise",
    "operator __add__": "flowscope.ops.math.elementwise",
    "operator __and__": "flowscope.ops.math.elementwise",
    "operator __floordiv__": "flowscope.ops.math.elementwise",
    "operator __ge__": "flowscope.ops.math.elementwise",
    "operator __gt__": "flowscope.ops.math.elementwise",
    "operator __invert__": "flowscope.ops.math.elementwise",
    "operator __le__": "flowscope.ops.math.elementwise",
    "operator __lt__": "flowscope.ops.math.elementwise",
    "operator __mod__": "flowscope.ops.math.elementwise",
    "operator __mul__": "flowscope.ops.math.elementwise",
    "operator __neg__": "flowscope.ops.math.elementwise",
    "operator __or__": "flowscope.ops.math.elementwise",
    "operator __pow__": "flowscope.ops.math.elementwise",
    "operator __sub__": "flowscope.ops.math.elementwise",
    "operator __truediv__": "flowscope.ops.math.elementwise",
    "operator __xor__": "flowscope.ops.math.elementwise",
}
