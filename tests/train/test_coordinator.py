"""Threads that end together, and the first error of them."""

import sys
import threading
import traceback

import pytest

import flowscope as fs
from flowscope.errors import InvalidArgumentError, OutOfRangeError

train = fs.train


def started(*functions) -> list[threading.Thread]:
    threads = [threading.Thread(target=f, daemon=True) for f in functions]
    for thread in threads:
        thread.start()
    return threads


def failing_at_a_line_of_its_own() -> None:
    raise ZeroDivisionError("first")


def test_the_first_error_is_raised_with_its_own_traceback() -> None:
    coord = train.Coordinator()
    seen = []

    def waits() -> None:
        with coord.stop_on_exception():
            coord.wait_for_stop()
            seen.append(coord.should_stop())
            raise ValueError("second")

    def fails() -> None:
        with coord.stop_on_exception():
            failing_at_a_line_of_its_own()

    threads = started(waits, waits, fails)
    with pytest.raises(ZeroDivisionError, match="first") as raised:
        coord.join(threads)
    assert seen == [True, True] and coord.joined
    names = [frame.name for frame in traceback.extract_tb(raised.tb)]
    assert names[-1] == "failing_at_a_line_of_its_own"
    with pytest.raises(ZeroDivisionError):
        coord.raise_requested_exception()
    coord.clear_stop()
    assert not coord.should_stop() and not coord.joined
    coord.raise_requested_exception()
    coord.join([])


@pytest.mark.parametrize("as_info", [False, True])
def test_clean_exceptions_end_the_work_and_are_no_errors(as_info: bool) -> None:
    def request(coord: fs.train.Coordinator, error: Exception) -> None:
        try:
            raise error
        except type(error) as e:
            coord.request_stop(sys.exc_info() if as_info else e)

    coord = train.Coordinator()
    request(coord, OutOfRangeError("no more"))
    assert coord.should_stop()
    coord.join()
    other = train.Coordinator(clean_stop_exception_types=[KeyError])
    request(other, OutOfRangeError("no more"))
    with pytest.raises(OutOfRangeError):
        other.join()
    with pytest.raises(ValueError, match="late"):
        request(other, ValueError("late"))  # nobody would hear of it after the join


def test_threads_that_go_on_are_told_after_their_grace() -> None:
    release = threading.Event()
    for ignore in (False, True):
        coord = train.Coordinator()
        thread = threading.Thread(target=release.wait, name="straggler", daemon=True)
        coord.register_thread(thread)
        thread.start()
        coord.request_stop()
        if ignore:
            coord.join(stop_grace_period_secs=0.0, ignore_live_threads=True)
        else:
            with pytest.raises(RuntimeError, match="still running: straggler"):
                coord.join(stop_grace_period_secs=0.0)
    release.set()


def test_a_looper_calls_until_the_coordinator_stops() -> None:
    coord = train.Coordinator()
    calls = []

    def work(a: int, b: int) -> None:
        calls.append((a, b))
        if len(calls) == 3:
            coord.request_stop()

    thread = train.LooperThread.loop(coord, None, work, args=(1,), kwargs={"b": 2})
    coord.join()
    assert calls == [(1, 2)] * 3 and not thread.is_alive() and thread.daemon


def test_a_looper_ends_its_coordinator_by_an_error_and_has_a_begin_and_an_end() -> None:
    seen = []

    class Own(train.LooperThread):
        def start_loop(self) -> None:
            seen.append("begin")

        def run_loop(self) -> None:
            seen.append("round")
            if seen.count("round") == 2:
                raise (KeyError("broken") if fails else OutOfRangeError("end"))

        def stop_loop(self) -> None:
            seen.append("end")

    for fails in (False, True):
        seen.clear()
        coord = train.Coordinator()
        Own(coord, 0.001).start()
        if fails:
            with pytest.raises(KeyError, match="broken"):
                coord.join()
        else:
            coord.join()
        assert seen == ["begin", "round", "round"]


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="Coordinator"):
        train.LooperThread(None, None)
    with pytest.raises(InvalidArgumentError, match="target"):
        train.LooperThread(train.Coordinator(), None, args=(1,))
