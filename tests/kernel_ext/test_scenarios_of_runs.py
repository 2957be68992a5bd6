"""What people do in notebooks, cell by cell, in a real IPython shell: failures, graphs, more."""

import os
import signal
import threading
import warnings

import numpy as np
import pytest
from shells import MODEL, ROW, SESSION, value

import flowscope as fs

pytestmark = pytest.mark.slow


def test_a_cell_that_does_not_build_leaves_all_as_it_was(model):
    before = model.operations
    broken = {
        MODEL + "z = fs.matmul(y, y)": fs.errors.InvalidArgumentError,
        MODEL + "z ==": SyntaxError,
        MODEL.replace("relu", "nope"): AttributeError,
        MODEL + "sess.run(y, {x: [[1.0, 1.0]]})": ValueError,
        MODEL.replace("y =", "raise KeyboardInterrupt\ny ="): KeyboardInterrupt,
    }
    for source, error in broken.items():
        model.fails("m", source, error)
        assert model.operations == before
        assert value(model) == 12.0
    assert model.ok("m", MODEL) == ""


def test_a_cell_that_fails_after_a_step_stands(model):
    edited = MODEL.replace("fs.nn.relu", "fs.negative")
    text = model.fails("m", edited + f"print(sess.run(y, {ROW}))\n1 / 0", ZeroDivisionError)
    assert text.startswith("-12.0\n")
    assert value(model) == -12.0
    assert "1 removed" in model.ok("m", MODEL)
    assert value(model) == 12.0


def test_a_long_step_is_interrupted_and_the_cell_run_again(notebook):
    notebook.ok("a", "long = fs.while_loop(lambda i: i < 2**31 - 2, lambda i: i + 1, [0])")
    notebook.ok("s", "sess = fs.Session()")
    source = "w = fs.get_variable('w', [2])\nsess.run(w.initializer);"
    sess = notebook["sess"]

    def interrupt():
        while not sess.frames():  # until the loop runs
            pass
        os.kill(os.getpid(), signal.SIGINT)

    watcher = threading.Thread(target=interrupt)
    watcher.start()
    notebook.fails("i", source + "\nsess.run(long)", KeyboardInterrupt)
    watcher.join()
    assert notebook.ok("i", source) == ""
    assert notebook.variables == ["w:0"]
    assert notebook["sess.run(w).shape"] == (2,)


def test_two_graphs(notebook):
    source = """
with first.as_default():
    a = fs.get_variable("a", [2], initializer=fs.ones_initializer())
    b = a {op} 2.0
with second.as_default():
    c = fs.constant({c}, name="c")
"""
    notebook.ok("g", "first, second = fs.Graph(), fs.Graph()")
    notebook.ok("d", source.format(op="*", c=1.0))
    notebook.ok("s", "one, two = fs.Session(graph=first), fs.Session(graph=second)")
    notebook.ok("i", "one.run(a.initializer);")
    run = "[float(one.run(b)[0]), float(two.run(c))]"
    assert notebook[run] == [2.0, 1.0]
    assert notebook.ok("d", source.format(op="*", c=1.0)) == ""
    assert notebook.ok("d", source.format(op="+", c=1.0)) == "4 operations kept, 2 new, 2 removed"
    assert notebook[run] == [3.0, 1.0]
    assert notebook.ok("d", source.format(op="+", c=4.0)) == "0 operations kept, 1 changed"
    assert notebook[run] == [3.0, 4.0]
    notebook.ok("g", "first, second = fs.Graph(), fs.Graph()")
    assert notebook[run] == [3.0, 4.0]  # the old graphs are left alone
    notebook.ok("d", source.format(op="*", c=1.0))
    notebook.fails("r", "one.run(b)", fs.errors.OpError)
    assert "another graph" in str(notebook.error)


def test_one_cell_does_it_all(notebook):
    source = """
x = fs.placeholder(fs.float32, [None, 3], name="x")
loss = fs.reduce_mean(fs.layers.dense(x, {units}, name="d") ** 2)
step = fs.train.get_or_create_global_step()
rate = fs.train.exponential_decay({rate}, step, 10, 0.9)
train = fs.train.AdamOptimizer(rate).minimize(loss, global_step=step)
with fs.Session() as sess:
    sess.run(fs.global_variables_initializer())
    for _ in range(3):
        sess.run(train, {{x: np.ones((2, 3))}})
    count = sess.run(step)
"""
    reports = []
    for units, rate in ((2, 0.1), (2, 0.1), (2, 0.2), (3, 0.2), (2, 0.1)):
        reports.append(notebook.ok("a", source.format(units=units, rate=rate)))
        assert notebook["count"] == 3 and len(notebook.variables) == 9
        if len(reports) == 1:
            before = notebook.operations
    assert reports[:2] == ["", ""]
    assert reports[2].endswith("operations kept, 1 changed")
    assert notebook.operations == before


def test_random_numbers_stay_where_lines_are_put_before(notebook):
    source = "fs.set_random_seed(1)\n{}a, b = fs.random_normal([2]), fs.random_normal([2])"
    notebook.ok("a", source.format(""))
    first = notebook["fs.Session().run([a, b])"]
    for line in ("", "q = fs.ones([])\n"):
        notebook.ok("a", source.format(line))
        np.testing.assert_array_equal(notebook["fs.Session().run([a, b])"], first)


def test_a_model_as_a_class(notebook):
    source = """
class Net:
    def __init__(self):
        self.w = fs.get_variable("w", [2], initializer=fs.ones_initializer())
    def __call__(self, x):
        return x * self.w * {k}
net = Net()
"""
    notebook.ok("c", source.format(k=2.0))
    notebook.ok("y", "y = net(fs.constant([1.0, 2.0]))")
    notebook.ok(
        "s", "sess = fs.Session()\nsess.run(net.w.initializer)\nsess.run(net.w.assign([3.0, 3.0]));"
    )
    assert notebook.ok("c", source.format(k=4.0)) == ""
    assert notebook["sess.run([y, net.w])[0].tolist()"] == [6.0, 12.0]
    assert notebook.ok("y", "y = net(fs.constant([1.0, 2.0]))").endswith("kept, 1 changed")
    assert notebook["sess.run(y).tolist()"] == [12.0, 24.0]


def test_a_layer_is_put_before_others(notebook):
    source = "x = fs.ones([1, 3])\n{}h = fs.layers.dense(x, 4)\nh = fs.layers.dense(h, 4)"
    notebook.ok("a", source.format(""))
    notebook.ok("b", "o = fs.layers.dense(h, 1)")
    notebook.ok("s", SESSION)
    told = notebook.ok("a", source.format("x = fs.layers.dense(x, 3)\n"))
    assert "variable dense/kernel re-initialised (float32[3,4] -> float32[3,3])" in told
    notebook.fails("r", "sess.run(o)", fs.errors.StaleError)
    assert "which is not the value of h any more" in str(notebook.error)
    notebook.ok("b", "o = fs.layers.dense(h, 1)")
    names = [name for name in notebook.variables if "kernel" in name]
    assert names == [f"dense{n}/kernel:0" for n in ("", "_1", "_3", "_2")]
    notebook.fails("r", "sess.run(o)", fs.errors.FailedPreconditionError)
    notebook.ok("s", SESSION + "sess.run(o);")


def test_a_cell_is_copied_and_a_variable_is_there_twice(notebook):
    notebook.ok("a", "v = fs.get_variable('v', [2])")
    notebook.fails("b", "v = fs.get_variable('v', [2])", ValueError)
    assert f"made in cell {notebook.number('a')}, line 1" in str(notebook.error)
    notebook.ok("a", "v = fs.get_variable('v', [2])")
    assert notebook.variables == ["v:0"]


@pytest.mark.parametrize("magic", ["%%time", "%%capture out", "%%timeit -n1 -r1", "%%prun -q"])
def test_magics_run_as_the_cell_that_they_stand_in(notebook, magic):
    source = f"{magic}\nv = fs.Variable(1.0, name='v')\nu = fs.exp(v, name='u')"
    for _ in range(2):
        assert notebook.ok("a", source) == ""
        assert notebook.operations == ["v/initial_value", "v", "v/Assign", "v/read", "u"]


def test_scripts_run_as_the_cell_that_runs_them(notebook, tmp_path):
    (tmp_path / "part.py").write_text("k = fs.constant(1.0, name='k')\n")
    for _ in range(2):
        assert notebook.ok("a", f"%run -i {tmp_path}/part.py") == ""
        assert notebook.operations == ["k"]


def test_a_loop_of_slices_is_warned_about_once(notebook):
    notebook.ok("a", "a = fs.constant(np.arange(40.0))\nsess = fs.Session()")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):  # run again, the graph does not grow
            notebook.ok("few", "for i in range(15): sess.run(a[i])")
        assert caught == []
        notebook.ok("many", "if True:\n    for i in range(40): sess.run(a[i])")
    (warning,) = caught
    assert warning.category is fs.GraphGrowthWarning and warning.lineno == 2
    assert "before the loop" in str(warning.message)
    assert notebook["sess.plan_cache.misses"] >= 40


def test_python_functions(notebook):
    source = """
def batch(n):
    seen.append(int(n))
    return np.full(2, {k}, np.float32) * scale
p = fs.py_func(batch, [fs.constant(2)], fs.float32, name="p")
p.set_shape([2])
q = p + 1.0
"""
    notebook.ok("k", "scale, seen = np.float32(2), []")
    notebook.ok("p", source.format(k=3.0))
    notebook.ok("s", "sess = fs.Session()\nsess.run(q);")
    misses = notebook["sess.plan_cache.misses"]
    assert notebook.ok("p", "# a comment\n" + source.format(k=3.0)) == ""
    assert notebook["sess.run(q).tolist()"] == [7.0, 7.0]
    assert notebook["sess.plan_cache.misses"] == misses
    assert notebook["seen"] == [2, 2]
    assert notebook.ok("p", source.format(k=4.0)).endswith("kept, 1 changed")
    assert notebook.marked == {"p"}
    assert notebook["sess.run(q).tolist()"] == [9.0, 9.0]
    notebook.ok("k", "scale, seen = np.float32(10), []")
    assert notebook["sess.run(q).tolist()"] == [41.0, 41.0]  # as in Python: it reads the global
    assert notebook.ok("p", source.format(k=4.0)).endswith("kept, 1 changed")


GRADIENTS = """
@fs.RegisterGradient("Scaled")
def _scaled(op, g):
    return g * {registered}

@fs.custom_gradient
def clipped(a):
    e = fs.exp(a)
    return e, lambda dy: fs.minimum(dy * e, {custom})

x = fs.constant(1.0, name="x")
with fs.get_default_graph().gradient_override_map({{"Sin": "Scaled"}}):
    y, z = fs.sin(x), clipped(x)
"""


def test_gradients_of_ones_own(notebook):
    differentiate = "g, h = fs.gradients(y, x)[0], fs.gradients(z, x)[0]"
    notebook.ok("a", GRADIENTS.format(registered=2.0, custom=0.5))
    notebook.ok("g", differentiate)
    notebook.ok("s", "sess = fs.Session()")
    assert notebook["sess.run([g, h])"] == [2.0, 0.5]
    assert notebook.ok("a", GRADIENTS.format(registered=2.0, custom=0.5)) == ""
    assert notebook["sess.run([g, h])"] == [2.0, 0.5]
    for registered, custom in ((3.0, 0.5), (3.0, 0.25)):
        told = notebook.ok("a", GRADIENTS.format(registered=registered, custom=custom))
        assert told.endswith(f"stale: cell {notebook.number('g')}")
        notebook.fails("r", "sess.run([g, h])", fs.errors.StaleError)
        notebook.ok("g", differentiate)
        assert notebook["sess.run([g, h])"] == [registered, custom]


def test_a_reset_cell_is_run_again_in_the_middle(model):
    model.ok("reset", "fs.reset_default_graph()")
    model.ok("m", MODEL)
    assert model.operations[0] == "x"
    model.fails("r", f"sess.run(y, {ROW})", fs.errors.OpError)
    assert "another graph" in str(model.error)
    model.ok("s", SESSION)
    assert value(model) == 6.0
