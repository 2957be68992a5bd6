"""Serialised graphs with random damage: reading one gives a graph or one error of flowscope's.

    python tests/helpers/graph_mutants.py 100000 --seed 7

prints those that raise something else, or take too long.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import time
import traceback
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np

import flowscope as fs

#: One mutant takes at most so many seconds of a core.
MOST_S = 5.0
#: What takes the place of parts.
VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 63, 64, 2**31 - 1, 2**31, 2**63, 2**64, -(2**63), 10**30, 0.5,
    1e308, "", "x", "x:1", "^x", "x:99", "x:-1", "float32", "resource", "\ud800", [], [[]], [-1],
    [None], [2**40], [1] * 65, {}, {"dtype": "string"}, {"dtype": "nope"}, {"float": "nan"},
    {"bytes": "AAAA"}, {"function": "f"}, {"spec": ["float32", [], None]},
    {"array": {"dtype": "int32", "shape": [0], "data": ""}},
]  # fmt: skip


def sample() -> Any:
    """Returns a graph with loops, branches, functions, variables and a saver as JSON's objects."""
    with fs.Graph().as_default() as graph:
        x = fs.placeholder(fs.float32, [None, 2], name="x")
        w = fs.Variable(np.ones((2, 3), np.float32), name="w")
        fs.assign(w, fs.zeros([4, 4]), validate_shape=False)

        @fs.function
        def f(a: Any) -> Any:
            return a * a + w[0, 0]

        y = fs.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, f(a)), [0, fs.matmul(x, w)])
        z = fs.cond(fs.reduce_sum(y[1]) > 0, lambda: y[1] + 1.0, lambda: y[1])
        parts = fs.split(z, 3, 1)
        fs.reshape(parts[0], fs.shape(x)[:1])
        start = fs.raw_ops.Enter(data=fs.constant(0), frame_name="f")
        fs.raw_ops.Exit(data=fs.raw_ops.Merge(inputs=[start, start]).output)
        fs.FIFOQueue(3, [fs.float32], [[]]).enqueue(1.0)
        fs.train.MomentumOptimizer(0.1, 0.9).minimize(fs.reduce_mean(z))
        graph.add_to_collection("things", x)
        return json.loads(fs.train.Saver().export_meta_graph().to_json())


def places(tree: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Returns the paths of the parts of a tree that have parts, but for very deep ones."""
    if len(at) > 40:
        return []
    inside = tree.items() if isinstance(tree, dict) else enumerate(tree)
    nested = [(k, v) for k, v in inside if isinstance(v, dict | list)]
    return [*[(*at, k) for k, _ in nested], *[p for k, v in nested for p in places(v, (*at, k))]]


def deep(rng: random.Random) -> Any:
    """Returns a value in many brackets."""
    value: Any = 1
    for _ in range(rng.choice([3, 70, 400])):
        value = [value] if rng.random() < 0.7 else {"array": value}
    return value


def damage(at: Any, key: Any, tree: Any, rng: random.Random) -> None:
    """Changes one entry of a dict or list."""
    value = at[key]
    how = rng.randrange(8)
    if how == 0:
        del at[key]
    elif how == 1 and isinstance(at, list):
        at.insert(rng.randrange(len(at) + 1), json.loads(json.dumps(value)))
    elif how == 2 and type(value) is int:
        at[key] = value + rng.choice([-1, 1, 2**31, -(2**63)])
    elif how == 2 and isinstance(value, str):
        at[key] = rng.choice([value + ":1", "^" + value, value[:-1], value * 2, value.upper()])
    elif how == 3 and isinstance(at, list):
        rng.shuffle(at)
    elif how == 4 and isinstance(value, list | dict) and value:
        at[key] = [] if rng.random() < 0.3 else dict.fromkeys(map(str, value), value)
    elif how == 5:
        at[key] = deep(rng)
    elif how == 6:
        other = rng.choice(tree["operations"])
        at[key] = json.loads(json.dumps(other.get(str(key), other)))
    else:
        at[key] = rng.choice([*VALUES, rng.choice(tree["operations"]).get("name")])


def mutant(text: str, rng: random.Random) -> str:
    """Returns a graph's JSON in which one to four entries are others."""
    tree = json.loads(text)
    for _ in range(rng.choice([1, 1, 2, 4])):
        at = tree
        for key in rng.choice(places(tree)):
            at = at[key]
        if at and tree.get("operations"):
            keys = list(at) if isinstance(at, dict) else range(len(at))
            try:
                damage(at, rng.choice(keys), tree, rng)
            except (AttributeError, IndexError, KeyError, TypeError):
                break  # the list of operations is none any more
    return json.dumps(tree)


def read(text: str) -> str:
    """Returns "" if a graph or an error of flowscope's came in time, else what went wrong."""
    begin = time.thread_time()
    try:
        with fs.Graph().as_default():
            fs.train.import_meta_graph(fs.MetaGraphDef.from_json(text))
    except fs.errors.OpError:
        pass
    except BaseException as e:
        last = traceback.extract_tb(e.__traceback__)[-1]
        return (
            f"{type(e).__name__}: {e} ({last.filename.rpartition('flowscope/')[2]}:{last.lineno})"
        )
    took_s = time.thread_time() - begin
    return f"took {took_s:.1f} s" if took_s > MOST_S else ""


def mutants(
    count: int, seed: int, seconds: float = math.inf
) -> Generator[tuple[str, str], None, int]:
    """Yields what went wrong with so many mutants, each once, with the mutant.

    It ends early after so many seconds; returns how many mutants were read.
    """
    rng, text = random.Random(seed), json.dumps(sample())
    seen, end = set(), time.monotonic() + seconds
    for number in range(count):
        if time.monotonic() > end:
            return number
        changed = mutant(text, rng)
        wrong = read(changed)
        if wrong and wrong[:150] not in seen:
            seen.add(wrong[:150])
            yield wrong, changed
    return count


def main() -> None:
    """Prints what went wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--folder", help="where mutants are kept that something went wrong with")
    given = parser.parse_args()
    run = mutants(given.count, given.seed, given.seconds)
    try:
        for number in itertools.count():
            wrong, text = next(run)
            print(wrong, "|", len(text), flush=True)
            if given.folder:
                Path(given.folder, f"{given.seed}-{number}.json").write_text(text)
    except StopIteration as end:
        print(f"{end.value} mutants")


if __name__ == "__main__":
    main()
