"""The operation at which the latest step failed is told to views, until another step begins."""

import numpy as np
import pytest

import flowscope as fs
from flowscope.live.watchers.bus import LiveChannel

pytestmark = pytest.mark.usefixtures("graph")


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_a_failed_step_is_told_with_its_operation_until_the_next(graph, mode):
    x = fs.placeholder(fs.float32, [None], name="x")
    index = fs.placeholder(fs.int32, [], name="index")
    y = fs.gather(x, index, name="picked")
    with fs.Session(config=fs.ConfigProto(mode=mode)) as session:
        feed = LiveChannel(graph, session)
        values = np.zeros(3, np.float32)
        with pytest.raises(fs.errors.InvalidArgumentError):
            session.run(y, {x: values, index: 7})
        failure = feed.describe().session.failure
        assert failure.op == y.op.id
        assert failure.message.startswith("InvalidArgumentError: ")
        assert "\n" not in failure.message
        session.run(y, {x: values, index: 1})
        assert feed.describe().session.failure is None


def test_a_step_that_is_stopped_has_not_failed(graph):
    from flowscope.runtime.session.session import Session

    i = fs.while_loop(lambda i: i < 10**9, lambda i: i + 1, [0])
    with Session() as session, pytest.raises(fs.errors.DeadlineExceededError):
        session.run(i, options=fs.RunOptions(timeout_in_ms=50))
    assert session.failure is not None, "out of time is a failure"
