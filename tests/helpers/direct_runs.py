"""Runs functions of plans directly, as a session's step would."""

from __future__ import annotations

from contextlib import AbstractContextManager
from threading import get_ident
from typing import Any

import flowscope as fs
from flowscope.graph.current_step import working_for
from flowscope.plan.plan import Plan
from flowscope.runtime.step.step import Step


def in_step(sess: fs.Session, plan: Plan) -> AbstractContextManager[None]:
    """Returns a context in which this thread works for a step of a plan's request."""
    call: Any = sess._call(plan.request.fetches, list(plan.request.feeds), plan.request.mode)
    return working_for(Step(call, None, sess.gate, sess.engine.host_threads, get_ident()))
