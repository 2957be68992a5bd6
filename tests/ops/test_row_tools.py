"""Tests of many rows each: every row runs, and every one that fails is named."""

import pytest
from row_tools import ROWS_PER_TEST, Row, for_each

import flowscope as fs

ROWS = [Row(f"row{i}", fs.negative, fs.negative, ()) for i in range(ROWS_PER_TEST + 3)]


def parts(test):
    (mark,) = test.pytestmark
    return mark.args[1]


def test_every_row_runs_in_a_graph_of_its_own():
    seen = []

    @for_each(ROWS)
    def test(row):
        seen.append((row, fs.get_default_graph()))

    for part in parts(test):
        test(part)
    assert [row for row, _ in seen] == ROWS and len({graph for _, graph in seen}) == len(ROWS)


def test_all_rows_that_fail_are_named_with_their_errors():
    @for_each(ROWS)
    def test(row):
        assert row.name not in ("row2", "row5")

    with pytest.raises(ExceptionGroup, match=f"2 of {ROWS_PER_TEST} rows: row2, row5") as caught:
        test(parts(test)[0])
    assert [type(error) for error in caught.value.exceptions] == [AssertionError] * 2
    test(parts(test)[1])


def test_one_row_can_be_chosen(monkeypatch):
    monkeypatch.setenv("FS_ROW", "row1$")
    assert parts(for_each(ROWS)(print)) == [[ROWS[1]]]
