"""What a step took from queues of workers is its client's once `run` has returned, or is back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from cluster_hosts import Cluster, Host, hosts_here, on, worker
from process_channels import until
from random_takers import check

import flowscope as fs
from flowscope.errors import CancelledError, OutOfRangeError, UnavailableError

pytestmark = pytest.mark.usefixtures("graph")
MODES = ["compiled", "op", "tokens"]


@pytest.fixture
def ends() -> Iterator[tuple[Cluster, list[Host]]]:
    with hosts_here(2) as found:
        yield found


def shared_queue(task: int, name: str = "q") -> tuple[Any, Any, Any]:
    """An operation that fills a worker's queue with 1, 2 and 3, a dequeue, and its size."""
    with on(task), fs.container("shared"):
        queue = fs.FIFOQueue(10, fs.int32, [], shared_name=name)
        return queue.enqueue_many([[1, 2, 3]]), queue.dequeue(), queue.size()


def session(cluster: Cluster, mode: str = "compiled") -> fs.Session:
    return fs.Session(cluster, config=fs.ConfigProto(mode=mode))


def kinds_of(host: Host, after: Callable[[str], None] = lambda kind: None) -> list[str]:
    """Returns the kinds of runs that a host has done since, as they come.

    Args:
        after: Is called after each, before it is answered.
    """
    found: list[str] = []
    on_run = host.endpoint.on_run

    def noting(peer: str, header: dict[str, Any], values: list[Any]) -> Any:
        answer = on_run(peer, header, values)
        found.append(header["kind"])
        after(header["kind"])
        return answer

    host.endpoint.on_run = noting
    return found


def loses_client(host: Host, client: Cluster) -> None:
    """Has a host give a client up after each step, which does not notice."""

    def lose(kind: str) -> None:
        if kind == "run":
            host.steps.client_lost(client.endpoint.name)

    kinds_of(host, lose)


def ended_well(host: Host) -> bool:
    """Whether a step has ended well here whose client has not confirmed what it took."""
    return len(host.steps.taken) == 1


@pytest.mark.parametrize("mode", MODES)
def test_only_steps_that_take_something_are_confirmed(mode: str, ends: Any) -> None:
    cluster, hosts = ends
    fill, taken, size = shared_queue(0)
    with on(0):
        uses = fs.get_variable("v", initializer=0, use_resource=True).assign_add(taken)
    with session(cluster, mode) as sess:
        sess.run([fs.global_variables_initializer(), fill])
        kinds = kinds_of(hosts[0])
        assert sess.run(size) == 3
        assert "step.confirm" not in kinds
        assert sess.run(taken) == 1
        assert kinds.count("step.confirm") == 1
        assert sess.run(uses) == 2  # a variable has it: it is taken, whatever becomes of the client
        assert kinds.count("step.confirm") == 1
        assert sess.run(size) == 1
    until(lambda: not hosts[0].steps.taken)


@pytest.mark.parametrize("mode", MODES)
def test_a_client_lost_before_it_has_the_answer_has_taken_nothing(mode: str, ends: Any) -> None:
    cluster, hosts = ends
    fill, taken, size = shared_queue(0)
    other = Cluster([h.task for h in hosts])
    try:
        with session(other, mode) as sess:
            sess.run(fill)
            assert sess.run(size) == 3
            lost: list[str] = []

            def lose(kind: str) -> None:
                if kind == "run" and not lost:
                    lost.append(kind)
                    hosts[0].endpoint.give_up(other.endpoint.name, ConnectionAbortedError("gone"))
                    until(lambda: not hosts[0].steps.taken)

            kinds_of(hosts[0], lose)
            with pytest.raises(UnavailableError):
                sess.run(taken)
    finally:
        other.endpoint.close()
    with session(cluster, mode) as sess:
        assert [sess.run(taken) for _ in range(3)] == [1, 2, 3]


@pytest.mark.parametrize("mode", MODES)
def test_a_client_that_was_given_up_and_thaws_is_refused(mode: str, ends: Any) -> None:
    cluster, hosts = ends
    fill, taken, size = shared_queue(0)
    with session(cluster, mode) as sess:
        sess.run(fill)
        loses_client(hosts[0], cluster)
        with pytest.raises(UnavailableError, match=r"back into their queues.*Run the step again"):
            sess.run(taken)
    hosts[0].endpoint.on_run = hosts[0].steps.on_run
    with session(cluster, mode) as sess:
        assert sess.run(size) == 3
        assert [sess.run(taken) for _ in range(3)] == [1, 2, 3]


def test_where_one_worker_refuses_all_give_back(ends: Any) -> None:
    cluster, hosts = ends
    fills, takes, sizes = zip(shared_queue(0), shared_queue(1, "p"), strict=True)
    with session(cluster) as sess:
        sess.run(fills)
        loses_client(hosts[1], cluster)
        with pytest.raises(UnavailableError, match=r"task:1 has put the elements"):
            sess.run(takes)
    hosts[1].endpoint.on_run = hosts[1].steps.on_run
    with session(cluster) as sess:
        assert sess.run(sizes) == (3, 3)
        assert sess.run(takes) == (1, 1)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("how", ["stop", "failure", "deadline"])
def test_a_step_that_ends_badly_elsewhere_has_taken_nothing(
    how: str, mode: str, ends: Any, aside: Any
) -> None:
    cluster, hosts = ends
    fill, taken, size = shared_queue(0)
    with on(1), fs.container("shared"):
        never = fs.FIFOQueue(10, fs.int32, [], shared_name="never")
        waits, close = never.dequeue(), never.close()
    with session(cluster, mode) as sess:
        sess.run(fill)
        options = fs.RunOptions(timeout_in_ms=500) if how == "deadline" else None
        sess.plan([taken, waits])
        step = aside(sess.run, [taken, waits], options=options)
        until(lambda: ended_well(hosts[0]))
        error: type[Exception] = fs.errors.DeadlineExceededError
        if how == "stop":
            sess.stop()
            error = CancelledError
        elif how == "failure":
            with session(cluster, mode) as another:
                another.run(close)
            error = OutOfRangeError
        with pytest.raises(error):
            step.result(20)
        assert sess.run(size) == 3
        assert [sess.run(taken) for _ in range(3)] == [1, 2, 3]


def test_a_stop_that_comes_while_elements_are_confirmed_gives_them_back(
    ends: Any, aside: Any
) -> None:
    cluster, hosts = ends
    fill, taken, size = shared_queue(0)
    with session(cluster) as sess:
        sess.run(fill)
        sess.run(size)
        kinds = kinds_of(hosts[0], lambda kind: kind == "step.confirm" and held(sess))

        def held(stopped: fs.Session) -> None:
            stopped.stop()
            until(lambda: not hosts[0].steps.taken)  # which the client does not wait for

        with pytest.raises(CancelledError):
            aside(sess.run, taken).result(20)
        until(lambda: "step.confirm" in kinds)
    hosts[0].endpoint.on_run = hosts[0].steps.on_run
    with session(cluster) as sess:
        assert [sess.run(taken) for _ in range(3)] == [1, 2, 3]


def test_what_several_steps_of_a_lost_client_took_is_back_in_its_order(ends: Any) -> None:
    cluster, hosts = ends
    fill, taken, size = shared_queue(0)
    with on(1), fs.container("shared"):
        never = fs.FIFOQueue(10, fs.int32, [], shared_name="never").dequeue()
    other = Cluster([h.task for h in hosts])
    with session(cluster) as sess, session(other) as lost:
        sess.run(fill)
        steps = []
        for count in (1, 2):
            steps.append(threading.Thread(target=loses, args=[lost, [taken, never]]))
            steps[-1].start()
            until(lambda count=count: len(hosts[0].steps.taken) == count)
        assert sess.run(size) == 1
        for host in hosts:
            host.endpoint.give_up(other.endpoint.name, ConnectionAbortedError("gone"))
        until(lambda: sess.run(size) == 3)
        assert [sess.run(taken) for _ in range(3)] == [1, 2, 3]
        for step in steps:
            step.join()
    other.endpoint.close()


def loses(sess: fs.Session, fetches: Any) -> None:
    with pytest.raises(UnavailableError):
        sess.run(fetches)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("how", ["alone", "with another worker"])
def test_a_dequeue_that_is_stopped_leaves_the_next_element_to_the_next(
    how: str, mode: str, ends: Any, aside: Any
) -> None:
    cluster, hosts = ends
    with on(0), fs.container("shared"):
        queue = fs.FIFOQueue(10, fs.int32, [], shared_name="q")
        x = fs.placeholder(fs.int32, [])
        put, taken = queue.enqueue(x), queue.dequeue()
    with on(1):
        used = taken + 1 if how != "alone" else None
    with session(cluster, mode) as sess, session(cluster, mode) as another:
        for number in range(3):
            step = aside(sess.run, taken if used is None else used)
            until(lambda: bool(_waiting(hosts[0])))
            sess.stop()
            with pytest.raises(CancelledError):
                step.result(20)
            assert not _waiting(hosts[0])
            another.run(put, {x: number})
            assert another.run(taken) == number


def _waiting(host: Host) -> list[Any]:
    queues = [q for c in host.containers.values() for q in c.others()]
    return host.steps.queue_waits(queues)


def test_a_worker_that_is_lost_takes_nothing_from_the_queues_of_others(
    ends: Any, aside: Any
) -> None:
    cluster, hosts = ends
    fill, taken, size = shared_queue(0)
    with on(1):
        never = fs.FIFOQueue(10, fs.int32, []).dequeue()
    with session(cluster) as sess:
        sess.run(fill)
        step = aside(sess.run, [taken, never])
        until(lambda: ended_well(hosts[0]))
        cluster.endpoint.give_up(worker(1), ConnectionAbortedError("gone"))
        with pytest.raises(UnavailableError, match=worker(1)):
            step.result(20)
    with session(cluster) as sess:
        assert sess.run(size) == 3


@pytest.mark.parametrize("seed", range(4))
def test_random_faults_lose_no_element_and_double_none(seed: int) -> None:
    assert check(seed) > 0


def test_a_stop_for_the_end_of_a_step_comes_before_its_elements_are_let_go(ends: Any) -> None:
    cluster, hosts = ends
    fill, taken, _ = shared_queue(0)
    with session(cluster) as sess:
        sess.run(fill)
        stopped: list[str] = []

        def stop(kind: str) -> None:
            if kind == "step.confirm" and not stopped:
                stopped.append(kind)
                sess.stop()

        kinds_of(hosts[0], stop)
        try:
            first = [int(sess.run(taken))]
        except CancelledError:
            first = []
        assert stopped
        assert [*first, *[sess.run(taken) for _ in range(3 - len(first))]] == [1, 2, 3]
