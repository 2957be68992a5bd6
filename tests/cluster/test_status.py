"""A cluster's status as text and as a table of a notebook."""

from __future__ import annotations

from dataclasses import replace

import pytest

from flowscope.cluster.watch.status import (
    ClusterStatus,
    Finding,
    WorkerStatus,
    bytes_text,
    short_device,
    short_task,
)

WORKER = WorkerStatus(
    "/job:ps/replica:0/task:1", "ps-1", "5f", "127.0.0.1", 4711,
    ("/job:ps/replica:0/task:1/device:CPU:0",), "hung", "its process is <stopped>", 2.5,
    300_000_000, 4_000_000_000, 1_234_567, 12, 1, 5, 6, 0.001, 0.0001, None, None, (),
)  # fmt: skip


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (999, "999 B"), (999_600, "1 MB"), (1_234_567, "1.23 MB")]
)
def test_bytes_have_three_digits(count, text):
    assert bytes_text(count) == text


def test_tasks_and_devices_are_said_shortly():
    assert short_task("/job:client/replica:0/task:0") == "the client"
    assert short_device("/job:ps/replica:0/task:1/device:CPU:0") == "ps 1"
    assert short_device("/job:ps/replica:0/task:1/device:GPU:0") == "GPU:0 of ps 1"


def test_it_prints_as_a_table_with_what_is_wrong_below():
    wrong = Finding("hung", "ps 1 hangs: no step waits for it", (WORKER.task,))
    told = ClusterStatus("fs://1", "tcp://a", "http://a/status", (WORKER,), (), (wrong,))
    head, row, *below = str(told).splitlines()
    names = "task worker host pid devices memory held steps transport health"
    assert head.split() == names.split()
    assert row.split("  ")[0] == "ps 1"
    assert "300 MB of 4 GB" in row
    assert "12 (1 run)" in row
    assert below == ["ps 1 hangs: no step waits for it", "Dask: http://a/status"]


def test_the_table_says_by_what_a_worker_is_reached_and_whether_that_is_encrypted():
    sealed = replace(WORKER, transport="sockets", is_encrypted=True)
    none = replace(WORKER, is_encrypted=True)
    _, plain, encrypted, silent = str(
        ClusterStatus("t", "", "", (replace(sealed, is_encrypted=False), sealed, none), (), ())
    ).splitlines()
    assert "sockets" in plain and "TLS" not in plain
    assert "sockets, TLS" in encrypted
    assert "TLS" not in silent


def test_its_html_is_escaped_and_links_to_nothing_but_pages():
    html = ClusterStatus("t", "", "javascript:x()", (WORKER,), (), ())._repr_html_()
    assert "&lt;stopped&gt;" in html
    assert "<a " not in html
    page = ClusterStatus("t", "", 'http://a/"', (WORKER,), (), ())._repr_html_()
    assert 'href="http://a/&quot;"' in page
