"""Random programs of several ops against NumPy: all modes, known and unknown shapes, all dtypes.

A program is a list of steps, each a pair of functions, of tensors and of arrays. Steps are drawn
by what the values at hand allow, so that most of a program is used by what comes later.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from op_oracle import check_promise, same_bits

import flowscope as fs

pytestmark = pytest.mark.slow

DTYPES = ("float32", "float64", "int32", "int64", "bool")
Draw = Callable[..., Any]
#: A step: what it makes of tensors, and of arrays.
Step = tuple[Callable[..., Any], Callable[..., Any]]

UNARY: dict[str, list[Step]] = {
    "f": [
        (fs.negative, np.negative),
        (fs.abs, np.abs),
        (fs.tanh, np.tanh),
        (fs.floor, np.floor),
        (fs.square, np.square),
        (fs.sign, np.sign),
        (fs.nn.relu, lambda x: np.maximum(x, x.dtype.type(0))),
    ],
    "i": [(fs.negative, np.negative), (fs.abs, np.abs), (fs.square, np.square), (fs.sign, np.sign)],
    "b": [(fs.logical_not, np.logical_not)],
}
BINARY: dict[str, list[Step]] = {
    "f": [
        (fs.add, np.add),
        (fs.subtract, np.subtract),
        (fs.multiply, np.multiply),
        (fs.maximum, np.maximum),
        (fs.less, np.less),
        (fs.squared_difference, lambda a, b: np.square(a - b)),
    ],
    "i": [
        (fs.add, np.add),
        (fs.subtract, np.subtract),
        (fs.multiply, np.multiply),
        (fs.minimum, np.minimum),
        (fs.equal, np.equal),
    ],
    "b": [
        (fs.logical_and, np.logical_and),
        (fs.logical_or, np.logical_or),
        (fs.logical_xor, np.logical_xor),
        (fs.equal, np.equal),
    ],
}
REDUCTIONS: dict[str, list[Step]] = {
    "f": [(fs.reduce_sum, np.sum), (fs.reduce_max, np.max), (fs.reduce_mean, np.mean)],
    "i": [(fs.reduce_sum, np.sum), (fs.reduce_min, np.min), (fs.reduce_prod, np.prod)],
    "b": [(fs.reduce_all, np.all), (fs.reduce_any, np.any)],
}


class Program:
    """Tensors and the arrays that they should be."""

    def __init__(self, draw: Draw, is_known: bool) -> None:
        self.draw, self.is_known = draw, is_known
        self.tensors: list[Any] = []
        self.arrays: list[Any] = []
        self.feeds: dict[Any, Any] = {}

    def one(self, choices: Any) -> Any:
        """Returns one of the choices."""
        return self.draw(st.sampled_from(list(choices)))

    def some(self, wanted: Callable[[Any], bool]) -> int | None:
        """Returns the number of an array that is wanted, rather a late one, or None."""
        found = [i for i, a in enumerate(self.arrays) if wanted(a)]
        return None if not found else self.one(found[-4:])

    def feed(self) -> None:
        """Adds an input of random shape and dtype."""
        shape = self.draw(st.lists(st.integers(0, 3), max_size=3))
        dtype = self.one(DTYPES)
        seed = self.draw(st.integers(0, 99))
        numbers = np.random.default_rng(seed).integers(-3, 4, shape)
        array = np.asarray(numbers / 2 if dtype.startswith("f") else numbers).astype(dtype)
        if self.draw(st.booleans()):
            array = np.flip(np.flip(array).copy())  # the same, with negative strides
        declared = shape if self.is_known else self.one([[None] * len(shape), None])
        tensor = fs.placeholder(dtype, declared)
        self.feeds[tensor] = array
        self.keep(tensor, array)

    def keep(self, tensor: Any, array: Any) -> None:
        """Adds a pair."""
        self.tensors.append(tensor)
        self.arrays.append(np.asarray(array))

    def step(self, pair: Step, *places: int) -> None:
        """Adds what a step makes of some of the values."""
        ours, theirs = pair
        dtype = self.arrays[places[0]].dtype
        with np.errstate(all="ignore"):
            array = np.asarray(theirs(*[self.arrays[i] for i in places]))
        if array.dtype.kind not in "b" and dtype.kind != "b" and array.dtype != dtype:
            # NumPy computes sums of integers in int64.
            array = array.astype(dtype)
        self.keep(ours(*[self.tensors[i] for i in places]), array)


#: Steps that jump: a difference in the last bit would become a large one.
JUMPS = (fs.floor, fs.sign, fs.less)


def is_exact(a: Any) -> bool:
    """Whether all elements are so short that another order of sums gives the same ones."""
    if a.dtype.kind != "f":
        return True
    return bool((np.abs(a) < 1e4).all() and (a * 64 == np.rint(a * 64)).all())


def steps_for(table: dict[str, list[Step]], *arrays: Any) -> list[Step]:
    found = table[arrays[0].dtype.kind]
    return found if all(map(is_exact, arrays)) else [s for s in found if s[0] not in JUMPS]


def unary(p: Program) -> None:
    i = p.some(lambda a: True)
    assert i is not None
    p.step(p.one(steps_for(UNARY, p.arrays[i])), i)


def cast(p: Program) -> None:
    i, to = p.some(is_exact), p.one(DTYPES)
    if i is None:
        return
    p.keep(fs.cast(p.tensors[i], to), p.arrays[i].astype(to))


def fits(a: Any) -> Callable[[Any], bool]:
    def wanted(b: Any) -> bool:
        pairs = zip(a.shape[::-1], b.shape[::-1])
        return bool(a.dtype == b.dtype) and all(m == n or 1 in (m, n) for m, n in pairs)

    return wanted


def binary(p: Program) -> None:
    i = p.some(lambda a: True)
    assert i is not None
    j = p.some(fits(p.arrays[i]))
    assert j is not None
    p.step(p.one(steps_for(BINARY, p.arrays[i], p.arrays[j])), i, j)


def reduction(p: Program) -> None:
    i = p.some(lambda a: a.ndim > 0 and a.size > 0)
    if i is None:
        return
    ours, theirs = p.one(REDUCTIONS[p.arrays[i].dtype.kind])
    axis, keep = p.one(range(-p.arrays[i].ndim, p.arrays[i].ndim)), p.draw(st.booleans())
    p.step(
        (
            lambda t: ours(t, axis, keepdims=keep),
            lambda a: theirs(a, axis=axis, keepdims=keep),
        ),
        i,
    )


def slicing(p: Program) -> None:
    i = p.some(lambda a: a.ndim > 0)
    if i is None:
        return
    ends = st.one_of(st.none(), st.integers(-4, 4))
    key: list[Any] = [
        slice(p.draw(ends), p.draw(ends), p.one([None, 1, 2, -1, -2]))
        for _ in range(p.one(range(1, p.arrays[i].ndim + 1)))
    ]
    if p.arrays[i].shape[0] and p.draw(st.booleans()):
        key[0] = p.one(range(-p.arrays[i].shape[0], p.arrays[i].shape[0]))
    if p.draw(st.booleans()):
        key.insert(p.one(range(len(key) + 1)), None)
    p.step((lambda t: t[tuple(key)], lambda a: a[tuple(key)]), i)


def gather(p: Program) -> None:
    i = p.some(lambda a: a.ndim > 0 and a.shape[0] > 0)
    if i is None:
        return
    places = p.draw(st.lists(st.integers(0, p.arrays[i].shape[0] - 1), max_size=4))
    chosen = np.array(places, "int32")
    p.step((lambda t: fs.gather(t, chosen), lambda a: a[chosen]), i)


def joined(p: Program) -> None:
    i = p.some(lambda a: a.ndim > 0)
    if i is None:
        return
    first = p.arrays[i]
    axis = p.one(range(first.ndim))

    def wanted(b: Any) -> bool:
        same = [m == n for k, (m, n) in enumerate(zip(first.shape, b.shape)) if k != axis]
        return bool(first.dtype == b.dtype) and first.ndim == b.ndim and all(same)

    j = p.some(wanted)
    assert j is not None
    p.step((lambda *ts: fs.concat(ts, axis), lambda *xs: np.concatenate(xs, axis)), i, j)


def product(p: Program) -> None:
    i = p.some(lambda a: a.ndim == 2 and a.dtype.kind != "b")
    if i is None:
        return
    a = p.arrays[i]
    j = p.some(lambda b: b.ndim == 2 and b.dtype == a.dtype and b.shape[-1] == a.shape[-1])
    assert j is not None
    p.step((lambda s, t: fs.matmul(s, t, transpose_b=True), lambda x, y: x @ y.T), i, j)


def shaped(p: Program) -> None:
    i = p.some(lambda a: True)
    assert i is not None
    rank = p.arrays[i].ndim
    order = p.draw(st.permutations(range(rank)))
    pair: Step = p.one(
        [
            (lambda t: fs.transpose(t, order), lambda a: np.transpose(a, order)),
            (lambda t: fs.reshape(t, [p.arrays[i].size]), lambda a: a.reshape(-1)),
            (lambda t: fs.expand_dims(t, -1), lambda a: a[..., None]),
            (lambda t: fs.stack([t, t], 0), lambda a: np.stack([a, a])),
            (lambda t: fs.tile(t, [2] * rank), lambda a: np.tile(a, [2] * rank)),
            (fs.zeros_like, np.zeros_like),
            (lambda t: fs.identity(t), lambda a: a),
        ]
    )
    if p.arrays[i].size <= 200:
        p.step(pair, i)


def chosen(p: Program) -> None:
    i = p.some(lambda a: a.ndim > 0)
    if i is None:
        return
    a = p.arrays[i]
    j = p.some(lambda b: b.dtype == a.dtype and b.shape == a.shape)
    c = p.some(lambda b: b.dtype == bool and b.shape == a.shape)
    if c is None or j is None:
        return
    p.keep(
        fs.where(p.tensors[c], p.tensors[i], p.tensors[j]),
        np.where(p.arrays[c], p.arrays[i], p.arrays[j]),
    )


def along(p: Program) -> None:
    """What keeps the shape and goes along an axis, from either end."""
    i = p.some(lambda a: a.ndim > 0 and a.dtype != bool)
    if i is None:
        return
    a = p.arrays[i]
    axis, step = p.one(range(-a.ndim, a.ndim)), p.draw(st.integers(-4, 4))
    pair: Step = p.one(
        [
            (lambda t: fs.cumsum(t, axis), lambda x: np.cumsum(x, axis, dtype=x.dtype)),
            (
                lambda t: fs.cumsum(t, axis, reverse=True),
                lambda x: np.flip(np.cumsum(np.flip(x, axis), axis, dtype=x.dtype), axis),
            ),
            (lambda t: fs.reverse(t, [axis]), lambda x: np.flip(x, axis)),
            (lambda t: fs.roll(t, step, axis), lambda x: np.roll(x, step, axis)),
            (lambda t: fs.sort(t, axis), lambda x: np.sort(x, axis)),
            (lambda t: fs.repeat(t, 2, axis), lambda x: np.repeat(x, 2, axis)),
            (lambda t: fs.concat([t, t], axis), lambda x: np.concatenate([x, x], axis)),
        ]
    )
    if a.size <= 200:
        p.step(pair, i)


def places(p: Program) -> None:
    """Positions along an axis, as integers of their own dtype."""
    i = p.some(lambda a: a.ndim > 0 and a.size > 0 and a.dtype != bool and is_exact(a))
    if i is None:
        return
    a, axis = p.arrays[i], p.one(range(-p.arrays[i].ndim, p.arrays[i].ndim))
    t = p.tensors[i]
    made: tuple[Any, Any] = p.one(
        [
            (lambda: fs.argmax(t, axis), lambda: np.argmax(a, axis)),
            (lambda: fs.argmin(t, axis), lambda: np.argmin(a, axis)),
            (
                lambda: fs.argsort(t, axis),
                lambda: np.argsort(a, axis, kind="stable").astype("int32"),
            ),
            (lambda: fs.cast(fs.count_nonzero(t, axis), "int32"), lambda: _counted(a, axis)),
        ]
    )
    p.keep(made[0](), made[1]())


def _counted(a: Any, axis: int) -> Any:
    return np.count_nonzero(a, axis).astype("int32")  # type: ignore[attr-defined]


def parted(p: Program) -> None:
    """A part of a tensor that is split, unstacked or cut."""
    i = p.some(lambda a: a.ndim > 0 and a.shape[-1] > 0)
    if i is None:
        return
    a = p.arrays[i]
    axis = p.one(k for k in range(-a.ndim, a.ndim) if a.shape[k] > 0)
    n, k = a.shape[axis], p.draw(st.integers(0, a.shape[axis] - 1))
    sizes = [k, n - k]
    p.step(
        p.one(
            [
                (lambda t: fs.split(t, sizes, axis)[0], lambda x: np.split(x, [k], axis)[0]),
                (lambda t: fs.split(t, sizes, axis)[1], lambda x: np.split(x, [k], axis)[1]),
                (lambda t: fs.unstack(t, n, axis)[k], lambda x: x.take(k, axis)),
                (lambda t: fs.gather(t, [k, 0], axis=axis), lambda x: x.take([k, 0], axis)),
                (lambda t: fs.split(t, n, axis)[k], lambda x: np.split(x, n, axis)[k]),
            ]
        ),
        i,
    )


def spread(p: Program) -> None:
    """A larger tensor, with a margin or in more axes."""
    i = p.some(lambda a: a.size <= 60)
    if i is None:
        return
    a = p.arrays[i]
    margins = [[p.draw(st.integers(0, 2)), p.draw(st.integers(0, 2))] for _ in a.shape]
    shape = [p.draw(st.integers(0, 2)), *a.shape]
    p.step(
        p.one(
            [
                (lambda t: fs.pad(t, np.reshape(margins, (-1, 2))), lambda x: _padded(x, margins)),
                (lambda t: fs.broadcast_to(t, shape), lambda x: np.broadcast_to(x, shape)),
            ]
        ),
        i,
    )


def _padded(x: Any, margins: Any) -> Any:
    return np.pad(x, margins) if margins else x


def segments(p: Program) -> None:
    """Rows folded by a number each."""
    i = p.some(lambda a: a.ndim > 0 and a.dtype != bool)
    if i is None:
        return
    ids = np.array(
        p.draw(st.lists(st.integers(0, 2), min_size=len(p.arrays[i]), max_size=len(p.arrays[i]))),
        "int32",
    )
    p.step((lambda t: fs.unsorted_segment_sum(t, ids, 3), lambda x: _folded(x, ids)), i)


def _folded(x: Any, ids: Any) -> Any:
    out = np.zeros((3, *x.shape[1:]), x.dtype)
    np.add.at(out, ids, x)
    return out


STEPS = (
    *(unary, cast, binary, binary, reduction, slicing, gather, joined, product, shaped, chosen),
    *(along, places, parted, spread, segments),
)


def agree(got: Any, want: Any) -> None:
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    if want.dtype.kind == "f":
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=1e-5)
    else:
        np.testing.assert_array_equal(got, want)


@given(data=st.data(), is_known=st.booleans(), count=st.integers(3, 14))
@settings(max_examples=150)
def test_programs(data: st.DataObject, is_known: bool, count: int) -> None:
    graph = fs.Graph()
    with graph.as_default():
        program = Program(data.draw, is_known)
        for _ in range(3):
            program.feed()
        for _ in range(count):
            program.one(STEPS)(program)
    runs = []
    for mode in ("compiled", "op", "tokens"):
        with fs.Session(graph=graph, config=fs.ConfigProto(mode=mode)) as session:
            runs.append(session.run(program.tensors, program.feeds))
    for tensor, want, got, *others in zip(program.tensors, program.arrays, *runs, strict=True):
        assert all(same_bits(got, other) for other in others)
        check_promise(tensor, got)
        if all(np.isfinite(a).all() for a in program.arrays):
            agree(np.asarray(got), want)
