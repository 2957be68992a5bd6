"""Cells around cells: layers on each other, dropout, residual connections, devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flowscope import nest
from flowscope.control.tracing import Composite
from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.constant import Convertible, convert_to_tensor, get_static_value
from flowscope.graph.default import get_default_graph
from flowscope.graph.operation import Tensor
from flowscope.graph.values.shapes import TensorShape, as_dims
from flowscope.ops.array.joining import concat, split
from flowscope.ops.math.elementwise import floor
from flowscope.ops.nn.dropout import dropout
from flowscope.ops.random.normal_and_uniform import random_uniform
from flowscope.ops.state.variable_scope import variable_scope
from flowscope.rnn.cell import RNNCell, check_cell
from flowscope.rnn.cells import LSTMStateTuple

__all__ = ["DeviceWrapper", "DropoutWrapper", "MultiRNNCell", "ResidualWrapper"]


class MultiRNNCell(RNNCell):
    """Cells one on top of the other: each takes the output of the one below.

    Args:
        cells: The cells, the lowest first.
        state_is_tuple: Whether the state is a tuple of the cells' states, or one tensor of them.
    """

    def __init__(self, cells: Sequence[Any], state_is_tuple: bool = True) -> None:
        super().__init__()
        if not isinstance(cells, list | tuple):
            raise DTypeError(f"expected a list of cells, got {cells!r}")
        if not cells:
            raise InvalidArgumentError("expected one cell at least, got none")
        for i, cell in enumerate(cells):
            check_cell(f"cells[{i}]", cell)
            if not state_is_tuple and nest.is_nested(cell.state_size):
                raise InvalidArgumentError(
                    f"cells[{i}] has the state {cell.state_size}: that needs state_is_tuple=True"
                )
        self._layers = list(cells)
        self._state_is_tuple = state_is_tuple

    @property
    def state_size(self) -> Any:
        """The cells' sizes, or their sum."""
        sizes = tuple(cell.state_size for cell in self._layers)
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> Any:
        """Size of the uppermost cell's output."""
        return self._layers[-1].output_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """Returns the cells' zero states, see `RNNCell.zero_state`."""
        if not self._state_is_tuple:
            return super().zero_state(batch_size, dtype)
        with get_default_graph().name_scope(f"{type(self).__name__}ZeroState"):
            return tuple(cell.zero_state(batch_size, dtype) for cell in self._layers)

    def call(self, inputs: Any, state: Any) -> Any:
        """Returns the uppermost cell's output and the cells' states."""
        if self._state_is_tuple:
            if not nest.is_nested(state) or len(state) != len(self._layers):
                raise InvalidArgumentError(
                    f"expected a state for each of the {len(self._layers)} cells, got {state!r}"
                )
            states = list(state)
        else:
            states = split(state, [cell.state_size for cell in self._layers], axis=1)
        found = []
        for i, (cell, part) in enumerate(zip(self._layers, states, strict=True)):
            with variable_scope(f"cell_{i}"):
                inputs, new = cell(inputs, part)
            found.append(new)
        return inputs, tuple(found) if self._state_is_tuple else concat(found, 1)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments that make a cell like this one, of the same cells."""
        return {"cells": list(self._layers), "state_is_tuple": self._state_is_tuple}

    def _cells(self) -> list[Any]:
        return self._layers


class _Wrapper(RNNCell):
    """Base of the cells that add something to one other, and have its sizes and its variables."""

    def __init__(self, cell: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        check_cell("cell", cell)
        self.cell = cell

    @property
    def wrapped_cell(self) -> Any:
        """The cell inside."""
        return self.cell

    @property
    def state_size(self) -> Any:
        """Size of the cell's state."""
        return self.cell.state_size

    @property
    def output_size(self) -> Any:
        """Size of the cell's output."""
        return self.cell.output_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """Returns the cell's zero state."""
        with get_default_graph().name_scope(f"{type(self).__name__}ZeroState"):
            return self.cell.zero_state(batch_size, dtype)

    def build(self, inputs_shape: Any) -> None:
        """Builds the cell."""
        self.cell.build(inputs_shape)
        self.built = True

    def __call__(  # type: ignore[override]  # as in RNNCell
        self, inputs: Any, state: Any, scope: Any = None, **kwargs: Any
    ) -> Any:
        """Returns output and state of the cell with what is added; it opens no scope of its own."""
        if scope is not None:
            kwargs["scope"] = scope
        return self._step(inputs, state, kwargs)

    def _step(self, inputs: Any, state: Any, kwargs: dict[str, Any]) -> Any:
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        """The configuration from which `from_config` makes such a wrapper with a new cell.

        "cell" is a dict of the cell's class name and its own config.
        """
        name = type(self.cell).__name__
        return {
            **super().get_config(),
            "cell": {"class_name": name, "config": self.cell.get_config()},
        }

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: Mapping[str, Any] | None = None
    ) -> Any:
        """Returns a new wrapper of what `get_config` returned.

        Args:
            config: What it returned; its "cell" may be a cell, too.
            custom_objects: Classes of cells by name, beside those of `fs.nn.rnn_cell`.

        Raises:
            InvalidArgumentError: if the class of the cell is not known.
        """
        return cls(**{**config, "cell": _cell_of(config["cell"], custom_objects or {})})

    def _cells(self) -> list[Any]:
        return [self.cell]


def _cell_of(config: Any, custom_objects: Mapping[str, Any]) -> Any:
    """Returns a cell, or makes one of its class name and config."""
    if not isinstance(config, Mapping):
        return config
    name = config["class_name"]
    known = custom_objects.get(name) or _known_cells(RNNCell).get(name)
    if known is None:
        raise InvalidArgumentError(
            f"no cell of the class {name!r} is known: give it in custom_objects, or put a cell in "
            'the place of config["cell"]'
        )
    has_custom = issubclass(known, _Wrapper) and custom_objects
    more = {"custom_objects": custom_objects} if has_custom else {}
    return known.from_config(config["config"], **more)


def _known_cells(base: type[Any]) -> dict[str, Any]:
    """Returns the house's own classes of cells by name."""
    found: dict[str, Any] = {}
    for cls in base.__subclasses__():
        if cls.__module__.startswith("flowscope."):
            found.update({cls.__name__: cls, **_known_cells(cls)})
    return found


class ResidualWrapper(_Wrapper):
    """Adds a cell's inputs to its outputs.

    Args:
        cell: The cell.
        residual_fn: A function of inputs and outputs, in place of their sum.
    """

    def __init__(
        self, cell: Any, residual_fn: Callable[[Any, Any], Any] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(cell, **kwargs)
        self._residual_fn = residual_fn

    def _step(self, inputs: Any, state: Any, kwargs: dict[str, Any]) -> Any:
        outputs, new = self.cell(inputs, state, **kwargs)
        return (self._residual_fn or _sums)(inputs, outputs), new

    def get_config(self) -> dict[str, Any]:
        """Its configuration; with `residual_fn` only where that was given."""
        more = {} if self._residual_fn is None else {"residual_fn": self._residual_fn}
        return {**super().get_config(), **more}


def _sums(inputs: Any, outputs: Any) -> Any:
    return nest.map_structure(_sum, inputs, outputs)


def _sum(x: Any, y: Any) -> Any:
    if not x.shape.is_compatible_with(y.shape):
        raise InvalidArgumentError(
            f"a residual cell needs outputs of its inputs' shape, got inputs {x.shape} and "
            f"outputs {y.shape}"
        )
    return x + y


class DeviceWrapper(_Wrapper):
    """Puts a cell's operations on a device.

    Args:
        cell: The cell.
        device: As for `fs.device`.
    """

    def __init__(self, cell: Any, device: Any, **kwargs: Any) -> None:
        super().__init__(cell, **kwargs)
        self._device = device

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """Returns the cell's zero state, made on the device."""
        with get_default_graph().device(self._device):
            return super().zero_state(batch_size, dtype)

    def _step(self, inputs: Any, state: Any, kwargs: dict[str, Any]) -> Any:
        with get_default_graph().device(self._device):
            return self.cell(inputs, state, **kwargs)

    def get_config(self) -> dict[str, Any]:
        """Its configuration."""
        return {**super().get_config(), "device": self._device}


class DropoutWrapper(_Wrapper):
    """Sets elements of a cell's inputs, outputs and states to 0 at random.

    Args:
        cell: The cell.
        input_keep_prob: Probability that an element of the inputs is kept, a number or a scalar.
        output_keep_prob: The same for the outputs.
        state_keep_prob: The same for the new state.
        variational_recurrent: Whether all steps of a run, and all rows of the batch, share one
            choice of what is dropped.
        input_size: Size of the inputs without the batch (or a structure of shapes):
            `variational_recurrent` with an `input_keep_prob` below 1 needs it.
        dtype: Element type of inputs, states and outputs: `variational_recurrent` needs it.
        seed: Seed of the choices.
        dropout_state_filter_visitor: Function that says of a part of the state whether elements of
            it are dropped: a bool, or a bool for each of its own parts. By default all are but the
            memory `c` of an `LSTMStateTuple` and tensor arrays.

    Source: Gal & Ghahramani 2016, "A theoretically grounded application of dropout in recurrent
    neural networks", for `variational_recurrent`.
    """

    def __init__(
        self,
        cell: Any,
        input_keep_prob: Any = 1.0,
        output_keep_prob: Any = 1.0,
        state_keep_prob: Any = 1.0,
        variational_recurrent: bool = False,
        input_size: Any = None,
        dtype: Any = None,
        seed: int | None = None,
        dropout_state_filter_visitor: Callable[[Any], Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(cell, dtype=dtype, **kwargs)
        if dropout_state_filter_visitor is not None and not callable(dropout_state_filter_visitor):
            raise DTypeError(
                "expected a function as dropout_state_filter_visitor, got "
                f"{dropout_state_filter_visitor!r}"
            )
        self._given_filter = dropout_state_filter_visitor
        self._filter = dropout_state_filter_visitor or _all_but_memory
        self._keep = {
            "input": _probability("input_keep_prob", input_keep_prob),
            "state": _probability("state_keep_prob", state_keep_prob),
            "output": _probability("output_keep_prob", output_keep_prob),
        }
        self._is_variational, self._input_size, self._seed = variational_recurrent, input_size, seed
        self._noise: dict[str, list[Tensor]] = {}
        if variational_recurrent:
            self._draw(input_size)

    def _draw(self, input_size: Any) -> None:
        """Makes the choices that all steps share."""
        if self.dtype is None:
            raise InvalidArgumentError("variational_recurrent=True needs a dtype")
        if input_size is None and _drops(self._keep["input"]):
            raise InvalidArgumentError(
                "variational_recurrent=True with input_keep_prob below 1 needs input_size"
            )
        sizes = {"state": self.cell.state_size, "output": self.cell.output_size}
        if _drops(self._keep["input"]):
            sizes["input"] = input_size
        with get_default_graph().name_scope("DropoutWrapperInit"):
            self._noise = {
                what: [
                    random_uniform([1, *_known(s)], dtype=self.dtype, seed=self._seed_of(what, i))
                    for i, s in enumerate(nest.flatten(size))
                ]
                for what, size in sizes.items()
            }

    def _seed_of(self, what: str, index: int) -> int | None:
        if self._seed is None:
            return None
        import hashlib  # brings OpenSSL along

        salted = f"{self._seed}{what}_{index}".encode()
        digest = hashlib.md5(salted, usedforsecurity=False).hexdigest()
        return int(digest[:8], 16) & 0x7FFFFFFF

    def _step(self, inputs: Any, state: Any, kwargs: dict[str, Any]) -> Any:
        output, new = self.cell(self._dropped("input", inputs), state, **kwargs)
        if _drops(self._keep["state"]):
            new = self._dropped("state", new, _chosen(self._filter, new))
        return self._dropped("output", output), new

    def _dropped(self, what: str, values: Any, chosen: list[bool] | None = None) -> Any:
        keep = self._keep[what]
        if not _drops(keep):
            return values
        flat = nest.flatten(values)
        which = [True] * len(flat) if chosen is None else chosen
        found = [
            self._dropped_one(what, i, v) if is_chosen else v
            for i, (v, is_chosen) in enumerate(zip(flat, which, strict=True))
        ]
        return nest.pack_sequence_as(values, found)

    def _dropped_one(self, what: str, i: int, value: Any) -> Tensor:
        value, keep = convert_to_tensor(value), self._keep[what]
        if not self._is_variational:
            return dropout(value, keep, seed=self._seed_of(what, i))
        found = value / keep * floor(keep + self._noise[what][i])
        found.set_shape(value.shape)
        return found  # type: ignore[no-any-return]

    def get_config(self) -> dict[str, Any]:
        """Its configuration; with a filter only where that was given."""
        more = {f"{what}_keep_prob": keep for what, keep in self._keep.items()}
        more |= {
            "variational_recurrent": self._is_variational,
            "input_size": self._input_size,
            "seed": self._seed,
        }
        if self._given_filter is not None:
            more["dropout_state_filter_visitor"] = self._given_filter
        return {**super().get_config(), **more}


def _probability(name: str, value: Any) -> Any:
    """Returns a probability as a float where it is known, else as a tensor."""
    is_tensor = isinstance(value, Tensor | Convertible)
    value = convert_to_tensor(value) if is_tensor else value
    known = get_static_value(value) if is_tensor else value
    if known is None:
        return value
    if not 0 <= known <= 1:
        raise InvalidArgumentError(f"expected {name} from 0 to 1, got {known}")
    return float(known)


def _drops(keep: Any) -> bool:
    return not isinstance(keep, float) or keep < 1


def _known(size: Any) -> tuple[int, ...]:
    dims = as_dims(size)
    if dims is None or None in dims:
        raise InvalidArgumentError(
            f"variational_recurrent=True needs fully known sizes, got {TensorShape(dims)}"
        )
    return dims  # type: ignore[return-value]


def _all_but_memory(part: Any) -> Any:
    if isinstance(part, LSTMStateTuple):
        return LSTMStateTuple(False, True)
    return not isinstance(part, Composite)


def _chosen(visit: Callable[[Any], Any], part: Any) -> list[bool]:
    """Returns for each leaf of a state whether a filter chooses it."""
    said = visit(part)
    if not nest.is_nested(part):
        return [bool(said)]
    children = _children(part)
    answers = _children(said) if nest.is_nested(said) else [said] * len(children)
    if len(children) != len(answers):
        raise InvalidArgumentError(
            f"dropout_state_filter_visitor returned {said!r} for a state of {len(children)} parts"
        )
    found: list[bool] = []
    for child, answer in zip(children, answers, strict=True):
        found += _chosen(visit, child) if answer else [False] * len(nest.flatten(child))
    return found


def _children(part: Any) -> list[Any]:
    return [part[k] for k in sorted(part)] if isinstance(part, Mapping) else list(part)
