"""Breakpoints of views follow a graph to its next session.

A cell that makes a session is run again, and the session that views look at is another one, with a
debugger of its own. What views had asked of the one before is asked of the new one. What cannot be
set yet - an operation that the cell has not made again - waits, and is tried at each look.
"""

from __future__ import annotations

import weakref
from dataclasses import replace
from typing import Any

from flowscope.errors import OpError
from flowscope.live.answers import debugging
from flowscope.live.protocol.debug_schema import DebugState
from flowscope.runtime.session.session import Session

#: Commands that set what follows.
SETS = ("break", "watch", "stop_at_nan")


class _Followed:
    """What a view has asked for.

    Attributes:
        name, value: The command.
        point: What stands for it in the latest session; None where it waits.
        is_enabled: Whether it is to be on.
        why: Why it waits, "" where it does not.
    """

    def __init__(self, name: str, value: Any, point: Any) -> None:
        self.name, self.value, self.point = name, value, point
        self.is_enabled = True
        self.why = ""


class Following:
    """Carries breakpoints that views have set from session to session of one graph."""

    def __init__(self) -> None:
        self._session: weakref.ref[Session] | None = None
        self._followed: list[_Followed] = []

    def carry_out(self, session: Session, name: str, value: Any) -> str:
        """Does what a view asks of the debugger; returns what was done.

        Raises:
            OpError, ValueError, KeyError: if that cannot be.
        """
        self.look(session)
        if name == "stop_at_nan":
            self._followed = [one for one in self._followed if one.name != name]
        before = set(session.debug.breakpoints)
        told = debugging.carry_out(session, name, value)
        if name in SETS:
            made = [p for p in session.debug.breakpoints if p not in before]
            self._followed += [_Followed(name, value, p) for p in made]
        return told

    def look(self, session: Session | None) -> None:
        """Takes a session that may be another one than at the look before."""
        if session is None or session.is_closed:
            return
        if not self._followed:
            self._session = weakref.ref(session)
            return
        before = None if self._session is None else self._session()
        if session is not before:
            if before is not None:
                self._note(before)
            self._session = weakref.ref(session)
            for one in self._followed:
                one.point = None
        elif any(one.point is not None for one in self._followed):
            self._note(session)
        for one in self._followed:
            if one.point is None:
                self._set(session, one)

    def _note(self, session: Session) -> None:
        """Forgets what was removed, and notes what was switched off."""
        present = set(session.debug.breakpoints)
        self._followed = [f for f in self._followed if f.point is None or f.point in present]
        for one in self._followed:
            one.is_enabled = one.is_enabled if one.point is None else one.point.is_enabled

    def _set(self, session: Session, one: _Followed) -> None:
        known = set(session.debug.breakpoints)
        try:
            debugging.carry_out(session, one.name, one.value)
        except (OpError, ValueError, KeyError) as e:
            one.why = str(e).partition("\n")[0]
            return
        one.why = ""
        one.point = next(p for p in session.debug.breakpoints if p not in known)
        if not one.is_enabled:
            one.point.is_enabled = False

    def told(self, debug: DebugState | None) -> DebugState | None:
        """The state of a debugger, with what follows and what waits."""
        if not self._followed:
            return debug
        numbers = {one.point.number for one in self._followed if one.point is not None}
        waiting = [f"{_told(f)} waits: {f.why}" for f in self._followed if f.point is None]
        found = debug or DebugState((), ())
        points = [replace(p, follows=p.number in numbers) for p in found.breakpoints]
        told = replace(found, breakpoints=tuple(points), waiting=tuple(waiting))
        return told if points or told.stops or waiting else None


def _told(one: _Followed) -> str:
    if one.name == "stop_at_nan":
        return "stop at the first NaN"
    wish = one.value
    what = wish.op or wish.scope or wish.op_type
    if what is None:
        what = "everything" if wish.line is None else f"line {wish.line}"
    return f"{'watchpoint' if one.name == 'watch' else 'breakpoint'} of {what}"


__all__ = ["SETS", "Following"]
