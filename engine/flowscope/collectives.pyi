"""Collectives: reductions and exchanges among devices, one tensor per rank.

Written by `python -m flowscope.api.exports`: what is changed here is lost.
"""

from flowscope.ops.collective.functions import (
    all_gather as all_gather,
    all_reduce as all_reduce,
    all_to_all as all_to_all,
    broadcast as broadcast,
    reduce as reduce,
    reduce_scatter as reduce_scatter,
    scatter as scatter,
)
from flowscope.ops.collective.references import (
    forward_reference as forward_reference,
    resolve_references as resolve_references,
)

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "broadcast",
    "forward_reference",
    "reduce",
    "reduce_scatter",
    "resolve_references",
    "scatter",
]
