"""Goes through the hand-overs between threads under many schedules; prints the seeds that fail.

    python tests/fuzz/hand_overs.py --count 100000 --seed 0 --only queue,mailbox

What a seed stands for is in tests/helpers/schedules.py.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "helpers")]

#: So many schedules are tried before a hand-over's progress is told.
_CHUNK = 5000


def main() -> int:
    """Returns the number of hand-overs that failed, for the shell at most 1."""
    from handovers import hand_overs

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="parts of names, by commas")
    chosen = parser.parse_args()
    failed = 0
    for over in hand_overs:
        if not any(part in over.name for part in chosen.only.split(",")):
            continue
        begin, end = time.monotonic(), chosen.seed + chosen.count
        try:
            for first in range(chosen.seed, end, _CHUNK):
                over.explore(min(_CHUNK, end - first), first)
        except AssertionError as error:
            failed += 1
            print(error, flush=True)
        else:
            seconds = time.monotonic() - begin
            print(f"{over.name}: {chosen.count} schedules, {seconds:.0f} s", flush=True)
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
