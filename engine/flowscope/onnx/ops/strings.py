"""Operators on strings."""

from __future__ import annotations

from typing import Any

import flowscope as fs
from flowscope.onnx.kernels.operator import operator
from flowscope.onnx.node import OnnxNode, dims_of
from flowscope.onnx.table import converts


@converts("StringConcat")
def _concat(n: OnnxNode) -> Any:
    return fs.string_join([n.x(0), n.x(1)])


@converts("RegexFullMatch")
def _regex(n: OnnxNode) -> Any:
    x = n.x(0)
    return operator("RegexFullMatch", [x], [(fs.bool, x.spec.shape)], pattern=n.attr("pattern", ""))


@converts("StringSplit")
def _split(n: OnnxNode) -> Any:
    x = n.x(0)
    dims = x.spec.shape
    longer = None if dims is None else (*dims, None)
    return operator(
        "StringSplit",
        [x],
        [(fs.string, longer), (fs.int64, dims)],
        delimiter=n.attr("delimiter", ""),
        most=n.attr("maxsplit", -1),
    )


@converts("StringNormalizer")
def _normalize(n: OnnxNode) -> Any:
    x = n.x(0)
    return operator(
        "StringNormalizer",
        [x],
        [(fs.string, (None,) if n.rank() == 1 else (1, None))],
        case=n.attr("case_change_action", "NONE"),
        is_case_sensitive=bool(n.attr("is_case_sensitive", 0)),
        stopwords=n.attr("stopwords", []),
    )


@converts("TfIdfVectorizer")
def _tf_idf(n: OnnxNode) -> Any:
    x, indexes = n.x(0), n.needed("ngram_indexes")
    dims = (max(indexes) + 1,)
    return operator(
        "TfIdfVectorizer",
        [x],
        [(fs.float32, dims if n.rank() == 1 else (dims_of(x)[0], *dims))],
        mode=n.needed("mode"),
        lengths=(n.needed("min_gram_length"), n.needed("max_gram_length")),
        skips=n.needed("max_skip_count"),
        counts=n.needed("ngram_counts"),
        indexes=indexes,
        pool=n.attr("pool_int64s") or n.attr("pool_strings", []),
        weights=n.attr("weights", []),
    )
