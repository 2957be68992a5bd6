"""The table of what CuPy has is that of the CuPy which is installed, where there is one."""

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from cupy_table_lines import MODULES, lines

from flowscope.runtime.devices import cupy_table

TABLE = Path(cupy_table.__file__).with_name("cupy_table.txt").read_text().splitlines()


@pytest.mark.parametrize("module", MODULES)
def test_the_table_is_that_of_cupy(module):
    try:
        version = import_module("cupy").__version__
        import_module(module)
    except ImportError as e:
        pytest.skip(f"the table of CuPy's functions is not compared: {e}")
    if not version.startswith("14."):
        pytest.skip(f"the table is of CuPy 14, and this is {version}")
    written = [line for line in TABLE if line.startswith(f"{module}.")]
    if module == "cupyx.scipy.linalg":  # what kernels use of it
        assert set(written) <= set(lines(module))
    else:
        inside = [m for m in MODULES if m.startswith(f"{module}.")]
        ours = [w for w in written if not w.startswith(tuple(f"{m}." for m in inside))]
        assert ours == lines(module)


def test_functions_take_what_the_table_says():
    bind = cupy_table.binder("cupy.concatenate")
    assert bind([1], 2)["axis"] == 2
    with pytest.raises(TypeError, match=r"concatenate\(\) got an unexpected keyword"):
        bind([1], initial=0)
    assert cupy_table.binder("cupy.add") is None


def test_universal_functions_take_dtypes_by_their_loops():
    divide = cupy_table.ufunc("cupy.bitwise_or")
    divide.check((np.dtype("i2"), np.dtype("i8")))
    divide.check((np.dtype("i2"), int))
    with pytest.raises(TypeError, match="does not take int16, float64"):
        divide.check((np.dtype("i2"), np.dtype("f8")))
    assert cupy_table.ufunc("cupy.concatenate") is None


def test_every_line_can_be_read():
    for line in TABLE:
        name = line.partition("(")[0].split()[0]
        assert cupy_table.has(name)
        cupy_table.binder(name), cupy_table.ufunc(name)
