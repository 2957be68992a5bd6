"""Random loops of single numbers: machine code gives the bits of op mode, whoever interferes.

A seed stands for a program: variables of all dtypes, bodies of random operations, loops and
branches in them. It runs one operation at a time and as compiled code whose loops are handed to
machine code after a few iterations: plain, and while it is paused, looked into and moved by
operations and by iterations where machine code gave a loop back.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import flowscope as fs
from flowscope.runtime.threads import native_loops
from flowscope.runtime.waits.predicates import NEXT_ITERATION, NEXT_OP

DTYPES = (fs.float64, fs.float32, fs.int32, fs.int64)
_NUMBERS = [0.0, -0.0, 1.0, -1.5, 2.0, 0.3, 1e-310, 3e38, -7.25, float("inf"), float("nan"), 100.7]
_INTEGERS = [0, 1, -1, 2, 3, -7, 100, 2**31 - 1, -(2**31)]
_BOTH = (
    fs.add, fs.subtract, fs.multiply, fs.maximum, fs.minimum, fs.squared_difference,
)  # fmt: skip
_FLOATS = (
    fs.realdiv, fs.floordiv, fs.floormod, fs.div_no_nan, fs.atan2, fs.pow, fs.xlogy, fs.xdivy,
)  # fmt: skip
_ONE = (
    fs.exp, fs.log, fs.tanh, fs.sin, fs.sqrt, fs.rsqrt, fs.reciprocal, fs.floor, fs.ceil, fs.rint,
    fs.sigmoid, fs.softplus, fs.sign, fs.log1p, fs.expm1, fs.erf,
)  # fmt: skip
_COMPARED = (fs.less, fs.less_equal, fs.greater, fs.greater_equal, fs.equal, fs.not_equal)


@contextmanager
def compiled_at_once(after: int = 2, told: Callable[[], None] | None = None) -> Iterator[list[Any]]:
    """Has loops be compiled where they are asked for; gives the list of those that were.

    Args:
        after: After so many iterations.
        told: Is called as often as machine code has given a loop back.
    """
    made: list[Any] = []
    compiler, loop = native_loops.NativeCompiler, native_loops.NativeLoop
    compile_before, run_before = compiler.compile, loop._run
    before = {name: getattr(native_loops, name) for name in ("_HOT", "_AGAIN", "_SHORT", "_FIRST")}

    def compile_now(self: Any, asked: Any) -> None:
        self.compile_now(asked)
        made.append(asked)

    def run(self: Any, *arguments: Any) -> Any:
        found = run_before(self, *arguments)
        if told is not None:
            told()
        return found

    wanted = {"_HOT": after + 1, "_AGAIN": 1, "_SHORT": 100, "_FIRST": 400}
    for name, value in wanted.items():
        setattr(native_loops, name, value)
    compiler.compile, loop._run = compile_now, run
    try:
        yield made
    finally:
        compiler.compile, loop._run = compile_before, run_before
        for name, value in before.items():
            setattr(native_loops, name, value)


class _Body:
    """Random operations on single numbers."""

    def __init__(self, draw: random.Random, outside: list[Any]) -> None:
        self.draw = draw
        self.pool = list(outside)
        self.names = 0

    def of(self, dtype: Any) -> Any:
        found = [t for t in self.pool if t.dtype is dtype]
        if found and self.draw.random() < 0.8:
            return self.draw.choice(found[-6:])
        if dtype is fs.bool:
            return fs.constant(self.draw.random() < 0.5)
        if dtype.kind == "f":
            return fs.constant(np.array(self.draw.choice(_NUMBERS), dtype.np_dtype))
        number = self.draw.choice(_INTEGERS)
        return fs.constant(number, dtype)

    def number(self) -> Any:
        return self.of(self.draw.choice(DTYPES))

    def add(self, depth: int) -> None:
        draw = self.draw
        kind = draw.randrange(12)
        dtype = draw.choice(DTYPES)
        if kind <= 3:
            made = draw.choice(_BOTH)(self.of(dtype), self.of(dtype))
        elif kind == 4:
            dtype = draw.choice(DTYPES[:2])
            made = draw.choice(_FLOATS)(self.of(dtype), self.of(dtype))
        elif kind == 5:
            made = draw.choice(_ONE)(self.of(draw.choice(DTYPES[:2])))
        elif kind == 6:
            made = draw.choice(_COMPARED)(self.of(dtype), self.of(dtype))
        elif kind == 7:
            made = fs.cast(
                self.of(draw.choice((*DTYPES, fs.bool))), draw.choice((*DTYPES, fs.bool))
            )
        elif kind == 8:
            made = fs.where(self.of(fs.bool), self.of(dtype), self.of(dtype))
        elif kind == 9:
            dtype = draw.choice(DTYPES[2:])
            made = self.of_integers(dtype)
        elif kind == 10 and depth:
            made = self.cond(depth - 1)
        elif depth:
            made = self.loop(depth - 1)
        else:
            made = draw.choice((fs.logical_and, fs.logical_or, fs.logical_xor))(
                self.of(fs.bool), self.of(fs.bool)
            )
        self.pool.append(made)

    def of_integers(self, dtype: Any) -> Any:
        a, b = self.of(dtype), self.of(dtype)
        kind = self.draw.randrange(5)
        if kind == 0:
            return fs.floordiv(a, fs.maximum(b, fs.constant(1, dtype)))
        if kind == 1:
            return fs.floormod(a, fs.minimum(b, fs.constant(-1, dtype)))
        if kind == 2:
            return fs.abs(a)
        if kind == 3:
            return -a
        return fs.floordiv(a, b)  # may fail

    def cond(self, depth: int) -> Any:
        dtype = self.draw.choice(DTYPES)

        def branch() -> Any:
            inner = _Body(self.draw, self.pool)
            for _ in range(self.draw.randrange(3)):
                inner.add(depth)
            return fs.identity(inner.of(dtype))

        return fs.cond(self.of(fs.bool), branch, branch)

    def loop(self, depth: int) -> Any:
        outs = while_loop(self.draw, self, depth, self.draw.randrange(1, 30))
        return outs[self.draw.randrange(len(outs))]


def while_loop(draw: random.Random, around: _Body, depth: int, count: int) -> list[Any]:
    """Returns the ends of the variables of a random loop."""
    dtypes = [draw.choice((*DTYPES, fs.bool)) for _ in range(draw.randrange(1, 5))]
    starts = [around.of(d) for d in dtypes]

    def body(i: Any, *variables: Any) -> Any:
        inner = _Body(draw, [*around.pool, i, *variables])
        for _ in range(draw.randrange(1, 9)):
            inner.add(depth)
        return [i + 1, *[fs.identity(inner.of(d)) for d in dtypes]]

    first = fs.constant(draw.randrange(3))
    return list(fs.while_loop(lambda i, *_: i < count, body, [first, *starts], back_prop=False))


def program(seed: int) -> tuple[fs.Graph, list[Any], dict[Any, Any]]:
    """Returns a graph, what to fetch of it, and feeds."""
    draw = random.Random(seed)
    graph = fs.Graph()
    with graph.as_default():
        feeds = {}
        for dtype in DTYPES:
            x = fs.placeholder(dtype, [])
            value = draw.choice(_NUMBERS if dtype.kind == "f" else _INTEGERS[:6])
            feeds[x] = np.array(value, dtype.np_dtype)
        fetches = while_loop(draw, _Body(draw, [*feeds]), 2, draw.choice((5, 40, 300)))
    return graph, fetches, feeds


def outcome(run: Any) -> list[Any]:
    """Returns values as dtypes and bits (a NaN is a NaN), or the error's text and place."""
    try:
        values = run()
    except fs.errors.OpError as error:
        return [type(error).__name__, error.message, getattr(error, "iterations", None)]
    found = []
    for value in values:
        array = np.asarray(value)
        is_nan = array.dtype.kind == "f" and np.isnan(array)
        found.append((array.dtype.name, "nan" if is_nan else array.tobytes()))
    return found


def check(seed: int) -> int:
    """Compares the modes; returns how many loops became machine code."""
    graph, fetches, feeds = program(seed)
    with fs.Session(graph=graph, config=fs.ConfigProto(mode="op")) as session:
        wanted = outcome(lambda: session.run(fetches, feeds))
    draw = random.Random(f"moves {seed}")
    native = 0
    for is_disturbed in (False, True):
        with fs.Session(graph=graph) as session:
            mover = Mover(session, draw)
            told = mover.told if is_disturbed else None
            with compiled_at_once(draw.randrange(4), told) as made:
                if is_disturbed:
                    session.gate.listener = mover.listen
                for _ in range(2):
                    found = outcome(lambda: session.run(fetches, feeds))
                    assert found == wanted, f"seed {seed}: {found} is not {wanted}"
                native += sum(loop.state == "native" for loop in made)
    return native


class Mover:
    """Pauses a step where machine code gave a loop back, and moves it on from there.

    Args:
        session: The session of the step.
        draw: Chooses what is asked for.
    """

    def __init__(self, session: Any, draw: random.Random) -> None:
        self._gate = session.gate
        self._draw = draw
        self._left = 40

    def told(self) -> None:
        """Machine code gave a loop back: somebody may have asked for something meanwhile."""
        kind = self._draw.randrange(6)
        if kind == 0:
            self._gate.request("pause")
        elif kind == 1:
            self._gate.look()

    def listen(self, step: Any) -> None:
        """The step is held: it is looked into, and moved, or goes on."""
        if step.here is not None:  # at its end there is nothing to see
            step.here.values()
            step.here.where()
        self._left -= 1
        if self._left > 0:
            move = self._draw.choice((NEXT_OP, NEXT_ITERATION, None))
            if move is not None:
                self._gate.run_until(move)
