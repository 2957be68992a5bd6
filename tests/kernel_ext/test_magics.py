"""Magics: they profile and show what cells run, and belong to the cells that use them."""

import ast
import subprocess
import sys

import pytest
from IPython.core.error import UsageError
from shells import ROW

import flowscope as fs

RUN = f"sess.run(y, {ROW})"


def rows(printed):
    """Returns the names of a printed table's rows."""
    lines = printed.splitlines()
    head = next(i for i, line in enumerate(lines) if line.endswith("count  name"))
    return [line.split("  ")[-1] for line in lines[head + 1 :] if " us " in line]


def test_a_cell_is_profiled(model):
    printed = model.run("p", f"%%fs_profile\n\nfor _ in range(3):\n    {RUN}\nseen = {RUN}")
    assert model.error is None
    assert printed.startswith("4 steps, by op:\n")
    assert sorted(rows(printed)) == ["MatMul", "Relu", "w/read", "y"]
    assert model["seen"] == 12.0


def test_a_statement_is_profiled_and_keeps_its_spaces(model):
    printed = model.run("p", f'%fs_profile -b type words = "a  b", {RUN}')
    assert printed.startswith("1 step, by type:\n")
    assert set(rows(printed)) == {"MatMul", "ReadVariableOp", "Relu", "Sum"}
    assert model["words"] == ("a  b", 12.0)


def test_the_value_of_the_last_statement_is_shown_unless_a_semicolon_ends_it(model):
    shown = "np.float32(12.0)"  # a bare 12.0 may also be a time in the table
    assert shown in model.run("p", f"%fs_profile {RUN}")
    assert shown in model.run("p", f"%%fs_profile\n{RUN}")
    assert shown not in model.run("p", f"%%fs_profile\n{RUN};")
    model.run("p", f"got = %fs_profile {RUN}")
    assert model["got"] == 12.0


def test_top_shortens_the_table_and_says_what_is_left_out(model):
    printed = model.run("p", f"%%fs_profile --top 1\n{RUN};")
    assert len(rows(printed)) == 1
    assert "in 3 more (--top 4 shows all)" in printed


@pytest.mark.parametrize("by", ["op", "type", "scope", "line", "device", "phase"])
def test_a_profile_is_kept_and_has_the_same_rows(model, by):
    printed = model.run("p", f"%%fs_profile --by {by} -o before\n{RUN};")
    assert rows(printed) == [row.name for row in model[f"before.table({by!r})"]]
    assert isinstance(model["before"], fs.profile)
    assert not model["sess.tracers"]


def test_sessions_that_the_cell_opens_are_traced(notebook):
    printed = notebook.run(
        "p", "%%fs_profile\nwith fs.Session() as s:\n    s.run(fs.zeros([]) + 1)"
    )
    assert notebook.error is None
    assert printed.startswith("1 step, by op:\n")


def test_lines_are_those_of_the_cell(notebook):
    notebook.ok("c", "%%fs_profile\n\n\na = fs.constant(1.0)\n%fs_profile b = fs.constant(2.0)")
    number = notebook.number("c")
    for name, line in (("a", 4), ("b", 5)):
        place = notebook[f"{name}.op.origin.place"]
        assert (place.cell, place.line) == (int(number), line)


def test_a_cell_that_runs_again_replaces_what_it_made(notebook):
    notebook.ok("c", "%%fs_profile\na = fs.constant(1.0, name='a')")
    notebook.ok("c", "%%fs_profile\na = fs.constant(2.0, name='a')")
    assert notebook.operations == ["a"]
    assert notebook.marked == {"a"}


def test_a_cell_that_fails_is_told_of_and_fails_at_its_line(model):
    printed = model.fails("p", f"%%fs_profile -o before\n{RUN}\n\n1 / 0", ZeroDivisionError)
    assert printed.startswith("1 step, by op:\n")
    assert model["before.recording.traced_steps"] == 1
    assert not model["sess.tracers"]
    tb = model.error.__traceback__
    while tb.tb_next is not None:
        tb = tb.tb_next
    assert tb.tb_lineno == 4


def test_the_traceback_shows_no_line_of_the_magic(model):
    model.shell.InteractiveTB.set_mode("Context")
    try:
        printed = model.fails("p", "%%fs_profile\nfs.matmul(x, w)\nnot_there", NameError)
        shown = model.fails("q", "%fs_show not_there", NameError)
    finally:
        model.shell.InteractiveTB.set_mode("Minimal")
    assert "----> 3 not_there" in printed
    assert "magics.py" not in printed + shown


def test_an_error_of_the_engine_names_the_cells_line(model):
    model.fails("p", "%%fs_profile\n\nfs.matmul(y, y)", ValueError)
    assert f"cell {model.shell.execution_count - 1}, line 3" in str(model.error)


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ("%fs_profile", "expected a statement to run"),
        ("%%fs_profile sess\n1", "expected options alone, got 'sess'"),
        ("%%fs_profile --by colour\n1", "invalid choice: 'colour'"),
        ("%%fs_profile --top 0\n1", "expected --top to be 1 or more, got 0"),
        ("%%fs_profile -o 1a\n1", "expected the name of a variable after -o, got '1a'"),
        ("%flowscope now", "takes no arguments, got 'now'"),
    ],
)
def test_bad_options_are_refused_before_anything_runs(notebook, cell, told):
    notebook.fails("p", cell, UsageError)
    assert told in str(notebook.error)


def test_no_step_is_no_table(notebook):
    assert notebook.run("p", "%%fs_profile\n1;").startswith("no step ran: ")


def test_other_magics_stand_inside(model):
    printed = model.run("p", f"%%fs_profile\n%%capture words\nprint('unseen')\n{RUN}")
    assert printed.startswith("1 step, by op:\n")
    assert model["words.stdout"].startswith("unseen\n")


def test_show_shows_the_default_graph_or_an_expression(model):
    printed = model.run("p", "%fs_show")
    assert printed == model.run("q", "fs.show()")
    assert "MatMul" in printed
    model.run("r", f"%%fs_profile -o before\n{RUN};")
    assert model.run("p", "%fs_show before") == model.run("q", "fs.show(before)")
    model.fails("p", "%fs_show 3", TypeError)


def test_a_question_mark_shows_help(notebook):
    for line in ("%fs_profile?", "%%fs_profile?", "%fs_show?", "%flowscope?"):
        assert "Docstring:" in notebook.run("p", line)
    assert "--top N" in notebook.run("p", "%fs_profile?")


UNLOADED = """
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell()
magics = shell.magics_manager
def names():
    return [{kind: sorted(m) for kind, m in magics.magics.items()}, sorted(magics.registry)]
shell.find_line_magic("load_ext")  # IPython registers its own at first use
before = names()
shell.run_line_magic("load_ext", "flowscope")
with_it = names()
shell.run_line_magic("unload_ext", "flowscope")
print([before == names(), sorted(set(with_it[0]["line"]) - set(before[0]["line"])),
       sorted(set(with_it[0]["cell"]) - set(before[0]["cell"]))])
"""


@pytest.mark.slow
def test_the_list_of_magics_is_clean_after_unloading():
    done = subprocess.run(
        [sys.executable, "-c", UNLOADED], capture_output=True, text=True, check=True, timeout=60
    )
    told = ast.literal_eval(done.stdout.splitlines()[-1])
    assert told == [True, ["flowscope", "fs_profile", "fs_show"], ["fs_profile"]]
