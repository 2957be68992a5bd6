"""From a file, its bytes or a message to operations in the default graph."""

from __future__ import annotations

from typing import Any

from flowscope.errors import InvalidArgumentError, OpError, ResourceExhaustedError
from flowscope.onnx.importer import OnnxImporter
from flowscope.onnx.protos import read_model


def import_model(source: Any, trainable: bool) -> tuple[dict[str, Any], ...]:
    """Adds a model to the default graph; returns its inputs, outputs and weights by name.

    Raises:
        OpError: if it cannot be read, see `fs.onnx.load`.
    """
    try:
        model, folder, _ = read_model(source)
        importer = OnnxImporter(model, folder, trainable)
        inputs, outputs = importer.run()
    except OpError:
        raise
    except (MemoryError, RecursionError):
        raise ResourceExhaustedError("the model is too large") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as e:
        raise InvalidArgumentError(f"the model is damaged: {e}"[:500]) from e
    return inputs, outputs, importer.weights


__all__ = ["import_model"]
