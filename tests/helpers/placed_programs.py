"""Random nests of branches, loops and gradients whose operations ask for random devices.

A program follows from its seed and is built twice: in `fs.device` scopes and without any. Both have
the same operations, so their results must have the same bits, whatever runs them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
from op_oracle import same_bits

import flowscope as fs

MODES = ("compiled", "op", "tokens")
#: Mode and `split_partitions`.
WAYS = [*[(mode, "never") for mode in MODES], ("compiled", "always")]
CPUS = ["/cpu:0", "/cpu:1", "/cpu:2"]
TASKS = [
    "/job:client/task:0",
    "/job:worker/task:0",
    "/job:worker/task:1",
]
#: Rows and columns of what programs compute with.
SHAPE = (3, 4)
#: Programs with so many operations get no second gradient.
_MOST = 150
#: What seeds choose from: how the operations of a gradient are placed.
_GRADIENTS = ("free", "scope", "each")


class PlacedProgram:
    """The program of a seed: `fetches`, what initializes its variables, and what is fed.

    Args:
        seed: The seed.
        devices: Names that `fs.device` takes; none: nothing asks for a device.
    """

    def __init__(self, seed: int, devices: Sequence[str] = ()) -> None:
        self._choice = random.Random(seed)
        #: Draws devices alone, so a program is the same without them.
        self._places = random.Random(f"places of {seed}")
        self._devices = devices
        numbers = np.random.default_rng(seed)
        self.fed = numbers.uniform(-1, 1, SHAPE).astype("f")
        self.graph = fs.Graph()
        with self.graph.as_default():
            square = numbers.uniform(-1, 1, (SHAPE[1], SHAPE[1])).astype("f")
            self.w: Any = fs.Variable(square, name="w") if seed % 2 else fs.constant(square)
            self.x = fs.placeholder(fs.float32, SHAPE if seed % 3 else [None, SHAPE[1]])
            self._depth = 0
            self.fetches = self._results()
            self.initializer = fs.global_variables_initializer()
        self._scatter()

    def run(self, **config: Any) -> list[Any]:
        """Returns the values of the fetches, of two runs."""
        given = config.pop("target", "")
        with fs.Session(given, graph=self.graph, config=fs.ConfigProto(**config)) as sess:
            sess.run(self.initializer)
            feeds = {self.x: self.fed}
            return [*sess.run(self.fetches, feeds), *sess.run(self.fetches, feeds)]

    def _on(self, often: float = 0.6) -> Any:
        """Returns a scope for a random device, or none."""
        wanted = self._places.random() < often
        return fs.device(self._places.choice(self._devices)) if wanted and self._devices else (
            nullcontext()
        )  # fmt: skip

    def _results(self) -> list[Any]:
        y = self._statements(self.x, self._choice.randint(2, 5))
        xs = [self.x, self.w]
        found = [y]
        self._placing = self._choice.choice(_GRADIENTS)
        self._first = len(self.graph.get_operations())
        with self._on() if self._placing == "scope" else nullcontext():
            beside = self._choice.random() < 0.2 and self._placing != "each"
            gradients = fs.gradients(fs.reduce_sum(y * y), xs, colocate_gradients_with_ops=beside)
            gradients = [g for g in gradients if g is not None]
            found += [fs.convert_to_tensor(g) for g in gradients]
            if gradients and self._choice.random() < 0.4 and len(self.graph) < _MOST:
                total = fs.reduce_sum(fs.square(fs.convert_to_tensor(gradients[0])))
                found += [fs.convert_to_tensor(g) for g in fs.gradients(total, xs) if g is not None]
        return found

    def _scatter(self) -> None:
        """Places operations of gradients one by one, where the seed chose that."""
        if self._placing == "each" and self._devices:
            for op in self.graph.get_operations()[self._first :]:
                if self._places.random() < 0.3:
                    op.device = self._places.choice(self._devices)

    # -- statements ------------------------------------------------------------------------------

    def _statements(self, x: Any, count: int) -> Any:
        for _ in range(count):
            x = self._statement(x)
        return x

    def _statement(self, x: Any) -> Any:
        kinds = [self._one, self._one, self._product, self._two, self._rows]
        if self._depth < 3:
            kinds += [self._branch, self._loop, self._loop, self._until, self._unrolled]
            kinds.append(self._array)
        with self._on():
            return self._choice.choice(kinds)(x)

    def _one(self, x: Any) -> Any:
        return self._choice.choice([fs.sin, fs.tanh, lambda a: a * 0.5, fs.square, lambda a: -a])(x)

    def _product(self, x: Any) -> Any:
        return fs.tanh(fs.matmul(x, self.w))

    def _two(self, x: Any) -> Any:
        with self._on():
            y = self._one(x)
        return self._choice.choice([fs.add, fs.multiply, fs.maximum])(x, y)

    def _rows(self, x: Any) -> Any:
        """Takes rows, so the gradient is slices of the matrix."""
        return x + fs.reduce_sum(fs.gather(self.w, [0, self._choice.randint(0, 3), 1]), 0)

    def _array(self, x: Any) -> Any:
        """Writes rows to an array in one loop, and reads them in another."""
        rows = SHAPE[0]
        with self._on():
            array = fs.TensorArray(fs.float32, rows)

        def write(i: Any, a: Any, array: Any) -> Any:
            a = self._one(a)
            return i + 1, a, array.write(i, fs.reduce_sum(a, 0))

        array = fs.while_loop(lambda i, a, _: i < rows, write, [0, x, array])[2]
        with self._on():
            if self._choice.random() < 0.5:
                return x + array.stack()
            return fs.while_loop(
                lambda i, a: i < rows, lambda i, a: (i + 1, a * 0.5 + array.read(i)), [0, x]
            )[1]

    def _block(self, x: Any) -> Any:
        self._depth += 1
        try:
            return self._statements(x, self._choice.randint(1, 3))
        finally:
            self._depth -= 1

    def _branch(self, x: Any) -> Any:
        with self._on():
            pred = fs.reduce_sum(x) > self._choice.choice([-100.0, 0.0, 100.0])
        is_plain = self._choice.random() < 0.3
        return fs.cond(pred, lambda: self._block(x), lambda: x if is_plain else self._block(x))

    def _loop(self, x: Any) -> Any:
        count = self._choice.randint(0, 3)

        def body(i: Any, a: Any) -> Any:
            return i + 1, self._block(a)

        return fs.while_loop(
            lambda i, a: i < count, body, [0, x],
            parallel_iterations=self._choice.choice([1, 10]),
            shape_invariants=None,
        )[1]  # fmt: skip

    def _until(self, x: Any) -> Any:
        """A loop that ends by what it computes."""

        def test(a: Any) -> Any:
            with self._on():
                return fs.reduce_sum(fs.abs(a)) > 3.0

        return fs.while_loop(
            test, lambda a: 0.5 * self._block(a), [x], maximum_iterations=self._choice.randint(1, 4)
        )

    def _unrolled(self, x: Any) -> Any:
        for _ in range(self._choice.randint(2, 5)):
            x = self._product(x)
        return x


def check(seed: int) -> None:
    """Asserts that a program gives the same bits with devices and without, however it is run."""
    want = PlacedProgram(seed).run()
    placed = PlacedProgram(seed, CPUS)
    for mode, split in WAYS:
        got = placed.run(mode=mode, split_partitions=split, device_count={"CPU": len(CPUS)})
        assert_same(want, got, f"seed {seed}, {mode}, split_partitions={split!r}")


def check_on_cluster(seed: int, cluster: Any) -> None:
    """Asserts the same of a program on two tasks of a cluster and its client."""
    want = PlacedProgram(seed).run()
    placed = PlacedProgram(seed, TASKS)
    for mode in MODES:
        assert_same(want, placed.run(target=cluster, mode=mode), f"seed {seed}, {mode}, cluster")


def assert_same(want: Sequence[Any], got: Sequence[Any], what: str) -> None:
    """Asserts that two lists of arrays have the same bits."""
    for i, (a, b) in enumerate(zip(want, got, strict=True)):
        assert same_bits(a, b), f"{what}, fetch {i}: {a} unplaced, {b} placed"


__all__ = ["CPUS", "SHAPE", "TASKS", "PlacedProgram", "check", "check_on_cluster"]
