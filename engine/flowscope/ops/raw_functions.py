"""Raw ops that are plain functions: `fs.raw_ops.MatMul(a=..., b=..., transpose_a=...)`; one table.

Names, arguments and defaults are TensorFlow's, and all arguments are given by name. What stands
behind an op is a function of the package, called in TensorFlow's words, or an op type. An argument
that its line does not use has one value, its default. Ops with several outputs return a named
tuple of them; a sparse tensor counts as three outputs.

Source: names, arguments and meaning are TensorFlow's.
"""

from __future__ import annotations

import ast
import functools
from collections import namedtuple
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from flowscope.errors import DTypeError, UnimplementedError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.op import op_class
from flowscope.graph.operation import Tensor
from flowscope.graph.unsupported import kept
from flowscope.graph.values import dtypes
from flowscope.ops.core.build import apply_many
from flowscope.ops.sparse.sparse_tensor import SparseTensor

#: Arguments, and the ops that take them as the functions do: "op=function", in their order. An op
#: without a function is the op type of that name.
AS_FUNCTIONS = """
() NoOp=no_op Timestamp=timestamp
(a, x) Igamma=igamma IgammaGradA Igammac=igammac Polygamma=polygamma
(data, segment_ids) SegmentMax=segment_max SegmentMean=segment_mean SegmentMin=segment_min
    SegmentProd=segment_prod SegmentSum=segment_sum
(data, segment_ids, num_segments) UnsortedSegmentMax=unsorted_segment_max
    UnsortedSegmentMin=unsorted_segment_min UnsortedSegmentProd=unsorted_segment_prod
    UnsortedSegmentSum=unsorted_segment_sum
(features) Elu=nn.elu Relu=nn.relu Relu6=nn.relu6 Selu=nn.selu Softplus=nn.softplus
    Softsign=nn.softsign
(gradients, features) Relu6Grad ReluGrad
(gradients, outputs) EluGrad SeluGrad
(indices, data) DynamicStitch=dynamic_stitch ParallelDynamicStitch=dynamic_stitch
(input) Cholesky=cholesky DecodeBase64=decode_base64 DiagPart=diag_part FFT=fft FFT2D=fft2d
    FFT3D=fft3d GuaranteeConst=guarantee_const IFFT=ifft IFFT2D=ifft2d IFFT3D=ifft3d
    Identity=identity IdentityN=identity_n MatrixDeterminant=matrix_determinant
    MatrixLogarithm=linalg.logm MatrixSquareRoot=linalg.sqrtm
    Rank=rank StopGradient=stop_gradient StringStrip=string_strip
(input, encoding='') StringLower=strings.lower StringUpper=strings.upper
(input, shape) BroadcastTo=broadcast_to EnsureShape=ensure_shape
    PlaceholderWithDefault=placeholder_with_default
(inputs, min, max, num_bits=8, narrow_range=False)
    FakeQuantWithMinMaxVars=quantization.fake_quant_with_min_max_vars
    FakeQuantWithMinMaxVarsPerChannel=quantization.fake_quant_with_min_max_vars_per_channel
(x) Abs=abs Acos=acos Acosh=acosh Asin=asin Asinh=asinh Atan=atan Atanh=atanh
    BesselI0=math.bessel_i0 BesselI0e=math.bessel_i0e BesselI1=math.bessel_i1
    BesselI1e=math.bessel_i1e BesselJ0=math.special.bessel_j0 BesselJ1=math.special.bessel_j1
    BesselK0=math.special.bessel_k0 BesselK0e=math.special.bessel_k0e
    BesselK1=math.special.bessel_k1 BesselK1e=math.special.bessel_k1e
    BesselY0=math.special.bessel_y0 BesselY1=math.special.bessel_y1 Ceil=ceil Cos=cos Cosh=cosh
    Dawsn=math.special.dawsn Digamma=digamma Erf=erf Erfc=erfc Erfinv=math.erfinv Exp=exp
    Expint=math.special.expint Expm1=expm1 Floor=floor FresnelCos=math.special.fresnel_cos
    FresnelSin=math.special.fresnel_sin Invert=bitwise.invert InvertPermutation=invert_permutation
    IsFinite=is_finite IsInf=is_inf IsNan=is_nan Lgamma=lgamma Log=log Log1p=log1p
    LogicalNot=logical_not Ndtri=math.ndtri Neg=negative Reciprocal=math.reciprocal Rint=rint
    Round=round Rsqrt=rsqrt Sigmoid=sigmoid Sign=sign Sin=sin Sinh=sinh Spence=math.special.spence
    Sqrt=sqrt Square=square Tan=tan Tanh=tanh
(x, axis, exclusive=False, reverse=False) Cumprod=cumprod Cumsum=cumsum
    CumulativeLogsumexp=math.cumulative_logsumexp
(x, y) AddV2=add BitwiseAnd=bitwise.bitwise_and BitwiseOr=bitwise.bitwise_or
    BitwiseXor=bitwise.bitwise_xor Div=div DivNoNan=div_no_nan FloorDiv=floordiv FloorMod=floormod
    Greater=greater GreaterEqual=greater_equal LeftShift=bitwise.left_shift Less=less
    LessEqual=less_equal LogicalAnd=logical_and LogicalOr=logical_or Maximum=maximum
    Minimum=minimum Mod=mod Mul=multiply MulNoNan=math.multiply_no_nan Pow=pow RealDiv=realdiv
    RightShift=bitwise.right_shift SquaredDifference=squared_difference Sub=subtract
    TruncateDiv=truncatediv TruncateMod=truncatemod Xdivy=math.xdivy Xlog1py=math.xlog1py
    Xlogy=math.xlogy
(y, dy) ReciprocalGrad RsqrtGrad SigmoidGrad SqrtGrad TanhGrad
(a, b) Cross=cross
(a, b, x) Betainc=betainc
(data, method) Fingerprint=fingerprint
(data, partitions, num_partitions) DynamicPartition=dynamic_partition
(diagonal) Diag=diag
(dtype, shape) PlaceholderV2=placeholder
(dtype, shape=None) Placeholder=placeholder
(features, alpha=0.2) LeakyRelu=nn.leaky_relu
(gradients, inputs, min=-6, max=6, num_bits=8, narrow_range=False)
    FakeQuantWithMinMaxArgsGradient=quantization.fake_quant_with_min_max_args_gradient
(images, ksizes, strides, rates, padding) ExtractImagePatches=extract_image_patches
(indices, dims) UnravelIndex=unravel_index
(input, adjoint=False) MatrixInverse=matrix_inverse
(input, axis) ExpandDims=expand_dims
(input, begin, size) Slice=slice
(input, block_shape, crops) BatchToSpaceND=batch_to_space_nd
(input, block_shape, paddings) SpaceToBatchND=space_to_batch_nd
(input, depth_radius=5, bias=1, alpha=1, beta=0.5) LRN=nn.local_response_normalization
(input, input_encoding, output_encoding, errors='replace', replacement_char=65533,
    replace_control_characters=False) UnicodeTranscode=strings.unicode_transcode
(input, ksizes, strides, padding) ExtractVolumePatches=extract_volume_patches
(input, multiples) Tile=tile
(input, num_buckets) StringToHashBucketFast=string_to_hash_bucket_fast
(input, num_buckets, key) StringToHashBucketStrong=string_to_hash_bucket_strong
(input, num_lower, num_upper) MatrixBandPart=linalg.band_part
(input, pad=False) EncodeBase64=encode_base64
(input, pattern) RegexFullMatch=strings.regex_full_match
(input, pattern, rewrite, replace_global=True) RegexReplace=regex_replace
(input, precision=-1, scientific=False, shortest=False, width=-1, fill='') AsString=as_string
(input, shift, axis) Roll=roll
(input, type) Bitcast=bitcast
(inputs) AddN=add_n
(inputs, min=-6, max=6, num_bits=8, narrow_range=False)
    FakeQuantWithMinMaxArgs=quantization.fake_quant_with_min_max_args
(inputs, segment_ids, num_segments, separator='')
    UnsortedSegmentJoin=strings.unsorted_segment_join
(inputs, separator='') StringJoin=string_join
(logits, num_samples, seed, output_dtype=fs.int64)
    StatelessMultinomial=random.stateless_multinomial
(matrix, rhs, adjoint=False) MatrixSolve=matrix_solve
(matrix, rhs, l2_regularizer, fast=True) MatrixSolveLs=matrix_solve_ls
(matrix, rhs, lower=True, adjoint=False) MatrixTriangularSolve=matrix_triangular_solve
(predictions, targets, k) InTopK=nn.in_top_k
(s0, s1) BroadcastArgs
(start, limit, delta) Range=range
(start, stop, num) LinSpace=linspace
(t) L2Loss=nn.l2_loss
(t, clip_value_min, clip_value_max) ClipByValue=clip_by_value
(tensor, axis) ReverseV2=reverse
(tensor, message) CheckNumerics=check_numerics
(tensor, shape) Reshape=reshape
(values, axis) ConcatV2=concat
(values, axis=0) Pack=stack
(x, perm) Transpose=transpose
(x, q) Zeta=zeta
(x, y, tolerance=1e-05) ApproximateEqual=approximate_equal
(x1, x2) NextAfter=math.nextafter
(y, x) Atan2=atan2
"""

#: An op with its arguments (and, if there are several, its outputs), and what it returns.
EXPRESSIONS = """
AccumulateNV2(inputs, shape): fs.accumulate_n(inputs, shape)
All(input, axis, keep_dims=False): fs.reduce_all(input, axis, keep_dims)
Angle(input, Tout=fs.float32): of_dtype(Tout, fs.angle(input, name))
ArgMax(input, dimension, output_type=fs.int64):
    fs.argmax(input, dimension, output_type=output_type)
ArgMin(input, dimension, output_type=fs.int64):
    fs.argmin(input, dimension, output_type=output_type)
Assert(condition, data, summarize=3): fs.Assert(condition, data, summarize)
AvgPool(value, ksize, strides, padding, data_format='NHWC'):
    fs.nn.avg_pool(value, ksize, strides, padding, data_format)
AvgPool3D(input, ksize, strides, padding, data_format='NDHWC'):
    fs.nn.avg_pool3d(input, ksize, strides, padding, data_format)
BatchMatMul(x, y, adj_x=False, adj_y=False, grad_x=False, grad_y=False):
    fs.matmul(x, y, adjoint_a=adj_x, adjoint_b=adj_y)
BatchMatMulV2(x, y, adj_x=False, adj_y=False, grad_x=False, grad_y=False):
    fs.matmul(x, y, adjoint_a=adj_x, adjoint_b=adj_y)
BatchToSpace(input, crops, block_size): fs.batch_to_space(input, crops, block_size)
BiasAdd(value, bias, data_format='NHWC'): fs.nn.bias_add(value, bias, data_format)
BiasAddGrad(out_backprop, data_format='NHWC'):
    op("BiasAddGrad", out_backprop, data_format=data_format)
BiasAddV1(value, bias): fs.nn.bias_add(value, bias)
Cast(x, DstT, Truncate=False): fs.cast(x, DstT)
Complex(real, imag, Tout=fs.complex64): of_dtype(Tout, fs.complex(real, imag, name))
ComplexAbs(x, Tout=fs.float32): of_dtype(Tout, fs.abs(x, name))
Concat(concat_dim, values): fs.concat(values, concat_dim)
Conj(input): fs.conj(input)
ConjugateTranspose(x, perm): fs.transpose(x, perm, conjugate=True)
Const(value, dtype): fs.constant(value, dtype)
Conv2D(input, filter, strides, padding, use_cudnn_on_gpu=True, explicit_paddings=[],
    data_format='NHWC', dilations=[1, 1, 1, 1]):
    fs.nn.conv2d(input, filter, strides, padding_of(padding, explicit_paddings),
    data_format=data_format, dilations=dilations)
Conv2DBackpropFilter(input, filter_sizes, out_backprop, strides, padding, use_cudnn_on_gpu=True,
    explicit_paddings=[], data_format='NHWC', dilations=[1, 1, 1, 1]):
    fs.nn.conv2d_backprop_filter(input, filter_sizes, out_backprop, strides, padding_of(padding,
    explicit_paddings), data_format=data_format, dilations=dilations)
Conv2DBackpropInput(input_sizes, filter, out_backprop, strides, padding, use_cudnn_on_gpu=True,
    explicit_paddings=[], data_format='NHWC', dilations=[1, 1, 1, 1]):
    fs.nn.conv2d_backprop_input(input_sizes, filter, out_backprop, strides, padding_of(padding,
    explicit_paddings), data_format=data_format, dilations=dilations)
Conv3D(input, filter, strides, padding, data_format='NDHWC', dilations=[1, 1, 1, 1, 1]):
    fs.nn.conv3d(input, filter, strides, padding, data_format, dilations)
Conv3DBackpropFilterV2(input, filter_sizes, out_backprop, strides, padding, data_format='NDHWC',
    dilations=[1, 1, 1, 1, 1]):
    fs.nn.conv3d_backprop_filter(input, filter_sizes, out_backprop, strides, padding, data_format,
    dilations)
DecodeCSV(records, record_defaults, field_delim=',', use_quote_delim=True, na_value='',
    select_cols=[]):
    fs.decode_csv(records, record_defaults, field_delim, use_quote_delim, na_value=na_value,
    select_cols=select_cols or None)
DecodeRaw(bytes, out_type, little_endian=True): fs.decode_raw(bytes, out_type, little_endian)
DepthToSpace(input, block_size, data_format='NHWC'):
    fs.depth_to_space(input, block_size, data_format=data_format)
DepthwiseConv2dNative(input, filter, strides, padding, explicit_paddings=[], data_format='NHWC',
    dilations=[1, 1, 1, 1]):
    fs.nn.depthwise_conv2d_native(input, filter, strides, padding_of(padding, explicit_paddings),
    data_format=data_format, dilations=dilations)
DepthwiseConv2dNativeBackpropFilter(input, filter_sizes, out_backprop, strides, padding,
    explicit_paddings=[], data_format='NHWC', dilations=[1, 1, 1, 1]):
    fs.nn.depthwise_conv2d_native_backprop_filter(input, filter_sizes, out_backprop, strides,
    padding_of(padding, explicit_paddings), data_format=data_format, dilations=dilations)
DepthwiseConv2dNativeBackpropInput(input_sizes, filter, out_backprop, strides, padding,
    explicit_paddings=[], data_format='NHWC', dilations=[1, 1, 1, 1]):
    fs.nn.depthwise_conv2d_native_backprop_input(input_sizes, filter, out_backprop, strides,
    padding_of(padding, explicit_paddings), data_format=data_format, dilations=dilations)
Dequantize(input, min_range, max_range, mode='MIN_COMBINED', narrow_range=False, axis=-1,
    dtype=fs.float32):
    fs.quantization.dequantize(input, min_range, max_range, mode, axis=None if axis == -1 else axis,
    narrow_range=narrow_range, dtype=dtype)
DeserializeManySparse(serialized_sparse, dtype) -> sparse_indices, sparse_values, sparse_shape:
    fs.deserialize_many_sparse(serialized_sparse, dtype)
Dilation2D(input, filter, strides, rates, padding):
    fs.nn.dilation2d(input, filter, strides, rates, padding)
Einsum(inputs, equation): fs.einsum(equation, *inputs)
Equal(x, y, incompatible_shape_error=True): fs.equal(x, y)
EuclideanNorm(input, axis, keep_dims=False): fs.math.reduce_euclidean_norm(input, axis, keep_dims)
FakeQuantWithMinMaxVarsGradient(gradients, inputs, min, max, num_bits=8, narrow_range=False) ->
    backprops_wrt_input, backprop_wrt_min, backprop_wrt_max:
    fs.quantization.fake_quant_with_min_max_vars_gradient(gradients, inputs, min, max, num_bits,
    narrow_range)
FakeQuantWithMinMaxVarsPerChannelGradient(gradients, inputs, min, max, num_bits=8,
    narrow_range=False) -> backprops_wrt_input, backprop_wrt_min, backprop_wrt_max:
    fs.quantization.fake_quant_with_min_max_vars_per_channel_gradient(gradients, inputs, min, max,
    num_bits, narrow_range)
Fill(dims, value): fs.fill(dims, value)
FractionalAvgPool(value, pooling_ratio, pseudo_random=False, overlapping=False,
    deterministic=False, seed=0, seed2=0) -> output, row_pooling_sequence, col_pooling_sequence:
    fs.nn.fractional_avg_pool(value, pooling_ratio, pseudo_random, overlapping, deterministic,
    seed, seed2)
FractionalMaxPool(value, pooling_ratio, pseudo_random=False, overlapping=False,
    deterministic=False, seed=0, seed2=0) -> output, row_pooling_sequence, col_pooling_sequence:
    fs.nn.fractional_max_pool(value, pooling_ratio, pseudo_random, overlapping, deterministic,
    seed, seed2)
Gather(params, indices, validate_indices=True): fs.gather(params, indices, validate_indices)
GatherNd(params, indices, bad_indices_policy=''): fs.gather_nd(params, indices)
GatherV2(params, indices, axis, batch_dims=0):
    fs.gather(params, indices, axis=axis, batch_dims=batch_dims)
HistogramFixedWidth(values, value_range, nbins, dtype=fs.int32):
    fs.histogram_fixed_width(values, value_range, nbins, dtype)
IRFFT(input, fft_length, Treal=fs.float32):
    of_dtype(Treal, fs.signal.irfft(input, fft_length, name))
IRFFT2D(input, fft_length, Treal=fs.float32):
    of_dtype(Treal, fs.signal.irfft2d(input, fft_length, name))
IRFFT3D(input, fft_length, Treal=fs.float32):
    of_dtype(Treal, fs.signal.irfft3d(input, fft_length, name))
Imag(input, Tout=fs.float32): of_dtype(Tout, fs.imag(input, name))
InTopKV2(predictions, targets, k): fs.nn.in_top_k(predictions, targets, k)
Inv(x): fs.math.reciprocal(x)
LeakyReluGrad(gradients, features, alpha=0.2):
    op("LeakyReluGrad", gradients, features, alpha=float(alpha))
ListDiff(x, y, out_idx=fs.int32) -> out, idx: fs.setdiff1d(x, y, out_idx)
LogMatrixDeterminant(input) -> sign, log_abs_determinant: op("LogMatrixDeterminant", input)
LogSoftmax(logits): fs.nn.log_softmax(logits)
LowerBound(sorted_inputs, values, out_type=fs.int32):
    fs.searchsorted(sorted_inputs, values, "left", out_type)
Lu(input, output_idx_type=fs.int32) -> lu, p: fs.linalg.lu(input, output_idx_type)
MatMul(a, b, transpose_a=False, transpose_b=False, grad_a=False, grad_b=False):
    fs.matmul(a, b, transpose_a, transpose_b)
MatrixDiag(diagonal): fs.linalg.diag(diagonal)
MatrixDiagPart(input): fs.linalg.diag_part(input)
MatrixDiagPartV2(input, k, padding_value):
    fs.linalg.diag_part(input, k=k, padding_value=padding_value, align="LEFT_LEFT")
MatrixDiagPartV3(input, k, padding_value, align='RIGHT_LEFT'):
    fs.linalg.diag_part(input, k=k, padding_value=padding_value, align=align)
MatrixDiagV2(diagonal, k, num_rows, num_cols, padding_value):
    fs.linalg.diag(diagonal, k=k, num_rows=num_rows, num_cols=num_cols,
    padding_value=padding_value, align="LEFT_LEFT")
MatrixDiagV3(diagonal, k, num_rows, num_cols, padding_value, align='RIGHT_LEFT'):
    fs.linalg.diag(diagonal, k=k, num_rows=num_rows, num_cols=num_cols,
    padding_value=padding_value, align=align)
MatrixSetDiag(input, diagonal): fs.linalg.set_diag(input, diagonal)
MatrixSetDiagV2(input, diagonal, k): fs.linalg.set_diag(input, diagonal, k=k, align="LEFT_LEFT")
MatrixSetDiagV3(input, diagonal, k, align='RIGHT_LEFT'):
    fs.linalg.set_diag(input, diagonal, k=k, align=align)
Max(input, axis, keep_dims=False): fs.reduce_max(input, axis, keep_dims)
MaxPool(input, ksize, strides, padding, explicit_paddings=[], data_format='NHWC'):
    fs.nn.max_pool(input, ksize, strides, padding_of(padding, explicit_paddings), data_format)
MaxPool3D(input, ksize, strides, padding, data_format='NDHWC'):
    fs.nn.max_pool3d(input, ksize, strides, padding, data_format)
MaxPoolV2(input, ksize, strides, padding, data_format='NHWC'):
    fs.nn.max_pool(input, ksize, strides, padding, data_format)
MaxPoolWithArgmax(input, ksize, strides, padding, Targmax=fs.int64, include_batch_in_index=False)
    -> output, argmax:
    fs.nn.max_pool_with_argmax(input, ksize, strides, padding, Targmax=Targmax,
    include_batch_in_index=include_batch_in_index)
Mean(input, axis, keep_dims=False): fs.reduce_mean(input, axis, keep_dims)
Min(input, axis, keep_dims=False): fs.reduce_min(input, axis, keep_dims)
MirrorPad(input, paddings, mode): fs.pad(input, paddings, mode)
Multinomial(logits, num_samples, seed=0, seed2=0, output_dtype=fs.int64):
    fs.multinomial(logits, num_samples, seed_of(seed, seed2), output_dtype=output_dtype)
NotEqual(x, y, incompatible_shape_error=True): fs.not_equal(x, y)
OneHot(indices, depth, on_value, off_value, axis=-1):
    fs.one_hot(indices, depth, on_value, off_value, axis)
OnesLike(x): fs.ones_like(x)
Pad(input, paddings): fs.pad(input, paddings)
PadV2(input, paddings, constant_values): fs.pad(input, paddings, constant_values=constant_values)
ParseTensor(serialized, out_type): fs.parse_tensor(serialized, out_type)
PreventGradient(input, message=''): op("PreventGradient", input, message=message)
Prod(input, axis, keep_dims=False): fs.reduce_prod(input, axis, keep_dims)
Qr(input, full_matrices=False) -> q, r: fs.qr(input, full_matrices)
QuantizeAndDequantizeV2(input, input_min, input_max, signed_input=True, num_bits=8,
    range_given=False, round_mode='HALF_TO_EVEN', narrow_range=False, axis=-1):
    fs.quantization.quantize_and_dequantize(input, input_min, input_max, signed_input, num_bits,
    range_given, round_mode, narrow_range=narrow_range, axis=None if axis == -1 else axis)
QuantizeV2(input, min_range, max_range, T, mode='MIN_COMBINED', round_mode='HALF_AWAY_FROM_ZERO',
    narrow_range=False, axis=-1, ensure_minimum_range=0.01) -> output, output_min, output_max:
    fs.quantization.quantize(input, min_range, max_range, T, mode, round_mode,
    narrow_range=narrow_range, axis=None if axis == -1 else axis,
    ensure_minimum_range=ensure_minimum_range)
QuantizedConcat(concat_dim, values, input_mins, input_maxes) -> output, output_min, output_max:
    fs.quantization.quantized_concat(concat_dim, values, input_mins, input_maxes)
RFFT(input, fft_length, Tcomplex=fs.complex64):
    of_dtype(Tcomplex, fs.signal.rfft(input, fft_length, name))
RFFT2D(input, fft_length, Tcomplex=fs.complex64):
    of_dtype(Tcomplex, fs.signal.rfft2d(input, fft_length, name))
RFFT3D(input, fft_length, Tcomplex=fs.complex64):
    of_dtype(Tcomplex, fs.signal.rfft3d(input, fft_length, name))
RandomGamma(shape, alpha, seed=0, seed2=0):
    fs.random_gamma(shape, alpha, seed=seed_of(seed, seed2))
RandomPoissonV2(shape, rate, seed=0, seed2=0, dtype=fs.int64):
    fs.random_poisson(rate, shape, dtype, seed_of(seed, seed2))
RandomShuffle(value, seed=0, seed2=0): fs.random_shuffle(value, seed_of(seed, seed2))
RandomStandardNormal(shape, dtype, seed=0, seed2=0):
    fs.random_normal(shape, dtype=dtype, seed=seed_of(seed, seed2))
RandomUniform(shape, dtype, seed=0, seed2=0):
    fs.random_uniform(shape, dtype=dtype, seed=seed_of(seed, seed2))
RandomUniformInt(shape, minval, maxval, seed=0, seed2=0):
    fs.random_uniform(shape, minval, maxval, maxval.dtype, seed_of(seed, seed2))
Real(input, Tout=fs.float32): of_dtype(Tout, fs.real(input, name))
ReduceJoin(inputs, reduction_indices, keep_dims=False, separator=''):
    fs.reduce_join(inputs, reduction_indices, keep_dims, separator)
ReverseSequence(input, seq_lengths, seq_dim, batch_dim=0):
    fs.reverse_sequence(input, seq_lengths, seq_dim, batch_dim)
ScatterNd(indices, updates, shape, bad_indices_policy=''): fs.scatter_nd(indices, updates, shape)
Select(condition, x, y): fs.where(condition, x, y)
SelectV2(condition, t, e): fs.where_v2(condition, t, e)
SelfAdjointEigV2(input, compute_v=True) -> e, v: fs.linalg.eigh(input)
SerializeManySparse(sparse_indices, sparse_values, sparse_shape, out_type=fs.string):
    fs.serialize_many_sparse(sparse(sparse_indices, sparse_values, sparse_shape), name, out_type)
SerializeSparse(sparse_indices, sparse_values, sparse_shape, out_type=fs.string):
    fs.serialize_sparse(sparse(sparse_indices, sparse_values, sparse_shape), name, out_type)
SerializeTensor(tensor): fs.serialize_tensor(tensor)
Shape(input, out_type=fs.int32): fs.shape(input, out_type=out_type)
ShapeN(input, out_type=fs.int32): fs.shape_n(input, out_type)
Size(input, out_type=fs.int32): fs.size(input, out_type=out_type)
Snapshot(input): fs.identity(input)
Softmax(logits): fs.nn.softmax(logits)
SoftmaxCrossEntropyWithLogits(features, labels) -> loss, backprop:
    op("SoftmaxCrossEntropyWithLogits", features, labels)
SpaceToBatch(input, paddings, block_size): fs.space_to_batch(input, paddings, block_size)
SpaceToDepth(input, block_size, data_format='NHWC'):
    fs.space_to_depth(input, block_size, data_format=data_format)
SparseAdd(a_indices, a_values, a_shape, b_indices, b_values, b_shape, thresh) -> sum_indices,
    sum_values, sum_shape:
    fs.identity_n(parts(fs.sparse_add(sparse(a_indices, a_values, a_shape),
    sparse(b_indices, b_values, b_shape), thresh)))
SparseConcat(indices, values, shapes, concat_dim) -> output_indices, output_values, output_shape:
    fs.sparse_concat(concat_dim, [sparse(*parts) for parts in zip(indices, values, shapes)])
SparseMatMul(a, b, transpose_a=False, transpose_b=False, a_is_sparse=False, b_is_sparse=False):
    fs.sparse_matmul(a, b, transpose_a, transpose_b, a_is_sparse, b_is_sparse)
SparseReduceMax(input_indices, input_values, input_shape, reduction_axes, keep_dims=False):
    fs.identity(fs.sparse_reduce_max(sparse(input_indices, input_values, input_shape),
    reduction_axes, keep_dims))
SparseReduceSum(input_indices, input_values, input_shape, reduction_axes, keep_dims=False):
    fs.identity(fs.sparse_reduce_sum(sparse(input_indices, input_values, input_shape),
    reduction_axes, keep_dims))
SparseReorder(input_indices, input_values, input_shape) -> output_indices, output_values:
    fs.sparse_reorder(sparse(input_indices, input_values, input_shape))
SparseReshape(input_indices, input_shape, new_shape) -> output_indices, output_shape:
    op("SparseReshape", input_indices, input_shape, new_shape)
SparseSegmentMean(data, indices, segment_ids, sparse_gradient=False):
    fs.sparse_segment_mean(data, indices, segment_ids)
SparseSegmentMeanWithNumSegments(data, indices, segment_ids, num_segments, sparse_gradient=False):
    fs.sparse_segment_mean(data, indices, segment_ids, num_segments=num_segments)
SparseSegmentSqrtN(data, indices, segment_ids, sparse_gradient=False):
    fs.sparse_segment_sqrt_n(data, indices, segment_ids)
SparseSegmentSqrtNWithNumSegments(data, indices, segment_ids, num_segments,
    sparse_gradient=False):
    fs.sparse_segment_sqrt_n(data, indices, segment_ids, num_segments=num_segments)
SparseSegmentSum(data, indices, segment_ids, sparse_gradient=False):
    fs.sparse_segment_sum(data, indices, segment_ids)
SparseSegmentSumWithNumSegments(data, indices, segment_ids, num_segments, sparse_gradient=False):
    fs.sparse_segment_sum(data, indices, segment_ids, num_segments=num_segments)
SparseSlice(indices, values, shape, start, size) -> output_indices, output_values, output_shape:
    fs.sparse_slice(sparse(indices, values, shape), start, size)
SparseSoftmax(sp_indices, sp_values, sp_shape):
    fs.sparse_softmax(sparse(sp_indices, sp_values, sp_shape), name).values
SparseSoftmaxCrossEntropyWithLogits(features, labels) -> loss, backprop:
    op("SparseSoftmaxCrossEntropyWithLogits", features, fs.convert_to_tensor(labels))
SparseTensorDenseMatMul(a_indices, a_values, a_shape, b, adjoint_a=False, adjoint_b=False):
    fs.sparse_tensor_dense_matmul(sparse(a_indices, a_values, a_shape), b, adjoint_a, adjoint_b)
SparseToDense(sparse_indices, output_shape, sparse_values, default_value, validate_indices=True):
    fs.sparse_to_dense(sparse_indices, output_shape, sparse_values, default_value,
    validate_indices)
Split(axis, value, num_split): fs.split(value, num_split, axis)
SplitV(value, size_splits, axis, num_split): fs.split(value, size_splits, axis, num_split)
Squeeze(input, axis=[]): fs.squeeze(input, axis or None)
StaticRegexFullMatch(input, pattern): fs.strings.regex_full_match(input, pattern)
StaticRegexReplace(input, pattern, rewrite, replace_global=True):
    fs.regex_replace(input, pattern, rewrite, replace_global)
StringFormat(inputs, template='%s', placeholder='%s', summarize=3):
    fs.strings.format(template, inputs, placeholder, summarize)
StringLength(input, unit='BYTE'): fs.strings.length(input, unit=unit)
StringSplit(input, delimiter, skip_empty=True) -> indices, values, shape:
    fs.string_split(input, delimiter, skip_empty)
StringToHashBucket(string_tensor, num_buckets):
    fs.string_to_hash_bucket(string_tensor, num_buckets)
StringToNumber(string_tensor, out_type=fs.float32): fs.string_to_number(string_tensor, out_type)
Substr(input, pos, len, unit='BYTE'): fs.substr(input, pos, len, unit=unit)
Sum(input, axis, keep_dims=False): fs.reduce_sum(input, axis, keep_dims)
Svd(input, compute_uv=True, full_matrices=False) -> s, u, v: fs.svd(input, full_matrices)
TensorScatterAdd(tensor, indices, updates, bad_indices_policy=''):
    fs.tensor_scatter_add(tensor, indices, updates)
TensorScatterMax(tensor, indices, updates, bad_indices_policy=''):
    fs.tensor_scatter_max(tensor, indices, updates)
TensorScatterMin(tensor, indices, updates, bad_indices_policy=''):
    fs.tensor_scatter_min(tensor, indices, updates)
TensorScatterSub(tensor, indices, updates, bad_indices_policy=''):
    fs.tensor_scatter_sub(tensor, indices, updates)
TensorScatterUpdate(tensor, indices, updates, bad_indices_policy=''):
    fs.tensor_scatter_update(tensor, indices, updates)
TopKV2(input, k, sorted=True, index_type=fs.int32) -> values, indices:
    fs.nn.top_k(input, k, sorted)
TridiagonalSolve(diagonals, rhs, partial_pivoting=True, perturb_singular=False):
    fs.linalg.tridiagonal_solve(diagonals, rhs, partial_pivoting=partial_pivoting)
TruncatedNormal(shape, dtype, seed=0, seed2=0):
    fs.truncated_normal(shape, dtype=dtype, seed=seed_of(seed, seed2))
Unique(x, out_idx=fs.int32) -> y, idx: fs.unique(x, out_idx)
UniqueWithCounts(x, out_idx=fs.int32) -> y, idx, count: fs.unique_with_counts(x, out_idx)
Unpack(value, num, axis=0): fs.unstack(value, num, axis)
UpperBound(sorted_inputs, values, out_type=fs.int32):
    fs.searchsorted(sorted_inputs, values, "right", out_type)
Where(condition): fs.where(condition)
ZerosLike(x): fs.zeros_like(x)
"""


def _lines(text: str) -> Iterator[str]:
    """Yields the lines of a table; an indented line belongs to the one before."""
    yield from text.strip().replace("\n    ", " ").splitlines()


def _table() -> Iterator[tuple[str, tuple[str, str, str]]]:
    """Yields each op with its arguments, its outputs and its expression, as text."""
    for line in _lines(AS_FUNCTIONS):
        arguments, _, ops = line.removeprefix("(").partition(") ")
        given = ", ".join(word.strip().partition("=")[0] for word in arguments.split(","))
        for op in ops.split():
            name, _, function = op.partition("=")
            call = f"fs.{function}({given})" if function else f'op("{name}", {given})'
            yield name, (arguments, "", call)
    for line in _lines(EXPRESSIONS):
        head, _, expression = line.partition(": ")
        head, _, outputs = head.partition(" -> ")
        name, _, arguments = head.removesuffix(")").partition("(")
        yield name, (arguments, outputs, expression)


TABLE: dict[str, tuple[str, str, str]] = dict(sorted(_table()))


@functools.cache
def raw_function(op: str) -> Callable[..., Any]:
    """Returns the function of an op of the table."""
    arguments, outputs, expression = TABLE[op]
    tree = ast.parse(expression, mode="eval").body
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    if "name" not in used and isinstance(tree, ast.Call):
        tree.keywords.append(ast.keyword("name", ast.parse(f"name or {op!r}", mode="eval").body))
    head = f"lambda *, {arguments}{', ' * bool(arguments)}name=None"
    namespace = {**_WORDS, "fs": import_module("flowscope")}
    defaults = eval(f"{head}: 0", namespace).__kwdefaults__  # noqa: S307
    others = {n: v for n, v in defaults.items() if n not in used | {"name"} and not kept(op, n)}
    namespace |= {
        "refuse": functools.partial(_refuse, op, others),
        "returned": functools.partial(_returned, op, outputs.split(", ") if outputs else []),
    }
    checked = "".join(f"{n}={n}, " for n in others)
    source = f"{head}: (refuse({checked}), returned({ast.unparse(tree)}))[1]"
    # As if it stood in this file: the origin of an operation is the user's line.
    function = eval(compile(source, __file__, "eval"), namespace)  # noqa: S307
    function.__name__ = function.__qualname__ = op
    function.__module__ = __name__
    function.__doc__ = f"Returns `{expression}`."
    return function  # type: ignore[no-any-return]


def _refuse(op: str, defaults: dict[str, Any], **given: Any) -> None:
    """Raises UnimplementedError for an argument that has no value but its default here."""
    for name, default in defaults.items():
        if given[name] != default:
            raise UnimplementedError(
                f"raw_ops.{op}: expected {name}={default!r}, which is all that is supported, "
                f"got {given[name]!r}"
            )


def _returned(op: str, outputs: list[str], found: Any) -> Any:
    """The op's outputs of a function's result: one, or a named tuple of several."""
    if isinstance(found, SparseTensor):
        found = _parts(found)
    return namedtuple(op, outputs)(*found[: len(outputs)]) if outputs else found


# -- words of the table ---------------------------------------------------------------------------


def _op(op_type: str, *inputs: Any, name: str | None = None, **attributes: Any) -> Any:
    """Adds an operation of an op type, and returns its output, or its outputs."""
    op = op_class(op_type)(**attributes)
    first = convert_to_tensor(inputs[0])
    like = [t if isinstance(t, Tensor) else convert_to_tensor(t, first.dtype) for t in inputs[1:]]
    outputs = apply_many(op, first, *like, name=name)
    return outputs if len(outputs) > 1 else outputs[0]


def _of_dtype(dtype: Any, t: Tensor) -> Tensor:
    """Returns a tensor of this dtype; raises DTypeError if it is of another one."""
    if t.dtype != dtypes.as_dtype(dtype):
        raise DTypeError(f"expected the dtype {t.dtype}, which follows from the input, got {dtype}")
    return t


def _parts(sparse: SparseTensor) -> list[Tensor]:
    return [sparse.indices, sparse.values, sparse.dense_shape]


def _padding_of(padding: Any, explicit: Any) -> Any:
    """Returns the `padding` of a function: a word, or for "EXPLICIT" pairs of numbers per axis."""
    if padding not in ("EXPLICIT", b"EXPLICIT"):
        return padding
    return [list(explicit[i : i + 2]) for i in range(0, len(explicit), 2)]


def _seed_of(seed: int, seed2: int) -> int | None:
    """Returns an op's seed made of two; (0, 0) stands for none."""
    return (seed << 32 | seed2) if seed2 else seed or None


_WORDS: dict[str, Any] = {
    "op": _op,
    "of_dtype": _of_dtype,
    "parts": _parts,
    "padding_of": _padding_of,
    "seed_of": _seed_of,
    "sparse": SparseTensor,
}
