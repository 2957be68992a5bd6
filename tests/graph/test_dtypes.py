"""Element types: names, facts, limits, conversions; and static shapes as messages."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import flowscope as fs
from flowscope.errors import DTypeError
from flowscope.graph.values import dtypes

PLAIN = [d for d in dtypes.ALL if d.kind not in "srv"]
CAST = [d for d in PLAIN if not d.is_quantized]
TINY = [d for d in dtypes.SMALL if d is not fs.bfloat16]


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_a_dtype_is_found_by_all_its_names(dtype):
    assert fs.as_dtype(dtype.name) is dtype
    assert fs.as_dtype(f"{dtype.name}_ref") is dtype
    assert fs.as_dtype(dtype.as_datatype_enum) is dtype
    assert fs.as_dtype(dtype.as_datatype_enum + 100) is dtype
    if dtype in PLAIN:
        assert fs.as_dtype(dtype.as_numpy_dtype) is dtype
        assert dtype == dtype.as_numpy_dtype
    assert dtype.is_compatible_with(dtype)
    assert dtype.is_subtype_of(dtype)
    assert dtype.base_dtype is dtype
    assert hash(dtype) == hash(fs.as_dtype(dtype.name))


def test_names_of_the_package():
    assert fs.float32_ref is fs.float32
    assert fs.bool_ref is fs.bool
    assert fs.dtypes.qint8 is fs.qint8
    assert fs.experimental.int4.name == "int4"
    assert {fs.qint8, fs.quint8, fs.qint16, fs.quint16, fs.qint32} == fs.QUANTIZED_DTYPES


def test_facts():
    assert fs.experimental.float8_e5m2.is_floating
    assert not fs.experimental.float8_e5m2.is_numeric
    assert fs.experimental.uint4.is_integer
    assert fs.experimental.uint4.is_unsigned
    assert not fs.experimental.int2.is_unsigned
    assert fs.qint8.is_quantized
    assert not fs.qint8.is_integer
    assert fs.qint8.as_numpy_dtype == np.dtype([("qint8", np.int8)])
    assert [d.size for d in (fs.qint8, fs.quint16, fs.qint32, fs.experimental.int4)] == [1, 2, 4, 1]
    assert fs.complex64.real_dtype is fs.float32
    assert fs.complex128.real_dtype is fs.float64
    assert not fs.string.is_subtype_of(fs.int32)
    assert fs.string.most_specific_common_supertype([fs.string]) is fs.string
    assert fs.string.most_specific_common_supertype([fs.string, fs.int32]) is None


@pytest.mark.parametrize(
    ("dtype", "lowest", "highest"),
    [
        (fs.int8, -128, 127),
        (fs.uint64, 0, 2**64 - 1),
        (fs.float16, -65504, 65504),
        (fs.bfloat16, -3.38953e38, 3.38953e38),
        (fs.experimental.float8_e4m3fn, -448, 448),
        (fs.experimental.float8_e5m2, -57344, 57344),
        (fs.experimental.float8_e4m3fnuz, -240, 240),
        (fs.experimental.float8_e4m3b11fnuz, -30, 30),
        (fs.experimental.float8_e5m2fnuz, -57344, 57344),
        (fs.experimental.int4, -8, 7),
        (fs.experimental.uint4, 0, 15),
        (fs.experimental.int2, -2, 1),
        (fs.experimental.uint2, 0, 3),
    ],
)
def test_least_and_largest(dtype, lowest, highest):
    assert float(dtype.min) == pytest.approx(lowest)
    assert float(dtype.max) == pytest.approx(highest)


def test_limits_are_those_of_images():
    assert fs.int8.limits == (0, 127)
    assert fs.float32.limits == (0, 1)
    assert fs.bool.limits == (False, True)
    for dtype in (fs.string, fs.qint8, fs.complex64):
        with pytest.raises(ValueError, match="no limits"):
            _ = dtype.limits
    for dtype in (fs.string, fs.bool, fs.qint8, fs.complex64):
        with pytest.raises(TypeError, match=r"no (min|max)imum"):
            _ = dtype.min


@pytest.mark.parametrize("source", CAST, ids=str)
def test_casts_between_all_numbers(graph, source):
    given = {(): np.array(1).astype(source.np_dtype)[()]}
    given[3,] = np.array([0, 1, 1]).astype(source.np_dtype)
    xs = {shape: fs.placeholder(source, shape) for shape in given}
    made = [fs.cast(xs[shape], to) for shape in given for to in CAST]
    with fs.Session() as sess:
        found = sess.run(made, {xs[s]: v for s, v in given.items()})
    wanted = [(s, to) for s in given for to in CAST]
    for value, (shape, to) in zip(found, wanted, strict=True):
        assert value.dtype == to.np_dtype
        np.testing.assert_array_equal(
            np.asarray(value).astype("c8").real, np.array([0, 1, 1] if shape else 1)
        )


def test_what_casts_cut_off(sess):
    x = fs.constant([-1.7, 1.7, 300.0, 0.0])
    assert sess.run(fs.cast(x, "int32")).tolist() == [-1, 1, 300, 0]
    assert sess.run(fs.cast(x, "bool")).tolist() == [True, True, True, False]
    assert sess.run(fs.cast(x, "bfloat16")).astype("f4").tolist() == [-1.703125, 1.703125, 300, 0]
    tiny = sess.run(fs.cast(x, fs.experimental.float8_e4m3fn)).astype("f4")
    assert tiny.tolist() == [-1.75, 1.75, 288, 0]
    assert sess.run(fs.cast([7, 8, 17, -1], fs.experimental.int4)).tolist() == [7, -8, 1, -1]
    assert sess.run(fs.cast([3, 4, -1], fs.experimental.uint2)).tolist() == [3, 0, 3]


@pytest.mark.parametrize("dtype", PLAIN, ids=str)
def test_values_of_every_dtype_are_kept_moved_and_fed(graph, dtype):
    numbers = [True, False, True] if dtype.is_bool else [1, 0, 1]
    c = fs.constant(numbers, dtype)
    x = fs.placeholder(dtype, [None])
    made = [fs.identity(x), c[0], fs.reshape(c, [3, 1]), fs.concat([c, x], 0), fs.gather(c, [2])]
    variable = fs.Variable(c)
    with fs.Session() as sess:
        sess.run(variable.initializer)
        found = sess.run([*made, variable, fs.zeros([2], dtype)], {x: numbers})
        assert all(v.dtype == dtype.np_dtype for v in found)
        assert found[0].tolist() == numbers
        own = np.array(numbers).astype(dtype.np_dtype)
        np.testing.assert_array_equal(sess.run(x, {x: own}), own)


def test_quantised_arrays_in_numpys_form(sess):
    given = np.array([(1,), (-2,)], fs.qint8.as_numpy_dtype)
    x = fs.constant(given)
    assert x.dtype is fs.qint8
    assert sess.run(x).tolist() == [1, -2]
    y = fs.placeholder(fs.qint8)
    assert sess.run(y, {y: given}).tolist() == [1, -2]
    with pytest.raises(DTypeError):
        fs.constant(given, fs.int8)
    with pytest.raises(DTypeError):
        fs.constant([300], fs.qint8)


def test_arrays_of_ml_dtypes_keep_their_type(sess):
    for name in ("bfloat16", "float8_e5m2", "int4"):
        array = np.array([1, 0], getattr(ml_dtypes, name))
        assert fs.constant(array).dtype.name == name


@pytest.mark.parametrize("dtype", [*sorted(TINY, key=str), fs.qint8], ids=str)
@pytest.mark.parametrize("call", [fs.exp, lambda x: x + x, fs.reduce_sum, lambda x: x < x])
def test_there_is_no_arithmetic_for_types_to_keep(graph, dtype, call):
    with pytest.raises(DTypeError, match=f"got {dtype}"):
        call(fs.constant([1], dtype))


def test_graphs_with_all_dtypes_are_written(graph):
    for dtype in PLAIN:
        fs.constant([True, False] if dtype.is_bool else [1, 0], dtype)
    text = graph.text(exact=True)
    again = fs.Graph.from_text(text)
    assert again.text(exact=True) == text
    assert fs.Graph.from_json(graph.to_json()).to_json() == graph.to_json()


def test_shapes_as_messages():
    proto = fs.TensorShape([2, None]).as_proto()
    assert [d.size for d in proto.dim] == [2, -1]
    assert not proto.unknown_rank
    assert fs.TensorShape(proto) == fs.TensorShape([2, None])
    unknown = fs.TensorShape(None).as_proto()
    assert unknown.unknown_rank
    assert unknown.dim == []
    assert fs.TensorShape(unknown).ndims is None


def test_what_shapes_have_in_common():
    a = fs.TensorShape([2, 3])
    assert a.most_specific_common_supertype([[2, 4], [2, 5]]) == fs.TensorShape([2, None])
    assert a.most_specific_common_supertype([[2]]).ndims is None


def test_integers_beyond_64_bits(graph):
    x = fs.placeholder(fs.int64, [])
    for value in (2**70, [-(2**70)], [2**70, 1.5]):
        with pytest.raises(DTypeError, match="expected numbers that fit an integer dtype, got"):
            fs.constant(value)
    with pytest.raises(DTypeError, match="expected numbers that fit float32, got 1000"):
        fs.constant(10**400, fs.float32)
    with fs.Session() as sess:
        assert sess.run(fs.constant([2**70, 1.5], fs.float64)).tolist() == [2.0**70, 1.5]
        with pytest.raises(DTypeError, match="cannot feed .*expected numbers that fit int64"):
            sess.run(x, {x: 2**70})
