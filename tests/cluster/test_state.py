"""How long a host keeps what a client's own sessions have."""

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from local_clusters import wait_until
from struck import Strike, after, before

from flowscope.cluster.transport.endpoint import Endpoint
from flowscope.cluster.worker.host import Host
from flowscope.errors import UnavailableError

SECRET = b"the secret of this cluster"
TASK = "/job:worker/replica:0/task:0"
CLIENT = "client:5"


def value_of(host: Host) -> None:
    """Gives a client's session a variable."""
    host.container(CLIENT, 0, "").variable("v", (2,)).adopt(np.zeros(2))


@pytest.fixture
def client() -> Iterator[Endpoint]:
    made = Endpoint(CLIENT, 1, SECRET)
    yield made
    made.close()


@pytest.mark.parametrize("grace_s", [0.05, 60.0])
def test_a_lost_client_has_a_grace(client: Endpoint, grace_s: float) -> None:
    host = Host(TASK, SECRET, grace_s=grace_s)
    try:
        client.connect(TASK, host.endpoint.address, host.endpoint.incarnation)
        client.tell(TASK, {"kind": "ping"})
        wait_until(lambda: CLIENT in host._clients)
        value_of(host)
        assert host.held_bytes() == 16
        client._peers[TASK].close()  # as if the client had been killed: no goodbye
        wait_until(lambda: CLIENT not in host._clients)
        wait_until(lambda: not client.is_connected(TASK))
        if grace_s < 1:
            wait_until(lambda: host.held_bytes() == 0)
        else:
            client.connect(TASK, host.endpoint.address, host.endpoint.incarnation)
            client.tell(TASK, {"kind": "ping"})  # it has come back
            wait_until(lambda: CLIENT in host._clients)
            assert host.held_bytes() == 16 and host._own._timers == {}
    finally:
        host.close()
    assert host.held_bytes() == 0
    # A timer that was cancelled ends by itself.
    wait_until(lambda: not any(t.name == f"values of {CLIENT}" for t in threading.enumerate()), 10)


@pytest.mark.parametrize("returns", [after, before], ids=["before", "after"])
def test_a_client_that_comes_back_while_it_is_taken_for_lost_keeps_its_values(
    client: Endpoint, monkeypatch: pytest.MonkeyPatch, returns: Callable[..., Any]
) -> None:
    """Its first message comes before, or after, the end of its values is set a time."""
    host, is_lost = Host(TASK, SECRET, grace_s=0.5), threading.Event()
    lost = host.endpoint.on_lost

    def is_back() -> bool:
        with suppress(UnavailableError):  # what is told over a connection that ends may be lost
            client.connect(TASK, host.endpoint.address, host.endpoint.incarnation)
            client.tell(TASK, {"kind": "ping"})
        return CLIENT in host._clients

    def come_back() -> None:
        wait_until(is_back)

    def lose(*told: Any) -> None:
        lost(*told)
        is_lost.set()

    monkeypatch.setattr(host.endpoint, "on_lost", lose)
    strike = Strike(monkeypatch, host._own, "drop_later", returns(come_back))
    try:
        client.connect(TASK, host.endpoint.address, host.endpoint.incarnation)
        client.tell(TASK, {"kind": "ping"})
        wait_until(lambda: CLIENT in host._clients)
        value_of(host)
        client._peers[TASK].close()
        assert is_lost.wait(30.0) and strike.struck == 1
        assert host._own._timers == {}
        wait_until(lambda: f"values of {CLIENT}" not in [t.name for t in threading.enumerate()])
        assert host.held_bytes() == 16
    finally:
        host.close()


def test_a_goodbye_leaves_nothing(client: Endpoint) -> None:
    host = Host(TASK, SECRET)
    try:
        client.connect(TASK, host.endpoint.address, host.endpoint.incarnation)
        client.tell(TASK, {"kind": "ping"})
        wait_until(lambda: CLIENT in host._clients)
        value_of(host)
        client.tell(TASK, {"kind": "client.leave"})
        wait_until(lambda: host.held_bytes() == 0)
    finally:
        host.close()
