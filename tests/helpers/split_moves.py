"""Steps through partitions on several threads, by random moves from random stops.

python tests/helpers/split_moves.py 200 --seed 1000
"""

from __future__ import annotations

import argparse
import random
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import flowscope as fs

MODES = ("compiled", "op", "tokens")
MOVES = ("step_op", "step_iteration", "step_out", "step_run")
FEED = np.array([0.5, 1.0], "f")
PATIENCE_S = 30.0
#: Where a step was held, and how many of its partitions stood then.
Place = tuple[str | None, tuple[int, ...], int]


def loop(devices: int) -> tuple[Any, Any]:
    """Returns a placeholder, and a loop whose body goes through so many CPU devices and back."""
    x = fs.placeholder(fs.float32, [2], name="x")

    def body(i: Any, a: Any) -> Any:
        for n in range(devices):
            with fs.device(f"/cpu:{n}"):
                a = fs.add(fs.multiply(a, 1.5, name=f"mul_{n}"), 1.0, name=f"add_{n}")
        with fs.device("/cpu:0"):
            return i + 1, fs.multiply(a, 0.25, name="mix")

    return x, fs.while_loop(lambda i, a: i < 6, body, [0, x])[1]


def moved(
    mode: str, moves: Sequence[str], devices: int = 2, chance: random.Random | None = None
) -> tuple[list[Place], Any]:
    """Makes moves in a step that is held before it begins; returns where it stood, and its value.

    Args:
        mode: The session's mode.
        moves: The moves; those after the end of the step are left out.
        devices: How many CPU devices the step has.
        chance: Chooses which stop moves; None for the first one.

    Raises:
        TimeoutError: if a move does not come to its end.
    """
    with fs.Graph().as_default() as graph:
        x, y = loop(devices)
    config = fs.ConfigProto(mode=mode, device_count={"CPU": devices}, split_partitions="always")
    over = threading.Event()
    places: list[Place] = []
    with ThreadPoolExecutor(1) as pool, fs.Session(graph=graph, config=config) as sess:
        sess.pause()
        running = pool.submit(sess.run, y, {x: FEED})
        running.add_done_callback(lambda _: (over.set(), sess.gate.wake()))
        for move in (*moves, "resume"):
            if not sess.gate.wait_until_held(PATIENCE_S, is_over=over.is_set):
                raise TimeoutError(f"{mode}, {moves}: no stop after {places}")
            if over.is_set():
                break
            stops = sess.debug.stops
            stop = chance.choice(stops) if chance else stops[0]
            places.append((stop.op.name if stop.op else None, stop.iterations, len(stops)))
            getattr(stop, move)()
        return places, running.result(PATIENCE_S)


def random_moves(seed: int) -> str:
    """Makes random moves; returns what is wrong with where they lead, "" for nothing."""
    chance = random.Random(f"moves {seed}")
    mode, devices = chance.choice(MODES), chance.choice([2, 3])
    moves = [chance.choice(MOVES[:2]), *chance.choices(MOVES, (4, 4, 1, 1), k=chance.randint(2, 9))]
    told = f"seed {seed}, {mode}, {devices} devices, {moves}"
    try:
        places, value = moved(mode, moves, devices, chance)
    except TimeoutError as e:
        return f"{told}: {e}"
    with fs.Graph().as_default() as graph:
        x, y = loop(devices)
    config = fs.ConfigProto(mode=mode, device_count={"CPU": devices}, split_partitions="never")
    with fs.Session(graph=graph, config=config) as sess:
        if value.tobytes() != sess.run(y, {x: FEED}).tobytes():
            return f"{told}: {value} after {places}"
    is_at_end = len(places) > 1 and places[-1][:2] == (None, ())
    if len(places) <= len(moves) and not is_at_end:
        return f"{told}: the step ended without being held there: {places}"
    return ""


def main() -> int:
    """Makes so many random sequences of moves; returns how many went wrong, at most 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    failed = 0
    for seed in range(chosen.seed, chosen.seed + chosen.count):
        if told := random_moves(seed):
            failed += 1
            print(told, flush=True)
    print(f"{chosen.count} sequences, {failed} failed")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
