"""Cells that are run again in a real ipykernel, as JupyterLab sends them: with the cell's id."""

import json

import pytest
from jupyter_client.manager import start_new_kernel

PATIENCE_S = 60

pytestmark = pytest.mark.slow


class Notebook:
    """A real ipykernel that gets cells with their ids."""

    def __init__(self, client):
        self.client = client
        #: The number in front of the latest cell.
        self.last = 0

    def run(self, source, cell=None):
        """Runs a cell; returns (text printed or shown, error output or None)."""
        content = {
            "code": source,
            "silent": False,
            "store_history": True,
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": True,
        }
        message = self.client.session.msg("execute_request", content)
        if cell is not None:
            message["metadata"] = {"cellId": cell}
        self.client.shell_channel.send(message)
        texts, error = [], None
        while True:
            got = self.client.get_iopub_msg(timeout=PATIENCE_S)
            if got["parent_header"].get("msg_id") != message["header"]["msg_id"]:
                continue
            content = got["content"]
            if got["msg_type"] == "stream":
                texts.append(content["text"])
            elif got["msg_type"] == "execute_input":
                self.last = content["execution_count"]
            elif got["msg_type"] == "error":
                error = content
            elif got["msg_type"] == "status" and content["execution_state"] == "idle":
                return "".join(texts), error

    def ok(self, source, cell=None):
        """Runs a cell that must not fail; returns what it prints."""
        text, error = self.run(source, cell)
        assert error is None, "\n".join(error["traceback"])
        return text

    def ask(self, expression):
        """Returns a value, through a cell without an id."""
        return json.loads(self.ok(f"import json\nprint(json.dumps({expression}))"))

    def number(self):
        """Returns the number of the cell that runs next."""
        return self.last + 1


@pytest.fixture(scope="module")
def kernel():
    manager, client = start_new_kernel()
    notebook = Notebook(client)
    notebook.ok("%load_ext flowscope\nimport flowscope as fs, numpy as np", "imports")
    yield notebook
    client.stop_channels()
    manager.shutdown_kernel(now=True)


MODEL = """
x = fs.placeholder(fs.float32, [None, 3], name="x")
w = fs.get_variable("w", [3, {units}], initializer=fs.ones_initializer())
y = fs.{act}(fs.matmul(x, w), name="y")
"""
TRAIN = """
loss = fs.reduce_mean(y, name="loss")
train = fs.train.AdamOptimizer(0.1).minimize(loss)
"""
SESSION = """
sess = fs.Session()
sess.run(fs.global_variables_initializer())
"""


@pytest.fixture
def notebook(kernel):
    """The kernel with a new graph: three cells have run, "model", "train" and "session"."""
    kernel.ok("fs.reset_default_graph()")
    kernel.ok(MODEL.format(units=2, act="tanh"), "model")
    kernel.ok(TRAIN, "train")
    kernel.ok(SESSION, "session")
    kernel.ok("rows = np.ones((1, 3), np.float32)", "data")
    return kernel


def operations(kernel):
    return kernel.ask("[op.name for op in fs.get_default_graph().get_operations()]")


def test_the_same_again_makes_the_same_and_says_nothing(notebook):
    before = operations(notebook)
    notebook.ok("sess.run(train, {x: rows})")
    value = notebook.ask("sess.run(w).tolist()")
    for cell, source in (("model", MODEL.format(units=2, act="tanh")), ("train", TRAIN)):
        assert notebook.ok(source, cell) == ""
    assert operations(notebook) == before
    assert notebook.ask("sess.run(w).tolist()") == value
    notebook.ok("sess.run(train, {x: rows})")


def test_names_and_program_order_are_those_of_the_first_run(notebook):
    notebook.ok('v = fs.Variable(1.0, name="v")', "v")
    notebook.ok("put = v.assign(5.0)", "put")
    notebook.ok("after = v + 0.0", "after")
    notebook.ok("put = v.assign(7.0)", "put")
    notebook.ok("sess.run(v.initializer)")
    assert notebook.ask("[float(a) for a in sess.run([after, put])]") == [7.0, 7.0]
    assert notebook.ask("put.op.name") == "Assign"


def test_an_edited_cell_says_what_it_changed_and_others_follow_or_are_stale(notebook):
    notebook.ok('z = fs.identity(loss, name="z")', "later")
    number = notebook.number()
    text = notebook.ok(MODEL.format(units=2, act="exp"), "model")
    stale = notebook.ask('fs.get_default_graph().observer.find("train").label')
    assert text == f"cell {number} again: 6 operations kept, 1 changed; stale: cell {stale}\n"
    assert notebook.ask("float(sess.run(z, {x: 0 * rows}))") == 1.0
    _, error = notebook.run("sess.run(train, {x: rows})")
    assert error["ename"] == "StaleError"
    assert f"re-run cell {stale}" in error["evalue"]
    text = notebook.ok(TRAIN, "train")
    assert "stale" not in text
    notebook.ok("sess.run(train, {x: rows})")


def test_a_variable_of_another_shape_starts_anew_in_all_sessions(notebook):
    notebook.ok("other = fs.Session()\nother.run(fs.global_variables_initializer())")
    number = notebook.number()
    text = notebook.ok(MODEL.format(units=4, act="tanh"), "model")
    assert text.startswith(f"cell {number} again: ")
    assert "variable w re-initialised (float32[3,2] -> float32[3,4]); stale: cell" in text
    assert notebook.ask("[s.run(w).tolist() == [[1.0] * 4] * 3 for s in (sess, other)]") == [1, 1]


def test_slots_and_collections_follow(notebook):
    notebook.ok("sess.run(train, {x: rows})")
    before = notebook.ask("[v.name for v in fs.global_variables()]")
    slots = "[sess.run(v).tolist() for v in fs.global_variables() if 'Adam' in v.name]"
    values = notebook.ask(slots)
    notebook.ok(TRAIN, "train")
    notebook.ok(MODEL.format(units=2, act="tanh"), "model")
    assert notebook.ask("[v.name for v in fs.global_variables()]") == before
    assert notebook.ask(slots) == values
    notebook.ok("pass", "train")
    assert notebook.ask("[v.name for v in fs.global_variables()]") == ["w:0"]


def test_a_tensor_of_another_dtype_is_stale_where_it_is_held(notebook):
    notebook.ok("c = fs.constant(1.0, name='c')", "3")
    notebook.ok("held = c", "4")
    five = notebook.number()
    notebook.ok("d = c * 2.0", "5")
    notebook.ok("c = fs.constant(1, name='c')", "3")
    for use in ("sess.run(d)", "held + 1.0", "sess.run(held)"):
        _, error = notebook.run(use)
        assert error["ename"] == "StaleError"
        assert f"re-run cell {five}" in error["evalue"]


def test_a_line_put_before_others_shifts_names_and_says_so(notebook):
    notebook.ok("a = fs.constant(1.0) + 1.0", "first")
    number = notebook.number()
    notebook.ok("b = fs.negative(a)", "second")
    text = notebook.ok("new = fs.constant(5.0) + 5.0\na = fs.constant(1.0) + 1.0", "first")
    assert text.endswith(f"; stale: cell {number}\n")
    _, error = notebook.run("sess.run(b)")
    assert "which is not the value of a any more" in error["evalue"]
    notebook.ok("b = fs.negative(a)", "second")
    assert notebook.ask("float(sess.run(b))") == -2.0


def test_a_cell_that_fails_is_taken_back(notebook):
    before = operations(notebook)
    number = notebook.number()
    text, error = notebook.run(MODEL.format(units=4, act="exp") + "\n1 / 0", "model")
    assert error["ename"] == "ZeroDivisionError"
    assert text == f"cell {number} failed: what its earlier run built stands\n"
    assert operations(notebook) == before
    notebook.ok(MODEL.format(units=2, act="tanh"), "model")
    notebook.ok("sess.run(train, {x: rows})")


def test_a_cell_that_is_interrupted_while_it_trains_stands(notebook):
    source = TRAIN + 'more = fs.identity(loss, name="more")\n'
    interrupted = (
        "import os, signal\nfor i in range(1000000):\n"
        "    sess.run(train, {x: rows})\n"
        "    if i == 3: os.kill(os.getpid(), signal.SIGINT)\n"
    )
    _, error = notebook.run(source + interrupted, "train")
    assert error["ename"] == "KeyboardInterrupt"
    assert "more" in operations(notebook)
    notebook.ok("sess.run(more, {x: rows})")


def test_a_reset_starts_anew(kernel):
    source = "fs.reset_default_graph()\nx = fs.constant(1.0, name='x')"
    kernel.ok(source, "reset")
    kernel.ok("y = x + 1.0", "next")
    assert kernel.ok(source, "reset") == ""
    assert operations(kernel) == ["x"]
    assert kernel.ok("y = x + 1.0", "next") == ""
    assert operations(kernel) == ["x", "add/y", "add"]


def test_a_deleted_cell_is_forgotten_on_demand(notebook):
    number = notebook.number()
    notebook.ok("extra = fs.constant(1.0, name='extra')", "extra")
    assert "extra" in operations(notebook)
    text = notebook.ok(f"fs.forget_cell({number})\nNone", "forget")
    assert text == f"cell {number} again: 0 operations kept, 1 removed\n"
    assert "extra" not in operations(notebook)


def test_without_ids_cells_add_to_the_graph(kernel):
    kernel.ok("fs.reset_default_graph()")
    for _ in range(2):
        kernel.ok("x = fs.constant(1.0, name='x')")
    assert operations(kernel) == ["x", "x_1"]


def test_code_that_a_cell_runs_as_a_cell_belongs_to_it(kernel):
    kernel.ok("fs.reset_default_graph()")
    source = (
        "get_ipython().run_cell(\"a = fs.constant(1.0, name='a')\")\nb = fs.identity(a, name='b')"
    )
    for _ in range(2):
        kernel.ok(source, "outer")
    assert operations(kernel) == ["a", "b"]


def test_the_cell_that_loads_the_extension_counts():
    manager, client = start_new_kernel()
    try:
        notebook = Notebook(client)
        source = "%load_ext flowscope\nimport flowscope as fs\nx = fs.constant(1.0, name='x')"
        for _ in range(2):
            notebook.ok(source, "all")
        assert operations(notebook) == ["x"]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


LOOP = """
v = fs.get_variable("v", [2], fs.float64, fs.ones_initializer())

def body(i, x):
    return i + 1, fs.cond(i > 0, lambda: fs.tanh(x * v * {k}), lambda: x * v)

_, y = fs.while_loop(lambda i, x: i < 3, body, [0, fs.ones([2], fs.float64)])
"""


def test_loops_stay_where_their_cell_is_unchanged(kernel):
    kernel.ok("fs.reset_default_graph()", "reset")
    kernel.ok(LOOP.format(k=2.0), "loop")
    kernel.ok("g = fs.gradients(y, v)[0]", "gradient")
    kernel.ok("sess = fs.Session()\nsess.run(fs.global_variables_initializer())", "session")
    before = kernel.ask("sess.run([y, g])[1].tolist()")
    assert kernel.ok(LOOP.format(k=2.0), "loop") == ""
    assert kernel.ask("sess.run([y, g])[1].tolist()") == before
    number = kernel.number()
    told = kernel.ok(LOOP.format(k=0.5), "loop")
    assert told.startswith(f"cell {number} again: ")
    assert "stale: cell" in told
    _, error = kernel.run("sess.run(g)", "run")
    assert error["ename"] == "StaleError"
    kernel.ok("g = fs.gradients(y, v)[0]", "gradient")
    assert kernel.ask("sess.run(g).tolist()") != before
