"""Random nests of loops and branches: as graphs, and as plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

import flowscope as fs


def larger(m: Any, x: Any, w: Any) -> Any:
    """The maximum: of numbers that are equal the first, which matters for zeros."""
    return fs.maximum(x, w) if m is fs else (x if x >= w else w)


#: (x, k, w) -> x, by tensors or numbers; `m` is fs or np.
FLOATS = [
    lambda m, x, k, w: m.sin(x) + w,
    lambda m, x, k, w: x * w - x,
    lambda m, x, k, w: m.tanh(x * w),
    lambda m, x, k, w: larger(m, x, w) * 0.5,
    lambda m, x, k, w: -x,
]
INTS = [
    lambda k: k + 1,
    lambda k: k * 1000003,
    lambda k: -k - 7,
]
TESTS = [lambda x, k, w: x > w, lambda x, k, w: k < 100, lambda x, k, w: x * 2.0 <= 0.3]

simple = st.one_of(
    st.tuples(st.just("float"), st.integers(0, len(FLOATS) - 1)),
    st.tuples(st.just("int"), st.integers(0, len(INTS) - 1)),
)


def nested(inner: Any) -> Any:
    block = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        st.tuples(st.just("cond"), st.integers(0, len(TESTS) - 1), block, block),
        st.tuples(st.just("loop"), st.integers(0, 3), block),
        st.tuples(st.just("while"), st.integers(0, 3), block),
    )


programs = st.lists(st.recursive(simple, nested, max_leaves=8), min_size=1, max_size=4)


def as_graph(program: Any, x: Any, k: Any, w: Any) -> Any:
    """Returns (x, k) of the program, built with cond and while_loop."""
    for kind, which, *blocks in program:
        if kind == "float":
            x = FLOATS[which](fs, x, k, w)
        elif kind == "int":
            k = INTS[which](k)
        elif kind == "cond":
            pred = TESTS[which](x, k, w)
            x, k = fs.cond(
                pred,
                lambda b=blocks[0], x=x, k=k: as_graph(b, fs.identity(x), fs.identity(k), w),
                lambda b=blocks[1], x=x, k=k: as_graph(b, fs.identity(x), fs.identity(k), w),
            )
        elif kind == "loop":
            _, x, k = fs.while_loop(
                lambda i, x, k, n=which: i < n,
                lambda i, x, k, b=blocks[0]: (i + 1, *as_graph(b, x, k + i, w)),
                [0, x, k],
            )
        else:
            x, k = fs.while_loop(
                lambda x, k: x < 0.9,
                lambda x, k, b=blocks[0]: as_graph(b, x, k, w),
                [x, k],
                maximum_iterations=which,
            )
    return x, k


def as_python(program: Any, x: Any, k: Any, w: Any, m: Any, now: Any) -> Any:
    """The same by Python's own control flow, which looks at `now`: the values of x, k and w."""
    for kind, which, *blocks in program:
        if kind == "float":
            x, now = FLOATS[which](m, x, k, w), (FLOATS[which](np, *now), *now[1:])
        elif kind == "int":
            k, now = INTS[which](k), (now[0], INTS[which](now[1]), now[2])
        elif kind == "cond":
            branch = blocks[0] if TESTS[which](*now) else blocks[1]
            x, k, now = as_python(branch, x, k, w, m, now)
        elif kind == "loop":
            for i in range(which):
                now = (now[0], now[1] + np.int32(i), now[2])
                x, k, now = as_python(blocks[0], x, k + i, w, m, now)
        else:
            for _ in range(which):
                if not now[0] < 0.9:
                    break
                x, k, now = as_python(blocks[0], x, k, w, m, now)
    return x, k, now
