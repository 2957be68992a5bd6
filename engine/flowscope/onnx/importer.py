"""From a model to operations: values by name, nodes in turn, scopes from names, known values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import FunctionProto, GraphProto, NodeProto, ValueInfoProto

import flowscope as fs
from flowscope.errors import InvalidArgumentError, OpError, UnimplementedError
from flowscope.graph.op import Spec, kernel_of
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.values import dtypes
from flowscope.graph.values.shapes import size_of
from flowscope.onnx.bodies import bound, has_body, standard_body
from flowscope.onnx.node import OnnxNode, Value, kind_of
from flowscope.onnx.origins import NodeOrigin
from flowscope.onnx.protos import as_array, dense, dtype_of
from flowscope.onnx.table import is_alone, table

#: Graphs in graphs and functions in functions, at most.
MAX_DEPTH = 48
#: Nodes that are converted, those of functions once per use, at most.
MAX_NODES = 1_000_000
#: Values of so many elements are computed while the model is loaded, at most.
_MAX_KNOWN = 4096
#: The oldest opset: older ones are fine where they have the same version of an operator.
_OLDEST = 6
_DEFAULT = ("", "ai.onnx")
#: Inputs that must be known when a model is loaded, by operator: they stay constants.
_FIXED = {"Resize": (1, 2), "Upsample": (1,), "Clip": (1, 2), "Pad": (1, 2), "Dropout": (1, 2)}


class OnnxImporter:
    """Converts one model in the default graph.

    Args:
        model: The model.
        folder: Where data that lie beside it are found.
        trainable: Whether floating-point initialisers become variables.
    """

    def __init__(self, model: onnx.ModelProto, folder: Path | None, trainable: bool) -> None:
        self._model = model
        self._folder = folder
        self._trainable = trainable
        self._functions = {(f.domain, f.name, f.overload): f for f in model.functions}
        self._opsets = _versions(model.opset_import)
        self._graph = fs.get_default_graph()
        self._depth = 0
        self._count = 0
        self._calls: list[Any] = []
        #: By the name that an initialiser has in the model.
        self.weights: dict[str, Any] = {}

    def run(self) -> tuple[dict[str, Tensor], dict[str, Value]]:
        """Converts all; returns the model's inputs and outputs by name."""
        graph = self._model.graph
        self._check_supported()
        self._frozen = _fixed_names(graph)
        values: dict[str, Value] = {}
        self._add_weights(graph, values, _scopes_of_weights(graph))
        inputs = {}
        for info in graph.input:
            if info.name not in values:
                inputs[info.name] = values[info.name] = _placeholder(info)
        self._add_nodes(graph.node, values, self._opsets)
        return inputs, {o.name: _found(values, o.name, "the model") for o in graph.output}

    # -- what is there --------------------------------------------------------------------------

    def _check_supported(self) -> None:
        missing = []
        for node, opsets in self._all_nodes():
            opset = opsets.get(_domain(node))
            if opset is None:
                missing.append(f"{_label(node)}: the model imports no opset of {node.domain!r}")
            elif not self._is_supported(node, opset):
                missing.append(f"{_label(node)}, opset {opset} of {node.domain or 'ai.onnx'!r}")
            if len(missing) > 20:
                missing[-1] = "..."
                break
        if missing:
            raise UnimplementedError(
                "the model has nodes that are not supported:\n  " + "\n  ".join(missing)
            )

    def _all_nodes(self) -> Iterator[tuple[NodeProto, Mapping[str, int]]]:
        stack: list[tuple[Any, Mapping[str, int], int]] = [(self._model.graph, self._opsets, 0)]
        stack += [(f, _versions(f.opset_import), 0) for f in self._model.functions]
        while stack:
            graph, opsets, depth = stack.pop()
            if depth > MAX_DEPTH:
                raise _too_deep()
            for node in graph.node:
                yield node, opsets
                for a in node.attribute:
                    stack += [(g, opsets, depth + 1) for g in (a.g, *a.graphs) if g.node]

    def _is_supported(self, node: NodeProto, opset: int) -> bool:
        if (node.domain, node.op_type, node.overload) in self._functions:
            return True
        known = table()
        if _domain(node) == "" and node.op_type in known:
            return _is_known(node.op_type, opset)
        return _key(node) in known or has_body(node, opset)

    # -- values ---------------------------------------------------------------------------------

    def _add_weights(
        self, graph: GraphProto, values: dict[str, Value], scopes: Mapping[str, str]
    ) -> None:
        for tensor in graph.initializer:
            array = as_array(tensor, self._folder)
            values[tensor.name] = self._weight(tensor.name, array, scopes)
        for sparse in graph.sparse_initializer:
            name = sparse.values.name
            values[name] = self._weight(name, dense(sparse), scopes)

    def _weight(self, name: str, array: Any, scopes: Mapping[str, str]) -> Tensor:
        dtype = dtypes.string if array.dtype == object else dtypes.as_dtype(array.dtype)
        wished = safe_name(scopes.get(name, name))
        is_root = self._depth == 0
        if self._trainable and is_root and dtype.is_floating and name not in self._frozen:
            made = fs.Variable(array, name=wished, dtype=dtype, trainable=name in scopes)
            self.weights[name] = made
            return fs.identity(made, name=f"{wished}/read")
        found = fs.constant(array, dtype=dtype, name=wished)
        if is_root:
            self.weights[name] = found
        return found

    # -- nodes ----------------------------------------------------------------------------------

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        if self._depth >= MAX_DEPTH:
            raise _too_deep()
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    def _run_graph(
        self,
        graph: GraphProto,
        given: Sequence[Value],
        around: Mapping[str, Value],
        opsets: Mapping[str, int],
    ) -> list[Value]:
        """Converts a body; returns the values of its outputs."""
        if len(given) != len(graph.input):
            raise InvalidArgumentError(
                f"expected a body of {len(given)} inputs, got {len(graph.input)}"
            )
        with self._deeper():
            values = dict(around)
            self._add_weights(graph, values, {})
            values.update(zip([i.name for i in graph.input], given, strict=True))
            self._add_nodes(graph.node, values, opsets)
            return [_found(values, o.name, "a body") for o in graph.output]

    def _add_nodes(
        self, nodes: Sequence[NodeProto], values: dict[str, Value], opsets: Mapping[str, int]
    ) -> None:
        base = self._graph.get_name_scope()
        for position, node in enumerate(nodes):
            self._count += 1
            if self._count > MAX_NODES:
                raise InvalidArgumentError(f"the model has more than {MAX_NODES} nodes")
            inputs = [None if not n else _found(values, n, _label(node)) for n in node.input]
            found = self._convert(node, position, inputs, values, opsets, base)
            if len(found) < len(node.output):
                raise InvalidArgumentError(
                    f"{_label(node)}: expected at most {len(found)} outputs, got {len(node.output)}"
                )
            values.update({n: v for n, v in zip(node.output, found, strict=False) if n})

    def _convert(
        self,
        node: NodeProto,
        position: int,
        inputs: list[Value],
        values: Mapping[str, Value],
        opsets: Mapping[str, int],
        base: str,
    ) -> tuple[Value, ...]:
        opset = opsets.get(_domain(node), 1)
        scope, _, leaf = safe_name(node.name or node.op_type).rpartition("/")
        inside = "/".join(p for p in (base, scope) if p)
        first = len(self._graph)
        try:
            with self._graph.name_scope(f"{inside}/" if inside else None):
                found = self._outputs(node, opset, leaf, inputs, values, opsets)
        except OpError as e:
            if getattr(e, "_is_of_node", False):
                raise
            raise _of_node(e, node, opset, inputs) from e
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as e:
            made = InvalidArgumentError(f"{type(e).__name__}: {e}"[:500])
            raise _of_node(made, node, opset, inputs) from e
        except (MemoryError, RecursionError) as e:
            made = InvalidArgumentError(f"asks for too much: {type(e).__name__}")
            raise _of_node(made, node, opset, inputs) from None
        origin = NodeOrigin(node.name, node.op_type, position)
        for op in self._graph.operations_since(first):
            if not isinstance(op.origin, NodeOrigin):
                op.origin = origin
            _note_known(op)
        return found

    def _outputs(
        self,
        node: NodeProto,
        opset: int,
        leaf: str,
        inputs: list[Value],
        values: Mapping[str, Value],
        opsets: Mapping[str, int],
    ) -> tuple[Value, ...]:
        function = self._functions.get((node.domain, node.op_type, node.overload))
        if function is not None:
            return self._call(function, node, leaf, inputs)
        converter = table().get(_key(node))
        at = OnnxNode(
            node,
            opset,
            leaf,
            inputs,
            lambda g, given: self._run_graph(g, given, values, opsets),
            values,
        )
        if converter is None:
            return self._call(standard_body(at), node, leaf, inputs)
        scope = nullcontext() if is_alone(node.op_type) else self._graph.name_scope(leaf)
        with scope:
            found = converter(at)
        at.check_all_read()
        return found if isinstance(found, tuple) else (found,)

    def _call(
        self, function: FunctionProto, node: NodeProto, leaf: str, inputs: list[Value]
    ) -> tuple[Value, ...]:
        """Converts a function's nodes in place of the node that calls it."""
        key = (function.domain, function.name, function.overload)
        if key in self._calls and key in self._functions:
            raise InvalidArgumentError(f"function {function.name!r} calls itself")
        self._calls.append(key)
        try:
            with self._deeper(), self._graph.name_scope(leaf):
                given = [*inputs, *[None] * (len(function.input) - len(inputs))]
                values: dict[str, Value] = dict(zip(function.input, given, strict=True))
                nodes = bound(function, node)
                self._add_nodes(nodes, values, _versions(function.opset_import))
                # Of an operator's own function an output that nobody wants may lack.
                return tuple(
                    _found(values, name, f"function {function.name!r}")
                    if i < len(node.output) and node.output[i]
                    else values.get(name)
                    for i, name in enumerate(function.output)
                )
        finally:
            self._calls.pop()


def _is_known(operator: str, opset: int) -> bool:
    """Whether an operator's version is one of opset 6 or newer."""
    if not 1 <= opset <= onnx.defs.onnx_opset_version() or not onnx.defs.has(operator, opset, ""):
        return False
    since = onnx.defs.get_schema(operator, opset, "").since_version
    if opset >= _OLDEST:
        return True
    return bool(onnx.defs.has(operator, _OLDEST, "")) and (
        onnx.defs.get_schema(operator, _OLDEST, "").since_version == since
    )


def safe_name(name: str) -> str:
    """A name that operations can have, with the scopes that slashes stand for."""
    parts = [re.sub(r"[^A-Za-z0-9_.\\>-]", "_", p) for p in name[:500].split("/") if p]
    found = "/".join(parts)
    return found if re.match(r"[A-Za-z0-9.]", found) else f"n{found}"


def _versions(imports: Any) -> dict[str, int]:
    found = {o.domain: o.version for o in imports}
    if "ai.onnx" in found:
        found.setdefault("", found["ai.onnx"])
    return found


def _domain(node: NodeProto) -> str:
    return "" if node.domain in _DEFAULT else node.domain


def _key(node: NodeProto) -> str:
    """What the table of converters calls a node's operator."""
    domain = _domain(node)
    return f"{domain}/{node.op_type}" if domain else node.op_type


def _label(node: NodeProto) -> str:
    return f"ONNX node {node.name[:200] or node.output[:1]} ({node.op_type[:100]})"


def _too_deep() -> InvalidArgumentError:
    return InvalidArgumentError(f"graphs and functions are nested deeper than {MAX_DEPTH}")


def _of_node(e: OpError, node: NodeProto, opset: int, inputs: list[Value]) -> OpError:
    """The error with the node that it is of."""
    found = e.reworded(f"{_label(node)}, opset {opset}: {e.message}")
    found = found.located(inputs=[f"{n}: {kind_of(v)}" for n, v in zip(node.input, inputs)])
    found._is_of_node = True  # type: ignore[attr-defined]
    return found


def _found(values: Mapping[str, Value], name: str, reader: str) -> Value:
    try:
        return values[name]
    except KeyError:
        raise InvalidArgumentError(
            f"{reader} reads {name[:200]!r}, which nothing before it makes: nodes must stand in "
            "the order of their values, without circles"
        ) from None


def _placeholder(info: ValueInfoProto) -> Tensor:
    kind = info.type.WhichOneof("value")
    if kind != "tensor_type":
        raise UnimplementedError(
            f"input {info.name!r}: expected a tensor, got {kind or 'no type'}: sequences and "
            "optionals are supported between nodes only"
        )
    tensor = info.type.tensor_type
    dims: list[int | None] | None = None
    if tensor.HasField("shape"):
        dims = [d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim]
    return fs.placeholder(dtype_of(tensor.elem_type), dims, name=safe_name(info.name))


def _fixed_names(graph: GraphProto) -> set[str]:
    found = set()
    for node in graph.node:
        for i in _FIXED.get(node.op_type, ()):
            found.update(node.input[i : i + 1])
    return found


def _scopes_of_weights(graph: GraphProto) -> dict[str, str]:
    """By weight that learns: its name among operations, in the scope of the node it belongs to."""
    found: dict[str, str] = {}
    for node in graph.node:
        scope = node.name.strip("/").rpartition("/")[0]
        for i, name in enumerate(node.input):
            if node.op_type == "BatchNormalization" and i > 2:
                continue
            module, _, leaf = name.rpartition(".")
            is_inside = module and scope.replace("/", ".").endswith(module)
            found.setdefault(name, f"{scope}/{leaf}" if is_inside else name)
    return found


def _note_known(op: Operation) -> None:
    """Computes small values that follow from constants, so that shapes are known."""
    if not op.inputs or op.definition.is_stateful or len(op.outputs) > 16:
        return
    sources = [t.spec.constant for t in op.inputs]
    if any(s is None or np.size(s) > _MAX_KNOWN for s in sources):
        return
    if getattr(op.definition, "functions", ()) or not all(_is_small(t.spec) for t in op.outputs):
        return
    specs = [t.spec for t in op.inputs], [t.spec for t in op.outputs]
    try:
        with np.errstate(all="ignore"):
            found = kernel_of(op.definition, "CPU", *specs)(np, *sources)
    except Exception:  # the step says what is wrong
        return
    for tensor, value in zip(op.outputs, found if isinstance(found, tuple) else (found,)):
        s = tensor.spec
        if s.constant is None and np.shape(value) == s.shape:
            tensor.spec = Spec(s.dtype, s.shape, np.asarray(value))


def _is_small(spec: Spec) -> bool:
    return spec.is_static and spec.dtype.kind in "fiub" and (size_of(spec.shape) or 0) <= _MAX_KNOWN


__all__ = ["OnnxImporter", "safe_name"]
