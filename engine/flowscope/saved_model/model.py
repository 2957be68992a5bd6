"""Saved models with a graph and a session of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from flowscope.errors import InvalidArgumentError
from flowscope.graph.graph import Graph
from flowscope.graph.operation import Tensor
from flowscope.runtime.session.session import Session
from flowscope.saved_model import loader, signature_constants
from flowscope.saved_model.folder import meta_graph


class LoadedSignature:
    """Named inputs and outputs of a model; to be called with values.

    Attributes:
        inputs: The tensors to be fed, by name.
        outputs: The tensors that are computed, by name.
    """

    def __init__(
        self, session: Session, inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor]
    ) -> None:
        self._session = session
        self.inputs = dict(inputs)
        self.outputs = dict(outputs)

    def __call__(self, *args: Any, **inputs: Any) -> dict[str, Any]:
        """Returns the outputs' values by name.

        Args:
            args: The value of the only input.
            inputs: Values by the inputs' names.

        Raises:
            InvalidArgumentError: if an input is missing or not known.
        """
        if len(args) == len(self.inputs) == 1 and not inputs:
            inputs = dict(zip(self.inputs, args, strict=True))
        if (args and len(args) != len(inputs)) or inputs.keys() != self.inputs.keys():
            names = ", ".join(sorted(self.inputs)) or "none"
            raise InvalidArgumentError(f"expected the inputs {names} by name, got {sorted(inputs)}")
        feeds = {self.inputs[name]: value for name, value in inputs.items()}
        return dict(self._session.run(self.outputs, feeds))

    def __repr__(self) -> str:
        sides = [
            ", ".join(f"{n}: {t.spec}" for n, t in s.items()) for s in (self.inputs, self.outputs)
        ]
        return f"<signature ({sides[0]}) -> ({sides[1]})>"


class LoadedModel:
    """A saved model: its graph, a session with its variables, its signatures.

    Attributes:
        graph: The graph.
        session: The session that has the variables' values; `with model:` closes it.
        signatures: What can be called, by name.
    """

    def __init__(self, session: Session, signatures: Mapping[str, LoadedSignature]) -> None:
        self.graph: Graph = session.graph
        self.session = session
        self.signatures = dict(signatures)

    def __call__(self, *args: Any, **inputs: Any) -> dict[str, Any]:
        """Calls the signature "serving_default", or the only one."""
        name = signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
        found = self.signatures.get(name)
        if found is None and len(self.signatures) == 1:
            (found,) = self.signatures.values()
        if found is None:
            known = ", ".join(self.signatures) or "none"
            raise InvalidArgumentError(f'expected a signature "{name}", the model has {known}')
        return found(*args, **inputs)

    def close(self) -> None:
        """Closes the session."""
        self.session.close()

    def __enter__(self) -> LoadedModel:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        names = ", ".join(self.signatures) or "none"
        return (
            f"<fs.saved_model: {len(self.graph.get_operations())} operations, signatures: {names}>"
        )


def load(export_dir: Any, tags: Iterable[str] | None = None) -> LoadedModel:
    """Returns a saved model of TensorFlow 1 or 2, in a graph and a session of its own.

        with fs.saved_model.load("exported") as model:
            model.signatures["serving_default"](x=images)

    Args:
        export_dir: The model's folder.
        tags: The tags of the graph; of a model that has one graph they need not be given.

    Raises:
        NotFoundError: if there is no model in the folder, or none of these tags, or op types are
            not known.
        DataLossError: if a file is damaged.
        FailedPreconditionError: if protobuf is not installed.
    """
    meta, _ = meta_graph(export_dir, tags)
    session = Session(graph=Graph())
    try:
        loader.load(session, list(meta.meta_info_def.tags), export_dir)
        find = session.graph.get_tensor_by_name
        signatures = {
            name: LoadedSignature(
                session,
                {n: find(info.name) for n, info in sorted(written.inputs.items())},
                {n: find(info.name) for n, info in sorted(written.outputs.items())},
            )
            for name, written in sorted(meta.signature_def.items())
            if not name.startswith("__")
        }
    except BaseException:
        session.close()
        raise
    return LoadedModel(session, signatures)


__all__ = ["LoadedModel", "LoadedSignature", "load"]
