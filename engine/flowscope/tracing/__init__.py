"""What happened in steps, when and where. Users enter by `fs.tracing`, sessions by `recorder`.

In: what the runtime has noted of steps (`runtime.trace.step_trace`). Out: a `Recording`: spans
by lane, node, frame and iteration, totals, gaps. Called by the user (`fs.profile`), by
`Session.run` with a trace level, and by `flowscope.live` for the views.
"""

from flowscope.tracing.chrome import chrome_trace as chrome_trace
from flowscope.tracing.files import load as load, save as save
from flowscope.tracing.findings import (
    Finding as Finding,
    Findings as Findings,
    why_slow as why_slow,
)
from flowscope.tracing.profile import profile as profile
from flowscope.tracing.recorder import Recorder as Recorder
from flowscope.tracing.recording import Recording as Recording
from flowscope.tracing.tables import table as table
from flowscope.tracing.timeline import Timeline as Timeline

__all__ = [
    "Finding",
    "Findings",
    "Recorder",
    "Recording",
    "Timeline",
    "chrome_trace",
    "load",
    "profile",
    "save",
    "table",
    "why_slow",
]
