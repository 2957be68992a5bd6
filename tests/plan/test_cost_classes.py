"""Every op has a cost class that somebody decided: none is taken for cheap because a name is wrong.

A new op makes this fail: `python tests/plan/test_cost_classes.py` writes the table anew, and who
looks at what has changed decides. What an op costs: `calls` and `work` in its class.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections import defaultdict
from pathlib import Path

import pytest

import flowscope
import flowscope.onnx.kernels.operator  # an op that is loaded at need
from flowscope.graph.op import all_ops

TABLE = Path(__file__).parent / "data" / "cost_classes.txt"
ENGINE = Path(flowscope.__file__).parent
#: Where facts of ops are used; they stand in the ops' classes.
USERS = ("plan", "runtime", "executor", "debug", "tracing")
#: Ops that plans and the executor treat each in its own way: they steer a program's order.
STEERING = {
    "Switch", "Merge", "Enter", "Exit", "NextIteration", "LoopCond", "ControlTrigger", "NoOp",
    "BeginUpdate", "EndUpdate", "AwaitUpdate",
}  # fmt: skip
#: A module that gets classes of ops which tables define by their names, to look for patterns.
BY_NAME = "known_ops.py"


def built_in():
    return {n: op for n, op in all_ops().items() if op.__module__.startswith("flowscope.")}


def rule(op) -> str:
    """What an op's work follows."""
    if op.views or (op.reads_state and not op.writes_state):
        return "nothing"
    if op.work is None:
        return "memory"
    return op.work.unit if not op.work.seconds else f"{op.work.unit} {op.work.seconds:g} s"


def classes() -> str:
    """The names of all ops by what their work follows and how many calls they make."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for name, op in built_in().items():
        found[f"{rule(op)}, {op.calls} calls"].append(name)
    lines = []
    for what, names in sorted(found.items()):
        lines += [what, *textwrap.wrap(" ".join(sorted(names)), 96, initial_indent="  ",
                                       subsequent_indent="  ")]  # fmt: skip
    return "\n".join(lines) + "\n"


def test_the_cost_class_of_every_op_is_decided():
    assert classes() == TABLE.read_text()


def test_no_table_of_op_types_stands_where_facts_of_ops_are_used():
    ops, files, wrong = all_ops(), 0, []
    for path in sorted(p for user in USERS for p in (ENGINE / user).rglob("*.py")):
        files += 1
        found = [name for name in _names_in_tables(ast.parse(path.read_text())) if name in ops]
        if path.name != BY_NAME:
            wrong += [f"{path.name}: {name}" for name in found if name not in STEERING]
    assert wrong == [] and files > 150


def test_a_table_of_op_types_is_seen():
    module = ast.parse("_CHEAP = frozenset(['Add', 'Mul'])\n_OTHER: dict = {'MatMul': 3}")
    assert [*_names_in_tables(module)] == ["Add", "Mul", "MatMul"]


def _names_in_tables(module):
    """Yields what looks like an op type in the tables of a module, which have names in capitals."""
    for node in module.body:
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        names = [t.id for t in targets if isinstance(t, ast.Name)]
        if any(re.fullmatch(r"_?[A-Z][A-Z0-9_]*", n) for n in names):
            for one in ast.walk(node):
                if isinstance(one, ast.Constant) and isinstance(one.value, str):
                    if re.fullmatch(r"[A-Z][A-Za-z]*[A-Za-z0-9]*", one.value):
                        yield one.value


@pytest.mark.parametrize(
    ("word", "least"), [("Apply", 6), ("BatchNorm", 20), ("Pool", 20), ("Conv", 20), ("Softmax", 5)]
)
def test_ops_of_many_calls_do_not_count_as_one(word, least):
    # what applies a gradient to an accumulator only keeps it
    others = ("PoolingSequence", "AccumulatorApplyGradient", "SparseAccumulatorApplyGradient")
    names = [n for n in built_in() if word in n and n not in others]
    assert names and all(all_ops()[n].calls >= least for n in names), names


if __name__ == "__main__":
    TABLE.write_text(classes())
