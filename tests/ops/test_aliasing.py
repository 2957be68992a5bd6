"""No op hands out memory of a variable, a feed or a constant: every row of the table, all modes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from op_oracle import noted, same_bits
from op_rows import ROWS, Row
from row_tools import for_each

import flowscope as fs

pytestmark = pytest.mark.slow  # not one of them is: all together take 20 s


class Sides:
    """A row's call three times: with its inputs as feeds, variables and constants."""

    def __init__(self, row: Row) -> None:
        rng = np.random.default_rng(5)
        self.arrays = [i.make(rng, row.dtypes[0]) for i in row.inputs]
        self.graph = fs.Graph()
        with self.graph.as_default():
            self.feeds = [fs.placeholder(fs.as_dtype(a.dtype), np.shape(a)) for a in self.arrays]
            self.variables = [fs.Variable(np.array(a)[()]) for a in self.arrays]
            constants = [fs.constant(np.array(a)[()]) for a in self.arrays]
            self.fetches: list[Any] = []
            reads = [v.read_value() for v in self.variables]
            for inputs in (self.feeds, reads, constants):
                out = row.call(*inputs)
                self.fetches += out if isinstance(out, list | tuple) else [out]
            self.renewed = [v.assign(v.read_value() * 0) for v in self.variables
                            if v.dtype.is_numeric]  # fmt: skip
            self.initializer = fs.global_variables_initializer()

    def run(self, mode: Any) -> None:
        config = fs.ConfigProto(mode=mode)
        with fs.Session(graph=self.graph, config=config) as session:
            session.run(self.initializer)
            fed = [np.array(a) for a in self.arrays]
            got = session.run(self.fetches, dict(zip(self.feeds, fed, strict=True)))
            want = [np.copy(g) for g in got]
            scribble(fed)
            check(got, want, "after the feeds were written")
            scribble(got)
            again = session.run(self.fetches, dict(zip(self.feeds, self.arrays, strict=True)))
            check(again, want, "after the fetched arrays were written")
            session.run(self.renewed)
            check(again, want, "after the variables were written")


def scribble(arrays: list[Any]) -> None:
    for a in arrays:
        if isinstance(a, np.ndarray):
            assert a.flags.writeable
            a.reshape(-1)[:] = a.dtype.type(1) if a.dtype != object else b"scribbled"


def check(got: list[Any], want: list[Any], when: str) -> None:
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        assert same_bits(g, w), f"output {i} has changed {when}"


@for_each(r for r in ROWS if r.inputs)
def test_what_is_fetched_belongs_to_the_user(row: Row) -> None:
    sides = Sides(row)
    for mode in ("compiled", "op", "tokens"):
        with noted(mode):
            sides.run(mode)
