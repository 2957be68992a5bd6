"""Every op has a cost class that somebody decided: none is taken for cheap because a name is wrong.

A new op makes this fail: `python tests/plan/test_cost_classes.py` writes the table anew, and who
looks at what has changed decides. What an op costs: `calls` in its class, tables in `plan.costs`.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections import defaultdict
from pathlib import Path

import pytest

from flowscope.graph.op import all_ops
from flowscope.plan import costs

TABLE = Path(__file__).parent / "data" / "cost_classes.txt"
PLAN = Path(costs.__file__).parent
#: Strings in tables of `plan/` that are no op types though they look like it.
NO_OPS = {"CPU", "GPU"}


def built_in():
    return {n: op for n, op in all_ops().items() if op.__module__.startswith("flowscope.")}


def classes() -> str:
    """Returns the names of all ops by what their work follows and how many calls they make."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for name, op in built_in().items():
        found[f"{costs.rule_of(op)}, {op.calls} calls"].append(name)
    lines = []
    for what, names in sorted(found.items()):
        lines += [what, *textwrap.wrap(" ".join(sorted(names)), 96, initial_indent="  ",
                                       subsequent_indent="  ")]  # fmt: skip
    return "\n".join(lines) + "\n"


def test_the_cost_class_of_every_op_is_decided():
    assert classes() == TABLE.read_text()


def test_tables_of_plans_name_ops_that_there_are():
    ops, wrong, seen = all_ops(), [], 0
    for path in sorted(PLAN.rglob("*.py")):
        for name in _names_in_tables(ast.parse(path.read_text())):
            seen += 1
            wrong += [f"{path.name}: {name}"] if name not in ops and name not in NO_OPS else []
    assert not wrong and seen > 80


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
    names = [n for n in built_in() if word in n and n not in ("PoolingSequence",)]
    assert names and all(all_ops()[n].calls >= least for n in names), names


if __name__ == "__main__":
    TABLE.write_text(classes())
