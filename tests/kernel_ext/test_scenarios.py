"""What people do in notebooks, cell by cell, in a real IPython shell: edits of what is built."""

import re

import numpy as np
import pytest
from shells import MODEL, ROW, SESSION, value

import flowscope as fs

pytestmark = pytest.mark.slow


def test_a_line_in_the_middle_is_edited(model):
    assert value(model) == 12.0
    told = model.ok("m", MODEL.replace("fs.nn.relu(h)", "fs.negative(h)"))
    assert told == "6 operations kept, 1 changed, 1 new, 1 removed"
    assert model.marked == {"Neg", "y"}
    assert value(model) == -12.0


def test_a_line_in_the_middle_is_edited_and_keeps_its_name(model):
    source = MODEL.replace("fs.nn.relu(h)", "fs.{}(h, name='act')")
    model.ok("m", source.format("tanh"))
    assert model.ok("m", source.format("negative")) == "7 operations kept, 1 changed"
    assert model.marked == {"act"}
    assert value(model) == -12.0


def test_a_python_variable_is_renamed(model):
    model.ok("z", "z = y * 2.0")
    before = model.operations
    assert model.ok("m", MODEL.replace("h = ", "hidden = ").replace("(h", "(hidden")) == ""
    assert model.operations == before
    assert value(model, "z") == 24.0


def test_an_operation_is_renamed(model):
    model.ok("z", "z = y * 2.0")
    told = model.ok("m", MODEL.replace('"y"', '"total"'))
    assert told.startswith("7 operations kept, 1 new, 1 removed; stale: cell")
    model.fails("u", f"sess.run(z, {ROW})", fs.errors.StaleError)
    assert f"re-run cell {model.number('z')}" in str(model.error)
    assert "stale" not in model.ok("z", "z = y * 2.0")
    assert value(model, "z") == 24.0


def test_a_shape_is_changed(model):
    model.ok("z", "z = y * 2.0")
    told = model.ok("m", MODEL.replace("[3, 2]", "[3, 4]"))
    assert "variable w re-initialised (float32[3,2] -> float32[3,4])" in told
    assert value(model, "z") == 24.0  # 4 * 3 ones, twice
    model.ok("m", MODEL.replace("[None, 3]", "[2, 3]").replace("[3, 2]", "[3, 4]"))
    model.fails("u", f"sess.run(y, {ROW})", ValueError)
    assert "expected shape [2,3], got [1,3]" in str(model.error)
    assert model["sess.run(w).tolist()"] == np.ones((3, 4)).tolist()


def test_a_line_is_deleted_and_comes_back(model):
    without = MODEL.replace("h = fs.nn.relu(h)\n", "")
    assert model.ok("m", without) == "6 operations kept, 1 changed, 1 removed"
    assert "Relu" not in model.operations
    assert value(model) == 12.0
    assert model.ok("m", MODEL) == "6 operations kept, 1 changed, 1 new"
    assert value(model) == 12.0


def test_cells_are_run_out_of_order(notebook):
    train = "train = fs.train.AdamOptimizer(0.1).minimize(loss)"
    notebook.fails("l", "loss = fs.reduce_mean(y)", NameError)
    for cell, source in (
        ("m", MODEL),
        ("l", "loss = fs.reduce_mean(y)"),
        ("t", train),
        ("s", SESSION),
    ):
        notebook.ok(cell, source)
    run = f"for i in range(3): sess.run(train, {ROW})"
    notebook.ok("r", run)
    w, variables = notebook["sess.run(w)"], notebook.variables
    assert variables == ["w:0", "beta1_power:0", "beta2_power:0", "w/Adam:0", "w/Adam_1:0"]
    for cell, source in (("t", train), ("m", MODEL), ("l", "loss = fs.reduce_mean(y)")):
        assert notebook.ok(cell, source) == ""
    assert notebook.variables == variables
    np.testing.assert_array_equal(notebook["sess.run(w)"], w)
    told = notebook.ok("m", MODEL.replace("relu", "tanh"))
    assert told.endswith(f"stale: cell {notebook.number('t')}")
    for cell, source in (("l", "loss = fs.reduce_mean(y)"), ("t", train)):
        notebook.fails("r", run, fs.errors.StaleError)
        notebook.ok(cell, source)
    notebook.ok("r", run)
    assert notebook.variables == variables


def test_a_loop_makes_layers(notebook):
    source = """
x = h = fs.placeholder(fs.float32, [None, 4], name="x")
for _ in range({}):
    h = fs.layers.dense(h, 4, activation=fs.nn.relu)
"""
    notebook.ok("m", source.format(3))
    notebook.ok("s", SESSION)
    values = notebook["sess.run(fs.global_variables())"]
    assert "16 removed" in notebook.ok("m", source.format(2))
    assert notebook["h.name"] == "dense_1/Relu:0" and len(notebook.variables) == 4
    assert notebook.ok("m", source.format(4)) == "33 operations kept, 32 new"
    assert notebook.variables[-1] == "dense_3/bias:0"
    kept = notebook["sess.run(fs.global_variables()[:4])"]
    assert all(np.array_equal(a, b) for a, b in zip(kept, values, strict=False))
    notebook.ok("m", source.format(3))
    assert len(notebook.variables) == 6


def test_a_function_of_another_cell_is_redefined(notebook):
    layer = "def layer(x): return fs.{}(x * 3.0, name='act')"
    notebook.ok("f", layer.format("negative"))
    notebook.ok("u", "a = layer(fs.constant(2.0, name='c'))\nsess = fs.Session()")
    notebook.ok("f", layer.format("square"))
    assert notebook["sess.run(a)"] == -6.0  # as in Python: it was called before
    told = notebook.ok("u", "a = layer(fs.constant(2.0, name='c'))\nsess = fs.Session()")
    assert told == "3 operations kept, 1 changed"
    assert notebook.marked == {"act"}
    assert notebook["sess.run(a)"] == 36.0


def test_another_optimizer(model):
    train = "train = fs.train.{}.minimize(y)"
    step = f"sess.run(train, {ROW});"
    model.ok("t", train.format("AdamOptimizer(0.1)"))
    model.ok("s2", SESSION + step)
    slot = model["sess.run(fs.global_variables())"]
    assert model.ok("t", train.format("AdamOptimizer(0.2)")).endswith("kept, 1 changed")
    assert all(map(np.array_equal, model["sess.run(fs.global_variables())"], slot))
    model.ok("t", train.format("MomentumOptimizer(0.2, 0.9)"))
    assert model.variables == ["w:0", "w/Momentum:0"]
    model.fails("r", step, fs.errors.FailedPreconditionError)
    model.ok("i", "sess.run(fs.variables_initializer(fs.global_variables()[1:]));")
    w = model["sess.run(w)"]
    model.ok("r", step)
    assert not np.array_equal(model["sess.run(w)"], w)


def test_scopes(notebook):
    source = """
with fs.name_scope("{}"):
    with fs.variable_scope("enc", reuse=fs.AUTO_REUSE):
        w = fs.get_variable("w", [2])
    with fs.variable_scope("enc", reuse=fs.AUTO_REUSE):
        again = fs.get_variable("w", [2])
    y = fs.multiply(w, again, name="y")
"""
    notebook.ok("a", source.format("net"))
    notebook.ok("s", SESSION + "before = sess.run(w)")
    for _ in range(2):
        assert notebook.ok("a", source.format("net")) == ""
        assert notebook["w is again"] and notebook["y.name"] == "net/y:0"
    shared = "with fs.variable_scope('enc', reuse=True):\n    v = fs.get_variable('w', [2])"
    for _ in range(2):
        assert notebook.ok("b", shared) == ""
        assert notebook["v.handle is w.handle"]
    assert notebook.ok("a", source.format("body")).endswith("kept, 1 new, 1 removed")
    assert notebook["y.name"] == "body/y:0" and notebook.variables == ["enc/w:0"]
    np.testing.assert_array_equal(notebook["sess.run(v)"], notebook["before"])


def test_scopes_that_an_exception_leaves_are_closed(notebook):
    scopes = "fs.variable_scope('a'), fs.name_scope('b'), fs.device('/cpu:0')"
    source = f"with {scopes}:\n    q = fs.zeros([])"
    notebook.fails("a", source + "\n    1 / 0", ZeroDivisionError)
    notebook.ok("b", "p = fs.zeros([], name='p')")
    assert notebook["p.name"] == "p:0" and notebook["p.device"] == ""
    notebook.ok("a", source)
    assert notebook["q.name"] == "a/b/zeros:0"


LOOP = """
v = fs.get_variable("v", [], initializer=fs.ones_initializer())

def body(i, x):
    return i + 1, fs.cond(i > 0, lambda: x * v{factor}, lambda: x + 1.0)

_, y = fs.while_loop(lambda i, x: i < {count}, body, [0, 1.0])
"""


def test_loops_and_branches_with_gradients_in_a_later_cell(notebook):
    notebook.ok("w", LOOP.format(factor="", count=3))
    notebook.ok("g", "g = fs.gradients(y, v)[0]")
    notebook.ok("s", SESSION)
    assert notebook["sess.run([y, g])"] == [2.0, 4.0]
    notebook.ok("w", LOOP.format(factor=" * 2.0", count=3))
    notebook.fails("r", "sess.run(g)", fs.errors.StaleError)
    notebook.ok("g", "g = fs.gradients(y, v)[0]")
    assert notebook["sess.run([y, g])"] == [8.0, 16.0]
    notebook.ok("w", LOOP.format(factor=" * 2.0", count=4))
    assert notebook["sess.run(y)"] == 16.0
    notebook.ok("g", "g = fs.gradients(y, v)[0]")
    before = notebook.operations
    assert notebook.ok("w", LOOP.format(factor=" * 2.0", count=4)) == ""
    assert notebook.ok("g", "g = fs.gradients(y, v)[0]") == ""
    assert notebook.operations == before
    assert notebook["sess.run([y, g])"] == [16.0, 48.0]


def test_queues(notebook):
    source = """
q = fs.FIFOQueue({size}, [fs.float32], shapes=[[]], name="q")
put, get = q.enqueue([1.0]), q.dequeue()
"""
    notebook.ok("q", source.format(size=5))
    notebook.ok("s", "sess = fs.Session()\nfor _ in range(2): sess.run(put)")
    assert notebook.ok("q", source.format(size=5)) == ""
    assert notebook["sess.run(q.size())"] == 2
    assert notebook.ok("q", source.format(size=9)) == "3 operations kept, 1 changed"
    assert notebook["sess.run(q.size())"] == 0
    notebook.ok("r", "sess.run(put)")
    assert notebook["sess.run(get)"] == 1.0


def test_savers(model, tmp_path):
    model.shell.user_ns["path"] = str(tmp_path / "model")
    model.ok("c", "saver = fs.train.Saver()")
    model.ok("k", "prefix = saver.save(sess, path)\nsess.run(w.initializer)")
    before = model.operations
    assert model.ok("c", "saver = fs.train.Saver()") == ""
    assert model.operations == before
    model.ok("r", "saver.restore(sess, prefix);")
    assert value(model) == 12.0
    model.ok("m", MODEL.replace("[3, 2]", "[3, 4]"))
    model.fails("r", "saver.restore(sess, prefix)", fs.errors.StaleError)
    assert f"re-run cell {model.number('c')}" in str(model.error)
    assert "stale" not in model.ok("c", "saver = fs.train.Saver()")
    model.fails("r", "saver.restore(sess, prefix)", fs.errors.OpError)
    assert "w" in str(model.error) and "[3,4]" in str(model.error)
    model.ok("k", "prefix = saver.save(sess, path)\nsaver.restore(sess, prefix);")


def test_a_layer_that_later_cells_call(notebook):
    cells = {"d": "d = fs.layers.Dense(2, name='d')", "y": "y = d(fs.ones([1, 3]))",
             "z": "z = d(fs.zeros([1, 3]))"}  # fmt: skip
    for cell, source in cells.items():
        notebook.ok(cell, source)
    notebook.ok("s", SESSION)
    before, values = notebook.operations, notebook["sess.run(fs.trainable_variables())"]
    for cell in ("y", "d", "y", "z"):
        assert notebook.ok(cell, cells[cell]) == ""
    assert notebook.operations == before and len(notebook.variables) == 2
    assert all(map(np.array_equal, notebook["sess.run(fs.trainable_variables())"], values))


RNN = """
x = fs.placeholder(fs.float32, [None, 5, 3], name="x")
out, _ = fs.nn.dynamic_rnn(fs.nn.rnn_cell.LSTMCell({units}), x, dtype=fs.float32)
loss = fs.reduce_mean(fs.square(fs.layers.dense(out[:, -1], 2)))
"""


def test_a_recurrent_network(notebook):
    train = "train = fs.train.AdamOptimizer(0.01).minimize(loss)"
    step = "sess.run(train, {x: np.ones((2, 5, 3))});"
    notebook.ok("m", RNN.format(units=4))
    notebook.ok("t", train)
    notebook.ok("s", SESSION + step)
    before, values = notebook.operations, notebook["sess.run(fs.global_variables())"]
    assert notebook.ok("m", RNN.format(units=4)) == notebook.ok("t", train) == ""
    assert notebook.operations == before
    assert all(map(np.array_equal, notebook["sess.run(fs.global_variables())"], values))
    told = notebook.ok("m", RNN.format(units=6))
    lost = re.findall(r"variable (\S+) re-initialised", told)
    assert lost == ["rnn/lstm_cell/kernel", "rnn/lstm_cell/bias", "dense/kernel"]
    notebook.fails("r", step, fs.errors.StaleError)
    told = notebook.ok("t", train)
    assert len(re.findall(r"variable \S+/Adam(?:_1)? re-initialised", told)) == 6
    notebook.ok("r", step)
