"""Makes the code of a program that came as bytes, in this process, and runs it once.

As a script it reads pickled `Job`s of its own test from standard input and writes the results.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any, NamedTuple

import numpy as np

import flowscope as fs
from flowscope.plan.codegen.function import generate
from flowscope.plan.executables.optimistic import to_executor
from flowscope.plan.ir.modules import Modules
from flowscope.plan.ir.program import Program
from flowscope.plan.ir.serialization import loads
from flowscope.plan.passes.regions import whole_region
from flowscope.runtime.state.random_generators import generator
from flowscope.runtime.threads.blas import one_thread


class Job(NamedTuple):
    """A program as bytes, the values that are fed, the variables' values by name, and the run."""

    data: bytes
    feeds: tuple[Any, ...]
    variables: dict[str, Any]
    run: tuple[int | None, int, int] = (7, 11, 3)


def double(x: Any) -> Any:
    """Stands for the first function of the user's: what the receiver has bound to number 0."""
    return x * 2


def computed(program: Program, job: Job) -> list[Any]:
    """The results of a program's code."""
    region = whole_region(program)
    code = generate(region, Modules(np), generator, to_executor)
    with fs.Graph().as_default(), fs.Session() as sess:
        made = [fs.Variable(value, name=name) for name, value in job.variables.items()]
        if made:
            sess.run([v.initializer for v in made])
        states = tuple(sess._planner.state(h.op) for h in region.handles)
        with one_thread:  # as steps have it
            return list(code.function(sess.gate, job.run, job.feeds, states))


def computed_elsewhere(jobs: list[Job], env: dict[str, str]) -> list[list[Any]]:
    """The results of each program's code, made and run by a second process."""
    sent = pickle.dumps([tuple(job) for job in jobs])
    done = subprocess.run(
        [sys.executable, __file__], input=sent, env=env, check=True, capture_output=True
    )
    return pickle.loads(done.stdout)  # type: ignore[no-any-return]


if __name__ == "__main__":
    jobs = [Job(*fields) for fields in pickle.load(sys.stdin.buffer)]
    results = [computed(loads(job.data, [double]), job) for job in jobs]
    sys.stdout.buffer.write(pickle.dumps(results))
