"""The fake accelerator refuses what CuPy refuses."""

import numpy as np
import pytest

from flowscope.runtime.devices.fake import FakeDevice


@pytest.fixture
def device():
    return FakeDevice(0)


@pytest.fixture
def xp(device):
    return device.xp


@pytest.mark.parametrize(
    "read", [bool, int, float, complex, list, lambda a: [1, 2][a], lambda a: a.item()]
)
def test_a_value_is_not_read_without_being_asked_for(device, read):
    a = device.put(np.array([1])) if read is list else device.put(np.array(1))
    with pytest.raises(TypeError, match="only `get` may"):
        read(a)
    assert device.get(a) == 1
    tolerant = FakeDevice(0, is_strict=False)
    assert read(tolerant.put(np.array([1]) if read is list else np.array(1)))
    assert tolerant.usage().reads == 1


@pytest.mark.parametrize("name", ["vecdot", "block", "insert", "nanquantile"])
def test_there_is_no_function_that_cupy_has_not(xp, name):
    with pytest.raises(AttributeError, match=f"CuPy has no {name}"):
        getattr(xp, name)


def test_there_is_no_keyword_that_cupy_has_not(device, xp):
    a = device.put(np.ones(3))
    for wrong in (
        lambda: a.max(initial=0),
        lambda: a.sum(where=True),
        lambda: xp.sum(a, initial=0),
        lambda: xp.add(a, a, subok=False),
        lambda: xp.concatenate([a, a], axis_=0),
    ):
        with pytest.raises(TypeError, match="argument"):
            wrong()


def test_there_is_no_member_that_cupy_has_not(device):
    a = device.put(np.ones(3))
    for name in ("itemset", "newbyteorder", "ctypes", "__array_interface__"):
        with pytest.raises(AttributeError):
            getattr(a, name)


@pytest.mark.parametrize("dtype", ["object", "longdouble", "S3", "U2", "M8[s]"])
def test_there_are_no_arrays_of_other_dtypes(device, dtype):
    with pytest.raises(TypeError, match="CuPy has no arrays of"):
        device.put(np.zeros(2, dtype))


def test_universal_functions_take_the_dtypes_that_cupy_has_loops_for(device, xp):
    flags = device.put(np.array([True, False]))
    whole = device.put(np.array([1, 2]))
    assert device.get(xp.add(flags, whole)).tolist() == [2, 2]
    assert device.get(whole * 2.5).tolist() == [2.5, 5]
    for wrong in (lambda: flags - flags, lambda: xp.subtract(flags, flags)):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(TypeError, match="CuPy's bitwise_and does not take float64"):
        xp.bitwise_and(device.put(np.ones(2)), 1)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("subtract", "f4"), ("add", "i1"), ("add", "u2"), ("add", "c8"), ("minimum", "i8")],
)
def test_scatters_take_few_dtypes(device, xp, name, dtype):
    a, places = device.put(np.zeros(3, dtype)), device.put(np.array([0, 0]))
    with pytest.raises(TypeError, match=rf"CuPy's {name}\.at does not take"):
        getattr(xp, name).at(a, places, device.put(np.ones(2, dtype)))
    xp.add.at(b := device.put(np.zeros(3, "f4")), places, np.float32(1))
    assert device.get(b).tolist() == [2, 0, 0]


def test_few_universal_functions_have_methods(device, xp):
    a = device.put(np.ones(3))
    for method in ("at", "reduce", "accumulate"):
        with pytest.raises(NotImplementedError, match="is not there yet"):
            getattr(xp.logaddexp, method)(a, 0, 1.0)
    assert device.get(xp.add.reduce(a)) == 3


def test_numbers_that_steer_are_numbers(device, xp):
    n = device.put(np.array(3))
    for wrong in (
        lambda: xp.arange(n),
        lambda: xp.zeros((n,)),
        lambda: xp.full(n, 1.0),
        lambda: xp.bincount(device.put(np.array([1])), minlength=n),
        lambda: device.put(np.ones(5))[:n],
    ):
        with pytest.raises(TypeError, match="device"):
            wrong()


def test_no_place_is_assigned_two_values(device):
    a, places = device.put(np.zeros(3)), device.put(np.array([1, 1]))
    with pytest.raises(ValueError, match="CuPy keeps any of them"):
        a[places] = device.put(np.array([1.0, 2.0]))
    a[places] = device.put(np.array([2.0, 2.0]))
    a[device.put(np.array([0, 2]))] = device.put(np.array([1.0, 3.0]))
    assert device.get(a).tolist() == [1, 2, 3]
