"""Endpoints find each other, ask, tell and run."""

import gc
import sys
import threading
import time

import numpy as np
import pytest
from local_clusters import wait_until
from own_threads import own_threads
from process_channels import FreeGate, soon

from flowscope.cluster.transport.channel import KeyTable, StepId
from flowscope.cluster.transport.endpoint import Endpoint
from flowscope.errors import (
    DeadlineExceededError,
    InternalError,
    UnauthenticatedError,
    UnavailableError,
)
from flowscope.runtime.waits.rendezvous import DEAD

A, B = (f"/job:worker/replica:0/task:{i}" for i in range(2))
SECRET = b"the secret of this cluster"


@pytest.fixture
def endpoints():
    made = []

    def make(name, incarnation=1, secret=SECRET):
        made.append(Endpoint(name, incarnation, secret))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def pair(endpoints):
    a, b = endpoints(A), endpoints(B)
    a.connect(B, b.address, 1)
    return a, b


def test_both_ends_can_ask_once_one_has_connected(pair):
    a, b = pair
    assert a.is_connected(B) and b.is_connected(A)
    a.on_call = b.on_call = lambda peer, message: {"peer": peer, "got": message}
    message = {"kind": "x", "n": 1 << 200, "b": b"\0", "f": 0.5, "l": [1, None, True]}
    assert a.call(B, message, 5) == {"peer": A, "got": message}
    assert b.call(A, {"kind": "y"}, 5) == {"peer": B, "got": {"kind": "y"}}


def test_to_connect_again_changes_nothing(pair):
    a, b = pair
    a.connect(B, b.address, 1)
    b.on_call = lambda peer, message: message
    assert a.call(B, {"n": 1}, 5) == {"n": 1}


def test_what_is_told_comes_in_order(pair):
    a, b = pair
    got, done = [], threading.Event()

    def take(peer, message):
        got.append(message["n"])
        if message["n"] == 99:
            done.set()

    b.on_call = take
    for n in range(100):
        a.tell(B, {"n": n})
    assert done.wait(5)
    assert got == [*range(100)]


def test_an_answer_that_does_not_come_in_time_is_an_error(pair):
    a, b = pair
    go_on = threading.Event()
    b.on_call = lambda peer, message: go_on.wait(10) and None
    with pytest.raises(DeadlineExceededError, match="task:1 has not answered 'slow' within 0.01 s"):
        a.call(B, {"kind": "slow"}, 0.01)
    go_on.set()


def test_what_a_handler_raises_is_told(pair):
    a, _ = pair
    with pytest.raises(InternalError, match="nobody takes the messages"):
        a.call(B, {"kind": "x"}, 5)


def test_whoever_does_not_know_the_secret_is_told_so(endpoints):
    a, b = endpoints(A, secret=b"another"), endpoints(B)
    with pytest.raises(UnauthenticatedError, match="does not know this cluster's secret"):
        a.connect(B, b.address, 1)
    assert not a.is_connected(B) and not b.is_connected(A)


def test_another_life_of_a_process_is_not_taken_for_it(endpoints):
    a, b = endpoints(A), endpoints(B, incarnation=2)
    with pytest.raises(UnavailableError, match="expected .*task:1 of incarnation 1.*restarted"):
        a.connect(B, b.address, 1)


def test_nobody_there_is_an_error(endpoints):
    a, b = endpoints(A), endpoints(B)
    b.close()
    with pytest.raises(UnavailableError, match="task:1 cannot be reached at 127.0.0.1"):
        a.connect(B, b.address, 1)
    with pytest.raises(UnavailableError, match="task:1 is not connected"):
        a.tell(B, {})


VALUES = [
    np.float32(1.5),
    np.int64(-3),
    np.arange(6, dtype=np.float64).reshape(2, 3),
    np.zeros((0, 3), np.int32),
    np.arange(300_000, dtype=np.int16),
    np.arange(12).reshape(3, 4).T,
    np.array([[b"a", b""], [b"bcd", b"\0\0"]], object),
    np.array([b"x" * 10_000], object),
    b"text",
    np.bool_(True),
    np.complex64(1 + 2j),
    np.array([1, 2], ">i4"),
    DEAD,
]


def assert_same(got, sent):
    if sent is DEAD or isinstance(sent, bytes):
        assert got is sent or got == sent
        return
    assert type(got) is type(sent)
    assert got.dtype == sent.dtype.newbyteorder("=") and got.shape == sent.shape
    np.testing.assert_array_equal(got, sent)
    assert not isinstance(got, np.ndarray) or got.flags.writeable


def test_a_run_brings_arrays_there_and_back(pair):
    a, b = pair
    b.on_run = lambda peer, header, values: ({"peer": peer, **header}, values)
    header, values = a.start_run(B, {"n": 7}, VALUES).wait(until=soon())
    assert header == {"peer": A, "n": 7}
    for got, sent in zip(values, VALUES, strict=True):
        assert_same(got, sent)


def test_bfloat16_travels_too(pair):
    import ml_dtypes

    a, b = pair
    b.on_run = lambda peer, header, values: ({}, values)
    sent = [np.ones(3, ml_dtypes.bfloat16), ml_dtypes.bfloat16(2), np.ones(2, ml_dtypes.int4)]
    for got, one in zip(a.start_run(B, {}, sent).wait(until=soon())[1], sent, strict=True):
        assert_same(got, one)


def test_several_runs_are_under_way_at_one_peer(pair):
    a, b = pair
    together = threading.Barrier(4)

    def run(peer, header, values):
        together.wait(5)
        return header, values

    b.on_run = run
    runs = [a.start_run(B, {"n": n}, []) for n in range(4)]
    assert [r.wait(until=soon())[0]["n"] for r in runs] == [0, 1, 2, 3]


def test_run_connections_are_used_again(pair):
    a, b = pair
    threads = set()

    def run(peer, header, values):
        threads.add(threading.get_ident())
        return header, values

    b.on_run = run
    for n in range(20):
        assert a.start_run(B, {"n": n}, []).wait(until=soon())[0] == {"n": n}
    assert len(threads) == 1


def test_the_first_of_several_answers_is_seen_while_others_run(pair):
    a, b = pair
    go_on = threading.Event()
    b.on_run = lambda peer, header, values: (header["n"] or go_on.wait(10)) and (header, [])
    runs = [a.start_run(B, {"n": n}, []) for n in range(2)]
    assert a.first_done(runs, until=soon()) is runs[1]
    assert not runs[0].is_done and runs[1].answer()[0] == {"n": 1}
    go_on.set()
    assert runs[0].wait(until=soon())[0] == {"n": 0}


def test_a_connection_that_closes_does_not_hide_other_answers(pair):
    a, b = pair
    go_on = threading.Event()
    b.on_run = lambda peer, header, values: (header["n"] or go_on.wait(10)) and (header, [])
    runs = [a.start_run(B, {"n": n}, []) for n in range(2)]
    lost = runs[0]._carrier.connection
    lost.error = ConnectionResetError("its peer is lost at this moment, and the run is told next")
    lost._socket.close()
    assert a.first_done(runs, until=soon()) is runs[1]
    go_on.set()


def test_a_peer_that_goes_ends_runs_and_is_told_once(pair):
    a, b = pair
    lost, running, go_on = [], threading.Event(), threading.Event()
    told = threading.Event()

    def tell(peer, incarnation, error):
        lost.append(peer)
        told.set()

    a.on_lost = tell

    def run(peer, header, values):
        running.set()
        go_on.wait(10)
        return {}, []

    b.on_run = run
    pending = a.start_run(B, {}, [])
    assert running.wait(5)
    b._peers[A].close()  # as if the process had been killed: no goodbye
    with pytest.raises(UnavailableError, match="task:1 is lost"):
        pending.wait(until=soon())
    assert told.wait(5) and lost == [B]
    assert not a.is_connected(B)
    go_on.set()


def test_a_goodbye_is_no_loss(pair):
    a, b = pair
    lost = []
    a.on_lost = lambda peer, incarnation, error: lost.append(peer)
    peer = a._peers[B]
    b.close()
    wait_until(lambda: peer.has_gone)
    a.close()
    assert not a.is_connected(B) and lost == []


def test_nothing_is_left_of_closed_endpoints(endpoints):
    before = own_threads()
    a, b = endpoints(A), endpoints(B)
    a.connect(B, b.address, 1)
    b.on_run = lambda peer, header, values: (header, values)
    a.start_run(B, {}, VALUES).wait(until=soon())
    a.close()
    b.close()
    assert own_threads() == before


def test_nothing_is_left_of_one_that_cannot_listen(endpoints):
    port = endpoints(A).address[1]
    with pytest.raises(OSError, match="in use"):
        Endpoint(B, 1, SECRET, port=port)
    gc.collect()  # tells of sockets that nobody has closed


def test_a_close_waits_for_the_thread_of_a_peer_that_has_just_left(pair):
    a, b = pair
    leaving, go_on = threading.Event(), threading.Event()
    lost = b._steps.lost

    def lose(*arguments):
        leaving.set()
        go_on.wait(10)
        lost(*arguments)

    b._steps.lost = lose
    a.close()
    assert leaving.wait(10)
    losing = [t for t in b._threads if t.name == f"control {A}"]
    closing = threading.Thread(target=b.close)
    closing.start()
    wait_until(lambda: b._threads == set(losing))
    assert closing.is_alive()
    go_on.set()
    closing.join(10)
    assert len(losing) == 1 and not losing[0].is_alive()


def test_what_goes_there_and_back_is_counted(pair):
    a, b = pair
    b.on_run = lambda peer, header, values: (header, [])
    for _ in range(3):
        a.start_run(B, {"n": 1}, [np.zeros(50_000)]).wait(until=soon())
    found = a.counters()[B]
    assert found.runs == 3 and b.counters()[A].runs == 0
    assert found.sent_bytes > 3 * 400_000 > found.received_bytes > 0
    assert found.unwritten_bytes == 0 and found.silent_s >= 0


def test_threads_change_sooner_while_there_are_endpoints(endpoints):
    before = sys.getswitchinterval()
    one, other = endpoints(A), endpoints(B)
    assert sys.getswitchinterval() < before
    one.close()
    assert sys.getswitchinterval() < before
    other.close()
    assert sys.getswitchinterval() == before


def test_a_peer_that_does_not_read_holds_nobody_up(pair):
    a, b = pair
    table = KeyTable([f"{A}/device:CPU:0;{B}/device:CPU:0;x:0"], lambda d: d.rpartition("/")[0])
    channel = a.open_step(StepId(1, 1), table)
    box, value = channel.mailbox(table.keys[0]), np.zeros(8000)
    for _ in range(500):  # 32 MB: more than any buffer of the kernel
        box.send(value)
    wait_until(lambda: a.counters()[B].unwritten_bytes > 0)  # a flush may be under way
    b.on_call = lambda peer, message: message
    assert a.call(B, {"n": 1}, 5) == {"n": 1}
    inbox = b.open_step(StepId(1, 1), table).mailbox(table.keys[0])
    assert all(inbox.receive(FreeGate()).shape == (8000,) for _ in range(500))


def test_a_run_that_is_given_up_leaves_others_alone(pair):
    a, b = pair
    go_on = threading.Event()
    b.on_run = lambda peer, header, values: (header["n"] or go_on.wait(10)) and (header, [])
    given_up = a.start_run(B, {"n": 0}, [])
    given_up.abandon()
    assert given_up.is_done
    with pytest.raises(UnavailableError, match="nobody waits for the answer"):
        given_up.answer()
    assert a.start_run(B, {"n": 2}, []).wait(until=soon())[0] == {"n": 2}
    go_on.set()


def test_a_run_may_be_waited_for_without_a_gate(pair):
    a, b = pair
    go_on = threading.Event()
    b.on_run = lambda peer, header, values: go_on.wait(10) and (header, [])
    run = a.start_run(B, {}, [])
    assert a.first_done([run], until=time.monotonic() + 0.01) is None
    go_on.set()
    assert a.first_done([run], until=soon()) is run


def test_a_life_that_begins_again_replaces_the_one_before(endpoints):
    a, b = endpoints(A), endpoints(B)
    a.connect(B, b.address, 1)
    lost = []
    b.on_lost = lambda peer, incarnation, error: lost.append(peer)
    again = endpoints(A, incarnation=2)
    again.connect(B, b.address, 1)
    assert lost == [A] and b._peers[A].incarnation == 2
    b.on_call = lambda peer, message: message
    assert again.call(B, {"n": 1}, 5) == {"n": 1}


def test_threads_that_connect_at_once_make_one_connection(endpoints):
    a, b = endpoints(A), endpoints(B)
    lost, start = [], threading.Barrier(6)
    a.on_lost = b.on_lost = lambda *told: lost.append(told)

    def connect():
        start.wait()
        a.connect(B, b.address, 1)

    threads = [threading.Thread(target=connect) for _ in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    b.on_call = lambda peer, message: message
    assert a.call(B, {"n": 1}, 5) == {"n": 1} and lost == []
    assert b._forming == {} and not a._going and not b._going


def test_what_comes_late_of_one_life_leaves_the_next_alone(endpoints):
    """The next life connects, and works, while the loss of the one before is being told."""
    a, b = endpoints(A), endpoints(B)
    a.connect(B, b.address, 1)
    told, go_on, done = [], threading.Event(), threading.Event()

    def lose(peer, incarnation, error):
        go_on.wait(10)
        told.append((peer, incarnation))
        done.set()

    a.on_lost = lose
    b._peers[A].close()  # as if the process had been killed: no goodbye
    again = endpoints(B, incarnation=2)
    again.on_call = lambda peer, message: message
    wait_until(lambda: not a.is_connected(B, 1))
    a.connect(B, again.address, 2)
    go_on.set()
    assert done.wait(5) and told == [(B, 1)]
    a.disconnect(B, 1)
    assert a.is_connected(B, 2) and not a.is_connected(B, 1)
    assert a.call(B, {"n": 1}, 5) == {"n": 1}


def test_control_messages_of_many_peers_are_read_by_one_thread(endpoints):
    client = endpoints(A)
    hosts = [endpoints(f"/job:worker/replica:0/task:{i}") for i in range(1, 20)]
    before = own_threads()
    for host in hosts:
        host.on_call = lambda peer, message: message
        client.connect(host.name, host.address, 1)
    assert [client.call(h.name, {"n": i}, 5)["n"] for i, h in enumerate(hosts)] == [*range(19)]
    # One control reader of each process, and their readers of large arrays; none per peer.
    # Those that have let a peer in end by themselves.
    wait_until(lambda: own_threads() - before <= 2 * (1 + len(hosts)))
    readers = {t.name for t in threading.enumerate() if t.name.startswith("control ")}
    assert readers == {f"control {e.name}" for e in (client, *hosts)}


def test_a_handler_that_takes_long_holds_up_no_other_message(pair):
    a, b = pair
    go_on, asked = threading.Event(), threading.Event()

    def slow():
        asked.set()
        return {"slow": go_on.wait(10)}

    b.on_call = lambda peer, message: slow if message["n"] == 0 else message
    found = []
    asking = threading.Thread(target=lambda: found.append(a.call(B, {"n": 0}, 10)))
    asking.start()
    assert asked.wait(10)
    assert a.call(B, {"n": 1}, 5) == {"n": 1} and not found
    go_on.set()
    asking.join(10)
    assert found == [{"slow": True}]


def test_a_loss_that_takes_long_to_tell_holds_up_no_other_peer(endpoints):
    """Whoever is told of a lost peer may ask the others something."""
    client, lost, other = endpoints(A), endpoints(B), endpoints("/job:worker/replica:0/task:9")
    other.on_call = lambda peer, message: message
    found, told = [], threading.Event()

    def on_lost(peer, incarnation, error):
        if peer == lost.name:  # the other one goes when the test is over
            found.append(client.call(other.name, {"n": 1}, 5))
            told.set()

    client.on_lost = on_lost
    for one in (lost, other):
        client.connect(one.name, one.address, 1)
    lost._peers[A].close()  # as if the process had been killed: no goodbye
    assert told.wait(10) and found == [{"n": 1}]
