"""Traces: what happened in steps, when and where.

In: what the runtime has noted of steps (`flowscope.runtime.step_trace`). Out: a `Recording`: spans
by lane, node, frame and iteration, totals, gaps. Called by the user (`fs.profile`), by
`Session.run` with a trace level, and by `flowscope.live` for the views.
"""
