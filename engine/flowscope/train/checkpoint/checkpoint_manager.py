"""Checkpoints of objects in a folder, of which the last few are kept."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from flowscope.errors import InvalidArgumentError
from flowscope.graph.operation import Tensor
from flowscope.graph.values.expected import expected, expected_dtype
from flowscope.ops.state.variables import Variable
from flowscope.train.checkpoint.checkpoints import (
    get_checkpoint_mtimes,
    get_checkpoint_state,
    latest_checkpoint,
    remove_checkpoint,
    update_checkpoint_state,
)
from flowscope.train.checkpoint.object_checkpoint import Checkpoint, session_of
from flowscope.train.checkpoint.retention import Retention


class CheckpointManager:
    """Saves a `Checkpoint` to a folder, and deletes the older checkpoints there.

    What the folder's file "checkpoint" says is taken over: a manager of a later process goes on
    where an earlier one stopped. One manager at a time may be used for a folder.

    Args:
        checkpoint: What is saved.
        directory: The folder; it is made by the first `save`.
        max_to_keep: How many checkpoints are kept; None for all.
        keep_checkpoint_every_n_hours: Of those that go, one is kept for good every so many hours;
            None for none.
        checkpoint_name: How the names of the files begin.
        step_counter: A variable or tensor that counts steps; `checkpoint_interval` needs it.
        checkpoint_interval: Between two checkpoints are at least so many steps.
        init_fn: What `restore_or_initialize` calls where there is no checkpoint.
        last_checkpoint_step: The step of a last checkpoint, from which the interval counts.

    Raises:
        InvalidArgumentError: if max_to_keep is not positive, or there is an interval without
            step_counter.
        DataLossError: if the folder's file "checkpoint" is damaged.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        directory: Any,
        max_to_keep: int | None,
        keep_checkpoint_every_n_hours: float | None = None,
        checkpoint_name: str = "ckpt",
        step_counter: Any = None,
        checkpoint_interval: int | None = None,
        init_fn: Callable[[], Any] | None = None,
        last_checkpoint_step: int | None = None,
    ) -> None:
        if not isinstance(checkpoint, Checkpoint):
            raise expected_dtype("an fs.train.Checkpoint", repr(checkpoint))
        if max_to_keep is not None and max_to_keep <= 0:
            raise expected("a positive max_to_keep, or None for all", max_to_keep)
        if checkpoint_interval is not None and step_counter is None:
            raise InvalidArgumentError("checkpoint_interval needs a step_counter, got None")
        self._checkpoint, self._directory = checkpoint, os.fsdecode(directory)
        self._name = checkpoint_name
        self._step_counter, self._interval = step_counter, checkpoint_interval
        self._init_fn = init_fn
        self._last_step = last_checkpoint_step
        hours = keep_checkpoint_every_n_hours or float("inf")
        self._kept = _recovered(self._directory, Retention(max_to_keep or sys.maxsize, hours))

    @property
    def checkpoint(self) -> Checkpoint:
        """What is saved."""
        return self._checkpoint

    @property
    def directory(self) -> str:
        """The folder."""
        return self._directory

    @property
    def checkpoint_interval(self) -> int | None:
        """Between two checkpoints are at least so many steps; None for any number."""
        return self._interval

    @property
    def checkpoints(self) -> list[str]:
        """The prefixes that may be deleted later, the oldest first; not those kept for good."""
        return [prefix for prefix, _ in self._kept.kept]

    @property
    def latest_checkpoint(self) -> str | None:
        """The prefix of the folder's latest checkpoint, None if there is none."""
        return latest_checkpoint(self._directory)

    def save(
        self,
        checkpoint_number: Any = None,
        check_interval: bool = True,
        options: None = None,
        session: Any = None,
    ) -> str | None:
        """Writes a checkpoint, and deletes those that need not be kept any more.

        Args:
            checkpoint_number: The number in its name: an integer, a variable or a tensor; by
                default the checkpoint's `save_counter`, which counts in any case.
            check_interval: Whether `checkpoint_interval` counts; if not, only a second checkpoint
                of the same step is left out.
            options: None.
            session: The session that holds the values; the default session by default.

        Returns:
            The checkpoint's prefix; None if it is too early for one.
        """
        if options is not None:
            raise InvalidArgumentError(f"there are no options of checkpoints here, got {options!r}")
        sess = session_of(session)
        if self._is_too_early(sess, check_interval):
            return None
        count = self._checkpoint._increment_save_counter(sess)
        number = count if checkpoint_number is None else _value(sess, checkpoint_number)
        path = os.path.join(self._directory, f"{self._name}-{number}")
        self._note(self._checkpoint.write(path, sess))
        return path

    def restore_or_initialize(self, session: Any = None) -> str | None:
        """Restores the latest checkpoint; calls `init_fn` where there is none.

        Variables that the checkpoint lacks stay as they are.

        Args:
            session: The session that gets the values; the default session by default.

        Returns:
            The checkpoint's prefix, None if there is none.
        """
        sess, latest = session_of(session), self.latest_checkpoint
        if latest is None:
            if self._init_fn is not None:
                self._init_fn()
            return None
        self._checkpoint.restore(latest).run_restore_ops(sess)
        if self._interval is not None:
            self._last_step = _value(sess, self._step_counter)
        return latest

    def _is_too_early(self, sess: Any, check_interval: bool) -> bool:
        if self._interval is None:
            return False
        step = _value(sess, self._step_counter)
        if self._last_step is not None:
            least = self._interval if check_interval else 0
            if step == self._last_step or step < self._last_step + least:
                return True
        self._last_step = step
        return False

    def _note(self, path: str) -> None:
        self._kept, gone = self._kept.with_new(path, get_checkpoint_mtimes([path])[0])
        update_checkpoint_state(
            self._directory,
            path,
            self.checkpoints,
            all_model_checkpoint_timestamps=[time for _, time in self._kept.kept],
            last_preserved_timestamp=self._kept.preserved,
        )
        for prefix in gone:
            remove_checkpoint(prefix)


def _recovered(directory: str, empty: Retention) -> Retention:
    """Returns the checkpoints that an earlier manager has left in the folder."""
    state = get_checkpoint_state(directory)
    if state is None:
        return empty
    paths = state.all_model_checkpoint_paths
    times = state.all_model_checkpoint_timestamps or [float("inf")] * len(paths)
    kept = list(zip(paths, times, strict=True))
    return Retention(empty.max_to_keep, empty.hours, kept, state.last_preserved_timestamp)


def _value(sess: Any, number: Any) -> int:
    return int(sess.run(number) if isinstance(number, Variable | Tensor) else number)


__all__ = ["CheckpointManager"]
