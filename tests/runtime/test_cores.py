"""The cores that a container allows."""

import os
from pathlib import Path

import pytest

from flowscope.runtime.threads import cores
from flowscope.runtime.threads.cores import available_cores


@pytest.fixture(autouse=True)
def eight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "_cores_by_affinity", lambda: 8)


def make(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({}, 8, id="no cgroups"),
        pytest.param(
            {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"},
            8,
            id="v2 without a quota",
        ),
        pytest.param(
            {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "250000 100000\n"},
            3,
            id="v2, two and a half cores",
        ),
        pytest.param(
            {
                "proc/self/cgroup": "0::/docker/abc\n",
                "sys/fs/cgroup/docker/cpu.max": "200000 100000\n",
                "sys/fs/cgroup/docker/abc/cpu.max": "max 100000\n",
            },
            2,
            id="v2, the group above has the quota",
        ),
        pytest.param(
            {
                "proc/self/cgroup": "3:cpu,cpuacct:/docker/abc\n1:name=systemd:/\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "50000\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            1,
            id="v1, seen from inside",
        ),
        pytest.param(
            {
                "proc/self/cgroup": "3:cpu:/\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            8,
            id="v1 without a quota",
        ),
        pytest.param(
            {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "9900000 100000\n"},
            8,
            id="more than there are",
        ),
    ],
)
def test_quota(tmp_path: Path, files: dict[str, str], expected: int) -> None:
    assert available_cores(str(make(tmp_path, files))) == expected


def test_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("needs sched_setaffinity")
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        assert available_cores() == 1
    finally:
        os.sched_setaffinity(0, before)
