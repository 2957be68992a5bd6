"""The usual cells: plain, gated recurrent unit, long short-term memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from flowscope.errors import DTypeError, InvalidArgumentError
from flowscope.graph.operation import Tensor
from flowscope.graph.values.dtypes import DType
from flowscope.layers.base import activation_of
from flowscope.ops.array.clipping import clip_by_value
from flowscope.ops.array.joining import concat, split
from flowscope.ops.linalg.products import matmul
from flowscope.ops.math.elementwise import sigmoid, tanh
from flowscope.ops.nn.activations import BY_NAME
from flowscope.ops.nn.bias import bias_add
from flowscope.ops.state.initializers import ones_initializer, zeros_initializer
from flowscope.ops.state.partitioned_variable import fixed_size_partitioner
from flowscope.rnn.cell import RNNCell, check_floating, input_depth

__all__ = ["BasicLSTMCell", "BasicRNNCell", "GRUCell", "LSTMCell", "LSTMStateTuple"]


class LSTMStateTuple(NamedTuple):
    """The state of an LSTM.

    Attributes:
        c: The memory, [batch, num_units].
        h: The output, [batch, num_units] (or num_proj).
    """

    c: Any
    h: Any

    @property
    def dtype(self) -> DType:
        """The dtype of both.

        Raises:
            DTypeError: if they differ.
        """
        if self.c.dtype != self.h.dtype:
            raise DTypeError(f"the state has two dtypes: c is {self.c.dtype}, h is {self.h.dtype}")
        return self.c.dtype  # type: ignore[no-any-return]


def _name_of(activation: Callable[[Any], Any]) -> Any:
    """Returns the name by which a function is known in `fs.nn`, else the function."""
    name = getattr(activation, "__name__", "")
    return name if BY_NAME.get(name) is activation else activation


def _units(num_units: Any) -> int:
    if int(num_units) != num_units or num_units < 1:
        raise InvalidArgumentError(f"expected num_units of 1 at least, got {num_units}")
    return int(num_units)


class BasicRNNCell(RNNCell):
    """The plain cell: output = new state = activation([inputs, state] @ kernel + bias).

    Args:
        num_units: Size of state and output.
        activation: A function, or the name of one in `fs.nn`; tanh by default.
        reuse: Whether the variables must exist already.
        name: Name of the variable scope; "basic_rnn_cell" by default.
        dtype: Element type of the variables; by default the first inputs'.
    """

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: Any = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, dtype=dtype, _reuse=reuse, **kwargs)
        self._num_units = _units(num_units)
        self._activation = activation_of(activation) or tanh

    @property
    def state_size(self) -> int:
        """Size of the state."""
        return self._num_units

    @property
    def output_size(self) -> int:
        """Size of the output."""
        return self._num_units

    def build(self, inputs_shape: Any) -> None:
        """Makes `kernel` [depth + num_units, num_units] and `bias`."""
        n = self._num_units
        self._kernel = self.add_weight("kernel", [input_depth(inputs_shape) + n, n])
        self._bias = self.add_weight("bias", [n], initializer=zeros_initializer())
        self.built = True

    def call(self, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the output twice: it is the state."""
        check_floating(inputs, state)
        sums = bias_add(matmul(concat([inputs, state], 1), self._kernel), self._bias)
        output = self._activation(sums)
        return output, output

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments that make a cell like this one."""
        more = {
            "num_units": self._num_units,
            "activation": _name_of(self._activation),
            "reuse": self._reuse,
        }
        return {**super().get_config(), **more}


class GRUCell(RNNCell):
    """Gated recurrent unit.

    r, u = sigmoid([inputs, state] @ gate kernel + gate bias); the candidate is
    activation([inputs, r * state] @ candidate kernel + candidate bias); the new state is
    u * state + (1 - u) * candidate.

    Args:
        num_units: Size of state and output.
        activation: A function, or the name of one in `fs.nn`; tanh by default.
        reuse: Whether the variables must exist already.
        kernel_initializer: Of both kernels.
        bias_initializer: Of both biases; by default 1 for the gates and 0 for the candidate.
        name: Name of the variable scope; "gru_cell" by default.
        dtype: Element type of the variables; by default the first inputs'.

    Source: Cho et al. 2014, "Learning phrase representations using RNN encoder-decoder".
    """

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: Any = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, dtype=dtype, _reuse=reuse, **kwargs)
        self._num_units = _units(num_units)
        self._activation = activation_of(activation) or tanh
        self._kernel_initializer = kernel_initializer
        self._bias_initializer = bias_initializer

    @property
    def state_size(self) -> int:
        """Size of the state."""
        return self._num_units

    @property
    def output_size(self) -> int:
        """Size of the output."""
        return self._num_units

    def build(self, inputs_shape: Any) -> None:
        """Makes kernel and bias of the gates and of the candidate."""
        n = self._num_units
        rows = input_depth(inputs_shape) + n
        kernel, bias = self._kernel_initializer, self._bias_initializer
        self._gate_kernel = self.add_weight("gates/kernel", [rows, 2 * n], initializer=kernel)
        self._gate_bias = self.add_weight(
            "gates/bias", [2 * n], initializer=ones_initializer() if bias is None else bias
        )
        self._candidate_kernel = self.add_weight("candidate/kernel", [rows, n], initializer=kernel)
        self._candidate_bias = self.add_weight(
            "candidate/bias", [n], initializer=zeros_initializer() if bias is None else bias
        )
        self.built = True

    def call(self, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the new state twice: it is the output."""
        check_floating(inputs, state)
        sums = bias_add(matmul(concat([inputs, state], 1), self._gate_kernel), self._gate_bias)
        r, u = split(sigmoid(sums), 2, axis=1)
        rest = matmul(concat([inputs, r * state], 1), self._candidate_kernel)
        candidate = self._activation(bias_add(rest, self._candidate_bias))
        new = u * state + (1 - u) * candidate
        return new, new

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments that make a cell like this one."""
        more = {
            "num_units": self._num_units,
            "kernel_initializer": self._kernel_initializer,
            "bias_initializer": self._bias_initializer,
            "activation": _name_of(self._activation),
            "reuse": self._reuse,
        }
        return {**super().get_config(), **more}


class LSTMCell(RNNCell):
    """Long short-term memory.

    i, j, f, o = the four parts of [inputs, h] @ kernel + bias; the new memory is
    c' = sigmoid(f + forget_bias) * c + sigmoid(i) * activation(j), the output
    h' = sigmoid(o) * activation(c').

    Args:
        num_units: Size of the memory.
        use_peepholes: Whether the gates also see the memory: i and f the old one times `w_i_diag`
            and `w_f_diag`, o the new one times `w_o_diag`.
        cell_clip: The memory is kept within [-cell_clip, cell_clip].
        initializer: Of kernels and peepholes.
        num_proj: Size of the output, which then is h' @ projection kernel.
        proj_clip: The projected output is kept within [-proj_clip, proj_clip].
        num_unit_shards: The kernel is kept in so many parts.
        num_proj_shards: The projection kernel is kept in so many parts.
        forget_bias: Added to f, so that a new network remembers.
        state_is_tuple: Whether the state is an `LSTMStateTuple`, or one tensor [batch, c and h].
        activation: A function, or the name of one in `fs.nn`; tanh by default.
        reuse: Whether the variables must exist already.
        name: Name of the variable scope; "lstm_cell" by default.
        dtype: Element type of the variables; by default the first inputs'.

    Source: Hochreiter & Schmidhuber 1997; Gers et al. 1999 (forget gate); Sak et al. 2014
    (peepholes, projection).
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        num_unit_shards: int | None = None,
        num_proj_shards: int | None = None,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Any = None,
        reuse: Any = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, dtype=dtype, _reuse=reuse, **kwargs)
        self._num_units = _units(num_units)
        self._use_peepholes = use_peepholes
        self._cell_clip = cell_clip
        self._initializer = initializer
        self._num_proj = _units(num_proj) if num_proj else None
        self._proj_clip = proj_clip
        self._num_unit_shards = num_unit_shards
        self._num_proj_shards = num_proj_shards
        self._forget_bias = forget_bias
        self._state_is_tuple = state_is_tuple
        self._activation = activation_of(activation) or tanh

    @property
    def state_size(self) -> Any:
        """Sizes of memory and output, or their sum."""
        c, h = self._num_units, self.output_size
        return LSTMStateTuple(c, h) if self._state_is_tuple else c + h

    @property
    def output_size(self) -> int:
        """Size of the output."""
        return self._num_proj or self._num_units

    def build(self, inputs_shape: Any) -> None:
        """Makes `kernel` and `bias`, and what peepholes and projection need."""
        n, rows = self._num_units, input_depth(inputs_shape) + self.output_size
        self._kernel = self._matrix("kernel", [rows, 4 * n], self._num_unit_shards)
        self._bias = self.add_weight("bias", [4 * n], initializer=zeros_initializer())
        if self._use_peepholes:
            names = ("w_f_diag", "w_i_diag", "w_o_diag")
            self._peepholes = [
                self.add_weight(w, [n], initializer=self._initializer) for w in names
            ]
        if self._num_proj is not None:
            size = [n, self._num_proj]
            self._projection = self._matrix("projection/kernel", size, self._num_proj_shards)
        self.built = True

    def _matrix(self, name: str, size: list[int], parts: int | None) -> Any:
        cut = None if parts is None else fixed_size_partitioner(parts)
        return self.add_weight(name, size, initializer=self._initializer, partitioner=cut)

    def call(self, inputs: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Returns the output and the new state."""
        c, h = self._parts(state)
        check_floating(inputs, c, h)
        sums = bias_add(matmul(concat([inputs, h], 1), self._kernel), self._bias)
        i, j, f, o = split(sums, 4, axis=1)
        f = f + self._forget_bias
        if self._use_peepholes:
            f, i = f + self._peepholes[0] * c, i + self._peepholes[1] * c
        c = sigmoid(f) * c + sigmoid(i) * self._activation(j)
        if self._cell_clip is not None:
            c = clip_by_value(c, -self._cell_clip, self._cell_clip)
        if self._use_peepholes:
            o = o + self._peepholes[2] * c
        h = self._projected(sigmoid(o) * self._activation(c))
        return h, LSTMStateTuple(c, h) if self._state_is_tuple else concat([c, h], 1)

    def _projected(self, h: Any) -> Any:
        if self._num_proj is None:
            return h
        h = matmul(h, self._projection)
        if self._proj_clip is None:
            return h
        return clip_by_value(h, -self._proj_clip, self._proj_clip)

    def _parts(self, state: Any) -> tuple[Any, Any]:
        """Returns memory and output."""
        if not self._state_is_tuple:
            c, h = split(state, [self._num_units, self.output_size], axis=1)
            return c, h
        if not isinstance(state, tuple | list) or len(state) != 2:
            raise DTypeError(
                f"expected an LSTMStateTuple (c, h) as state, got {state!r}; "
                "cell.zero_state(batch_size, fs.float32) makes one"
            )
        c, h = state
        return c, h

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments that make a cell like this one."""
        more = {
            "num_units": self._num_units,
            "use_peepholes": self._use_peepholes,
            "cell_clip": self._cell_clip,
            "initializer": self._initializer,
            "num_proj": self._num_proj,
            "proj_clip": self._proj_clip,
            "num_unit_shards": self._num_unit_shards,
            "num_proj_shards": self._num_proj_shards,
            "forget_bias": self._forget_bias,
            "state_is_tuple": self._state_is_tuple,
            "activation": _name_of(self._activation),
            "reuse": self._reuse,
        }
        return {**super().get_config(), **more}


class BasicLSTMCell(LSTMCell):
    """Long short-term memory without peepholes, clipping and projection: see `LSTMCell`.

    Args:
        num_units: Size of memory and output.
        forget_bias: Added to the forget gate, so that a new network remembers.
        state_is_tuple: Whether the state is an `LSTMStateTuple`, or one tensor [batch, c and h].
        activation: A function, or the name of one in `fs.nn`; tanh by default.
        reuse: Whether the variables must exist already.
        name: Name of the variable scope; "basic_lstm_cell" by default.
        dtype: Element type of the variables; by default the first inputs'.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Any = None,
        reuse: Any = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            num_units,
            forget_bias=forget_bias,
            state_is_tuple=state_is_tuple,
            activation=activation,
            reuse=reuse,
            name=name,
            dtype=dtype,
            **kwargs,
        )

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments that make a cell like this one."""
        found = super().get_config()
        own = ("num_units", "forget_bias", "state_is_tuple", "activation", "reuse")
        return {k: found[k] for k in ("name", "trainable", "dtype", *own)}
