"""What `make bench` stands on: busy neighbours that end, figures, its table."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import bench
import neighbours
import pytest

HERE = Path(__file__).parent


def test_neighbours_are_busy_and_end_with_the_body() -> None:
    with neighbours.busy(2) as started:
        assert [one.poll() for one in started] == [None, None]
    assert [one.returncode for one in started] == [-signal.SIGKILL] * 2


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_neighbours_end_when_who_started_them_is_killed() -> None:
    code = (
        "import neighbours, time\n"
        "with neighbours.busy(1) as started:\n"
        "    print(started[0].pid, flush=True)\n"
        "    time.sleep(60)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(HERE)}
    # The neighbour inherits this standard error, and closes it as it ends.
    parent = subprocess.Popen(
        [sys.executable, "-c", code],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert parent.stdout is not None
    assert parent.stdout.readline().strip().isdigit()
    parent.kill()
    parent.communicate(timeout=30)


def test_figures_are_the_mean_and_the_99th_percentile() -> None:
    found = bench.Figures.of([float(i) for i in range(100, 0, -1)])
    assert (found.steps, found.mean, found.p99) == (100, 50.5, 99.0)
    assert bench.Figures.of([2.0]).p99 == 2.0


def test_table_has_a_column_of_all_neighbours_and_marks_what_misses_its_bar() -> None:
    peer = bench.Figures(2000, 1e-3, 2e-3)
    quick, slow = bench.Figures(2000, 0.9e-3, 3e-3), bench.Figures(2000, 2e-3, 3e-3)
    rows = [
        bench.Result("mlp", "MLP", 0, 1.0, quick, peer),
        bench.Result("mlp", "MLP", 1, 1.0, slow, peer),
    ]
    text = bench.table(rows)
    assert "beside 0 / 1 busy processes" in text
    assert "| MLP | 1 ms / 1 ms | 900 us / 2 ms | 0.90 / 2.00 ! | 1.50 / 1.50 |" in text


def test_bars_beside_neighbours_are_of_the_mean_and_of_the_99th_percentile() -> None:
    peer = bench.Figures(2000, 1.0, 2.0)
    late = bench.Result("mlp", "MLP", 1, 1.0, bench.Figures(2000, 1.2, 7.0), peer)
    assert late.is_met is False
    assert bench.Result("mlp", "MLP", 1, 1.0, bench.Figures(2000, 1.4, 5.0), peer).is_met is True


def test_unknown_cases_are_named() -> None:
    run = subprocess.run(
        [sys.executable, str(HERE / "bench.py"), "--cases", "mlp-sgd,mpl"],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 2
    assert "no such case: mpl; there are import, watched, step1" in run.stderr
