"""Runs random programs and loops in all modes for some minutes; prints seeds that show a defect.

    python tests/fuzz/fuzz.py --minutes 5 --seed 1000

What a seed stands for is in tests/helpers/random_programs.py and random_loops.py.
`--seed N --minutes 0` runs one.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "helpers"), str(TESTS / "ops")]


def main() -> int:
    """Returns the number of seeds that failed, for the shell at most 1."""
    import random_loops
    from random_programs import check

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 10**8)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    end, seed, failed = time.monotonic() + 60 * chosen.minutes, chosen.seed, 0
    while seed == chosen.seed or time.monotonic() < end:
        try:
            check(seed)
            random_loops.check(seed)
        except Exception as error:
            failed += 1
            print(f"seed {seed}: {type(error).__name__}: {error}", flush=True)
        seed += 1
    print(f"{seed - chosen.seed} programs from seed {chosen.seed}, {failed} failed")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
