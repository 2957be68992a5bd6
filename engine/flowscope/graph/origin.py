"""Where the user's code made an operation: captured cheaply, resolved when somebody asks.

Capturing keeps (code object, instruction) pairs of the user's frames and nothing else; file, cell,
line and text are worked out later. Frames of flowscope itself are passed over, and the walk stops
where the notebook's or the interpreter's machinery begins.
"""

from __future__ import annotations

import linecache
import os
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FrameType

_OURS, _USERS, _FOREIGN = range(3)
_PACKAGES = tuple(
    os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), name) + os.sep
    for name in ("flowscope", "flowscope_kernel", "flowscope_widgets")
)
_LIBRARIES = (sysconfig.get_path("stdlib") + os.sep, "<frozen", *{sysconfig.get_path(p) for p in ("purelib", "platlib")})
#: Kind of frame by file name: there are few files and very many frames.
_kind_of_file: dict[str, int] = {}

#: User frames kept per operation, innermost first.
DEPTH = 4

#: Filled by the notebook extension: file name of a cell's code -> its execution count.
cell_of: Callable[[str], int | None] = lambda filename: None  # noqa: E731


@dataclass(frozen=True)
class Place:
    """One line of the user's code."""

    #: File name as Python knows it.
    filename: str
    #: Execution count if the line stands in a notebook cell, else None.
    cell: int | None
    #: From 1.
    line: int

    @property
    def text(self) -> str:
        """The line itself, stripped; "" where it cannot be read."""
        return linecache.getline(self.filename, self.line).strip()

    def __str__(self) -> str:
        if self.cell is not None:
            return f"cell {self.cell}, line {self.line}"
        return f"{os.path.basename(self.filename)}, line {self.line}"


class Origin:
    """The user's frames that led to an operation, innermost first."""

    __slots__ = ("_frames",)

    def __init__(self, frames: tuple[CodeType | int, ...]) -> None:
        self._frames = frames

    @property
    def places(self) -> tuple[Place, ...]:
        """The user's lines, innermost first; empty if there was none."""
        pairs = zip(self._frames[::2], self._frames[1::2], strict=True)
        return tuple(_place(code, instruction) for code, instruction in pairs)  # type: ignore[arg-type]

    @property
    def place(self) -> Place | None:
        """The user's innermost line."""
        return next(iter(self.places), None)


def _place(code: CodeType, instruction: int) -> Place:
    line = code.co_firstlineno
    for start, end, number in code.co_lines():
        if start <= instruction < end and number is not None:
            line = number
            break
    return Place(code.co_filename, cell_of(code.co_filename), line)


def _kind(filename: str) -> int:
    if filename.startswith(_PACKAGES):
        kind = _OURS
    elif filename.startswith(_LIBRARIES):
        kind = _FOREIGN
    else:
        kind = _USERS
    _kind_of_file[filename] = kind
    return kind


def capture() -> Origin:
    """Returns the origin of the caller's caller: the user's frames, at most `DEPTH` of them."""
    frame: FrameType | None = sys._getframe(2)
    kinds = _kind_of_file
    kept: list[CodeType | int] = []
    fallback: tuple[CodeType | int, ...] = ()
    while frame is not None:
        code = frame.f_code
        kind = kinds.get(code.co_filename)
        if kind is None:
            kind = _kind(code.co_filename)
        if kind == _USERS:
            kept += (code, frame.f_lasti)
            if len(kept) == 2 * DEPTH:
                break
        elif kind == _FOREIGN:
            if kept:
                break
            fallback = fallback or (code, frame.f_lasti)
        frame = frame.f_back
    return Origin(tuple(kept) or fallback)
