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
import weakref
from bisect import bisect_right
from collections.abc import Callable
from types import CodeType, FrameType

from flowscope.graph.lazy import frozen

_OURS, _USERS, _FOREIGN = range(3)
#: Where the three packages lie.
_FOLDER = os.path.abspath(__file__).rsplit(os.sep, 4)[0]
_PACKAGES = tuple(
    os.path.join(_FOLDER, name) + os.sep
    for name in ("flowscope", "flowscope_kernel", "flowscope_widgets")
)
_LIBRARIES = (
    sysconfig.get_path("stdlib") + os.sep,
    "<frozen",
    *{sysconfig.get_path(p) for p in ("purelib", "platlib")},
)
#: Kind of frame by file name: there are few files and very many frames.
_kind_of_file: dict[str, int] = {}

#: Where lines begin in bytecode, in order, and the lines.
LineTable = tuple[list[int], list[int]]
#: By the id of a code object that lives: to read its table for each operation takes as long as it
#: is.
_lines: dict[int, LineTable] = {}

#: User frames kept per operation, innermost first.
DEPTH = 4

#: Filled by the notebook extension: file name of a cell's code -> its execution count.
cell_of: Callable[[str], int | None] = lambda filename: None  # noqa: E731


@frozen
class SourceLine:
    """One line of the user's code."""

    #: File name as Python knows it.
    filename: str
    #: Execution count if the line stands in a notebook cell, else None.
    cell: int | None
    #: From 1.
    line: int
    #: The function that the line stands in; "" at the top of a file or a cell, or where unknown.
    function: str = ""

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
    def key(self) -> tuple[int, ...]:
        """What two origins of the same lines share while both live."""
        return tuple([f if type(f) is int else id(f) for f in self._frames])

    @property
    def variable(self) -> str:
        """The Python variable that takes what the lines make; "" where there is none."""
        from flowscope.graph.origins.assigned import variable_of

        return variable_of(self._frames)

    @property
    def places(self) -> tuple[SourceLine, ...]:
        """The user's lines, innermost first; empty if there was none."""
        pairs = zip(self._frames[::2], self._frames[1::2], strict=True)
        return tuple(_place(code, instruction) for code, instruction in pairs)  # type: ignore[arg-type]

    @property
    def place(self) -> SourceLine | None:
        """The user's innermost line."""
        if not self._frames:
            return None
        code, instruction = self._frames[:2]
        return _place(code, instruction)  # type: ignore[arg-type]


def _place(code: CodeType, instruction: int) -> SourceLine:
    function = "" if code.co_name == "<module>" else code.co_name
    return SourceLine(
        code.co_filename, cell_of(code.co_filename), line_of(code, instruction), function
    )


def line_of(code: CodeType, instruction: int) -> int:
    """Returns the line, from 1, of an instruction of a code object."""
    table = _lines.get(id(code))
    if table is None:
        table = _lines[id(code)] = _line_table(code)
        weakref.finalize(code, _lines.pop, id(code), None).atexit = False
    starts, lines = table
    return lines[bisect_right(starts, instruction) - 1]


def _line_table(code: CodeType) -> LineTable:
    """Returns where in the bytecode lines begin, and which these are."""
    rows = [(start, line) for start, _, line in code.co_lines() if line is not None]
    rows = [(-1, code.co_firstlineno), *rows]
    return [start for start, _ in rows], [line for _, line in rows]


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


def is_ours(filename: str) -> bool:
    """Whether code in this file belongs to flowscope (or was generated by it)."""
    return filename.startswith((*_PACKAGES, "<flowscope "))


def stacklevel() -> int:
    """Returns the `stacklevel` for the caller's `warnings.warn` that leads to the user's line."""
    level = 1
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_ours(frame.f_code.co_filename):
        frame, level = frame.f_back, level + 1
    return level
