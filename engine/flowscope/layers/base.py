"""Layers: parts of a model that own their variables."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.constant import convert_to_tensor
from flowscope.graph.default import get_default_graph
from flowscope.graph.graph import Graph
from flowscope.graph.operation import Operation, Tensor
from flowscope.graph.scopes import name_scope
from flowscope.graph.unsupported import refuse
from flowscope.graph.values.dtypes import DType, as_dtype, float32
from flowscope.graph.values.shapes import Dims, TensorShape, size_of, text
from flowscope.ops.nn.activations import BY_NAME
from flowscope.ops.state.variable_scope import VariableScope, get_variable, variable_scope
from flowscope.ops.state.variables import GraphKeys

#: What a function made of a layer class says of its own arguments.
_FUNCTION = """{line}

    A layer is made and called once. The arguments are those of `fs.layers.{kind}`, and:
        inputs: What the layer is called with.
        reuse: Whether the variables of an earlier layer of the same name are shared.
    """


class InputSpec:
    """What a layer takes: a rank, or the least, or sizes of some axes; None allows all.

    Args:
        dtype: Element type.
        shape: Shape, with None for sizes that may be any.
        ndim: Rank.
        max_ndim: Largest rank.
        min_ndim: Smallest rank.
        axes: Sizes by the number of the axis.
    """

    def __init__(
        self,
        dtype: Any = None,
        shape: Any = None,
        ndim: int | None = None,
        max_ndim: int | None = None,
        min_ndim: int | None = None,
        axes: dict[int, int | None] | None = None,
    ) -> None:
        self.dtype = None if dtype is None else as_dtype(dtype)
        self.shape = None if shape is None else tuple(shape)
        self.ndim = ndim if self.shape is None else len(self.shape)
        self.max_ndim = max_ndim
        self.min_ndim = min_ndim
        self.axes = dict(axes or {})

    def __repr__(self) -> str:
        said = ", ".join(f"{k}={v!r}" for k, v in vars(self).items() if v)
        return f"InputSpec({said})"

    def check(self, x: Tensor, layer: str) -> None:
        """Raises InvalidArgumentError, or DTypeError, where a layer cannot take `x`."""
        if self.dtype is not None and x.dtype is not self.dtype:
            raise DTypeError(f"layer {layer!r} expected {self.dtype}, got {x.spec}")
        wanted = self._missed(x.spec.shape)
        if wanted:
            raise InvalidArgumentError(f"layer {layer!r} expected {wanted}, got {x.spec}")

    def _missed(self, dims: Dims) -> str:
        """The text of what was expected of a shape that does not fit; "" if it fits."""
        if dims is None:
            needs_rank = self.ndim is not None or self.min_ndim is not None or self.axes
            return "an input of known rank" if needs_rank else ""
        rank = len(dims)
        if self.ndim is not None and rank != self.ndim:
            return f"an input of rank {self.ndim}"
        if self.min_ndim is not None and rank < self.min_ndim:
            return f"an input of rank {self.min_ndim} at least"
        if self.max_ndim is not None and rank > self.max_ndim:
            return f"an input of rank {self.max_ndim} at most"
        axes = dict(enumerate(self.shape or ())) | self.axes
        for axis, size in axes.items():
            if size is not None and dims[axis] not in (None, size):
                return f"{size} elements along axis {axis}"
        return ""


def snake_case(name: str) -> str:
    """Returns a class's name as TensorFlow writes it in scopes: "Conv2DTranspose" as
    "conv2d_transpose", "_Own" as "private__own".
    """
    parts = re.sub(r"(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    found = re.sub(r"([a-z])([A-Z])", r"\1_\2", parts).lower()
    return f"private{found}" if found.startswith("_") else found


class Layer:
    """Base of layers: variables, made when the layer is first called, and what it computes.

    A class of one's own makes its variables in `build` by `add_weight`, and computes in `call`.

    Args:
        trainable: Whether the variables are trained.
        name: Name of the variables' scope; the class's own, made unique, by default.
        dtype: Element type of the variables; that of the first input by default.
        activity_regularizer: Function of the output that returns a loss.
    """

    def __init__(
        self,
        trainable: bool = True,
        name: str | None = None,
        dtype: Any = None,
        activity_regularizer: Callable[[Tensor], Any] | None = None,
        _reuse: Any = None,
        _scope: Any = None,
    ) -> None:
        self.trainable = trainable
        self.built = False
        self.input_spec: InputSpec | None = None
        self.activity_regularizer = activity_regularizer
        self.dtype: DType | None = None if dtype is None else as_dtype(dtype)
        self._base_name = name or snake_case(type(self).__name__)
        self._reuse = _reuse
        self._scope: VariableScope | None = None
        self._graph: Graph | None = None
        self._trained: list[Any] = []
        self._untrained: list[Any] = []
        self._updates: list[Any] = []
        self._losses: list[Any] = []
        if _scope is not None:
            self._open_scope(_scope)

    # -- for classes of one's own ------------------------------------------------------------------

    def build(self, input_shape: Any) -> None:
        """Makes the variables; called once, with the shape of the first input (or inputs)."""
        del input_shape
        self.built = True

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Returns the layer's output: the inputs, if a class does not say otherwise."""
        return inputs

    def compute_output_shape(self, input_shape: Any) -> TensorShape:
        """Returns the shape of the output for an input's shape."""
        from flowscope.ops.core.flow import placeholder

        with Graph().as_default():
            x = placeholder(self.dtype or float32, TensorShape(input_shape).dims)
            twin = type(self).__new__(type(self))
            twin.__dict__.update(self._fresh_state())
            return twin(x).shape  # type: ignore[no-any-return]

    def _fresh_state(self) -> dict[str, Any]:
        """Returns the attributes of this layer as they were before its first call."""
        state = dict(self.__dict__)
        state.update(built=False, _scope=None, _graph=None, _reuse=None)
        state.update(_trained=[], _untrained=[], _updates=[], _losses=[])
        return state

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
        """Returns a variable of the layer; the arguments are those of `fs.get_variable`.

        `trainable` is True by default; a layer that is not trained has no trained variables.
        """
        is_trained = self.trainable and trainable is not False
        variable = get_variable(
            name,
            shape,
            dtype=as_dtype(dtype or self.dtype or float32),
            initializer=initializer,
            regularizer=self._with_loss(regularizer),
            trainable=is_trained,
            constraint=constraint,
            use_resource=use_resource,
            partitioner=partitioner,
        )
        (self._trained if is_trained else self._untrained).append(variable)
        return variable

    add_variable = add_weight

    def _with_loss(self, regularizer: Any) -> Any:
        """Returns a regularizer that also lists its loss in the layer."""
        if regularizer is None:
            return None

        def listed(variable: Any) -> Any:
            loss = regularizer(variable)
            if loss is not None:
                self._losses.append(loss)
            return loss

        return listed

    def add_update(self, updates: Any, inputs: Any = None) -> None:
        """Lists operations that training must run, in `GraphKeys.UPDATE_OPS` too.

        Args:
            updates: Operations.
            inputs: Refused, if not None: all of a layer's updates are listed together.
        """
        refuse("layers.Layer.add_update", inputs=inputs)
        for update in updates if isinstance(updates, list | tuple) else [updates]:
            self._updates.append(update)
            get_default_graph().add_to_collection(GraphKeys.UPDATE_OPS, update)

    def add_loss(self, losses: Any, inputs: Any = None) -> None:
        """Lists losses, in `GraphKeys.REGULARIZATION_LOSSES` too.

        Args:
            losses: Scalar tensors.
            inputs: Refused, if not None: all of a layer's losses are listed together.
        """
        refuse("layers.Layer.add_loss", inputs=inputs)
        for loss in losses if isinstance(losses, list | tuple) else [losses]:
            self._losses.append(loss)
            get_default_graph().add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)

    # -- use ---------------------------------------------------------------------------------------

    def __call__(self, inputs: Any, *args: Any, scope: Any = None, **kwargs: Any) -> Any:
        """The outputs of `call`, a tensor or a structure of them.

        Args:
            inputs: A tensor or a list of them.
            args: What `call` takes besides.
            scope: Name of the variables' scope, at the first call.
            kwargs: As `args`.

        Raises:
            InvalidArgumentError: if the inputs do not fit, or the layer belongs to another graph.
        """
        tensors = _tensors(inputs)
        first = _first(tensors)
        graph = first.op.graph if first is not None else get_default_graph()
        self._check_graph(graph)
        if self._scope is None:
            self._open_scope(scope)
        own: VariableScope = self._scope  # type: ignore[assignment]
        reuse = self.built or self._reuse
        with (
            variable_scope(own, reuse=reuse, auxiliary_name_scope=False),
            name_scope(own.original_name_scope),
        ):
            if self.input_spec is not None and isinstance(tensors, Tensor):
                self.input_spec.check(tensors, self.name)
            if not self.built:
                self._build(tensors, first)
            outputs = self.call(tensors, *args, **kwargs)
            self._regularize(outputs)
        return outputs

    def apply(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Calls the layer."""
        return self(inputs, *args, **kwargs)

    def _check_graph(self, graph: Graph) -> None:
        if self._graph is not None and self._graph is not graph:
            raise InvalidArgumentError(
                f"layer {self.name!r} has its variables in another graph: make a layer for this one"
            )
        self._graph = graph

    def _open_scope(self, scope: Any) -> None:
        if scope is None and self._reuse:
            scope = self._base_name
        with variable_scope(scope, None if scope else self._base_name) as opened:
            self._scope = opened

    def _build(self, tensors: Any, first: Tensor | None) -> None:
        if self.dtype is None and first is not None:
            self.dtype = first.dtype
        self.build(_shapes(tensors))
        self.built = True

    def _regularize(self, outputs: Any) -> None:
        if self.activity_regularizer is None:
            return
        with name_scope("ActivityRegularizer"):
            for output in outputs if isinstance(outputs, list | tuple) else [outputs]:
                self.add_loss(self.activity_regularizer(output))

    # -- facts -------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The last part of the scope's name."""
        return self._scope.name.rpartition("/")[2] if self._scope else self._base_name

    @property
    def scope_name(self) -> str:
        """Name of the variables' scope.

        Raises:
            InvalidArgumentError: before the first call.
        """
        if self._scope is None:
            raise InvalidArgumentError(
                f"layer {self._base_name!r} has no scope before its first call"
            )
        return self._scope.name

    @property
    def graph(self) -> Graph | None:
        """The graph of the variables, None before the first call."""
        return self._graph

    @property
    def trainable_weights(self) -> list[Any]:
        """The trained variables."""
        return list(self._trained) if self.trainable else []

    @property
    def non_trainable_weights(self) -> list[Any]:
        """The other variables."""
        return list(self._untrained if self.trainable else self._trained + self._untrained)

    @property
    def weights(self) -> list[Any]:
        """All variables."""
        return self.trainable_weights + self.non_trainable_weights

    @property
    def trainable_variables(self) -> list[Any]:
        """The trained variables."""
        return self.trainable_weights

    @property
    def non_trainable_variables(self) -> list[Any]:
        """The other variables."""
        return self.non_trainable_weights

    @property
    def variables(self) -> list[Any]:
        """All variables."""
        return self.weights

    @property
    def updates(self) -> list[Any]:
        """Operations that training must run."""
        return list(self._updates)

    @property
    def losses(self) -> list[Any]:
        """Losses of the variables and of the outputs."""
        return list(self._losses)

    def count_params(self) -> int:
        """Returns how many numbers the variables hold.

        Raises:
            InvalidArgumentError: before the first call.
        """
        if not self.built:
            raise InvalidArgumentError(
                f"layer {self.name!r} has no variables before its first call"
            )
        return sum(size_of(w.shape.as_list()) or 0 for w in self.weights)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"


def _tensors(inputs: Any) -> Any:
    if isinstance(inputs, list | tuple):
        return type(inputs)([_tensors(i) for i in inputs])
    return convert_to_tensor(inputs)


def _first(tensors: Any) -> Tensor | None:
    while isinstance(tensors, list | tuple):
        if not tensors:
            return None
        tensors = tensors[0]
    return tensors  # type: ignore[no-any-return]


def _shapes(tensors: Any) -> Any:
    if isinstance(tensors, list | tuple):
        return [_shapes(t) for t in tensors]
    return tensors.shape


def channels_of(shape: Any, axis: int, layer: Layer) -> int:
    """Returns the number of channels of an input.

    Raises:
        InvalidArgumentError: if it is not known.
    """
    dims = TensorShape(shape).as_list()
    found = dims[axis]
    if found is None:
        raise InvalidArgumentError(
            f"layer {layer.name!r} expected a known number of channels along axis {axis}, got "
            f"{text(tuple(dims))}"
        )
    return int(found)


def function_of(kind: type[Layer]) -> Callable[..., Any]:
    """Returns the function that makes a layer and calls it once."""
    own = [p for p in inspect.signature(kind.__init__).parameters.values() if p.name != "self"]
    named = [p for p in own if p.kind is p.POSITIONAL_OR_KEYWORD and not p.name.startswith("_")]
    plain = inspect.Parameter.POSITIONAL_OR_KEYWORD
    inputs = inspect.Parameter("inputs", plain)
    reuse = inspect.Parameter("reuse", plain, default=None)
    signature = inspect.Signature([inputs, *named, reuse])

    def function(*args: Any, **kwargs: Any) -> Any:
        given = dict(signature.bind(*args, **kwargs).arguments)
        x, shared = given.pop("inputs"), given.pop("reuse", None)
        name = given.get("name")
        return kind(**given, _reuse=shared, _scope=name)(x)

    name = snake_case(kind.__name__)
    line = (kind.__doc__ or "").partition("\n")[0]
    function.__name__ = function.__qualname__ = name
    function.__module__ = kind.__module__
    function.__signature__ = signature  # type: ignore[attr-defined]
    function.__doc__ = _FUNCTION.format(line=line, kind=kind.__name__)
    return function


#: What a layer may be made to do with its output, or None.
Activation = Callable[[Tensor], Any] | None


def activation_of(given: Any) -> Activation:
    """Returns the function that `activation` stands for: itself, or a name of one in `fs.nn`.

    Raises:
        InvalidArgumentError: if it is neither, nor None.
    """
    found = BY_NAME.get(given) if isinstance(given, str) else given
    if given is None or callable(found):
        return found
    raise InvalidArgumentError(
        f"expected a function or the name of one in fs.nn as activation, got {given!r}"
    )


def activated(x: Tensor, activation: Activation) -> Tensor:
    """Returns x, or what an activation function makes of it."""
    return x if activation is None else convert_to_tensor(activation(x))


def training_flag(training: Any) -> bool | Tensor:
    """Returns a known `training` as a bool, else as a tensor."""
    from flowscope.graph.constant import get_static_value

    if isinstance(training, Operation):
        raise DTypeError("expected a bool as `training`, got an operation")
    if training is None:
        return False
    known = get_static_value(training) if isinstance(training, Tensor) else training
    return convert_to_tensor(training) if known is None else bool(known)


def sizes(value: Any, n: int, what: str) -> tuple[int, ...]:
    """Returns n numbers: those given, or one for all.

    Raises:
        InvalidArgumentError: if there are neither n nor one, or one is below 1.
    """
    found: Sequence[Any] = [value] * n if not isinstance(value, list | tuple) else value
    if len(found) != n or any(
        isinstance(v, bool) or not isinstance(v, int) or v < 1 for v in found
    ):
        raise InvalidArgumentError(
            f"expected one or {n} numbers of 1 at least as {what}, got {value!r}"
        )
    return tuple(found)


def one_of(value: str, choices: Sequence[str], what: str) -> str:
    """Returns the choice that `value` names, in small letters."""
    if not isinstance(value, str) or value.lower() not in choices:
        raise InvalidArgumentError(f"expected {what} to be one of {list(choices)}, got {value!r}")
    return value.lower()
