"""What a gate does with steps, and what is asked of it: one table tells what follows what.

All that a gate has is changed with its lock, and who has changed something that a step may wait for
notifies before the lock is free. A step looks, with the lock, whether it has to wait, and waits by
giving it up: so no change comes between. Two things are read without it. A step reads `raised` at
its safepoints: what is asked for after that it meets at the next one. And steps begin and end
without it: one that ends says so and then reads `raised`; who raises the flag for steps that are
inside does so and then looks whether they are. So the flag is not left up for a step that is gone.
"""

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
