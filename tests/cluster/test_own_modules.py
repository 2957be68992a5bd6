"""Modules of the user's reach workers that cannot import them; what cannot go is named."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from local_clusters import wait_until
from own_folders import Folder

import flowscope as fs
from flowscope.cluster.shipping.own_modules import is_own, needed
from flowscope.cluster.shipping.sent_modules import SentModule, SentModules, digest_of
from flowscope.errors import FailedPreconditionError, InvalidArgumentError

WORKER = "/job:worker/task:0"


@pytest.fixture
def folder(tmp_path):
    made = Folder(tmp_path / "beside_the_notebook")
    made.path.mkdir()
    yield made
    made.forget()


def on_worker(cluster, build, *inputs):
    """What a function of tensors gives on a worker."""
    with fs.Graph().as_default(), fs.device(WORKER):
        xs = [fs.placeholder(fs.float64, np.shape(x)) for x in inputs]  # constants are folded
        y = build(*xs)
        with fs.Session(cluster) as sess:
            return sess.run(y, dict(zip(xs, inputs, strict=True)))


def sent(cluster):
    """The names of the modules that the log of Dask's scheduler says were sent."""
    events = cluster.dask._client.get_events("flowscope")
    return [n for _, e in events if e.get("event") == "modules sent" for n in e["modules"]]


OP = '''
from dataclasses import dataclass

import flowscope as fs
from flowscope.ops.core.build import apply


class {name}Error(Exception):
    """Has an argument that pickle does not know of."""

    def __init__(self, code, *, why):
        super().__init__(f"code {{code}}: {{why}}")


@dataclass(frozen=True)
class {name}(fs.Op):
    """{factor} times x."""

    factor: float = {factor}

    def infer(self, x):
        return x.like()

    def grad(self, g, y, x):
        return (apply({name}(), g),)

    def kernel(self, xp, x):
        if xp.any(x < 0):
            raise {name}Error(7, why="negative")
        return x * self.factor


def call(x):
    return apply({name}(), x)
'''


@pytest.mark.slow
def test_an_op_with_its_gradient_goes_along(cluster, folder):
    folder.write(own_op=OP.format(name="OwnTwice", factor=2.0))
    own = folder.load("own_op")
    np.testing.assert_array_equal(on_worker(cluster, own.call, [1.0, 2.0]), [2.0, 4.0])
    np.testing.assert_array_equal(
        on_worker(cluster, lambda x: fs.gradients(own.call(x), x)[0], [1.0, 2.0]), [2.0, 2.0]
    )
    wait_until(lambda: "own_op" in sent(cluster))
    assert sent(cluster).count("own_op") == 1


@pytest.mark.slow
def test_an_exception_of_an_own_class_does_not_hide_what_it_says(cluster, folder):
    folder.write(own_failing=OP.format(name="OwnFailing", factor=3.0))
    own = folder.load("own_failing")
    with pytest.raises(fs.errors.OpError) as told:
        on_worker(cluster, own.call, [-1.0])
    text = str(told.value)
    assert "OwnFailingError: code 7: negative" in text
    assert f"{WORKER.replace('/task', '/replica:0/task')}/device:CPU:0, made in" in text
    assert "made in own_failing.py, line" in text


FUNCTIONS = {
    "own_package/helpers": "import threading\nlock = threading.Lock()\ndef add(x): return x + 1\n",
    "own_package/lazy": "def double(x):\n    from own_late import TWO\n    return x * TWO\n",
    "own_package/__init__": "from .helpers import add\n",
    "own_late": "TWO = 2\n",
    "own_functions": """
        import functools
        import own_package
        from own_package import helpers, lazy
        count = 0
        def f(x):
            global count
            count += 1
            with helpers.lock:
                return own_package.add(lazy.double(x))
        def g(x, y): return f(x) * y
        half = functools.partial(g, y=0.5)
        class Scale:
            def __call__(self, x): return f(x)
            def method(self, x): return f(x) + 1
        """,
}


@pytest.fixture
def functions(folder):
    folder.write({name: textwrap.dedent(text) for name, text in FUNCTIONS.items()})
    with folder.found():
        yield folder.load("own_functions")


@pytest.mark.slow
def test_functions_go_along_with_the_modules_that_they_import(cluster, functions):
    for function in (functions.f, functions.half, functions.Scale(), functions.Scale().method):
        found = on_worker(cluster, lambda x, f=function: fs.py_func(f, [x], fs.float64), [1.0, 2.0])
        np.testing.assert_array_equal(found, function(np.array([1.0, 2.0])))


@pytest.mark.slow
def test_a_function_of_a_cell_uses_an_own_module(cluster, functions):
    cell = {"__name__": "__main__", "own_functions": functions}
    exec("def f(x):\n    import own_late\n    return own_functions.f(x) + own_late.TWO", cell)
    found = on_worker(cluster, lambda x: fs.py_func(cell["f"], [x], fs.float64), [1.0])
    np.testing.assert_array_equal(found, [5.0])


@pytest.mark.slow
def test_functions_in_branches_and_loops_go_along(cluster, functions):
    def f(x):
        y = fs.py_func(functions.f, [x], fs.float64)
        y.set_shape(x.shape)
        return y

    def build(x):
        y = fs.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, f(v)), [0, x])[1]
        return fs.cond(y[0] > 0, lambda: f(y), lambda: y)

    np.testing.assert_array_equal(on_worker(cluster, build, [1.0]), [31.0])


GRADIENTS = """
import flowscope as fs

@fs.custom_gradient
def double(x):
    y = fs.py_func(_double, [x], fs.float64)
    y.set_shape(x.shape)

    def grad(g):
        z = fs.py_func(_halve, [g], fs.float64)
        z.set_shape(g.shape)
        return z

    return y, grad

def _double(x): return x * 2
def _halve(g): return g / 2  # not what it is, so that one sees who has computed it
def square(x): return x * x
"""


@pytest.mark.slow
def test_gradient_functions_go_along(cluster, folder):
    folder.write(own_gradients=GRADIENTS)
    own = folder.load("own_gradients")

    def loop(x):
        return fs.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, own.double(v)), [0, x])[1]

    def squared(x):
        return fs.py_function(own.square, [x], fs.float64)

    for build, y, slope in ((own.double, 4.0, 0.5), (squared, 4.0, 4.0), (loop, 16.0, 0.125)):
        assert on_worker(cluster, build, 2.0) == y
        assert on_worker(cluster, lambda x, b=build: fs.gradients(b(x), x)[0], 2.0) == slope


@pytest.mark.slow
def test_an_op_that_was_made_before_its_module_was_loaded_anew_stays_as_it_was(cluster, folder):
    folder.write(own_before=OP.format(name="OwnBefore", factor=2.0))
    own = folder.load("own_before")

    def build(x):
        y = own.call(x)
        folder.write(own_before=OP.format(name="OwnBefore", factor=5.0))
        folder.load("own_before")
        return y + 10.0 * own.call(x)

    assert on_worker(cluster, build, 1.0) == 2.0 + 50.0


@pytest.mark.slow
def test_a_breakpoints_condition_goes_along(cluster, folder, graph, aside):
    folder.write(
        own_condition="import own_bound\ndef is_big(v): return v.max() > own_bound.BOUND\n",
        own_bound="BOUND = 3.0\n",
    )
    with folder.found():
        own = folder.load("own_condition")
    x = fs.placeholder(fs.float64, [2])
    with fs.device(WORKER):
        y = fs.multiply(x, 2.0, name="doubled")
    with fs.Session(cluster) as sess:
        sess.debug.break_after("doubled", when=own.is_big)
        assert sess.run(y, {x: [0.5, 1.0]}).tolist() == [1.0, 2.0]
        running = aside(sess.run, y, {x: [1.0, 2.0]})
        stop = sess.debug.wait()
        assert stop.breakpoint.hits == 1
        stop.resume()
        assert running.result(60.0).tolist() == [2.0, 4.0]


@pytest.mark.slow
def test_an_op_of_a_cell_goes_along_with_its_kernel(cluster):
    cell = {"__name__": "__main__"}
    exec(textwrap.dedent(OP.format(name="CellTwice", factor=2.0)), cell)
    fs.register_kernel(cell["CellTwice"], "CPU")(lambda op, xp, x: x * op.factor + 1)
    np.testing.assert_array_equal(on_worker(cluster, cell["call"], [1.0]), [3.0])


@pytest.mark.slow
def test_what_was_edited_and_loaded_anew_is_sent_anew(cluster, folder):
    folder.write(own_edited="import own_part\ndef f(x): return x + own_part.N\n", own_part="N = 1")
    with folder.found():
        own = folder.load("own_edited")

    def found():
        return on_worker(cluster, lambda x: fs.py_func(own.f, [x], fs.float64), 0.0)

    assert found() == 1.0
    folder.write(own_part="N = 20")
    folder.load("own_part")
    assert found() == 20.0
    folder.write(own_edited="import own_part\ndef f(x): return x - own_part.N\n")
    folder.load("own_edited")
    assert found() == -20.0


@pytest.mark.slow
def test_what_was_edited_and_not_loaded_anew_is_refused(cluster, folder):
    folder.write(own_stale="def f(x): return x + 1\n")
    own = folder.load("own_stale")
    folder.write(own_stale="def f(x): return x + 2\n")
    with pytest.raises(FailedPreconditionError, match=r"'own_stale'.*importlib\.reload") as told:
        on_worker(cluster, lambda x: fs.py_func(own.f, [x], fs.float64), 0.0)
    assert 'node "PyFunc"' in str(told.value) and "test_own_modules.py" in str(told.value)
    folder.load("own_stale")
    assert on_worker(cluster, lambda x: fs.py_func(own.f, [x], fs.float64), 0.0) == 2.0


@pytest.mark.slow
def test_a_worker_that_was_started_again_gets_it_again(cluster, folder, graph):
    folder.write(own_again="def f(x): return x + 5\n")
    own = folder.load("own_again")
    with fs.device(WORKER):
        y = fs.py_func(own.f, [fs.constant(1.0)], fs.float32)
    with fs.Session(cluster) as sess:
        assert sess.run(y) == 6.0
        task = cluster.task("/job:worker/replica:0/task:0")
        os.kill(task.pid, signal.SIGKILL)
        wait_until(lambda: any(t.name == task.name and t.pid != task.pid for t in cluster.tasks))
        assert sess.run(y) == 6.0
    wait_until(lambda: sent(cluster).count("own_again") == 2)


OTHER_CLIENT = """
import sys
import flowscope as fs

if __name__ == "__main__":
    sys.path.insert(0, sys.argv[2])
    import own_of_two
    with fs.cluster.connect(sys.argv[1]) as cluster:
        x = fs.placeholder(fs.float64, [])
        with fs.device("/job:worker/task:0"):
            y = own_of_two.call(x)
        with fs.Session(cluster) as sess:
            print(sess.run(y, {x: 1.0}))
"""


@pytest.mark.slow
def test_two_clients_have_modules_and_ops_of_one_name(cluster, folder, tmp_path, source_env):
    folder.write(own_of_two=OP.format(name="OwnOfTwo", factor=2.0))
    own = folder.load("own_of_two")
    theirs = Folder(tmp_path / "theirs")
    theirs.path.mkdir()
    theirs.write(own_of_two=OP.format(name="OwnOfTwo", factor=5.0), client=OTHER_CLIENT)
    command = [sys.executable, str(theirs.path / "client.py"), cluster.target, str(theirs.path)]
    with fs.Graph().as_default(), fs.Session(cluster) as sess:
        x = fs.placeholder(fs.float64, [])
        with fs.device(WORKER):
            y = own.call(x)
        assert sess.run(y, {x: 1.0}) == 2.0
        told = subprocess.run(command, env=source_env, capture_output=True, text=True, check=True)
        assert told.stdout.strip() == "5.0"
        assert sess.run(y, {x: 1.0}) == 2.0
        assert on_worker(cluster, own.call, 1.0) == 2.0


def _loaded_from(name):
    return type(sys.modules[name].__spec__.loader).__name__


@pytest.mark.slow
def test_what_a_worker_can_import_itself_is_not_sent(cluster, folder):
    """As long as it is the same: where the client has another version, that is what counts."""
    folder.write(own_shared="def f(x): return x + 1\n")
    own = folder.load("own_shared")
    client, worker = cluster.dask._client, cluster.tasks[0].dask_address
    client.run(lambda path: sys.path.insert(0, path), str(folder.path), workers=[worker])
    try:
        assert on_worker(cluster, lambda x: fs.py_func(own.f, [x], fs.float64), 0.0) == 1.0
        assert "own_shared" not in sent(cluster)
        by = client.run(_loaded_from, "own_shared", workers=[worker])
        assert by[worker] == "SourceFileLoader"
        folder.write(own_shared="def f(x): return x + 2\n")
        folder.load("own_shared")
        assert on_worker(cluster, lambda x: fs.py_func(own.f, [x], fs.float64), 0.0) == 2.0
        wait_until(lambda: sent(cluster).count("own_shared") == 1)
    finally:
        client.run(lambda path: sys.path.remove(path), str(folder.path), workers=[worker])


@pytest.mark.slow
def test_an_installed_module_that_a_worker_lacks_is_named(cluster, tmp_path):
    folder = Folder(tmp_path / "site-packages")
    folder.path.mkdir()
    folder.write(installed_here="def f(x): return x\n")
    module = folder.load("installed_here")
    try:
        with pytest.raises(FailedPreconditionError) as told:
            on_worker(cluster, lambda x: fs.py_func(module.f, [x], fs.float64, name="uses"), 0.0)
    finally:
        folder.forget()
    text = str(told.value)
    assert "there is no module 'installed_here' here: install it" in text
    assert 'node "uses", on /job:worker/replica:0/task:0' in text
    assert "test_own_modules.py" in text


@pytest.mark.slow
def test_a_module_that_fails_where_it_is_imported_is_named(cluster, folder, monkeypatch):
    monkeypatch.setenv("ONLY_THE_CLIENT_HAS", "1")
    folder.write(own_asking="import os\nos.environ['ONLY_THE_CLIENT_HAS']\ndef f(x): return x\n")
    own = folder.load("own_asking")
    with pytest.raises(FailedPreconditionError) as told:
        on_worker(cluster, lambda x: fs.py_func(own.f, [x], fs.float64, name="asks"), 0.0)
    text = str(told.value)
    assert (
        "the module 'own_asking' cannot be imported here: KeyError: 'ONLY_THE_CLIENT_HAS'" in text
    )
    assert 'node "asks", on /job:worker/replica:0/task:0' in text
    assert isinstance(told.value.__cause__, KeyError)


@pytest.mark.slow
def test_a_module_that_a_function_imports_late_and_nobody_sends_is_named(cluster, folder):
    folder.write(own_late_one="def f(x):\n    __import__('not_to_be_seen')\n    return x\n")
    own = folder.load("own_late_one")
    with pytest.raises(fs.errors.OpError) as told:
        on_worker(cluster, lambda x: fs.py_func(own.f, [x], fs.float64, name="late"), 0.0)
    text = str(told.value)
    assert "ModuleNotFoundError" in text and "no module 'not_to_be_seen': install it there" in text
    assert 'node "late", on /job:worker/replica:0/task:0' in text


@pytest.mark.slow
def test_what_cannot_be_sent_is_refused_at_its_line(cluster):
    import threading

    lock = threading.Lock()
    with pytest.raises(InvalidArgumentError) as told:
        on_worker(cluster, lambda x: fs.py_func(lambda v: lock and v, [x], fs.float64), 0.0)
    text = str(told.value)
    assert "cannot pickle '_thread.lock' object" in text
    assert 'node "PyFunc"' in text and "test_own_modules.py" in text


@pytest.mark.slow
def test_a_module_without_a_text_is_refused_at_the_line_that_needs_it(cluster, folder):
    folder.write(own_compiled="def f(x): return x\n")
    command = [sys.executable, "-m", "compileall", "-q", "-b", str(folder.path)]
    subprocess.run(command, check=True)
    (folder.path / "own_compiled.py").unlink()
    own = folder.load("own_compiled")
    with pytest.raises(FailedPreconditionError) as told:
        on_worker(cluster, lambda x: fs.py_func(own.f, [x], fs.float64), 0.0)
    text = str(told.value)
    assert "the module 'own_compiled'" in text and "has no source text" in text
    assert "test_own_modules.py" in text


def _chain(rng, count, version):
    """Texts of modules, each of which imports some of those before it, in one way or another."""
    made = {}
    for i in range(count):
        lines, terms = [], [f"x * {i + 1}"]
        for j in rng.sample(range(i), min(i, 2)):
            way = rng.randrange(3)
            lines.append(["import rnd{0}", "from rnd{0} import f as f{0}", ""][way].format(j))
            late = f"__import__('operator').attrgetter('f')(_late{j}())(x)"
            terms.append([f"rnd{j}.f(x)", f"f{j}(x)", late][way])
            if way == 2:
                lines.append(f"def _late{j}():\n    import rnd{j}\n    return rnd{j}")
        body = " + ".join([*terms, str(version[i])])
        made[f"rnd{i}"] = "\n".join([*lines, f"def f(x):\n    return {body}\n"])
    return made


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_edits_of_random_modules_give_there_what_they_give_here(cluster, folder, seed):
    rng = random.Random(seed)
    count, version = 4, [0, 0, 0, 0]
    with folder.found():
        for _ in range(5):
            state = rng.getstate()
            rng.seed(seed)
            texts = _chain(rng, count, version)
            rng.setstate(state)
            folder.write(**texts)
            loaded = [folder.load(f"rnd{i}") for i in range(count)]
            which = loaded[rng.randrange(count)]
            here = which.f(np.float64(3.0))
            assert (
                on_worker(cluster, lambda x, m=which: fs.py_func(m.f, [x], fs.float64), 3.0) == here
            )
            version[rng.randrange(count)] = rng.randrange(100)


def test_which_modules_are_the_users(folder, tmp_path, monkeypatch):
    installed = Folder(tmp_path / "lib" / "python3" / "site-packages")
    installed.path.mkdir(parents=True)
    installed.write(of_a_distribution="")
    folder.write({"editable/__init__": "", "editable/part": ""}, beside="import of_a_distribution")
    monkeypatch.syspath_prepend(str(installed.path))
    monkeypatch.syspath_prepend(str(folder.path))
    for name in ("beside", "editable", "editable.part", Folder.__module__):
        assert is_own(name)
    for name in ("os", "json.decoder", "sys", "numpy", "distributed", "flowscope.nn", "pytest"):
        assert not is_own(name)
    for name in ("of_a_distribution", "there_is_none", "__main__"):
        assert not is_own(name)
    assert set(needed(["editable.part", "beside", "numpy"])) == {
        "editable",
        "editable.part",
        "beside",
    }


def test_a_worker_wants_what_it_has_not_and_what_imports_that():
    modules = SentModules()
    texts = {"mod_a": "", "mod_b": "import mod_a", "mod_c": "import mod_b", "mod_d": ""}
    imports = {"mod_a": [], "mod_b": ["mod_a"], "mod_c": ["mod_b"], "mod_d": []}

    def offer():
        return {name: (digest_of(text), imports[name]) for name, text in texts.items()}

    assert modules.wanted(offer(), "another") == ["mod_a", "mod_b", "mod_c", "mod_d"]
    try:
        modules.install({n: SentModule(t, f"/x/{n}.py", False) for n, t in texts.items()})
        assert modules.wanted(offer(), "another") == []
        texts["mod_b"] = "import mod_a, os"
        assert modules.wanted(offer(), "another") == ["mod_b", "mod_c"]
    finally:
        sys.meta_path.remove(modules)
