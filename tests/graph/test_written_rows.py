"""Property: random graphs of all rows of the table of ops come back, and run to the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from op_oracle import same_bits
from op_rows import ROWS, Row

import flowscope as fs


class Built:
    """A graph of some rows, each on placeholders of its own."""

    def __init__(self, rows: list[tuple[Row, str, int]], known: bool, gradients: bool) -> None:
        self.graph = fs.Graph()
        self.graph.seed = 5
        self.feeds: dict[str, Any] = {}
        self.fetches: list[str] = []
        with self.graph.as_default():
            for row, dtype, seed in rows:
                self._add(row, dtype, seed, known or row.rank or row.static, gradients)

    def _add(self, row: Row, dtype: str, seed: int, known: bool, gradients: bool) -> None:
        rng = np.random.default_rng(seed)
        arrays = [i.make(rng, dtype) for i in row.inputs]
        xs = [fs.placeholder(fs.as_dtype(a.dtype), np.shape(a) if known else None) for a in arrays]
        self.feeds |= {x.name: a for x, a in zip(xs, arrays, strict=True)}
        out = row.call(*xs)
        outputs = list(out) if isinstance(out, list | tuple) else [out]
        self.fetches += [t.name for t in outputs]
        smooth = [x for x in xs if x.dtype.is_differentiable]
        if gradients and row.order and smooth and outputs[0].dtype.is_floating:
            found = fs.gradients(outputs[0], smooth)
            self.fetches += [fs.convert_to_tensor(g).name for g in found if g is not None]

    def values(self, graph: Any) -> list[Any]:
        with fs.Session(graph=graph) as sess:
            return sess.run(self.fetches, self.feeds)  # type: ignore[no-any-return]


def returns(built: Built) -> None:
    graph = built.graph
    text, json = graph.text(exact=True), graph.to_json()
    again = fs.Graph.from_text(text)
    assert again.text(exact=True) == text
    other = fs.Graph.from_json(json)
    assert other.to_json() == json
    assert again.as_graph_def() == other.as_graph_def() == graph.as_graph_def()
    want = built.values(graph)
    for g in (again, other):
        assert all(map(same_bits, built.values(g), want))


a_row = st.sampled_from(ROWS).flatmap(
    lambda row: st.tuples(st.just(row), st.sampled_from(row.dtypes), st.integers(0, 9))
)


@pytest.mark.slow
@settings(max_examples=30)
@given(st.lists(a_row, min_size=1, max_size=4), st.booleans(), st.booleans())
def test_random_graphs_come_back(rows: Any, known: bool, gradients: bool) -> None:
    returns(Built(rows, known, gradients))


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, len(ROWS), 25))
def test_all_rows_come_back(start: int) -> None:
    rows = [(row, row.dtypes[-1], 1) for row in ROWS[start : start + 25]]
    returns(Built(rows, known=True, gradients=True))
