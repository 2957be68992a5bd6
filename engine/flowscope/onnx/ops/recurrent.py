"""RNN, LSTM and GRU layers, as scans over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flowscope as fs
from flowscope.errors import InvalidArgumentError
from flowscope.onnx.node import OnnxNode, full_like
from flowscope.onnx.ops.linalg import product
from flowscope.onnx.table import converts

_Function = Callable[[fs.Tensor], Any]
#: A step of a layer: states and what the input adds -> states, the first of which is the output.
_Step = Callable[[Sequence[Any], Any], list[Any]]


def _activation(name: str, alpha: float | None, beta: float | None) -> _Function:
    def by(value: float | None, default: float, x: fs.Tensor) -> Any:
        return full_like(default if value is None else value, x)

    def hard_sigmoid(x: fs.Tensor) -> Any:
        line = by(alpha, 0.2, x) * x + by(beta, 0.5, x)
        return fs.maximum(full_like(0, x), fs.minimum(full_like(1, x), line))

    functions: dict[str, _Function] = {
        "affine": lambda x: by(alpha, 1, x) * x + by(beta, 0, x),
        "elu": lambda x: fs.where_v2(
            fs.less(x, full_like(0, x)), by(alpha, 1, x) * fs.math.expm1(x), x
        ),
        "hardsigmoid": hard_sigmoid,
        "leakyrelu": lambda x: fs.where_v2(fs.less(x, full_like(0, x)), by(alpha, 0.01, x) * x, x),
        "relu": fs.nn.relu,
        "scaledtanh": lambda x: by(alpha, 1, x) * fs.tanh(by(beta, 1, x) * x),
        "sigmoid": fs.sigmoid,
        "softplus": fs.nn.softplus,
        "softsign": fs.nn.softsign,
        "tanh": fs.tanh,
        "thresholdedrelu": lambda x: fs.where_v2(
            fs.greater(x, by(alpha, 1, x)), x, full_like(0, x)
        ),
    }
    if name.lower() not in functions:
        raise InvalidArgumentError(f"expected an activation, got {name!r}")
    return functions[name.lower()]


class _Layer:
    """What the three layers share: directions, activations, weights, time.

    Args:
        n: The node.
        defaults: The names of the activations.
        gates: How many gates there are.
        states: At which inputs the states start.
    """

    def __init__(
        self, n: OnnxNode, defaults: Sequence[str], gates: int, states: Sequence[int]
    ) -> None:
        self.n, self.gates, self.states = n, gates, states
        self.size = n.needed("hidden_size")
        self.directions = {
            "forward": [False],
            "reverse": [True],
            "bidirectional": [False, True],
        }.get(n.attr("direction", "forward"), [])
        if not self.directions:
            raise InvalidArgumentError(f"expected a direction, got {n.attr('direction')!r}")
        names = n.attr("activations") or list(defaults) * len(self.directions)
        alphas, betas = n.attr("activation_alpha", []), n.attr("activation_beta", [])
        self.functions = [
            _activation(
                name,
                alphas[i] if i < len(alphas) else None,
                betas[i] if i < len(betas) else None,
            )
            for i, name in enumerate(names)
        ]
        if len(names) != len(defaults) * len(self.directions):
            raise InvalidArgumentError(f"expected {len(defaults)} activations per direction")
        self.per_direction = len(defaults)
        self.is_batch_first = bool(n.attr("layout", 0))
        self.clip = n.attr("clip")

    def bounded(self, x: Any) -> Any:
        """What goes into an activation."""
        if self.clip is None:
            return x
        bound = full_like(self.clip, x)
        return fs.minimum(fs.maximum(x, -bound), bound)

    def run(self, make: Callable[[int], _Step]) -> tuple[Any, ...]:
        """Returns all outputs and the last states; `make` gives a direction's step."""
        n = self.n
        x = n.x(0)
        if self.is_batch_first:
            x = fs.transpose(x, [1, 0, 2])
        lengths = n.get(4)
        outputs, lasts = [], []
        for d, is_reverse in enumerate(self.directions):
            given = self._turned(x, lengths) if is_reverse else x
            w = n.x(1)[d]
            added = product(given, fs.transpose(w, [1, 0]))
            if n.has(3):
                added = added + self.input_bias(d)
            start = [self._start(i, d, x) for i in self.states]
            rows = self._scan(make(d), added, start, lengths)
            found = rows[0]
            lasts.append([r[-1] for r in rows])
            if lengths is not None:
                found = found * fs.cast(fs.expand_dims(self._is_in(x, lengths), 2), x.dtype)
            outputs.append(self._turned(found, lengths) if is_reverse else found)
        y = fs.stack(outputs, 1)
        states = [fs.stack(v, 0) for v in zip(*lasts, strict=True)]
        if self.is_batch_first:
            y = fs.transpose(y, [2, 0, 1, 3])
            states = [fs.transpose(s, [1, 0, 2]) for s in states]
        return (y, *states)

    def input_bias(self, d: int) -> Any:
        """What a direction adds to the product with the input."""
        return self.n.x(3)[d, : self.gates * self.size]

    def state_bias(self, d: int) -> Any:
        """What a direction adds to the product with the state, or None."""
        return self.n.x(3)[d, self.gates * self.size :] if self.n.has(3) else None

    def recurrent(self, d: int) -> Any:
        """The weights that the state is multiplied with: [size, gates * size]."""
        return fs.transpose(self.n.x(2)[d], [1, 0])

    def _start(self, i: int, d: int, x: fs.Tensor) -> Any:
        if self.n.has(i):
            found = self.n.x(i)
            return found[:, d] if self.is_batch_first else found[d]
        batch = x.shape.as_list()[1]
        if batch is not None:
            return fs.zeros([batch, self.size], x.dtype)
        return fs.zeros(fs.stack([fs.shape(x)[1], self.size]), x.dtype)

    def _turned(self, x: Any, lengths: Any) -> Any:
        if lengths is None:
            return fs.reverse(x, [0])
        return fs.reverse_sequence(x, lengths, seq_axis=0, batch_axis=1)

    def _is_in(self, x: fs.Tensor, lengths: Any) -> Any:
        """Whether a time is within a sequence: [time, batch]."""
        times = fs.range(fs.shape(x)[0])
        return fs.less(fs.expand_dims(times, 1), fs.cast(lengths, fs.int32))

    def _scan(self, step: _Step, added: Any, start: list[Any], lengths: Any) -> list[Any]:
        elems = [added]
        if lengths is not None:
            elems.append(fs.expand_dims(self._is_in(added, lengths), 2))

        def turn(states: Any, given: Any) -> Any:
            found = step(states, given[0])
            if lengths is None:
                return found
            return [fs.where_v2(given[1], new, old) for new, old in zip(found, states)]

        return list(fs.scan(turn, elems, start))


def _added(value: Any, bias: Any) -> Any:
    return value if bias is None else value + bias


@converts("RNN")
def _rnn(n: OnnxNode) -> Any:
    layer = _Layer(n, ["Tanh"], 1, [5])

    def make(d: int) -> _Step:
        r, bias, f = layer.recurrent(d), layer.state_bias(d), layer.functions[d]

        def step(states: Sequence[Any], x: Any) -> list[Any]:
            return [f(layer.bounded(x + _added(fs.matmul(states[0], r), bias)))]

        return step

    return layer.run(make)


@converts("LSTM")
def _lstm(n: OnnxNode) -> Any:
    layer = _Layer(n, ["Sigmoid", "Tanh", "Tanh"], 4, [5, 6])
    couples = bool(n.attr("input_forget", 0))

    def make(d: int) -> _Step:
        r, bias = layer.recurrent(d), layer.state_bias(d)
        f, g, h = layer.functions[3 * d : 3 * d + 3]
        peepholes: list[Any] = []
        if n.has(7):
            peepholes = [n.x(7)[d, i * layer.size : (i + 1) * layer.size] for i in range(3)]

        def step(states: Sequence[Any], x: Any) -> list[Any]:
            hidden, cell = states
            parts = fs.split(x + _added(fs.matmul(hidden, r), bias), 4, 1)
            i, o, forget, c = parts
            if peepholes:
                i, forget = i + peepholes[0] * cell, forget + peepholes[2] * cell
            i = f(layer.bounded(i))
            forget = full_like(1, i) - i if couples else f(layer.bounded(forget))
            cell = forget * cell + i * g(layer.bounded(c))
            if peepholes:
                o = o + peepholes[1] * cell
            return [f(layer.bounded(o)) * h(cell), cell]

        return step

    return layer.run(make)


@converts("GRU")
def _gru(n: OnnxNode) -> Any:
    layer = _Layer(n, ["Sigmoid", "Tanh"], 3, [5])
    resets_behind = bool(n.attr("linear_before_reset", 0))
    size = layer.size

    def make(d: int) -> _Step:
        r, bias = layer.recurrent(d), layer.state_bias(d)
        f, g = layer.functions[2 * d : 2 * d + 2]
        gates, candidate = r[:, : 2 * size], r[:, 2 * size :]
        biases = [None, None] if bias is None else [bias[: 2 * size], bias[2 * size :]]

        def step(states: Sequence[Any], x: Any) -> list[Any]:
            (hidden,) = states
            both = x[:, : 2 * size] + _added(fs.matmul(hidden, gates), biases[0])
            z, reset = fs.split(f(layer.bounded(both)), 2, 1)
            if resets_behind:
                inner = reset * _added(fs.matmul(hidden, candidate), biases[1])
            else:
                inner = _added(fs.matmul(reset * hidden, candidate), biases[1])
            new = g(layer.bounded(x[:, 2 * size :] + inner))
            return [(full_like(1, z) - z) * new + z * hidden]

        return step

    return layer.run(make)
