"""Strings (bytes of any length), under TensorFlow's names.

Written by `python -m flowscope.api.exports`: what is changed here is lost.
"""

from flowscope.ops.strings.elementwise import (
    as_string as as_string,
    regex_full_match as regex_full_match,
    regex_replace as regex_replace,
    string_format as format,
    string_join as join,
    string_length as length,
    string_lower as lower,
    string_strip as strip,
    string_upper as upper,
    substr as substr,
    unicode_transcode as unicode_transcode,
)
from flowscope.ops.strings.hash_buckets import (
    string_to_hash_bucket as to_hash_bucket,
    string_to_hash_bucket_fast as to_hash_bucket_fast,
    string_to_hash_bucket_strong as to_hash_bucket_strong,
)
from flowscope.ops.strings.join_split import (
    bytes_split as bytes_split,
    reduce_join as reduce_join,
    split as split,
    unsorted_segment_join as unsorted_segment_join,
)
from flowscope.ops.strings.parsing import (
    string_to_number as to_number,
)

__all__ = [
    "as_string",
    "bytes_split",
    "format",
    "join",
    "length",
    "lower",
    "reduce_join",
    "regex_full_match",
    "regex_replace",
    "split",
    "strip",
    "substr",
    "to_hash_bucket",
    "to_hash_bucket_fast",
    "to_hash_bucket_strong",
    "to_number",
    "unicode_transcode",
    "unsorted_segment_join",
    "upper",
]
