"""Models: a graph and a session of their own, what is fed and what is computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from flowscope.errors import FailedPreconditionError, InvalidArgumentError
from flowscope.graph.graph import Graph
from flowscope.graph.operation import Tensor
from flowscope.ops.state.variable_lists import global_variables_initializer
from flowscope.runtime.session.session import Session


class Model:
    """A model of an ONNX file: its graph, and a session with the values of its variables.

    Attributes:
        graph: The graph.
        session: The session; `with model:` closes it.
        inputs: The tensors to be fed, by the model's names.
        outputs: What is computed, by the model's names: tensors, lists of them for sequences, None
            for optionals without a value.
        weights: The model's initializers by name: constants or, if it is trainable, variables.
    """

    def __init__(
        self,
        session: Session,
        inputs: Mapping[str, Tensor],
        outputs: Mapping[str, Any],
        weights: Mapping[str, Any],
    ) -> None:
        self.graph: Graph = session.graph
        self.session = session
        self.inputs = dict(inputs)
        self.outputs = dict(outputs)
        self.weights = dict(weights)

    def run(self, feeds: Any = None) -> dict[str, Any]:
        """Returns the outputs' values by name.

        Args:
            feeds: The values of the inputs by name, or in order.

        Raises:
            InvalidArgumentError: if an input is missing or not known.
        """
        given = {} if feeds is None else feeds
        if isinstance(given, Sequence):
            if len(given) != len(self.inputs):
                raise InvalidArgumentError(f"expected {len(self.inputs)} inputs, got {len(given)}")
            given = dict(zip(self.inputs, given, strict=True))
        if not isinstance(given, Mapping) or given.keys() != self.inputs.keys():
            names = ", ".join(self.inputs) or "none"
            raise InvalidArgumentError(
                f"expected the inputs {names} by name, got {sorted(map(str, given))}"
            )
        fed = {self.inputs[name]: value for name, value in given.items()}
        found = {k: v for k, v in self.outputs.items() if v is not None}
        values = self.session.run(found, fed) if found else {}
        return {k: values.get(k) for k in self.outputs}

    def close(self) -> None:
        """Closes the session."""
        self.session.close()

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        sides = [
            ", ".join(
                f"{n}: {t.spec if isinstance(t, Tensor) else 'sequence'}" for n, t in s.items()
            )
            for s in (self.inputs, self.outputs)
        ]
        return f"<fs.onnx: ({sides[0]}) -> ({sides[1]})>"


def load(model: Any, trainable: bool = False) -> Model:
    """Returns an ONNX model as a graph with a session of its own.

        with fs.onnx.load("model.onnx") as model:
            model.run({"x": images})

    Operations lie in the scopes that the nodes' names spell, and each knows its node. Nothing in a
    file runs; data beside a model must lie in its folder.

    Args:
        model: The path of a file, its bytes, or an `onnx.ModelProto`.
        trainable: Whether floating-point initializers become trainable variables.

    Raises:
        FailedPreconditionError: if onnx is not installed.
        InvalidArgumentError: if the file is damaged, or a node does not fit.
        NotFoundError: if there is no such file.
        UnimplementedError: if nodes are not supported: all of them, by name, operator and opset.
    """
    _need_onnx()
    reading = import_module("flowscope.onnx.reading")
    session = Session(graph=Graph())
    try:
        with session.graph.as_default():
            inputs, outputs, weights = reading.import_model(model, trainable)
            if trainable:
                session.run(global_variables_initializer())
    except BaseException:
        session.close()
        raise
    return Model(session, inputs, outputs, weights)


def export(outputs: Any, inputs: Any, file: Any = None, session: Any = None) -> Any:
    """Writes the part of a graph between tensors as an ONNX model of opset 21.

        fs.onnx.export({"y": logits}, {"x": images}, "model.onnx", session)

    Variables are written with the values that they have in the session.

    Args:
        outputs: Tensors, a list or a dict of them by the names that they get; else their
            operations'.
        inputs: The tensors that the model is fed, given in the same way.
        file: The path of the file; None writes none.
        session: The session with the variables; the default one if it is None.

    Returns:
        The model, an `onnx.ModelProto`, which `onnx.checker` has passed.

    Raises:
        FailedPreconditionError: if onnx is not installed, or there are variables and no session.
        InvalidArgumentError: if an input that is needed is missing, or ONNX has no such operation
            for these dtypes.
        UnimplementedError: if operations have no counterpart: all of them, by name and type.
    """
    _need_onnx()
    return import_module("flowscope.onnx.exporting").exported(outputs, inputs, file, session)


def _need_onnx() -> None:
    try:
        import_module("onnx")  # an extra
    except ImportError as error:
        raise FailedPreconditionError(
            "ONNX's files need onnx, which is not installed: pip install flowscope[onnx]"
        ) from error


__all__ = ["Model", "export", "load"]
