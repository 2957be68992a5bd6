"""`fs.replicator.ManySteps`: one run of a session does many steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flowscope as fs
from flowscope.errors import InvalidArgumentError
from flowscope.replicator.inputs import InputMode
from flowscope.replicator.multi_device import MultiDevice
from flowscope.replicator.values import PerReplica, map_values


class ManySteps(MultiDevice):
    """Runs many steps of a step function in one run: a loop on the devices, which no client leads.

    The step is built once, as the body of a `while_loop`; its iterations take their elements from
    the input pipelines. What `run` returns has the values of the last step; running its operations,
    or fetching its tensors, runs all steps. Fetch all that is wanted in one run: each run has steps
    of its own.

    Args:
        devices: See `MultiDevice`.
        steps_per_run: How many steps a run has.
        num_logical_devices: See `MultiDevice`.
        target: See `MultiDevice`.
        input_mode: See `MultiDevice`.

    Raises:
        InvalidArgumentError: if there is not 1 step at least; else see `MultiDevice`.

    Example:
        >>> replicator = fs.replicator.ManySteps(2, steps_per_run=10)
        >>> def step():
        ...     count = fs.get_variable("count", [], initializer=fs.zeros_initializer())
        ...     return count.assign_add(1.0)
        >>> counts = replicator.run(step)
        >>> with replicator.session() as sess:
        ...     print(sess.run(replicator.reduce(counts, "mean")))
        10.0
    """

    def __init__(
        self,
        devices: Sequence[Any] | int,
        steps_per_run: int,
        num_logical_devices: int = 1,
        target: Any = "",
        *,
        input_mode: InputMode = InputMode.PER_WORKER,
    ) -> None:
        if (
            isinstance(steps_per_run, bool)
            or not isinstance(steps_per_run, int)
            or steps_per_run < 1
        ):
            raise InvalidArgumentError(f"expected 1 or more steps per run, got {steps_per_run!r}")
        super().__init__(devices, num_logical_devices, target, input_mode=input_mode)
        self._steps_per_run = steps_per_run

    def _build(self, step_fn: Callable[..., Any], takes: list[Callable[[], Any]] | None) -> Any:
        """The results of the last step."""
        results: list[Any] = []

        def body(i: fs.Tensor) -> Any:
            found = super(ManySteps, self)._build(step_fn, takes)
            done: list[Any] = []
            results.clear()
            results.append(map_values(lambda leaf: _recorded(leaf, done), found))
            with fs.control_dependencies(done):
                return i + 1

        counted = fs.while_loop(
            lambda i: i < self._steps_per_run, body, [fs.constant(0)], name="steps"
        )
        end = fs.convert_to_tensor(counted).op
        return map_values(lambda leaf: _after(leaf, end), results[0])


def _recorded(leaf: Any, done: list[Any]) -> Any:
    """What stands for a result of the body outside; the iteration waits for what is in `done`."""
    if leaf is None:
        return None
    if isinstance(leaf, fs.Operation):
        done.append(leaf)
        return leaf
    done.extend(leaf)
    return type(leaf)([fs.record(x, limit=1) for x in leaf])


def _after(leaf: Any, end: fs.Operation) -> Any:
    """The result outside of the loop."""
    if isinstance(leaf, fs.Operation):
        return fs.group(end, name="all_steps")
    if isinstance(leaf, PerReplica):
        return type(leaf)([fs.convert_to_tensor(x)[0] for x in leaf])
    return leaf


__all__ = ["ManySteps"]
