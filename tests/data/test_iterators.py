"""Iterators: their kinds, what ends a step, what is computed ahead, and positions."""

from __future__ import annotations

import itertools
import os
import random
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from own_threads import own_threads

import flowscope as fs
from flowscope.runtime.datasets.iterator_state import IteratorState

pytestmark = pytest.mark.usefixtures("graph")

Dataset = fs.data.Dataset
MODES = ("compiled", "op", "tokens")
PATIENCE_S = 30


def rest_of(session: Any, element: Any) -> list[Any]:
    """The elements that are left."""
    found: list[Any] = []
    with suppress(fs.errors.OutOfRangeError):
        found.extend(session.run(element) for _ in range(1000))
    return found


# -- kinds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_kinds_of_iterators(mode: Any) -> None:
    count, name = fs.placeholder(fs.int64, []), fs.placeholder(fs.string, [])
    numbers = Dataset.range(count).map(lambda x: x + count)
    initializable = numbers.make_initializable_iterator()
    shared = fs.data.Iterator.from_structure(fs.int64, [])
    begins = [shared.make_initializer(d) for d in (Dataset.range(3), Dataset.range(7, 9))]
    once = Dataset.range(5, 7).make_one_shot_iterator()
    fed = fs.data.Iterator.from_string_handle(name, once.output_types, once.output_shapes)
    first, second, third, fourth = [one.get_next() for one in (initializable, shared, once, fed)]
    with fs.Session(config=fs.ConfigProto(mode=mode)) as session:
        for element in (first, second):
            with pytest.raises(fs.errors.FailedPreconditionError, match="run its initializer"):
                session.run(element)
        for n in (2, 3):
            session.run(initializable.initializer, {count: n})
            assert rest_of(session, first) == list(range(n, 2 * n))
        for begin, expected in zip(begins, ([0, 1, 2], [7, 8]), strict=True):
            session.run(begin)
            assert rest_of(session, second) == expected
        handles = session.run([one.string_handle() for one in (once, shared)])
        assert session.run(fourth, {name: handles[0]}) == 5
        assert session.run(third) == 6
        session.run(begins[0])
        assert session.run([fourth, second], {name: handles[1]}) in ([0, 1], [1, 0])
        with pytest.raises(fs.errors.OutOfRangeError, match="End of sequence"):
            session.run(fourth, {name: handles[0]})
        with pytest.raises(fs.errors.NotFoundError, match="no iterator is named"):
            session.run(fourth, {name: b"nobody"})
    with pytest.raises(ValueError, match="has no initializer"):
        _ = shared.initializer
    with pytest.raises(TypeError, match="the iterator's elements"):
        shared.make_initializer(Dataset.from_tensors(1.0))


def test_a_one_shot_iterator_takes_no_values_of_steps() -> None:
    for outside in (fs.placeholder(fs.int64, []), fs.Variable(np.int64(3)).value()):
        with pytest.raises(ValueError, match="make_initializable_iterator makes an iterator"):
            Dataset.range(outside).make_one_shot_iterator()


def test_sessions_share_an_iterator_by_its_name() -> None:
    with fs.container("data"):
        iterator = Dataset.range(4).make_initializable_iterator(shared_name="numbers")
    element = iterator.get_next()
    with fs.Session() as one, fs.Session() as other:
        one.run(iterator.initializer)
        assert [s.run(element) for s in (one, other, one, other)] == [0, 1, 2, 3]
    fs.Session.reset("", ["data"])


@pytest.mark.parametrize("mode", MODES)
def test_elements_in_loops_and_branches(mode: Any) -> None:
    iterator = Dataset.range(100).map(lambda x: x * 2).prefetch(3).make_one_shot_iterator()
    take = fs.placeholder(fs.bool, [])

    def body(i: Any, total: Any) -> Any:
        return i + 1, total + iterator.get_next()

    start = [fs.constant(0), fs.constant(0, fs.int64)]
    _, total = fs.while_loop(lambda i, _: i < 10, body, start)
    chosen = fs.cond(take, iterator.get_next, lambda: fs.constant(-1, fs.int64))
    with fs.Session(config=fs.ConfigProto(mode=mode)) as session:
        assert session.run(total) == sum(range(0, 20, 2))
        assert [session.run(chosen, {take: t}) for t in (False, True)] == [-1, 20]


# -- what ends a step -----------------------------------------------------------------------------


def endless(x: Any) -> Any:
    return fs.while_loop(lambda i: i >= 0, lambda i: (i + 1) % 1000, [x])


def ended_by(way: str, session: fs.Session, begun: threading.Event) -> Callable[[], None]:
    def end() -> None:
        assert begun.wait(PATIENCE_S)
        if way == "stop":
            session.stop()
        else:
            os.kill(os.getpid(), signal.SIGINT)

    return end


@pytest.mark.parametrize("way", ["stop", "interrupt", "deadline"])
@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_a_step_that_is_ended_loses_no_element(mode: Any, ahead: bool, way: str) -> None:
    """It is ended in the function of an element, or as it waits for one, or behind it."""
    begun = threading.Event()
    hangs = [True]

    def look(x: Any) -> Any:
        if x == 5 and hangs[0]:
            begun.set()
            return np.bool_(True)
        return np.bool_(False)

    def function(x: Any) -> Any:
        is_stuck = fs.py_func(look, [x], fs.bool)
        is_stuck.set_shape([])
        return fs.cond(is_stuck, lambda: endless(x), lambda: x)

    numbers = Dataset.range(12).shuffle(3, seed=1).repeat(2).filter(lambda x: x >= 0).map(function)
    numbers = numbers.batch(5)
    element = (numbers.prefetch(2) if ahead else numbers).make_one_shot_iterator().get_next()
    expected = Dataset.range(12).shuffle(3, seed=1).repeat(2).batch(5)
    whole = expected.make_one_shot_iterator().get_next()
    options = fs.RunOptions(timeout_in_ms=150) if way == "deadline" else None
    errors = (fs.errors.CancelledError, fs.errors.DeadlineExceededError, KeyboardInterrupt)
    with fs.Session(config=fs.ConfigProto(mode=mode)) as session:
        wanted = [v.tolist() for v in rest_of(session, whole)]
        found: list[Any] = []

        def take() -> None:
            found.extend(session.run(element, options=options).tolist() for _ in range(9))

        ender = threading.Thread(target=ended_by(way, session, begun))
        if way != "deadline":
            ender.start()
        with pytest.raises(errors):
            take()
        if way != "deadline":
            ender.join(PATIENCE_S)
        hangs[0] = False
        if ahead:  # the thread that computes ahead is in the loop still, and ends with the session
            return
        found += [v.tolist() for v in rest_of(session, element)]
        assert found == wanted


@pytest.mark.parametrize("way", ["stop", "deadline"])
@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_a_step_that_is_ended_in_a_python_function_loses_no_element(
    mode: Any, is_late: bool, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that found another at work, which had ended by the time it would have waited."""
    begun, go = threading.Event(), threading.Event()
    take, tries = IteratorState.take, itertools.count()

    def take_later(*args: Any) -> Any:
        return take(*args) if next(tries) % 2 else None

    if is_late:
        monkeypatch.setattr(IteratorState, "take", take_later)

    def wait(x: Any) -> Any:
        if x == 2 and not go.is_set():
            begun.set()
            assert go.wait(PATIENCE_S)
        return x

    numbers = Dataset.range(5).map(lambda x: fs.py_func(wait, [x], fs.int64)).map(lambda x: -x)
    element = numbers.make_one_shot_iterator().get_next()
    error = fs.errors.CancelledError if way == "stop" else fs.errors.DeadlineExceededError
    options = fs.RunOptions(timeout_in_ms=150 if way == "deadline" else 1000 * PATIENCE_S)
    with fs.Session(config=fs.ConfigProto(mode=mode)) as session:
        found = [session.run(element) for _ in range(2)]
        ender = threading.Thread(target=ended_by("stop", session, begun))
        if way == "stop":
            ender.start()
        with pytest.raises(error, match="the step (was stopped|took longer)"):
            session.run(element, options=options)
        if way == "stop":
            ender.join(PATIENCE_S)
        go.set()
        assert found + rest_of(session, element) == [0, -1, -2, -3, -4]


@pytest.mark.parametrize("mode", MODES)
def test_a_step_that_ends_behind_an_element_gives_it_back(mode: Any) -> None:
    begun = threading.Event()
    iterator = Dataset.range(6).map(lambda x: x * x).prefetch(2).make_one_shot_iterator()
    element = iterator.get_next()

    def tell(x: Any) -> Any:
        begun.set()
        return x

    stateless = fs.py_func(tell, [element], fs.int64, stateful=False)
    stateless.set_shape([])
    stuck = endless(stateless)
    with fs.Session(config=fs.ConfigProto(mode=mode)) as session:
        assert session.run(element) == 0
        ender = threading.Thread(target=ended_by("stop", session, begun))
        ender.start()
        with pytest.raises(fs.errors.CancelledError):
            session.run(stuck)
        ender.join(PATIENCE_S)
        assert rest_of(session, element) == [1, 4, 9, 16, 25]


def dataset_of(rng: random.Random, count: int) -> Any:
    """A random chain whose elements are the numbers below `count`, each once."""
    numbers = Dataset.range(count)
    changes: list[Any] = [
        lambda d: d.shuffle(rng.randrange(1, 20)),
        lambda d: d.map(lambda x: x + 1, rng.choice([None, 2])).map(lambda x: x - 1),
        lambda d: d.map(lambda x: fs.py_func(lambda v: v, [x], fs.int64)),
        lambda d: d.prefetch(rng.randrange(4)),
        lambda d: d.batch(rng.randrange(1, 5)).unbatch(),
        lambda d: d.filter(lambda x: x >= 0),
        lambda d: d.flat_map(lambda x: Dataset.from_tensors(x).prefetch(1)),
        lambda d: d.interleave(Dataset.from_tensors, 3, 1, rng.choice([None, 2])),
    ]
    for _ in range(rng.randrange(1, 6)):
        numbers = rng.choice(changes)(numbers)
    return numbers


@pytest.mark.parametrize("number", range(6))
def test_random_ends_of_steps_lose_and_repeat_nothing(number: int) -> None:
    """Several threads take from one iterator, with deadlines; steps are stopped meanwhile."""
    rng = random.Random(number)
    count = 150
    element = dataset_of(rng, count).make_one_shot_iterator().get_next()
    before = own_threads()
    found: list[int] = []
    is_over = threading.Event()
    with fs.Session(config=fs.ConfigProto(mode=MODES[number % 3])) as session:
        session.plan(element)

        def take(deadline_ms: int) -> None:
            options = fs.RunOptions(timeout_in_ms=deadline_ms)
            while not is_over.is_set():
                try:
                    found.append(int(session.run(element, options=options)))
                except fs.errors.OutOfRangeError:
                    is_over.set()
                except (fs.errors.CancelledError, fs.errors.DeadlineExceededError):
                    pass

        takers = [threading.Thread(target=take, args=(rng.choice([1, 2, 50]),)) for _ in range(3)]
        for taker in takers:
            taker.start()
        while not is_over.wait(0.0005 * rng.random()):
            session.stop()
        for taker in takers:
            taker.join(PATIENCE_S)
            assert not taker.is_alive()
        session.gate.clear_stop()  # of the last one, which may have met no step
        found += rest_of(session, element)
        assert sorted(found) == list(range(count))
        state = state_of(session)
        assert (state.size, state.waiting, state.is_closed) == (0, (0, 0), True)
    assert own_threads() - before <= 8


# -- computed ahead -------------------------------------------------------------------------------


def state_of(session: Any) -> IteratorState:
    (found,) = [q for q in session.queues.values() if isinstance(q, IteratorState)]
    return found


def test_elements_are_computed_ahead_while_nobody_asks() -> None:
    made = threading.Semaphore(0)

    def tell(x: Any) -> Any:
        made.release()
        return x

    numbers = Dataset.range(100).map(lambda x: fs.py_func(tell, [x], fs.int64)).prefetch(4)
    element = numbers.make_one_shot_iterator().get_next()
    before = own_threads()
    with fs.Session() as session:
        session.run(element)
        for _ in range(5):
            assert made.acquire(timeout=PATIENCE_S)
        state = state_of(session)
        assert (state.capacity, state.kind) == (4, "Iterator")
        assert rest_of(session, element) == list(range(1, 100))
        assert (state.size, state.produced, state.is_closed) == (0, 100, True)
        # A thread that has filled the buffer works for others.
        assert own_threads() - before <= 2


def test_many_wait_for_one_that_computes() -> None:
    """Each gets an element of its own; who waits is told by the one that computes."""
    go, begun = threading.Event(), threading.Event()

    def wait(x: Any) -> Any:
        begun.set()
        assert go.wait(PATIENCE_S)
        return x

    numbers = Dataset.range(40).map(lambda x: fs.py_func(wait, [x], fs.int64))
    element = numbers.make_one_shot_iterator().get_next()
    with fs.Session() as session:
        found: list[int] = []

        def take() -> None:
            found.extend(int(session.run(element)) for _ in range(5))

        session.plan(element)
        threads = [threading.Thread(target=take) for _ in range(8)]
        for thread in threads:
            thread.start()
        assert begun.wait(PATIENCE_S)
        go.set()
        for thread in threads:
            thread.join(PATIENCE_S)
        assert sorted(found) == list(range(40))


def test_two_first_steps_begin_with_one_dataset() -> None:
    """Both make it, for neither has seen that of the other: one of them is taken."""
    both = threading.Barrier(2)

    def meet() -> Any:
        both.wait(PATIENCE_S)
        return np.int64(10)

    count = fs.py_func(meet, [], fs.int64)
    element = Dataset.range(count).make_one_shot_iterator().get_next()
    with fs.Session() as session:
        found: list[int] = []
        threads = [
            threading.Thread(target=lambda: found.append(int(session.run(element))))
            for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
        assert sorted(found) == [0, 1]


def test_elements_are_computed_at_the_same_time() -> None:
    """In the order of their numbers, three at a time: each waits for two others."""
    together = threading.Barrier(3)

    def meet(x: Any) -> Any:
        together.wait(PATIENCE_S)
        return x

    numbers = Dataset.range(9).map(lambda x: fs.py_func(meet, [x], fs.int64), 3)
    element = numbers.make_one_shot_iterator().get_next()
    with fs.Session() as session:
        assert rest_of(session, element) == list(range(9))


def test_a_failing_element_comes_in_its_turn() -> None:
    numbers = Dataset.range(6).map(lambda x: 60 // (x - 2), 2).prefetch(3)
    element = numbers.make_one_shot_iterator().get_next()
    with fs.Session() as session:
        assert [session.run(element) for _ in range(2)] == [-30, -60]
        with pytest.raises(fs.errors.InvalidArgumentError, match="element 2 of"):
            session.run(element)
        assert rest_of(session, element) == [60, 30, 20]


def test_an_end_of_the_session_ends_what_computes_ahead() -> None:
    before = own_threads()
    numbers = Dataset.range(10**9).map(lambda x: x + 1).prefetch(10**6)
    element = numbers.make_one_shot_iterator().get_next()
    session = fs.Session()
    session.run(element)
    state = state_of(session)
    session.close()
    assert not state.has_dataset
    assert own_threads() - before <= 2


# -- positions ------------------------------------------------------------------------------------


def build(ahead: int, seed: int | None) -> tuple[Any, ...]:
    """A program that adds elements up, with chance in order and values."""
    fs.set_random_seed(seed)
    total = fs.get_variable("total", [], fs.float32, fs.zeros_initializer())
    numbers = (
        Dataset.range(20).shuffle(7).map(lambda x: fs.cast(x, fs.float32) + fs.random_uniform([]))
    )
    numbers = numbers.repeat(3).flat_map(lambda x: Dataset.from_tensors(x).repeat(2)).batch(7)
    iterator = numbers.prefetch(ahead).make_initializable_iterator()
    step = fs.assign_add(total, fs.reduce_sum(iterator.get_next()))
    saveable = fs.data.experimental.make_saveable_from_iterator(iterator)
    fs.add_to_collection(fs.GraphKeys.SAVEABLE_OBJECTS, saveable)
    return iterator, step, fs.train.Saver(), total


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", [None, 4])
@pytest.mark.parametrize("ahead", [0, 3])
def test_a_restored_iterator_goes_on_with_the_same_bits(
    ahead: int, seed: int | None, mode: Any, tmp_path: Path
) -> None:
    config = fs.ConfigProto(mode=mode)
    iterator, step, saver, total = build(ahead, seed)
    with fs.Session(config=config) as session:
        session.run([total.initializer, iterator.initializer])
        for _ in range(6):
            session.run(step)
        path = saver.save(session, str(tmp_path / "model"))
        expected = rest_of(session, step)
        saver.restore(session, path)
        assert rest_of(session, step) == expected
    with fs.Graph().as_default():
        iterator, step, saver, total = build(ahead, seed)
        with fs.Session(config=config) as session:
            saver.restore(session, path)
            session.run(iterator.initializer)
            assert rest_of(session, step) == expected
            session.run(iterator.initializer)
            assert len(rest_of(session, step)) > len(expected)


def test_a_one_shot_iterator_is_restored_too(tmp_path: Path) -> None:
    fs.set_random_seed(1)
    numbers = Dataset.range(9).shuffle(9).map(lambda x: fs.random_uniform([]) + fs.to_float(x))
    iterator = numbers.make_one_shot_iterator()
    element = iterator.get_next()
    saver = fs.train.Saver([fs.data.experimental.make_saveable_from_iterator(iterator)])
    with fs.Session() as session:
        [session.run(element) for _ in range(4)]
        path = saver.save(session, str(tmp_path / "model"))
        expected = rest_of(session, element)
    with fs.Session() as session:
        saver.restore(session, path)
        assert rest_of(session, element) == expected
        with pytest.raises(fs.errors.DataLossError, match="the position of an iterator"):
            session.run(saver._ops.restore_op, {saver._ops.entries[0].values[0]: b"nonsense"})


def test_an_interrupted_generator_goes_on() -> None:
    """It is heeded once the generator yields: an exception inside would end it."""

    def generate() -> Any:
        for i in range(6):
            if i == 3:
                os.kill(os.getpid(), signal.SIGINT)
            yield i

    numbers = Dataset.from_generator(generate, fs.int64, []).batch(2)
    element = numbers.make_one_shot_iterator().get_next()
    with fs.Session() as session:
        found = [session.run(element).tolist()]
        with pytest.raises(KeyboardInterrupt):
            session.run(element)
        found += [v.tolist() for v in rest_of(session, element)]
    assert found == [[0, 1], [2, 3], [4, 5]]


def test_a_monitored_session_goes_on_where_the_last_one_was(tmp_path: Path) -> None:
    """The iterator's initializer runs after the restore, and begins at the restored position."""

    def part(steps: int) -> list[int]:
        with fs.Graph().as_default():
            iterator = Dataset.range(100).make_initializable_iterator()
            fs.add_to_collection(fs.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
            saveable = fs.data.experimental.make_saveable_from_iterator(iterator)
            fs.add_to_collection(fs.GraphKeys.SAVEABLE_OBJECTS, saveable)
            element, step = iterator.get_next(), fs.train.get_or_create_global_step()
            both = element, step.assign_add(1)
            with fs.train.MonitoredTrainingSession(checkpoint_dir=str(tmp_path)) as session:
                return [int(session.run(both)[0]) for _ in range(steps)]

    assert part(3) + part(4) + part(2) == list(range(9))


# -- cells, devices and training ------------------------------------------------------------------


def test_a_cell_that_is_run_again_keeps_its_iterators(graph: fs.Graph) -> None:
    """Unless it makes the dataset another one: a one-shot iterator begins anew with that."""

    def build(factor: int) -> list[Any]:
        with graph.cell("a"):
            numbers = Dataset.range(6).map(lambda x: x * factor)
            initializable = numbers.make_initializable_iterator(shared_name="it")
            once = numbers.make_one_shot_iterator()
            return [initializable.initializer, initializable.get_next(), once.get_next()]

    with fs.Session() as session:
        begin, *elements = build(2)
        session.run(begin)
        assert session.run(elements) == [0, 0]
        _, *elements = build(2)
        assert session.run(elements) == [2, 2]
        assert session.run([elements[0], elements[1] + 0]) == [4, 4]  # of another plan
        begin, *elements = build(3)
        assert session.run(elements) == [6, 0]
        session.run(begin)
        assert session.run(elements) == [0, 3]


def test_datasets_are_written_and_read_with_their_graph(graph: fs.Graph) -> None:
    factor = np.int64(3)
    numbers = Dataset.range(4).shuffle(3, seed=1).map(lambda x: x * factor)
    numbers = numbers.flat_map(lambda x: Dataset.range(x).map(lambda y: y + x)).batch(3)
    once, iterator = numbers.make_one_shot_iterator(), numbers.make_initializable_iterator()
    first, second = once.get_next("first"), iterator.get_next("second")
    with fs.Session() as session:
        session.run(iterator.initializer)
        expected = [[v.tolist() for v in rest_of(session, e)] for e in (first, second)]
    written = graph.as_graph_def().to_json()
    with fs.Graph().as_default(), fs.Session() as session:
        fs.import_graph_def(fs.GraphDef.from_json(written), name="x")
        session.run(f"x/{iterator.initializer.name}")
        found = [rest_of(session, f"x/{e.name}") for e in (first, second)]
        assert [[v.tolist() for v in one] for one in found] == expected


@pytest.mark.parametrize("mode", MODES)
def test_elements_come_to_another_device_ahead(mode: Any) -> None:
    x = fs.data.experimental
    rows = (np.arange(24, dtype=np.float32).reshape(8, 3), [b"%d" % i for i in range(8)])
    batches = Dataset.from_tensor_slices(rows).batch(2)
    ahead = batches.apply(x.prefetch_to_device("/gpu:0", 2)).make_initializable_iterator()
    copied = batches.apply(x.copy_to_device("/gpu:0")).make_one_shot_iterator()
    (values, names), (others, _) = ahead.get_next(), copied.get_next()
    assert values.device.endswith("GPU:0")
    assert names.device == ""
    w = fs.get_variable("w", [3, 1], initializer=fs.ones_initializer(), use_resource=True)
    total = fs.reduce_sum(fs.matmul(values, w))
    config = fs.ConfigProto(fake_devices={"GPU": 1}, mode=mode)
    with fs.Session(config=config) as session:
        session.run([w.initializer, ahead.initializer])
        assert session.plan(total).program.nodes[-1].device.endswith("GPU:0")
        state = state_of(session)
        assert session.run([total, others])[1].tolist() == rows[0][:2].tolist()
        gpu = session.list_devices()[1]
        waiting = threading.Event()
        for _ in range(1000):  # until the thread that computes ahead has filled the buffer
            if state.size == 2:
                break
            waiting.wait(0.005)
        assert all(gpu.holds(element[0]) for element in state._contents())
        assert session.run([total, names])[1].tolist() == [b"2", b"3"]
        assert rest_of(session, total) == [float(rows[0][i : i + 2].sum()) for i in (4, 6)]
    fed = fs.data.Iterator.from_structure(batches.output_types, batches.output_shapes)
    with pytest.raises(ValueError, match="an iterator of its own"):
        fed.make_initializer(batches.apply(x.prefetch_to_device("/gpu:0")))
    with pytest.raises(ValueError, match="a CPU as source_device"):
        x.copy_to_device("/cpu:0", "/gpu:0")
