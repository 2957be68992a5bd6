"""Tracebacks that show the user's lines and not flowscope's own."""

from __future__ import annotations

from types import TracebackType

from flowscope.graph.origins.origin import is_ours


def users_lines(tb: TracebackType | None) -> TracebackType | None:
    """Returns the traceback without the frames of flowscope and of generated code.

    The frames that come before the first frame of flowscope are kept; if there are none, all are.
    """
    frames: list[TracebackType] = []
    while tb is not None:
        if not is_ours(tb.tb_frame.f_code.co_filename):
            frames.append(tb)
        tb = tb.tb_next
    result: TracebackType | None = None
    for frame in reversed(frames):
        result = TracebackType(result, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return result
