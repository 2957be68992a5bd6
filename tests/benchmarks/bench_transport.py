"""The transport of a cluster between two processes: no graph, no plan, no session.

Run: python tests/benchmarks/bench_transport.py [--tls | --dask] [--busy] [PIECE ...]

Raw sockets first, as what can be had at most on this machine; then loops by window (iterations/s),
a value there and back, runs without and with a number, and 100 MB on the bulk connection and as a
run's answer. With --tls connections are sealed, with --dask they go over Dask's ports, with --busy
a Python thread computes in each process meanwhile. Medians of several rounds, for which another
load of the machine matters much.
"""

from __future__ import annotations

import argparse
import os
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from flowscope.cluster.transport.channel import KeyTable, ProcessChannel, StepId
from flowscope.cluster.transport.encoding.tls import TLSContexts
from flowscope.cluster.transport.endpoint import Endpoint

if TYPE_CHECKING:
    from dask_ports import DaskPorts

ONE, OTHER = (f"/job:worker/replica:0/task:{i}" for i in range(2))
A, B = (f"{p}/device:CPU:0" for p in (ONE, OTHER))
THERE, BACK = f"{A};{B};there:0", f"{B};{A};back:0"
TABLE = KeyTable([THERE, BACK], lambda device: device.rpartition("/device:")[0])
BIG = np.ones(25_000_000, np.float32)
ROUNDS = 7


class FreeGate:
    """A gate at which nobody is held."""

    def __init__(self) -> None:
        self.raised = False
        self._changed = threading.Condition()

    def wait(self, is_done: Callable[[], bool], here: Any = None) -> None:
        with self._changed:
            self._changed.wait_for(is_done)

    def wake(self) -> None:
        with self._changed:
            self._changed.notify_all()


GATE = FreeGate()


def contexts(folder: str | None) -> TLSContexts | None:
    if folder is None:
        return None
    cert, key = f"{folder}/cert.pem", f"{folder}/key.pem"
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=cert)
    client = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=cert)
    client.check_hostname = False
    for one in (server, client):
        one.verify_mode = ssl.CERT_REQUIRED
        one.load_cert_chain(cert, key)
    return TLSContexts(server, client)


def compute_for_ever() -> None:
    """Keeps a Python thread busy."""

    def work() -> None:
        while True:
            sum(range(1000))

    threading.Thread(target=work, daemon=True).start()


# ---------------------------------------------------------------- the other process


def serve(folder: str | None, is_busy: bool, ports: DaskPorts | None) -> None:
    endpoint = Endpoint(OTHER, 1, b"secret", tls=contexts(folder))

    def run(peer: str, header: dict[str, Any], values: list[Any]) -> Any:
        if header["what"] == "nothing":
            return {}, values
        if header["what"] == "fetch":
            return {}, [BIG]
        step = StepId(1, header["step"])
        channel = endpoint.open_step(step, TABLE)
        answer = SERVED[header["what"]](channel, header["count"])
        channel.flush()
        endpoint.close_step(step)
        return {"answer": answer}, []

    endpoint.on_run = run
    if is_busy:
        compute_for_ever()
    host, port = endpoint.address
    print(f"{host}:{port}" if ports is None else ports.lead_to(endpoint), flush=True)
    raw = socket.create_server(("127.0.0.1", 0))
    print(raw.getsockname()[1], flush=True)
    sock, _ = raw.accept()
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while data := sock.recv(1 << 16):
        if data.startswith(b"big"):
            room, got = memoryview(np.empty(BIG.nbytes, np.uint8)), len(data) - len(b"big")
            while got < BIG.nbytes:
                got += sock.recv_into(room[got:])
        sock.send(data[:30])
    sys.stdin.read()


def take_all(channel: ProcessChannel, count: int) -> int:
    box = channel.mailbox(THERE)
    for _ in range(count):
        if not box.receive(GATE):
            return -1
    return count


def send_back(channel: ProcessChannel, count: int) -> int:
    box, back = channel.mailbox(THERE), channel.mailbox(BACK)
    for _ in range(count):
        back.send(box.receive(GATE))
    return count


def take_arrays(channel: ProcessChannel, count: int) -> int:
    box = channel.mailbox(THERE)
    for _ in range(count):
        box.receive(GATE)
    return count


SERVED = {"loop": take_all, "there and back": send_back, "bulk": take_arrays}


# ---------------------------------------------------------------- this process


class Bench:
    def __init__(self, endpoint: Endpoint, raw: socket.socket) -> None:
        self.endpoint = endpoint
        self.raw = raw
        self.step = 0

    def in_step(self, what: str, count: int, work: Callable[[ProcessChannel], None]) -> float:
        """Returns seconds per repetition of what both processes do in one step."""
        self.step += 1
        step = StepId(1, self.step)
        header = {"what": what, "count": count, "step": self.step}
        channel = self.endpoint.open_step(step, TABLE)
        began = time.perf_counter()
        run = self.endpoint.start_run(OTHER, header, [])
        work(channel)
        channel.flush()
        assert run.wait(GATE)[0] == {"answer": count}
        took = time.perf_counter() - began
        self.endpoint.close_step(step)
        return took / count

    def loop(self, window: int, count: int) -> float:
        def work(channel: ProcessChannel) -> None:
            box, value = channel.mailbox(THERE), np.bool_(True)
            for _ in range(count):
                box.send(value)
                if box.is_ahead(window, 0):
                    box.throttle(window, 0, GATE)

        return self.in_step("loop", count, work)

    def there_and_back(self, count: int = 2000) -> float:
        def work(channel: ProcessChannel) -> None:
            box, back, value = channel.mailbox(THERE), channel.mailbox(BACK), np.float32(1)
            for _ in range(count):
                box.send(value)
                back.receive(GATE)

        return self.in_step("there and back", count, work)

    def run(self, values: list[Any], what: str = "nothing", count: int = 500) -> float:
        began = time.perf_counter()
        for _ in range(count):
            self.endpoint.start_run(OTHER, {"what": what}, values).wait(GATE)
        return (time.perf_counter() - began) / count

    def bulk(self) -> float:
        return self.in_step("bulk", 3, lambda c: [c.mailbox(THERE).send(BIG) for _ in range(3)])

    def raw_there_and_back(self, count: int = 3000) -> float:
        began = time.perf_counter()
        for _ in range(count):
            self.raw.send(b"x" * 30)
            self.raw.recv(1 << 16)
        return (time.perf_counter() - began) / count

    def raw_bulk(self) -> float:
        began = time.perf_counter()
        self.raw.send(b"big")
        self.raw.sendall(BIG.data)
        assert self.raw.recv(1 << 16)
        return time.perf_counter() - began


PIECES: dict[str, tuple[Callable[[Bench], float], str, Callable[[float], float]]] = {
    "raw: 30 bytes there and back": (Bench.raw_there_and_back, "us", lambda s: s * 1e6),
    "raw: 100 MB": (Bench.raw_bulk, "ms", lambda s: s * 1e3),
    "loop, window 1": (lambda b: b.loop(1, 5000), "iterations/s", lambda s: 1 / s),
    "loop, window 32": (lambda b: b.loop(32, 30_000), "iterations/s", lambda s: 1 / s),
    "loop, window 1024": (lambda b: b.loop(1024, 30_000), "iterations/s", lambda s: 1 / s),
    "a number there and back": (Bench.there_and_back, "us", lambda s: s * 1e6),
    "run": (lambda b: b.run([]), "us", lambda s: s * 1e6),
    "run, a number there and back": (lambda b: b.run([np.float32(1)]), "us", lambda s: s * 1e6),
    "bulk: 100 MB": (Bench.bulk, "ms", lambda s: s * 1e3),
    "run, answer of 100 MB": (lambda b: b.run([], "fetch", 3), "ms", lambda s: s * 1e3),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--dask", action="store_true")
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("pieces", nargs="*", help="parts of names; all where none are given")
    options = parser.parse_args()
    ports = None
    if options.dask:
        sys.path.append(str(Path(__file__).parents[1] / "helpers"))
        from dask_ports import DaskPorts  # Dask takes a while to load

        ports = DaskPorts()
    if options.serve:
        serve(options.folder, options.busy, ports)
        return
    with tempfile.TemporaryDirectory() as folder:
        more = ["--busy"] * options.busy + ["--dask"] * options.dask
        if options.tls:
            made = "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=bench -keyout key.pem -out"
            subprocess.run([*made.split(), "cert.pem"], cwd=folder, check=True, capture_output=True)
            more += ["--folder", folder]
        child = subprocess.Popen(
            [sys.executable, __file__, "--serve", *more],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ,
        )
        try:
            assert child.stdout is not None
            address, raw_port = child.stdout.readline().decode().strip(), child.stdout.readline()
            endpoint = Endpoint(ONE, 1, b"secret", tls=contexts(folder) if options.tls else None)
            if ports is not None:
                endpoint.dial = ports.streams.dial
                endpoint.connect(OTHER, address, 1)
            else:
                endpoint.connect(OTHER, ("127.0.0.1", int(address.rpartition(":")[2])), 1)
            measure(endpoint, int(raw_port), options.busy, options.pieces)
        finally:
            child.kill()
            child.communicate()


def measure(endpoint: Endpoint, raw_port: int, is_busy: bool, chosen: list[str]) -> None:
    raw = socket.create_connection(("127.0.0.1", raw_port))
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    bench = Bench(endpoint, raw)
    if is_busy:
        compute_for_ever()
    for name, (piece, unit, told) in PIECES.items():
        if chosen and not any(part in name for part in chosen):
            continue
        piece(bench)
        found = sorted(told(piece(bench)) for _ in range(ROUNDS))
        middle = statistics.median(found)
        print(
            f"{name:32}{middle:12,.1f} {unit:14}({found[0]:,.1f} to {found[-1]:,.1f})", flush=True
        )
    endpoint.close()


if __name__ == "__main__":
    main()
