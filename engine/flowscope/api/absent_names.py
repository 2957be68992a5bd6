"""The names of TensorFlow 1 that are not here, and what to do in their place: one table.

`api.absent` reads it when a program asks for one of them; `python -m flowscope.api.absent_names`
writes it into docs/tensorflow1.md. Names stand as behind `tf.`; the name of a module stands for all
of it.
"""

from __future__ import annotations

from pathlib import Path

#: Where the table lies, seen from the repository's top folder, and what stands around it there.
PAGE = "docs/tensorflow1.md"
BEGIN = "<!-- The table is written by `python -m flowscope.api.absent_names`. -->\n"
END = "<!-- end -->\n"

#: (subject, what to do in place, names).
ABSENT: tuple[tuple[str, str, str], ...] = (
    ("the program's start", "call your main() yourself, and read arguments with argparse",
     "app flags"),
    ("messages", "use Python's logging", "logging get_logger"),
    ("files", "use open(), os and pathlib",
     "gfile io.gfile resource_loader"),
    ("further forms of records", "fs.parse_example reads examples; parse others in Python, and "
     "feed arrays",
     "decode_json_example decode_compressed io.RaggedFeature io.decode_json_example "
     "io.decode_compressed io.decode_proto io.encode_proto"),
    ("LMDB", "write the records into files of records: fs.python_io", "LMDBReader"),
    ("further datasets", "make them of the methods of fs.data.Dataset, from_generator too; "
     "num_parallel_calls and prefetch say what runs ahead",
     "data.DatasetSpec data.Options data.experimental.CsvDataset "
     "data.experimental.DistributeOptions data.experimental.MapVectorizationOptions "
     "data.experimental.OptimizationOptions data.experimental.Optional "
     "data.experimental.OptionalStructure data.experimental.RandomDataset "
     "data.experimental.Reducer data.experimental.SparseTensorStructure "
     "data.experimental.SqlDataset data.experimental.StatsAggregator "
     "data.experimental.StatsOptions data.experimental.Structure "
     "data.experimental.TFRecordWriter data.experimental.TensorArrayStructure "
     "data.experimental.TensorStructure data.experimental.ThreadingOptions "
     "data.experimental.bucket_by_sequence_length data.experimental.bytes_produced_stats "
     "data.experimental.cardinality data.experimental.choose_from_datasets "
     "data.experimental.dense_to_sparse_batch data.experimental.from_variant "
     "data.experimental.get_next_as_optional data.experimental.get_single_element "
     "data.experimental.get_structure data.experimental.group_by_reducer "
     "data.experimental.group_by_window data.experimental.latency_stats "
     "data.experimental.make_batched_features_dataset data.experimental.make_csv_dataset "
     "data.experimental.map_and_batch_with_legacy_function "
     "data.experimental.parallel_interleave data.experimental.parse_example_dataset "
     "data.experimental.rejection_resample data.experimental.sample_from_datasets "
     "data.experimental.scan data.experimental.take_while data.experimental.to_variant "
     "data.experimental.unique"),
    ("positions of input as a hook", "fs.data.experimental.make_saveable_from_iterator has savers "
     "keep an iterator's position", "data.experimental.CheckpointInputPipelineHook"),
    ("changes of images", "change images with Pillow or SciPy, and feed arrays; fs.image decodes "
     "and encodes them",
     "image.ResizeMethod image.adjust_brightness image.adjust_contrast image.adjust_gamma "
     "image.adjust_hue image.adjust_jpeg_quality image.adjust_saturation image.central_crop "
     "image.combined_non_max_suppression image.convert_image_dtype image.crop_and_resize "
     "image.crop_to_bounding_box image.decode_and_crop_jpeg image.draw_bounding_boxes "
     "image.extract_glimpse image.extract_image_patches image.extract_patches "
     "image.flip_left_right image.flip_up_down image.grayscale_to_rgb image.hsv_to_rgb "
     "image.image_gradients image.non_max_suppression image.non_max_suppression_overlaps "
     "image.non_max_suppression_padded image.non_max_suppression_with_scores "
     "image.pad_to_bounding_box image.per_image_standardization image.psnr "
     "image.random_brightness image.random_contrast image.random_crop "
     "image.random_flip_left_right image.random_flip_up_down image.random_hue "
     "image.random_jpeg_quality image.random_saturation image.resize image.resize_area "
     "image.resize_bicubic image.resize_bilinear image.resize_image_with_crop_or_pad "
     "image.resize_image_with_pad image.resize_images image.resize_nearest_neighbor "
     "image.resize_with_crop_or_pad image.rgb_to_grayscale image.rgb_to_hsv image.rgb_to_yiq "
     "image.rgb_to_yuv image.rot90 image.sample_distorted_bounding_box image.sobel_edges "
     "image.ssim image.ssim_multiscale image.total_variation image.transpose "
     "image.transpose_image image.yiq_to_rgb image.yuv_to_rgb io.decode_and_crop_jpeg "
     "io.decode_jxl io.decode_webp"),
    ("audio", "use SciPy or soundfile before the feed; fs.signal.stft is here",
     "audio signal.inverse_mdct signal.kaiser_bessel_derived_window signal.kaiser_window "
     "signal.linear_to_mel_weight_matrix signal.mdct signal.mfccs_from_log_mel_spectrograms "
     "signal.vorbis_window"),
    ("other summaries", "fs.summary has scalar, histogram, image, text and tensor_summary",
     "summary.audio summary.TaggedRunMetadata summary.SummaryDescription "
     "summary.get_summary_description LogMessage"),
    ("summary writers that are part of the graph", "fetch summaries and write them with "
     "fs.summary.FileWriter", "summary.initialize summary.all_v2_summary_ops"),
    ("the profiler", "use fs.profile", "profiler"),
    ("Keras and estimators", "layers are in fs.layers; write the loop around Session.run yourself",
     "keras estimator"),
    ("contrib", "much of it is in fs.nn, fs.layers, fs.losses and fs.initializers",
     "contrib.checkpoint contrib.crf contrib.cudnn_rnn contrib.data contrib.distribute "
     "contrib.distributions contrib.eager contrib.estimator contrib.feature_column "
     "contrib.gan contrib.grid_rnn contrib.image contrib.keras "
     "contrib.layers contrib.learn contrib.legacy_seq2seq contrib.losses contrib.metrics "
     "contrib.nn contrib.quantize contrib.rnn contrib.seq2seq contrib.signal "
     "contrib.slim contrib.stateless contrib.summary contrib.tensorboard contrib.text "
     "contrib.timeseries contrib.tpu contrib.util"),
    ("columns of features", "make columns with NumPy or pandas, and feed arrays",
     "feature_column sparse.cross sparse.cross_hashed"),
    ("several machines", "connect with a Dask cluster, whose workers are the tasks: "
     "fs.cluster.connect",
     "distribute tpu config test.create_local_cluster"),
    ("other checkpoints", "save and restore with fs.train.Saver or fs.train.Checkpoint",
     "train.CheckpointOptions train.generate_checkpoint_state_proto"),
    ("waiting for checkpoints", "poll fs.train.latest_checkpoint", "train.checkpoints_iterator"),
    ("writing saved models", "write the model with fs.saved_model.simple_save",
     "saved_model.Builder saved_model.build_signature_def "
     "saved_model.build_tensor_info saved_model.builder saved_model.classification_signature_def "
     "saved_model.experimental saved_model.get_tensor_from_tensor_info "
     "saved_model.is_valid_signature "
     "saved_model.main_op saved_model.main_op_with_restore saved_model.predict_signature_def "
     "saved_model.regression_signature_def saved_model.save saved_model.signature_def_utils "
     "saved_model.utils TensorInfo"),
    ("other optimizers", "use one of those in fs.train",
     "train.sdca_fprint train.sdca_optimizer train.sdca_shrink_l1 "
     "train.do_quantize_training_on_graphdef"),
    ("distributions", "sample with fs.random, and write the densities down", "distributions"),
    ("linear operators", "use matrices: fs.linalg",
     "linalg.LinearOperator linalg.LinearOperatorAdjoint linalg.LinearOperatorBlockDiag "
     "linalg.LinearOperatorBlockLowerTriangular linalg.LinearOperatorCirculant "
     "linalg.LinearOperatorCirculant2D linalg.LinearOperatorCirculant3D "
     "linalg.LinearOperatorComposition linalg.LinearOperatorDiag "
     "linalg.LinearOperatorFullMatrix linalg.LinearOperatorHouseholder "
     "linalg.LinearOperatorIdentity linalg.LinearOperatorInversion "
     "linalg.LinearOperatorKronecker linalg.LinearOperatorLowRankUpdate "
     "linalg.LinearOperatorLowerTriangular linalg.LinearOperatorPermutation "
     "linalg.LinearOperatorScaledIdentity linalg.LinearOperatorToeplitz "
     "linalg.LinearOperatorTridiag linalg.LinearOperatorZeros"),
    ("ragged tensors", "use an fs.SparseTensor, or pad rows to one length",
     "RaggedTensor RaggedTensorSpec ragged ragged_fill_empty_rows ragged_fill_empty_rows_grad "
     "strings.ngrams strings.unicode_decode strings.unicode_decode_with_offsets "
     "strings.unicode_encode strings.unicode_split strings.unicode_split_with_offsets "
     "experimental.DynamicRaggedShape experimental.RowPartition"),
    ("scripts of Unicode", "use Python's unicodedata before the feed", "strings.unicode_script"),
    ("values that stay in a session", "keep them in an fs.Variable",
     "get_session_handle get_session_tensor delete_session_tensor"),
    ("contexts of control flow", "branches and loops are operations that own their bodies: use "
     "fs.cond and fs.while_loop, or fs.raw_ops.Switch and Merge by hand",
     "CondContext WhileContext control_flow_ops"),
    ("vectorised loops", "use operations on a batch, or fs.vectorized_map",
     "nondifferentiable_batch_function"),
    ("custom operations in C++", "subclass fs.Op, or use fs.py_func",
     "load_library load_op_library load_file_system_library user_ops "
     "experimental.register_filesystem_plugin"),
    ("conversions of one's own", "convert values before they are given to operations",
     "register_tensor_conversion_function"),
    ("switches between versions", "not needed: graphs and sessions are all there is",
     "disable_v2_behavior disable_eager_execution disable_v2_tensorshape "
     "disable_tensor_equality disable_resource_variables "
     "enable_resource_variables resource_variables_enabled "
     "test.with_eager_op_as_function"),
    ("eager execution and TensorFlow 2", "graphs and sessions are all there is",
     "enable_eager_execution executing_eagerly executing_eagerly_outside_functions "
     "enable_v2_behavior enable_v2_tensorshape enable_tensor_equality "
     "Module wrap_function experimental.async_clear_error experimental.async_scope "
     "experimental.function_executor_type experimental.output_all_intermediates "
     "experimental.enable_strict_mode"),
    ("gradients by tape", "use fs.gradients", "GradientTape"),
    ("types of structures", "functions here need none: give dtypes and shapes",
     "NoneTensorSpec OptionalSpec TensorArraySpec TypeSpec types "
     "type_spec_from_value is_symbolic_tensor experimental.BatchableExtensionType "
     "experimental.ExtensionType experimental.ExtensionTypeBatchEncoder "
     "experimental.ExtensionTypeSpec experimental.Optional experimental.StructuredTensor "
     "experimental.extension_type experimental.dispatch_for_api "
     "experimental.dispatch_for_binary_elementwise_apis "
     "experimental.dispatch_for_binary_elementwise_assert_apis "
     "experimental.dispatch_for_unary_elementwise_apis experimental.unregister_dispatch_for"),
    ("protocol buffers of values", "use NumPy arrays", "NameAttrList"),
    ("the version", "ask fs.__version__ for flowscope's",
     "VERSION GIT_VERSION COMPILER_VERSION CXX11_ABI_FLAG CXX_VERSION GRAPH_DEF_VERSION "
     "GRAPH_DEF_VERSION_MIN_CONSUMER GRAPH_DEF_VERSION_MIN_PRODUCER MONOLITHIC_BUILD version "
     "sysconfig"),
    ("compatibility", "the names are TensorFlow 1's already", "compat"),
    ("compilers", "plans are compiled anyway: see Session.plan", "xla mlir lite autograph"),
    ("mixed precision", "cast by hand: fs.cast", "mixed_precision"),
    ("tests", "use pytest, and np.testing",
     "test.TestCase test.Benchmark test.benchmark_config test.StubOutForTesting "
     "test.assert_equal_graph_def test.disable_with_predicate test.get_temp_dir test.main "
     "test.mock test.test_src_dir_path test.experimental"),
    ("facts about devices", "ask Session.list_devices()",
     "test.gpu_device_name test.is_gpu_available test.is_cpu_target_available "
     "test.is_built_with_cuda test.is_built_with_gpu_support test.is_built_with_rocm "
     "test.is_built_with_xla"),
    ("checks of numbers everywhere", "use fs.add_check_numerics_ops",
     "debugging.enable_check_numerics debugging.disable_check_numerics"),
    ("other debugging", "errors show the user's lines; Session.placements() tells devices",
     "debugging.experimental debugging.enable_traceback_filtering "
     "debugging.disable_traceback_filtering debugging.is_traceback_filtering_enabled "
     "debugging.get_log_device_placement debugging.set_log_device_placement"),
    ("statuses", "catch the classes in fs.errors", "errors.raise_exception_on_not_ok_status"),
    ("parts of graph_util", "use fs.import_graph_def, and NodeDef.attr",
     "graph_util.import_graph_def graph_util.must_run_on_cpu "
     "graph_util.tensor_shape_from_node_def_name"),
    ("generators of random numbers", "use fs.random.stateless_uniform and its kin, or seeds",
     "random.Algorithm random.Generator random.create_rng_state random.experimental "
     "random.fold_in random.get_global_generator random.set_global_generator random.split "
     "random.stateless_parameterized_truncated_normal random_index_shuffle"),
    ("what came after TensorFlow 1", "it is not part of TensorFlow 1",
     "approx_top_k check_pinned conv conv2d_backprop_filter_v2 conv2d_backprop_input_v2 fftnd "
     "ifftnd irfftnd rfftnd math.approx_max_k math.approx_min_k math.sobol_sample "
     "nn.approx_max_k nn.approx_min_k nn.compute_average_loss nn.experimental "
     "nn.scale_regularization_loss linalg.eigh_tridiagonal linalg.experimental sparse.bincount "
     "signal.fftnd signal.ifftnd signal.irfftnd signal.rfftnd quantization.experimental "
     "train.experimental dtypes.experimental.float4_e2m1fn experimental.float4_e2m1fn"),
)  # fmt: skip


def table() -> str:
    """Returns the table of absent names for the page."""
    rows = ["| | names | in their place |", "|---|---|---|"]
    for subject, advice, names in ABSENT:
        shown = ", ".join(f"`tf.{n}`" for n in names.split())
        rows.append(f"| {subject} | {shown} | {advice} |")
    return "\n".join(rows) + "\n"


def written(page: str) -> str:
    """Returns the page's text with the table as it is now."""
    head, _, rest = page.partition(BEGIN)
    return f"{head}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


def main() -> None:
    """Writes the table into the page in the repository in which the package lies."""
    page = Path(__file__).resolve().parents[3] / PAGE
    page.write_text(written(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
