"""The ops that matter beside TensorFlow's, at three sizes: `python tests/benchmarks/bench_ops.py`.

Each library runs in a process of its own; op by op they take turns, on inputs that lie in
variables, with nothing fetched. A figure is the fastest of some rounds, for both alike: the
machines are shared.
What counts is the geometric mean of the ratios over sizes above 10^4 elements, and the list of ops
that are slower than twice TensorFlow's.

Slower than that, at times, on two cores, and why:

- softmax, log_softmax, where, clip_by_value, cast, add_n, leaky_relu, elu, bias_add, concat, stack,
  tile, pad, gather_nd at 10^6 elements, some at 10^5, the more the quieter the machine: they are
  bound by memory. NumPy makes a pass per elementary operation, on one thread; TensorFlow one pass,
  on both. (What ends in a ufunc is shared by threads, see `flowscope.plan.codegen.parallel_for`.)
- batch matmul, by a hair: NumPy calls BLAS once per matrix.
- reduce_max over rows: NumPy goes through rows of 100 one by one.
- reduce_sum of all: NumPy adds in pairs, which is more exact and slower than adding in a row.
- dropout: its numbers come from a counter (Philox), so that every device and mode draws the same.
- one_hot: at 10^5 elements it is all overhead; at 10^6 it is level.
- pools, batch normalisation, convolutions without the extra `flowscope[onednn]`: they are passes
  over shifted arrays then, up to five times as slow.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, os.path.dirname(__file__))

from more_ops import MORE

ROOT = Path(__file__).resolve().parents[2]
SIZES = (100, 100_000, 1_000_000)
ROUNDS = 5
BATCH_S = 0.03

#: Name -> function(fs, i) of the module and its inputs; see `Inputs`.
OPS: dict[str, Callable[[Any, Any], Any]] = {
    # element by element
    "add": lambda fs, i: i.x + i.y,
    "add row": lambda fs, i: i.x + i.row,
    "add column": lambda fs, i: i.x + i.column,
    "multiply": lambda fs, i: i.x * i.y,
    "divide": lambda fs, i: i.x / i.positive,
    "maximum": lambda fs, i: fs.maximum(i.x, i.y),
    "squared_difference": lambda fs, i: fs.squared_difference(i.x, i.y),
    "pow": lambda fs, i: fs.pow(i.positive, 1.7),
    "add_n": lambda fs, i: fs.add_n([i.x, i.y, i.positive]),
    "negative": lambda fs, i: -i.x,
    "abs": lambda fs, i: fs.abs(i.x),
    "square": lambda fs, i: fs.square(i.x),
    "sqrt": lambda fs, i: fs.sqrt(i.positive),
    "rsqrt": lambda fs, i: fs.rsqrt(i.positive),
    "exp": lambda fs, i: fs.exp(i.x),
    "log": lambda fs, i: fs.log(i.positive),
    "sin": lambda fs, i: fs.sin(i.x),
    "floor": lambda fs, i: fs.floor(i.x),
    "tanh": lambda fs, i: fs.tanh(i.x),
    "tanh grad": lambda fs, i: fs.gradients(fs.tanh(i.x), i.x, i.y)[0],
    "sigmoid": lambda fs, i: fs.sigmoid(i.x),
    "relu": lambda fs, i: fs.nn.relu(i.x),
    "relu grad": lambda fs, i: fs.gradients(fs.nn.relu(i.x), i.x, i.y)[0],
    "leaky_relu": lambda fs, i: fs.nn.leaky_relu(i.x),
    "elu": lambda fs, i: fs.nn.elu(i.x),
    "softplus": lambda fs, i: fs.nn.softplus(i.x),
    "clip_by_value": lambda fs, i: fs.clip_by_value(i.x, -0.5, 0.5),
    "less": lambda fs, i: fs.less(i.x, i.y),
    "equal int": lambda fs, i: fs.equal(i.ints, i.other_ints),
    "logical_and": lambda fs, i: fs.logical_and(i.mask, i.other_mask),
    "where": lambda fs, i: fs.where(i.mask, i.x, i.y),
    "cast to int": lambda fs, i: fs.cast(i.x, fs.int32),
    "cast to float": lambda fs, i: fs.cast(i.ints, fs.float32),
    "cast bool": lambda fs, i: fs.cast(i.mask, fs.float32),
    # sums and the like
    "reduce_sum": lambda fs, i: fs.reduce_sum(i.x),
    "reduce_sum rows": lambda fs, i: fs.reduce_sum(i.x, 1),
    "reduce_sum columns": lambda fs, i: fs.reduce_sum(i.x, 0),
    "reduce_sum short": lambda fs, i: fs.reduce_sum(i.short, 1),
    "reduce_mean": lambda fs, i: fs.reduce_mean(i.x),
    "reduce_max rows": lambda fs, i: fs.reduce_max(i.x, 1),
    "reduce_max short": lambda fs, i: fs.reduce_max(i.short, 1),
    "reduce_any": lambda fs, i: fs.reduce_any(i.mask, 1),
    "argmax": lambda fs, i: fs.argmax(i.x, 1),
    "cumsum": lambda fs, i: fs.cumsum(i.x, 1),
    "l2_loss": lambda fs, i: fs.nn.l2_loss(i.x),
    "top_k": lambda fs, i: fs.nn.top_k(i.x, 5)[0],
    "unsorted_segment_sum": lambda fs, i: fs.unsorted_segment_sum(i.x, i.rows, 10),
    # layers
    "softmax": lambda fs, i: fs.nn.softmax(i.x),
    "softmax short": lambda fs, i: fs.nn.softmax(i.short),
    "log_softmax": lambda fs, i: fs.nn.log_softmax(i.x),
    "cross entropy": lambda fs, i: fs.nn.sparse_softmax_cross_entropy_with_logits(
        labels=i.rows, logits=i.x
    ),
    "sigmoid entropy": lambda fs, i: fs.nn.sigmoid_cross_entropy_with_logits(
        labels=i.unit, logits=i.x
    ),
    "bias_add": lambda fs, i: fs.nn.bias_add(i.x, i.row),
    "bias_add grad": lambda fs, i: fs.gradients(fs.nn.bias_add(i.x, i.row), i.row, i.y)[0],
    "matmul": lambda fs, i: fs.matmul(i.x, i.square),
    "matmul wide": lambda fs, i: fs.matmul(i.x, i.y, transpose_a=True),
    "batch matmul": lambda fs, i: fs.matmul(i.batch, i.batch, transpose_b=True),
    "conv2d 3x3": lambda fs, i: fs.nn.conv2d(i.images, i.kernel(3, 3), 1, "SAME"),
    "conv2d 1x1": lambda fs, i: fs.nn.conv2d(i.images, i.kernel(1, 1), 1, "SAME"),
    "conv2d 5x5/2": lambda fs, i: fs.nn.conv2d(i.images, i.kernel(5, 5), 2, "SAME"),
    "conv2d grad images": lambda fs, i: fs.gradients(*_conv(fs, i, i.kernel(3, 3)))[0],
    "conv2d grad filters": lambda fs, i: fs.gradients(*_conv(fs, i, i.kernel(3, 3)))[1],
    "depthwise_conv2d": lambda fs, i: fs.nn.depthwise_conv2d(
        i.images, i.depthwise, [1, 1, 1, 1], "SAME"
    ),
    "max_pool": lambda fs, i: fs.nn.max_pool(i.images, 2, 2, "SAME"),
    "max_pool 3x3/2": lambda fs, i: fs.nn.max_pool(i.images, 3, 2, "SAME"),
    "max_pool grad": lambda fs, i: fs.gradients(fs.nn.max_pool(i.images, 2, 2, "SAME"), i.images)[
        0
    ],
    "avg_pool": lambda fs, i: fs.nn.avg_pool(i.images, 2, 2, "SAME"),
    "fused_batch_norm": lambda fs, i: fs.nn.fused_batch_norm(
        i.images, i.per_channel, i.per_channel
    )[0],
    "dropout": lambda fs, i: fs.nn.dropout(i.x, rate=0.5),
    "random_uniform": lambda fs, i: fs.random_uniform(i.shape),
    "random_normal": lambda fs, i: fs.random_normal(i.shape),
    # moves
    "transpose": lambda fs, i: fs.transpose(i.x),
    "transpose images": lambda fs, i: fs.transpose(i.images, [0, 3, 1, 2]),
    "concat rows": lambda fs, i: fs.concat([i.x, i.y], 0),
    "concat columns": lambda fs, i: fs.concat([i.x, i.y], 1),
    "stack": lambda fs, i: fs.stack([i.x, i.y], 1),
    "split": lambda fs, i: fs.add_n(fs.split(i.x, 2, 1)),
    "slice": lambda fs, i: i.x[:, 1:-1] + 0.0,
    "strided slice": lambda fs, i: i.x[::2, ::2] + 0.0,
    "reverse": lambda fs, i: fs.reverse(i.x, [1]),
    "pad": lambda fs, i: fs.pad(i.x, [[1, 1], [2, 2]]),
    "tile": lambda fs, i: fs.tile(i.x, [2, 2]),
    "broadcast_to": lambda fs, i: fs.broadcast_to(i.row, i.shape),
    "gather": lambda fs, i: fs.gather(i.x, i.rows),
    "gather grad": lambda fs, i: fs.convert_to_tensor(
        fs.gradients(fs.gather(i.table, i.rows), i.table, i.x)[0]
    ),
    "gather columns": lambda fs, i: fs.gather(i.x, i.columns, axis=1),
    "gather_nd": lambda fs, i: fs.gather_nd(i.x, i.places),
    "scatter_nd": lambda fs, i: fs.scatter_nd(i.places, i.at_places, i.shape),
    "one_hot": lambda fs, i: fs.one_hot(i.rows, 100),
}


def _conv(fs: Any, i: Any, kernel: Any) -> tuple[Any, list[Any]]:
    y = fs.nn.conv2d(i.images, kernel, 1, "SAME")
    return y, [i.images, kernel]


def chain(fs: Any, i: Any) -> Any:
    """Twenty element-wise operations in a row."""
    y = i.x
    for n in range(5):
        y = fs.maximum(y * i.y + 0.5, i.positive) - float(n)
    return y


def cnn(fs: Any, graph: Any) -> tuple[Any, dict[Any, Any]]:
    """The convolutional network of the training-step comparison: its update and feeds."""
    import numpy as np

    rng = np.random.default_rng(0)
    x = fs.placeholder(fs.float32, [64, 28, 28, 1])
    labels = fs.placeholder(fs.int32, [64])

    def layer(name: str, *shape: int) -> tuple[Any, Any]:
        start = fs.random_normal_initializer(stddev=math.prod(shape[:-1]) ** -0.5, seed=1)
        zeros = fs.zeros_initializer()
        return (
            fs.get_variable(f"w{name}", shape, initializer=start, use_resource=True),
            fs.get_variable(f"b{name}", shape[-1:], initializer=zeros, use_resource=True),
        )

    h = x
    for name, *shape in (("1", 5, 5, 1, 32), ("2", 5, 5, 32, 64)):
        w, b = layer(name, *shape)
        h = fs.nn.relu(fs.nn.conv2d(h, w, strides=[1, 1, 1, 1], padding="SAME") + b)
        h = fs.nn.max_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    w, b = layer("3", 7 * 7 * 64, 512)
    h = fs.nn.relu(fs.matmul(fs.reshape(h, [-1, 7 * 7 * 64]), w) + b)
    w, b = layer("4", 512, 10)
    logits = fs.matmul(h, w) + b
    loss = fs.reduce_mean(
        fs.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    )
    feeds = {
        x: rng.random((64, 28, 28, 1), np.float32),
        labels: rng.integers(0, 10, 64).astype(np.int32),
    }
    return fs.train.GradientDescentOptimizer(0.01).minimize(loss), feeds


class Inputs:
    """Inputs of about n elements, in variables that are made when they are asked for."""

    def __init__(self, fs: Any, n: int) -> None:
        """Sets the sizes: a matrix of about 100 columns, images of about 16 channels."""
        import numpy as np

        self.fs, self.n = fs, n
        self.rng = np.random.default_rng(0)
        self.shape = [max(n // 100, 1), 100] if n > 100 else [10, 10]
        pixels = n // 16
        side = 28 if pixels >= 784 else 2
        self.image_shape = [max(pixels // side**2, 1), side, side, 16 if n > 100 else 4]
        self.channels = self.image_shape[-1]

    def __getattr__(self, name: str) -> Any:
        value = self._value(name)
        variable = self.fs.Variable(value, name=name, use_resource=True, trainable=True)
        read = variable if name == "table" else variable.read_value()
        setattr(self, name, read)
        return read

    def kernel(self, rows: int, columns: int) -> Any:
        """Returns filters for the images."""
        shape = (rows, columns, self.channels, 32)
        return self.fs.Variable(self._normal(shape), use_resource=True).read_value()

    def _normal(self, shape: Any) -> Any:
        return self.rng.standard_normal(shape).astype("float32")

    def _value(self, name: str) -> Any:
        import numpy as np

        rows, columns = self.shape
        rng, normal = self.rng, self._normal
        makers: dict[str, Callable[[], Any]] = {
            "x": lambda: normal(self.shape),
            "y": lambda: normal(self.shape),
            "positive": lambda: abs(normal(self.shape)) + 0.1,
            "unit": lambda: rng.random(self.shape, "float32"),
            "row": lambda: normal(columns),
            "column": lambda: normal((rows, 1)),
            "square": lambda: normal((columns, columns)),
            "short": lambda: normal((self.n // 5, 5)),
            "table": lambda: normal((1000, columns)),
            "batch": lambda: normal((max(rows // 20, 1), min(rows, 20), columns)),
            "mask": lambda: rng.random(self.shape) < 0.5,
            "other_mask": lambda: rng.random(self.shape) < 0.5,
            "ints": lambda: rng.integers(0, 100, self.shape).astype("int32"),
            "other_ints": lambda: rng.integers(0, 100, self.shape).astype("int32"),
            "rows": lambda: rng.integers(0, min(rows, 10), rows).astype("int32"),
            "columns": lambda: rng.permutation(columns).astype("int32"),
            "places": lambda: rng.integers(0, min(rows, columns), (self.n // 10, 2)).astype(
                "int32"
            ),
            "at_places": lambda: normal(self.n // 10),
            "images": lambda: normal(self.image_shape),
            "depthwise": lambda: normal((3, 3, self.channels, 1)),
            "per_channel": lambda: normal(self.channels),
            "matrices": lambda: normal((max(self.n // 1024, 1), 32, 32)),
            "small_matrices": lambda: normal((max(self.n // 64, 1), 8, 8)),
            "sides": lambda: normal((max(self.n // 64, 1), 8, 2)),
            "places_in_order": lambda: np.stack(
                np.unravel_index(
                    np.sort(rng.choice(rows * columns, self.n // 10, replace=False)), self.shape
                ),
                1,
            ),
        }
        if name not in makers:
            raise AttributeError(name)
        return makers[name]()


class Measured:
    """One op of one size in a session of its own."""

    def __init__(self, fs: Any, name: str, n: int) -> None:
        """Builds it and runs it three times."""
        graph = fs.Graph()
        feeds = {}
        with graph.as_default():
            if name == "cnn":
                step, feeds = cnn(fs, graph)
            else:
                y = (chain if name == "chain" else (OPS | MORE)[name])(fs, Inputs(fs, n))
                step = y.op
            start = fs.global_variables_initializer()
        session = fs.Session(graph=graph)
        session.run(start)
        self.session = session
        if feeds:
            self.run: Callable[[], Any] = lambda: session.run(step, feeds)
        else:
            self.run = session.make_callable(step)
        for _ in range(3):
            self.run()
        start_s = time.perf_counter()
        self.run()
        self.count = max(1, int(BATCH_S / (time.perf_counter() - start_s)))

    def measure(self) -> float:
        """Returns the mean seconds of one run over a batch."""
        start = time.perf_counter()
        for _ in range(self.count):
            self.run()
        return (time.perf_counter() - start) / self.count


def serve(name: str) -> None:
    """Answers {"op", "n"} with {"value": seconds}, line by line; a new op drops the last one."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    from peer import load

    fs = load(name)
    current: tuple[str, Measured] | None = None
    for line in sys.stdin:
        try:
            if current is None or current[0] != line:
                if current:
                    current[1].session.close()
                current = (line, Measured(fs, **json.loads(line)))
            answer: dict[str, Any] = {"value": current[1].measure()}
        except Exception:
            answer = {"error": traceback.format_exc()}
        print(json.dumps(answer), file=answers, flush=True)


class Side:
    """A process that measures with one library."""

    def __init__(self, name: str, python: str) -> None:
        """Starts it."""
        env = {**os.environ, "PYTHONPATH": str(ROOT / "engine")}
        env["PYTHONPATH"] += os.pathsep + str(Path(__file__).parent)
        self.process = subprocess.Popen(
            [python, __file__, "--serve", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=env,
        )

    def measure(self, op: str, n: int) -> float | str:
        """Returns seconds, or the last line of an error."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"name": op, "n": n}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        answer = json.loads(line) if line else {"error": "it has ended"}
        if "error" in answer:
            return str(answer["error"]).strip().splitlines()[-1]
        return float(answer["value"])

    def stop(self) -> None:
        """Ends the process."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def compare(ours: Side, peer: Side, op: str, n: int, rounds: int) -> tuple[Any, Any]:
    """Returns the fastest of both, or what went wrong."""
    seen: list[tuple[Any, Any]] = []
    for _ in range(rounds):
        seen.append((ours.measure(op, n), peer.measure(op, n)))
        bad = [v for v in seen[-1] if isinstance(v, str)]
        if bad:
            return seen[-1]
    return min(a for a, _ in seen), min(b for _, b in seen)


def mean(ratios: list[float]) -> float:
    """Returns the geometric mean."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan


def main() -> int:
    """Measures and prints; returns the exit code, always 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--peer-venv", type=Path, default=ROOT / ".venv-tf")
    parser.add_argument("--ops", help="only ops whose names contain this (several: a,b)")
    parser.add_argument("--more", action="store_true", help="other ops: those of more_ops.py")
    parser.add_argument("--sizes", help="only these sizes, with commas between")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--json", type=Path, help="write the figures to this file as well")
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return 0
    wanted = options.ops.split(",") if options.ops else [""]
    names = [n for n in (MORE if options.more else OPS) if any(w in n for w in wanted)]
    sizes = [int(s) for s in options.sizes.split(",")] if options.sizes else list(SIZES)
    work = [(name, n) for name in names for n in sizes]
    work += (
        []
        if options.more
        else [
            (name, n)
            for name, n in (("chain", 200_000), ("cnn", 0))
            if any(w in name for w in wanted)
        ]
    )
    ours = Side("flowscope", sys.executable)
    peer = Side("tensorflow", str(options.peer_venv / "bin" / "python"))
    figures: dict[str, dict[int, Any]] = {}
    for name, n in work:
        mine, other = compare(ours, peer, name, n, options.rounds)
        figures.setdefault(name, {})[n] = (mine, other)
        if isinstance(mine, str) or isinstance(other, str):
            print(f"{name:22}{n:>9}  flowscope: {mine}  TensorFlow: {other}", flush=True)
            continue
        ratio = mine / other
        note = "  SLOW" if ratio > 2 and n > 10_000 else ""
        print(
            f"{name:22}{n:>9}{other * 1e6:>12.1f} us{mine * 1e6:>12.1f} us{ratio:>8.2f}{note}",
            flush=True,
        )
    summary(figures)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    ours.stop()
    peer.stop()
    return 0


def summary(figures: dict[str, dict[int, Any]]) -> None:
    """Prints the means by size, and which ops are slower than twice TensorFlow's."""
    by_size: dict[int, list[float]] = {}
    slow = []
    for name, sizes in figures.items():
        for n, (mine, other) in sizes.items():
            if name in OPS | MORE and isinstance(mine, float) and isinstance(other, float):
                by_size.setdefault(n, []).append(mine / other)
                if n > 10_000 and mine > 2 * other:
                    slow.append((mine / other, f"{name} at {n}"))
    for n, ratios in by_size.items():
        print(f"geometric mean of {len(ratios)} ratios at {n} elements: {mean(ratios):.2f}")
    large = [r for n, ratios in by_size.items() if n > 10_000 for r in ratios]
    print(f"geometric mean above 10^4 elements: {mean(large):.2f} (bar 1.0)")
    for ratio, what in sorted(slow, reverse=True):
        print(f"slower than twice TensorFlow's: {what}: {ratio:.2f}")


if __name__ == "__main__":
    sys.exit(main())
