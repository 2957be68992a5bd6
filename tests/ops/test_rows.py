"""Every op by the table in op_rows.py: values, shapes, gradients, broadcasting, memory."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from op_oracle import Moved, check_promise, evaluate, noted, same_bits
from op_rows import ROWS, Row
from row_tools import for_each

import flowscope as fs
from flowscope.graph.op import all_ops
from flowscope.graph.values.shapes import TensorShape, is_known

SMOOTH = [r for r in ROWS if r.order and "float64" in r.dtypes]
COMPLEX = [r for r in ROWS if r.order and "complex128" in r.dtypes]
ELEMENTWISE = [r for r in ROWS if r.elementwise]
PAIRS = [
    ((2, 3), (3,)),
    ((3, 1), (1, 4)),
    ((), (2, 3)),
    ((2, 3), ()),
    ((1,), (2, 2)),
    ((0, 3), (3,)),
    ((), ()),
]
TOLERANCE = {
    "float16": 4e-3,
    "float32": 2e-5,
    "complex64": 1e-4,
    "float64": 1e-11,
    "complex128": 1e-11,
}


class Case:
    """One call of a row in a graph of its own."""

    def __init__(self, row: Row, dtype: str, arrays: list[Any], shapes: list[Any]) -> None:
        self.graph = fs.Graph()
        with self.graph.as_default():
            self.xs = [
                fs.placeholder(fs.as_dtype(a.dtype), s) for a, s in zip(arrays, shapes, strict=True)
            ]
            out = row.call(*self.xs)
            self.outputs = list(out) if isinstance(out, list | tuple) else [out]
        self.arrays = arrays
        self.feeds = dict(zip(self.xs, arrays, strict=True))

    def values(self) -> list[Any]:
        return evaluate(self.outputs, self.feeds)


def arrays_of(row: Row, dtype: str, shapes: Any = None) -> list[Any]:
    rng = np.random.default_rng(7)
    shapes = shapes or [None] * len(row.inputs)
    return [i.make(rng, dtype, s) for i, s in zip(row.inputs, shapes, strict=True)]


def known(arrays: list[Any]) -> list[Any]:
    return [np.shape(a) for a in arrays]


def forms(row: Row, arrays: list[Any]) -> list[list[Any]]:
    """The ways in which the inputs' shapes can be declared, from known to unknown."""
    out: list[list[Any]] = [known(arrays)]
    if not row.static:
        out += [[s and (None, *s[1:]) for s in out[0]], [(None,) * len(s) for s in out[0]]]
        if not row.rank:
            out.append([None] * len(arrays))
    return out


def reference(row: Row, arrays: list[Any]) -> list[Any]:
    with np.errstate(all="ignore"):
        out = row.reference(*arrays)
    return list(out) if isinstance(out, list | tuple) else [out]


def close(got: Any, want: Any, rtol: float | None = None) -> None:
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    if got.dtype.kind in "fc":
        tolerance = rtol or TOLERANCE[got.dtype.name]
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
    else:
        np.testing.assert_array_equal(got, want)


@for_each(ROWS)
def test_values(row: Row) -> None:
    """Kernels give what NumPy gives, whatever is known of shapes, in sessions, of any strides."""
    for dtype in row.dtypes:
        with noted(dtype):
            arrays = arrays_of(row, dtype)
            case = Case(row, dtype, arrays, known(arrays))
            values = case.values()
            want = reference(row, arrays)
            assert len(values) == len(want)
            for v, w in zip(values, want):
                close(v, w, row.rtol)
            assert row.dynamic or all(is_known(t.spec.shape) for t in case.outputs)
            for shapes in forms(row, arrays)[1:]:
                with noted(shapes):
                    check_same(Case(row, dtype, arrays, shapes).values(), values)
            check_session(case, values)
            check_strides(case, values)


def check_same(got: list[Any], want: list[Any]) -> None:
    assert all(same_bits(g, w) for g, w in zip(got, want, strict=True))


def check_session(case: Case, values: list[Any]) -> None:
    with fs.Session(graph=case.graph) as session:
        got = session.run(case.outputs, case.feeds)
    check_same(got, values)
    for g, v in zip(got, values):
        assert isinstance(g, np.generic if np.ndim(v) == 0 else np.ndarray)


def check_strides(case: Case, values: list[Any]) -> None:
    spread = [_strided(a) if np.ndim(a) else a for a in case.arrays]
    for v, w in zip(evaluate(case.outputs, dict(zip(case.xs, spread))), values, strict=True):
        close(v, w)


def _strided(a: Any) -> Any:
    """The same values, every other element of a transposed block, the last axis from behind."""
    block = np.zeros(tuple(2 * d for d in a.shape[::-1]), a.dtype).T
    out = block[(slice(None, None, 2),) * (a.ndim - 1) + (slice(None, None, -2),)]
    out[...] = a
    return out


# -- gradients ------------------------------------------------------------------------------------


def weighted(case: Case, seed: int = 3) -> Any:
    """A scalar that depends on every element of the outputs, each by another weight."""
    rng = np.random.default_rng(seed)
    with case.graph.as_default():
        parts = []
        for t, v in zip(case.outputs, case.values()):
            if t.dtype.is_differentiable:
                weight = rng.uniform(0.5, 1.5, np.shape(v)).astype(t.dtype.np_dtype)
                parts.append(fs.reduce_sum(fs.real(t * weight)))
        return fs.add_n(parts)


def dense(g: Any) -> Any:
    """A gradient as a tensor, also where it is slices."""
    return fs.convert_to_tensor(g)


def gradients(case: Case, y: Any) -> list[Any]:
    """The tensors of the gradient for each input, None for those that have none."""
    with case.graph.as_default():
        smooth = [x for x in case.xs if x.dtype.is_differentiable]
        found = iter([g if g is None else dense(g) for g in fs.gradients(y, smooth)])
        return [next(found) if x.dtype.is_differentiable else None for x in case.xs]


def differences(case: Case, y: Any, x: Any) -> Any:
    """dy/dx by central differences; for complex x that of the real part plus i times the other."""
    a = case.feeds[x]
    out = np.zeros(np.shape(a), a.dtype)
    function = Moved(y, case.feeds, x)
    for index in np.ndindex(np.shape(a)):
        for unit in (1, 1j) if a.dtype.kind == "c" else (1,):
            slope = 0.0
            for sign in (1, -1):
                moved = np.array(a)
                moved[index] += sign * 1e-6 * unit
                slope += sign * float(function(moved if moved.ndim else moved[()])) / 2e-6
            out[index] += slope * unit
    return out


def check_gradient(case: Case, y: Any) -> list[Any]:
    found = gradients(case, y)
    tensors = [g for g in found if g is not None]
    values = iter(evaluate(tensors, case.feeds))
    for x, g in zip(case.xs, found):
        if x.dtype.is_differentiable:
            slope = differences(case, y, x)
            got = next(values) if g is not None else np.zeros_like(slope)
            assert got.shape == slope.shape
            np.testing.assert_allclose(got, slope, rtol=2e-6, atol=2e-7)
    return found


@pytest.mark.slow
@for_each(SMOOTH)
def test_gradient(row: Row) -> None:
    arrays = arrays_of(row, "float64")
    case = Case(row, "float64", arrays, known(arrays))
    found = check_gradient(case, weighted(case))
    values = evaluate([g for g in found if g is not None], case.feeds)
    for shapes in forms(row, arrays)[1:]:
        other = Case(row, "float64", arrays, shapes)
        tensors = [g for g in gradients(other, weighted(other)) if g is not None]
        for v, w in zip(evaluate(tensors, other.feeds), values, strict=True):
            close(v, w)


@pytest.mark.slow
@for_each(r for r in SMOOTH if r.order == 2)
def test_second_gradient(row: Row) -> None:
    arrays = arrays_of(row, "float64")
    values = []
    for shapes in (known(arrays), forms(row, arrays)[-1]):
        case = Case(row, "float64", arrays, shapes)
        case.outputs = [g for g in gradients(case, weighted(case)) if g is not None]
        y = weighted(case, seed=4)
        found = gradients(case, y)
        values.append(evaluate([g for g in found if g is not None], case.feeds))
        if len(values) == 1:
            check_second(case, y, found, iter(values[0]))
    for v, w in zip(*values, strict=True):
        close(v, w)


def check_second(case: Case, y: Any, found: list[Any], values: Any) -> None:
    for x, g in zip(case.xs, found):
        if x.dtype.is_differentiable:
            slope = differences(case, y, x)
            got = next(values) if g is not None else np.zeros_like(slope)
            np.testing.assert_allclose(got, slope, rtol=5e-6, atol=5e-7)


@pytest.mark.slow
@for_each(COMPLEX)
def test_complex_gradient(row: Row) -> None:
    arrays = arrays_of(row, "complex128")
    case = Case(row, "complex128", arrays, known(arrays))
    check_gradient(case, weighted(case))


# -- broadcasting ---------------------------------------------------------------------------------


@for_each(ELEMENTWISE)
def test_broadcasting(row: Row) -> None:
    dtype = "float64" if "float64" in row.dtypes else row.dtypes[0]
    for shapes in PAIRS if len(row.inputs) == 2 else [((0, 3),), ((),), ((1,),)]:
        arrays = arrays_of(row, dtype, shapes)
        for declared in forms(row, arrays):
            case = Case(row, dtype, arrays, declared)
            (value,) = case.values()
            close(value, reference(row, arrays)[0])
            if row.order and dtype == "float64":
                check_gradient(case, weighted(case))


# -- wrong inputs ---------------------------------------------------------------------------------


@pytest.mark.slow
@for_each(ROWS)
def test_odd_inputs(row: Row) -> None:
    """Inputs of another rank, dtype or size: a result as promised, or one of our errors."""
    arrays = arrays_of(row, row.dtypes[0])
    if any(map(np.ndim, arrays)):
        _try_all(row, [_emptied(a) for a in arrays])
    for i, a in enumerate(arrays):
        odd = [np.expand_dims(a, 0), np.full(np.shape(a), b"x", object)]
        if np.ndim(a):
            odd += [_emptied(a), _first(a)]
        for wrong in odd:
            _try_all(row, [*arrays[:i], wrong, *arrays[i + 1 :]])


def _emptied(a: Any) -> Any:
    """A batch of nothing."""
    return a[:0] if np.ndim(a) else a


def _first(a: Any) -> Any:
    """A scalar in place of an array."""
    return np.asarray(a.reshape(-1)[0]) if a.size else np.zeros((), a.dtype)


def _try_all(row: Row, arrays: list[Any]) -> None:
    for shapes in (known(arrays), forms(row, arrays)[-1]):
        with noted([(np.asarray(a).dtype, np.shape(a), s) for a, s in zip(arrays, shapes)]):
            _try(row, arrays, shapes)


def _try(row: Row, arrays: list[Any], shapes: list[Any]) -> None:
    try:
        case = Case(row, "", arrays, shapes)
        with fs.Session(graph=case.graph) as session:
            values = session.run(case.outputs, case.feeds)
    except fs.OpError as error:
        _check_words(error)
        return
    except IndexError as error:
        if _innermost(error) is not TensorShape.__getitem__.__code__:
            raise
        return  # the call itself asks for an axis that a shape does not have
    for t, v in zip(case.outputs, values):
        check_promise(t, v)


def _check_words(error: fs.OpError) -> None:
    """Asserts that an error is not just what NumPy said."""
    cause = error.__cause__
    assert cause is None or error.message != str(cause), f"not in our words: {error}"
    assert not isinstance(error, fs.errors.UnknownError), str(error)


def _innermost(error: Exception) -> Any:
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return at and at.tb_frame.f_code


# -- promises of the ops --------------------------------------------------------------------------

#: Ops that read nothing of an input but its shape.
SHAPE_ONLY = {"Shape", "Size", "Rank", "ZerosLike", "OnesLike"}


@pytest.mark.slow
def test_gradients_read_what_they_declare() -> None:
    read: dict[str, set[str]] = {}
    declared: dict[str, set[str]] = {}
    for row in ROWS:
        for dtype in [d for d in row.dtypes if fs.as_dtype(d).is_differentiable][-1:]:
            arrays = arrays_of(row, dtype)
            for shapes in forms(row, arrays):
                case = Case(row, dtype, arrays, shapes)
                for op in case.graph.get_operations():
                    if op.definition.is_differentiable and op.inputs and _gets_gradient(op):
                        declared[op.type] = set(op.definition.grad_reads)
                        read.setdefault(op.type, set()).update(_values_read(op))
    assert declared
    assert read == declared


def _gets_gradient(op: Any) -> bool:
    if not any(t.dtype.is_differentiable for t in op.inputs):
        return False
    return op.outputs[0].dtype.is_differentiable and op.type != "PreventGradient"


def _values_read(op: Any) -> set[str]:
    """The names of the parameters of `grad` whose values its operations take."""
    graph, definition = op.graph, op.definition
    with graph.as_default():
        before = len(graph)
        gs = tuple(fs.placeholder(t.dtype, t.spec.shape) for t in op.outputs)
        several = len(op.outputs) > 1
        ends = (gs, op.outputs) if several else (gs[0], op.outputs[0])
        definition.grad(*ends, *op.inputs)
        new = graph.operations_since(before)
    parameters = inspect.signature(definition.grad).parameters
    names = list(parameters)[2:]
    *_, last = parameters.values()
    if last.kind is last.VAR_POSITIONAL:
        names += [last.name] * len(op.inputs)
    used = {t for o in new if o.type not in SHAPE_ONLY for t in o.inputs}
    found = {"y"} if used & set(op.outputs) else set()
    return found | {n for n, t in zip(names, op.inputs) if t in used}


#: Ops that the table cannot hold, and where they are tested.
ELSEWHERE = {
    "Const": "tests/graph",
    "Placeholder": "every row feeds one",
    "NoOp": "test_flow.py",
    "PoolingSequence": "test_fractional_pools.py",
    "CheckBlockInputs": "tests/rnn/test_block_inputs.py",
}
MODULES_ELSEWHERE = {
    "flowscope.ops.state.checkpoint_ops": "tests/train/test_saver_graphs.py",
    "flowscope.ops.state.update_groups": "tests/runtime/test_update_groups.py",
    "flowscope.ops.state.variable_ops": "tests/runtime/test_variables.py",
    "flowscope.ops.state.training_ops": "tests/train/test_rules.py",
    "flowscope.ops.state.containers.queue_ops": "test_queues.py",
    "flowscope.ops.state.containers.accumulators": "test_accumulators.py",
    "flowscope.ops.state.containers.barriers": "test_barriers_and_staging.py",
    "flowscope.ops.state.containers.locks": "test_locks.py",
    "flowscope.ops.state.containers.staging": "test_barriers_and_staging.py",
    "flowscope.ops.tables.table_ops": "test_tables.py",
    "flowscope.ops.state.iterator_ops": "tests/data/test_iterators.py",
    "flowscope.ops.host.dataset_ops": "tests/data/test_datasets.py",
    "flowscope.ops.random.normal_and_uniform": "test_random.py",
    "flowscope.ops.nn.candidate_sampling": "test_candidate_sampling.py",
    "flowscope.ops.nn.learned_sampling": "test_candidate_sampling.py",
    "flowscope.ops.random.distributions": "test_random.py",
    "flowscope.ops.random.shuffling": "test_random.py",
    "flowscope.ops.core.send_recv": "tests/plan/test_partitions.py",
    "flowscope.ops.collective.pieces": "test_collectives.py",
    "flowscope.ops.core.lossy_transfers": "test_lossy_transfers.py",
    "flowscope.ops.random.stateless": "test_random_stateless.py",
    "flowscope.ops.host.files": "test_files.py",
    "flowscope.ops.host.printing": "test_printing.py",
    "flowscope.ops.host.py_functions": "test_py_functions.py",
    "flowscope.ops.host.timing": "test_arrays.py",
    "flowscope.ops.input.example_ops": "test_examples.py",
    "flowscope.ops.input.images": "test_images.py",
    "flowscope.ops.input.reader_ops": "test_readers.py",
    "flowscope.ops.input.tensor_strings": "test_tensor_strings.py",
}


@pytest.mark.slow
def test_every_op_has_a_row() -> None:
    seen: set[str] = set()
    for row in ROWS:
        arrays = arrays_of(row, row.dtypes[0])
        for shapes in forms(row, arrays):
            case = Case(row, row.dtypes[0], arrays, shapes)
            if row.order and any(x.dtype.is_differentiable for x in case.xs):
                gradients(case, weighted(case))
            seen |= {op.type for op in case.graph.get_operations()}
    ours = {
        name
        for name, cls in all_ops().items()
        if cls.__module__.startswith("flowscope.ops.") and cls.__module__ not in MODULES_ELSEWHERE
    }
    assert ours - seen - set(ELSEWHERE) == set()
