"""Graphs in files, and what files hold, under TensorFlow 1's names."""

import typing as _typing

from flowscope.api.absent import refusal as _refusal
from flowscope.graph.serialization.files import (
    read_graph as read_graph,
    write_graph as write_graph,
)
from flowscope.ops.host.files import (
    matching_files as matching_files,
    read_file as read_file,
    write_file as write_file,
)
from flowscope.ops.input.examples import (
    FixedLenFeature as FixedLenFeature,
    FixedLenSequenceFeature as FixedLenSequenceFeature,
    SparseFeature as SparseFeature,
    VarLenFeature as VarLenFeature,
    parse_example as parse_example,
    parse_sequence_example as parse_sequence_example,
    parse_single_example as parse_single_example,
    parse_single_sequence_example as parse_single_sequence_example,
)
from flowscope.ops.input.images import (
    decode_bmp as decode_bmp,
    decode_gif as decode_gif,
    decode_image as decode_image,
    decode_jpeg as decode_jpeg,
    decode_png as decode_png,
    encode_jpeg as encode_jpeg,
    encode_png as encode_png,
    extract_jpeg_shape as extract_jpeg_shape,
    is_jpeg as is_jpeg,
)
from flowscope.ops.input.python_io import (
    TFRecordCompressionType as TFRecordCompressionType,
    TFRecordOptions as TFRecordOptions,
    TFRecordWriter as TFRecordWriter,
    tf_record_iterator as tf_record_iterator,
)
from flowscope.ops.input.tensor_strings import (
    deserialize_many_sparse as deserialize_many_sparse,
    parse_tensor as parse_tensor,
    serialize_many_sparse as serialize_many_sparse,
    serialize_sparse as serialize_sparse,
    serialize_tensor as serialize_tensor,
)
from flowscope.ops.state.containers.queues import (
    PaddingFIFOQueue as PaddingFIFOQueue,
    PriorityQueue as PriorityQueue,
    QueueBase as QueueBase,
    RandomShuffleQueue as RandomShuffleQueue,
)
from flowscope.ops.strings.elementwise import (
    decode_base64 as decode_base64,
    encode_base64 as encode_base64,
)
from flowscope.ops.strings.parsing import decode_csv as decode_csv, decode_raw as decode_raw
from flowscope.train.input.input_producers import match_filenames_once as match_filenames_once

if not _typing.TYPE_CHECKING:  # type checkers know which names there are
    __getattr__ = _refusal(__name__, globals())
