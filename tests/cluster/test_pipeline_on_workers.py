"""A pipeline of stages on workers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowscope as fs


@pytest.mark.slow
def test_stages_on_workers_are_at_work_at_the_same_time(
    cluster: Any, graph: Any, tmp_path: Path
) -> None:
    """The third part meets the first one: the one waits in stage 0, the other in stage 1."""
    meeting = str(tmp_path / "meeting")
    os.mkfifo(meeting)

    def send(x: Any) -> Any:
        if x[0] == 2:  # opening it waits for the other end
            os.close(os.open(meeting, os.O_WRONLY))
        return x

    def receive(x: Any) -> Any:
        if x[0] == 0:
            os.close(os.open(meeting, os.O_RDONLY))
        return x

    def stage(function: Any) -> Any:
        def made(x: Any) -> Any:
            y = fs.py_func(function, [x], fs.float64, stateful=False)
            y.set_shape(x.shape)
            return y * fs.get_variable("w", [], fs.float64, fs.ones_initializer())

        return made

    x = fs.placeholder(fs.float64, [4])
    devices = [f"/job:worker/task:{i}" for i in range(2)]
    y = fs.train.pipeline([stage(send), stage(receive)], x, 4, devices)
    options = fs.RunOptions(timeout_in_ms=60_000)
    with fs.Session(cluster) as sess:
        sess.run(fs.global_variables_initializer())
        found = sess.run(y, {x: np.arange(4.0)}, options)
    assert found.tolist() == [0.0, 1.0, 2.0, 3.0]
