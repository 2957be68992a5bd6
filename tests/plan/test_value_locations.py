"""Where values lie does not depend on who asks first, and stays so behind the transfers."""

import random

import numpy as np
import pytest

import flowscope as fs
from flowscope.plan.analysis.value_locations import ValueLocations
from flowscope.plan.ir.structured import CondNode, LoopNode

DEVICES = [f"/cpu:{i}" for i in range(3)]


class Turns:
    """A random program: loops and branches, most of whose values come in and go out as they are.

    Args:
        seed: What it follows from.
    """

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.fed = fs.placeholder(fs.float32, [])
        values = [self.fed, *[self.made() for _ in range(2)]]
        for _ in range(2):
            values += self.block(values, 0)
        with self.place():
            self.result = fs.add_n([fs.identity(v) for v in values])

    def place(self):
        return fs.device(self.rng.choice(DEVICES))

    def made(self):
        with self.place():
            return fs.random_uniform([], seed=self.rng.randint(1, 9))

    def block(self, values, depth):
        """Returns as many values as there were: of a loop or a branch that is built."""
        with self.place():
            kinds = [self.loop, self.branch] if depth < 3 else [self.mixed]
            return self.rng.choice([self.mixed, *kinds, *kinds])(values, depth)

    def mixed(self, values, depth):
        found = self.rng.choices(values, k=len(values))
        if self.rng.random() < 0.2:
            with self.place():
                found[0] = fs.square(found[0])
        return found

    def loop(self, values, depth):
        number = fs.constant(0)
        start = self.rng.sample(values, min(3, len(values)))

        def goes_on(i, *xs):
            return fs.logical_and(i < 3, fs.add_n(list(xs)) < 50.0)

        def body(i, *xs):
            return [i + 1, *self.block(list(xs), depth + 1)]

        return list(fs.while_loop(goes_on, body, [number, *start])[1:])

    def branch(self, values, depth):
        pred = self.rng.choice(values) < 0.5
        some = self.rng.sample(values, min(3, len(values)))
        blocks = [lambda: [fs.identity(v) for v in self.block(some, depth + 1)] for _ in range(2)]
        return list(fs.cond(pred, *blocks))


def inside(program):
    """Returns the values of branches and loops, but for how often these run."""
    found = []
    for node in program.walk():
        if isinstance(node, LoopNode):
            found += [*node.body.feeds, *node.results, *node.kept]
        elif isinstance(node, CondNode):
            found += node.outputs
    return found


def sources(program):
    """Yields pairs of a value of a branch or loop and one that it takes."""
    for node in program.walk():
        if isinstance(node, LoopNode):
            for values in (node.starts, node.next_values):
                yield from zip(node.parameters, values, strict=True)
        elif isinstance(node, CondNode):
            for block in node.blocks:
                yield from zip(node.outputs, block.fetches, strict=True)


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_random_programs(first):
    several = 0
    for seed in range(first, first + 10):
        with fs.Graph().as_default():
            built = Turns(seed)
            config = fs.ConfigProto(device_count={"CPU": 3}, split_partitions="always")
            with fs.Session(config=config) as sess:
                plan = sess.plan(built.result, [built.fed])
                assert np.isfinite(sess.run(built.result, {built.fed: 0.25}))
        program, values = plan.program, inside(plan.program)
        locations = ValueLocations(program)
        want = [locations.of(v) for v in values]
        several += len(set(want)) > 1
        shuffled = random.Random(seed)
        for _ in range(5):
            order = shuffled.sample(values, len(values))
            asked = ValueLocations(program)
            found = {v: asked.of(v) for v in order}
            assert [found[v] for v in values] == want, f"seed {seed}"
        for value, source in sources(program):
            assert locations.of(source) in (None, locations.of(value)), f"seed {seed}"
    assert several > 3


def test_variables_that_take_turns_lie_where_the_first_of_them_starts_that_starts_somewhere():
    fed = fs.placeholder(fs.float32, [])
    with fs.device("/cpu:2"):
        other = fs.random_uniform([], seed=1)
    with fs.device("/cpu:1"):
        made = fs.while_loop(
            lambda i, a, b: fs.logical_and(i < 3, a < 9.0),
            lambda i, a, b: [i + 1, b, a],
            [fs.constant(0), fed, other],
        )
    with fs.Session(config=fs.ConfigProto(device_count={"CPU": 3})) as sess:
        program = sess.plan(made[1:], [fed]).program
    (loop,) = (n for n in program.walk() if isinstance(n, LoopNode))
    turns = [i for i, v in enumerate(loop.next_values) if v in loop.parameters]
    for order in (turns, turns[::-1]):
        locations = ValueLocations(program)
        assert [locations.variable(loop, i).device[-5:] for i in order] == ["CPU:2", "CPU:2"]
