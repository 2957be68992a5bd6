"""Plans: pruning, order, regions, generated code; both modes bit-equal on random graphs."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import flowscope as fs
from flowscope.plan.codegen import buffer_reuse as reuse_module, function as code_module

pytestmark = pytest.mark.usefixtures("graph")


def program(fetches, feeds=()):
    with fs.Session() as sess:
        text = sess.plan(fetches, feeds).text()
    return text.replace(" on /job:localhost/replica:0/task:0/device:CPU:0", "")


def test_the_program_is_what_the_fetch_needs_cut_at_the_feeds():
    x = fs.placeholder(fs.float32, [2], name="x")
    y = fs.negative(x, name="y")
    fs.exp(x, name="unused")
    z = fs.exp(y, name="z")
    assert program(z, [x]) == (
        "feed0 = feed   float32[2]\ny = Neg(feed0)   float32[2]\nz = Exp(y)   float32[2]\nfetch z"
    )
    assert (
        program([z, y], [y])
        == "feed0 = feed   float32[2]\nz = Exp(feed0)   float32[2]\nfetch z, feed0"
    )


def test_control_inputs_are_kept_and_come_first():
    a = fs.no_op("a")
    b = fs.constant(1.0, name="b")
    c = fs.no_op("c")
    b.op._add_control_input(c)
    with fs.control_dependencies([a]):
        d = fs.identity(b, name="d")
    assert program(d) == (
        "a = NoOp()   ()\n"
        "c = NoOp()   ()\n"
        "b = Const()   float32[] after c\n"
        "d = Identity(b)   float32[] after a\n"
        "fetch d"
    )


def test_control_dependencies_that_contradict_program_order_on_a_variable_are_refused():
    v = fs.Variable(1.0, name="v")
    first, second = v.assign(1.0, name="first"), v.assign(2.0, name="second")
    first.op._add_control_input(second.op)
    with fs.Session() as sess, pytest.raises(ValueError, match="contradict.*first.*second"):
        sess.run(first)


def test_generated_code_frees_values_at_their_last_use(graph):
    x = fs.placeholder(fs.float32, [1000], name="x")
    y = x
    for _ in range(50):
        y = fs.exp(fs.negative(y))
    with fs.Session() as sess:
        source = sess.plan(y, [x]).text("code")
    assert "s1" not in source, "a chain needs one local variable"


@pytest.mark.memory
def test_peak_memory_of_a_chain_is_two_buffers(graph):
    import tracemalloc

    n = 1 << 20
    x = fs.placeholder(fs.float32, [n])
    y = x
    for _ in range(10):
        y = fs.negative(y) * 2.0
    with fs.Session() as sess:
        value = np.ones(n, np.float32)
        sess.run(y, {x: value})
        tracemalloc.start()
        sess.run(y, {x: value})
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 2.1 * value.nbytes


def test_long_plans_have_safepoints_and_the_line_table_fits(graph):
    x = fs.placeholder(fs.float32, [300, 300])
    y = x
    for _ in range(20):
        y = fs.matmul(y, x)
    with fs.Session() as sess:
        plan = sess.plan(y, [x])
    lines = plan.executable.code.source.splitlines()
    assert sum("gate.raised" in line for line in lines) >= 10
    assert len(lines) == len(plan.executable.code.lines)
    nodes = [entry.node for entry in plan.executable.code.lines if entry.node]
    assert [n.name for n in nodes] == [n.name for n in plan.program.nodes]


@pytest.mark.slow
def test_a_ten_thousand_op_chain_is_planned_and_run(graph):
    x = fs.placeholder(fs.float32, [])
    y = x
    for _ in range(10_000):
        y = y + x
    with fs.Session() as sess:
        assert sess.run(y, {x: 1.0}) == 10_001.0


UNARY = [
    fs.negative,
    fs.tanh,
    fs.square,
    fs.nn.relu,
    lambda x: fs.reshape(x, [-1]),
    lambda x: fs.reduce_sum(x, 0),
    lambda x: fs.expand_dims(x, 0),
    fs.identity,
    fs.transpose,
    lambda x: x[..., 1:],
    lambda x: fs.cast(fs.cast(x, fs.float64), fs.float32),
    lambda x: x * 1.0,
    lambda x: x - 0.0,
    lambda x: fs.concat([x, x], 0),
    fs.function(lambda x: fs.sin(x) * x, name="f"),
    lambda x: fs.random_uniform(fs.shape(x), seed=1) * x,
]
BINARY = [
    fs.add,
    fs.multiply,
    fs.subtract,
    fs.maximum,
    fs.minimum,
    lambda a, b: fs.matmul(a, b, transpose_b=True),
    lambda a, b: fs.where(fs.less(a, b), a, b),
    fs.function(lambda a, b: fs.nn.relu(a) + b, name="g"),
]


@st.composite
def programs(draw):
    """(steps, fetch picks): each step picks an op and earlier values."""
    steps = draw(
        st.lists(
            st.tuples(
                st.booleans(),
                st.integers(0, 15),
                st.integers(0, 30),
                st.integers(0, 30),
                st.booleans(),
            ),
            min_size=1,
            max_size=25,
        )
    )
    fetches = draw(st.lists(st.integers(0, 30), min_size=1, max_size=4))
    return steps, fetches


def build(steps, fetches, shape):
    x = fs.placeholder(fs.float32, shape, name="x")
    fs.set_random_seed(3)
    v = fs.Variable(np.arange(2, dtype=np.float32), name="v")
    values = [x, v, fs.constant(0.5)]
    writes = []
    for is_binary, which, a, b, writes_variable in steps:
        a, b = values[a % len(values)], values[b % len(values)]
        try:
            made = BINARY[which % len(BINARY)](a, b) if is_binary else UNARY[which](a)
        except ValueError:
            continue
        values.append(made)
        if writes_variable and made.shape.ndims == 1 and made.shape[0] == 2:
            writes.append(v.assign(made))
    wanted = [values[i % len(values)] for i in fetches]
    return x, v, [*wanted, *writes]


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(programs(), st.booleans(), st.sampled_from([[3, 2], [None, 2], [None, None]]))
def test_both_modes_are_bit_equal_and_safepoints_change_nothing(made, many_safepoints, shape):
    with fs.Graph().as_default(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(reuse_module, "SMALL_BYTES", 0)
        if many_safepoints:
            patch.setattr(code_module, "STRETCH_S", 0.0)
        x, v, fetches = build(*made, shape)
        value = np.linspace(-2, 3, 6, dtype=np.float32).reshape(3, 2)
        results = []
        for mode in ("compiled", "op"):
            with fs.Session(config=fs.ConfigProto(mode=mode)) as sess:
                sess.run(v.initializer)
                try:
                    results.append([*sess.run(fetches, {x: value}), sess.run(v)])
                except fs.errors.InvalidArgumentError:  # shapes that were not known did not fit
                    results.append([])
        for a, b in zip(*results, strict=True):
            a, b = np.asarray(a), np.asarray(b)
            assert a.dtype == b.dtype and a.shape == b.shape
            assert a.tobytes() == b.tobytes()


def test_plans_are_immutable(graph):
    x = fs.constant(1.0)
    with fs.Session() as sess:
        plan = sess.plan(x)
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan.program = None


@pytest.mark.parametrize("shape", [[], None, [1]])
def test_both_modes_agree_on_signed_zeros_and_nan(shape):
    x, y = fs.placeholder(fs.float32, shape), fs.placeholder(fs.float32, shape)
    fetches = [fs.maximum(x, y), fs.minimum(x, y)]
    special = [0.0, -0.0, np.nan, 1.0]
    modes = [fs.Session(config=fs.ConfigProto(mode=mode)) for mode in ("compiled", "op")]
    for a in special:
        for b in special:
            feed = {x: np.full(shape or [], a), y: np.full(shape or [], b)}
            compiled, op = [[v.tobytes() for v in sess.run(fetches, feed)] for sess in modes]
            assert compiled == op, (a, b)


def test_stages_show_what_was_planned_also_where_the_graph_has_changed(graph):
    """The passes run again on the program that was made of the graph then."""
    x = fs.placeholder(fs.float32, [], name="x")
    w = fs.Variable(2.0, name="w")
    y = fs.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * w), [0, x], name="loop")[1]
    with fs.Session() as sess:
        plan = sess.plan(fs.exp(y), [x])
        names = [name for name, _ in plan.stages()]
        before = {name: plan.text(name) for name in names}
        y.op._add_control_input(fs.constant(1.0, name="later").op)
        assert {name: plan.text(name) for name in names} == before
    assert names[:3] == ["prune", "inline", "order"]
    reads = [line for line in before["licm"].splitlines() if "= ReadVariableOp(" in line]
    assert reads
    assert not any(line.startswith(" ") for line in reads)
    assert before["update_groups"] == plan.text()
    with pytest.raises(fs.errors.InvalidArgumentError, match="expected a stage among prune, inl"):
        plan.text("products")
