"""Where the names of parts are found, see `lazy_parts`.

Written by `python -m flowscope.api.exports`: what is changed here is lost.
"""

#: Per part and module, names or "theirs=ours".
PART_NAMES = {
    "bitwise": {
        "flowscope.ops.math.bits": (
            "bitwise_and bitwise_or bitwise_xor invert left_shift right_shift"
        ),
    },
    "collectives": {
        "flowscope.ops.collective.functions": (
            "all_gather all_reduce all_to_all broadcast reduce reduce_scatter scatter"
        ),
        "flowscope.ops.collective.references": "forward_reference resolve_references",
    },
    "contrib": {
        "flowscope.data": "framework",
        "flowscope.ops.collective": "nccl",
        "flowscope.ops.state.containers": "staging",
        "flowscope.ops.tables": "contrib=lookup",
        "flowscope.train.cluster": "ps_strategies=training",
        "flowscope.train.optimizers": "lazy_adam=opt",
    },
    "image": {
        "flowscope.ops.input.images": (
            "decode_bmp decode_gif decode_image decode_jpeg decode_png encode_jpeg encode_png "
            "extract_jpeg_shape is_jpeg"
        ),
    },
    "linalg": {
        "flowscope.ops.array.clipping": "global_norm",
        "flowscope.ops.array.one_hot": "eye",
        "flowscope.ops.linalg.einsum": "einsum",
        "flowscope.ops.linalg.factors": (
            "cholesky lu lu_matrix_inverse lu_reconstruct lu_solve qr"
        ),
        "flowscope.ops.linalg.matrices": (
            "diag=tensor_diag diag_part=tensor_diag_part matrix_band_part=band_part matrix_diag=diag "
            "matrix_diag_part=diag_part matrix_set_diag=set_diag"
        ),
        "flowscope.ops.linalg.matrix_functions": (
            "matrix_exponential=expm matrix_logarithm=logm matrix_square_root=sqrtm"
        ),
        "flowscope.ops.linalg.norms": "norm normalize",
        "flowscope.ops.linalg.products": (
            "adjoint cross matmul matrix_transpose matrix_transpose=transpose matvec tensordot trace"
        ),
        "flowscope.ops.linalg.solving": (
            "cholesky_solve logdet matrix_determinant=det matrix_inverse=inv matrix_solve=solve "
            "matrix_solve_ls=lstsq matrix_triangular_solve=triangular_solve slogdet"
        ),
        "flowscope.ops.linalg.spectra": (
            "eig eigvals matrix_rank pinv self_adjoint_eig=eigh self_adjoint_eigvals=eigvalsh svd"
        ),
        "flowscope.ops.linalg.tridiagonal": "tridiagonal_matmul tridiagonal_solve",
        "flowscope.ops.nn.normalization": "l2_normalize",
    },
    "lookup": {
        "flowscope.ops.tables": "experimental",
        "flowscope.ops.tables.initializers": (
            "KeyValueTensorInitializer TextFileIndex TextFileInitializer"
        ),
        "flowscope.ops.tables.tables": "StaticHashTable",
        "flowscope.ops.tables.vocabularies": "StaticVocabularyTable",
    },
    "losses": {
        "flowscope.ops.objectives.losses": (
            "Reduction absolute_difference add_loss compute_weighted_loss cosine_distance get_losses "
            "get_regularization_loss get_regularization_losses get_total_loss hinge_loss huber_loss "
            "log_loss mean_pairwise_squared_error mean_squared_error sigmoid_cross_entropy "
            "softmax_cross_entropy sparse_softmax_cross_entropy"
        ),
    },
    "manip": {
        "flowscope.ops.array.gathering": "gather_nd scatter_nd",
        "flowscope.ops.array.moving": "reverse roll",
        "flowscope.ops.array.padding": "tile",
        "flowscope.ops.array.shaping": "reshape",
        "flowscope.ops.array.space_to_batch": "batch_to_space_nd space_to_batch_nd",
    },
    "math": {
        "flowscope.ops.array.segments": (
            "segment_max segment_mean segment_min segment_prod segment_sum sparse_segment_mean "
            "sparse_segment_sqrt_n sparse_segment_sum unsorted_segment_max unsorted_segment_mean "
            "unsorted_segment_min unsorted_segment_prod unsorted_segment_sqrt_n unsorted_segment_sum"
        ),
        "flowscope.ops.array.shaping": "invert_permutation",
        "flowscope.ops.core.casting": (
            "bitcast cast complex conj imag real saturate_cast to_bfloat16 to_complex128 to_complex64 "
            "to_double to_float to_int32 to_int64"
        ),
        "flowscope.ops.linalg.products": (
            "cross matmul matrix_transpose sparse_matmul tensordot trace"
        ),
        "flowscope.ops.math": "special",
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
        "flowscope.ops.nn.activations": "softsign zero_fraction",
        "flowscope.ops.nn.normalization": "l2_normalize",
        "flowscope.ops.nn.softmax": "log_softmax softmax",
        "flowscope.ops.nn.top_k": "in_top_k top_k",
        "flowscope.ops.objectives.confusion": "confusion_matrix",
    },
    "metrics": {
        "flowscope.ops.objectives.metrics": (
            "accuracy mean mean_absolute_error mean_cosine_distance mean_iou mean_per_class_accuracy "
            "mean_relative_error mean_squared_error mean_tensor percentage_below "
            "root_mean_squared_error"
        ),
        "flowscope.ops.objectives.metrics_binary": (
            "auc false_negatives false_negatives_at_thresholds false_positives "
            "false_positives_at_thresholds precision precision_at_thresholds recall "
            "recall_at_thresholds sensitivity_at_specificity specificity_at_sensitivity "
            "true_negatives true_negatives_at_thresholds true_positives true_positives_at_thresholds"
        ),
        "flowscope.ops.objectives.metrics_ranking": (
            "average_precision_at_k precision_at_k precision_at_top_k recall_at_k recall_at_top_k "
            "sparse_average_precision_at_k sparse_precision_at_k"
        ),
    },
    "nn": {
        "flowscope.ops.array.space_to_batch": (
            "batch_to_space depth_to_space space_to_batch space_to_depth"
        ),
        "flowscope.ops.math.elementwise": "log_sigmoid sigmoid softplus tanh",
        "flowscope.ops.nn.activations": (
            "crelu elu leaky_relu relu relu6 selu silu softsign swish zero_fraction"
        ),
        "flowscope.ops.nn.bias": "bias_add relu_layer xw_plus_b",
        "flowscope.ops.nn.candidate_sampling": (
            "all_candidate_sampler compute_accidental_hits fixed_unigram_candidate_sampler "
            "log_uniform_candidate_sampler uniform_candidate_sampler"
        ),
        "flowscope.ops.nn.convolution": (
            "atrous_conv2d atrous_conv2d_transpose conv1d conv1d_transpose conv2d "
            "conv2d_backprop_filter conv2d_backprop_input conv2d_transpose conv3d "
            "conv3d_backprop_filter conv3d_backprop_filter_v2 conv3d_transpose conv_transpose "
            "convolution depthwise_conv2d depthwise_conv2d_backprop_filter "
            "depthwise_conv2d_backprop_input depthwise_conv2d_native "
            "depthwise_conv2d_native_backprop_filter depthwise_conv2d_native_backprop_input "
            "separable_conv2d"
        ),
        "flowscope.ops.nn.ctc": (
            "ctc_beam_search_decoder ctc_beam_search_decoder_v2 ctc_greedy_decoder ctc_loss "
            "ctc_loss_v2"
        ),
        "flowscope.ops.nn.ctc_labels": "collapse_repeated ctc_unique_labels",
        "flowscope.ops.nn.dropout": "dropout",
        "flowscope.ops.nn.fractional_pooling": (
            "fractional_avg_pool fractional_max_pool"
        ),
        "flowscope.ops.nn.learned_sampling": "learned_unigram_candidate_sampler",
        "flowscope.ops.nn.moments": (
            "moments normalize_moments sufficient_statistics weighted_moments"
        ),
        "flowscope.ops.nn.morphology": "dilation2d erosion2d",
        "flowscope.ops.nn.normalization": (
            "batch_norm_with_global_normalization batch_normalization fused_batch_norm l2_normalize "
            "local_response_normalization lrn"
        ),
        "flowscope.ops.nn.pooling": (
            "avg_pool avg_pool1d avg_pool2d avg_pool3d avg_pool_v2 max_pool max_pool1d max_pool2d "
            "max_pool3d max_pool_v2 max_pool_with_argmax pool"
        ),
        "flowscope.ops.nn.softmax": "log_softmax softmax",
        "flowscope.ops.nn.top_k": "in_top_k top_k",
        "flowscope.ops.nn.with_space_to_batch": "with_space_to_batch",
        "flowscope.ops.objectives.cross_entropy": (
            "log_poisson_loss sigmoid_cross_entropy_with_logits softmax_cross_entropy_with_logits "
            "softmax_cross_entropy_with_logits_v2 sparse_softmax_cross_entropy_with_logits "
            "weighted_cross_entropy_with_logits"
        ),
        "flowscope.ops.objectives.l2_loss": "l2_loss",
        "flowscope.ops.objectives.sampled_losses": "nce_loss sampled_softmax_loss",
        "flowscope.ops.quantized.images": (
            "quantized_avg_pool quantized_conv2d quantized_max_pool quantized_relu_x"
        ),
        "flowscope.ops.sparse.embedding": (
            "embedding_lookup embedding_lookup_sparse safe_embedding_lookup_sparse"
        ),
        "flowscope.rnn": "rnn_cell",
        "flowscope.rnn.dynamic": "bidirectional_dynamic_rnn dynamic_rnn",
        "flowscope.rnn.raw": "raw_rnn",
        "flowscope.rnn.static": (
            "static_bidirectional_rnn static_rnn static_state_saving_rnn"
        ),
    },
    "python_io": {
        "flowscope.ops.input.python_io": (
            "TFRecordCompressionType TFRecordOptions TFRecordWriter tf_record_iterator"
        ),
    },
    "quantization": {
        "flowscope.ops.quantized.fake_quant": (
            "fake_quant_with_min_max_args fake_quant_with_min_max_args_gradient "
            "fake_quant_with_min_max_vars fake_quant_with_min_max_vars_gradient "
            "fake_quant_with_min_max_vars_per_channel "
            "fake_quant_with_min_max_vars_per_channel_gradient"
        ),
        "flowscope.ops.quantized.images": "quantized_concat",
        "flowscope.ops.quantized.quantization": (
            "dequantize quantize quantize_v2 quantized_matmul"
        ),
        "flowscope.ops.quantized.quantize_and_dequantize": (
            "quantize_and_dequantize quantize_and_dequantize_v2"
        ),
    },
    "random": {
        "flowscope.ops.nn.candidate_sampling": (
            "all_candidate_sampler fixed_unigram_candidate_sampler log_uniform_candidate_sampler "
            "uniform_candidate_sampler"
        ),
        "flowscope.ops.nn.learned_sampling": "learned_unigram_candidate_sampler",
        "flowscope.ops.random.distributions": (
            "categorical multinomial random_gamma=gamma random_poisson=poisson"
        ),
        "flowscope.ops.random.normal_and_uniform": (
            "random_normal=normal random_uniform=uniform truncated_normal"
        ),
        "flowscope.ops.random.seeds": "fold_seeds get_seed set_random_seed",
        "flowscope.ops.random.shuffling": "random_shuffle=shuffle",
        "flowscope.ops.random.stateless": (
            "stateless_binomial stateless_categorical stateless_gamma stateless_multinomial "
            "stateless_normal stateless_poisson stateless_truncated_normal stateless_uniform"
        ),
    },
    "queue": {
        "flowscope.ops.state.containers.queues": (
            "FIFOQueue PaddingFIFOQueue PriorityQueue QueueBase RandomShuffleQueue"
        ),
    },
    "sets": {
        "flowscope.ops.sparse.sets": (
            "set_difference=difference set_difference set_intersection=intersection set_intersection "
            "set_size set_size=size set_union set_union=union"
        ),
    },
    "signal": {
        "flowscope.ops.signal.cosines": "dct idct",
        "flowscope.ops.signal.fourier": (
            "fft fft2d fft3d ifft ifft2d ifft3d irfft irfft2d irfft3d rfft rfft2d rfft3d"
        ),
        "flowscope.ops.signal.framing": (
            "fftshift frame hamming_window hann_window ifftshift inverse_stft inverse_stft_window_fn "
            "overlap_and_add stft"
        ),
    },
    "sparse": {
        "flowscope.ops.array.segments": (
            "sparse_segment_mean=segment_mean sparse_segment_sqrt_n=segment_sqrt_n "
            "sparse_segment_sum=segment_sum"
        ),
        "flowscope.ops.sparse.arithmetic": (
            "sparse_add=add sparse_maximum=maximum sparse_minimum=minimum "
            "sparse_reduce_max=reduce_max sparse_reduce_max_sparse=reduce_max_sparse "
            "sparse_reduce_sum=reduce_sum sparse_reduce_sum_sparse=reduce_sum_sparse "
            "sparse_softmax=softmax sparse_tensor_dense_matmul=matmul "
            "sparse_tensor_dense_matmul=sparse_dense_matmul"
        ),
        "flowscope.ops.sparse.array_ops": (
            "expand_dims sparse_concat=concat sparse_fill_empty_rows=fill_empty_rows "
            "sparse_reorder=reorder sparse_reset_shape=reset_shape sparse_reshape=reshape "
            "sparse_retain=retain sparse_slice=slice sparse_split=split sparse_transpose=transpose"
        ),
        "flowscope.ops.sparse.conversion": (
            "eye from_dense sparse_mask=mask sparse_merge=merge sparse_tensor_to_dense=to_dense "
            "sparse_to_indicator=to_indicator"
        ),
        "flowscope.ops.sparse.sparse_tensor": (
            "SparseTensor sparse_placeholder=placeholder"
        ),
        "flowscope.ops.state.containers.accumulators": "SparseConditionalAccumulator",
    },
    "spectral": {
        "flowscope.ops.signal.cosines": "dct idct",
        "flowscope.ops.signal.fourier": (
            "fft fft2d fft3d ifft ifft2d ifft3d irfft irfft2d irfft3d rfft rfft2d rfft3d"
        ),
    },
    "strings": {
        "flowscope.ops.strings.elementwise": (
            "as_string regex_full_match regex_replace string_format=format string_join=join "
            "string_length=length string_lower=lower string_strip=strip string_upper=upper substr "
            "unicode_transcode"
        ),
        "flowscope.ops.strings.hash_buckets": (
            "string_to_hash_bucket=to_hash_bucket string_to_hash_bucket_fast=to_hash_bucket_fast "
            "string_to_hash_bucket_strong=to_hash_bucket_strong"
        ),
        "flowscope.ops.strings.join_split": (
            "bytes_split reduce_join split unsorted_segment_join"
        ),
        "flowscope.ops.strings.parsing": "string_to_number=to_number",
    },
    "summary": {
        "flowscope.graph.messages.event_messages": "Event SessionLog Summary",
        "flowscope.ops.host.summaries": (
            "histogram image merge merge_all scalar tensor_summary text"
        ),
        "flowscope.train.events.summary_writer": "FileWriter FileWriterCache",
    },
}
