"""Training steps and element-wise work for both sides of a comparison; see peer.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


class Model:
    """One step of a model: the feed, what is fetched, and how to run it once."""

    def __init__(self, fs: Any, threads: int = 0) -> None:
        """Builds the graph; with 0 threads each library chooses its own number."""
        graph = fs.Graph()
        with graph.as_default():
            self.fetch, feed = self.build(fs)
            init = fs.global_variables_initializer()
        config = fs.ConfigProto(intra_op_parallelism_threads=threads)
        self.session = fs.Session(graph=graph, config=config)
        self.session.run(init)
        self.feed = feed

    def build(self, fs: Any) -> tuple[Any, dict[Any, Any]]:
        """The fetches and the feeds."""
        raise NotImplementedError

    def run(self) -> None:
        """Runs the step."""
        self.session.run(self.fetch, self.feed)


def numbers(*shape: int) -> Any:
    """Returns random float32 numbers, the same ones on either side."""
    import numpy as np

    return np.random.default_rng(0).random(shape, np.float32)


def classes(batch: int, count: int) -> Any:
    """Returns random labels."""
    import numpy as np

    return np.random.default_rng(1).integers(0, count, batch).astype(np.int32)


def dense(fs: Any, x: Any, name: str, rows: int, columns: int) -> Any:
    """Returns x @ w + b."""
    start = fs.random_normal_initializer(stddev=rows**-0.5, seed=1)
    w = fs.get_variable(f"w{name}", [rows, columns], initializer=start, use_resource=True)
    zeros = fs.zeros_initializer()
    b = fs.get_variable(f"b{name}", [columns], initializer=zeros, use_resource=True)
    return fs.matmul(x, w) + b


def update(fs: Any, logits: Any, labels: Any, optimizer: str) -> Any:
    """Returns the training operation of a classifier."""
    one = fs.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    return getattr(fs.train, optimizer)(0.01).minimize(fs.reduce_mean(one))


class Mlp(Model):
    """A training step of a perceptron; `sizes` from the input's to the last layer's."""

    def __init__(
        self, fs: Any, batch: int, sizes: Sequence[int], optimizer: str, threads: int = 0
    ) -> None:
        self.batch, self.sizes, self.optimizer = batch, sizes, optimizer
        super().__init__(fs, threads)

    def build(self, fs: Any) -> tuple[Any, dict[Any, Any]]:
        batch, sizes = self.batch, self.sizes
        x = y = fs.placeholder(fs.float32, [batch, sizes[0]])
        labels = fs.placeholder(fs.int32, [batch])
        for i, (rows, columns) in enumerate(zip(sizes, sizes[1:])):
            y = dense(fs, fs.nn.relu(y) if i else y, str(i), rows, columns)
        feed = {x: numbers(batch, sizes[0]), labels: classes(batch, sizes[-1])}
        return update(fs, y, labels, self.optimizer), feed


class Cnn(Model):
    """A training step of two convolutions with pools and a dense layer, plain gradient descent."""

    def __init__(
        self, fs: Any, batch: int, side: int, channels: Sequence[int], threads: int = 0
    ) -> None:
        self.batch, self.side, self.channels = batch, side, channels
        super().__init__(fs, threads)

    def build(self, fs: Any) -> tuple[Any, dict[Any, Any]]:
        batch, side = self.batch, self.side
        x = y = fs.placeholder(fs.float32, [batch, side, side, self.channels[0]])
        labels = fs.placeholder(fs.int32, [batch])
        for i, (a, b) in enumerate(zip(self.channels, self.channels[1:])):
            start = fs.random_normal_initializer(stddev=(9 * a) ** -0.5, seed=1)
            f = fs.get_variable(f"f{i}", [3, 3, a, b], initializer=start, use_resource=True)
            y = fs.nn.relu(fs.nn.conv2d(y, f, strides=[1, 1, 1, 1], padding="SAME"))
            y = fs.nn.max_pool(y, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
            side = -(-side // 2)
        size = side * side * self.channels[-1]
        y = dense(fs, fs.reshape(y, [batch, size]), "dense", size, 10)
        feed = {x: numbers(batch, self.side, self.side, self.channels[0])}
        feed[labels] = classes(batch, 10)
        return update(fs, y, labels, "GradientDescentOptimizer"), feed


class Elementwise(Model):
    """Element-wise operations in a chain, and the sum of what they give."""

    def __init__(self, fs: Any, length: int, size: int, threads: int = 0) -> None:
        self.length, self.size = length, size
        super().__init__(fs, threads)

    def build(self, fs: Any) -> tuple[Any, dict[Any, Any]]:
        x = y = fs.placeholder(fs.float32, [self.size])
        for i in range(self.length):
            kind = (fs.multiply, fs.add, fs.maximum, fs.subtract)[i % 4]
            y = fs.tanh(y) if i % 10 == 9 else kind(y, x)
        return fs.reduce_sum(y), {x: numbers(self.size)}


class Branches(Model):
    """Two large pieces of work of one kind that do not depend on each other."""

    def __init__(self, fs: Any, kind: str, size: int, threads: int = 0) -> None:
        self.kind, self.size = kind, size
        super().__init__(fs, threads)

    def build(self, fs: Any) -> tuple[Any, dict[Any, Any]]:
        found = []
        feed = {}
        for _ in range(2):
            x = fs.placeholder(fs.float32, [self.size, self.size])
            feed[x] = numbers(self.size, self.size)
            y = fs.matmul(x, x) if self.kind == "matmul" else fs.svd(x, compute_uv=False)
            found.append(fs.reduce_sum(y))
        return found[0] + found[1], feed


WORK: dict[str, Callable[..., Any]] = {
    "mlp": Mlp,
    "cnn": Cnn,
    "elementwise": Elementwise,
    "branches": Branches,
}
