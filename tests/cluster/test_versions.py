"""Versions and CPU features of a cluster's processes, compared when they connect."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from local_clusters import local_cluster, wait_until

import flowscope as fs
from flowscope.cluster.membership.versions import Rounding, refusal, versions
from flowscope.errors import FailedPreconditionError, UnavailableError, VersionWarning

OURS = {
    "Python": "3.11.7 (CPython)",
    "NumPy": "2.4.6",
    "cloudpickle": "3.1.2",
    "byte order": "little",
    "SciPy": "1.17.1",
    "ml_dtypes": "0.6.0",
    "oneDNN": "none",
    "BLAS": "openblas 0.3.31 SkylakeX",
    "machine": "x86_64",
    "vector instructions": "X86_V2 X86_V3",
}


@pytest.mark.parametrize(
    ("what", "theirs", "is_refused"),
    [
        ("Python", "3.12.1 (CPython)", True),
        ("Python", "3.11.2 (CPython)", False),
        ("NumPy", "1.26.4", True),
        ("NumPy", "2.3.0", False),
        ("cloudpickle", "2.2.1", True),
        ("cloudpickle", "3.0.0", False),
        ("byte order", "big", True),
        ("BLAS", "openblas 0.3.31 Haswell", False),
        ("vector instructions", "X86_V2", False),
    ],
)
def test_what_breaks_is_refused_with_both_versions(what, theirs, is_refused):
    found = refusal("task 3", OURS | {what: theirs}, OURS)
    assert (found is not None) == is_refused
    if found is not None:
        assert f"task 3 has {what} {theirs}, and this process has {OURS[what]}" in found


@pytest.mark.parametrize("what", ["NumPy", "SciPy", "ml_dtypes", "oneDNN", "BLAS", "machine"])
def test_what_rounds_otherwise_is_told_once_for_all_tasks(what):
    rounding = Rounding(OURS)
    for task in ("b", "a", "b"):
        rounding.take(task, OURS | {what: "another"})
    rounding.take("c", OURS)
    with pytest.warns(VersionWarning) as told:
        rounding.warn()
    assert [str(w.message) for w in told] == [
        "results of a, b may differ from those of this process in their last bits: "
        f"{what} {OURS[what]} here and another there"
    ]
    rounding.take("d", OURS | {what: "another"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rounding.warn()


def test_a_process_knows_what_it_computes_with():
    assert versions().keys() == OURS.keys()
    assert versions()["NumPy"] == np.__version__
    assert refusal("itself", versions()) is None


PRELOAD = """
import flowscope.cluster.membership.versions as made
own = dict(made.versions())
own["Python"] = "3.99.1 (CPython)"
import flowscope.cluster.servers.plugin
flowscope.cluster.servers.plugin.versions = lambda: own
"""


@pytest.mark.slow
def test_a_worker_of_another_python_is_refused_when_connecting(source_env, tmp_path):
    preload = tmp_path / "older.py"
    preload.write_text(PRELOAD)
    with (
        local_cluster(source_env, 1, preload=[str(preload)]) as machines,
        pytest.raises(FailedPreconditionError) as told,
    ):
        fs.cluster.connect(machines)
    assert "/job:worker/replica:0/task:0 (the worker at tcp://" in str(told.value)
    own = versions()["Python"]
    assert f"has Python 3.99.1 (CPython), and this process has {own}" in str(told.value)


@pytest.mark.slow
def test_a_worker_of_another_python_that_comes_later_is_no_task(source_env, tmp_path, graph):
    preload = tmp_path / "older.py"
    preload.write_text(PRELOAD)
    with local_cluster(source_env, 1) as machines, fs.cluster.connect(machines) as cluster:
        later = machines.new_worker_spec()
        for spec in later.values():
            spec["options"] = spec["options"] | {"preload": [str(preload)]}
        machines.worker_spec.update(later)
        machines.sync(machines._correct_state)
        name = "/job:worker/replica:0/task:1"
        wait_until(lambda: name in cluster.lost_tasks)
        with pytest.raises(UnavailableError, match=r"task:1 .* has Python 3\.99\.1"):
            cluster.task(name)
        assert [task.index for task in cluster.tasks] == [0]


@pytest.mark.slow
def test_a_worker_without_this_cpus_instructions_is_told_of_at_the_users_line(
    source_env, monkeypatch
):
    found = np.show_config(mode="dicts")["SIMD Extensions"]["found"]
    monkeypatch.setenv("NPY_DISABLE_CPU_FEATURES", " ".join(found))
    with local_cluster(source_env, 2) as machines, pytest.warns(VersionWarning) as told:
        fs.cluster.connect(machines).close()
    assert len(told) == 1
    text = str(told[0].message)
    assert "results of /job:worker/replica:0/task:0, /job:worker/replica:0/task:1" in text
    assert f"vector instructions {versions()['vector instructions']} here and" in text
    assert Path(told[0].filename).name == Path(__file__).name
