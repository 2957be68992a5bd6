"""Random programs of collectives, and what NumPy makes of them in the order of the ranks."""

from __future__ import annotations

import functools
import random

import numpy as np

import flowscope as fs

fc = fs.collectives
FUNCTIONS = {
    "sum": np.add, "mean": np.add, "min": np.minimum, "max": np.maximum, "prod": np.multiply,
}  # fmt: skip
DTYPES = ["bfloat16", "float16", "float32", "float64", "int8", "uint8", "int32", "int64"]


def folded(how, xs):
    """The reduction in the order of the ranks; 16 bits are added in float32, and rounded once."""
    dtype = xs[0].dtype
    wide = [x.astype(np.float32) if dtype.itemsize == 2 else x for x in xs]
    with np.errstate(all="ignore"):
        total = functools.reduce(FUNCTIONS[how], wide)
        return (total / len(xs) if how == "mean" and len(xs) > 1 else total).astype(dtype)


def parted(x, count):
    return [x[len(x) * i // count : len(x) * (i + 1) // count] for i in range(count)]


class Collectives:
    """One random program: a few collectives one after the other, on the tensors of all ranks.

    Args:
        seed: What it follows from.
        count: How many ranks.
        devices: The device of each.
        rows: The first dimension; None for a random one, often 0 or not divisible.
    """

    def __init__(self, seed, count, devices, rows=None, dtype=None):
        self.chance = random.Random(f"{seed}/{count}")
        self.count, self.devices = count, devices
        dtype = dtype or self.chance.choice(DTYPES)
        self.is_float = "float" in dtype
        rows = rows if rows is not None else self.chance.choice([0, 1, 3, 7, count, 2 * count])
        shape = (rows, self.chance.choice([1, 2, 5]))
        draw = np.random.default_rng(seed)
        self.arrays = [
            draw.integers(-3, 4, shape).astype(dtype)
            if not self.is_float
            else draw.standard_normal(shape).astype(fs.as_dtype(dtype).np_dtype)
            for _ in range(count)
        ]
        self.graph = fs.Graph()
        with self.graph.as_default():
            self.fed = [fs.placeholder(dtype, shape) for _ in range(count)]
            self.taken = fs.placeholder(fs.bool, ())
            self.is_taken = self.chance.random() < 0.5
            tensors = []
            for place, t in zip(devices, self.fed, strict=True):
                with fs.device(place):
                    tensors.append(fs.identity(t))
            self.tensors, self.wanted = [], []
            arrays = self.arrays
            for _ in range(4):
                tensors, arrays = self.step(tensors, arrays)
                self.tensors += tensors
                self.wanted += arrays

    @property
    def feeds(self):
        return {**dict(zip(self.fed, self.arrays, strict=True)), self.taken: self.is_taken}

    def step(self, tensors, arrays):
        """Adds one or two collectives, perhaps in a branch or a loop."""
        build, mirror = self.chance.choice(self.choices(len(arrays[0])))
        around = self.chance.choice(["", "", "cond", "loop"])
        if around == "cond":
            found = fs.cond(self.taken, lambda: build(tensors), lambda: [t + t for t in tensors])
            with np.errstate(all="ignore"):
                other = [x + x for x in arrays]
            found = [found] if isinstance(found, fs.Tensor) else list(found)
            return found, mirror(arrays) if self.is_taken else other
        if around == "loop":
            found = fs.while_loop(
                lambda i, *ts: i < 2, lambda i, *ts: (i + 1, *build(ts)), (0, *tensors)
            )
            return list(found[1:]), mirror(mirror(arrays))
        return build(tensors), mirror(arrays)

    def choices(self, rows):
        """Pairs of a function of tensors and the same of arrays, that keep dtype and shape."""
        how = self.chance.choice([h for h in FUNCTIONS if self.is_float or h != "mean"])
        n, at = self.count, self.chance.randrange(self.count)
        d = {"devices": self.devices}

        def spread(x):
            return fc.all_gather(fc.scatter(x[at], self.devices), **d)

        def through(xs):
            return fc.all_gather(fc.reduce_scatter(xs, how, **d), **d)

        def there_and_back(xs):
            one = fc.reduce(xs, how, device=self.devices[at], **d)
            return fc.broadcast(one, self.devices)

        found = [
            (lambda xs: fc.all_reduce(xs, how, **d), lambda xs: [folded(how, xs)] * n),
            (through, lambda xs: [folded(how, xs)] * n),
            (there_and_back, lambda xs: [folded(how, xs)] * n),
            (spread, lambda xs: [xs[at]] * n),
        ]
        if rows % n == 0:
            found.append((lambda xs: fc.all_to_all(xs, **d), self.exchanged))
        return found

    def exchanged(self, xs):
        return [np.concatenate([parted(x, self.count)[i] for x in xs]) for i in range(self.count)]


def differing(program, found):
    """Indices of results that are not what NumPy says, to the bit."""
    pairs = zip(found, program.wanted, strict=True)
    return [
        i
        for i, (a, b) in enumerate(pairs)
        if a.dtype != b.dtype or a.shape != b.shape or a.tobytes() != b.tobytes()
    ]
