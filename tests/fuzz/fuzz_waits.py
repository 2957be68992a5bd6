"""Runs random programs on devices and workers; prints the seeds that show a defect.

    python tests/fuzz/fuzz_waits.py --count 2000 --seed 0 --pairs 3

What a seed stands for is in tests/helpers/waiting_programs.py. Of the 23 pairs of a site and a mode
each program is run on some, so that over all programs each pair comes as often; `--pairs 23` has
all run. A program that hangs where no deadline ends it ends this with the stacks of all threads.
"""

from __future__ import annotations

import argparse
import faulthandler
import sys
import time
import warnings
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "helpers"), str(TESTS / "ops")]
#: A program takes no longer, whatever it waits for.
HANGS_S = 300


def main() -> int:
    """Returns 1 if a program failed, for the shell."""
    from cluster_hosts import hosts_here
    from waiting_runs import OTHERS, check, chosen

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pairs", type=int, default=3)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    begin, failed = time.monotonic(), 0
    with hosts_here(3) as (cluster, _):
        for seed in range(asked.seed, asked.seed + asked.count):
            faulthandler.dump_traceback_later(HANGS_S, exit=True)
            pairs = OTHERS if asked.pairs >= len(OTHERS) else chosen(seed, asked.pairs)
            try:
                check(seed, cluster, pairs)
            except Exception as error:
                failed += 1
                print(f"seed {seed}: {type(error).__name__}: {error}", flush=True)
        faulthandler.cancel_dump_traceback_later()
    took_s = time.monotonic() - begin
    print(f"{asked.count} programs from seed {asked.seed}, {failed} failed, {took_s:.0f} s")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
