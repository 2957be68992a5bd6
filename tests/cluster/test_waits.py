"""The wait-for graph over all processes: what holds a step up is named first."""

from __future__ import annotations

from dataclasses import replace

from flowscope.cluster.status import WaitStatus
from flowscope.cluster.waits import explained, findings, joined, wait_of
from flowscope.runtime.rendezvous import Pending


def device(task: int, kind: str = "CPU:0") -> str:
    return f"/job:worker/replica:0/task:{task}/device:{kind}"


def task(number: int) -> str:
    return f"/job:worker/replica:0/task:{number}"


CLIENT = "/job:client/replica:0/task:0/device:CPU:0"
WELL = {task(i): ("ok", "") for i in range(4)}


def waits(waiter: str, peer: str, what: str = "x:0", seconds: float = 2.0, step: int = 7):
    return WaitStatus("c1", step, waiter, peer, what, "value", seconds)


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
    found = findings(circle, {**WELL, task(3): ("lost", "it was closed")})
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
    assert findings([replace(w, seconds=0.002) for w in circle], WELL) == ()
    assert findings([replace(circle[0], seconds=0.002), *circle[1:]], WELL) == ()


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
    assert explained([waits(device(0), device(1)), queue], WELL, "c1", 7) == text
    assert findings([queue], WELL) == ()
    assert explained([queue], WELL, "c1", 7) == 'worker 1 has waited 5.0 s for the queue "jobs"'


def test_an_error_says_what_its_own_step_waits_for():
    some = [waits(CLIENT, device(0), seconds=0.1), waits(device(0), device(1), step=8)]
    health = {**WELL, task(2): ("lost", "")}
    assert explained(some, health, "c1", 7) == (
        'worker 0 has not sent yet: the client has waited 0.1 s for "x:0" of worker 0'
    )
    assert explained(some, health, "c2", 7) == ""


def test_who_has_sent_too_much_waits_for_a_reader():
    ahead = WaitStatus("c1", 7, device(0), device(1), "x:0", "credit", 2.0)
    assert texts(findings([ahead], WELL)) == [
        'worker 1 has not read yet: worker 0 has waited 2.0 s for worker 1 to read "x:0"'
    ]
