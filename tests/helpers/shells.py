"""A notebook in an IPython shell of this process, and what its cells may hold."""

import contextlib
import io
import re
import sys

from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config


@contextlib.contextmanager
def notebook_here():
    """A notebook in this process; at the end nothing of the shell and the extension is left."""
    main, hook = sys.modules["__main__"], sys.excepthook
    notebook = Notebook()
    try:
        yield notebook
    finally:
        notebook.run("end", "%unload_ext flowscope")
        sys.modules["__main__"], sys.excepthook = main, hook


MODEL = """
x = fs.placeholder(fs.float32, [None, 3], name="x")
w = fs.get_variable("w", [3, 2], initializer=fs.ones_initializer())
h = fs.matmul(x, w)
h = fs.nn.relu(h)
y = fs.reduce_sum(h, name="y")
"""
SESSION = "sess = fs.Session()\nsess.run(fs.global_variables_initializer());"
ROW = "{x: [[1.0, 1.0, 1.0]]}"


class Notebook:
    """A shell that runs cells with identities."""

    def __init__(self):
        quiet = Config()
        quiet.HistoryManager.enabled = False
        quiet.InteractiveShell.colors = "nocolor"
        quiet.InteractiveShell.xmode = "Minimal"
        self.shell = InteractiveShell(config=quiet)
        self.error = None
        self.run("setup", "%load_ext flowscope\nimport flowscope as fs, numpy as np")

    def run(self, cell, source):
        """Runs a cell, which may fail; returns what it printed."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
            result = self.shell.run_cell(source, store_history=True, cell_id=cell)
        self.error = result.error_before_exec or result.error_in_exec
        return printed.getvalue()

    def ok(self, cell, source):
        """Runs a cell that must not fail; returns what the extension said about the graph."""
        text = self.run(cell, source)
        assert self.error is None, self.error
        assert "Error in callback" not in text
        return self.told(text)

    @staticmethod
    def told(text):
        """Returns the report of a re-run without numbers of cells, "" for none."""
        found = re.search(r"^cell \d+ (again|failed): ?(?s:.*)", text, re.MULTILINE)
        return (
            re.sub(r"cell \d+ again: |cell \d+ (failed)", r"\1", found[0].strip()) if found else ""
        )

    def fails(self, cell, source, kind):
        """Runs a cell that must fail; returns what it printed."""
        text = self.run(cell, source)
        assert isinstance(self.error, kind), self.error
        return text

    def __getitem__(self, expression):
        """Returns the value of an expression of the user's names, outside cells."""
        return eval(expression, self.shell.user_ns)  # noqa: S307 - the tests' own

    def number(self, cell):
        """Returns the number in front of a cell."""
        return self["fs.get_default_graph().observer"].find(cell).label

    @property
    def operations(self):
        return [op.name for op in self["fs.get_default_graph().get_operations()"]]

    @property
    def variables(self):
        return [v.name for v in self["fs.global_variables()"]]

    @property
    def marked(self):
        """Names of what the latest re-run has changed or added, as views mark it."""
        graph = self["fs.get_default_graph()"]
        return {op.name for op in graph.get_operations() if op.id in graph.observer.marked}


def value(notebook, tensor="y"):
    return float(notebook[f"sess.run({tensor}, {ROW})"])
