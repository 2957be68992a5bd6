"""What a gate does with steps, and what is asked of it: one table tells what follows what."""

from __future__ import annotations

from typing import Literal

#: "arrive" comes from a step that has done its move.
Request = Literal["pause", "resume", "stop", "close", "step", "arrive"]
State = Literal["open", "pausing", "stepping", "stopping", "closed"]

#: state -> request -> new state ("paused" is "pausing" with a step held). A stop also ends a
#: pause.
TRANSITIONS: dict[State, dict[Request, State]] = {
    "open": {
        "pause": "pausing",
        "resume": "open",
        "stop": "stopping",
        "close": "closed",
        "step": "stepping",
        "arrive": "open",
    },
    "pausing": {
        "pause": "pausing",
        "resume": "open",
        "stop": "stopping",
        "close": "closed",
        "step": "stepping",
        "arrive": "pausing",
    },
    "stepping": {
        "pause": "pausing",
        "resume": "open",
        "stop": "stopping",
        "close": "closed",
        "step": "stepping",
        "arrive": "pausing",
    },
    "stopping": {
        "pause": "stopping",
        "resume": "stopping",
        "stop": "stopping",
        "close": "closed",
        "step": "stopping",
        "arrive": "stopping",
    },
    "closed": {
        "pause": "closed",
        "resume": "closed",
        "stop": "closed",
        "close": "closed",
        "step": "closed",
        "arrive": "closed",
    },
}

__all__ = ["TRANSITIONS", "Request", "State"]
