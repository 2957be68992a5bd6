"""Tasks that have not answered a step: why, and that the cluster knows it when the step ends.

Each connection with a task ends on a thread of its own. A step that hears first that a task is lost
waits until the cluster has noted it, so that whoever gets the error finds the task lost everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping

from flowscope.cluster.transport.runs import PendingRun
from flowscope.cluster.worker.owners import ClusterOwner
from flowscope.errors import UnavailableError


class Unanswered:
    """The tasks that have not answered a step.

    Args:
        cluster: The cluster.

    Attributes:
        errors: Why not, by the tasks.
    """

    __slots__ = ("_cluster", "_cut", "errors")

    def __init__(self, cluster: ClusterOwner) -> None:
        self._cluster = cluster
        self._cut: set[str] = set()
        self.errors: dict[str, UnavailableError] = {}

    def add(self, task: str, error: BaseException, run: PendingRun | None = None) -> None:
        """Adds a task, if the error says that it is lost or hangs.

        Args:
            task: The task.
            error: Why it has not answered.
            run: What it was to answer; None where it has not heard of it.
        """
        if isinstance(error, UnavailableError):
            self.errors[task] = error
            if run is not None and run.is_cut:
                self._cut.add(task)

    def cause(self, errors: Mapping[str, BaseException], failed_at: str) -> BaseException | None:
        """Returns why the step has ended, as far as tasks tell it; None if none says anything.

        Args:
            errors: What tasks have answered.
            failed_at: Who has told first that the step fails there; "" for nobody.
        """
        found = [*errors.values(), *self.errors.values()]
        if found or not failed_at:
            return errors.get(failed_at) or next(iter(found), None)
        return UnavailableError(
            f"the step has failed on {failed_at}, which has not said why: it is held up, or cannot "
            "be reached"
        )

    def note(self, lives: Mapping[str, int]) -> None:
        """Waits until the cluster knows which of the tasks are lost.

        Args:
            lives: Which lives of tasks are meant.
        """
        if self.errors:
            self._cluster.note_losses({task: lives[task] for task in self.errors}, self._cut)


__all__ = ["Unanswered"]
