"""Random programs on several devices or workers, with queues, Python functions and partial runs.

A program follows from its seed and its places: with the same seed the same operations stand in
other places. Nothing in it is left to chance: each queue has one operation that puts elements in
and one that takes them out, in loops only where their iterations have an order.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

import flowscope as fs

#: Steps of a program, and how many elements are in its queues for all of them.
STEPS, ELEMENTS = 3, 500
SHAPE = (3,)
_ONE = [fs.tanh, fs.sin, fs.square, fs.negative, fs.sigmoid, lambda x: fs.exp(-fs.abs(x))]
_TWO = [fs.add, fs.subtract, fs.multiply, fs.maximum, fs.minimum]
_HOST = [np.cos, np.tanh, np.abs, lambda x: x * np.float32(0.5)]


class WaitingProgram:
    """A graph, what is fetched, and what is fed.

    Args:
        seed: What it follows from.
        places: Three devices; "" for none.

    Attributes:
        fetches: What each step fetches.
        feeds: Its two placeholders.
        partial: What the first and the second call of a partial run fetch; None if there is none.
        fill: What is run before all steps.
        queues: Its queues.
    """

    def __init__(self, seed: int, places: list[str]) -> None:
        self.rng = random.Random(seed)
        self.places = places
        self.numbers = np.random.default_rng(seed)
        self.has_partial = self.rng.random() < 0.25
        self.queues: list[Any] = []
        self._filled: list[Any] = []
        self.variables: list[Any] = []
        with fs.Graph().as_default() as self.graph:
            self._build()

    def _build(self) -> None:
        rng = self.rng
        self.feeds = [fs.placeholder(fs.float32, SHAPE) for _ in range(2)]
        for i in range(rng.randint(1, 3)):
            with self.place():
                start = self.array()
                self.variables.append(fs.get_variable(f"v{i}", initializer=start))
        scope = Scope(self, self.feeds)
        for _ in range(rng.randint(3, 9)):
            scope.statement()
        count = rng.randint(1, min(4, len(scope.tensors)))
        self.fetches = [*rng.sample(scope.tensors, count), *scope.aside]
        if rng.random() < 0.5:
            self.fetches += self._gradients(scope)
        self.partial = self._partial() if self.has_partial else None
        self.initializer = fs.global_variables_initializer()
        self.sizes = [q.size() for q in self.queues]
        shape = (ELEMENTS, *SHAPE)
        self.fill = [
            q.enqueue_many(self.numbers.uniform(-1, 1, shape).astype(np.float32))
            for q in self._filled
        ]

    def _partial(self) -> tuple[list[Any], list[Any]]:
        numbers = list(range(len(self.fetches)))
        first = set(self.rng.sample(numbers, self.rng.randint(0, len(numbers))))
        return (
            [self.fetches[i] for i in numbers if i in first],
            [self.fetches[i] for i in numbers if i not in first],
        )

    def _gradients(self, scope: Scope) -> list[Any]:
        y = fs.reduce_sum(self.rng.choice(scope.tensors[-4:]))
        variables = self.variables[: self.rng.randint(1, len(self.variables))]
        found = fs.gradients(y, [*variables, *self.feeds])
        given = [fs.convert_to_tensor(g) for g in found if g is not None]
        if self.rng.random() < 0.5 and any(g is not None for g in found[: len(variables)]):
            rate = 0.01
            optimizer = fs.train.MomentumOptimizer(rate, 0.5)
            pairs = [(g, v) for g, v in zip(found, variables) if g is not None]
            return [*given, optimizer.apply_gradients(pairs)]
        return given

    def array(self) -> Any:
        """Returns random numbers."""
        return self.numbers.uniform(-1, 1, SHAPE).astype(np.float32)

    def fed(self, step: int) -> list[Any]:
        """The feeds of a step."""
        return list(np.random.default_rng(step).uniform(-1, 1, (2, *SHAPE)).astype(np.float32))

    def place(self) -> Any:
        """Returns the device that the next operations ask for."""
        return fs.device(self.rng.choice(self.places))

    def queue(self, is_filled: bool) -> Any:
        """Returns a new queue, with elements for all steps or empty."""
        with self.place(), fs.control_dependencies(None):
            made = fs.FIFOQueue(1000, [fs.float32], shapes=[SHAPE])
            if is_filled:
                self._filled.append(made)
        self.queues.append(made)
        return made


class Scope:
    """A block that is being built.

    Args:
        program: The program.
        tensors: What can be used in it, oldest first.
        depth: How many blocks are around it.
        has_order: Whether the iterations of all loops around run one after the other.
    """

    def __init__(
        self, program: WaitingProgram, tensors: Any, depth: int = 0, has_order: bool = True
    ) -> None:
        self.program, self.rng = program, program.rng
        self.tensors, self.depth, self.has_order = list(tensors), depth, has_order
        #: Effects that nothing takes: fetched at the top, waited for in blocks.
        self.aside: list[Any] = []

    def any(self) -> Any:
        """Returns one of the tensors, the latest ones most often."""
        return self.tensors[-self.rng.randint(1, min(len(self.tensors), 4))]

    def statement(self) -> None:
        """Adds a random statement, on a random device."""
        kinds = [*[self.compute] * 5, self.host, *[self.read] * 2, self.write, self.draw]
        if self.depth < 3:
            kinds += [self.branch, self.branch, self.loop, self.loop]
            if not self.program.has_partial:
                kinds += [self.array_loop]  # lists cannot be sent from one call to the next
        if self.has_order:
            kinds += [*[self.dequeue] * 2, self.enqueue]
        if not self.depth:
            kinds += [self.queue_loop, self.after]
            if not self.program.has_partial:
                kinds += [self.answer]  # a part of a run may not wait for a later one
        with self.program.place():
            self.rng.choice(kinds)()

    def compute(self) -> None:
        if self.rng.random() < 0.5:
            made = self.rng.choice(_ONE)(self.any())
        else:
            made = self.rng.choice(_TWO)(self.any(), self.any())
        self.tensors.append(made)

    def draw(self) -> None:
        self.tensors.append(fs.random_uniform(SHAPE, seed=self.rng.randint(1, 99)))

    def host(self) -> None:
        """Some Python functions, which may wait for each other."""
        for _ in range(self.rng.randint(1, 2)):
            with self.program.place():
                function = self.rng.choice(_HOST)
                made = fs.py_func(function, [self.any()], fs.float32)
                self.tensors.append(fs.reshape(fs.stop_gradient(made), SHAPE))

    def read(self) -> None:
        self.tensors.append(self.rng.choice(self.program.variables).read_value())

    def write(self) -> None:
        v = self.rng.choice(self.program.variables)
        way = self.rng.choice([v.assign, v.assign_add])
        made = way(fs.tanh(self.any()))
        if self.rng.random() < 0.5:
            self.tensors.append(fs.convert_to_tensor(made))
        else:
            self.aside.append(made.op)

    def after(self) -> None:
        """Something that waits for something else without a value."""
        before = [self.any(), *self.aside[-1:]]
        with fs.control_dependencies(before):
            self.tensors.append(fs.identity(self.any()))

    # -- queues

    def dequeue(self) -> None:
        self.tensors.append(self.program.queue(True).dequeue())

    def enqueue(self) -> None:
        self.aside.append(self.program.queue(False).enqueue(self.any()))

    def answer(self) -> None:
        """What is taken out of a queue is put in by the same step, later in the program."""
        queue = self.program.queue(False)
        given = self.any()
        taken = queue.dequeue()
        for _ in range(self.rng.randint(0, 2)):
            with self.program.place():
                taken = self.rng.choice(_ONE)(taken)
        with self.program.place():
            value = self.rng.choice(_ONE)(given)
        self.aside.append(queue.enqueue(value))
        self.tensors.append(taken)

    def queue_loop(self) -> None:
        """A loop whose iterations may overlap; each takes an element after the one before."""
        queue = self.program.queue(True)
        count, window = self.rng.randint(1, 6), self.rng.choice([1, 2, 10])

        def body(i: Any, x: Any, y: Any) -> Any:
            with self.program.place(), fs.control_dependencies([x]):
                x = queue.dequeue()
            inner = Scope(self.program, [*self.tensors, y, x], self.depth + 2, False)
            for _ in range(self.rng.randint(1, 3)):
                inner.statement()
            return [i + 1, x, *inner.results([y])]

        start = [fs.constant(0), self.any(), self.any()]
        made = fs.while_loop(lambda i, *_: i < count, body, start, parallel_iterations=window)
        self.tensors += made[1:]

    # -- blocks

    def block(self, like: list[Any], extra: Any = (), has_order: bool = True) -> list[Any]:
        """Builds the statements of a block; returns as many tensors as `like`."""
        order = self.has_order and has_order
        inner = Scope(self.program, [*self.tensors, *extra], self.depth + 1, order)
        for _ in range(self.rng.randint(1, 3)):
            inner.statement()
        return inner.results(like)

    def results(self, like: list[Any]) -> list[Any]:
        """Returns the latest tensors, behind all effects."""
        with ExitStack() as stack:
            if self.aside:
                stack.enter_context(fs.control_dependencies(self.aside))
            found = []
            for _ in like:
                with self.elsewhere():
                    found.append(fs.identity(self.any()))
            return found

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """Asks for another device now and then."""
        if self.rng.random() < 0.5:
            with self.program.place():
                yield
        else:
            yield

    def pred(self) -> Any:
        return fs.reduce_sum(self.any()) > self.rng.choice([-0.5, 0.0, 0.5])

    def branch(self) -> None:
        like = [self.any() for _ in range(self.rng.randint(1, 2))]
        made = fs.cond(self.pred(), lambda: self.block(like), lambda: self.block(like))
        self.tensors += made if isinstance(made, list | tuple) else [made]

    def loop(self) -> None:
        start = [self.any() for _ in range(self.rng.randint(1, 2))]
        count, window = self.rng.randint(0, 4), self.rng.choice([1, 2, 10])
        limit = self.rng.choice([None, 0.5, 2.0])
        body = self.body(window)

        def goes_on(i: Any, *xs: Any) -> Any:
            if limit is None:
                return i < count
            return fs.logical_and(i < count, fs.reduce_sum(xs[0]) < limit)

        starts = [fs.constant(0), *start]
        self.tensors += fs.while_loop(goes_on, body, starts, parallel_iterations=window)[1:]

    def body(self, window: int) -> Callable[..., Any]:
        def body(i: Any, *xs: Any) -> Any:
            return [i + 1, *self.block(list(xs), xs, window == 1)]

        return body

    def array_loop(self) -> None:
        """A loop that reads one TensorArray and writes another one."""
        count, window = self.rng.randint(1, 4), self.rng.choice([1, 2, 10])
        given = fs.TensorArray(fs.float32, count, clear_after_read=False).unstack(
            fs.stack([self.any() * (0.5 * i) for i in range(count)])
        )
        made = fs.TensorArray(fs.float32, count)

        def body(i: Any, x: Any, array: Any) -> Any:
            with self.program.place():
                element = given.read(i)
            (x,) = self.block([x], [x, element], window == 1)
            with self.program.place():
                return i + 1, x, array.write(i, x)

        start = [fs.constant(0), self.any(), made]
        _, x, array = fs.while_loop(
            lambda i, *_: i < count, body, start, parallel_iterations=window
        )
        with self.program.place():
            self.tensors += [x, fs.reduce_sum(array.stack(), 0)]
