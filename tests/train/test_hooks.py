"""Hooks of monitored sessions: when they are called, and what each of them does."""

import json
import logging
from pathlib import Path

import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import (
    FailedPreconditionError,
    GraphError,
    InvalidArgumentError,
    OutOfRangeError,
    UnavailableError,
)

train = fs.train


@pytest.fixture
def count(graph: fs.Graph) -> fs.Operation:
    """Counts the global step up by one."""
    return train.get_or_create_global_step().assign_add(1).op


class Noting(train.SessionRunHook):
    """Notes its calls in a list that several share."""

    def __init__(self, name: str, notes: list, fetches=None, feed=None, options=None) -> None:
        self.name, self.notes = name, notes
        self.args = (
            None
            if fetches is None and feed is None and options is None
            else train.SessionRunArgs(fetches, feed, options)
        )

    def begin(self):
        self.notes.append(f"{self.name}.begin")
        fs.constant(1.0, name=f"of_{self.name}")  # the graph may be extended

    def after_create_session(self, session, coord):
        assert session.graph.finalized and isinstance(coord, train.Coordinator)
        self.notes.append(f"{self.name}.create")

    def before_run(self, run_context):
        self.notes.append(f"{self.name}.before")
        self.context = run_context
        return self.args

    def after_run(self, run_context, run_values):
        assert run_context is self.context
        self.notes.append(f"{self.name}.after")
        self.values = run_values

    def end(self, session):
        assert not session.is_closed
        self.notes.append(f"{self.name}.end")


def calls(*names: str) -> list[str]:
    return [f"{hook}.{name}" for name in names for hook in "ab"]


def test_hooks_are_called_in_their_order(graph: fs.Graph) -> None:
    x = fs.placeholder(fs.float32, [])
    y = fs.placeholder(fs.float32, [])
    total = x + y
    notes: list[str] = []
    a = Noting("a", notes, {"double": 2 * x}, {y: 5.0})
    b = Noting("b", notes)
    with train.MonitoredSession(hooks=[a, b]) as sess:
        assert sess.run(total, {x: 1.0}) == 6.0
        assert a.values.results == {"double": 2.0} and b.values.results is None
        assert a.context.original_args.feed_dict == {x: 1.0}
        assert isinstance(a.values.options, fs.RunOptions)
    assert notes == calls("begin", "create", "before", "after", "end")


@pytest.mark.parametrize("error", [OutOfRangeError("end"), StopIteration(), ZeroDivisionError()])
def test_the_end_is_told_unless_there_was_an_error(graph: fs.Graph, error: Exception) -> None:
    notes: list[str] = []
    is_error = isinstance(error, ZeroDivisionError)
    try:
        with train.MonitoredSession(hooks=[Noting("a", notes)]):
            raise error
    except ZeroDivisionError:
        assert is_error
    assert ("a.end" in notes) is not is_error


class Losing(train.SessionCreator):
    """Makes chief sessions, and counts them."""

    def __init__(self) -> None:
        self.made = 0
        self.chief = train.ChiefSessionCreator()

    def create_session(self) -> fs.Session:
        self.made += 1
        return self.chief.create_session()


@pytest.mark.parametrize("where", ["run", "before", "after", "create", "end"])
def test_recovery_enters_the_hooks_anew_in_their_order(graph: fs.Graph, where: str) -> None:
    notes: list[str] = []
    failures = [UnavailableError("gone")]

    class Failing(Noting):
        def after_create_session(self, session, coord):
            super().after_create_session(session, coord)
            fail("create")

        def before_run(self, run_context):
            fail("before")
            return super().before_run(run_context)

        def after_run(self, run_context, run_values):
            fail("after")
            super().after_run(run_context, run_values)

        def end(self, session):
            fail("end")
            super().end(session)

    def fail(place: str) -> np.float32:
        if place == where and failures:
            raise failures.pop()
        return np.float32(3.0)

    three = fs.py_func(lambda: fail("run"), [], fs.float32)
    creator = Losing()
    with train.MonitoredSession(creator, [Noting("a", notes), Failing("b", notes)]) as sess:
        assert sess.run(three) == 3.0
    assert creator.made == 2 and not failures
    assert notes.count("a.begin") == notes.count("b.begin") == 1
    assert notes.count("a.create") == notes.count("b.create") == 2
    assert notes[-1] == "b.end" and notes.count("a.end") == notes.count("b.end") == 1


def test_a_singular_session_does_not_recover(graph: fs.Graph) -> None:
    def gone() -> np.float32:
        raise UnavailableError("gone")

    fails = fs.py_func(gone, [], fs.float32)
    sess = train.SingularMonitoredSession()
    assert isinstance(sess.raw_session(), fs.Session)
    with pytest.raises(UnavailableError, match="gone"):
        sess.run(fails)
    sess.close()
    with pytest.raises(GraphError, match="closed"):
        sess.raw_session()


def test_feeds_and_options_are_joined(graph: fs.Graph) -> None:
    x = fs.placeholder(fs.float32, [])
    more = x + 1
    notes: list[str] = []
    traced = fs.RunOptions(trace_level=fs.RunOptions.FULL_TRACE, timeout_in_ms=60_000)
    a = Noting("a", notes, options=traced)
    b = Noting("b", notes, options=fs.RunOptions(timeout_in_ms=90_000))
    with train.MonitoredSession(hooks=[a, b]) as sess:
        sess.run(more, {x: 1.0})
        found = a.values
        assert found.options.trace_level == fs.RunOptions.FULL_TRACE
        assert found.options.timeout_in_ms == 90_000
        assert found.run_metadata.step_stats.dev_stats
    c = train.FeedFnHook(lambda: {x: 2.0})
    with train.MonitoredSession(hooks=[c]) as sess:
        assert sess.run(more) == 3.0
        with pytest.raises(RuntimeError, match="feed .* twice"):
            sess.run(more, {x: 1.0})


def test_modes_that_contradict_each_other_are_refused(graph: fs.Graph) -> None:
    y = fs.constant(1.0)
    hook = Noting("a", [], options=fs.RunOptions(mode="op"))
    with train.MonitoredSession(hooks=[hook]) as sess:
        assert sess.run(y) == 1.0
        with pytest.raises(InvalidArgumentError, match="one mode"):
            sess.run(y, options=fs.RunOptions(mode="tokens"))


def test_what_is_no_hook_is_refused(graph: fs.Graph) -> None:
    with pytest.raises(InvalidArgumentError, match="SessionRunHook, got .* without begin"):
        train.MonitoredSession(hooks=[object()])


def test_a_function_of_steps_runs_with_and_without_hooks(count: fs.Operation) -> None:
    notes: list[str] = []
    step = train.get_global_step()

    def step_fn(step_context):
        step_context.session.run(count)
        assert "a.before" not in notes
        step_context.run_with_hooks(count)
        return step_context.session.run(step)

    def stopping(step_context):
        step_context.request_stop()

    with train.MonitoredSession(hooks=[Noting("a", notes)]) as sess:
        assert sess.run_step_fn(step_fn) == 2
        assert notes.count("a.before") == 1
        with pytest.raises(InvalidArgumentError, match="step_fn\\(step_context\\)"):
            sess.run_step_fn(lambda other: None)
        sess.run_step_fn(stopping)
    assert notes[-1] == "a.end"


@pytest.mark.parametrize(("given", "last"), [({"num_steps": 3}, 5), ({"last_step": 4}, 4)])
def test_training_stops_at_a_step(count, tmp_path: Path, given, last) -> None:
    step = train.get_global_step()
    with train.MonitoredTrainingSession(
        checkpoint_dir=str(tmp_path), hooks=[train.StopAtStepHook(last_step=2)]
    ) as sess:
        while not sess.should_stop():
            sess.run(count)
    with train.MonitoredTrainingSession(
        checkpoint_dir=str(tmp_path), hooks=[train.StopAtStepHook(**given)]
    ) as sess:
        assert sess.run_step_fn(lambda step_context: step_context.session.run(step)) == 2
        while not sess.should_stop():
            sess.run(count)
        with pytest.raises(RuntimeError, match="should_stop"):
            sess.run(count)
    assert train.latest_checkpoint(str(tmp_path)).endswith(f"-{last}")


@pytest.mark.parametrize("by", [1, 3])
def test_checkpoints_come_every_so_many_global_steps(graph, tmp_path: Path, by: int) -> None:
    count = train.get_or_create_global_step().assign_add(by).op
    heard = []

    class Listener(train.CheckpointSaverListener):
        def begin(self):
            heard.append("begin")

        def before_save(self, session, global_step_value):
            heard.append(("before", global_step_value))

        def after_save(self, session, global_step_value):
            heard.append(("after", global_step_value))
            return global_step_value >= 12

        def end(self, session, global_step_value):
            heard.append(("end", global_step_value))

    saver = train.CheckpointSaverHook(
        str(tmp_path), save_steps=6, saver=train.Saver(), listeners=[Listener()]
    )
    with train.MonitoredSession(hooks=[saver]) as sess:
        while not sess.should_stop():
            sess.run(count)
    saved = [number for what, number in heard[1:] if what == "after"]
    # As in TensorFlow, a run is taken to count up by one until the hook is due.
    last = saved[-1]
    assert saved == {1: [0, 6, 12], 3: [0, 9, 18]}[by]
    assert heard[0] == "begin" and heard[-1] == ("end", last)
    assert (tmp_path / "graph.pbtxt").exists()
    assert train.latest_checkpoint(str(tmp_path)).endswith(f"model.ckpt-{last}")


def test_values_are_logged_every_so_many_runs_and_at_the_end(count, caplog) -> None:
    x = fs.placeholder(fs.float32, [], name="x")
    doubled = fs.multiply(x, 2.0, name="doubled")
    hooks = [
        train.LoggingTensorHook({"d": doubled, "x": "x"}, every_n_iter=2),
        train.LoggingTensorHook([x], every_n_secs=3600),
    ]
    caplog.set_level(logging.INFO, "flowscope")
    with train.MonitoredSession(hooks=[*hooks, train.FeedFnHook(iter_feeds(x))]) as sess:
        for _ in range(6):
            sess.run(count)
    told = [r.getMessage() for r in caplog.records]
    by_run = [text for text in told if text.startswith("d = ")]
    assert [text.split(" (")[0] for text in by_run] == [
        f"d = {2.0 * i}, x = {1.0 * i}" for i in (0, 2, 4)
    ]
    assert "sec)" not in by_run[0] and by_run[1].endswith(" sec)")
    assert [text for text in told if text.startswith("x:0 = ")] == ["x:0 = 0.0"]


def iter_feeds(x: fs.Tensor):
    numbers = iter(range(100))
    return lambda: {x: float(next(numbers))}


def test_values_are_logged_at_the_end_alone(count, caplog) -> None:
    step = fs.identity(train.get_global_step(), name="now")
    hook = train.LoggingTensorHook(
        {"now": step}, at_end=True, formatter=lambda values: f"last {values['now']}"
    )
    caplog.set_level(logging.INFO, "flowscope")
    with train.MonitoredSession(hooks=[hook]) as sess:
        sess.run(count)
        assert not [r for r in caplog.records if r.name == "flowscope"]
    assert [r.getMessage() for r in caplog.records if r.name == "flowscope"] == ["last 1"]


def test_steps_a_second_are_counted_without_the_time_of_a_loss(count, tmp_path: Path) -> None:
    hook = train.StepCounterHook(every_n_steps=4, output_dir=str(tmp_path))
    with train.MonitoredSession(hooks=[hook]) as sess:
        for _ in range(9):
            sess.run(count)
    fs.summary.FileWriterCache.clear()
    rates = summaries(tmp_path, "global_step/sec")
    assert [step for step, _ in rates] == [5, 9]
    assert all(rate > 0 for _, rate in rates)


def summaries(folder: Path, tag: str) -> list[tuple[int, float]]:
    """Steps and values of a scalar in a folder's event files."""
    events = [e for path in folder.glob("events*") for e in train.summary_iterator(str(path))]
    return [
        (e.step, v.simple_value)
        for e in events
        if e.summary is not None
        for v in e.summary.value
        if v.tag == tag
    ]


def test_summaries_are_written_every_so_many_steps(count, tmp_path: Path) -> None:
    fs.summary.scalar("ten", fs.cast(train.get_global_step(), fs.float32) * 10.0)
    with train.MonitoredTrainingSession(
        checkpoint_dir=str(tmp_path), save_summaries_steps=3, log_step_count_steps=None
    ) as sess:
        for _ in range(8):
            sess.run(count)
    fs.summary.FileWriterCache.clear()
    assert [step for step, _ in summaries(tmp_path, "ten")] == [1, 4, 7]


def test_a_training_session_writes_what_it_is_asked_for(count, tmp_path: Path) -> None:
    fs.summary.scalar("one", fs.constant(1.0))
    folder = tmp_path / "summaries"
    with train.MonitoredTrainingSession(
        checkpoint_dir=str(tmp_path),
        save_checkpoint_secs=None,
        save_checkpoint_steps=None,
        summary_dir=str(folder),
        save_summaries_steps=1,
        log_step_count_steps=1,
    ) as sess:
        for _ in range(3):
            sess.run(count)
    fs.summary.FileWriterCache.clear()
    assert train.latest_checkpoint(str(tmp_path)) is None
    assert len(summaries(folder, "one")) == 3 and len(summaries(folder, "global_step/sec")) == 2


@pytest.mark.parametrize("fails", [True, False])
def test_a_loss_that_is_no_number_ends_the_training(count, fails: bool) -> None:
    x = fs.placeholder(fs.float32, [2])
    hook = train.NanTensorHook(x * 2.0, fail_on_nan_loss=fails)
    with train.MonitoredSession(hooks=[hook]) as sess:
        sess.run(count, {x: [1.0, 2.0]})
        assert not sess.should_stop()
        if fails:
            with pytest.raises(train.NanLossDuringTrainingError, match="NaN loss"):
                sess.run(count, {x: [1.0, np.nan]})
        else:
            sess.run(count, {x: [1.0, np.nan]})
            assert sess.should_stop()


def test_final_operations_run_at_the_end(count) -> None:
    x = fs.placeholder(fs.float32, [])
    hook = train.FinalOpsHook([x + 1.0, train.get_global_step()], {x: 4.0})
    with train.MonitoredSession(hooks=[hook]) as sess:
        sess.run(count)
        assert hook.final_ops_values is None
    assert hook.final_ops_values == [5.0, 1]


def test_a_late_worker_waits_for_the_global_step(count) -> None:
    hook = train.GlobalStepWaiterHook(wait_until_step=3)
    looks = []

    class Others:
        """A coordinator in whose waits other workers do a step."""

        def __init__(self, session: fs.Session) -> None:
            self.session = session

        def wait_for_stop(self, timeout: float) -> bool:
            looks.append(timeout)
            self.session.run(count)
            return False

    with train.MonitoredSession(hooks=[hook]) as sess:
        sess.run_step_fn(
            lambda step_context: hook.after_create_session(
                step_context.session, Others(step_context.session)
            )
        )
        assert sess.run(train.get_global_step()) == 3
        assert len(looks) == 3
        sess.run(count)
    assert len(looks) == 3


def test_every_so_many_steps_a_run_is_traced(count, tmp_path: Path) -> None:
    hook = train.ProfilerHook(save_steps=2, output_dir=str(tmp_path / "traces"))
    with train.MonitoredSession(hooks=[hook]) as sess:
        for _ in range(5):
            sess.run(count)
    files = sorted(path.name for path in (tmp_path / "traces").iterdir())
    assert files == ["timeline-2.json", "timeline-4.json"]
    trace = json.loads((tmp_path / "traces/timeline-2.json").read_text())
    assert any(e.get("name") == "AssignAddVariableOp" for e in trace["traceEvents"])


def test_a_timer_is_due_by_steps_or_by_seconds() -> None:
    timer = train.SecondOrStepTimer(every_steps=3)
    assert timer.should_trigger_for_step(7) and timer.last_triggered_step() is None
    assert timer.update_last_triggered_step(7) == (None, None)
    assert [timer.should_trigger_for_step(n) for n in (7, 8, 9, 10)] == [False] * 3 + [True]
    elapsed_s, steps = timer.update_last_triggered_step(11)
    assert steps == 4 and elapsed_s >= 0 and timer.last_triggered_step() == 11
    timer.reset()
    assert timer.should_trigger_for_step(11)
    by_seconds = train.SecondOrStepTimer(every_secs=3600)
    by_seconds.update_last_triggered_step(1)
    assert not by_seconds.should_trigger_for_step(10**6)
    for given in ({}, {"every_secs": 1, "every_steps": 1}):
        with pytest.raises(InvalidArgumentError, match="one of every_secs and every_steps"):
            train.SecondOrStepTimer(**given)


@pytest.mark.parametrize(
    "make",
    [
        lambda: train.CheckpointSaverHook("d"),
        lambda: train.CheckpointSaverHook("d", save_secs=1, save_steps=1),
        lambda: train.CheckpointSaverHook("d", save_steps=0),
        lambda: train.CheckpointSaverHook(
            "d", save_steps=1, saver=object(), scaffold=train.Scaffold()
        ),
        lambda: train.LoggingTensorHook([]),
        lambda: train.LoggingTensorHook([], every_n_iter=1, every_n_secs=1),
        lambda: train.StepCounterHook(every_n_secs=1),
        lambda: train.SummarySaverHook(save_steps=1),
        lambda: train.SummarySaverHook(summary_op=object()),
        lambda: train.StopAtStepHook(),
        lambda: train.StopAtStepHook(1, 2),
        lambda: train.ProfilerHook(),
    ],
)
def test_bad_arguments_are_refused(graph: fs.Graph, make) -> None:
    with pytest.raises(InvalidArgumentError, match=r"expected .*, got|above 0"):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: train.StopAtStepHook(1),
        lambda: train.CheckpointSaverHook("d", save_steps=1),
        lambda: train.StepCounterHook(),
    ],
)
def test_a_graph_without_a_global_step_is_told_at_the_hook(graph: fs.Graph, make) -> None:
    hook = make()
    with pytest.raises(GraphError, match=f"{type(hook).__name__} .* global step"):
        train.MonitoredSession(hooks=[hook])


@pytest.mark.parametrize("name", ["nowhere", "pair"])
def test_names_of_no_tensor_are_told(graph: fs.Graph, name: str) -> None:
    fs.split(fs.constant([1.0, 2.0]), 2, name="pair")
    with pytest.raises(Exception, match=name):
        train.MonitoredSession(hooks=[train.LoggingTensorHook([name], every_n_iter=1)])


def test_threads_of_queue_runners_belong_to_the_session(graph: fs.Graph) -> None:
    queue = fs.FIFOQueue(4, [fs.float32], [[]])
    train.add_queue_runner(train.QueueRunner(queue, [queue.enqueue(fs.constant(2.0))]))
    taken = queue.dequeue()
    coords = []

    class Hook(train.SessionRunHook):
        def after_create_session(self, session, coord):
            coords.append(coord)

    with train.MonitoredSession(hooks=[Hook()]) as sess:
        assert [sess.run(taken) for _ in range(10)] == [2.0] * 10
    assert coords[0].joined


def test_the_error_of_a_thread_is_that_of_the_run(graph: fs.Graph) -> None:
    coords = []

    class Hook(train.SessionRunHook):
        def after_create_session(self, session, coord):
            coords.append(coord)

    missing = fs.Variable(1.0, collections=["mine"], name="missing")

    def train_until_the_end() -> None:
        with train.MonitoredSession(hooks=[Hook()]) as sess:
            with pytest.raises(FailedPreconditionError, match="missing"):
                sess.run(missing)
            coords[0].request_stop(ZeroDivisionError("in a thread"))
            while not sess.should_stop():
                pass

    with pytest.raises(ZeroDivisionError):
        train_until_the_end()


def test_a_thread_that_loses_a_worker_has_the_session_recover(graph: fs.Graph) -> None:
    coords = []

    class Hook(train.SessionRunHook):
        def after_create_session(self, session, coord):
            coords.append(coord)

    creator = Losing()
    with train.MonitoredSession(creator, [Hook()]) as sess:
        coords[0].request_stop(UnavailableError("gone"))
        assert not sess.should_stop()
        assert sess.run([]) == []
        assert creator.made == 2 and len(coords) == 2
