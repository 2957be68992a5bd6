"""Models as others export them, made by ONNX's helper: a transformer, and a residual network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

_OPSET, _IR = 20, 9


class _Builder:
    """Nodes and weights of a model; `is_named` says whether nodes have the names of modules."""

    def __init__(self, is_named: bool) -> None:
        self._is_named = is_named
        self._random = np.random.default_rng(0)
        self._nodes: list[Any] = []
        self._weights: list[Any] = []

    def weight(self, name: str, *shape: int) -> str:
        value = self._random.normal(0, 0.05, shape).astype(np.float32)
        return self.constant(name, np.abs(value) if name.endswith("var") else value)

    def constant(self, name: str, value: Any) -> str:
        self._weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(self, op_type: str, inputs: Sequence[str], name: str, **attributes: Any) -> str:
        output = f"value_{len(self._nodes)}"
        called = f"/{name}" if self._is_named else ""
        self._nodes.append(helper.make_node(op_type, inputs, [output], called, **attributes))
        return output

    def dense(self, x: str, sizes: tuple[int, int], module: str) -> str:
        path = module.replace(".", "/")
        product = self.node(
            "MatMul", [x, self.weight(f"{module}.weight", *sizes)], f"{path}/MatMul"
        )
        return self.node("Add", [self.weight(f"{module}.bias", sizes[1]), product], f"{path}/Add")

    def norm(self, x: str, size: int, module: str) -> str:
        weights = [self.weight(f"{module}.{name}", size) for name in ("weight", "bias")]
        name = f"{module.replace('.', '/')}/LayerNormalization"
        return self.node("LayerNormalization", [x, *weights], name, axis=-1)

    def model(self, x: Any, y: str, y_shape: Sequence[Any]) -> onnx.ModelProto:
        self._nodes.append(helper.make_node("Identity", [y], ["y"], "/Identity"))
        outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, y_shape)]
        graph = helper.make_graph(self._nodes, "model", [x], outputs, self._weights)
        opsets = [helper.make_opsetid("", _OPSET)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=_IR)


def transformer(layers: int = 12, size: int = 64, is_named: bool = True) -> onnx.ModelProto:
    """An encoder of words with four heads, as PyTorch exports it; without names if asked for."""
    b, heads, words, length = _Builder(is_named), 4, 1000, 32
    x = b.node("Gather", [b.weight("embeddings.weight", words, size), "ids"], "embeddings/Gather")
    for k in range(layers):
        x = _attention_layer(b, x, size, heads, f"encoder.layers_{k}")
    y = b.dense(b.norm(x, size, "norm"), (size, words), "head")
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", length])
    return b.model(ids, y, ["batch", length, words])


def _attention_layer(b: _Builder, x: str, size: int, heads: int, module: str) -> str:
    path = module.replace(".", "/")

    def split(name: str, order: Sequence[int]) -> str:
        value = b.dense(normed, (size, size), f"{module}.attention.{name}")
        shape = b.constant(f"{module}.{name}.shape", np.array([0, 0, heads, size // heads]))
        value = b.node("Reshape", [value, shape], f"{path}/attention/Reshape_{name}")
        return b.node("Transpose", [value], f"{path}/attention/Transpose_{name}", perm=order)

    normed = b.norm(x, size, f"{module}.norm1")
    query, value = split("query", [0, 2, 1, 3]), split("value", [0, 2, 1, 3])
    scores = b.node("MatMul", [query, split("key", [0, 2, 3, 1])], f"{path}/attention/scores")
    scale = b.constant(f"{module}.scale", np.float32((size // heads) ** 0.5))
    scores = b.node("Div", [scores, scale], f"{path}/attention/Div")
    scores = b.node("Softmax", [scores], f"{path}/attention/Softmax", axis=-1)
    mixed = b.node("MatMul", [scores, value], f"{path}/attention/mixed")
    mixed = b.node("Transpose", [mixed], f"{path}/attention/Transpose", perm=[0, 2, 1, 3])
    shape = b.constant(f"{module}.shape", np.array([0, 0, size]))
    mixed = b.node("Reshape", [mixed, shape], f"{path}/attention/Reshape")
    x = b.node("Add", [x, b.dense(mixed, (size, size), f"{module}.attention.out")], f"{path}/Add")
    inner = b.dense(b.norm(x, size, f"{module}.norm2"), (size, 4 * size), f"{module}.wide")
    inner = b.dense(b.node("Gelu", [inner], f"{path}/Gelu"), (4 * size, size), f"{module}.narrow")
    return b.node("Add", [x, inner], f"{path}/Add_1")


def residual_network(
    blocks: Sequence[int] = (3, 4, 6, 3), width: int = 16, is_named: bool = True, classes: int = 10
) -> onnx.ModelProto:
    """Stages of blocks of two convolutions with a short cut, each half as large as the last."""
    b = _Builder(is_named)
    x = b.node("Relu", [_convolution(b, "image", (3, width, 7), 2, "conv1")], "relu")
    x = b.node("MaxPool", [x], "pool", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    count = width
    for stage, many in enumerate(blocks):
        for k in range(many):
            module, wide = f"layer{stage + 1}/block{k}", width * 2**stage
            stride = 2 if k == 0 and stage > 0 else 1
            y = _convolution(b, x, (count, wide, 3), stride, f"{module}/conv1")
            y = b.node("Relu", [y], f"{module}/relu")
            y = _convolution(b, y, (wide, wide, 3), 1, f"{module}/conv2")
            if stride > 1 or count != wide:
                x = _convolution(b, x, (count, wide, 1), stride, f"{module}/shortcut")
            x = b.node("Relu", [b.node("Add", [y, x], f"{module}/Add")], f"{module}/relu2")
            count = wide
    x = b.node("Flatten", [b.node("GlobalAveragePool", [x], "mean")], "flatten")
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 3, 64, 64])
    return b.model(image, b.dense(x, (count, classes), "last"), ["batch", classes])


def _convolution(b: _Builder, x: str, sizes: tuple[int, int, int], stride: int, path: str) -> str:
    (count, wide, k), module = sizes, path.replace("/", ".")
    x = b.node(
        "Conv",
        [x, b.weight(f"{module}.weight", wide, count, k, k)],
        f"{path}/Conv",
        kernel_shape=[k, k],
        strides=[stride, stride],
        pads=[k // 2] * 4,
    )
    weights = [b.weight(f"{module}.{name}", wide) for name in ("scale", "bias", "mean", "var")]
    return b.node("BatchNormalization", [x, *weights], f"{path}/BatchNormalization")


__all__ = ["residual_network", "transformer"]
