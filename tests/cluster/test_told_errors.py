"""Errors of workers: what they say arrives, whatever their classes are and however workers end."""

from __future__ import annotations

import copyreg
import os
import pickle
import random
import signal
import threading

import numpy as np
import pytest
from local_clusters import local_cluster, wait_until

import flowscope as fs
from flowscope import errors
from flowscope.cluster.shipping import failures
from flowscope.cluster.transport.runs import LateAnswerError
from flowscope.cluster.watch.losses import killed_for_memory, removed_why
from flowscope.errors import InvalidArgumentError, OpError, UnavailableError, UnknownError
from flowscope.runtime.step.split import DerivedError

TASK = "/job:worker/replica:0/task:0"


def over_the_wire(error):
    answer = pickle.loads(pickle.dumps(failures.answer(error, TASK)))
    return failures.of_answer(answer, ())


class Asking(ValueError):
    """Asks for arguments that pickle does not know of."""

    def __init__(self, number, *, unit):
        super().__init__(f"{number} {unit}")


class Locked(Exception):
    """Holds what cannot be pickled."""

    def __init__(self, text):
        super().__init__(text)
        self.lock = threading.Lock()


class Mute(Exception):
    def __str__(self):
        raise KeyError("it has no text")


class OnlyThere(Exception):
    """Cannot be made on the other side."""

    def __reduce__(self):
        return _not_here, ("own_module_of_the_worker",)


def _not_here(module):
    raise ModuleNotFoundError(f"No module named {module!r}", name=module)


class OfTheUser(errors.NotFoundError):
    def __init__(self, *, name):
        super().__init__(f"no {name}")


MADE = {
    "plain": lambda: ValueError("three"),
    "asking": lambda: Asking(3, unit="kg"),
    "locked": lambda: Locked("is locked"),
    "mute": Mute,
    "only there": lambda: OnlyThere("of the worker"),
    "of the user": lambda: OfTheUser(name="lamp"),
    "exit": lambda: SystemExit(3),
    "derived": lambda: DerivedError("another part has failed"),
    "late": lambda: LateAnswerError("late"),
    "key": lambda: KeyError("k"),
    "unicode": lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"),
    "os": lambda: FileNotFoundError(2, "No such file", "weights.npy"),
}


@pytest.mark.parametrize("name", MADE)
def test_type_and_text_arrive(name):
    error = MADE[name]()
    found = over_the_wire(error)
    assert type(found).__module__ == "flowscope.errors"
    text = errors.said(error)
    assert text in str(found)
    if not isinstance(error, OpError):
        assert type(error).__name__ in str(found)
        assert isinstance(found.__cause__, type(error)) or (
            isinstance(found.__cause__, UnknownError)
            and str(found.__cause__) == f"{type(error).__name__}: {text}"
        )
    if not isinstance(error, DerivedError):
        assert TASK in str(found)


def _random_error(rng, depth=0):
    """An exception with random causes, contexts, notes and members."""
    if depth < 3 and rng.random() < 0.25:
        members = [_random_error(rng, depth + 1) for _ in range(rng.randrange(1, 4))]
        made = BaseExceptionGroup(f"group {rng.random()}", members)
    else:
        made = MADE[rng.choice([n for n in MADE if n not in ("derived", "late")])]()
    if rng.random() < 0.3:
        made.add_note(f"note {rng.random()}")
    if depth < 3 and rng.random() < 0.6:
        other = _random_error(rng, depth + 1)
        if rng.random() < 0.5:
            made.__cause__ = other
        else:
            made.__context__ = other
    return made


def _tree(error):
    """What an exception says, with all below it: (type, text, notes, members, above)."""
    if error is None:
        return None
    name, text = type(error).__name__, errors.said(error)
    members = ()
    if isinstance(error, BaseExceptionGroup):
        name, text = "group", error.message
        members = tuple([_tree(e) for e in error.exceptions])
    elif isinstance(error, UnknownError):  # it stands for another
        name, _, text = text.partition(": ")
    elif isinstance(error, OpError):
        text = text.rpartition(": ")[2]
        name = "OfTheUser"
    above = error.__cause__
    if above is None and not error.__suppress_context__:
        above = error.__context__
    return name, text, tuple(getattr(error, "__notes__", ())), members, _tree(above)


@pytest.mark.parametrize("seed", range(200))
def test_causes_groups_and_notes_arrive(seed):
    rng = random.Random(seed)
    error = RuntimeError("outermost")
    error.__cause__ = _random_error(rng)
    assert _tree(over_the_wire(error).__cause__) == _tree(error)


def test_an_exception_that_comes_without_its_text_is_told_with_it():
    """Where `tblib` is at work, as in Dask, a UnicodeDecodeError is made without its fields."""
    pickling_support = pytest.importorskip("tblib.pickling_support")
    error = RuntimeError("outermost")
    try:
        b"\xff".decode()
    except UnicodeDecodeError as e:
        error.__cause__ = e
    before = dict(copyreg.dispatch_table)
    try:
        pickling_support.install()
        assert str(pickle.loads(pickle.dumps(error.__cause__))) == ""
        assert _tree(over_the_wire(error).__cause__) == _tree(error)
    finally:
        copyreg.dispatch_table.clear()
        copyreg.dispatch_table.update(before)


def _on_worker(cluster, function, name="fails", task=0):
    x = fs.placeholder(fs.float64, [])
    with fs.device(f"/job:worker/task:{task}"):
        y = fs.py_func(function, [x], fs.float64, name=name)
    with fs.Session(cluster) as sess, pytest.raises(OpError) as told:
        sess.run(y, {x: 1.0})
    return told.value


@pytest.mark.slow
@pytest.mark.parametrize("name", ["asking", "locked", "mute", "of the user", "exit"])
def test_a_function_that_fails_on_a_worker_is_told_with_its_line(cluster, graph, name):
    make, text = MADE[name], errors.said(MADE[name]())

    def f(x):
        raise make()

    told = _on_worker(cluster, f)
    assert type(told).__module__ == "flowscope.errors"
    assert type(make()).__name__ in str(told) and text in str(told)
    assert TASK in str(told)
    if name != "exit":
        assert 'node "fails"' in str(told) and "test_told_errors.py" in str(told)


@pytest.mark.slow
def test_a_class_of_this_process_comes_back_as_itself(cluster, graph):
    class OfACell(Exception):
        pass

    def f(x):
        try:
            raise KeyError("first")
        except KeyError as e:
            raise OfACell("second") from e

    told = _on_worker(cluster, f)
    assert "OfACell" in str(told) and isinstance(told.__cause__, OfACell)
    assert isinstance(told.__cause__.__cause__, KeyError)


@pytest.mark.slow
def test_a_killed_worker_is_told_with_what_it_ran(cluster, graph):
    def f(x):
        os.kill(os.getpid(), signal.SIGKILL)

    told = _on_worker(cluster, f, name="kills_itself")
    assert isinstance(told, UnavailableError)
    assert f'{TASK} ran "kills_itself" (made in test_told_errors.py, line' in str(told)
    assert "memory" not in str(told)


@pytest.mark.slow
def test_a_worker_that_its_nanny_ends_for_its_memory_says_memory(source_env, graph):
    import dask

    settings = {
        "distributed.worker.memory.monitor-interval": "50ms",
        "distributed.worker.memory.target": False,
        "distributed.worker.memory.spill": False,
        "distributed.worker.memory.pause": False,
    }

    def eat(x):
        kept = []
        while True:  # until the nanny looks
            kept.append(np.ones(500_000))
            threading.Event().wait(0.002)

    with (
        dask.config.set(settings),
        local_cluster(source_env, 1, memory_limit="400MB") as machines,
        fs.cluster.connect(machines) as cluster,
    ):
        told = _on_worker(cluster, eat, name="eats")
        assert isinstance(told, UnavailableError)
        assert f"{TASK}: it ran out of memory: its nanny has ended it when it used" in str(told)
        assert "of the 400 MB that Dask lets it have. Give workers more (memory_limit=)" in str(
            told
        )
        assert f'{TASK} ran "eats" (made in test_told_errors.py, line' in str(told)
        wait_until(lambda: len(cluster.tasks) == 1)


def test_kills_for_memory_are_read_from_the_systems_counters(tmp_path):
    counters = tmp_path / "vmstat"
    counters.write_text("nr_free_pages 5\noom_kill 12\nswap_ra 0\n")
    assert killed_for_memory(str(counters)) == 12
    assert killed_for_memory(str(tmp_path / "none")) is None
    now = killed_for_memory()
    if now is not None:  # Linux: a worker that started before a kill says so
        assert "has run out of memory" in removed_why({}, now - 1)
        assert removed_why({}, now) == removed_why({}, None) == ""


def test_a_failure_without_an_operation_names_the_worker():
    found = over_the_wire(InvalidArgumentError("what was expected"))
    assert str(found) == f"what was expected\non {TASK}"
