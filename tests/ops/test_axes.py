"""Axes counted from behind are those counted from the front, and others are refused, everywhere.

The calls are in axis_rows.py. Each is made for all of its axes, with shapes known, partly known and
unknown: outputs, static shapes and gradients must be the same for `axis` and for `axis - rank`.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import Any

import numpy as np
import pytest
from axis_rows import AXIS_ROWS, NO_AXIS, AxisRow
from op_oracle import check_promise, noted, same_bits

import flowscope as fs
from flowscope.graph.op import all_ops
from flowscope.graph.values.shapes import compatible
from flowscope.ops.reference import public_names

#: Every function of every row with every one of its arguments.
CALLS = [
    pytest.param(row, name, argument, id=f"{name}-{argument}-{i}")
    for i, row in enumerate(AXIS_ROWS)
    for name in row.names.split()
    for argument in row.arguments.split()
]


def function(name: str) -> Any:
    found: Any = fs
    for part in name.split("."):
        found = getattr(found, part)
    return found


def arrays_of(row: AxisRow) -> list[Any]:
    rng = np.random.default_rng(5)
    return [i.make(rng, "float64") for i in row.inputs]


def ends(row: AxisRow) -> int:
    """How many axes there are to count."""
    return len(np.shape(arrays_of(row)[0])) + row.new


def axes_of(row: AxisRow, argument: str) -> list[tuple[Any, Any]]:
    """Pairs of an axis, or axes, from the front and from behind; one for an older name."""
    n = ends(row)
    single = [(a, a - n) for a in row.axes or range(n)]
    several = [([a], [a - n]) for a in range(n)] + [([0, n - 1], [-n, -1]), ([0, 1], [0, 1 - n])]
    found = ([] if row.listed else single) + (several if row.several else [])
    return found if row.arguments.startswith(argument) else found[-1:]


def forms(row: AxisRow, arrays: list[Any]) -> list[list[Any]]:
    known = [np.shape(a) for a in arrays]
    if row.static:
        return [known]
    partly = [[(None,) * len(s) for s in known]]
    return [known, *partly, *([] if row.rank else [[None] * len(known)])]


class Made:
    """A call in a graph of its own: its outputs, and gradients where there are some."""

    def __init__(
        self, row: AxisRow, name: str, argument: str, axis: Any, shapes: Any, is_late: bool = False
    ) -> None:
        arrays = arrays_of(row)
        with fs.Graph().as_default() as self.graph:
            xs = [fs.placeholder(_dtype(a), s) for a, s in zip(arrays, shapes, strict=True)]
            if is_late:
                axis = self.axis = fs.placeholder(fs.int32, np.shape(axis))
            out = row.call(function(name), xs, {argument: axis})
            self.outputs = list(out) if isinstance(out, list | tuple) else [out]
            if any(x.dtype.is_differentiable for x in xs):
                ys = [y for y in self.outputs if y.dtype.is_differentiable]
                found = fs.gradients([y * y for y in ys], xs) if ys else []
                self.outputs += [fs.convert_to_tensor(g) for g in found if g is not None]
        self.feeds = dict(zip(xs, arrays, strict=True))

    def values(self, axis: Any = None) -> Any:
        """Returns the outputs' values, with an axis for a call that was made without one."""
        feeds = self.feeds if axis is None else {**self.feeds, self.axis: axis}
        with fs.Session(graph=self.graph) as session:
            session.run([v.initializer for v in self.graph.get_collection("metric_variables")])
            values = session.run(self.outputs, feeds)
        for t, v in zip(self.outputs, values, strict=True):
            check_promise(t, v)
        return values


def _dtype(a: Any) -> Any:
    return fs.string if a.dtype == object else fs.as_dtype(a.dtype)


@pytest.mark.slow
@pytest.mark.parametrize(("row", "name", "argument"), CALLS)
def test_from_behind_is_from_the_front(row: AxisRow, name: str, argument: str) -> None:
    for front, behind in axes_of(row, argument):
        first: Any = None
        for shapes in forms(row, arrays_of(row)):
            with noted((front, behind, shapes)):
                one, two = (Made(row, name, argument, a, shapes) for a in (front, behind))
                assert [t.spec.shape for t in one.outputs] == [t.spec.shape for t in two.outputs]
                values = one.values()
                assert all(map(same_bits, values, two.values()))
                first = first or values
                assert all(map(same_bits, values, first))


@pytest.mark.parametrize(("row", "name", "argument"), CALLS)
def test_an_axis_beyond_either_end(row: AxisRow, name: str, argument: str) -> None:
    """It is refused where it is written, or by the step if nothing was known of the shape."""
    n = ends(row)
    for axis in (n, -n - 1):
        for shapes in forms(row, arrays_of(row)):
            with noted((axis, shapes)), pytest.raises(fs.errors.InvalidArgumentError) as e:
                refused(row, name, argument, [axis] if row.listed else axis, shapes)
            assert f"in [{-n}, {n}), got {axis}" in str(e.value)


def refused(row: AxisRow, name: str, argument: str, axis: Any, shapes: Any) -> None:
    made = Made(row, name, argument, axis, shapes)
    assert shapes[0] is None, f"nothing is said of {axis} while the graph is built"
    made.values()


SEVERAL = [p for p in CALLS if p.values[0].several and not p.values[0].again]


@pytest.mark.parametrize(("row", "name", "argument"), SEVERAL)
def test_one_axis_twice(row: AxisRow, name: str, argument: str) -> None:
    n = ends(row)
    for shapes in forms(row, arrays_of(row)):
        with noted(shapes), pytest.raises(fs.errors.InvalidArgumentError) as e:
            Made(row, name, argument, [n - 1, -1], shapes).values()
        assert "each axis once" in str(e.value)


LATE = [p for p in CALLS if p.values[0].late]


@pytest.mark.slow
@pytest.mark.parametrize(("row", "name", "argument"), LATE)
def test_an_axis_that_comes_late(row: AxisRow, name: str, argument: str) -> None:
    """A tensor for an axis, whose value only the step knows, is as good as a number."""
    for shapes in forms(row, arrays_of(row))[:2]:
        for front, behind in axes_of(row, argument):
            known = Made(row, name, argument, front, shapes)
            late = Made(row, name, argument, front, shapes, is_late=True)
            want = known.values()
            with noted((front, shapes)):
                for t, k in zip(late.outputs, known.outputs, strict=True):
                    assert compatible(t.spec.shape, k.spec.shape)
                for axis in (front, behind):
                    for v, w in zip(late.values(axis), want, strict=True):
                        np.testing.assert_allclose(v, w, rtol=1e-12, atol=1e-15)
        n = ends(row)
        for axis in (n, -n - 1):
            wrong: Any = [axis] if row.listed else axis
            late = Made(row, name, argument, wrong, shapes, is_late=True)
            with noted((axis, shapes)), pytest.raises(fs.errors.InvalidArgumentError) as e:
                late.values(wrong)
            assert f"in [{-n}, {n}), got {axis}" in str(e.value)


# -- nothing is left out --------------------------------------------------------------------------

SOUNDS = re.compile(r"(^|_)(axis|axes|dims?|dimension|perm)$|^reduction_(indices|axes)$")


@pytest.mark.slow
def test_every_argument_that_is_an_axis_has_a_row() -> None:
    """Of the public functions of ops, as the page of all functions finds them."""
    seen = {(function(name), a) for p in CALLS for _, name, a in [p.values]}
    seen |= {(function(name), a) for name, a in NO_AXIS}
    found: dict[Any, str] = {}
    for name, f in public_names():
        if not inspect.isfunction(f) or not f.__module__.startswith("flowscope.ops."):
            continue
        if f.__module__ == "flowscope.ops.raw_functions":
            continue  # they call those of the rows
        for parameter in inspect.signature(f).parameters:
            if SOUNDS.search(parameter) and not parameter.startswith("keep"):
                found[f, parameter] = f"{name}, {parameter}"
    assert [text for pair, text in found.items() if pair not in seen] == []
    assert [pair for pair in seen if pair not in found] == []


#: Op types with an axis that no function of the rows makes, and where they are tested.
OTHERWISE = {
    "Transpose": "an order of all axes: the rows of transpose",
    "SparseConcatShape": "counted from the front by sparse.concat",
}


@pytest.mark.slow
def test_every_op_type_with_an_axis_is_used() -> None:
    made: set[str] = set()
    for p in CALLS:
        row, name, argument = p.values
        for axis, _ in axes_of(row, argument)[::2]:
            graph = Made(row, name, argument, axis, forms(row, arrays_of(row))[0]).graph
            made |= {op.type for op in graph.get_operations()}
    ours = {
        name
        for name, cls in all_ops().items()
        if cls.__module__.startswith("flowscope.ops.")
        and any(SOUNDS.search(f.name) for f in dataclasses.fields(cls))
    }
    assert ours - made - set(OTHERWISE) == set()


SCANS = [fs.cumsum, fs.cumprod, fs.math.cumulative_logsumexp]


@pytest.mark.parametrize("scan", SCANS, ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    ("axis", "message"),
    [
        (2, r"expected an axis in \[-2, 2\), got 2"),
        (-3, r"expected an axis in \[-2, 2\), got -3"),
        (1.0, r"expected integers for axes, got 1\.0"),
        ("a", r"expected integers for axes, got 'a'"),
        (None, "expected one axis, got None"),
        ([0, 1], r"expected one axis, got \[0, 1\]"),
        ([], r"expected one axis, got \[\]"),
    ],
)
def test_a_wrong_axis_of_a_scan_is_refused_at_its_line(graph, scan, axis, message):
    with pytest.raises(fs.errors.InvalidArgumentError, match=message):
        scan(fs.ones([2, 3]), axis)


@pytest.mark.parametrize("mode", ["compiled", "op", "tokens"])
@pytest.mark.parametrize("scan", SCANS, ids=lambda f: f.__name__)
def test_a_wrong_axis_of_a_scan_is_refused_when_it_runs(graph, scan, mode):
    x, axis = fs.placeholder(fs.float32), fs.placeholder(fs.int32)
    by_axis, by_x = scan(fs.ones([2, 3]), axis), scan(x, 1)
    with fs.Session(config=fs.ConfigProto(mode=mode)) as s:
        for bad in (2, -3):
            with pytest.raises(fs.errors.InvalidArgumentError, match=rf"got {bad}"):
                s.run(by_axis, {axis: bad})
        with pytest.raises(fs.errors.InvalidArgumentError, match="expected"):
            s.run(by_axis, {axis: [0, 1]})
        with pytest.raises(fs.errors.InvalidArgumentError, match=r"expected an axis in \[-1, 1\)"):
            s.run(by_x, {x: [1.0, 2.0]})
    for wrong in (fs.placeholder(fs.float32, []), fs.placeholder(fs.int32, [1])):
        with pytest.raises(fs.errors.InvalidArgumentError, match="axes|one axis"):
            scan(fs.ones([2, 3]), wrong)
