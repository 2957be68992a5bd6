"""Runs random programs with `fs.device` and without; prints the seeds that give other bits.

    python tests/fuzz/fuzz_placed.py --count 300 --seed 1000 [--cluster]

What a seed stands for is in tests/helpers/placed_programs.py.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "helpers"), str(TESTS / "ops")]


def main() -> int:
    """Returns 1 for the shell if a seed failed, else 0."""
    from cluster_hosts import hosts_here
    from placed_programs import check, check_on_cluster

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--cluster", action="store_true")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    failed = 0
    with hosts_here(2) if chosen.cluster else nullcontext() as hosts:
        for seed in range(chosen.seed, chosen.seed + chosen.count):
            try:
                check_on_cluster(seed, _client(hosts)) if chosen.cluster else check(seed)
            except Exception as error:
                failed += 1
                print(f"seed {seed}: {type(error).__name__}: {error}", flush=True)
    print(f"{chosen.count} programs from seed {chosen.seed}, {failed} failed")
    return min(failed, 1)


def _client(hosts: Any) -> Any:
    return hosts[0]


if __name__ == "__main__":
    sys.exit(main())
