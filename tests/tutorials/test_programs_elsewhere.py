"""Programs that the tutorials plan go to a second process; its code gives the same bits."""

import dataclasses
from pathlib import Path

import nbformat
import numpy as np
import pytest
from code_of_program import Job, computed_elsewhere
from shells import notebook_here

import flowscope as fs
from flowscope.plan.executables.back_ends import Executable
from flowscope.plan.ir.memories import is_host
from flowscope.plan.ir.serialization import dumps
from flowscope.runtime.planning import planner

TUTORIALS = sorted((Path(__file__).parents[2] / "tutorials").glob("*.ipynb"))


def bits(values):
    return [np.asarray(v).tobytes() for v in values]


def recorded(plan, kept, on_others):
    """Returns the plan; what its code takes and gives in the first run goes to `kept`.

    Left out are programs with queues, readers or functions of the notebook's; those on
    devices that the second process has not are noted in `on_others`.
    """
    devices = {node.device for node in plan.program.walk()}
    if not all(is_host(d) and "/job:worker" not in d for d in devices):
        on_others.append(plan)
        return plan
    data, functions = dumps(plan.program)
    if plan.back_end != "python" or functions:
        return plan
    ran = []

    def function(gate, run, feeds, resources):
        if not all(hasattr(s, "value") for s in resources):  # queues and readers
            return plan.executable.function(gate, run, feeds, resources)
        values = {s.name: np.copy(s.value) for s in resources if s.value is not None}
        taken = tuple(np.copy(f) if isinstance(f, np.ndarray) else f for f in feeds)
        results = plan.executable.function(gate, run, feeds, resources)
        if not ran:
            ran.append(True)
            kept.append((Job(data, taken, values, tuple(run)), bits(results)))
        return results

    made = plan.executable
    return dataclasses.replace(plan, executable=Executable(function, made.by_op, made.code))


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("path", TUTORIALS, ids=lambda p: p.stem)
def test_programs_of_the_tutorials_give_the_same_bits_elsewhere(
    path, source_env, monkeypatch, tmp_path
):
    kept, on_others = [], []
    make = planner.make_plan
    monkeypatch.setattr(planner, "make_plan", lambda *args: recorded(make(*args), kept, on_others))
    monkeypatch.chdir(tmp_path)
    fs.reset_default_graph()  # of what another tutorial has built
    errors = []
    with notebook_here() as notebook:
        for i, cell in enumerate(nbformat.read(path, as_version=4).cells):
            if cell.cell_type == "code":
                notebook.run(f"cell-{i}", cell.source)
                if notebook.error and "raises-exception" not in cell.metadata.get("tags", []):
                    errors.append(notebook.error)
    fs.reset_default_graph()  # a session that is monitored has finalized it
    assert errors == []
    assert len(kept) + len(on_others) > 3
    there = computed_elsewhere([job for job, _ in kept], source_env)
    assert [bits(values) for values in there] == [found for _, found in kept]
