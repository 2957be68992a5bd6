"""`%load_ext flowscope` in a real ipykernel: cells and lines, errors, busy cells."""

import ast

import pytest
from jupyter_client.manager import start_new_kernel
from packed_snapshots import nodes_of_packed

from flowscope.live.protocol.schema import PROTOCOL

PATIENCE_S = 60

pytestmark = pytest.mark.slow


class Kernel:
    """A real ipykernel, cell by cell."""

    def __init__(self, client):
        self.client = client

    def run(self, source):
        """Runs a cell; returns (text printed or shown, error output or None)."""
        messages = []
        reply = self.client.execute_interactive(
            source, allow_stdin=False, timeout=PATIENCE_S, output_hook=messages.append
        )
        texts, error = [], None
        for m in messages:
            content = m["content"]
            if m["msg_type"] == "stream":
                texts.append(content["text"])
            elif m["msg_type"] in ("execute_result", "display_data"):
                texts.append(content["data"].get("text/plain", ""))
            elif m["msg_type"] == "error":
                error = content
        assert (reply["content"]["status"] == "error") == (error is not None)
        return "".join(texts), error

    def ask(self, expression):
        """Returns an expression's value, in the reply: what is printed comes when it comes."""
        reply = self.client.execute(
            "", user_expressions={"asked": expression}, reply=True, timeout=PATIENCE_S
        )
        asked = reply["content"]["user_expressions"]["asked"]
        assert asked["status"] == "ok", asked
        return ast.literal_eval(asked["data"]["text/plain"])


@pytest.fixture
def kernel():
    manager, client = start_new_kernel()
    kernel = Kernel(client)
    _, error = kernel.run("%load_ext flowscope\nimport flowscope as fs, numpy as np")
    assert error is None, error
    yield kernel
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def test_an_operations_origin_is_its_cell_and_line(kernel):
    kernel.run("x = 0\n\nx = fs.placeholder(fs.float32, [None, 3], name='x')")
    assert kernel.ask("[(p := x.op.origin.place).cell, p.line, p.text]") == [
        2,
        3,
        "x = fs.placeholder(fs.float32, [None, 3], name='x')",
    ]
    text, _ = kernel.run("x")
    assert "cell 2, line 3" in text


def test_an_error_shows_the_users_lines_only(kernel):
    kernel.run(
        "x = fs.placeholder(fs.float32, [2, 3], name='x')\ndef f(a):\n    return fs.matmul(a, a)"
    )
    _, error = kernel.run("f(x)")
    shown = "\n".join(error["traceback"])
    assert error["ename"] == "InvalidArgumentError"
    assert "made in cell 2, line 3" in shown
    assert "engine/flowscope" not in shown and "graph.py" not in shown
    assert "return fs.matmul(a, a)" in shown


def test_an_error_while_running_leads_to_the_cell_that_built_it(kernel):
    kernel.run("a = fs.placeholder(fs.float32)\nb = fs.matmul(a, a, name='b')\nsess = fs.Session()")
    _, error = kernel.run("sess.run(b, {a: np.ones((2, 3))})")
    shown = "\n".join(error["traceback"])
    assert 'node "b"' in shown and "made in cell 2, line 2" in shown
    assert "<flowscope plan" not in shown


def test_interrupting_the_kernel_ends_a_step_and_the_session_stays_usable(kernel):
    kernel.run(
        "import os, signal\nv = fs.Variable(0)\nup = v.assign_add(1)\n"
        "sess = fs.Session()\nsess.run(v.initializer)"
    )
    _, error = kernel.run(
        "for i in range(1000000):\n    if i == 1000: os.kill(os.getpid(), signal.SIGINT)\n"
        "    n = sess.run(up)"
    )
    assert error["ename"] == "KeyboardInterrupt"
    assert 1000 <= kernel.ask("int(sess.run(v))") < 1000000


def test_a_stop_that_came_too_late_does_not_end_the_next_cell(kernel):
    kernel.run("x = fs.constant(1.0)\nsess = fs.Session()\nsess.run(x)\nsess.stop()")
    _, error = kernel.run("sess.run(x)")
    assert error is None


def test_the_extension_can_be_unloaded_and_loaded_again(kernel):
    for line in ("%unload_ext flowscope", "%load_ext flowscope", "%reload_ext flowscope"):
        _, error = kernel.run(line)
        assert error is None


def test_show_displays_a_widget_a_picture_and_a_text(kernel):
    kernel.run("fs.placeholder(fs.float32, [None, 3], name='layer/x')")
    messages = []
    kernel.client.execute_interactive("fs.show()", timeout=PATIENCE_S, output_hook=messages.append)
    (shown,) = [m["content"]["data"] for m in messages if m["msg_type"] == "display_data"]
    assert "layer" in shown["text/plain"]
    view = shown["application/vnd.flowscope.view+json"]
    assert view["model_id"] == shown["application/vnd.jupyter.widget-view+json"]["model_id"]
    # What a saved notebook shows follows at the end of the cell.
    updates = [m["content"]["data"] for m in messages if m["msg_type"] == "update_display_data"]
    assert updates[-1]["image/svg+xml"].startswith("<svg")
    saved = updates[-1]["application/vnd.flowscope.view+json"]
    assert nodes_of_packed(saved["packed"])[0].name == "layer/x"


def send(kernel, comm_id, content, subshell):
    """Sends a widget's custom message as a browser does, to a subshell."""
    session = kernel.client.session
    message = session.msg(
        "comm_msg", {"comm_id": comm_id, "data": {"method": "custom", "content": content}}
    )
    message["header"]["subshell_id"] = subshell
    kernel.client.shell_channel.send(message)


def test_the_widget_hears_and_answers_while_a_cell_is_busy(kernel):
    kernel.run(
        "v = fs.Variable(0)\nup = v.assign_add(1)\nsess = fs.Session()\nsess.run(v.initializer)"
    )
    kernel.run("from flowscope_widgets import GraphView\nview = GraphView()")
    comm_id = kernel.ask("view.model_id")
    client = kernel.client
    client.control_channel.send(client.session.msg("create_subshell_request"))
    subshell = client.get_control_msg(timeout=PATIENCE_S)["content"]["subshell_id"]
    # An ipykernel drops what comes right behind a cell that fails, unless it is told not to.
    request = client.execute("while True:\n    n = sess.run(up)", stop_on_error=False)

    def wait_for(wanted):
        while True:
            message = client.get_iopub_msg(timeout=PATIENCE_S)
            content = message["content"].get("data", {})
            if message["msg_type"] == "comm_msg" and content.get("method") == "custom":
                told = content["content"]
                if told["kind"] in ("snapshot", "delta"):
                    send(kernel, comm_id, {"kind": "ack", "view": 7, "seq": told["seq"]}, subshell)
                if wanted(told):
                    return told

    def command(number, name):
        asked = {"kind": "command", "view": 7, "command_id": number, "name": name}
        send(kernel, comm_id, asked, subshell)

    send(kernel, comm_id, {"kind": "connect", "view": 7, "protocol": PROTOCOL}, subshell)
    snapshot = wait_for(lambda m: m["kind"] == "snapshot")
    assert snapshot["control"] == "live"
    first = wait_for(lambda m: m["kind"] == "delta" and m["session"]["state"] == "running")
    later = wait_for(
        lambda m: m["kind"] == "delta" and m["session"]["steps"] > first["session"]["steps"]
    )
    assert later["session"]["steps_per_s"] > 0
    send(
        kernel, comm_id, {"kind": "command", "view": 7, "command_id": 1, "name": "pause"}, subshell
    )
    wait_for(lambda m: m["kind"] == "reply" and m["ok"])
    wait_for(lambda m: m["kind"] == "delta" and m["session"]["state"] == "paused")
    send(
        kernel, comm_id, {"kind": "command", "view": 7, "command_id": 2, "name": "resume"}, subshell
    )
    wait_for(lambda m: m["kind"] == "delta" and m["session"]["state"] == "running")
    command(3, "stop")
    while True:
        reply = client.get_shell_msg(timeout=PATIENCE_S)
        if reply["parent_header"].get("msg_id") == request:
            break
    assert reply["content"]["status"] == "error" and reply["content"]["ename"] == "CancelledError"
    assert kernel.ask("int(sess.run(v))") > 0
    assert kernel.ask("view._feed._end is not None")
    send(kernel, comm_id, {"kind": "disconnect", "view": 7}, None)
    assert kernel.ask("view._feed._end is None"), "nobody looks: nothing is sent"


def test_a_panel_is_opened_and_answered_while_a_cell_is_busy(kernel):
    kernel.run("a = fs.constant(1.0)\nsess = fs.Session()\nsess.run(a)")
    client = kernel.client
    client.control_channel.send(client.session.msg("create_subshell_request"))
    subshell = client.get_control_msg(timeout=PATIENCE_S)["content"]["subshell_id"]
    client.execute("while True:\n    sess.run(a)", stop_on_error=False)

    def put(kind, **content):
        message = client.session.msg(kind, {"comm_id": "panel-7", **content})
        message["header"]["subshell_id"] = subshell
        client.shell_channel.send(message)

    def wait_for(wanted):
        while True:
            message = client.get_iopub_msg(timeout=PATIENCE_S)
            if message["content"].get("comm_id") == "panel-7":
                data = message["content"]["data"]
                if wanted(data):
                    return data

    put("comm_open", target_name="flowscope.panel", data={"graph": None})
    state = wait_for(lambda d: "graph_key" in d.get("state", {}))["state"]
    assert state["is_followed"] and len(state["graphs"]) == 1
    content = {"kind": "connect", "view": 3, "protocol": PROTOCOL}
    put("comm_msg", data={"method": "custom", "content": content})
    told = wait_for(lambda d: d.get("method") == "custom")["content"]
    assert told["kind"] == "snapshot"
    wait_for(lambda d: (d.get("content", {}).get("session") or {}).get("state") == "running")
    stop = {"kind": "command", "view": 3, "command_id": 1, "name": "stop"}
    put("comm_msg", data={"method": "custom", "content": stop})
    wait_for(lambda d: d.get("content", {}).get("kind") == "reply")
    put("comm_close", data={})


def test_the_magic_asks_the_page_for_the_panel(kernel):
    messages = []
    kernel.client.execute_interactive("%flowscope", timeout=PATIENCE_S, output_hook=messages.append)
    (asked,) = [m for m in messages if m["msg_type"] == "comm_open"]
    assert asked["content"]["target_name"] == "flowscope.panel"
    assert asked["content"]["data"] == {"is_wanted": True}


def test_a_magic_profiles_a_cell_and_fails_at_its_line(kernel):
    kernel.run("x = fs.placeholder(fs.float32, [], name='x')\ny = x + 1\nsess = fs.Session()")
    text, error = kernel.run("%%fs_profile --by line -o before\nsess.run(y, {x: 1.0});")
    assert error is None
    assert text.startswith("1 step, by line:\n") and "cell 2, line 2" in text
    assert kernel.ask("before.recording.traced_steps") == 1
    _, error = kernel.run("%%fs_profile\nsess.run(y, {x: 1.0})\nfs.matmul(x, x)")
    shown = "\n".join(error["traceback"])
    assert "cell 4, line 3" in shown and "magics.py" not in shown
