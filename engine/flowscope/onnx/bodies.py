"""Operators that the standard defines by a function: its nodes stand in for an own converter."""

from __future__ import annotations

from typing import Any

import onnx
from onnx import FunctionProto, NodeProto, helper

import flowscope as fs
from flowscope.errors import InvalidArgumentError, UnimplementedError
from flowscope.onnx.node import OnnxNode
from flowscope.onnx.protos import number_of


def _schema(node: NodeProto, opset: int) -> Any:
    try:
        return onnx.defs.get_schema(node.op_type, opset, node.domain)
    except onnx.defs.SchemaError:
        return None


def has_body(node: NodeProto, opset: int) -> bool:
    """Whether the standard defines a node's operator by a function."""
    schema = _schema(node, opset)
    return schema is not None and bool(schema.has_function or schema.has_context_dependent_function)


def standard_body(node: OnnxNode) -> FunctionProto:
    """The function that the standard defines a node's operator by, for its inputs."""
    schema = _schema(node.proto, node.opset)
    if schema is None:
        raise UnimplementedError(f"operator {node.type!r} is not supported")
    versions = [v for v in schema.function_opset_versions if v <= node.opset]
    if schema.has_function and versions:
        found = schema.get_function_with_opset_version(versions[-1])
    else:
        versions = [
            v for v in schema.context_dependent_function_opset_versions if v <= node.opset
        ] or list(schema.context_dependent_function_opset_versions)
        found = schema.get_context_dependent_function_with_opset_version(
            versions[-1], node.proto.SerializeToString(), [_type(v) for v in node.inputs]
        )
    body = FunctionProto()
    body.ParseFromString(found if isinstance(found, bytes) else found.SerializeToString())
    _set_defaults(body, schema)
    return body


def _set_defaults(body: FunctionProto, schema: Any) -> None:
    known = {a.name for a in body.attribute_proto}
    for name, a in schema.attributes.items():
        if name not in known and a.default_value.type:
            body.attribute_proto.append(a.default_value)


def _type(value: object) -> bytes:
    found = onnx.TypeProto()
    if value is not None:
        if not isinstance(value, fs.Tensor):
            raise UnimplementedError("a sequence in an operator that is defined by a function")
        dims = None if value.ndim is None else value.shape.as_list()
        found = helper.make_tensor_type_proto(number_of(value.dtype), dims)
    data: bytes = found.SerializeToString()
    return data


def bound(function: FunctionProto, call: NodeProto) -> list[NodeProto]:
    """A function's nodes, with the attributes of a call in the places that refer to them."""
    given = {a.name: a for a in function.attribute_proto}
    given.update((a.name, a) for a in call.attribute)
    found = []
    for node in function.node:
        copy = NodeProto()
        copy.CopyFrom(node)
        _bind(copy, given, 0)
        found.append(copy)
    return found


def _bind(node: NodeProto, given: dict[str, onnx.AttributeProto], depth: int) -> None:
    if depth > 48:
        raise InvalidArgumentError("graphs are nested too deeply")
    kept = []
    for a in node.attribute:
        if a.ref_attr_name:
            source = given.get(a.ref_attr_name)
            if source is None:
                continue
            made = onnx.AttributeProto()
            made.CopyFrom(source)
            made.name = a.name
            kept.append(made)
        else:
            for graph in (a.g, *a.graphs):
                for inner in graph.node:
                    _bind(inner, given, depth + 1)
            kept.append(a)
    if any(a.ref_attr_name for a in node.attribute):
        kept = [onnx.AttributeProto.FromString(a.SerializeToString()) for a in kept]
        del node.attribute[:]
        node.attribute.extend(kept)


__all__ = ["bound", "has_body", "standard_body"]
