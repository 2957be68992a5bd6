"""The magics of the extension: `%flowscope`, `%fs_show`, `%fs_profile` and `%%fs_profile`."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from itertools import takewhile
from types import FrameType
from typing import Any

from IPython.core import magic_arguments
from IPython.core.error import UsageError
from IPython.core.magic import (
    Magics,
    line_cell_magic,
    line_magic,
    magics_class,
    needs_local_scope,
    output_can_be_silenced,
)

from flowscope.live.watchers.show import show
from flowscope.tracing.profile import profile
from flowscope.tracing.tables import KEYS
from flowscope_widgets import panel

_TOP = 10

# IPython declares no types of these.
_with_arguments: Callable[[], Callable[[Any], Any]] = magic_arguments.magic_arguments
_argument: Callable[..., Callable[[Any], Any]] = magic_arguments.argument


@magics_class
class FlowscopeMagics(Magics):
    """The magics of one IPython shell."""

    #: The shell; IPython declares that there may be none.
    shell: Any

    def unregister(self) -> None:
        """Takes the magics out of the shell's lists."""
        manager = self.shell.magics_manager
        for kind, names in self.magics.items():
            for name in names:
                manager.magics[kind].pop(name, None)
        manager.registry.pop(type(self).__name__, None)

    @line_magic
    def flowscope(self, line: str) -> None:
        """Opens flowscope's panel beside the notebook, in JupyterLab: `%flowscope`."""
        if line.strip():
            raise UsageError(
                f"%flowscope opens the panel and takes no arguments, got {line.strip()!r}"
            )
        panel.tell_pages(is_wanted=True)

    @needs_local_scope
    @line_magic
    def fs_show(self, line: str, local_ns: dict[str, Any] | None = None) -> Any:
        """Shows a graph, or what was profiled, and returns the view.

        `%fs_show` shows the default graph; `%fs_show EXPRESSION` the graph, session or profile that
        the expression gives, as `fs.show` does:

            %fs_show sess
            %fs_show before
        """
        __tracebackhide__ = True  # read by IPython
        return show(self._value(line, local_ns) if line.strip() else None)

    @_with_arguments()
    @_argument(
        "-b",
        "--by",
        choices=tuple(KEYS),
        default="op",
        help="What the rows of the table are; operations if not given.",
    )
    @_argument(
        "-n",
        "--top",
        type=int,
        metavar="N",
        default=_TOP,
        help=f"How many rows are printed, those that took the most time; {_TOP} if not given.",
    )
    @_argument(
        "-o",
        "--output",
        metavar="NAME",
        help="Keeps the profile in this variable: what `fs.profile()` gives.",
    )
    @_argument("statement", nargs="...", help="What runs, where it is no cell: `%%fs_profile`.")
    @output_can_be_silenced
    @needs_local_scope
    @line_cell_magic
    def fs_profile(
        self, line: str, cell: str | None = None, local_ns: dict[str, Any] | None = None
    ) -> Any:
        """Profiles the steps that a statement or a cell runs, and prints where the time went.

        In line mode: `%fs_profile [options] statement`; in cell mode the options stand alone:

            %%fs_profile --by line --top 5 -o before
            for _ in range(100):
                sess.run(train, feed)

        All sessions are traced, also those that the cell opens. A cell that fails or is interrupted
        is told of as far as it ran. A profile that was kept has the rest: `before.table("type")`,
        `before.export_chrome_trace(path)`, and `%fs_show before` shows its timeline.
        """
        __tracebackhide__ = True  # read by IPython
        # An option has no spaces: what follows them stays as it was typed.
        words = line.split()
        options = self.fs_profile.parser.parse_args(words)
        _check(options, is_cell=cell is not None)
        if cell is None:
            statement = line.split(None, len(words) - len(options.statement))[-1]
            source, name = self._of_line(statement)
        else:
            source, name = self._of_cell(f"%%fs_profile {line}".strip(), cell)
        parsed = self.shell.transform_ast(self.shell.compile.ast_parse(source, filename=name))
        profiled = profile()
        try:
            with profiled:
                return self._run(parsed, name, local_ns)
        finally:
            if options.output is not None:
                self.shell.user_ns[options.output] = profiled
            print(_report(profiled, options.by, options.top))

    def _value(self, expression: str, local_ns: dict[str, Any] | None) -> Any:
        __tracebackhide__ = True  # read by IPython
        source, name = self._of_line(expression.strip())
        code = self.shell.compile(ast.parse(source, name, "eval"), name, "eval")
        return eval(code, self.shell.user_ns, local_ns)

    def _run(self, parsed: ast.Module, name: str, local_ns: dict[str, Any] | None) -> Any:
        """Runs what was parsed; returns the value of the last statement if it is an expression."""
        __tracebackhide__ = True  # read by IPython
        compiled, names = self.shell.compile, self.shell.user_ns
        *body, last = parsed.body or [ast.Pass()]
        if not isinstance(last, ast.Expr):
            exec(compiled(parsed, name, "exec"), names, local_ns)
            return None
        exec(compiled(ast.Module(body, []), name, "exec"), names, local_ns)
        return eval(compiled(ast.Expression(last.value), name, "eval"), names, local_ns)

    def _of_line(self, statement: str) -> tuple[str, str]:
        """Returns the source of a statement, standing at the user's line, and the file's name."""
        frame = self._cell_frame()
        source = self.shell.transform_cell(statement)
        if frame is None:
            return source, "<fs_profile>"
        return "\n" * (frame.f_lineno - 1) + source, frame.f_code.co_filename

    def _of_cell(self, magic: str, cell: str) -> tuple[str, str]:
        """Returns a cell's source, in which lines have the numbers of the user's, and its name."""
        # IPython strips empty lines in front.
        empty = sum(1 for _ in takewhile(str.isspace, cell.splitlines(keepends=True)))
        source = f"# {magic}\n" + "\n" * empty + self.shell.transform_cell(cell)
        frame = self._cell_frame()
        number = 0 if frame is None else self._cells()[frame.f_code.co_filename]
        return source, self.shell.compile.cache(source, number, raw_code=source)

    def _cell_frame(self) -> FrameType | None:
        """Returns the frame of the cell that runs the magic."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename not in self._cells():
            frame = frame.f_back
        return frame

    def _cells(self) -> dict[str, int]:
        """Returns the cells' numbers by the file names of their code."""
        found: dict[str, int] = getattr(self.shell.compile, "_filename_map", {})
        return found


def _check(options: Any, *, is_cell: bool) -> None:
    """Refuses options that cannot be meant."""
    if is_cell and options.statement:
        raise UsageError(
            f"%%fs_profile expected options alone, got {' '.join(options.statement)!r}: "
            "put statements below it, or use %fs_profile with one %"
        )
    if not is_cell and not options.statement:
        raise UsageError("%fs_profile expected a statement to run: `%fs_profile sess.run(train)`")
    if options.top < 1:
        raise UsageError(f"expected --top to be 1 or more, got {options.top}")
    if options.output is not None and not options.output.isidentifier():
        raise UsageError(f"expected the name of a variable after -o, got {options.output!r}")


def _report(profiled: profile, by: str, top: int) -> str:
    """The text of a profile."""
    steps, table = profiled.recording.traced_steps, profiled.table(by)
    if steps == 0:
        return "no step ran: `sess.run(...)` inside of what is profiled is what is measured"
    lines = [f"{steps:,} step{'s' if steps > 1 else ''}, by {by}:", repr(table[:top])]
    if len(table) > top:
        rest = sum(row.share for row in table[top:])
        lines.append(f"{rest:6.1%} in {len(table) - top:,} more (--top {len(table)} shows all)")
    return "\n".join(lines)
