"""Runs tests many times beside busy processes, and counts how often each of them fails.

    python tests/helpers/stress.py tests/cluster --times 200 --busy 2
    python tests/helpers/stress.py tests/runtime/test_signals.py --times 50 --busy 4 -- -k stop
    python tests/helpers/stress.py tests/data --times 20 --busy 0 --switch 0.0001

A test that fails once in two hundred runs on a busy machine has met a window between two threads or
processes, or leans on the machine's speed. Both are defects. `--switch` has Python switch between
threads after so many seconds instead of 5 ms, which opens windows that are passed over otherwise.
What follows `--` goes to pytest.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "benchmarks")]

import pytest
from neighbours import busy


class Repeated:
    """A pytest plugin that runs every collected test several times.

    Args:
        times: How many times.

    Attributes:
        runs: How many tests were run.
        failures: The number of failures by test.
    """

    def __init__(self, times: int) -> None:
        self._times = times
        self.runs = 0
        self.failures: Counter[str] = Counter()

    @pytest.fixture
    def repetition(self, request: pytest.FixtureRequest) -> int:
        """The number of this run of a test."""
        return int(request.param)

    @pytest.hookimpl(trylast=True)
    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Makes one test item for each repetition."""
        metafunc.fixturenames.append("repetition")
        ids = [f"run{i}" for i in range(self._times)]
        metafunc.parametrize("repetition", range(self._times), ids=ids, indirect=True)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Counts a test's run, and its failure in set-up, call or tear-down."""
        self.runs += report.when == "call"
        if report.failed:
            self.failures[_without_repetition(report.nodeid)] += 1


def _without_repetition(nodeid: str) -> str:
    name, _, parameters = nodeid.partition("[")
    kept = [p for p in parameters.rstrip("]").split("-") if not p.startswith("run")]
    return f"{name}[{'-'.join(kept)}]" if kept else name


def stress(
    tests: Sequence[str], times: int, neighbours: int, switch_s: float, arguments: Sequence[str]
) -> Repeated:
    """Runs tests several times beside busy processes.

    Args:
        tests: Files, folders or node ids.
        times: How often each test is run.
        neighbours: How many processes keep a core busy meanwhile.
        switch_s: How long a thread runs before Python switches to another, in seconds.
        arguments: Further arguments of pytest.

    Returns:
        The plugin, which has counted runs and failures.
    """
    repeated = Repeated(times)
    before = sys.getswitchinterval()
    sys.setswitchinterval(switch_s)
    try:
        with busy(neighbours):
            code = pytest.main([*tests, "-q", "--tb=short", *arguments], plugins=[repeated])
    finally:
        sys.setswitchinterval(before)
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise SystemExit(f"pytest ended with {code!r}")
    return repeated


def main() -> int:
    """Returns 1 if a test has failed, else 0."""
    own, arguments = sys.argv[1:], []
    if "--" in own:
        at = own.index("--")
        own, arguments = own[:at], own[at + 1 :]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tests", nargs="+")
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--busy", type=int, default=2)
    parser.add_argument("--switch", type=float, default=sys.getswitchinterval())
    chosen = parser.parse_args(own)
    found = stress(chosen.tests, chosen.times, chosen.busy, chosen.switch, arguments)
    for test, count in found.failures.most_common():
        print(f"{count} of {chosen.times} failed: {test}")
    print(f"{found.runs} runs beside {chosen.busy} busy processes, {found.failures.total()} failed")
    return int(bool(found.failures))


if __name__ == "__main__":
    sys.exit(main())
