"""All waits of clusters go through `flowscope.runtime.waits.waiting`: nothing else there blocks."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "engine" / "flowscope" / "cluster"

#: Methods that may block, whatever they belong to.
BLOCKING = {
    "accept", "acquire", "communicate", "connect_ex", "getaddrinfo", "join", "poll", "recv",
    "recv_into", "recvmsg", "recvmsg_into", "result", "select", "send", "sendall", "sendmsg",
    "sleep", "sync", "wait", "wait_on",
}  # fmt: skip
#: Those of queues, where they have no time.
QUEUES = {"get"}
#: What has threads that are waited for.
POOLS = {"ThreadPoolExecutor", "create_connection"}

_LOOP = "the loop of one of the transport's own threads, which its end wakes"
_TAKES = "the socket is told how long to wait, or not to: `Connection.limit_reads`"
_NEVER = "the socket does not block"
#: What may block all the same, by file and function, and why.
ALLOWED = {
    ("servers/dask_client.py", "ask_beside"): "Dask's own time: callback_timeout",
    ("servers/task_server.py", "_unless_stopped"): "the task is done",
    ("worker/doubts.py", "_wait"): "a quarter of a second; then it is looked whether its step ends",
    ("membership/health.py", "look"): "some hundredths of a second, in a process of Dask's",
    ("transport/connections.py", "_send"): _NEVER,
    ("transport/connections.py", "_write_some"): "at most two milliseconds: SO_SNDTIMEO",
    ("transport/connections.py", "is_cut"): _NEVER,
    ("transport/dialing.py", "_connect_next"): _NEVER,
    ("transport/dialing.py", "_talk"): _NEVER,
    ("transport/dialing.py", "connect"): "addresses of tasks are numbers; names are looked up",
    ("transport/dialing.py", "sleep"): "what `waiting` sleeps in, so long at most",
    ("transport/doors.py", "_accept"): _NEVER,
    ("transport/doors.py", "_go_on"): _NEVER,
    ("transport/doors.py", "_hear"): _NEVER,
    ("transport/doors.py", "step"): _LOOP,
    ("transport/flusher.py", "_run"): _LOOP,
    ("transport/encoding/macs.py", "_take_in_place"): _TAKES,
    ("transport/encoding/macs.py", "take"): _TAKES,
    ("transport/poller.py", "_run"): _LOOP,
    ("transport/sender.py", "_run"): _LOOP,
    ("transport/encoding/tls.py", "take"): _TAKES,
}


def receiver(call: ast.Call) -> ast.expr:
    assert isinstance(call.func, ast.Attribute)
    return call.func.value


def is_harmless(call: ast.Call, is_awaited: bool) -> bool:
    """Whether a call of a blocking name does not block, or says until when."""
    assert isinstance(call.func, ast.Attribute)
    name, given = call.func.attr, {k.arg for k in call.keywords}
    first = call.args[0] if call.args else None
    is_false = isinstance(first, ast.Constant) and first.value is False
    match name:
        case "join":  # of texts, and `PauseCoordinator.join`, which waits for nothing
            of = receiver(call)
            is_text = isinstance(of, ast.Constant | ast.JoinedStr)
            return is_text or ast.unparse(of) in ("self", "step.pausing", "os.path")
        case "acquire":
            return is_false
        case "poll":  # `Link.poll` reads what is there
            return ast.unparse(call.func) in ("select.poll", "self.poll", "link.poll")
        case "wait" | "result":  # of runs, questions, coordinators: they take a time
            of = ast.unparse(call.func.value)
            is_ours = of in ("self._pausing", "question", "asked", "self.ask(peer, message)")
            return is_awaited or "until" in given or is_ours
        case "get":
            return is_awaited or bool(first) or "timeout" in given
        case "send":  # of generators, which are sent something
            return "sock" not in ast.unparse(call.func.value)
    return is_awaited


def blocking(source: str) -> Iterator[tuple[str, int, str]]:
    """Yields the function, the line and the text of each call that may block."""
    tree = ast.parse(source)
    awaited = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Await)}
    # What an event loop is given to run is awaited by that.
    for call in [n for n in ast.walk(tree) if isinstance(n, ast.Call)]:
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if name == "ensure_future":
            awaited |= {id(a) for a in call.args}
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    for node in [n for n in ast.walk(tree) if isinstance(n, ast.Call)]:
        around = [f.name for f in functions if f.lineno <= node.lineno <= (f.end_lineno or 0)]
        where = around[-1] if around else ""
        name = ast.unparse(node.func).rpartition(".")[2]
        is_method = isinstance(node.func, ast.Attribute)
        if name in POOLS or (
            is_method and name in BLOCKING | QUEUES and not is_harmless(node, id(node) in awaited)
        ):
            yield where, node.lineno, ast.unparse(node)


def found() -> dict[tuple[str, str], list[str]]:
    told: dict[tuple[str, str], list[str]] = {}
    for path in sorted(ROOT.rglob("*.py")):
        file = path.relative_to(ROOT).as_posix()
        for function, line, text in blocking(path.read_text()):
            told.setdefault((file, function), []).append(f"{file}:{line}: {text}")
    return told


def test_nothing_of_clusters_waits_but_by_the_one_function() -> None:
    told = found()
    others = [text for place, texts in told.items() if place not in ALLOWED for text in texts]
    assert not others, "go by flowscope.runtime.waits.waiting: " + "; ".join(others)
    assert ALLOWED.keys() <= told.keys(), f"no more: {ALLOWED.keys() - told.keys()}"


@pytest.mark.parametrize(
    "call",
    [
        "event.wait()", "event.wait(5)", "thread.join()", "thread.join(3)", "future.result()",
        "future.result(2)", "lock.acquire()", "lock.acquire(True, 1)", "sock.recv(1)",
        "queue.get()", "selector.select()", "time.sleep(1)", "client.sync(f)",
        "waiter.wait_on(f)", "ThreadPoolExecutor(3)", "socket.create_connection(a)",
    ],
)  # fmt: skip
def test_what_blocks_is_found(call: str) -> None:
    assert [text for _, _, text in blocking(f"def f():\n    {call}\n")] == [call]


@pytest.mark.parametrize(
    "call",
    [
        "', '.join(names)", "lock.acquire(False)", "known.get(name)", "queue.get(timeout=1)",
        "run.wait(until=end)", "await event.wait()", "run.answer()",
    ],
)  # fmt: skip
def test_what_does_not_block_is_let_through(call: str) -> None:
    assert not list(blocking(f"async def f():\n    {call}\n"))
