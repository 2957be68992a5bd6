"""What a cell is: one step of a recurrent network, with variables made at its first call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from flowscope import nest
from flowscope.control.tracing import Composite
from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor, get_static_value
from flowscope.graph.default import get_default_graph
from flowscope.graph.operation import Tensor
from flowscope.graph.values.dtypes import as_dtype, float32
from flowscope.graph.values.shapes import TensorShape, as_dims
from flowscope.layers.base import Layer
from flowscope.ops.array.arrays import shape, zeros
from flowscope.ops.state.variable_scope import (
    get_variable,
    variable_scope,
)

__all__ = [
    "RNNCell",
    "check_cell",
    "check_floating",
    "full_size",
    "input_depth",
    "tensors_of",
    "zero_states",
]


class RNNCell(Layer):
    """Base class of cells: what a recurrent network does in one step.

    A cell of one's own has the properties `state_size` and `output_size` and a method
    `call(inputs, state)` that returns `(output, new_state)`. Variables come from `fs.get_variable`
    in `call`, or from `add_weight` in `build(inputs_shape)`, which is called once, before the first
    call.

    Args:
        trainable: Whether its variables are trained.
        name: Name of its variable scope; by default made of the class's name.
        dtype: Element type of its variables; by default the first inputs'.
        _reuse: Whether its variables must exist already; `reuse` in the cells' own arguments.

    Attributes:
        built: Whether its variables are made.
        trainable: See above.

    Source: Abadi et al., TensorFlow 1.15, `tf.nn.rnn_cell.RNNCell`.
    """

    _is_open: bool

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Makes a cell that can be used even if its class does not call this one's `__init__`."""
        del args, kwargs
        cell = super().__new__(cls)
        Layer.__init__(cell)
        cell._is_open = False
        return cell

    def __init__(
        self, trainable: bool = True, name: str | None = None, dtype: Any = None, **kwargs: Any
    ) -> None:
        unknown = next((k for k in kwargs if k != "_reuse"), None)
        if unknown is not None:
            raise DTypeError(f"{type(self).__name__} has no argument {unknown!r}")
        super().__init__(bool(trainable), name, dtype, **kwargs)

    # -- what a class of cells says ---------------------------------------------------------------

    @property
    def state_size(self) -> Any:
        """Size of the state without the batch: an integer or a shape, or a structure of them."""
        raise NotImplementedError(f"{type(self).__name__} has no state_size")

    @property
    def output_size(self) -> Any:
        """Size of the output without the batch: an integer or a shape, or a structure of them."""
        raise NotImplementedError(f"{type(self).__name__} has no output_size")

    # -- use --------------------------------------------------------------------------------------

    def __call__(  # type: ignore[override]  # a cell takes its state besides
        self, inputs: Any, state: Any, scope: Any = None, **kwargs: Any
    ) -> Any:
        """Adds the operations of one step.

        Args:
            inputs: A tensor [batch, input_size], or what else the cell takes.
            state: A tensor [batch, state_size], or a structure of tensors like `state_size`.
            scope: Variable scope of the first call, in place of one with the cell's name.
            **kwargs: Further arguments of `call`.

        Returns:
            The output and the next state.
        """
        inputs = tensors_of(inputs)
        if self.dtype is None:
            self.dtype = next((t.dtype for t in nest.flatten(inputs)), None)
        with self._opened(scope):
            if not self.built:
                self.build(nest.map_structure(lambda t: t.shape, inputs))
            found = self.call(inputs, state, **kwargs)
        self.built = True
        return found

    def add_weight(
        self,
        name: str,
        shape: Any,
        dtype: Any = None,
        initializer: Any = None,
        regularizer: Callable[[Tensor], Any] | None = None,
        trainable: bool | None = None,
        constraint: Any = None,
        use_resource: Any = None,
        partitioner: Any = None,
    ) -> Any:
        """Returns a variable of the cell's scope: for `build`.

        Args: as of `fs.get_variable`; `trainable` is the cell's by default.
        """
        with self._opened(None):
            return get_variable(
                name,
                shape,
                dtype or self.dtype or float32,
                initializer,
                self._with_loss(regularizer),
                self.trainable and trainable is not False,
                constraint=constraint,
                use_resource=use_resource,
                partitioner=partitioner,
            )

    add_variable = add_weight

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """Returns zeros in the structure and of the sizes of `state_size`.

        Args:
            batch_size: An integer or an integer scalar.
            dtype: Element type; in the structure of `state_size` where the parts differ.
        """
        with get_default_graph().name_scope(f"{type(self).__name__}ZeroState"):
            return zero_states(self.state_size, batch_size, dtype)

    def get_initial_state(
        self, inputs: Any = None, batch_size: Any = None, dtype: Any = None
    ) -> Any:
        """Returns the state to begin with: zeros.

        Args:
            inputs: A tensor [batch, ...] that says batch size and dtype.
            batch_size: An integer or an integer scalar.
            dtype: Element type.

        Raises:
            InvalidArgumentError: if batch size or dtype are not given, or the inputs contradict.
        """
        if inputs is not None:
            given = convert_to_tensor(inputs)
            batch_size, dtype = _from_inputs(given, batch_size, dtype)
        if batch_size is None or dtype is None:
            raise InvalidArgumentError(
                "an initial state needs inputs, or batch_size and dtype, got "
                f"batch_size={batch_size} and dtype={dtype}"
            )
        return self.zero_state(batch_size, dtype)

    # -- what it has ------------------------------------------------------------------------------

    @property
    def trainable_weights(self) -> list[Any]:
        """Its variables that are trained, and those of the cells inside."""
        return self._both("trainable_weights", super().trainable_weights)

    @property
    def non_trainable_weights(self) -> list[Any]:
        """Its variables that are not trained, and those of the cells inside."""
        found = self._both("non_trainable_weights", super().non_trainable_weights)
        return found if self.trainable else self._both("trainable_weights", found)

    def _both(self, which: str, own: list[Any]) -> list[Any]:
        inner = [w for c in self._cells() for w in getattr(c, which, [])]
        return list({id(w): w for w in (*inner, *own)}.values())

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments that `from_config` makes a cell like this one of."""
        dtype = None if self.dtype is None else self.dtype.name
        return {"name": self._base_name, "trainable": self.trainable, "dtype": dtype}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """Returns a new cell, with variables of its own, of what `get_config` returned."""
        return cls(**config)

    # -- inside -----------------------------------------------------------------------------------

    def _cells(self) -> list[Any]:
        """Returns the cells inside this one."""
        return []

    @contextmanager
    def _opened(self, scope: Any) -> Iterator[None]:
        """Opens the cell's variable scope: that of its first call, and of all later ones."""
        self._check_graph(get_default_graph())
        if self._scope is None:
            named = self._base_name if scope is None and self._reuse else scope
            with variable_scope(named, self._base_name, auxiliary_name_scope=False) as found:
                self._scope = found
        if self._is_open:
            yield
            return
        again = variable_scope(
            self._scope,
            reuse=self.built or self._reuse,
            custom_getter=self._note,
            auxiliary_name_scope=False,
        )
        short = self._scope.name.rpartition("/")[2]
        self._is_open = True
        try:
            with again, get_default_graph().name_scope(short):
                yield
        finally:
            self._is_open = False

    def _note(self, getter: Any, *args: Any, **kwargs: Any) -> Any:
        """The variable of `getter`, which is noted: a custom getter."""
        variable = getter(*args, **kwargs)
        if all(variable is not v for v in (*self._trained, *self._untrained)):
            (self._trained if _is_trained(variable) else self._untrained).append(variable)
        return variable

    def __repr__(self) -> str:
        sizes = ""
        if _has(self, "state_size") and _has(self, "output_size"):
            sizes = f", state {self.state_size}, output {self.output_size}"
        return f"<fs.nn.rnn_cell.{type(self).__name__} {self.name!r}{sizes}>"


def tensors_of(structure: Any) -> Any:
    """Returns a structure with its values as tensors, tensor arrays as they are."""
    return nest.map_structure(
        lambda v: v if isinstance(v, Composite) else convert_to_tensor(v), structure
    )


def check_cell(argument: str, cell: Any) -> None:
    """Checks that an argument can be used as a cell, whatever its class.

    Raises:
        DTypeError: (a TypeError) if it lacks something.
    """
    lacks = [name for name in ("output_size", "state_size") if not _has(cell, name)]
    if not _has(cell, "zero_state") and not _has(cell, "get_initial_state"):
        lacks.append("zero_state")
    if not callable(cell):
        lacks.append("__call__")
    if lacks:
        raise DTypeError(
            f"{argument} is not an RNNCell: {cell!r} has no {' and no '.join(lacks)}; "
            "fs.nn.rnn_cell.LSTMCell(128), for example, makes one"
        )


def _has(thing: Any, attribute: str) -> bool:
    try:
        getattr(thing, attribute)
    except (AttributeError, NotImplementedError):
        return False
    return True


def check_floating(*tensors: Any) -> None:
    """Checks that inputs and states have dtypes for which sigmoid and tanh are defined.

    Raises:
        DTypeError: if one is neither floating-point nor complex.
    """
    for t in nest.flatten(tensors):
        if not (t.dtype.is_floating or t.dtype.is_complex):
            raise DTypeError(
                f'a cell needs floating-point inputs and states, got {t.dtype} ("{t.name}"); '
                "fs.cast(x, fs.float32) would do"
            )


def input_depth(inputs_shape: Any) -> int:
    """Returns the last size of inputs, which `build` needs.

    Raises:
        InvalidArgumentError: if it is not known.
    """
    dims = as_dims(inputs_shape)
    if dims is None or len(dims) != 2 or dims[1] is None:
        raise InvalidArgumentError(
            "a cell needs inputs of shape [batch, depth] with a known depth, got "
            f"{TensorShape(dims)}; placeholder(fs.float32, [None, 10]) or set_shape would say it"
        )
    return dims[1]


def zero_states(sizes: Any, batch_size: Any, dtype: Any) -> Any:
    """Returns zeros [batch, *size] for a structure of sizes; `dtype` may be a structure too."""
    flat = nest.flatten(sizes)
    dtypes = nest.flatten(dtype) if nest.is_nested(dtype) else [dtype] * len(flat)
    made = [zeros(full_size(batch_size, s), d) for s, d in zip(flat, dtypes, strict=True)]
    return nest.pack_sequence_as(sizes, made)


def full_size(batch_size: Any, size: Any) -> list[Any]:
    """Returns [batch, *size]; the batch may be a tensor."""
    dims = as_dims(size)
    if dims is None or None in dims:
        raise InvalidArgumentError(f"expected a fully known size of the cell, got {size}")
    known = get_static_value(batch_size) if isinstance(batch_size, Tensor) else batch_size
    return [batch_size if known is None else int(known), *dims]


def _from_inputs(inputs: Tensor, batch_size: Any, dtype: Any) -> tuple[Any, Any]:
    dims = inputs.spec.shape
    known = dims[0] if dims else None
    asked = get_static_value(batch_size) if isinstance(batch_size, Tensor) else batch_size
    static = None if asked is None else int(asked)
    if batch_size is not None and static != known:
        rows = "a number that is not known before the run" if known is None else known
        raise InvalidArgumentError(
            f'batch_size is {batch_size}, and the inputs "{inputs.name}" have as rows {rows}: '
            "give one of the two"
        )
    if dtype is not None and as_dtype(dtype) is not inputs.dtype:
        raise DTypeError(f'dtype is {dtype}, and the inputs "{inputs.name}" are {inputs.dtype}')
    return (shape(inputs)[0] if known is None else known), inputs.dtype


def _is_trained(variable: Any) -> bool:
    if hasattr(variable, "trainable"):
        return bool(variable.trainable)
    return all(part.trainable for part in variable)
