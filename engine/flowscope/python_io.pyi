"""Files of records outside of graphs, under TensorFlow's names.

Written by `python -m flowscope.api.exports`: what is changed here is lost.
"""

from flowscope.ops.input.python_io import (
    TFRecordCompressionType as TFRecordCompressionType,
    TFRecordOptions as TFRecordOptions,
    TFRecordWriter as TFRecordWriter,
    tf_record_iterator as tf_record_iterator,
)

__all__ = [
    "TFRecordCompressionType",
    "TFRecordOptions",
    "TFRecordWriter",
    "tf_record_iterator",
]
