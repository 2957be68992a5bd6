"""A session for notebooks."""

from __future__ import annotations

from typing import Any

from flowscope.graph import default
from flowscope.graph.graph import Graph
from flowscope.runtime.config import ConfigProto
from flowscope.runtime.session.session import Session


class InteractiveSession(Session):
    """A session that is the default one from now on, for notebooks: `x.eval()` uses it."""

    def __init__(
        self, target: str = "", graph: Graph | None = None, config: ConfigProto | None = None
    ) -> None:
        super().__init__(target, graph, config)
        self._before = default.install(self.graph, self)

    def close(self) -> None:
        """Ends the session and restores what was the default before it."""
        if not self._closed and default.get_default_session() is self:
            graph, session = self._before
            while isinstance(session, InteractiveSession) and session.is_closed:
                graph, session = session._before
            default.install(graph, session)
        super().close()

    def __exit__(self, *exc: Any) -> None:
        self.close()
