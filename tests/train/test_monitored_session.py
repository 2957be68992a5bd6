"""Sessions that restore or initialise by themselves, and recover."""

from pathlib import Path

import pytest

import flowscope as fs
from flowscope.errors import (
    AbortedError,
    DeadlineExceededError,
    FailedPreconditionError,
    GraphError,
    InvalidArgumentError,
    OutOfRangeError,
    UnavailableError,
)

train = fs.train


@pytest.fixture
def counting(graph: fs.Graph) -> tuple[fs.Variable, fs.Operation]:
    """A global step, and an operation that counts it up by a local variable."""
    step = train.get_or_create_global_step()
    one = fs.Variable(1, dtype=fs.int64, collections=[fs.GraphKeys.LOCAL_VARIABLES], name="one")
    return step, step.assign_add(one).op


def test_training_goes_on_from_the_latest_checkpoint(counting, tmp_path: Path) -> None:
    step, count = counting
    for begin in (0, 5):
        with train.MonitoredTrainingSession(
            checkpoint_dir=str(tmp_path), save_checkpoint_steps=2
        ) as sess:
            assert sess.run(step) == begin and not sess.should_stop()
            assert step.graph.finalized
            for _ in range(5):
                sess.run(count)
        assert sess.should_stop()
        with pytest.raises(GraphError, match="closed"):
            sess.run(step)
    written = train.get_checkpoint_state(str(tmp_path))
    numbers = [p.rpartition("-")[2] for p in written.all_model_checkpoint_paths]
    assert numbers[-3:] == ["7", "9", "10"]
    assert not step.graph.finalized


class Failing(train.SessionCreator):
    """Makes chief sessions, and counts them."""

    def __init__(self, max_wait_secs: float = 60.0) -> None:
        self.made: list[fs.Session] = []
        self.chief = train.ChiefSessionCreator()
        self.max_wait_secs = max_wait_secs

    def create_session(self) -> fs.Session:
        self.made.append(self.chief.create_session())
        return self.made[-1]


@pytest.mark.parametrize("error", [AbortedError, UnavailableError])
def test_a_run_that_loses_its_session_runs_again_in_a_new_one(counting, error) -> None:
    step, count = counting
    failures = [error("gone"), error("gone")]

    def fail() -> int:
        if failures:
            raise failures.pop()
        return 7

    seven = fs.py_func(fail, [], fs.int64)
    creator = Failing()
    with train.MonitoredSession(creator) as sess:
        sess.run(count)
        assert sess.run(seven) == 7
        assert len(creator.made) == 3 and [s.is_closed for s in creator.made] == [True, True, False]
        assert sess.run(step) == 0  # it was initialised anew


def test_it_gives_up_in_time(counting) -> None:
    def fail() -> int:
        raise UnavailableError("gone for good")

    broken = fs.py_func(fail, [], fs.int64)
    creator = Failing(max_wait_secs=0.0)
    with train.MonitoredSession(creator) as sess:
        with pytest.raises(UnavailableError, match="gone for good"):
            sess.run(broken)
        assert creator.made[-1].is_closed


def test_other_errors_are_the_users(counting) -> None:
    step, _ = counting
    late = fs.Variable(1.0, name="late", collections=["mine"])
    creator = Failing()
    with train.MonitoredSession(creator) as sess:
        with pytest.raises(FailedPreconditionError, match="late"):
            sess.run(late)
        assert len(creator.made) == 1 and sess.run(step) == 0


def test_the_end_of_the_input_ends_a_with_quietly(counting) -> None:
    with train.MonitoredSession() as sess:
        raise OutOfRangeError("no more")
    assert sess.should_stop()
    with pytest.raises(ZeroDivisionError), train.MonitoredSession() as sess:
        raise ZeroDivisionError
    assert sess.should_stop()


def test_checkpoints_need_a_global_step(graph: fs.Graph, tmp_path: Path) -> None:
    with pytest.raises(GraphError, match="get_or_create_global_step"):
        train.MonitoredTrainingSession(checkpoint_dir=str(tmp_path))


def test_a_manager_restores_or_initialises(graph: fs.Graph, tmp_path: Path) -> None:
    v = fs.Variable(1.0, name="v")
    saver, ready = train.Saver(), fs.report_uninitialized_variables()
    manager = train.SessionManager(ready_op=ready)
    sess, is_ready = manager.recover_session("", saver, str(tmp_path))
    assert not is_ready
    sess.close()
    fed = []
    with manager.prepare_session("", v.initializer, init_fn=fed.append) as sess:
        assert fed == [sess]
        sess.run(v.assign(5.0))
        path = saver.save(sess, tmp_path / "model")
    for where in ({"checkpoint_dir": str(tmp_path)}, {"checkpoint_filename_with_path": path}):
        sess, is_ready = manager.recover_session("", saver, **where)
        assert is_ready and sess.run(v) == 5.0
        sess.close()
    with pytest.raises(InvalidArgumentError, match="got both"):
        manager.prepare_session("", None, saver, str(tmp_path), path)
    with pytest.raises(GraphError, match="initialises"):
        manager.prepare_session("")
    with pytest.raises(GraphError, match="not ready.*v"):
        manager.prepare_session("", fs.no_op())


def test_others_wait_for_the_chief(graph: fs.Graph) -> None:
    with fs.container("shared by monitored sessions"):
        v = fs.Variable(1.0, name="v")
    ready = fs.report_uninitialized_variables()
    manager = train.SessionManager(ready_op=ready, recovery_wait_secs=0.01)
    with pytest.raises(DeadlineExceededError, match="not ready.*: .*v"):
        manager.wait_for_session("", max_wait_secs=0.05)
    with manager.prepare_session("", v.initializer), manager.wait_for_session("") as other:
        assert other.run(v) == 1.0
    fs.Session.reset("", ["shared by monitored sessions"])


def test_a_scaffold_takes_what_collections_have(graph: fs.Graph) -> None:
    v = fs.Variable(1.0, name="v")
    fs.add_to_collection(fs.GraphKeys.INIT_OP, v.assign(4.0).op)
    first = train.Scaffold(init_feed_dict={v: 2.0}).finalize()
    assert first.init_op.name == v.graph.get_collection(fs.GraphKeys.INIT_OP)[0].name
    again = train.Scaffold(copy_from_scaffold=first)
    assert again.saver is first.saver and again.init_feed_dict == first.init_feed_dict
