"""Calls: all that can be worked out before a step, kept per (fetches, feeds, mode)."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from flowscope.graph.graph import Graph
from flowscope.graph.late import frozen
from flowscope.plan.plan import Plan
from flowscope.runtime.feeds import Converter
from flowscope.runtime.fetches import Rebuild
from flowscope.runtime.resources import uninitialized


class Call:
    """A plan with all that running it in one session needs.

    Attributes:
        plan: The plan.
        edits: How many edits of the graph it has seen: none of them concerns the plan.
        function: Runs the plan: (gate, run, feeds, resources) -> values for the user.
        by_op: The same one operation at a time, where somebody steps through it.
        converters: One per feed.
        rebuild: Makes the user's structure from the fetched values.
        single: Whether the fetch is one tensor, whose value is the result.
        resources: The state that the function gets.
        required: Of it, what must have a value before the step.
        is_checked: Whether the required variables were seen initialised.
    """

    __slots__ = (
        "by_op",
        "converters",
        "edits",
        "function",
        "is_checked",
        "plan",
        "rebuild",
        "required",
        "resources",
        "single",
    )

    def __init__(
        self,
        plan: Plan,
        edits: int,
        function: Callable[..., tuple[Any, ...]],
        by_op: Callable[..., tuple[Any, ...]],
        converters: tuple[Converter, ...],
        rebuild: Rebuild,
        single: bool,
        resources: tuple[Any, ...],
        required: tuple[Any, ...],
    ) -> None:
        self.plan = plan
        self.edits = edits
        self.function = function
        self.by_op = by_op
        self.converters = converters
        self.rebuild = rebuild
        self.single = single
        self.resources = resources
        self.required = required
        self.is_checked = not required

    def is_current(self, graph: Graph) -> bool:
        """Whether the plan is not stale: no operation of it was edited since it was made."""
        edits = graph.edits
        if self.edits != edits:
            if not self.plan.operations.isdisjoint(graph.edited_since(self.edits)):
                return False
            self.edits = edits
        return True

    def check_initialized(self) -> None:
        """Raises FailedPreconditionError if variables that are read first have no value yet."""
        missing = [s.name for s in self.required if not s.is_initialized]
        if missing:
            raise uninitialized(missing)
        self.is_checked = True


@frozen
class PlanCacheInfo:
    """How a session's cache of plans does.

    Attributes:
        hits: Runs that found their plan.
        misses: Runs (and other calls) that had to plan.
        size: Plans that are kept.
        max_size: So many are kept at most; those that were not used for longest go first.
    """

    hits: int
    misses: int
    size: int
    max_size: int


class Calls(dict[Hashable, Call]):
    """A bounded cache in two generations; finding something in it is finding it in a dict.

    The dict itself holds the young ones. Once they are half of the bound they become the old ones,
    in place of those that were; a call that is found among the old ones is young again. So what is
    dropped was not used while half the bound of others were: nearly the longest unused, at no cost
    for those who look up.

    Attributes:
        max_size: The bound.
        misses: How often `add` was called.
    """

    def __init__(self, max_size: int) -> None:
        super().__init__()
        self.max_size = max_size
        self.misses = 0
        self._old: dict[Hashable, Call] = {}

    def find(self, key: Hashable) -> Call | None:
        """Returns the call of either generation, None if there is none."""
        found = self.get(key)
        if found is None:
            found = self._old.pop(key, None)
            if found is not None:
                self._keep(key, found)
        return found

    def add(self, key: Hashable, call: Call) -> None:
        """Adds a call that was just made."""
        self.misses += 1
        self._old.pop(key, None)
        self._keep(key, call)

    def _keep(self, key: Hashable, call: Call) -> None:
        if len(self) >= self.max_size // 2 and key not in self:
            self._old = dict(self)
            self.clear()
        self[key] = call

    def drop(self) -> None:
        """Forgets all calls."""
        self._old = {}
        self.clear()

    @property
    def size(self) -> int:
        """How many calls are kept."""
        return len(self) + len(self._old)
