"""Each pass by itself, on random programs: what it returns computes what it was given.

A pass stands for itself here: it gets the program as `order` leaves it, not what those before it
made of it. Only the matrix products may differ, in their last bits.
"""

import numpy as np
import pytest
from random_programs import Program as RandomProgram
from stage_runs import program_values
from verified_plans import fingerprint

import flowscope as fs
from flowscope.ops.state.update_groups import BeginUpdate
from flowscope.plan.pipeline import PASSES
from flowscope.plan.verify import verify

ALONE = [one for one in PASSES if one.name != "order"]
#: These sum in another order.
ROUNDS = ("matmul_slicing", "matmul_fusion")
SEEDS = [*range(8), *[pytest.param(i, marks=pytest.mark.slow) for i in range(8, 80)]]


def check(fetches, feeds, variables):
    """Compares values after each pass alone with those before; returns who changed something."""
    with fs.Session() as session:
        plan = session.plan(fetches, list(feeds))
    given = next(program for name, program in plan.stages() if name == "order")
    arrays = tuple(feeds.values())
    want, before = outcome(given, arrays, variables), fingerprint(given)
    changed = set()
    for one in ALONE:
        found = one.run(given, plan.request)
        verify(found, one.name)
        if fingerprint(found) != before:
            changed.add(one.name)
        if any(n.op.is_blocking or isinstance(n.op, BeginUpdate) for n in found.walk()):
            continue  # needs a whole step: see below, and tests/train/test_groups.py
        compare(outcome(found, arrays, variables), want, one.name)
    assert fingerprint(given) == before
    return changed


def outcome(program, arrays, variables):
    try:
        return program_values(program, arrays, variables)
    except Exception as e:
        return type(e)


def compare(got, want, name):
    if isinstance(want, type):  # what nobody needs may have failed, and be gone
        assert got is want or name.startswith(("dce", "simplify")), name
        return
    assert not isinstance(got, type), f"{name}: {got}"
    assert len(got) == len(want), name
    for a, b in zip(got, want, strict=True):
        if name in ROUNDS and b.dtype.kind == "f":
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5, err_msg=name)
        else:
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b, err_msg=name)


@pytest.mark.filterwarnings("ignore::flowscope.errors.ControlFlowWarning")
@pytest.mark.parametrize("seed", SEEDS)
def test_no_pass_changes_what_a_random_program_computes(seed):
    program = RandomProgram(seed)
    with program.graph.as_default(), fs.Session(graph=program.graph) as sess:
        sess.run(program.initializer)
        values = {v.handle.op.name: sess.run(v) for v in program.variables}
        feeds = dict(zip([t for t, _ in program.feeds], program.fed[0], strict=False))
        check(program.fetches, feeds, values)


def matrices(rng, graph_seed):
    """A random network of small products: in a loop or unrolled, split, joined, transposed."""
    rows, width, units = rng.integers(1, 6), rng.integers(1, 9), 64
    x = fs.placeholder(fs.float64, [None, int(rows), int(width)])
    w = fs.placeholder(fs.float64, [int(width) + units, units])
    u = fs.placeholder(fs.float64, [units, units])
    steps = int(rng.integers(0, 7))
    transposes, halves, is_loop = rng.random() < 0.5, rng.random() < 0.5, rng.random() < 0.5

    def cell(t, h):
        h = fs.matmul(fs.concat([x[t], h], 1), w)
        if halves:
            parts = fs.split(h, [16, 48], axis=1)
            h = fs.concat([parts[0], fs.tanh(parts[1])], 1)
        return fs.tanh(fs.matmul(h, u, transpose_b=transposes))

    h = fs.zeros([int(rows), units], fs.float64)
    if is_loop:
        h = fs.while_loop(lambda t, h: t < steps, lambda t, h: (t + 1, cell(t, h)), [0, h])[1]
    else:
        for t in range(max(steps, 4)):
            h = cell(t, h)
    loss = fs.reduce_sum(h * h)
    inputs = [w, u] if rng.random() < 0.7 else [w, u, x]
    draw = np.random.default_rng(graph_seed).normal
    feeds = {
        x: draw(size=(max(steps, 4), int(rows), int(width))),
        w: draw(size=(int(width) + units, units)) * 0.1,
        u: draw(size=(units, units)) * 0.1,
    }
    return [loss, *fs.gradients(loss, inputs)], feeds


@pytest.mark.parametrize(
    "seed", [0, 1, 2, *[pytest.param(i, marks=pytest.mark.slow) for i in range(3, 60)]]
)
def test_products_are_those_that_the_program_says(seed):
    with fs.Graph().as_default():
        check(*matrices(np.random.default_rng(seed), seed), {})


@pytest.mark.slow
def test_each_pass_has_something_to_do_in_some_program():
    """Else its tests would say nothing."""
    found = set()
    for seed in range(12):
        with fs.Graph().as_default():
            found |= check(*matrices(np.random.default_rng(seed), seed), {})
    with fs.Graph().as_default():
        v = fs.Variable(2.0)
        x = fs.placeholder(fs.float32, [])
        y = fs.while_loop(
            lambda i, a, b: i < 3, lambda i, a, b: (i + 1, a * v, b + 1.0), [0, x, x]
        )[1]
        group = fs.group(v.assign_add(y), v.assign_sub(x))
        with fs.control_dependencies([group]):
            last = x * 1.0
        found |= check([y, last], {x: np.float32(0.5)}, {v.handle.op.name: np.float32(2)})
    with fs.Graph().as_default():
        x = fs.placeholder(fs.float32, [3])
        found |= check(fs.collectives.all_reduce([x, x * 2.0]), {x: np.ones(3, np.float32)}, {})
    assert found >= {one.name for one in ALONE} - {
        "dce_matmuls",
        "dce_simplified",
        "host_overlap",
        "late_receives",  # nothing is received on one device: see test_late_receives.py
        "open_shapes",  # no shape changes: see tests/runtime/test_reshaped_variables.py
        "lift",  # no loop is made by hand: see test_lift.py
        "transfers",  # nothing crosses on one device: see test_transfers.py
    }, found


@pytest.mark.parametrize("seed", range(12))
def test_functions_overlap_only_where_neither_needs_the_other(seed):
    rng = np.random.default_rng(seed)
    with fs.Graph().as_default():
        x = fs.placeholder(fs.float32, [])
        made, before = [], []
        for _ in range(int(rng.integers(2, 7))):
            needs = [j for j in range(len(made)) if rng.random() < 0.4]
            waits = [j for j in range(len(made)) if rng.random() < 0.2]
            value = fs.add_n([x, *[fs.sin(made[j]) for j in needs]])
            with fs.control_dependencies([made[j].op for j in waits]):
                made.append(fs.py_function(lambda a: a, [value], fs.float32))
            before.append({j for i in (*needs, *waits) for j in (i, *before[i])})
        with fs.Session() as session:
            program = session.plan(made, [x]).program
    own = [made[i].op.name for i in range(len(made))]
    overlapping = {n.name for n in program.walk() if n.op.is_blocking}
    for i, name in enumerate(own):
        others = [j for j in range(len(own)) if j != i]
        is_free = any(j not in before[i] and i not in before[j] for j in others)
        assert (name in overlapping) == is_free, (name, before)
