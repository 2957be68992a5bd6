"""What is told of fetched values, and of two values of one fetch."""

import json
import math

import ml_dtypes
import numpy as np
import pytest

from flowscope.live.answers.fetched import PARTS, change, fetched
from flowscope.live.watchers.wire import plain


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float32(0.1), "0.1"),
        (np.int64(7), "7"),
        (np.True_, "True"),
        (b"caf\xc3\xa9", r"b'caf\xc3\xa9'"),
        (np.array([1.5, -2.0], np.float32), "[ 1.5, -2. ]"),
        (np.array([], np.float32), "[]"),
        (np.float32("nan"), "nan"),
        (np.complex64(1 + 2j), "(1+2j)"),
        (ml_dtypes.bfloat16(1.5), "1.5"),
        (None, "done"),
    ],
)
def test_scalars_and_short_arrays_are_written_out(value, text):
    told = fetched("y:0", value)
    assert told.text == text
    json.dumps(plain(told), allow_nan=False)


def test_of_an_array_there_are_figures_and_a_histogram():
    values = np.linspace(-1.0, 3.0, 1000, dtype=np.float32)
    values[[3, 5]] = np.nan, np.inf
    told = fetched("y:0", values.reshape(10, 100))
    assert (told.dtype, told.shape, told.text) == ("float32", (10, 100), "")
    assert (told.minimum, told.maximum, told.not_finite) == (-1.0, 3.0, 2)
    assert told.mean == pytest.approx(1.0, abs=0.01)
    assert len(told.histogram) == PARTS and sum(told.histogram) == 998
    json.dumps(plain(told), allow_nan=False)


@pytest.mark.parametrize(
    "value",
    [np.full(100, np.nan), np.full(100, 2), np.array([b"a"] * 20, object), np.zeros((100, 0))],
)
def test_where_there_is_nothing_to_count_there_is_no_histogram(value):
    assert fetched("y:0", value).histogram == ()


def test_a_large_range_and_wide_integers_do_not_overflow():
    assert fetched("y:0", np.array([-1.7e308, 1.7e308] * 10)).maximum == 1.7e308
    told = fetched("y:0", np.array([2**63 - 1, 0] * 10, np.uint64))
    assert told.maximum == float(2**63) and sum(told.histogram) == 20


@pytest.mark.parametrize(
    ("before", "now", "is_equal", "max_abs"),
    [
        ([1.0, 2.0], [1.0, 2.0], True, 0.0),
        ([1.0, 2.0], [1.0, 2.5], False, 0.5),
        ([0.0], [-0.0], False, 0.0),
        ([math.nan, 1.0], [math.nan, 1.5], False, 0.5),
        ([math.nan, 1.0], [1.0, 1.0], False, None),
        ([math.inf], [math.inf], True, 0.0),
        ([1, 5], [1, 2], False, 3.0),
        ([True, False], [True, True], False, 1.0),
        ([b"a", b"b"], [b"a", b"c"], False, None),
        ([1.0], [1.0, 2.0], False, None),
        ([1.0], [1], False, None),
        ([1j], [2j], False, 1.0),
    ],
)
def test_two_values_are_compared(before, now, is_equal, max_abs):
    told = change("y:0", np.array(before), np.array(now))
    assert (told.is_equal, told.max_abs) == (is_equal, max_abs)
    assert ("equal bits" in told.text) == is_equal


def test_operations_have_no_values_to_compare():
    assert change("train", None, None).is_equal and not change("y:0", None, 1.0).is_equal
