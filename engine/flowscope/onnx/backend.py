"""The interface that ONNX gives to those who run its models: `onnx.backend.base`."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, helper
from onnx.backend.base import Backend, BackendRep, Device, DeviceType

import flowscope as fs
from flowscope.errors import InvalidArgumentError
from flowscope.onnx.model import Model, load
from flowscope.onnx.protos import number_of


class PreparedModel(BackendRep):
    """A model that is ready to run.

    Args:
        model: The model.
    """

    def __init__(self, model: Model) -> None:
        self.model = model

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Returns the outputs' values in order; strings are Python's.

        Args:
            inputs: The values in order, or the only one.
            kwargs: None is known.
        """
        _refuse(kwargs)
        given = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
        return tuple(_plain(v) for v in self.model.run(given).values())


def _plain(value: Any) -> Any:
    """A value as ONNX has it: strings are no bytes."""
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if isinstance(value, bytes):
        return np.array(value.decode(), object)
    if isinstance(value, np.ndarray) and value.dtype == object:
        out = np.empty(value.size, object)
        out[:] = [v.decode() for v in value.reshape(-1).tolist()]
        return out.reshape(value.shape)
    return value


def _refuse(options: dict[str, Any]) -> None:
    if options:
        raise InvalidArgumentError(f"expected no options, got {', '.join(sorted(options))}")


class FlowscopeBackend(Backend):
    """Runs models and single nodes by flowscope."""

    @classmethod
    def is_compatible(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether a model can be prepared."""
        try:
            cls.prepare(model, device, **kwargs)
        except fs.errors.OpError:
            return False
        return True

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> PreparedModel:
        """Returns a model that is ready to run.

        Args:
            model: The model.
            device: "CPU" or "CUDA", perhaps with a number: "CUDA:1".
            kwargs: None is known.
        """
        _refuse(kwargs)
        if not cls.supports_device(device):
            raise InvalidArgumentError(f"expected CPU, or CUDA where there is a GPU: {device!r}")
        return PreparedModel(load(model))

    @classmethod
    def run_node(
        cls,
        node: NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Any = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Returns the outputs of one node.

        Args:
            node: The node.
            inputs: The values of its inputs that have names, in order.
            device: See `prepare`.
            outputs_info: Dtype and shape per output; not needed.
            kwargs: `opset_version`: the version of the operators, the newest without it.
        """
        version = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        names = [name for name in node.input if name]
        values = [np.asarray(v) for v in inputs]
        infos = [
            helper.make_tensor_value_info(n, number_of(fs.as_dtype(v.dtype)), v.shape)
            for n, v in zip(names, values, strict=True)
        ]
        outputs = [helper.make_value_info(n, onnx.TypeProto()) for n in node.output if n]
        graph = helper.make_graph([node], "node", infos, outputs)
        opsets = [helper.make_opsetid(node.domain, version)]
        model = helper.make_model(graph, opset_imports=opsets)
        return cls.prepare(model, device, **kwargs).run(values)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether there is a device of a name such as "CPU" or "CUDA:0"."""
        try:
            found = Device(device)
        except (AttributeError, ValueError):
            return False
        return found.type == DeviceType.CPU and found.device_id == 0


is_compatible = FlowscopeBackend.is_compatible
prepare = FlowscopeBackend.prepare
run_model = FlowscopeBackend.run_model
run_node = FlowscopeBackend.run_node
supports_device = FlowscopeBackend.supports_device

__all__ = [
    "FlowscopeBackend",
    "PreparedModel",
    "is_compatible",
    "prepare",
    "run_model",
    "run_node",
    "supports_device",
]
