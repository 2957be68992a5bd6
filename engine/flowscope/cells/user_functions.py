"""Python functions of the user's that ops hold: `py_func` calls one in steps, a gradient another.

They are no attributes: neither written nor compared when plans are made. Where a cell is run again
the function is another object, and `fingerprint` tells whether it does the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flowscope.cells.fingerprint import Comparison, Seen

if TYPE_CHECKING:
    from flowscope.graph.graph import Graph
    from flowscope.graph.op import Op


class Held:
    """A function that an op holds, as its `held`.

    Args:
        graph: Where the op is used; what the function does is taken down if a cell builds it.
        function: The function.
        says: Whose behaviour counts, if not that of `function`.
        token: The attribute of the op that stands for the function, if there is one.
        is_live: Whether only steps call it, and nothing is kept of what it returns.
    """

    def __init__(
        self,
        graph: Graph,
        function: Any,
        says: Any = None,
        token: str | None = None,
        is_live: bool = False,
    ) -> None:
        self.function = function
        self.token = token
        self._is_live = is_live
        self._behaviour: Seen | None = None
        if graph.run is not None:
            from flowscope.cells.fingerprint_scan import (
                fingerprint,  # at need: outside cells it is not
            )

            self._behaviour = fingerprint(function if says is None else says)

    def compared(self, earlier: Held, stands_for: Callable[[Any], Any]) -> Comparison | None:
        """Returns how its function and an earlier one compare; None if that is not known."""
        mine, other = self._behaviour, earlier._behaviour
        if mine is None or other is None:
            return None
        return Comparison(mine, other, self._is_live and earlier._is_live, stands_for)

    def take(self, later: Held) -> None:
        """Calls the later function, which does the same, from now on.

        The user's other code has the later one, and what it encloses.
        """
        self.function, self._behaviour = later.function, later._behaviour

    def giving_back(self) -> Callable[[], None]:
        """A function that restores what it calls now."""
        before = self.function, self._behaviour

        def give_back() -> None:
            self.function, self._behaviour = before

        return give_back


def held_by(definition: Op) -> Held | None:
    """Returns the user's function that an op holds, None if it holds none."""
    return getattr(definition, "held", None)


__all__ = ["Held", "held_by"]
