"""Views ask how the cluster is: the answer comes when the workers have said it."""

from __future__ import annotations

import queue
import threading

from flowscope.cluster.watch.status import ClusterStatus, WaitStatus
from flowscope.errors import UnavailableError
from flowscope.live.answers.clusters import ClusterQuestions
from flowscope.live.protocol.schema import AskCluster, Cluster, Disconnect
from flowscope.live.watchers.bus import LiveChannel
from flowscope.live.watchers.wire import message_from, to_json
from flowscope.runtime.session.engine import Engine

STATUS = ClusterStatus(
    "fs://7", "tcp://a", "", (), (WaitStatus("c", 1, "a", "b", "x:0", "value", 1.5),), ()
)


class Asked:
    """A cluster whose workers answer when the test lets them."""

    def __init__(self, error=None):
        self.error = error
        self.begun, self.may_answer = threading.Semaphore(0), threading.Semaphore(0)

    def status(self):
        self.begun.release()
        assert self.may_answer.acquire(timeout=10)
        if self.error is not None:
            raise self.error
        return STATUS


def test_a_question_comes_from_a_view_and_its_answer_is_plain():
    data = {"kind": "ask_cluster", "view": 7, "request_id": 3}
    assert message_from(data) == AskCluster(7, 3)
    told = to_json(Cluster(3, "", STATUS, 7))
    assert told["status"]["waits"][0]["what"] == "x:0"
    assert told["kind"] == "cluster"


def test_who_asks_while_workers_are_asked_is_told_what_they_say_next():
    cluster, told, questions = Asked(), queue.Queue(), ClusterQuestions()
    questions.ask(cluster, AskCluster(1, 1), told.put)
    assert cluster.begun.acquire(timeout=10)
    questions.ask(cluster, AskCluster(1, 2), told.put)
    questions.ask(cluster, AskCluster(2, 1), told.put)
    assert told.empty()
    cluster.may_answer.release(2)
    found = [told.get(timeout=10) for _ in range(3)]
    assert [(t.view, t.request_id) for t in found] == [(1, 1), (1, 2), (2, 1)]
    assert {t.status for t in found} == {STATUS}
    assert cluster.begun.acquire(timeout=10)
    assert not cluster.begun.acquire(blocking=False)


def test_a_cluster_that_cannot_be_asked_says_why():
    cluster, told = Asked(UnavailableError("the scheduler is gone")), queue.Queue()
    cluster.may_answer.release()
    ClusterQuestions().ask(cluster, AskCluster(1, 1), told.put)
    assert told.get(timeout=10) == Cluster(1, "the scheduler is gone", None, 1)


def test_a_feed_asks_the_cluster_that_its_engine_was_connected_to_last(graph):
    told, cluster, own = queue.Queue(), Asked(), Engine()
    with own.as_default():
        feed = LiveChannel(graph)
    feed.hear(AskCluster(7, 1), told.put)
    assert told.get(timeout=10).kind == "snapshot"
    assert told.get(timeout=10) == Cluster(1, "", None, 7)
    own.clusters |= {"a": Asked(), "b": cluster}
    cluster.may_answer.release()
    feed.hear(AskCluster(7, 2), told.put)
    assert told.get(timeout=10) == Cluster(2, "", STATUS, 7)
    feed.hear(Disconnect(7), told.put)
