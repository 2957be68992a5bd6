"""Values of another kind than the placeholder: converted as in TensorFlow 1, or refused."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as arrays

import flowscope as fs

NAN, INF = float("nan"), float("inf")


def fed(dtype, value, shape=None):
    """Returns the value that a placeholder of a dtype has when `value` is fed."""
    with fs.Graph().as_default(), fs.Session() as s:
        p = fs.placeholder(dtype, shape, name="p")
        return s.run(fs.identity(p), {p: value})


#: dtype, value, what TensorFlow makes of it.
TAKEN = [
    ("int32", 1.7, 1),
    ("int32", -1.7, -1),
    ("int32", [1.7, -2.9], [1, -2]),
    ("int32", np.array([0.5, 0.0], np.float16), [0, 0]),
    ("int32", np.float32(2.5), 2),
    ("int32", -2147483648.9, -2147483648),
    ("int64", 1e10, 10**10),
    ("uint8", 255.9, 255),
    ("uint8", np.array([300]), [44]),
    ("uint8", np.int64(300), 44),
    ("int32", [True, False], [1, 0]),
    ("bool", 1, True),
    ("bool", 0, False),
    ("bool", -1.7, True),
    ("bool", [5, 0], [True, False]),
    ("bool", np.array([0.5, 0.0, NAN]), [True, False, True]),
    ("bool", np.int64(300), True),
    ("bool", [], []),
    ("float32", 2**24, 2.0**24),
    ("float32", [2**24 + 1], [2.0**24]),
    ("float32", True, 1.0),
]
#: dtype, value, what the error says; TensorFlow refuses the first ones, too.
REFUSED = [
    ("int32", 3_000_000_000, "expected int32, got 3000000000"),
    ("uint8", -1, "expected uint8, got -1"),
    ("int8", 300, "expected int8, got 300"),
    ("bool", 5, "expected an int that is a bool, got 5"),
    ("bool", -1, "expected an int that is a bool, got -1"),
    ("float32", 2**24 + 1, "expected an int that is a float32, got 16777217"),
    ("float16", 70_000, "expected an int that is a float16, got 70000"),
    ("complex64", 2**24 + 1, "expected an int that is a complex64, got 16777217"),
    ("float64", 10**400, "expected an int that is a float64"),
    ("int32", "a", "expected int32, got 'a' of type string"),
    ("int32", NAN, "expected int32, got nan"),
    ("int32", [INF], r"expected int32, got \[inf\]"),
    ("int32", 2147483648.0, "expected int32"),
    ("int64", np.array([2.0**63]), "expected int64"),
    ("uint8", -1.7, "expected uint8"),
    ("uint8", [300], "expected uint8"),
    ("int32", "12", "expected int32, got '12' of type string"),
    ("float32", "12", "expected float32, got '12' of type string"),
    ("float32", None, "expected numbers"),
    ("float32", 1j, "expected float32, got 1j"),
    ("bool", 1j, "expected bool, got 1j"),
    ("bool", "a", "expected bool, got 'a' of type string"),
    ("bool", {1}, "expected numbers"),
    ("float32", Fraction(1, 2), "expected numbers"),
]


@pytest.mark.parametrize(("dtype", "value", "expected"), TAKEN, ids=str)
def test_what_is_taken(dtype, value, expected):
    expected = np.array(expected, dtype)
    for shape in (None, np.shape(value)):
        got = fed(dtype, value, shape)
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(("dtype", "value", "message"), REFUSED, ids=str)
def test_what_is_refused(dtype, value, message):
    for shape in (None, np.shape(value)):
        with pytest.raises(TypeError, match=f'cannot feed "p:0": {message}'):
            fed(dtype, value, shape)


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
def test_all_modes_convert(graph, mode):
    i, b = fs.placeholder(fs.int32, [2]), fs.placeholder(fs.bool, [2])
    with fs.Session(config=fs.ConfigProto(mode=mode)) as s:
        got = s.run(fs.where(b, i, -i), {i: [1.5, 2.5], b: [3, 0]})
    assert got.tolist() == [1, -2]


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(["int8", "uint8", "int32", "int64", "bool", "float32"]),
    arrays.arrays(
        st.sampled_from([np.float16, np.float32, np.float64, np.int8, np.int64, np.bool_]),
        arrays.array_shapes(min_dims=0, max_side=3),
    ),
)
def test_arrays_are_cast_as_numpy_casts_where_that_is_defined(dtype, value):
    is_open = False  # whether C leaves the result open
    if value.dtype.kind == "f" and np.dtype(dtype).kind in "iu":
        whole, limits = np.trunc(value.astype(np.float64)), np.iinfo(dtype)
        is_open = not ((whole >= limits.min) & (whole < float(limits.max + 1))).all()
    if is_open:
        with pytest.raises(TypeError, match="cannot feed"):
            fed(dtype, value)
        return
    with np.errstate(over="ignore"):
        expected = value.astype(dtype)
        got = fed(dtype, value)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, expected)
