"""How functions are made again from what is read."""

from __future__ import annotations

from flowscope.control.blocks import Function
from flowscope.graph.graph import Graph
from flowscope.graph.operation import Tensor
from flowscope.graph.serialization.build import function_makers
from flowscope.graph.serialization.definition import FunctionName
from flowscope.graph.serialization.values import stand_ins


class _Maker:
    def make(self, graph: Graph, name: str) -> Function:
        return Function(graph, name)

    def fill(
        self,
        function: Function,
        parameters: list[Tensor],
        results: list[Tensor],
        kept: list[Tensor],
    ) -> None:
        function.parameters, function.results, function.kept = parameters, results, kept

    def close(self, function: Function, captures: list[Tensor]) -> None:
        function.captures = captures
        first = len(function.parameters) - len(captures)
        function._inside = dict(zip(captures, function.parameters[first:], strict=True))


function_makers.append(_Maker())
stand_ins[Function] = FunctionName
