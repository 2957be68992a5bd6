"""Hooks that begin a training late, and end it: at a step, or where the loss is not a number."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import numpy as np

from flowscope.errors import InvalidArgumentError, OutOfRangeError
from flowscope.runtime.session.session import Session
from flowscope.train.session.hooks.run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from flowscope.train.session.hooks.stepping import GlobalStepHook

if TYPE_CHECKING:
    from flowscope.train.input.coordinator import Coordinator

__all__ = [
    "FinalOpsHook",
    "GlobalStepWaiterHook",
    "NanLossDuringTrainingError",
    "NanTensorHook",
    "StopAtStepHook",
]

_LOGGER = logging.getLogger("flowscope")
#: Seconds between two looks of a `GlobalStepWaiterHook` at the global step.
_LOOK_S = 0.5
#: Global steps between two messages of it.
_TOLD_STEPS = 1000


class NanLossDuringTrainingError(RuntimeError):
    """The loss of a training was not a number."""

    def __str__(self) -> str:
        return "NaN loss during training."


class StopAtStepHook(GlobalStepHook):
    """Ends the training at a global step.

    Args:
        num_steps: After so many steps more than the first session begins with.
        last_step: At this global step.

    Raises:
        InvalidArgumentError: if not exactly one of them is given.
        GraphError: where the session begins, if there is no global step.
    """

    def __init__(self, num_steps: int | None = None, last_step: int | None = None) -> None:
        if (num_steps is None) == (last_step is None):
            given = "neither" if num_steps is None else "both"
            raise InvalidArgumentError(f"expected one of num_steps and last_step, got {given}")
        self._num_steps = num_steps
        self._last_step = last_step

    def after_create_session(self, session: Session, coord: Coordinator) -> None:
        """Begins anew with a session."""
        if self._last_step is None:
            assert self._num_steps is not None
            self._last_step = self._exact_step(session) + self._num_steps

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Acts if it is due."""
        last = self._last_step
        assert last is not None
        if run_values.results + 1 >= last and self._exact_step(run_context.session) >= last:
            run_context.request_stop()


class NanTensorHook(SessionRunHook):
    """Ends the training where a loss is not a number.

    Args:
        loss_tensor: The loss; of several elements any may be it.
        fail_on_nan_loss: True: NanLossDuringTrainingError is raised; else the training just ends.
    """

    def __init__(self, loss_tensor: Any, fail_on_nan_loss: bool = True) -> None:
        self._loss = loss_tensor
        self._fails = fail_on_nan_loss

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Asks for what it needs of a run."""
        return SessionRunArgs(self._loss)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Acts if it is due."""
        if not np.isnan(run_values.results).any():
            return
        if self._fails:
            _LOGGER.error("Model diverged with loss = NaN.")
            raise NanLossDuringTrainingError
        _LOGGER.warning("Model diverged with loss = NaN.")
        run_context.request_stop()


class GlobalStepWaiterHook(GlobalStepHook):
    """Holds a session's first run until others have brought the global step so far.

    Workers that begin one after another train more steadily.

    Args:
        wait_until_step: The global step.
    """

    def __init__(self, wait_until_step: int) -> None:
        self._wait_until_step = wait_until_step
        self._coord: Coordinator | None = None
        self._has_begun = wait_until_step <= 0

    def after_create_session(self, session: Session, coord: Coordinator) -> None:
        """Begins anew with a session."""
        self._coord = coord

    def before_run(self, run_context: SessionRunContext) -> None:
        """Asks for what it needs of a run."""
        if self._has_begun:
            return
        wanted, told = self._wait_until_step, 0
        _LOGGER.info("Waiting for global step %d before starting training.", wanted)
        while (step := self._exact_step(run_context.session)) < wanted:
            if step - told >= _TOLD_STEPS:
                _LOGGER.info("Waiting for global step %d, it is %d.", wanted, step)
                told = step
            assert self._coord is not None
            if self._coord.wait_for_stop(_LOOK_S):
                return
        self._has_begun = True


class FinalOpsHook(SessionRunHook):
    """Runs a last step at the end of the session.

    Args:
        final_ops: What is fetched.
        final_ops_feed_dict: What is fed.
    """

    def __init__(self, final_ops: Any, final_ops_feed_dict: Any = None) -> None:
        self._ops = final_ops
        self._feeds = final_ops_feed_dict
        self._values: Any = None

    @property
    def final_ops_values(self) -> Any:
        """What was fetched at the end; None before."""
        return self._values

    def end(self, session: Session) -> None:
        """Runs the last step."""
        if self._ops is None:
            return
        try:
            self._values = session.run(self._ops, self._feeds)
        except (OutOfRangeError, StopIteration):
            _LOGGER.warning(
                "The input ended in the step of a FinalOpsHook: what is fetched at the end should "
                "not read input."
            )
            raise
