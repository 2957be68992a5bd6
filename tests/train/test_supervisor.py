"""Supervisors: sessions that are restored or initialised, and services beside them."""

from pathlib import Path

import pytest

import flowscope as fs
from flowscope.errors import AbortedError, GraphError, OutOfRangeError

train = fs.train


@pytest.fixture
def count(graph: fs.Graph) -> fs.Operation:
    """Counts the global step up by one."""
    return train.get_or_create_global_step().assign_add(1).op


def test_training_goes_on_from_the_last_checkpoint(count, tmp_path: Path) -> None:
    step = train.get_global_step()
    sv = train.Supervisor(logdir=str(tmp_path), save_model_secs=0)
    assert step.graph.finalized and sv.save_path == str(tmp_path / "model.ckpt")
    for begin in (0, 3):
        with sv.managed_session() as sess:
            assert sess.run(step) == begin
            while not sv.should_stop():
                sess.run(count)
                if sess.run(step) == begin + 3:
                    sv.saver.save(sess, sv.save_path, global_step=step)
                    sv.request_stop()
        assert sess.is_closed and sv.coord.joined


def test_services_write_checkpoints_summaries_and_steps_a_second(count, tmp_path: Path) -> None:
    fs.summary.scalar("one", fs.constant(1.0))
    sv = train.Supervisor(logdir=str(tmp_path), save_model_secs=1e-3, save_summaries_secs=1e-3)

    def tags() -> set[str]:
        sv.summary_writer.flush()
        found = [e for p in tmp_path.glob("events*") for e in train.summary_iterator(str(p))]
        return {v.tag for e in found if e.summary is not None for v in e.summary.value}

    with sv.managed_session() as sess:
        while tags() < {"one", "global_step/sec"} or not train.latest_checkpoint(str(tmp_path)):
            sess.run(count)
        threads = list(sv.coord._threads)
        assert len(threads) == 3
    assert not any(t.is_alive() for t in threads)


def test_errors_come_out_and_the_end_of_the_input_does_not(count, tmp_path: Path) -> None:
    sv = train.Supervisor(logdir=str(tmp_path))
    with sv.managed_session():
        raise OutOfRangeError("no more")
    with pytest.raises(ZeroDivisionError), sv.managed_session():
        raise ZeroDivisionError
    sessions = []

    def fails() -> None:
        raise KeyError("in a thread")

    def train_beside() -> None:
        with sv.managed_session() as sess:
            sessions.append(sess)
            sv.loop(None, fails)
            sv.wait_for_stop()

    with pytest.raises(KeyError, match="in a thread"):
        train_beside()
    assert sessions[0].is_closed


def test_queue_runners_are_started(graph: fs.Graph) -> None:
    taken = train.string_input_producer(["a", "b"], num_epochs=1, shuffle=False).dequeue()
    sv = train.Supervisor()
    found = []
    with sv.managed_session() as sess:
        while not sv.should_stop():
            found.append(sess.run(taken))
    assert found == [b"a", b"b"]


def test_a_basic_loop_begins_anew_after_a_session_was_aborted(count) -> None:
    sv = train.Supervisor()
    seen = []

    def step_fn(sess: fs.Session, name: str, most: int) -> None:
        sess.run(count)
        seen.append((name, sess))
        if len(seen) == 2:
            raise AbortedError("gone")
        if len(seen) == most:
            sv.request_stop()

    train.basic_train_loop(sv, step_fn, args=("a",), kwargs={"most": 4})
    assert [name for name, _ in seen] == ["a"] * 4
    assert len({id(sess) for _, sess in seen}) == 2


def test_pieces_may_be_given_or_left_out(count) -> None:
    calls = []
    summary = fs.summary.scalar("mine", fs.constant(2.0))
    sv = train.Supervisor(
        ready_op=None, local_init_op=None, summary_op=summary, saver=None, init_fn=calls.append
    )
    assert sv.saver is None and sv.summary_op is summary and sv.summary_writer is None
    with sv.managed_session() as sess:
        assert calls == [sess]
        assert sv.start_standard_services(sess) == []  # there is no folder
        with pytest.raises(GraphError, match="logdir"):
            sv.summary_computed(sess, b"")


def test_only_the_chief_serves(count) -> None:
    sv = train.Supervisor(is_chief=False, logdir="unused")
    assert sv.summary_writer is None and sv.save_path is None
    with fs.Session() as sess, pytest.raises(GraphError, match="only the chief"):
        sv.start_standard_services(sess)
