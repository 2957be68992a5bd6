"""Stopping, looking, replacing, going on; and the past. Sessions and views enter by `debugger`.

What comes in is a session; what a debugger sets goes to its gate and its planner
(`flowscope.runtime`), and is written into the code of its plans (`plan.ir.breakpoints`). It
is called by users, as `session.debug`, and by views through `flowscope.live`.
"""

from flowscope.debug.breakpoints import Breakpoint
from flowscope.debug.debugger import Debugger
from flowscope.debug.explanation import ExplainedTensor, Explanation, Sentence
from flowscope.debug.history import History, RecordedValue
from flowscope.debug.replay import Replay
from flowscope.debug.statistics import Statistics
from flowscope.debug.stops import Stop, StoppedTensor
from flowscope.debug.variables import VariableInfo, Variables
from flowscope.debug.watchpoints import Watchpoint

__all__ = [
    "Breakpoint",
    "Debugger",
    "ExplainedTensor",
    "Explanation",
    "History",
    "RecordedValue",
    "Replay",
    "Sentence",
    "Statistics",
    "Stop",
    "StoppedTensor",
    "VariableInfo",
    "Variables",
    "Watchpoint",
]  # fmt: skip
