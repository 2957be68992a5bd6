"""Arrays as messages, specs of tensors, and what shapes and dimensions do as values."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import flowscope as fs

ROWS: list[tuple[Any, dict[str, Any], str, list[Any]]] = [
    (10.0, {}, "float_val", [10.0]),
    (np.float64(3), {}, "double_val", [3.0]),
    (5, {"dtype": fs.int8}, "int_val", [5]),
    (5, {"shape": [2, 2], "dtype": fs.int32}, "int_val", [5]),
    ([1, 2], {"shape": [3], "dtype": fs.int32}, "int_val", [1, 2]),
    (["a", "bc"], {}, "string_val", [b"a", b"bc"]),
    (b"x", {}, "string_val", [b"x"]),
    ([1 + 2j, 3], {"dtype": fs.complex64}, "scomplex_val", [1.0, 2.0, 3.0, 0.0]),
    ([True, False], {}, "bool_val", [True, False]),
    (np.float16(1.5), {}, "half_val", [15872]),
    (7, {"dtype": fs.bfloat16}, "half_val", [16608]),
    (2**40, {}, "int64_val", [2**40]),
    ([10.0, 20.0], {}, "tensor_content", []),
    (np.array([[1, 2]], np.uint8), {}, "tensor_content", []),
    (np.zeros((0, 3)), {}, "double_val", []),
]


@pytest.mark.parametrize(("value", "how", "field", "listed"), ROWS)
def test_arrays_as_messages(value: Any, how: dict[str, Any], field: str, listed: list[Any]) -> None:
    proto = fs.make_tensor_proto(value, **how)
    found = getattr(proto, field)
    assert found == (np.asarray(value).astype(_type(how, value)).tobytes() if not listed and
                     field == "tensor_content" else listed)  # fmt: skip
    array = fs.make_ndarray(proto)
    shape = tuple(how.get("shape", np.shape(value)))
    assert array.shape == shape == tuple(d.size for d in proto.tensor_shape.dim)
    flat, given = array.reshape(-1).tolist(), np.ravel(np.asarray(value)).tolist()
    given = [v.encode() if isinstance(v, str) else v for v in given]
    assert flat == given + given[-1:] * (len(flat) - len(given))


def _type(how: dict[str, Any], value: Any) -> Any:
    if "dtype" in how:
        return how["dtype"].np_dtype
    return np.float32 if isinstance(value, list) else value.dtype


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: fs.make_tensor_proto(None), TypeError),
        (lambda: fs.make_tensor_proto([1, 2, 3], shape=[2]), ValueError),
        (lambda: fs.make_tensor_proto([1, 2], shape=[1, 2], verify_shape=True), TypeError),
        (lambda: fs.make_tensor_proto("a", dtype=fs.int32), TypeError),
        (lambda: fs.make_tensor_proto(1.5, dtype=fs.int32), TypeError),
        (lambda: fs.make_tensor_proto([[1], [2, 3]]), ValueError),
        (lambda: fs.make_tensor_proto(fs.constant(1)), TypeError),
        (lambda: fs.make_ndarray(3), TypeError),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_message_is_refused(call: Any, error: type) -> None:
    with pytest.raises(error):
        call()


def test_one_value_may_stand_for_all() -> None:
    proto = fs.make_tensor_proto(5, shape=[2], verify_shape=True, allow_broadcast=True)
    assert fs.make_ndarray(proto).tolist() == [5, 5]
    assert fs.make_tensor_proto(proto) is proto
    value = fs.AttrValue(i=3, list=fs.AttrValue.ListValue(i=[1, 2]))
    assert "i: 3" in repr(value) and value.list.i == [1, 2]


def test_specs_of_tensors() -> None:
    spec = fs.TensorSpec([1, None], name="n")
    assert repr(spec) == "TensorSpec(shape=(1, ?), dtype=fs.float32, name='n')"
    assert spec == fs.TensorSpec([1, None], "float32", "n") != fs.TensorSpec([1, None])
    assert len({spec, pickle.loads(pickle.dumps(spec))}) == 1
    assert spec.is_compatible_with(fs.ones([1, 3])) and spec.value_type is fs.Tensor
    assert not spec.is_compatible_with(fs.ones([2, 3])) and not spec.is_compatible_with(3)
    assert fs.TensorSpec([2]).is_subtype_of(fs.TensorSpec([None]))
    both = fs.TensorSpec([2]).most_specific_compatible_type(fs.TensorSpec([3]))
    assert both == fs.TensorSpec([None])
    with pytest.raises(ValueError, match="no type in common"):
        spec.most_specific_compatible_type(fs.TensorSpec([2], fs.int32))
    assert fs.TensorSpec.from_spec(spec, "m").name == "m"
    assert fs.TensorSpec.from_tensor(fs.ones([2], name="o")).name == "o"
    with pytest.raises(AttributeError):
        spec.dtype = fs.int32  # type: ignore[misc]


def test_specs_of_slices() -> None:
    spec = fs.IndexedSlicesSpec([3, 2], indices_dtype=fs.int32)
    slices = fs.IndexedSlices(fs.ones([1, 2]), fs.constant([0]), fs.constant([3, 2]))
    own = fs.IndexedSlicesSpec.from_value(slices)
    assert own == fs.IndexedSlicesSpec([3, 2], fs.float32, fs.int32, fs.int32, [1])
    assert own.is_compatible_with(slices) and not spec.is_compatible_with(slices)
    assert spec == fs.IndexedSlicesSpec([3, 2], indices_dtype="int32") and hash(spec) != hash(own)
    assert spec.value_type is fs.IndexedSlices and not spec.is_compatible_with(3)
    assert repr(fs.IndexedSlicesSpec([1])) == (
        "IndexedSlicesSpec(TensorShape([Dimension(1)]), fs.float32, fs.int64, None, "
        "TensorShape([Dimension(None)]))"
    )
    with pytest.raises(TypeError, match="IndexedSlices"):
        fs.IndexedSlicesSpec.from_value(3)


def test_dimensions_divide_from_both_sides_and_are_pickled() -> None:
    d = fs.Dimension(9)
    assert (20 // d, 4 % d, d // 2, d % 4) == (2, 4, 4, 1)
    assert (3 // fs.Dimension(None)).value is None
    for divide in (lambda: d / 2, lambda: 18 / d):
        with pytest.raises(TypeError, match="use //"):
            divide()
    shape = fs.TensorShape([1, None])
    for thing in (d, shape, fs.TensorShape(None)):
        again = pickle.loads(pickle.dumps(thing))
        assert repr(again) == repr(thing)
    assert repr(shape) == "TensorShape([Dimension(1), Dimension(None)])"
    assert fs.TensorShape(None)[1:3].ndims == 2 and fs.TensorShape(None)[1:].ndims is None


def test_a_dtype_is_no_python_type() -> None:
    assert fs.float32 == float and fs.bool == bool and fs.int32 == np.int32  # noqa: E721
    assert fs.int32 != int and fs.string != str  # noqa: E721


def test_functions_that_make_variables(graph: Any) -> None:
    seen: list[tuple[str, str]] = []

    def outer(make: Any, **given: Any) -> Any:
        seen.append(("outer", given["name"]))
        return make(**{**given, "trainable": False})

    def inner(make: Any, **given: Any) -> Any:
        seen.append(("inner", given["name"]))
        return make(**given)

    with fs.variable_creator_scope(outer), fs.variable_creator_scope(inner):
        v = fs.Variable(1.0, name="v")
        w = fs.get_variable("w", [1])
    assert seen == [("inner", "v"), ("outer", "v"), ("inner", "w"), ("outer", "w")]
    assert not v.trainable and not w.trainable and fs.Variable(1.0).trainable
    with pytest.raises(TypeError, match="expected a function"):
        with fs.variable_creator_scope(3):  # type: ignore[arg-type]
            pass
