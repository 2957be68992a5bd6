"""Random programs and schedules of `fs.coconet`; run by hand: random_schedules.py COUNT [SEED].

Prints how many schedules agreed with the program as it was written, and how many illegal
transformations were refused.
"""

from __future__ import annotations

import random
import sys
from typing import Any

import numpy as np

import flowscope as fs
from flowscope.coconet.reference import assembled
from flowscope.errors import InvalidArgumentError

cc = fs.coconet
UNARY = [cc.tanh, cc.relu, cc.square, cc.abs, lambda x: -x, lambda x: cc.sqrt(cc.abs(x) + 0.5)]
BINARY = [
    lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, cc.maximum, cc.minimum,
    lambda x, y: cc.ite(x > y, x, y), lambda x, y: x / (cc.abs(y) + 1.0),
]  # fmt: skip


class RandomProgram:
    """One random program of at most 12 stages, and arrays for it.

    Args:
        seed: What it follows from.
        ranks: The number of ranks; None for a random one.
        has_dropout: Whether it may have dropout.
    """

    def __init__(self, seed: int, ranks: int | None = None, has_dropout: bool = True) -> None:
        self.chance = chance = random.Random(seed)
        self.ranks = ranks or chance.choice([1, 2, 3, 4, 8])
        self.dtype = chance.choice([fs.float32, fs.float64])
        self.has_dropout = has_dropout
        self.groups = [cc.Group("world")]
        rows, columns = chance.choice([1, 2, 5, 7, 8, 12]), chance.choice([1, 3, 4])
        self.lengths = {"N": rows, "H": columns}
        n, h = cc.Size("N"), cc.Size("H")
        shape = [n, h] if chance.random() < 0.5 else [n]
        self.arguments = [
            cc.Tensor("g", self.dtype, shape, cc.Local),
            cc.Tensor("p", self.dtype, shape),
            cc.Tensor("m", self.dtype, shape),
            cc.Scalar("lr", self.dtype),
            cc.Variable("count", self.dtype),
        ]
        self.g, self.p, self.m, self.lr, self.count = self.arguments
        start: Any = self.g
        if len(shape) == 2:
            self.b = cc.Tensor("b", self.dtype, [h])
            self.w = cc.Tensor("w", self.dtype, [h, h])
            self.arguments += [self.b, self.w]
            if chance.random() < 0.5:
                start = cc.matmul(self.g, self.w)
        self.budget = 12 - (start is not self.g)
        self.pool = self._grown(cc.all_reduce(start, chance.choice(["sum", "mean", "max"])))
        self.pipeline = cc.Pipeline("random_program", self.arguments, self._outputs())
        self.arrays = self._arrays(seed)

    def _grown(self, first: Any) -> list[Any]:
        """Values that follow from the first one."""
        chance, found = self.chance, [first]
        if chance.random() < 0.25:
            self.groups.append(cc.Group("next"))
        for _ in range(chance.randint(1, 4)):
            x = chance.choice(found)
            kind = chance.random()
            if kind < 0.3:
                found.append(chance.choice(UNARY)(x))
            elif kind < 0.75:
                y = chance.choice([*found, self.p, self.m, self.lr, chance.uniform(0.1, 2.0)])
                found.append(chance.choice(BINARY[:5])(x, y))
            elif kind < 0.8:
                found.append(chance.choice(BINARY)(x, self.p))
            elif kind < 0.88 and self.has_dropout:
                found.append(cc.dropout(x, 0.4, seed=chance.randrange(3)))
            elif kind < 0.95:
                total = chance.choice([cc.norm, cc.reduce_sum])(x)
                found.append(x / (cc.abs(total) + 1.0))
            elif len(self.arguments) > 5:
                found.append(x + self.b)
        return found

    def _outputs(self) -> list[Any]:
        chance, pool = self.chance, self.pool
        last = pool[-1]
        found = [last]
        if chance.random() < 0.6:
            found.append(cc.update(self.m, chance.choice(pool)))
        if chance.random() < 0.6:
            found.append(cc.update(self.p, self.p - self.lr * chance.choice(pool)))
        if chance.random() < 0.2:
            found.append(cc.update(self.count, self.count + 1.0))
        if len(self.groups) > 1:
            found.append(cc.tanh(cc.send(last, self.groups[1])))
        return found

    def _arrays(self, seed: int) -> dict[str, list[Any]]:
        draw = np.random.default_rng(seed)
        found = {}
        for a in self.arguments:
            shape = [self.lengths[d.name] if isinstance(d, cc.Size) else d for d in a.type.shape]
            count = self.ranks if a.layout is cc.Local else 1
            arrays = [np.asarray(draw.normal(size=shape), a.dtype.np_dtype) for _ in range(count)]
            whole = 1 if a.type.group is None else self.ranks
            found[a.name] = arrays if count > 1 else arrays * whole
        return found

    def values(self, schedule: Any) -> dict[str, list[Any]]:
        """The arrays as a schedule takes them: some in slices."""
        found = {}
        for a in schedule.graph.arguments:
            arrays, dim = self.arrays[a.name], a.type.layout.dim
            if dim is not None:
                length = arrays[0].shape[dim]
                n = self.ranks
                arrays = [
                    np.take(arrays[0], range(length * i // n, length * (i + 1) // n), dim)
                    for i in range(n)
                ]
            found[a.name] = arrays
        return found

    def whole(self, schedule: Any, found: tuple[dict[str, Any], dict[str, Any]]) -> dict[str, Any]:
        """Outputs and new values of arguments as whole arrays, by names."""
        outputs, states = found
        now = dict(schedule.graph.outputs)
        by_name = schedule.graph.by_name
        return {
            **{k: assembled(by_name[now[k]].type, v) for k, v in outputs.items()},
            **{f"state {k}": assembled(by_name[k].type, v) for k, v in states.items()},
        }

    def evaluated(self, schedule: Any) -> dict[str, Any]:
        """What NumPy makes of a schedule."""
        return self.whole(schedule, schedule.evaluate(self.values(schedule), self.ranks))

    def run(
        self,
        schedule: Any,
        mode: Any = "compiled",
        devices: Any = None,
        chunks: int = 2,
        target: Any = None,
    ) -> Any:
        """What a session makes of a schedule."""
        with fs.Graph().as_default():
            fs.set_random_seed(4)
            fed = {}
            values: dict[str, Any] = {}
            for name, arrays in self.values(schedule).items():
                tensors = [fs.placeholder(x.dtype, x.shape) for x in arrays]
                fed.update(zip(tensors, arrays, strict=True))
                values[name] = tensors if len(tensors) > 1 or name != "lr" else tensors[0]
            built = schedule.build(values, devices, chunks)
            config = fs.ConfigProto(mode=mode, device_count={"CPU": 8})
            if target is not None:
                config = fs.ConfigProto(mode=mode)
            with fs.Session(target, config=config) as sess:
                return self.whole(schedule, sess.run((built.outputs, built.states), fed))


def schedules(program: RandomProgram, depth: int, most: int) -> list[Any]:
    """The schedules of a program that some transformations lead to, at most so many, in breadth."""
    level = [cc.schedule(program.pipeline)]
    found, seen = list(level), {level[0].graph.key}
    for _ in range(depth):
        following = []
        for one in level:
            for other in one.legal().values():
                if other.graph.key not in seen and len(found) < most:
                    seen.add(other.graph.key)
                    following.append(other)
                    found.append(other)
        level = following
    return found


def deep_schedule(program: RandomProgram, steps: int, chance: random.Random) -> Any:
    """A schedule that random transformations, and a random set of stages each, have made."""
    found = cc.schedule(program.pipeline)
    for _ in range(steps):
        legal = list(found.legal().items())
        if not legal:
            break
        kinds = sorted({step.name for step, _ in legal})
        kind = chance.choice(kinds)
        found = chance.choice([after for step, after in legal if step.name == kind])
    return found


def differing(expected: dict[str, Any], found: dict[str, Any], rtol: float) -> list[str]:
    """Names of values that differ by more than the order of a sum can make."""
    assert set(found) >= set(expected)
    return [
        name
        for name, arrays in expected.items()
        for a, b in zip(arrays, found[name], strict=True)
        if not np.allclose(a, b, rtol=rtol, atol=rtol, equal_nan=True)
    ]


def tolerance(program: RandomProgram) -> float:
    """Of sums in another order: only norms and sums of slices have one."""
    return 2e-4 if program.dtype is fs.float32 else 1e-11


def illegal(schedule: Any, chance: random.Random) -> tuple[str, tuple[Any, ...]] | None:
    """A transformation with random stages whose condition does not hold, by other means."""
    graph = schedule.graph
    names = [s.name for s in graph.stages]
    given = [a.name for a in graph.arguments]
    labels = {s.name: s.op.label for s in graph.stages}
    kind = chance.choice(["split", "reorder", "as_slice", "dead", "fuse", "overlap"])
    some = chance.sample(names, min(len(names), chance.randint(1, 3)))
    match kind:
        case "split":
            wrong = [x for x in [*names, *given] if labels.get(x) != "all_reduce"]
            return "split", (chance.choice(wrong),)
        case "reorder":
            gathers = [x for x in names if labels[x] == "all_gather"]
            if gathers and chance.random() < 0.5:
                gather = chance.choice(gathers)
                users = {u.name for u in graph.users[gather]}
                apart = [x for x in some if x not in users]
                return ("reorder", (gather, *apart)) if apart or chance.random() < 0.5 else None
            wrong = [x for x in names if labels[x] != "all_gather"]
            return "reorder", (chance.choice(wrong), *some)
        case "as_slice":
            whole = [
                a
                for a in given
                if not graph.users[a] or any(u.op.label != "slice" for u in graph.users[a])
            ]
            return ("as_slice", (chance.choice([*whole, *names]),)) if whole else None
        case "dead":
            used = [x for x in names if labels[x] != "all_gather" or graph.users[x]]
            return ("dead", (chance.choice(used),)) if used else None
        case "fuse":
            bad = [x for x in names if labels[x] in ("all_reduce", "matmul", "reduce", "broadcast")]
            if bad:
                return "fuse", (chance.choice(bad), *some)
            return "fuse", (some[0],)
        case _:
            last = names[-1]
            if chance.random() < 0.5 or not graph.users[names[0]]:
                return "overlap", (chance.choice(names),)
            return ("overlap", (last, names[0])) if last != names[0] else None


def main(count: int, first: int) -> None:
    agreed, refused, wrong = 0, 0, []
    for seed in range(first, first + count):
        program = RandomProgram(seed)
        chance = random.Random(seed)
        start = cc.schedule(program.pipeline)
        expected = program.evaluated(start)
        some = [*schedules(program, 4, 40), deep_schedule(program, 8, chance)]
        wrong += [
            (seed, one.python(), bad)
            for one in some
            if (bad := differing(expected, program.evaluated(one), tolerance(program)))
        ]
        real = program.run(start)
        deep = program.run(some[-1], chance.choice(["compiled", "op", "tokens"]))
        if bad := differing(real, deep, tolerance(program)):
            wrong.append((seed, some[-1].python(), bad))
        if not any("dropout" in s.text for s in start.graph.stages):
            if bad := differing(expected, real, tolerance(program)):
                wrong.append((seed, "as it is, in a session", bad))
        agreed += len(some)
        step, one = None, start
        while step is None:
            one = chance.choice(some)
            step = illegal(one, chance)
        try:
            getattr(one, step[0])(*step[1])
        except InvalidArgumentError:
            refused += 1
        else:
            print("not refused:", seed, step, one)
    print(f"{count} programs, {agreed} schedules, {len(wrong)} differ; {refused} refused")
    for seed, text, bad in wrong[:5]:
        print(f"seed {seed}: {bad}\n{text}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
