"""Running from a view, for Python: what is fetched and fed, the runs, what they have changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import traitlets

from flowscope.live.protocol.run_schema import FetchChange, Need
from flowscope.live.watchers.bus import LiveChannel
from flowscope_widgets.run_setup import Setup, setup_of
from flowscope_widgets.runs import Run


class RunControl(traitlets.HasTraits):
    """What a view is to run; all views of a graph share it, and the session is that of the view."""

    #: What pages show of it: a `RunSetup` as plain data. It changes with all that is set here.
    run_setup: Any = traitlets.Dict(read_only=True).tag(sync=True)

    _setup: Setup

    def _follow_runs(self, feed: LiveChannel) -> None:
        """Goes over to the runs of a feed."""
        if hasattr(self, "_setup"):
            self._setup.leave(self)
        self._setup = setup_of(feed)
        self._setup.follow(self)

    @property
    def fetches(self) -> list[str]:
        """The names of what is fetched: "y:0" of a tensor, "train" of an operation.

        Tensors, operations, variables and names can be set, in a list or alone.
        """
        return list(self._setup.fetches)

    @fetches.setter
    def fetches(self, fetches: Any) -> None:
        self._setup.choose(fetches)

    @property
    def feeds(self) -> dict[str, Any]:
        """What is fed, by the tensor's name: a value, or a `FromNotebook`.

        It can be set like `Session.run`'s `feed_dict`.
        """
        given = self._setup.feeds.items()
        return {name: fed.given for name, fed in given if not fed.is_missing}

    @feeds.setter
    def feeds(self, feeds: Mapping[Any, Any]) -> None:
        self._setup.give(feeds)

    @property
    def needs(self) -> tuple[Need, ...]:
        """The tensors that must be fed, with dtype, shape, and what is known of their values.

        Those of which no value is known have "" as `value`.
        """
        return self._setup.needs()

    @property
    def runs(self) -> tuple[Run, ...]:
        """The latest runs, oldest first, with their values."""
        return tuple(self._setup.runs.kept)

    @property
    def baseline(self) -> int | None:
        """The number of the run that the latest is compared with; None for the one before."""
        return self._setup.runs.baseline

    @baseline.setter
    def baseline(self, number: int | None) -> None:
        self._setup.note_baseline(number)

    def run(self) -> list[Any]:
        """Runs `fetches` with `feeds` in the view's session, and shows what comes of it.

        Returns:
            The values in the order of `fetches`; None of operations.

        Raises:
            FailedPreconditionError: if nothing is to be fetched, a value is missing, or no session
                runs the graph.
            OpError: as `Session.run`.
        """
        __tracebackhide__ = True
        return list(self._setup.run().values())

    def changes(
        self, before: int | None = None, after: int | None = None
    ) -> tuple[FetchChange, ...]:
        """Returns how the values of a run differ from those of another, by fetch of both.

        Args:
            before: The number of a run; that of `baseline` if None.
            after: The number of another; the latest if None.

        Raises:
            InvalidArgumentError: if there is no such run any more.
        """
        return self._setup.runs.changes(before, after)


__all__ = ["RunControl"]
