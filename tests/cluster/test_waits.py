"""The wait-for graph over all processes: what holds a step up is named first."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from cluster_hosts import hosts_here, on

import flowscope as fs
from flowscope.cluster.watch.status import WaitStatus
from flowscope.cluster.watch.waits import (
    IN_FLIGHT_S,
    WaitSnapshot,
    explained,
    findings,
    joined,
    wait_of,
)
from flowscope.errors import DeadlineExceededError
from flowscope.runtime.waits.rendezvous import Pending


def device(task: int, kind: str = "CPU:0") -> str:
    return f"/job:worker/replica:0/task:{task}/device:{kind}"


def task(number: int) -> str:
    return f"/job:worker/replica:0/task:{number}"


CLIENT = "/job:client/replica:0/task:0/device:CPU:0"
WELL = {task(i): ("ok", "") for i in range(4)}


def waits(waiter: str, peer: str, what: str = "x:0", seconds: float = 2.0, step: int = 7):
    return WaitStatus("c1", step, waiter, peer, what, "value", seconds)


def told(*looks, health=WELL, rests=None, round_trip_s=0.0):
    """The text of a step's error after these looks; time passes only as it is let pass."""
    rest = [list(seen) for seen in looks]

    def look():
        return WaitSnapshot(rest.pop(0) if len(rest) > 1 else rest[0], health, round_trip_s)

    return explained(look, lambda s: None if rests is None else rests.append(s))


def texts(found):
    return [f.text for f in found]


def test_a_receiver_waits_for_a_sender_and_a_producer_for_a_reader():
    key = f"{device(0)};{device(1)};h:0"
    receives = wait_of("c1", 3, Pending(key, 1.5))
    assert (receives.device, receives.peer, receives.kind) == (device(1), device(0), "value")
    sends = wait_of("c1", 3, Pending(key, 0.5, is_producer=True))
    assert (sends.device, sends.peer, sends.kind) == (device(0), device(1), "credit")
    assert joined([sends, receives]) == (receives, sends)


def test_short_waits_are_nothing_to_tell_of():
    assert findings([waits(device(0), device(1), seconds=0.2)], WELL) == ()


def test_the_device_that_all_wait_for_in_the_end_is_named():
    chain = [
        waits(CLIENT, device(0), "y:0", 3.0),
        waits(device(0), device(1, "GPU:1"), "h:0", 2.5),
    ]
    (found,) = findings(chain, WELL)
    assert found.kind == "waits"
    assert found.text == (
        'GPU:1 of worker 1 has not sent yet: worker 0 has waited 2.5 s for "h:0" of '
        "GPU:1 of worker 1, and 1 more behind"
    )
    assert found.tasks == (task(1), task(0))


def test_a_lost_worker_and_a_hung_one_come_before_one_that_is_late():
    health = {**WELL, task(2): ("hung", "its process is stopped"), task(3): ("lost", "")}
    found = findings(
        [
            waits(device(0), device(1)),
            waits(device(0), device(2), "a:0", step=8),
            waits(device(1), device(3), "b:0", 0.1, step=9),
        ],
        health,
    )
    assert texts(found) == [
        'worker 3 is lost: worker 1 has waited 0.1 s for "b:0" of worker 3',
        'worker 2 hangs (its process is stopped): worker 0 has waited 2.0 s for "a:0" of worker 2',
        'worker 1 has not sent yet: worker 0 has waited 2.0 s for "x:0" of worker 1',
    ]


def test_a_circle_is_named_first():
    circle = [
        waits(device(0), device(1), "b:0", 2.0),
        waits(device(1), device(0), "a:0", 3.0),
        waits(CLIENT, device(0), "y:0", 4.0),
    ]
    found = findings(circle, {**WELL, task(3): ("lost", "it was closed")}, circle_s=1.0)
    assert texts(found) == [
        'Nobody can go on: worker 0 waits for "b:0" of worker 1 (2.0 s), '
        'which waits for "a:0" of worker 0 (3.0 s)',
        "worker 3 is lost (it was closed): no step waits for it",
    ]


def test_short_waits_of_a_loop_that_runs_are_no_circle():
    # Processes are asked one after the other: each waits at its own moment for a little while.
    circle = [
        waits(device(0), device(1), "b:0", 2.0),
        waits(device(1), device(0), "a:0", 3.0),
        waits(CLIENT, device(0), "y:0", 4.0),
    ]
    assert findings([replace(w, seconds=0.002) for w in circle], WELL, circle_s=1.0) == ()
    assert findings([replace(circle[0], seconds=0.002), *circle[1:]], WELL, circle_s=1.0) == ()


def test_a_device_that_waits_for_another_too_is_in_no_circle():
    some = [
        waits(device(0), device(1)),
        waits(device(1), device(0), "a:0"),
        waits(device(1), device(2), "c:0"),
    ]
    assert [f.kind for f in findings(some, WELL)] == ["waits"]


def test_two_steps_that_cross_are_no_circle():
    some = [waits(device(0), device(1), step=1), waits(device(1), device(0), step=2)]
    assert [f.kind for f in findings(some, WELL)] == ["waits", "waits"]


def test_a_device_that_waits_for_a_queue_says_so():
    queue = WaitStatus("c1", 7, device(1), "", "jobs", "queue", 5.0)
    text = 'worker 1 waits for the queue "jobs": worker 0 has waited 2.0 s for "x:0" of worker 1'
    assert texts(findings([waits(device(0), device(1)), queue], WELL)) == [text]
    assert told([waits(device(0), device(1)), queue]) == text
    assert findings([queue], WELL) == ()
    assert told([queue]) == 'worker 1 has waited 5.0 s for the queue "jobs"'


def test_an_error_says_what_its_own_step_waits_for():
    health = {**WELL, task(2): ("lost", "")}
    assert told([waits(CLIENT, device(0), seconds=0.1)], health=health) == (
        'worker 0 has not sent yet: the client has waited 0.1 s for "x:0" of worker 0'
    )
    assert told([], health=health) == ""


def ring(*tasks: int, seconds: float = 0.3):
    pairs = zip(tasks, tasks[1:] + tasks[:1], strict=True)
    return [waits(device(a), device(b), f"x{a}:0", seconds) for a, b in pairs]


def test_a_ring_that_a_second_look_does_not_show_is_no_circle():
    first = ring(0, 1)
    assert told(first, []) == ""
    text = 'worker 1 has not sent yet: worker 0 has waited 0.3 s for "x0:0" of worker 1'
    assert told(first, first[:1]) == text


def test_waits_that_began_between_the_looks_are_told_as_waits():
    # In a loop that runs each process waits again and again, each time for a moment.
    young = [replace(w, seconds=0.0) for w in ring(0, 1)]
    assert told(ring(0, 1), young) == (
        'worker 0 has waited 0.0 s for "x0:0" of worker 1; '
        'worker 1 has waited 0.0 s for "x1:0" of worker 0'
    )
    one_young = [*ring(0, 1)[:1], *young[1:]]
    assert "Nobody can go on" not in told(ring(0, 1), one_young)


@pytest.mark.parametrize("count", [2, 3, 4])
def test_a_ring_that_both_looks_show_is_told_as_a_circle(count: int):
    found = told(ring(*range(count)), ring(*range(count), seconds=5.0))
    assert found.startswith("Nobody can go on: worker 0 waits for")
    assert found.count("waits") == count


def test_a_large_value_that_is_on_its_way_makes_no_circle():
    # Two that exchange large values wait for each other as long as that takes.
    seen = ring(0, 1, 2)
    on_way = wait_of("c1", 7, Pending(f"{device(2)};{device(1)};x1:0", 0.3, is_on_way=True))
    assert on_way.kind == "transfer"
    assert told([seen[0], on_way, seen[2]]) == (
        'worker 1 has waited 0.3 s for "x1:0" of worker 2, which is on its way'
    )


def test_between_the_looks_is_what_a_message_takes_there_and_back():
    rests: list[float] = []
    told(ring(0, 1), rests=rests)
    told(ring(0, 1), rests=rests, round_trip_s=3.0)
    told(ring(0, 1)[:1], rests=rests)  # nothing to prove
    assert len(rests) == 2 and rests[0] >= IN_FLIGHT_S and rests[1] >= 6.0


@pytest.mark.parametrize("seed", range(40))
def test_random_loops_that_run_are_never_told_as_a_circle_and_circles_always(seed: int):
    rng = random.Random(seed)
    count = rng.randint(2, 4)
    looks = []
    for _ in range(2):  # anybody may wait at any moment; one at least has begun between the looks
        seen = ring(*range(count))
        late = rng.sample(range(count), rng.randint(1, count))
        looks.append([replace(w, seconds=0.0) if i in late else w for i, w in enumerate(seen)])
        rng.shuffle(looks[-1])
    assert "Nobody can go on" not in told(*looks)
    others = [waits(device(9 + i), device(rng.randrange(count))) for i in range(rng.randint(0, 3))]
    stuck = [*ring(*range(count), seconds=9.0), *others]
    rng.shuffle(stuck)
    assert "Nobody can go on" in told(looks[0], stuck)


@pytest.mark.parametrize("seed", range(2))
def test_loops_over_workers_that_meet_their_deadlines_are_never_told_as_a_circle(
    graph: fs.Graph, seed: int
) -> None:
    rng = random.Random(seed)
    count = rng.randint(2, 3)
    size = rng.choice([1, 8])

    def body(i: Any, x: Any) -> Any:
        for number in rng.sample(range(count), count):
            with on(number):
                x = x * 0.5 + 1.0
        return i + 1, x

    with hosts_here(count) as (cluster, _), fs.Session(cluster) as sess:
        with on(0):
            _, x = fs.while_loop(
                lambda i, _: i < 10**7,
                body,
                [0, fs.zeros([size])],
                parallel_iterations=rng.choice([1, 4]),
            )
        with pytest.raises(DeadlineExceededError):  # the plan is made and sent
            sess.run(x, options=fs.RunOptions(timeout_in_ms=200))
        for _ in range(6):
            options = fs.RunOptions(timeout_in_ms=rng.randint(10, 60))
            with pytest.raises(DeadlineExceededError) as failure:
                sess.run(x, options=options)
            assert "Nobody can go on" not in str(failure.value)


def test_who_has_sent_too_much_waits_for_a_reader():
    ahead = WaitStatus("c1", 7, device(0), device(1), "x:0", "credit", 2.0)
    assert texts(findings([ahead], WELL)) == [
        'worker 1 has not read yet: worker 0 has waited 2.0 s for worker 1 to read "x:0"'
    ]
