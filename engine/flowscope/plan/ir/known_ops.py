"""Classes of ops that tables define, for those who look for patterns of them in programs."""

from __future__ import annotations

from flowscope.graph.op import op_class

ADD = op_class("Add")
GREATER = op_class("Greater")
LESS = op_class("Less")
LESS_EQUAL = op_class("LessEqual")
LOGICAL_AND = op_class("LogicalAnd")

__all__ = ["ADD", "GREATER", "LESS", "LESS_EQUAL", "LOGICAL_AND"]
